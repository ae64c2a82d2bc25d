import type { Event } from "../state/events";

/** A whole run inside a page, for the report that opens without a server. */
export interface Recording {
  readonly format: "recording/1";
  readonly run: { readonly id: string };
  readonly events: readonly Event[];
  readonly artifacts: Readonly<Record<string, unknown>>;
}

export function embeddedRecording(page: Document): Recording | null {
  const text = page.getElementById("aotscope-recording")?.textContent;
  if (!text) return null;
  const recording = JSON.parse(text) as Recording;
  return recording.format === "recording/1" ? recording : null;
}
