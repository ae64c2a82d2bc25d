import { effect, signal } from "@preact/signals";
import { language, type Language } from "../messages";

export type Theme = "system" | "light" | "dark";

function stored(key: string): string | null {
  try {
    return localStorage.getItem(`aotscope.${key}`);
  } catch {
    return null; // Storage may be refused to a file or a frame: then nothing is kept.
  }
}

/** What is embedded looks as its frame asks, and leaves the reader's own choices alone. */
const embedded = location.pathname.startsWith("/embed/");

function store(key: string, value: string): void {
  if (embedded) return;
  try {
    localStorage.setItem(`aotscope.${key}`, value);
  } catch {
    // As above.
  }
}

const systemDark = matchMedia("(prefers-color-scheme: dark)");
const asked = new URLSearchParams(location.search);
const oneOf = <T extends string>(value: string | null, known: readonly T[]): T | null =>
  known.find((name) => name === value) ?? null;

export const theme = signal<Theme>(
  oneOf(asked.get("theme") ?? stored("theme"), ["system", "light", "dark"] as const) ?? "system",
);
/** Embedded with nothing but the stage and the memory. */
export const bare = embedded && asked.get("only") === "stage";
export const keysOn = signal(stored("keys") !== "off");
const dark = signal(systemDark.matches);
systemDark.addEventListener("change", (event) => (dark.value = event.matches));

language.value =
  oneOf<Language>(asked.get("lang") ?? stored("language"), ["en", "zh"]) ??
  (navigator.language.startsWith("zh") ? "zh" : "en");

/** What is in force; canvases repaint when it changes. */
export const painted = signal<"light" | "dark">("light");

effect(() => {
  const now = theme.value === "system" ? (dark.value ? "dark" : "light") : theme.value;
  document.documentElement.dataset["theme"] = now;
  painted.value = now;
  store("theme", theme.value);
});
effect(() => store("keys", keysOn.value ? "on" : "off"));
effect(() => {
  document.documentElement.lang = language.value;
  store("language", language.value);
});

export function nextTheme(): void {
  theme.value = theme.value === "system" ? "light" : theme.value === "light" ? "dark" : "system";
}
