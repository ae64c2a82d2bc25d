import { say, t, type Key } from "../messages";
import { bytes } from "../messages/format";
import { memoryFigures } from "../state/memory";
import { payload, ready } from "../state/store";
import { TimelinePane } from "../timeline/TimelinePane";
import { heldDerivation, keptDerivation, peakDerivation } from "./derivations";
import { Figure } from "./parts";

const PEAKS = ["eager", "plan", "dry_run", "compiled"] as const;

/** The step's memory at full height, the figures side by side above it. */
export function Memory() {
  const memory = memoryFigures();
  const planned = ready(payload("memory", "timeline", undefined, "plan"));
  const timeline = ready(payload("memory", "timeline", undefined, "dry_run")) ?? (memory?.limit_bytes ? planned : null);
  const saved = memory?.saved;
  return (
    <>
      <div class="bar">
        <span class="dim">{timeline ? t("timeline.label") : t("timeline.waiting")}</span>
      </div>
      <div class="body view" style={{ display: "grid", gridTemplateRows: "auto minmax(0, 1fr) auto" }}>
        <div class="cards" style={{ padding: "0 16px" }}>
          {memory &&
            PEAKS.filter((name) => memory.peaks[name] !== undefined).map((name) => (
              <Figure
                key={name}
                value={bytes(memory.peaks[name]!)}
                label={t(`peak.${name}` as Key)}
                how={peakDerivation(name) ?? { from: say(memory.definition) }}
              />
            ))}
          {memory?.limit_bytes && (
            <Figure value={bytes(memory.limit_bytes)} label={t("memory.limit")} how={{ from: t("derive.limit") }} />
          )}
          {saved && saved.kept_storages_bytes !== null && (
            <Figure value={bytes(saved.kept_storages_bytes)} label={t("memory.kept")} how={keptDerivation()} />
          )}
          {saved && saved.eager_storages_bytes !== null && (
            <Figure value={bytes(saved.eager_storages_bytes)} label={t("memory.eager_kept")} how={heldDerivation("eager_storages_bytes")} />
          )}
        </div>
        <TimelinePane list={40} />
        <div class="say" tabIndex={0}>
          {timeline && <b>{say(timeline.method)}</b>} {memory && say(memory.definition)} {memory?.notes.map((note) => say(note)).join(" ")}{" "}
          {timeline?.caveats.map((caveat) => say(caveat)).join(" ")}
        </div>
      </div>
      <span />
    </>
  );
}
