import { stageLabel } from "../app/Rail";
import type { Kernel, Message, NodeDecision, SchedulerNode, StageName } from "../generated/contract";
import { tidyPath } from "../graph/model/modules";
import { parseEntity, type Entity } from "../link/entity";
import { say, t, type Key } from "../messages";
import { bytes, count, opName, shape, size } from "../messages/format";
import { findArtifact, STAGES, stageOf } from "../state/events";
import { nodeOf, payloadOf } from "../state/graphs";
import { blocksOf, tensorsOf } from "../state/tensors";
import { Derived } from "../views/Derived";
import { recomputedDerivation, savedDerivation } from "../views/derivations";
import { Frames, Readers, Uses } from "./relations";
import { artifacts, closure, payload, ready, run, select, selected, source, visit } from "../state/store";

/** Whatever is selected, told in full. */
export function Inspector() {
  const id = selected.value;
  const entity = id === null ? null : parseEntity(id);
  return (
    <aside class="ins" aria-label={t("inspector.label")}>
      {entity ? <About entity={entity} /> : <Nothing />}
    </aside>
  );
}

function Nothing() {
  const now = run.value;
  const partition = ready(payload("partition", "partition"));
  // That of a derived run happened in its parent.
  const located = now.request?.question ? [] : now.compiles;
  return (
    <>
      <h2>{t("inspector.run")}</h2>
      <div class="sub">{t("inspector.pick")}</div>
      <dl>
        {now.engine && (
          <>
            <dt>torch</dt>
            <dd>{now.engine.torch}</dd>
            <dt>Python</dt>
            <dd>{now.engine.python}</dd>
          </>
        )}
        <dt>{t("inspector.compiles")}</dt>
        <dd>{now.compiles.length}</dd>
        {partition && (
          <>
            <dt>{t("saved")}</dt>
            <dd>
              <Derived class="lnk mono" how={savedDerivation()!}>
                {partition.saved.length} · {bytes(partition.saved_bytes)}
              </Derived>
            </dd>
            <dt>{t("recomputed")}</dt>
            <dd>
              <Derived class="lnk mono" how={recomputedDerivation(partition.recomputed.length)}>
                {partition.recomputed.length}
              </Derived>
            </dd>
          </>
        )}
      </dl>
      {located.length > 0 && <h3>{t("inspector.compiles")}</h3>}
      {located.map((made) => (
        <button class="lk" key={made.id} onClick={() => select(`line/${made.line}`)}>
          <span>
            [{made.id}] {made.function}
          </span>
          <span>{t("line", { line: made.line })}</span>
        </button>
      ))}
    </>
  );
}

function About({ entity }: { entity: Entity }) {
  if (entity.line !== null) return <AboutLine line={entity.line} />;
  if (entity.stage === "schedule") return <AboutScheduled entity={entity} />;
  if (entity.stage === "fusion") return <AboutGroup entity={entity} />;
  if (entity.stage === "codegen") return <AboutCode entity={entity} />;
  return <AboutNode entity={entity} />;
}

function Head({ title, sub }: { title: string; sub: string }) {
  return (
    <>
      <h2>{title}</h2>
      <div class="sub">{sub}</div>
    </>
  );
}

const graphLabel = (graph: string): string =>
  graph === "forward" || graph === "backward" ? t(graph) : graph === "dynamo" ? "" : t(`graph.${graph}` as Key);

const sourceLine = (line: number): string => (source.value.split("\n")[line - 1] ?? "").trim();

function Line({ line }: { line: number }) {
  return (
    <>
      <dt>{t("inspector.line")}</dt>
      <dd>
        <button class="lnk" onClick={() => select(`line/${line}`)}>
          {line}
        </button>{" "}
        {sourceLine(line)}
      </dd>
    </>
  );
}

