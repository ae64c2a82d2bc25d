import type { GraphModel, StackFrame } from "../graph/model/graph";
import type { Entity } from "../link/entity";
import { t } from "../messages";
import { findArtifact, stageOf } from "../state/events";
import { artifacts, ready, run, select } from "../state/store";

/** What of the backward reads a saved tensor: the reason that it crosses. */
export function Readers({ entity, node }: { entity: Entity; node: string }) {
  const made = findArtifact(stageOf(run.value, entity.compile, "partition"), "partition");
  const partition = made ? ready(artifacts.value.get<"partition">({ ...made.ref, kind: "partition" }).value) : null;
  const readers = partition?.saved.find((tensor) => tensor.node === node)?.readers ?? [];
  if (!readers.length) return null;
  return (
    <>
      <h3>{t("inspector.readers")}</h3>
      {readers.map((name) => (
        <button class="lk" key={name} onClick={() => select(`${entity.id.split("/")[0]}/joint_passes/joint/${name}`)}>
          <span>{name}</span>
          <span class="bw">{t("backward")}</span>
        </button>
      ))}
    </>
  );
}

/** How the program came to this node: the user's frames, outermost first. */
export function Frames({ stack }: { stack: readonly StackFrame[] }) {
  const own = stack.filter((frame) => frame.user);
  if (!own.length) return null;
  return (
    <>
      <h3>{t("inspector.stack")}</h3>
      {own.map((frame, i) => (
        <button class="lk" key={i} onClick={() => select(`line/${frame.line}`)}>
          <span title={frame.code}>{frame.code || frame.function}</span>
          <span>
            {frame.function} · {t("line", { line: frame.line })}
          </span>
        </button>
      ))}
    </>
  );
}

/** What in the same graph reads the node. */
export function Uses({ graph, node }: { graph: GraphModel; node: number }) {
  const users: number[] = [];
  graph.source.forEach((from, i) => {
    const to = graph.target[i]!;
    if (from === node && !users.includes(to)) users.push(to);
  });
  if (!users.length) return null;
  return (
    <>
      <h3>{t("inspector.used_by")}</h3>
      {users.slice(0, 12).map((user) => {
        const it = graph.nodes[user]!;
        const side = it.op === "output" ? "" : it.backward ? "bw" : "fw";
        return (
          <button class="lk" key={user} onClick={() => select(it.id)}>
            <span>{it.name}</span>
            <span class={side}>{it.op === "output" ? t("inspector.output") : it.backward ? t("backward") : t("forward")}</span>
          </button>
        );
      })}
      {users.length > 12 && <div class="dim">{t("more", { count: users.length - 12 })}</div>}
    </>
  );
}
