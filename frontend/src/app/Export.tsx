import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { t, type Key } from "../messages";
import { findArtifact, isOver, stageOf } from "../state/events";
import { graphsOf, run, stage, stageState } from "../state/store";
import { place } from "../views/Derived";
import { offline, submit } from "./control";

/** Addresses of the shown stage's graph as the server draws it: a forward and its backward are one picture. */
function pictures(base: string): { svg: string; dot: string; scripts: readonly (readonly [graph: string, at: string])[] } | null {
  const graphs = graphsOf(stage.value, "graph");
  const hash = (graph: string | undefined): string | null =>
    graph === undefined ? null : (findArtifact(stageState.value, "graph", graph)?.ref.hash ?? null);
  const first = hash(graphs.includes("forward") ? "forward" : graphs[0]);
  if (!first) return null;
  const second = graphs.includes("forward") && graphs.includes("backward") ? hash("backward") : null;
  const query = new URLSearchParams(second ? { backward: second, lang: document.documentElement.lang } : { lang: document.documentElement.lang });
  const at = `${base}/artifacts/${first}`;
  const scripts = graphs.flatMap((graph): [string, string][] => {
    const found = hash(graph);
    return found ? [[graph, `${base}/artifacts/${found}/graph.py`]] : [];
  });
  return { svg: `${at}/picture.svg?${query}`, dot: `${at}/graph.dot?${query}`, scripts };
}

function savePicture(canvas: HTMLCanvasElement, name: string): void {
  canvas.toBlob((blob) => {
    if (!blob) return;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    URL.revokeObjectURL(link.href);
  });
}

/** What is seen, in other forms. Without a server, only what the page can make itself. */
export function Export() {
  const button = useRef<HTMLButtonElement>(null);
  const menu = useRef<HTMLDivElement>(null);
  const canvas = useSignal<HTMLCanvasElement | null>(null);
  const { id, status } = run.value;
  const server = !offline.value && id !== "";
  const base = `/api/v1/runs/${id}`;
  const drawn = server ? pictures(base) : null;
  const name = `aotscope-${id}-${stage.value}`;
  const traces = stageOf(run.value, null, "dynamo")
    .artifacts.filter((made) => made.ref.kind === "trace")
    .map((made) => made.name);
  const close = (): void => menu.current?.hidePopover();
  return (
    <>
      <button ref={button} class="pill" popovertarget="export" disabled={id === ""}>
        {t("export.title")} ▾
      </button>
      <div
        ref={menu}
        id="export"
        popover="auto"
        class="pop menu"
        onToggle={() => {
          canvas.value = document.querySelector<HTMLCanvasElement>(".graph canvas");
          if (button.current && menu.current) place(button.current, menu.current);
        }}
        onClick={close}
      >
        {(drawn ?? canvas.value) && <h3>{t("export.graph")}</h3>}
        {drawn && (
          <>
            <a href={drawn.svg} download={`${name}.svg`}>
              SVG <span>{t("export.svg")}</span>
            </a>
            <a href={drawn.dot} download={`${name}.dot`}>
              DOT <span>{t("export.dot")}</span>
            </a>
            {drawn.scripts.map(([graph, at]) => (
              <a key={graph} href={at} download>
                Python <span>{t("export.script", { graph: t(`graph.${graph}` as Key) })}</span>
              </a>
            ))}
          </>
        )}
        {canvas.value && (
          <button onClick={() => savePicture(canvas.value!, `${name}.png`)}>
            PNG <span>{t("export.png")}</span>
          </button>
        )}
        {server && isOver(status) && (
          <>
            <h3>{t("export.run")}</h3>
            <a href={`${base}/report.html`} download={`aotscope-${id}.html`}>
              HTML <span>{t("export.report")}</span>
            </a>
            <a href={`${base}/document`} download={`aotscope-${id}.json`}>
              JSON <span>{t("export.document")}</span>
            </a>
            <a href={`${base}/trace.json`} download>
              Perfetto <span>{t("export.trace")}</span>
            </a>
            <a href={`${base}/memory.pickle`} download>
              memory_viz <span>{t("export.snapshot")}</span>
            </a>
            <a href={`${base}/issue.md`} download>
              GitHub <span>{t("export.issue")}</span>
            </a>
            {traces.map((phase) => (
              <a key={phase} href={`${base}/trace/${phase}`} download={`dedicated_log_torch_trace_${phase}.log`}>
                TORCH_TRACE {phase} <span>{t("export.torch_trace")}</span>
              </a>
            ))}
            {traces.length === 0 && (
              <button onClick={() => void submit(true)}>
                TORCH_TRACE <span>{t("export.trace_again")}</span>
              </button>
            )}
            <a href={`/r/${id}/plain`}>
              {t("export.plain")} <span>{t("export.plain_what")}</span>
            </a>
          </>
        )}
      </div>
    </>
  );
}
