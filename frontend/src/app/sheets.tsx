import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { t } from "../messages";
import { keysOn } from "./settings";

export const sheet = signal<"findings" | "help" | null>(null);

export function toggleSheet(name: "findings" | "help"): void {
  sheet.value = sheet.value === name ? null : name;
}

export function Sheet({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="sheet" role="dialog" aria-label={title}>
      <div class="head">
        <h3>{title}</h3>
        <button class="ic" aria-label={t("close")} onClick={() => (sheet.value = null)}>
          ✕
        </button>
      </div>
      {children}
    </section>
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
  ["n", "keys.near"],
  ["Ctrl F10", "keys.line"],
  ["s", "keys.step"],
  [", .", "keys.step_by"],
  ["p", "keys.play"],
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
