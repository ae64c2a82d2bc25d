import type { MemoryPayload } from "../generated/contract";
import { findArtifact, stageOf } from "./events";
import { artifacts, compile, ready, run } from "./store";

/**
 * The stage's figures. It tells them as each phase ends, so there are several artifacts: a later one adds to what an
 * earlier one said, and its unknowns never erase it.
 */
export function memoryFigures(): MemoryPayload | null {
  return memoryPhases().reduce<MemoryPayload | null>((before, after) => (before ? mergeMemory(before, after) : after), null);
}

/** What each phase told, as far as it is here. */
export function memoryPhases(): MemoryPayload[] {
  const stage = stageOf(run.value, compile.value, "memory");
  if (!findArtifact(stage, "memory")) return [];
  return stage.artifacts
    .filter((made) => made.kind === "memory")
    .map((made) => ready(artifacts.value.get<"memory">({ ...made.ref, kind: "memory" }).value))
    .filter((told) => told !== null);
}

export function mergeMemory(before: MemoryPayload, after: MemoryPayload): MemoryPayload {
  const known = Object.entries(after.saved).filter(([, bytes]) => bytes !== null);
  const said = new Set(after.notes.map((note) => JSON.stringify(note)));
  return {
    ...after,
    peaks: { ...before.peaks, ...after.peaks },
    saved: { ...before.saved, ...Object.fromEntries(known) },
    beyond_plan: after.beyond_plan ?? before.beyond_plan,
    notes: [...before.notes.filter((note) => !said.has(JSON.stringify(note))), ...after.notes],
  };
}
