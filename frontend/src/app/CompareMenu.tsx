import { effect, signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { Mode } from "../generated/contract";
import { t } from "../messages";
import { isOver } from "../state/events";
import { run } from "../state/store";
import { startRun } from "../transport/api";
import { place } from "../views/Derived";
import { offline, refuse } from "./control";

interface Seen {
  readonly id: string;
  readonly label: string;
}

const MOST = 8;
/** The runs that this page has shown, the latest first. */
const seen = signal<readonly Seen[]>([]);

effect(() => {
  const { id, status, request } = run.value;
  const known = seen.peek();
  if (!isOver(status) || known[0]?.id === id) return;
  const first = request?.source.split("\n").find((line) => /^\s*(class|def)\s/.test(line)) ?? request?.source.split("\n")[0] ?? "";
  const label = first.trim().slice(0, 40);
  seen.value = [{ id, label }, ...known.filter((one) => one.id !== id)].slice(0, MOST);
});

/** The same snippet in the other mode, held against this run. The page of the comparison waits for it. */
async function inOtherMode(mode: Mode): Promise<void> {
  const { id, request } = run.value;
  if (!request) return;
  try {
    const other = await startRun({ ...request, options: { ...request.options, mode } });
    location.assign(mode === "inference" ? `/compare/${id}/${other}` : `/compare/${other}/${id}`);
  } catch (fault) {
    refuse(fault);
  }
}

/** What this run can be held against. */
export function CompareMenu() {
  const button = useRef<HTMLButtonElement>(null);
  const menu = useRef<HTMLDivElement>(null);
  const { id, status } = run.value;
  if (offline.value) return null;
  const others = seen.value.filter((one) => one.id !== id);
  return (
    <>
      <button ref={button} class="pill" popovertarget="compare" disabled={!isOver(status)}>
        {t("cmp.open")} ▾
      </button>
      <div
        ref={menu}
        id="compare"
        popover="auto"
        class="pop menu"
        onToggle={() => button.current && menu.current && place(button.current, menu.current)}
        onClick={() => menu.current?.hidePopover()}
      >
        <h3>{t("cmp.with_mode")}</h3>
        {(["training", "inference"] as const).map((mode) => (
          <button key={mode} onClick={() => void inOtherMode(mode)}>
            {t(`mode.${mode}`)} <span>{t("cmp.same_snippet")}</span>
          </button>
        ))}
        <h3>{t("cmp.with_run")}</h3>
        {others.map((one) => (
          <a key={one.id} href={`/compare/${one.id}/${id}`}>
            {one.label || one.id} <span>{one.id.slice(0, 18)}</span>
          </a>
        ))}
        {others.length === 0 && <p class="dim">{t("cmp.none_seen")}</p>}
      </div>
    </>
  );
}
