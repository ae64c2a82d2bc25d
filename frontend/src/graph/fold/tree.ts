import type { GraphModel, GraphNode } from "../model/graph";
import { assignModules } from "../model/modules";
import { foldRuns } from "./runs";

export type GroupKind = "root" | "module" | "fold" | "op" | "again";

/** A box that can be opened: a module, a run of equal layers, or the pieces of one operator. Both halves in one. */
export interface Group {
  readonly key: string;
  readonly label: string;
  readonly kind: GroupKind;
  readonly parent: Group | null;
  readonly depth: number;
  readonly children: Group[];
  /** Nodes that lie in this group and in none of its children, in the graph's order. */
  readonly forward: number[];
  readonly backward: number[];
  sizeForward: number;
  sizeBackward: number;
  /** Place in the graph's order: the first node that computes something. */
  first: number;
}

export interface Tree {
  readonly root: Group;
  readonly groups: ReadonlyMap<string, Group>;
  /** The innermost group of each node; null for what is not drawn (the output node, hidden parameters). */
  readonly of: readonly (Group | null)[];
  /** Each node's place in the order: its own number, for a parameter just before its first use. */
  readonly order: Float64Array;
}

const OP_MIN = 3;
/** A module with more calls of its own than this is read by the lines of its source, not by single operators. */
const BY_LINE = 24;

/** Weights and buffers crowd the picture; unless asked for, only those that the backward reads are drawn. */
function hiddenParameters(graph: GraphModel): Set<number> {
  const crosses = new Set<number>();
  graph.source.forEach((from, i) => {
    if (graph.nodes[graph.target[i]!]!.backward && !graph.nodes[from]!.backward) crosses.add(from);
  });
  const hidden = new Set<number>();
  graph.nodes.forEach((node, i) => {
    if (isParameter(node) && !crosses.has(i)) hidden.add(i);
  });
  return hidden;
}

function isParameter(node: GraphNode): boolean {
  if (node.op !== "placeholder" && node.op !== "get_attr") return false;
  if (node.roles.has("parameter") || node.roles.has("buffer")) return true;
  return /_(parameters|buffers)_/.test(node.name);
}

export function buildTree(graph: GraphModel, parameters = false): Tree {
  const paths = foldRuns(graph, assignModules(graph));
  const groups = new Map<string, Group>();
  const make = (key: string, label: string, kind: GroupKind, parent: Group | null): Group => {
    const group: Group = {
      key,
      label,
      kind,
      parent,
      depth: parent ? parent.depth + 1 : 0,
      children: [],
      forward: [],
      backward: [],
      sizeForward: 0,
      sizeBackward: 0,
      first: Number.MAX_SAFE_INTEGER,
    };
    groups.set(key, group);
    parent?.children.push(group);
    return group;
  };
  const root = make("", "", "root", null);
  const at = (path: string): Group => {
    let group = root;
    let key = "";
    for (const part of path === "" ? [] : path.split(".")) {
      key = key === "" ? part : `${key}.${part}`;
      group = groups.get(key) ?? make(key, labelOf(part), part.startsWith("[") ? "fold" : "module", group);
    }
    return group;
  };
  const hidden = parameters ? new Set<number>() : hiddenParameters(graph);
  const of: (Group | null)[] = graph.nodes.map((node, i) =>
    node.op === "output" || hidden.has(i) ? null : at(paths[i]!),
  );
  groupOperators(graph, of, make);
  const order = Float64Array.from(graph.nodes, (_, i) => i);
  const first = new Float64Array(graph.nodes.length).fill(Number.MAX_SAFE_INTEGER);
  graph.source.forEach((from, i) => (first[from] = Math.min(first[from]!, graph.target[i]!)));
  graph.nodes.forEach((node, i) => {
    if (isParameter(node)) order[i] = Math.max(i, first[i]! - 1) + 0.5;
  });
  graph.nodes.forEach((node, i) => {
    const group = of[i];
    if (!group) return;
    (node.backward ? group.backward : group.forward).push(i);
    for (let up: Group | null = group; up; up = up.parent) {
      if (node.backward) up.sizeBackward++;
      else up.sizeForward++;
      if (order[i]! < up.first && (!node.backward || up.sizeForward === 0)) up.first = order[i]!;
    }
  });
  return { root: unwrap(root), groups, of, order };
}

/** A root that holds nothing but one module says nothing: start inside it. */
function unwrap(root: Group): Group {
  let top = root;
  while (top.children.length === 1 && !top.forward.length && !top.backward.length) top = top.children[0]!;
  return top;
}

function labelOf(part: string): string {
  const call = /^(.*)@(\d+)$/.exec(part);
  return call ? `${call[1]} · call ${call[2]}` : part;
}

