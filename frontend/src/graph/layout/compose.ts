import type { Group, Tree } from "../fold/tree";
import type { GraphModel } from "../model/graph";
import { closedLabel, GUTTER, layoutTree, NODE_H, nodeLabel, type Block, type Placed } from "./mirror";
import { routeLines, spreadPorts } from "./lines";
import type { Box, Scene, SceneEdge, Wire } from "./scene";

const LONG = 5.5 * (NODE_H + 18);

/** The picture of a graph with these groups open: boxes in place, edges between what is visible, wires bundled. */
export function compose(graph: GraphModel, tree: Tree, open: ReadonlySet<string>): Scene {
  const block = layoutTree(graph, tree, open);
  const boxes: Box[] = [];
  const emit = (placed: readonly Placed[], inside: Block, x0: number, y0: number, backward: boolean, group: Group): void => {
    for (const { item, x, y, w, h } of placed) {
      const at = { x: x0 + x, y: y0 + y, w, h };
      if (typeof item === "number") boxes.push({ ...nodeBox(graph, item, group), ...at });
      else {
        const inner = inside.inner.get(item);
        boxes.push({ ...groupBox(item, backward, inner !== undefined), ...at });
        if (inner) emit(backward ? inner.backward : inner.forward, inner, at.x, at.y, backward, item);
      }
    }
  };
  emit(block.forward, block, 0, 0, false, tree.root);
  const shift = block.widthForward + (graph.mirrored ? GUTTER : 0);
  emit(block.backward, block, shift, 0, true, tree.root);

  const shown = visible(graph, tree, open, boxes);
  return routeLines({
    boxes,
    edges: flow(graph, shown, boxes),
    wires: spreadPorts(crossing(graph, shown), boxes),
    turn: turning(graph, shown),
    shown,
    width: shift + block.widthBackward,
    height: block.height,
    open: [...open],
    mirrored: graph.mirrored,
  });
}

function nodeBox(graph: GraphModel, node: number, group: Group): Omit<Box, "x" | "y" | "w" | "h"> {
  const { id, roles, backward, op } = graph.nodes[node]!;
  return {
    key: id,
    label: nodeLabel(graph.nodes[node]!),
    kind: "node",
    node,
    group: group.key,
    backward,
    open: false,
    count: 1,
    depth: group.depth + 1,
    recomputed: roles.has("recomputed"),
    saved: roles.has("saved"),
    input: op === "placeholder" || op === "get_attr",
  };
}

function groupBox(group: Group, backward: boolean, open: boolean): Omit<Box, "x" | "y" | "w" | "h"> {
  return {
    key: groupKey(group.key, backward),
    label: open ? group.label : closedLabel(group, backward),
    kind: group.kind,
    node: -1,
    group: group.key,
    backward,
    open,
    count: backward ? group.sizeBackward : group.sizeForward,
    depth: group.depth,
    recomputed: group.kind === "again",
    saved: false,
    input: false,
  };
}

export const groupKey = (key: string, backward: boolean): string => `${backward ? "b" : "f"}:${key}`;

/** For each node, the box that stands for it: its own, or its outermost closed group. */
function visible(graph: GraphModel, tree: Tree, open: ReadonlySet<string>, boxes: readonly Box[]): Int32Array {
  const byKey = new Map(boxes.map((box, i) => [box.key, i]));
  const closed = new Map<Group, Group | null>();
  const closedOf = (group: Group): Group | null => {
    if (group === tree.root || !group.parent) return null;
    const held = closed.get(group);
    if (held !== undefined) return held;
    const found = closedOf(group.parent) ?? (open.has(group.key) ? null : group);
    closed.set(group, found);
    return found;
  };
  return Int32Array.from(graph.nodes, (node, i) => {
    const group = tree.of[i];
    if (!group) return -1;
    const outer = closedOf(group);
    return byKey.get(outer ? groupKey(outer.key, node.backward) : node.id) ?? -1;
  });
}

function flow(graph: GraphModel, shown: Int32Array, boxes: readonly Box[]): SceneEdge[] {
  const found = new Map<number, { from: number; to: number; count: number }>();
  graph.source.forEach((source, i) => {
    const target = graph.target[i]!;
    if (graph.nodes[source]!.backward !== graph.nodes[target]!.backward) return;
    const from = shown[source]!;
    const to = shown[target]!;
    if (from < 0 || to < 0 || from === to) return;
    const key = from * boxes.length + to;
    const held = found.get(key);
    if (held) held.count++;
    else found.set(key, { from, to, count: 1 });
  });
  return [...found.values()].map(({ from, to, count }) => {
    const a = boxes[from]!;
    const b = boxes[to]!;
    const gap = a.backward ? a.y - (b.y + b.h) : b.y - (a.y + a.h);
    return { from, to, count, backward: a.backward, again: a.recomputed, long: gap > LONG || gap < -NODE_H, path: null };
  });
}

function crossing(graph: GraphModel, shown: Int32Array): Omit<Wire, "start" | "end">[] {
  const found = new Map<string, { from: number; to: number; nodes: Set<number>; tensors: Set<string>; bytes: number; saved: boolean }>();
  graph.source.forEach((source, i) => {
    const target = graph.target[i]!;
    const node = graph.nodes[source]!;
    if (node.backward || !graph.nodes[target]!.backward) return;
    const from = shown[source]!;
    const to = shown[target]!;
    if (from < 0 || to < 0) return;
    const saved = node.roles.has("saved");
    const key = `${from}>${to}>${saved}`;
    const held = found.get(key) ?? { from, to, nodes: new Set<number>(), tensors: new Set<string>(), bytes: 0, saved };
    const { tensor, bytes } = graph.carries?.[i] ?? { tensor: node.name, bytes: node.bytes };
    held.nodes.add(source);
    if (!held.tensors.has(tensor)) held.bytes += Math.max(0, bytes);
    held.tensors.add(tensor);
    found.set(key, held);
  });
  return [...found.values()].map(({ from, to, nodes, bytes, saved }) => ({ from, to, nodes: [...nodes], bytes, saved, path: null }));
}

/** Where the forward ends and the backward begins: its outputs, and the tangents that come back for them. */
function turning(graph: GraphModel, shown: Int32Array): Scene["turn"] {
  const from = new Set<number>();
  const to = new Set<number>();
  graph.source.forEach((source, i) => {
    const target = graph.nodes[graph.target[i]!]!;
    const node = graph.nodes[source]!;
    const output = target.op === "output" && !node.backward && node.op !== "placeholder" && !node.roles.has("saved");
    if (output && shown[source]! >= 0) from.add(shown[source]!);
  });
  graph.nodes.forEach((node, i) => {
    if (node.backward && node.op === "placeholder" && shown[i]! >= 0) to.add(shown[i]!);
  });
  return graph.mirrored ? { from: [...from], to: [...to] } : { from: [], to: [] };
}
