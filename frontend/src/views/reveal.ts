import type { RefObject } from "preact";
import { useEffect } from "preact/hooks";

/**
 * Brings what is selected in a scrolling pane into its view, unless a part of it is in view already. Only this pane
 * scrolls, never the page around it.
 */
export function useReveal(pane: RefObject<HTMLElement | null>, ...on: readonly unknown[]): void {
  useEffect(() => {
    const host = pane.current;
    if (!host) return;
    const marked = [...host.querySelectorAll<HTMLElement>(".sel, [role=option][aria-selected=true]")];
    const { top, height } = host.getBoundingClientRect();
    const places = marked.map((one) => one.getBoundingClientRect()).map((box) => ({ top: box.top - top, bottom: box.bottom - top }));
    if (!places.length || places.some((place) => place.top >= 0 && place.bottom <= height)) return;
    host.scrollTop += places[0]!.top - height / 3;
  }, on);
}