function AboutLine({ line }: { line: number }) {
  const partition = ready(payload("partition", "partition"));
  const breaks = ready(payload("dynamo", "breaks"))?.breaks.filter((one) => one.line === line) ?? [];
  const guards = ready(payload("dynamo", "guards"))?.guards.filter((one) => one.line === line) ?? [];
  const saved = partition?.saved.filter((tensor) => tensor.line === line && !tensor.is_input) ?? [];
  const again = partition?.decisions.filter((one) => one.line === line && one.verdict === "recomputed") ?? [];
  return (
    <>
      <Head title={t("line", { line })} sub={sourceLine(line)} />
      {breaks.map((one) => (
        <div class="why bad" key={one.id}>
          <b>{t(`break.${one.kind}`)}.</b> {one.reason || one.explanation || one.text}
          {one.hints.map((hint) => (
            <div key={hint}>{hint}</div>
          ))}
        </div>
      ))}
      <dl>
        {partition && (
          <>
            <dt>{t("saved")}</dt>
            <dd>
              {saved.length} · {bytes(saved.reduce((sum, tensor) => sum + (tensor.bytes ?? 0), 0))}
            </dd>
            <dt>{t("recomputed")}</dt>
            <dd>{again.length}</dd>
          </>
        )}
        {guards.length > 0 && (
          <>
            <dt>{t("dynamo.guards")}</dt>
            <dd>{guards.length}</dd>
          </>
        )}
      </dl>
      <Elsewhere />
    </>
  );
}

/** The decision on a forward node, found through its place in the joint graph. */
function decisionOn(entity: Entity): NodeDecision | null {
  const made = findArtifact(stageOf(run.value, entity.compile, "partition"), "partition");
  const partition = made ? ready(artifacts.value.get<"partition">({ ...made.ref, kind: "partition" }).value) : null;
  if (!partition) return null;
  const by = (name: string): NodeDecision | null => partition.decisions.find((one) => one.node === name) ?? null;
  if (["joint", "joint_passes", "partition"].includes(entity.stage)) return by(entity.name);
  for (const id of closure.value) {
    const other = parseEntity(id);
    if (other?.stage === "joint_passes" || other?.stage === "joint") {
      const found = by(other.name);
      if (found && found.verdict !== "forward_only") return found;
    }
  }
  return null;
}

function Verdict({ decision }: { decision: NodeDecision }) {
  const look = { saved: "", input: "", recomputed: "re", forward_only: "none", backward_only: "none" }[decision.verdict];
  const sentence: Message = decision.sentence;
  return (
    <div class={`why ${look}`}>
      <Sentence text={say(sentence)} />
    </div>
  );
}

/** The verdict, the first word or clause of the sentence, is set strong. */
function Sentence({ text }: { text: string }) {
  const head = /^[^:：.。]{2,40}[:：.。]/.exec(text)?.[0];
  return head ? (
    <>
      <b>{head}</b>
      {text.slice(head.length)}
    </>
  ) : (
    <>{text}</>
  );
}

function AboutNode({ entity }: { entity: Entity }) {
  const found = nodeOf(entity);
  const stage = STAGES.find((name) => name === entity.stage);
  const place = [stage ? stageLabel(stage) : entity.stage, graphLabel(entity.graph), `[${entity.compile}]`];
  if (!found) {
    return (
      <>
        <Head title={entity.name} sub={place.filter(Boolean).join(" · ")} />
        <Elsewhere />
      </>
    );
  }
  const { graph, node } = found;
  const it = graph.nodes[node]!;
  const decision = decisionOn(entity);
  const life = lifeOf();
  return (
    <>
      <Head title={it.name} sub={[opName(it.op, it.target), ...place].filter(Boolean).join(" · ")} />
      {decision && !it.backward && <Verdict decision={decision} />}
      {it.backward && it.twin >= 0 && graph.nodes[it.twin] && (
        <div class="why none">{t("inspector.gradient_of", { name: graph.nodes[it.twin]!.name })}</div>
      )}
      {it.roles.has("accumulation") && <div class="why none">{t("inspector.accumulation")}</div>}
      <dl>
        {it.gradFn && (
          <>
            <dt>grad_fn</dt>
            <dd>{it.gradFn}</dd>
          </>
        )}
        {it.value && (
          <>
            <dt>{t("inspector.shape")}</dt>
            <dd>{shape(it.value)}</dd>
          </>
        )}
        {it.value?.kind === "tensor" && it.value.stride && (
          <>
            <dt>{t("inspector.stride")}</dt>
            <dd>({it.value.stride.map(size).join(", ")})</dd>
          </>
        )}
        {it.value?.kind === "tensor" && it.value.device && (
          <>
            <dt>{t("inspector.device")}</dt>
            <dd>{[it.value.device, it.value.memory_format].filter(Boolean).join(" · ")}</dd>
          </>
        )}
        {it.bytes >= 0 && (
          <>
            <dt>{t("inspector.size")}</dt>
            <dd>{bytes(it.bytes)}</dd>
          </>
        )}
        {tidyPath(it.module) && (
          <>
            <dt>{t("inspector.module")}</dt>
            <dd>
              {tidyPath(it.module)} <span class="dim">{it.moduleType.split(".").at(-1)}</span>
            </dd>
          </>
        )}
        {it.line > 0 && <Line line={it.line} />}
        {decision && decision.capacity !== null && (
          <>
            <dt>{t("inspector.capacity")}</dt>
            <dd>{count(Math.round(decision.capacity))}</dd>
          </>
        )}
        {decision?.policy && (
          <>
            <dt>{t("inspector.policy")}</dt>
            <dd>
              {decision.policy}
              {decision.region !== null && ` · ${t("inspector.region", { region: decision.region })}`}
            </dd>
          </>
        )}
        {life && (
          <>
            <dt>{t("inspector.alive")}</dt>
            <dd>{life}</dd>
          </>
        )}
        {it.args && it.args !== "()" && (
          <>
            <dt>{t("inspector.args")}</dt>
            <dd>{it.args}</dd>
          </>
        )}
      </dl>
      {decision && !it.backward && <Readers entity={entity} node={decision.node} />}
      {decision?.banned && <p class="dim">{t("inspector.banned")}</p>}
      {decision && decision.reasons.length > 0 && (
        <>
          <h3>{t("inspector.reasons")}</h3>
          {decision.reasons.map((reason) => (
            <div class="lk" key={reason}>
              <span style={{ whiteSpace: "normal" }}>{reason}</span>
            </div>
          ))}
        </>
      )}
      <Elsewhere />
      <Uses graph={graph} node={node} />
      <Frames stack={it.stack} />
    </>
  );
}

