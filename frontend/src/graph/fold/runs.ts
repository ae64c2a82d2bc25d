import type { GraphModel } from "../model/graph";

const MIN_RUN = 6;

/**
 * Puts a level `[1–10] ×10` into lists of modules whose members are structurally equal in both halves. Returns the paths
 * with that level in them.
 */
export function foldRuns(graph: GraphModel, paths: readonly string[]): string[] {
  const signature = new Map<string, number>();
  const lists = new Map<string, Set<number>>();
  graph.nodes.forEach((node, i) => {
    const parts = paths[i]!.split(".");
    for (let depth = 0; depth < parts.length; depth++) {
      if (!/^\d+$/.test(parts[depth]!)) continue;
      const list = parts.slice(0, depth).join(".");
      const member = join(list, parts[depth]!);
      const text = `${node.backward ? "b" : "f"}${node.target}${parts.slice(depth + 1).join(".")}`;
      // A placeholder's name is its own; its operator is not.
      const own = node.op === "placeholder" ? `p${parts.slice(depth + 1).join(".")}` : text;
      signature.set(member, (signature.get(member) ?? 0) + hash(own));
      const members = lists.get(list) ?? new Set<number>();
      members.add(Number(parts[depth]));
      lists.set(list, members);
    }
  });
  const renamed = new Map<string, string>();
  for (const [list, members] of lists) {
    const sorted = [...members].toSorted((a, b) => a - b);
    for (let from = 0; from < sorted.length; ) {
      let to = from;
      const same = (at: number): boolean =>
        signature.get(join(list, String(sorted[at]))) === signature.get(join(list, String(sorted[from])));
      while (to + 1 < sorted.length && same(to + 1)) to++;
      if (to - from + 1 >= MIN_RUN) {
        const fold = `[${sorted[from]}–${sorted[to]}] ×${to - from + 1}`;
        for (const member of sorted.slice(from, to + 1)) {
          renamed.set(join(list, String(member)), join(list, `${fold}.${member}`));
        }
      }
      from = to + 1;
    }
  }
  return renamed.size ? paths.map((path) => rename(path, renamed)) : [...paths];
}

function rename(path: string, renamed: ReadonlyMap<string, string>): string {
  const parts = path.split(".");
  for (let depth = 1; depth <= parts.length; depth++) {
    const to = renamed.get(parts.slice(0, depth).join("."));
    if (to) return [to, ...parts.slice(depth)].join(".");
  }
  return path;
}

const join = (list: string, member: string): string => (list === "" ? member : `${list}.${member}`);

function hash(text: string): number {
  let value = 7;
  for (let i = 0; i < text.length; i++) value = (value * 31 + text.charCodeAt(i)) | 0;
  return value;
}
