import { STAGES } from "../state/events";
import { place, select, show, stage } from "../state/store";
import { submit } from "./control";
import { keysOn } from "./settings";
import { sheet, toggleSheet } from "./sheets";

/** Keys of the whole page. Panes take theirs first; the editor and form fields keep all but Ctrl/⌘+Enter. */
export function bindKeys(): void {
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      if (!event.defaultPrevented) {
        event.preventDefault();
        void submit();
      }
      return;
    }
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !keysOn.value) return;
    const target = event.target instanceof Element ? event.target : null;
    if (target?.closest("input, select, textarea, [contenteditable=true], .cm-editor")) return;
    switch (event.key) {
      case "ArrowLeft":
        step(-1);
        break;
      case "ArrowRight":
        step(1);
        break;
      case "s":
        show({ step: place.value.step === null ? "stage" : null });
        break;
      case "p":
        document.querySelector<HTMLButtonElement>("[data-step=play]")?.click();
        break;
      case ",":
        document.querySelector<HTMLButtonElement>("[data-step=back]")?.click();
        break;
      case ".":
        document.querySelector<HTMLButtonElement>("[data-step=next]")?.click();
        break;
      case "?":
        toggleSheet("help");
        break;
      case "Escape":
        if (document.querySelector(":popover-open")) return; // The browser closes it.
        if (sheet.value) sheet.value = null;
        else select(null);
        break;
      default:
        if (!handOn(event)) return;
    }
    event.preventDefault();
  });
}

/** Keys pressed outside any pane go to the middle one: its list, or its graph. */
function handOn(event: KeyboardEvent): boolean {
  const pane = document.querySelector<HTMLElement>("main [role=listbox][tabindex='0'], main .graph canvas");
  const target = event.target instanceof Element ? event.target : null;
  if (!pane || pane.contains(target) || target?.closest("button, a, [role=slider], summary")) return false;
  if (!["ArrowUp", "ArrowDown", "/", " ", "+", "-", "m", "n"].includes(event.key)) return false;
  pane.focus();
  pane.dispatchEvent(new KeyboardEvent("keydown", { key: event.key, cancelable: true }));
  return true;
}

function step(by: number): void {
  const at = STAGES.indexOf(stage.value) + by;
  const next = STAGES[Math.max(0, Math.min(STAGES.length - 1, at))]!;
  show({ stage: next, graph: null, tab: null, pass: null });
}
