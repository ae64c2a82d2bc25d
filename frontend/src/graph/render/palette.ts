/** Colours of the page as the canvas needs them. Read again when the theme changes. */
export interface Palette {
  readonly bg: string;
  readonly panel: string;
  readonly line: string;
  readonly ink: string;
  readonly dim: string;
  readonly faint: string;
  readonly sel: string;
  readonly fw: string;
  readonly fwbg: string;
  readonly bw: string;
  readonly bwbg: string;
  readonly save: string;
  readonly savebg: string;
  readonly re: string;
  readonly rebg: string;
  readonly bad: string;
  readonly mono: string;
  readonly ui: string;
}

const NAMES = [
  ...["bg", "panel", "line", "ink", "dim", "faint", "sel", "fw", "fwbg", "bw", "bwbg"],
  ...["save", "savebg", "re", "rebg", "bad", "mono", "ui"],
] as (keyof Palette)[];

export function readPalette(element: Element): Palette {
  const style = getComputedStyle(element);
  return Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()])) as unknown as Palette;
}

/** How dark each shade of an overlay is, as shares of ink on paper: far enough apart to be told without colour. */
const DARKNESS = [0.07, 0.2, 0.34, 0.68, 0.86];

/** A shade's fill, and what is readable on it. */
export function shadeOf({ panel, ink }: Palette, shade: number): { fill: string; text: string } {
  const share = DARKNESS[shade]!;
  return { fill: `color-mix(in srgb, ${ink} ${100 * share}%, ${panel})`, text: share < 0.5 ? ink : panel };
}
