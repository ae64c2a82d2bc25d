import { Words } from "../code/Words";
import type { Finding } from "../generated/contract";
import { lineId } from "../link/entity";
import { say, t } from "../messages";
import { STAGES } from "../state/events";
import { run, select, source, visit } from "../state/store";
import { stageLabel } from "./Rail";
import { sheet, Sheet } from "./sheets";

const RANK: Record<Finding["severity"], number> = { error: 0, warning: 1, note: 2 };
const GLYPH: Record<Finding["severity"], string> = { error: "✕", warning: "!", note: "i" };

type Told = (typeof run.value.findings)[number];

/** Worst first, then in the order of the stages; what several compiles say alike, once. */
function sorted(findings: readonly Told[]): { finding: Told; times: number }[] {
  const alike = new Map<string, { finding: Told; times: number }>();
  for (const finding of findings) {
    const key = JSON.stringify([finding.message, finding.line, finding.hint]);
    const held = alike.get(key);
    if (held) held.times++;
    else alike.set(key, { finding, times: 1 });
  }
  const place = ({ stage }: Told): number => (stage === null ? -1 : STAGES.indexOf(stage));
  return [...alike.values()].toSorted((a, b) => RANK[a.finding.severity] - RANK[b.finding.severity] || place(a.finding) - place(b.finding));
}

export function Findings() {
  const all = sorted(run.value.findings);
  return (
    <Sheet title={t("findings.title")}>
      {all.length === 0 && <p class="dim">{t("findings.none")}</p>}
      {all.map(({ finding, times }, i) => (
        <One key={i} finding={finding} times={times} />
      ))}
    </Sheet>
  );
}

/** What happened, at which line, what to try, and where the page shows it. */
function One({ finding, times }: { finding: Told; times: number }) {
  const { line, stage, entity } = finding;
  const code = line === null ? "" : (source.value.split("\n")[line - 1] ?? "").trim();
  return (
    <article class="finding" data-severity={finding.severity}>
      <i class={finding.severity === "note" ? "dim" : "bad"} title={t(`severity.${finding.severity}`)}>
        {GLYPH[finding.severity]}
      </i>
      <div>
        <div>
          <Words text={say(finding.message)} /> {times > 1 && <span class="dim">×{times}</span>}
        </div>
        {line !== null && (
          <button class="at" onClick={() => select(lineId(line))}>
            <span>{line}</span>
            <code>{code}</code>
          </button>
        )}
        {finding.hint && (
          <p class="hint">
            <b>{t("findings.try")}</b> <Words text={say(finding.hint)} />
          </p>
        )}
        {(entity ?? stage) !== null && (
          <button
            class="lnk"
            onClick={() => {
              sheet.value = null; // It would cover what it leads to.
              visit(entity ?? "", stage, line);
            }}
          >
            {t("findings.evidence", { stage: stage ? stageLabel(stage) : "" })}
          </button>
        )}
      </div>
    </article>
  );
}
