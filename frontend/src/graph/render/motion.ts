import type { Box, Scene } from "../layout/scene";
import type { Rect } from "./paint";

/** A box of the picture before that is in the next one no more: it moves into what it became, or goes where it stands. */
export interface Ghost {
  readonly box: Box;
  readonly from: Rect;
  readonly to: Rect | null;
}

export interface Motion {
  /** Where each box of the new picture comes from; null for what is new. */
  readonly from: readonly (Rect | null)[];
  readonly ghosts: readonly Ghost[];
}

/** Nodes of the picture before that a node was, by number. */
export type Kin = (node: number) => readonly number[];

const MOST_GHOSTS = 400;

/**
 * How the boxes of one picture become those of the next: a group by its name, anything else by its nodes. Of several
 * origins a box comes from the one that most of its nodes lay in.
 */
export function motion(before: Scene, rects: readonly Rect[], after: Scene, kin: Kin): Motion {
  const origins = after.boxes.map(() => new Map<number, number>());
  const heirs = before.boxes.map(() => new Map<number, number>());
  after.shown.forEach((box, node) => {
    if (box < 0) return;
    for (const old of kin(node)) {
      const was = before.shown[old] ?? -1;
      if (was < 0) continue;
      origins[box]!.set(was, (origins[box]!.get(was) ?? 0) + 1);
      heirs[was]!.set(box, (heirs[was]!.get(box) ?? 0) + 1);
    }
  });
  const byKey = new Map(before.boxes.map((box, i) => [box.key, i]));
  const stays = new Set<number>();
  const from = after.boxes.map((box, i) => {
    const was = byKey.get(box.key) ?? most(origins[i]!);
    if (was === null) return null;
    stays.add(was);
    return rects[was]!;
  });
  const ghosts: Ghost[] = [];
  before.boxes.forEach((box, i) => {
    if (box.open || stays.has(i) || ghosts.length >= MOST_GHOSTS) return;
    const heir = most(heirs[i]!);
    ghosts.push({ box, from: rects[i]!, to: heir === null ? null : after.boxes[heir]! });
  });
  return { from, ghosts };
}

function most(counts: ReadonlyMap<number, number>): number | null {
  let best: number | null = null;
  let high = 0;
  for (const [box, count] of counts) {
    if (count > high) {
      best = box;
      high = count;
    }
  }
  return best;
}
