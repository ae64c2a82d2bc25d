import type { StageName } from "../generated/contract";
import { STAGES } from "./events";

/** What the page shows, as far as the address keeps it. Null means "the page's own choice". */
export interface Place {
  readonly stage: StageName | null;
  readonly compile: string | null;
  readonly graph: string | null;
  readonly tab: string | null;
  /** Entity of the kernel whose levels are open. */
  readonly kernel: string | null;
  readonly pass: number | null;
  readonly node: string | null;
  readonly line: number | null;
  readonly point: number | null;
  /** What the graph's boxes are shaded by. */
  readonly overlay: string | null;
  /** What is stepped through, and whether in large type for a room. */
  readonly step: string | null;
  readonly present: string | null;
  /** The id of another run to see beside this one. */
  readonly pair: string | null;
}

export const NOWHERE: Place = {
  stage: null,
  compile: null,
  graph: null,
  tab: null,
  kernel: null,
  pass: null,
  node: null,
  line: null,
  point: null,
  overlay: null,
  step: null,
  present: null,
  pair: null,
};

export function parsePlace(hash: string): Place {
  const query = new URLSearchParams(hash.replace(/^#/, ""));
  const stage = query.get("stage");
  return {
    stage: STAGES.find((known) => known === stage) ?? null,
    compile: query.get("compile"),
    graph: query.get("graph"),
    tab: query.get("tab"),
    kernel: query.get("kernel"),
    pass: whole(query.get("pass")),
    node: query.get("node"),
    line: whole(query.get("line")),
    point: whole(query.get("point")),
    overlay: query.get("overlay"),
    step: query.get("step"),
    present: query.get("present"),
    pair: query.get("pair"),
  };
}

export function formatPlace(place: Place): string {
  const parts: string[] = [];
  for (const [key, value] of Object.entries(place)) {
    // Slashes, # and @ of an entity's id stay readable; what would end the value is escaped.
    if (value !== null) parts.push(`${key}=${encodeURIComponent(String(value)).replaceAll("%2F", "/").replaceAll("%40", "@")}`);
  }
  return parts.length ? `#${parts.join("&")}` : "";
}

function whole(text: string | null): number | null {
  return text !== null && /^\d+$/.test(text) ? Number(text) : null;
}

export interface Address {
  readonly run: string | null;
  readonly embed: boolean;
}

export function parsePath(path: string): Address {
  const hit = /^\/(r|embed)\/([\w-]+)\/?$/.exec(path);
  return hit ? { run: hit[2]!, embed: hit[1] === "embed" } : { run: null, embed: false };
}
