import type { GraphModel } from "../model/graph";

/** What a step made of a graph, by node numbers: of the graph after it, but for `gone`, of the one before. */
export interface Changes {
  readonly added: ReadonlySet<number>;
  readonly changed: ReadonlySet<number>;
  readonly gone: readonly number[];
  readonly same: number;
}

/**
 * A node is the same when it was there under its name, with its operator and in its half; changed when it came from
 * others (`kin`); else new. Gone is what nothing came from. Outputs are no operators and do not count.
 */
export function changes(before: GraphModel, after: GraphModel, kin: (node: number) => readonly number[]): Changes {
  const added = new Set<number>();
  const changed = new Set<number>();
  const left = new Set(before.nodes.keys());
  let same = 0;
  after.nodes.forEach((node, i) => {
    const origins = kin(i);
    for (const origin of origins) left.delete(origin);
    if (node.op === "output") return;
    const alike = origins.some((origin) => {
      const was = before.nodes[origin]!;
      return was.name === node.name && was.target === node.target;
    });
    if (alike) same++;
    else if (origins.length) changed.add(i);
    else added.add(i);
  });
  return { added, changed, gone: [...left].filter((node) => before.nodes[node]!.op !== "output"), same };
}
