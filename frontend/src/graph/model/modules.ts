import type { GraphModel, GraphNode } from "./graph";

/** A module's path as `named_modules()` has it: without the wrappers that capture puts around it. */
export function tidyPath(path: string): string {
  return path
    .replace(/^L(\.|\['?)(self|fn|s)('?\])?\.?/, "")
    .replaceAll("_orig_mod.", "")
    .replace(/^_orig_mod$/, "")
    .replace(/^self\./, "")
    .replace(/^\.+|\.+$/g, "");
}

/**
 * The module that each node is drawn in. A backward node lies where its forward twin lies; a placeholder where it is first
 * used; anything else without a module goes to the nearest common ancestor of its neighbours in its own half.
 */
export function assignModules(graph: GraphModel): string[] {
  const { nodes, source, target } = graph;
  const path: (string | null)[] = nodes.map((node) => {
    const tidy = tidyPath(node.module);
    return tidy === "" ? null : node.call > 0 ? `${tidy}@${node.call + 1}` : tidy;
  });
  const rootOnly = (node: GraphNode): boolean => node.module !== "" && tidyPath(node.module) === "";
  nodes.forEach((node, i) => {
    if (rootOnly(node)) path[i] = "";
    if (node.backward && node.twin >= 0 && (path[i] === null || path[node.twin] !== null)) {
      const twin = path[node.twin];
      if (twin !== null && twin !== undefined) path[i] = twin;
    }
  });
  const users: number[][] = nodes.map(() => []);
  const inputs: number[][] = nodes.map(() => []);
  source.forEach((from, i) => {
    const to = target[i]!;
    if (nodes[from]!.backward !== nodes[to]!.backward || nodes[to]!.op === "output") return;
    users[from]!.push(to);
    inputs[to]!.push(from);
  });
  for (let i = nodes.length - 1; i >= 0; i--) {
    const node = nodes[i]!;
    if (node.op !== "placeholder" && node.op !== "get_attr") continue;
    // A parameter belongs to its module; what several modules read belongs to their common ancestor.
    const at = users[i]!.map((user) => path[user]).filter((known): known is string => known !== null);
    if (path[i] === null || at.length) path[i] = at.length ? commonAncestor(at) : "";
  }
  for (let i = 0; i < nodes.length; i++) {
    if (path[i] !== null) continue;
    const near = [...inputs[i]!, ...users[i]!].map((at) => path[at]).filter((known): known is string => known !== null);
    path[i] = near.length ? commonAncestor(near) : "";
  }
  return path.map((known) => known ?? "");
}

export function commonAncestor(paths: readonly string[]): string {
  let common = paths[0]!.split(".");
  for (const path of paths.slice(1)) {
    const parts = path.split(".");
    let i = 0;
    while (i < common.length && i < parts.length && common[i] === parts[i]) i++;
    common = common.slice(0, i);
  }
  return common.join(".");
}
