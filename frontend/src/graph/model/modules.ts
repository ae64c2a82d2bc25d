import type { GraphModel } from "./graph";

/** A module's path as `named_modules()` has it: without the wrappers that capture puts around it. */
export function tidyPath(path: string): string {
  return path
    .replaceAll("_orig_mod.", "")
    .replace(/^_orig_mod$/, "")
    .replace(/^\.+|\.+$/g, "");
}

/**
 * The module that each node is drawn in: "" is the root's own forward. A backward node lies where its forward twin lies, and a
 * module that is called several times is drawn once for each call.
 */
export function assignModules(graph: GraphModel): string[] {
  const own = graph.nodes.map(({ module, call }) => {
    const tidy = tidyPath(module);
    return tidy !== "" && call > 0 ? `${tidy}@${call + 1}` : tidy;
  });
  return graph.nodes.map((node, i) => (node.backward && node.twin >= 0 ? own[node.twin]! : own[i]!));
}