function lifeOf(): string | null {
  const timeline = ready(payload("memory", "timeline", undefined, "dry_run"));
  if (!timeline) return null;
  const [at] = blocksOf(timeline, tensorsOf(timeline), closure.value, selected.value);
  if (at === undefined) return null;
  const end = timeline.blocks.end[at]!;
  return t("inspector.steps", {
    from: timeline.blocks.start[at]!,
    to: end < 0 ? t("inspector.end") : end,
  });
}

function AboutScheduled({ entity }: { entity: Entity }) {
  const it = payloadOf(entity, "schedule")?.nodes.find((node) => node.name === entity.name);
  return (
    <>
      <Head title={entity.name} sub={[it ? t(`kind.${it.kind}` as Key) : "", stageLabel("schedule"), graphLabel(entity.graph)].join(" · ")} />
      {it && <Scheduled it={it} />}
      <Elsewhere />
    </>
  );
}

function Scheduled({ it }: { it: SchedulerNode }) {
  const sum = (held: Record<string, number>): string => bytes(Object.values(held).reduce((a, b) => a + b, 0));
  return (
    <dl>
      <dt>{t("inspector.shape")}</dt>
      <dd>
        {it.dtype.replace("torch.", "")}[{it.shape.map(size).join(", ")}]
      </dd>
      <dt>{t("inspector.writes")}</dt>
      <dd>{it.buffers.join(", ")}</dd>
      <dt>{t("inspector.traffic")}</dt>
      <dd>
        {t("inspector.read_write", { read: sum(it.reads), write: sum(it.writes) })}
      </dd>
      {it.line !== null && it.line > 0 && <Line line={it.line} />}
    </dl>
  );
}

function AboutGroup({ entity }: { entity: Entity }) {
  const it = payloadOf(entity, "fusion")?.groups.find((group) => group.name === entity.name);
  return (
    <>
      <Head title={entity.name} sub={[it ? t(`kind.${it.kind}` as Key) : "", stageLabel("fusion"), graphLabel(entity.graph)].join(" · ")} />
      {it && (
        <dl>
          <dt>{t("inspector.members")}</dt>
          <dd>{it.members.join(", ")}</dd>
          {it.bytes_before !== null && it.bytes_after !== null && (
            <>
              <dt>{t("inspector.traffic")}</dt>
              <dd>
                {bytes(it.bytes_before)} → {bytes(it.bytes_after)}
              </dd>
            </>
          )}
        </dl>
      )}
      <Elsewhere />
    </>
  );
}

function AboutCode({ entity }: { entity: Entity }) {
  const kernels = payloadOf(entity, "kernels")?.kernels ?? [];
  const kernel =
    entity.codeLine === null
      ? kernels.find((one) => one.name === entity.name)
      : kernels.find((one) => [...closure.value].includes(`${entity.id.slice(0, entity.id.lastIndexOf("/"))}/${one.name}`));
  const where = [stageLabel("codegen"), graphLabel(entity.graph)].join(" · ");
  if (!kernel) {
    const title = entity.codeLine === null ? entity.name : t("inspector.code_line", { line: entity.codeLine });
    return (
      <>
        <Head title={title} sub={where} />
        <Elsewhere />
      </>
    );
  }
  return (
    <>
      <Head title={kernel.name} sub={`${t(`kernel.${kernel.kind}`)} · ${where}`} />
      <KernelFacts kernel={kernel} entity={entity} />
      <Elsewhere />
    </>
  );
}

