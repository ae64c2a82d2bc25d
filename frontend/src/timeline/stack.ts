import type { MemoryTimelinePayload } from "../generated/contract";

/** A stretch of a block at one height: points `from` up to, not including, `to`, above `base` bytes. */
export interface Slab {
  readonly block: number;
  readonly from: number;
  readonly to: number;
  readonly base: number;
}

/**
 * Stacks blocks so that what lives long lies low: the saved tensors become the ground on which temporaries come and go.
 * Linear in points times the blocks that lie above a change.
 */
export function stackBlocks(timeline: MemoryTimelinePayload): Slab[] {
  const { start, end, bytes } = timeline.blocks;
  const points = timeline.points.live.length;
  const until = (block: number): number => (end[block]! < 0 ? points : end[block]!);
  const starts: number[][] = Array.from({ length: points + 1 }, () => []);
  const ends: number[][] = Array.from({ length: points + 1 }, () => []);
  start.forEach((at, block) => {
    if (until(block) <= at) return;
    starts[Math.min(at, points)]!.push(block);
    ends[Math.min(until(block), points)]!.push(block);
  });
  const lowFirst = (a: number, b: number): number => until(b) - start[b]! - (until(a) - start[a]!) || a - b;
  const alive: number[] = [];
  const base = new Map<number, { from: number; at: number }>();
  const slabs: Slab[] = [];
  const settle = (point: number, dirty: number): void => {
    let at = 0;
    alive.forEach((block, i) => {
      const held = base.get(block);
      if (i >= dirty && held?.at !== at) {
        if (held && held.from < point) slabs.push({ block, from: held.from, to: point, base: held.at });
        base.set(block, { from: point, at });
      }
      at += bytes[block]!;
    });
  };
  for (let point = 0; point <= points; point++) {
    let dirty = Number.MAX_SAFE_INTEGER;
    for (const block of ends[point]!) {
      const i = alive.indexOf(block);
      if (i < 0) continue;
      alive.splice(i, 1);
      dirty = Math.min(dirty, i);
      const held = base.get(block)!;
      if (held.from < point) slabs.push({ block, from: held.from, to: point, base: held.at });
      base.delete(block);
    }
    for (const block of starts[point]!) {
      const i = alive.findIndex((other) => lowFirst(block, other) < 0);
      const at = i < 0 ? alive.length : i;
      alive.splice(at, 0, block);
      dirty = Math.min(dirty, at);
    }
    if (dirty !== Number.MAX_SAFE_INTEGER) settle(point, dirty);
  }
  return slabs;
}

/** Blocks alive at a point, largest first. */
export function aliveAt(timeline: MemoryTimelinePayload, point: number): number[] {
  const { start, end, bytes } = timeline.blocks;
  const alive: number[] = [];
  start.forEach((from, block) => {
    if (from <= point && (end[block]! < 0 || end[block]! > point)) alive.push(block);
  });
  return alive.toSorted((a, b) => bytes[b]! - bytes[a]! || start[a]! - start[b]!);
}
