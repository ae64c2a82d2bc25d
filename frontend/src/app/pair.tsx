import { t } from "../messages";
import { payload, place, ready, run, show, stage } from "../state/store";
import { formatPlace, NOWHERE } from "../state/url";
import { startRun } from "../transport/api";
import { refuse } from "./control";
import { painted } from "./settings";

/** Whether this run's model can be run in the other mode: a script decides for itself. */
export function comparable(): boolean {
  const source = ready(payload("source", "source"));
  return source?.form === "declared" && source.mode !== null;
}

/** Runs the same snippet in the other mode, or finds the finished run of it, and shows both; again: this one alone. */
export async function openPair(): Promise<void> {
  const { request } = run.value;
  const mode = ready(payload("source", "source"))?.mode;
  if (place.value.pair !== null || !request || !mode) {
    show({ pair: null });
    return;
  }
  try {
    const other = mode === "training" ? "inference" : "training";
    show({ pair: await startRun({ ...request, options: { ...request.options, mode: other } }, true) });
  } catch (fault) {
    refuse(fault);
  }
}

/** Training on the left, inference on the right, at the same stage. */
export function Pair({ other }: { other: string }) {
  const own = ready(payload("source", "source"))?.mode ?? "training";
  const both = own === "inference" ? [other, run.value.id] : [run.value.id, other];
  const { line, overlay, tab } = place.value;
  const at = formatPlace({ ...NOWHERE, stage: stage.value, tab, line, overlay });
  const query = `?theme=${painted.value}&lang=${document.documentElement.lang}&only=stage`;
  return (
    <main class="pair" aria-label={t("pair.title")} data-view={stage.value}>
      <h1 class="sr">aotscope · {t("pair.title")}</h1>
      {both.map((id, i) => (
        <figure key={id}>
          <figcaption>{t(i === 0 ? "mode.training" : "mode.inference")}</figcaption>
          <iframe title={t(i === 0 ? "mode.training" : "mode.inference")} src={`/embed/${id}${query}${at}`} />
        </figure>
      ))}
    </main>
  );
}
