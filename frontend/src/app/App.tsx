import { SourcePane } from "../code/SourcePane";
import { Inspector } from "../inspector/Inspector";
import { say, t } from "../messages";
import { isOver } from "../state/events";
import { graphsOf, payload, place, ready, run, select, source, stage } from "../state/store";
import { TimelinePane } from "../timeline/TimelinePane";
import { StageView } from "../views/StageView";
import { embed, missing, offline, service, trouble } from "./control";
import { Pair } from "./pair";
import { Rail, stageLabel } from "./Rail";
import { Findings } from "./Findings";
import { bare } from "./settings";
import { Help, layersSaid, Limits, sheet, toggleSheet } from "./sheets";
import { Stepper } from "./Stepper";
import { TopBar } from "./TopBar";

export function App() {
  const { present, pair } = place.value;
  const memoryStage = stage.value === "memory" || pair !== null;
  return (
    <div class={`page ${embed.value ? "embed" : ""} ${memoryStage ? "tall" : ""} ${present ? "present" : ""} ${bare ? "bare" : ""}`} data-status={run.value.status} data-run={run.value.id}>
      {!embed.value && <TopBar />}
      <div class="head">
        <Rail />
        <Stepper />
      </div>
      {pair !== null ? <Pair other={pair} /> : <Main />}
      {!memoryStage && <TimelinePane />}
      {!embed.value && <Footer />}
      {sheet.value === "findings" && <Findings />}
      {sheet.value === "help" && <Help />}
      {sheet.value === "limits" && service.value && <Limits of={service.value} />}
    </div>
  );
}

/** The three columns: the source, the stage, what is selected. */
function Main() {
  return (
    <div class="main">
      <section class="ed" aria-label={t("editor.label")}>
        <div class="tab">
          <b>{fileName()}</b>
          {run.value.request && run.value.request.source !== source.value && <span class="dim">{t("editor.changed")}</span>}
        </div>
        <Banner />
        <SourcePane />
      </section>
      <StageView />
      <Inspector />
    </div>
  );
}

/** The snippet's own name; a compile may also begin in a library's file. */
function fileName(): string {
  return run.value.compiles.find((made) => /^[^/]+\.py$/.test(made.file))?.file ?? "snippet.py";
}

/** How a run ended badly, or what the server refused, above the source that it is about. */
function Banner() {
  const { status, ending } = run.value;
  if (trouble.value) {
    const { said, detail } = trouble.value;
    return (
      <div class="banner" role="alert">
        <div>
          <b>{said ? say(said) : t("trouble.server")}</b> <span class="dim">{detail}</span>
        </div>
      </div>
    );
  }
  if (missing.value) return <div class="banner" role="alert">{t("absent.missing")}</div>;
  if (!isOver(status) || (status === "finished" && !ending?.cause)) return <span />;
  const line = ending?.line ?? null;
  return (
    <div class={`banner ${status === "cancelled" ? "calm" : ""}`} role="alert" data-ending={status}>
      <div style={{ minWidth: 0 }}>
        <b>{ending?.cause ? say(ending.cause) : t(`ending.${status}`, { limit: ending?.limitSeconds ?? "", stage: ending?.stage ? stageLabel(ending.stage) : "" })}</b>{" "}
        {line !== null && (
          <button class="lnk" onClick={() => select(`line/${line}`)}>
            {t("line", { line })}
          </button>
        )}
        {ending?.error && <pre>{ending.error}</pre>}
        {ending?.traceback && <pre class="dim">{ending.traceback}</pre>}
      </div>
    </div>
  );
}

function coverage(): string {
  const parts: string[] = [];
  for (const graph of graphsOf("codegen", "kernels")) {
    const kernels = ready(payload("codegen", "kernels", graph));
    if (!kernels?.statements) continue;
    const percent = Math.floor((100 * kernels.statements_with_line) / kernels.statements);
    parts.push(`${t(`graph.${graph}` as "graph.forward")} ${percent} %`);
  }
  return parts.join(", ");
}

function Footer() {
  const { engine } = run.value;
  const covered = coverage();
  const isolation = service.value ? layersSaid(service.value) : "";
  return (
    <footer>
      {engine && (
        <span>
          CPU{engine.cpu ? ` · ${engine.cpu.split("_")[0]!.toUpperCase()}` : ""} · {t("footer.threads", { count: engine.threads })}
        </span>
      )}
      {covered && <span>{t("footer.links", { covered })}</span>}
      {isolation && (
        <button class="lnk cut" title={isolation} aria-expanded={sheet.value === "limits"} onClick={() => toggleSheet("limits")}>
          {t("footer.isolation", { said: isolation })}
        </button>
      )}
      {offline.value && <span>{t("footer.offline")}</span>}
      <span class="sp" />
      <span class="wide">{t("footer.keys")}</span>
    </footer>
  );
}
