import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { Finding } from "../generated/contract";
import { lineId } from "../link/entity";
import { say, t } from "../messages";
import { run, select, visit } from "../state/store";
import { keysOn } from "./settings";

export const sheet = signal<"findings" | "help" | null>(null);

export function toggleSheet(name: "findings" | "help"): void {
  sheet.value = sheet.value === name ? null : name;
}

const RANK: Record<Finding["severity"], number> = { error: 0, warning: 1, note: 2 };
const GLYPH: Record<Finding["severity"], string> = { error: "✕", warning: "!", note: "i" };

function Sheet({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="sheet" role="dialog" aria-label={title}>
      <header>
        <h3>{title}</h3>
        <button class="ic" aria-label={t("close")} onClick={() => (sheet.value = null)}>
          ✕
        </button>
      </header>
      {children}
    </section>
  );
}

export function Findings() {
  const sorted = run.value.findings.toSorted((a, b) => RANK[a.severity] - RANK[b.severity]);
  return (
    <Sheet title={t("findings.title")}>
      {sorted.length === 0 && <p class="dim">{t("findings.none")}</p>}
      {sorted.map((finding, i) => (
        <div class="finding" key={i}>
          <i class={finding.severity === "note" ? "dim" : "bad"} title={t(`severity.${finding.severity}`)}>
            {GLYPH[finding.severity]}
          </i>
          <div>
            <div>{say(finding.message)}</div>
            {finding.hint && <div class="hint">{say(finding.hint)}</div>}
            <div style={{ display: "flex", gap: "12px", marginTop: "3px" }}>
              {finding.line !== null && (
                <button class="lnk" onClick={() => select(lineId(finding.line!))}>
                  {t("line", { line: finding.line })}
                </button>
              )}
              {finding.entity && (
                <button class="lnk" onClick={() => visit(finding.entity!)}>
                  {t("findings.evidence")}
                </button>
              )}
            </div>
          </div>
        </div>
      ))}
    </Sheet>
  );
}

const KEYS = [
  ["Ctrl/⌘ ↵", "keys.run"],
  ["← →", "keys.stage"],
  ["↑ ↓", "keys.pass"],
  ["/", "keys.search"],
  ["Space", "keys.fit"],
  ["+ −", "keys.zoom"],
  ["Enter", "keys.open"],
  ["m", "keys.mirror"],
  ["Esc", "keys.clear"],
  ["?", "keys.help"],
] as const;

export function Help() {
  return (
    <Sheet title={t("help.title")}>
      <p class="dim">{t("help.what")}</p>
      <div class="keys">
        {KEYS.map(([key, what]) => (
          <>
            <kbd>{key}</kbd>
            <span>{t(what)}</span>
          </>
        ))}
      </div>
      <label>
        <input type="checkbox" checked={keysOn.value} onChange={(event) => (keysOn.value = event.currentTarget.checked)} />{" "}
        {t("help.keys_on")}
      </label>
      <p class="dim" style={{ marginTop: "10px" }}>
        <b class="fw">■</b> {t("forward")} <b class="bw">■</b> {t("backward")} <b class="save">■</b> {t("saved")}{" "}
        <b class="re">■</b> {t("recomputed")} <b class="bad">■</b> {t("trouble")}
      </p>
    </Sheet>
  );
}
