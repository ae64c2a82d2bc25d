import { useRef } from "preact/hooks";
import type { PassesPayload, StageName } from "../generated/contract";
import { t } from "../messages";
import { seconds } from "../messages/format";
import { graphsOf, payload, place, ready, show } from "../state/store";
import { chosenGraph, GraphStage, type Tab } from "./GraphStage";
import { Diff, Empty, GraphPick, stepKeys } from "./parts";

/** Passes over a graph: what each changed, as a diff; the graph afterwards beside it. */
export function Passes({ stage }: { stage: StageName }) {
  const tab: Tab = { id: "passes", label: t("tab.passes"), body: () => <PassList stage={stage} /> };
  if (graphsOf(stage, "graph").length) return <GraphStage stage={stage} before={[tab]} />;
  return (
    <>
      <div class="bar">
        <span class="dim">{t(`passes.${stage}` as "passes.pre_grad")}</span>
      </div>
      <div class="body view">
        <PassList stage={stage} />
      </div>
      <span />
    </>
  );
}

function PassList({ stage }: { stage: StageName }) {
  const list = useRef<HTMLDivElement>(null);
  const graphs = graphsOf(stage, "passes");
  const graph = chosenGraph(stage, "passes");
  const passes = ready(payload(stage, "passes", graph || undefined));
  if (!passes) return <Empty>{t("loading")}</Empty>;
  const steps = passes.steps;
  const firstChange = Math.max(
    0,
    steps.findIndex((step) => step.changed),
  );
  const at = Math.min(place.value.pass ?? firstChange, Math.max(0, steps.length - 1));
  const go = (pass: number): void => {
    show({ pass });
    list.current?.querySelectorAll<HTMLElement>("[role=option]")[pass]?.scrollIntoView({ block: "nearest" });
  };
  return (
    <div class="cols">
      <div>
        {graphs.length > 1 && (
          <div style={{ padding: "8px 12px" }}>
            <GraphPick graphs={graphs} at={graph} onPick={(to) => show({ graph: to, pass: null })} />
          </div>
        )}
        <div
          ref={list}
          role="listbox"
          tabIndex={0}
          aria-label={t("tab.passes")}
          onKeyDown={(event) => stepKeys(event, at, steps.length, go)}
        >
          {steps.map((step, i) => (
            <button
              key={`${step.name}${i}`}
              role="option"
              tabIndex={-1}
              aria-selected={i === at}
              class={`item ${step.changed ? "" : "same"}`}
              onClick={() => go(i)}
            >
              <span aria-hidden="true">{step.changed ? "●" : "="}</span>
              <span class="m">{step.name}</span>
              <em>
                {step.nodes_after !== step.nodes_before && `${step.nodes_after > step.nodes_before ? "+" : "−"}${Math.abs(step.nodes_after - step.nodes_before)} `}
                {step.seconds !== null && step.seconds > 0.0005 ? seconds(step.seconds) : ""}
              </em>
            </button>
          ))}
        </div>
        <p class="empty">{summary(passes)}</p>
      </div>
      <div>{steps[at] ? <Step step={steps[at]} /> : <Empty>{summary(passes)}</Empty>}</div>
    </div>
  );
}

function summary({ steps, unchanged }: PassesPayload): string {
  const changed = steps.filter((step) => step.changed).length;
  const same = Math.max(unchanged, steps.length - changed);
  if (changed === 0) return t("passes.nothing", { count: same });
  return t("passes.summary", { changed, same });
}

function Step({ step }: { step: PassesPayload["steps"][number] }) {
  if (!step.diff) return <Empty>{step.changed ? t("passes.no_diff") : t("passes.unchanged", { name: step.name })}</Empty>;
  return (
    <div class="step">
      <p class="mono dim">
        {[...step.removed.map((name) => `−${name}`), ...step.added.map((name) => `+${name}`)].join("  ")}
      </p>
      <Diff text={step.diff} label={t("passes.diff", { name: step.name })} />
    </div>
  );
}
