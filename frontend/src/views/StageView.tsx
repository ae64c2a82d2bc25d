import { stageLabel } from "../app/Rail";
import { Words } from "../code/Words";
import type { StageName } from "../generated/contract";
import { say, t } from "../messages";
import { isOver, type StageState } from "../state/events";
import { missing } from "../app/control";
import { run, select, stage, stageState } from "../state/store";
import { Cache } from "./Cache";
import { Codegen } from "./Codegen";
import { Dynamo } from "./Dynamo";
import { Execute } from "./Execute";
import { Fusion } from "./Fusion";
import { Joint } from "./Joint";
import { Memory } from "./Memory";
import { Partition } from "./Partition";
import { Passes } from "./Passes";
import { Schedule } from "./Schedule";
import { Source } from "./Source";

function View({ name }: { name: StageName }) {
  switch (name) {
    case "source":
      return <Source />;
    case "dynamo":
      return <Dynamo />;
    case "pre_grad":
    case "joint_passes":
    case "post_grad":
      return <Passes stage={name} />;
    case "joint":
      return <Joint />;
    case "partition":
      return <Partition />;
    case "schedule":
      return <Schedule />;
    case "fusion":
      return <Fusion />;
    case "codegen":
      return <Codegen />;
    case "memory":
      return <Memory />;
    case "execute":
      return <Execute />;
    case "cache":
      return <Cache />;
  }
}

/** The middle of the page: the chosen stage, or a sentence that says why there is nothing of it. */
export function StageView() {
  const name = stage.value;
  const state = stageState.value;
  const tables = state.failure ? ["links", "breaks", "recompiles"] : ["links"];
  const shown = name === "source" || state.artifacts.some((made) => !tables.includes(made.kind));
  return (
    <main class="cv" aria-label={stageLabel(name)} data-view={name}>
      <h1 class="sr">aotscope</h1>
      <h2 class="sr">{stageLabel(name)}</h2>
      {shown ? (
        <View name={name} />
      ) : (
        <>
          <div class="bar" />
          <div class="body view scroll pad" tabIndex={0}>
            <Absent name={name} state={state} />
          </div>
          <span />
        </>
      )}
      {shown && state.failure && (
        <div style={{ position: "absolute", left: 0, right: 0, bottom: 0, maxHeight: "45%", overflow: "auto" }}>
          <Failure state={state} />
        </div>
      )}
    </main>
  );
}

function Absent({ name, state }: { name: StageName; state: StageState }) {
  if (state.failure) return <Failure state={state} />;
  if (state.reason) return <p class="empty">{say(state.reason)}</p>;
  if (missing.value) return <p class="empty">{t("absent.missing")}</p>;
  if (state.status === "running") return <p class="empty">{t("absent.running", { stage: stageLabel(name) })}</p>;
  if (!isOver(run.value.status)) return <p class="empty">{t("absent.waiting", { stage: stageLabel(name) })}</p>;
  return <p class="empty">{t("absent.never", { stage: stageLabel(name) })}</p>;
}

function Failure({ state }: { state: StageState }) {
  const failure = state.failure!;
  return (
    <div class="card bad" style={{ margin: "10px 16px" }} role="alert">
      <b>
        <Words text={say(failure.cause)} />
      </b>
      {failure.line !== null && (
        <>
          {" "}
          <button class="lnk" onClick={() => select(`line/${failure.line}`)}>
            {t("line", { line: failure.line })}
          </button>
        </>
      )}
      {failure.error && <pre>{failure.error}</pre>}
      {failure.traceback && <pre class="dim">{failure.traceback}</pre>}
    </div>
  );
}