/** What one operator of the user decomposed into (gelu, softmax, layer norm) is one box; so is what runs again. */
function groupOperators(
  graph: GraphModel,
  of: (Group | null)[],
  make: (key: string, label: string, kind: GroupKind, parent: Group) => Group,
): void {
  const members = new Map<string, { parent: Group; again: boolean; line: number; nodes: number[]; forward: number }>();
  const total = new Map<Group, number>();
  const calls = new Map<Group, number>();
  graph.nodes.forEach((node, i) => {
    const parent = of[i];
    if (parent && !node.backward && node.op !== "placeholder") calls.set(parent, (calls.get(parent) ?? 0) + 1);
  });
  graph.nodes.forEach((node, i) => {
    const parent = of[i];
    if (!parent) return;
    total.set(parent, (total.get(parent) ?? 0) + 1);
    if (node.op === "placeholder" || node.op === "get_attr") return;
    const again = node.backward && node.roles.has("recomputed");
    const seq = again ? (graph.nodes[node.twin]?.seq ?? -1) : node.seq;
    if (node.backward && !again && node.twin < 0) return;
    const line = (calls.get(parent) ?? 0) > BY_LINE ? (graph.nodes[node.twin]?.line ?? 0) || node.line : 0;
    if (seq < 0 && line === 0) return;
    const key = `${parent.key}/${again ? "again" : "op"}:${line > 0 ? `line ${line}` : seq}`;
    const held = members.get(key) ?? { parent, again, line, nodes: [], forward: 0 };
    held.nodes.push(i);
    if (!node.backward) held.forward++;
    members.set(key, held);
  });
  for (const [key, { parent, again, line, nodes, forward }] of members) {
    const few = again || line > 0 ? nodes.length < 2 : forward < OP_MIN;
    const alone = !parent.children.some((child) => child.kind !== "again");
    const most = !again && line === 0 && alone && nodes.length > 0.7 * (total.get(parent) ?? 0);
    if (few || most) continue;
    const label = line > 0 ? lineName(graph, nodes, line) : operatorName(graph, nodes);
    const group = make(key, again ? `${label} again` : label, again ? "again" : "op", parent);
    for (const node of nodes) of[node] = group;
  }
}

/** The operator's own name: from autograd's name of its gradient where known, else the name of its last node. */
function operatorName(graph: GraphModel, members: readonly number[]): string {
  for (const i of members) {
    const node = graph.nodes[i]!;
    const gradient = /^(\w+?)Backward\d*$/.exec(node.gradFn || (graph.nodes[node.twin]?.gradFn ?? ""));
    if (gradient) return snake(gradient[1]!);
  }
  const last = members.findLast((i) => !graph.nodes[i]!.backward) ?? members[0]!;
  return graph.nodes[last]!.name;
}

/** A source line by its beginning. */
function lineName(graph: GraphModel, members: readonly number[], line: number): string {
  for (const i of members) {
    const frame = graph.nodes[i]!.stack.findLast((one) => one.user && one.line === line);
    if (frame?.code) return `${line} ${frame.code.length > 15 ? `${frame.code.slice(0, 14).trimEnd()}…` : frame.code}`;
  }
  return `${line}`;
}

function snake(name: string): string {
  return name
    .replace(/^(Native|Safe)(?=[A-Z])/, "")
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase();
}

export const sizeOf = (group: Group): number => group.sizeForward + group.sizeBackward;

/**
 * What is open at first sight: everything while the picture stays within `budget` boxes; else breadth first, small modules
 * first, both halves of a module together. Folded runs stay closed.
 */
export function openFirst(tree: Tree, nodes: number, budget: number): Set<string> {
  if (nodes <= budget) return new Set(tree.groups.keys());
  const open = new Set([tree.root.key]);
  const inside = (group: Group): number =>
    group.forward.length +
    group.backward.length +
    group.children.reduce((sum, child) => sum + Number(child.sizeForward > 0) + Number(child.sizeBackward > 0), 0);
  let shown = inside(tree.root);
  let level = [...tree.root.children];
  while (level.length) {
    const next: Group[] = [];
    for (const group of level.toSorted((a, b) => sizeOf(a) - sizeOf(b))) {
      // What holds no module says more closed, by its name, than open.
      if (group.kind === "fold" || !group.children.some((child) => child.kind === "module" || child.kind === "fold")) continue;
      const more = inside(group) - Number(group.sizeForward > 0) - Number(group.sizeBackward > 0);
      if (shown + more > budget) continue;
      shown += more;
      open.add(group.key);
      next.push(...group.children);
    }
    level = next;
  }
  return open;
}
