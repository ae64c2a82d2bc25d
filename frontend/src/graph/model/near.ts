import type { Scene } from "../layout/scene";

/** Boxes at most so many steps along data flow, either way, from any of `start`; null when there is nothing to start from. */
export function near(scene: Scene, start: ReadonlySet<string>, hops: number): ReadonlySet<string> | null {
  const reached = new Set<number>();
  scene.boxes.forEach((box, i) => {
    if (start.has(box.key)) reached.add(i);
  });
  if (!reached.size) return null;
  const next = new Map<number, number[]>();
  const join = (a: number, b: number): void => {
    const held = next.get(a);
    if (held) held.push(b);
    else next.set(a, [b]);
  };
  for (const { from, to } of [...scene.edges, ...scene.wires]) {
    join(from, to);
    join(to, from);
  }
  let edge = [...reached];
  for (let hop = 0; hop < hops; hop++) {
    edge = edge.flatMap((at) => next.get(at) ?? []).filter((at) => !reached.has(at));
    for (const at of edge) reached.add(at);
  }
  return new Set([...reached].map((at) => scene.boxes[at]!.key));
}
