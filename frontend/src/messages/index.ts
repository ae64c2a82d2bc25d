import { signal } from "@preact/signals";
import type { Message } from "../generated/contract";
import en from "./en.json";
import zh from "./zh.json";

export type Language = "en" | "zh";
export type Key = keyof typeof en;
type Params = Readonly<Record<string, string | number | boolean | null>>;

// What the compiler's stages say lies with the compiler; both catalogues are built into the page.
const files: Record<string, Record<string, string>> = import.meta.glob("../../../compiler/messages/*/*.json", {
  eager: true,
  import: "default",
});

const catalogue: Record<Language, Record<string, string>> = { en: { ...en }, zh: { ...en, ...zh } };
for (const [path, entries] of Object.entries(files)) {
  Object.assign(catalogue[path.includes("/zh/") ? "zh" : "en"], entries);
}

export const language = signal<Language>("en");

function fill(template: string, params: Params): string {
  return template.replace(/\{(\w+)\}/g, (whole, name: string) => (name in params ? String(params[name]) : whole));
}

/** A label of the page. */
export function t(key: Key, params: Params = {}): string {
  return fill(catalogue[language.value][key] ?? key, params);
}

/** A sentence that the compiler or the server says. */
export function say(message: Message): string {
  const entries = catalogue[language.value];
  return fill(entries[message.key] ?? catalogue.en[message.key] ?? message.key, message.params);
}
