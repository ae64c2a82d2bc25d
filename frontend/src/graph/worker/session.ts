import { buildTree, openFirst, type Tree } from "../fold/tree";
import { compose } from "../layout/compose";
import type { Scene } from "../layout/scene";
import type { GraphModel } from "../model/graph";

export const BUDGET = 60;

/** What the layout keeps between two pictures of one graph. Lives in the worker, or in the page where there is none. */
export class LayoutSession {
  private readonly tree: Tree;

  constructor(
    private readonly graph: GraphModel,
    parameters: boolean,
  ) {
    this.tree = buildTree(graph, parameters);
  }

  /** `open`: the groups to show open; null for the first view. */
  layout(open: readonly string[] | null): Scene {
    const known = open?.filter((key) => this.tree.groups.has(key)) ?? null;
    const shown = known ? new Set([this.tree.root.key, ...known]) : openFirst(this.tree, this.graph.nodes.length, BUDGET);
    return compose(this.graph, this.tree, shown);
  }

  /** The groups around a node, outermost first: what must be open for it to be seen. */
  around(node: number): string[] {
    const keys: string[] = [];
    for (let group = this.tree.of[node] ?? null; group; group = group.parent) keys.unshift(group.key);
    return keys;
  }
}
