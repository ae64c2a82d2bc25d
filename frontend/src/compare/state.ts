import { computed, signal } from "@preact/signals";
import type { Part, RunComparison, StageComparison } from "../generated/contract";
import { compareRuns, Refused } from "../transport/api";

/** Two runs by their ids, where the address names them. */
export interface Pair {
  readonly a: string;
  readonly b: string;
}

export function comparedRuns(path: string): Pair | null {
  const hit = /^\/compare\/([\w-]+)\/([\w-]+)\/?$/.exec(path);
  return hit ? { a: hit[1]!, b: hit[2]! } : null;
}

/** What is on show: a stage of a pair of compiles (by its place; -1 for those of the run), and one of its parts. Null: the overview. */
export interface At {
  readonly stage: string | null;
  readonly compile: number;
  readonly part: number;
}

export function parseAt(hash: string): At {
  const query = new URLSearchParams(hash.replace(/^#/, ""));
  const whole = (name: string, other: number): number => {
    const text = query.get(name);
    return text !== null && /^\d+$/.test(text) ? Number(text) : other;
  };
  return { stage: query.get("stage"), compile: whole("compile", -1), part: whole("part", -1) };
}

export function formatAt(at: At): string {
  const query = new URLSearchParams();
  if (at.stage !== null) query.set("stage", at.stage);
  if (at.compile >= 0) query.set("compile", String(at.compile));
  if (at.part >= 0) query.set("part", String(at.part));
  const text = query.toString();
  return text ? `#${text}` : "";
}

export const at = signal<At>(parseAt(""));
export const found = signal<RunComparison | null>(null);
export const waiting = signal(false);
export const trouble = signal<Refused | null>(null);

/** The stage on show, and which of its parts: the chosen one, else the first that differs. */
export const shown = computed<{ stage: StageComparison; part: Part | null; place: number } | null>(() => {
  const { stage, compile, part } = at.value;
  const stages = compile < 0 ? found.value?.stages : found.value?.compiles[compile]?.stages;
  const held = stages?.find((one) => one.stage === stage);
  if (!held) return null;
  const first = Math.max(0, held.parts.findIndex((one) => one.state !== "equal"));
  const place = held.parts[part] ? part : first;
  return { stage: held, part: held.parts[place] ?? null, place };
});

export function go(next: Partial<At>): void {
  at.value = { ...at.value, ...next };
  history.replaceState(null, "", `${location.pathname}${location.search}${formatAt(at.value)}`);
}

/** Asks until both runs are over. */
export async function load({ a, b }: Pair): Promise<void> {
  at.value = parseAt(location.hash);
  addEventListener("hashchange", () => (at.value = parseAt(location.hash)));
  for (;;) {
    try {
      found.value = await compareRuns(a, b);
      waiting.value = false;
      return;
    } catch (fault) {
      if (!(fault instanceof Refused)) throw fault;
      waiting.value = fault.said?.key === "server.run_not_over";
      if (!waiting.value) {
        trouble.value = fault;
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }
}
