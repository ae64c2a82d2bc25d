import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { say, t } from "../messages";
import { bytes } from "../messages/format";
import type { Health, LimitName } from "../transport/api";
import { keysOn } from "./settings";

type SheetName = "findings" | "help" | "limits";

export const sheet = signal<SheetName | null>(null);

export function toggleSheet(name: SheetName): void {
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

/** The layers of isolation in force, in words. */
export function layersSaid({ isolation, outer }: Health): string {
  return [...new Set([isolation, outer].map(say))].join(" ");
}

const LIMITS: readonly LimitName[] = [
  "capture_seconds", "run_seconds", "memory_bytes", "processes", "disk_bytes", "disk_entries", "file_bytes",
  "output_bytes", "artifact_bytes", "artifacts_bytes", "events", "body_bytes", "queue",
];

function limitValue(name: LimitName, value: number): string {
  if (name.endsWith("_seconds")) return `${value} s`;
  return name.endsWith("_bytes") ? bytes(value) : value.toLocaleString();
}

/** What a run may use before it is ended, and what keeps it apart; as the server's settings say. */
export function Limits({ of }: { of: Health }) {
  return (
    <Sheet title={t("limits.title")}>
      <p class="dim">{layersSaid(of)}</p>
      <table>
        <tbody>
          {LIMITS.map((name) => (
            <tr key={name}>
              <th scope="row">{t(`limits.${name}`)}</th>
              <td class="n">{limitValue(name, of.limits[name])}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="dim">{t("limits.what")}</p>
    </Sheet>
  );
}