function KernelFacts({ kernel, entity }: { kernel: Kernel; entity: Entity }) {
  const again = new Set(kernel.recomputed);
  return (
    <>
      {again.size > 0 && <div class="why re">{t("inspector.kernel_again", { count: again.size })}</div>}
      <dl>
        <dt>{t("inspector.launches")}</dt>
        <dd>{kernel.launches.map((launch) => launch.line).join(", ")}</dd>
        {kernel.first_line > 0 && (
          <>
            <dt>{t("inspector.source")}</dt>
            <dd>
              {kernel.first_line}–{kernel.last_line}
            </dd>
          </>
        )}
        <dt>{t("inspector.lines")}</dt>
        <dd>
          {kernel.lines.map((line) => (
            <button class="lnk" key={line} style={{ marginRight: "8px" }} onClick={() => select(`line/${line}`)}>
              {line}
            </button>
          ))}
        </dd>
        <dt>{t("inspector.ops")}</dt>
        <dd>{kernel.ops.join(", ")}</dd>
      </dl>
      <h3>{t("inspector.nodes")}</h3>
      {kernel.nodes.slice(0, 24).map((name) => (
        <button class="lk" key={name} onClick={() => visit(`${entity.id.split("/")[0]}/post_grad/${entity.graph}/${name}`)}>
          <span>{name}</span>
          {again.has(name) ? <span class="re">{t("recomputed")}</span> : <span />}
        </button>
      ))}
    </>
  );
}

const SHOWN: readonly StageName[] = ["dynamo", "joint", "joint_passes", "partition", "post_grad", "schedule", "fusion", "codegen"];

/** The selection's closure by stage: each entry leads there. */
function Elsewhere() {
  const here = selected.value;
  const own = here === null ? null : parseEntity(here);
  const groups = new Map<string, { stage: StageName; graph: string; ids: Entity[] }>();
  for (const id of closure.value) {
    const entity = parseEntity(id);
    const stage = SHOWN.find((name) => name === entity?.stage);
    if (!entity || !stage || id === here || entity.codeLine !== null) continue;
    if (own?.line === null && entity.stage === own.stage && entity.graph === own.graph) continue;
    const key = `${SHOWN.indexOf(stage)}:${entity.graph}:${entity.compile}`;
    const held = groups.get(key) ?? { stage, graph: entity.graph, ids: [] };
    held.ids.push(entity);
    groups.set(key, held);
  }
  const names = (stage: StageName): string => [...groups.values()].filter((one) => one.stage === stage).flatMap((one) => one.ids.map((id) => id.name)).join();
  if (names("joint") === names("joint_passes")) for (const [key, one] of groups) if (one.stage === "joint_passes") groups.delete(key);
  const lines = own?.line === null ? [...closure.value].filter((id) => id.startsWith("line/")) : [];
  if (!groups.size && !lines.length) return null;
  const few = own?.line === null ? 3 : 4;
  return (
    <>
      <h3>{t("inspector.elsewhere")}</h3>
      {[...groups]
        .toSorted(([a], [b]) => a.localeCompare(b, "en", { numeric: true }))
        .map(([key, { stage, graph, ids }]) => (
          <div key={key}>
            {ids.slice(0, few).map((entity) => (
              <button class="lk" key={entity.id} onClick={() => visit(entity.id)}>
                <span>{entity.name}</span>
                <span>
                  {stageLabel(stage)}
                  {graph === "forward" || graph === "backward" ? (
                    <b class={graph === "forward" ? "fw" : "bw"}>{graph === "forward" ? " →" : " ←"}</b>
                  ) : null}
                  {ids.length > few && entity === ids[few - 1] ? ` +${ids.length - few}` : ""}
                </span>
              </button>
            ))}
          </div>
        ))}
      {lines.map((id) => (
        <button class="lk" key={id} onClick={() => select(id)}>
          <span>{sourceLine(Number(id.slice(5)))}</span>
          <span>{t("line", { line: id.slice(5) })}</span>
        </button>
      ))}
    </>
  );
}
