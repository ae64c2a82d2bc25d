import type { StageName } from "../generated/contract";
import { t, type Key } from "../messages";
import { findArtifact, isOver, stageOf, type StageState } from "../state/events";
import { compile, place, run, show, stage } from "../state/store";

const GROUPS: readonly { readonly label: Key; readonly stages: readonly StageName[] }[] = [
  { label: "rail.capture", stages: ["source", "dynamo"] },
  { label: "rail.aotautograd", stages: ["pre_grad", "joint", "joint_passes", "partition"] },
  { label: "rail.inductor", stages: ["post_grad", "schedule", "fusion", "codegen", "memory"] },
  { label: "rail.run", stages: ["execute", "cache"] },
];

const GLYPHS: Record<StageState["status"] | "trouble", string> = {
  ok: "✓",
  changed: "✓",
  unchanged: "=",
  trouble: "!",
  failed: "!",
  running: "◔",
  waiting: "○",
  skipped: "–",
};

export const stageLabel = (name: StageName): string => t(`stage.${name}`);

/** A graph break or a difference from eager does not fail its stage; the rail says it all the same. */
function look(name: StageName, state: StageState): StageState["status"] | "trouble" {
  if (state.status === "waiting" && isOver(run.value.status)) return "skipped";
  const done = state.status === "ok" || state.status === "changed" || state.status === "unchanged";
  if (!done) return state.status;
  const told = run.value.findings.some((finding) => finding.stage === name && finding.severity !== "note");
  return told || (typeof state.facts["breaks"] === "number" && state.facts["breaks"] > 0) ? "trouble" : state.status;
}

function figure(name: StageName, { facts, seconds: spent, status }: StageState): string {
  const number = (key: string): number | null => (typeof facts[key] === "number" ? facts[key] : null);
  if (name === "fusion" && number("before") !== null) return `${number("before")}→${number("after")}`;
  if (name === "execute" && number("ratio") !== null) return `×${(1 / number("ratio")!).toFixed(2)}`;
  if ((name === "pre_grad" || name === "joint_passes" || name === "post_grad") && number("changed") !== null) {
    return number("changed") === 0 ? "" : String(number("changed"));
  }
  if (status === "running" || spent === null) return "";
  return spent >= 0.195 ? `${spent.toFixed(spent < 0.995 ? 2 : spent < 9.95 ? 1 : 0)} s` : "";
}

export function Rail() {
  const now = run.value;
  const at = compile.value;
  return (
    <nav class="rail" aria-label={t("rail.stages")}>
      <div class="grp">
        <span>{t("rail.compile")}</span>
        <div class="st">
          <CompilePicker />
        </div>
      </div>
      {GROUPS.map((group) => (
        <div class="grp" key={group.label}>
          <span>{t(group.label)}</span>
          <div class="st">
            {group.stages.map((name) => {
              const state = stageOf(now, at, name);
              const kind = look(name, state);
              const small = figure(name, state);
              return (
                <button
                  key={name}
                  class={`s ${kind}`}
                  aria-current={stage.value === name ? "true" : undefined}
                  data-stage={name}
                  data-status={state.status}
                  title={`${stageLabel(name)}: ${t(`status.${kind}`)}`}
                  onClick={() => show({ stage: name, graph: null, tab: null, pass: null })}
                >
                  <i aria-hidden="true">{GLYPHS[kind]}</i>
                  {stageLabel(name)}
                  <span class="sr">{t(`status.${kind}`)}</span>
                  {small && <em>{small}</em>}
                </button>
              );
            })}
          </div>
        </div>
      ))}
      <span class="sp" />
      {run.value.seq > 0 && (
        <button
          class="pill steps"
          aria-pressed={place.value.step !== null}
          title={`${t("keys.step")} (s)`}
          onClick={() => show({ step: place.value.step === null ? "stage" : null })}
        >
          {t("step.open")}
        </button>
      )}
    </nav>
  );
}

function CompilePicker() {
  const known = run.value.compiles;
  if (known.length === 0) return <span class="s dim">–</span>;
  return (
    <label class="pill" title={known.find((made) => made.id === compile.value)?.function}>
      <select
        aria-label={t("rail.compile")}
        value={compile.value ?? ""}
        onChange={(event) => show({ compile: event.currentTarget.value, graph: null, pass: null, node: null })}
      >
        {known.map((made) => (
          <option key={made.id} value={made.id}>
            {`[${made.id}]`}
            {run.value.request?.question || findArtifact(stageOf(run.value, made.id, "dynamo"), "graph") ? "" : " ∅"}
          </option>
        ))}
      </select>
      {known.length > 1 && <small>{t("rail.of", { count: known.length })}</small>}
    </label>
  );
}
