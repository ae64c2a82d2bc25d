import type { ComponentChildren } from "preact";
import { useId, useRef } from "preact/hooks";
import { t } from "../messages";

/** A second figure for the same thing, obtained in another way. */
export interface Check {
  readonly label: string;
  readonly value: string;
  readonly holds: boolean;
}

/** How a figure came about: what it was computed from, in a sentence and in figures, and what it should agree with. */
export interface Derivation {
  readonly from: string;
  readonly terms?: readonly (readonly [label: string, value: string])[];
  readonly checks?: readonly Check[];
}

interface Props {
  readonly how: Derivation;
  readonly class: string;
  readonly title?: string;
  readonly children: ComponentChildren;
}

/** A figure that opens its derivation: a button, and what it opens beside it. */
export function Derived({ how, class: look, title, children }: Props) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const panel = useRef<HTMLDivElement>(null);
  const doubt = how.checks?.some((check) => !check.holds);
  return (
    <>
      <button ref={button} class={`${look} derived`} popovertarget={id} title={title ?? t("derive.open")}>
        {children}
        {doubt && <span class="bad"> ≠</span>}
      </button>
      <div
        ref={panel}
        id={id}
        popover="auto"
        class="pop"
        role="note"
        onToggle={() => button.current && panel.current && place(button.current, panel.current)}
      >
        <p>{how.from}</p>
        {how.terms && (
          <dl>
            {how.terms.map(([label, value]) => (
              <>
                <dt>{label}</dt>
                <dd>{value}</dd>
              </>
            ))}
          </dl>
        )}
        {how.checks && how.checks.length > 0 && (
          <dl class="checks">
            {how.checks.map((check) => (
              <>
                <dt>{check.label}</dt>
                <dd>
                  {check.value} <b class={check.holds ? "" : "bad"}>{check.holds ? "✓" : "≠"}</b>
                </dd>
              </>
            ))}
          </dl>
        )}
      </div>
    </>
  );
}

/** Below its button, or above where there is no room, and inside the window. */
export function place(button: HTMLElement, panel: HTMLElement): void {
  const at = button.getBoundingClientRect();
  const { width, height } = panel.getBoundingClientRect();
  const below = at.bottom + 6;
  panel.style.left = `${Math.max(8, Math.min(at.left, innerWidth - width - 8))}px`;
  panel.style.top = `${below + height < innerHeight - 8 ? below : Math.max(8, at.top - height - 6)}px`;
}
