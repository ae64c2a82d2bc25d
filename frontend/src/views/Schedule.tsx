import { useRef } from "preact/hooks";
import { t, type Key } from "../messages";
import { bytes, size } from "../messages/format";
import { closure, entityPrefix, graphsOf, payload, ready, select, selected, show } from "../state/store";
import { Derived } from "./Derived";
import { scheduledDerivation } from "./derivations";
import { chosenGraph } from "./GraphStage";
import { Empty, GraphPick, stepKeys } from "./parts";
import { useReveal } from "./reveal";

/** Inductor's nodes before fusion: a list, and the text of one. */
export function Schedule() {
  const list = useRef<HTMLDivElement>(null);
  const graphs = graphsOf("schedule", "schedule");
  const graph = chosenGraph("schedule", "schedule");
  const schedule = ready(payload("schedule", "schedule", graph || undefined));
  useReveal(list, closure.value, schedule);
  if (!schedule) return <Wait graphs={graphs} graph={graph} />;
  const prefix = entityPrefix("schedule", graph);
  const ids = schedule.nodes.map((node) => `${prefix}/${node.name}`);
  const own = selected.value === null ? -1 : ids.indexOf(selected.value);
  const at = own >= 0 ? own : Math.max(0, ids.findIndex((id) => closure.value.has(id)));
  const node = schedule.nodes[at];
  const go = (to: number): void => {
    select(ids[to]!);
    list.current?.querySelectorAll<HTMLElement>("[role=option]")[to]?.scrollIntoView({ block: "nearest" });
  };
  return (
    <>
      <div class="bar">
        <GraphPick graphs={graphs} at={graph} onPick={(to) => show({ graph: to, node: null, line: null })} />
        <Derived class="chip" how={scheduledDerivation(schedule, ready(payload("fusion", "fusion", graph || undefined)))}>
          {t("schedule.count", { count: schedule.nodes.length })}
        </Derived>
      </div>
      <div class="body view cols">
        <div
          ref={list}
          role="listbox"
          tabIndex={0}
          aria-label={t("schedule.nodes")}
          onKeyDown={(event) => stepKeys(event, at, ids.length, go)}
        >
          {schedule.nodes.map((one, i) => (
            <button
              key={one.name}
              role="option"
              tabIndex={-1}
              aria-selected={closure.value.has(ids[i]!)}
              class="item"
              onClick={() => go(i)}
            >
              <span class="m">{one.name}</span>
              <em>
                {t(`kind.${one.kind}` as Key)} [{one.shape.map(size).join(", ")}]
              </em>
            </button>
          ))}
        </div>
        <div class="scroll pad" tabIndex={0}>
          {node && (
            <>
              <h3>
                {node.name} · {node.buffers.join(", ")}
              </h3>
              <p class="dim">
                {t("inspector.read_write", {
                  read: bytes(Object.values(node.reads).reduce((a, b) => a + b, 0)),
                  write: bytes(Object.values(node.writes).reduce((a, b) => a + b, 0)),
                })}{" "}
                · {t("schedule.from")} <code>{node.origins.join(", ")}</code>
              </p>
              <pre style={{ marginTop: "10px" }}>{node.ir}</pre>
            </>
          )}
        </div>
      </div>
      <span />
    </>
  );
}

function Wait({ graphs, graph }: { graphs: readonly string[]; graph: string }) {
  return (
    <>
      <div class="bar">
        <GraphPick graphs={graphs} at={graph} onPick={(to) => show({ graph: to })} />
      </div>
      <Empty>{t("loading")}</Empty>
      <span />
    </>
  );
}
