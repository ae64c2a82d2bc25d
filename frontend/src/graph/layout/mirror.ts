import type { Group, Tree } from "../fold/tree";
import type { GraphModel, GraphNode } from "../model/graph";
import { placeRows, rankItems } from "./rows";

export const NODE_H = 26;
export const GUTTER = 230;
const PAD = 14;
const HEAD = 22;
const GAP_Y = 18;
const MAX_ROW = 7;

/** A node's number, or a child group. */
export type Item = number | Group;

export interface Placed {
  readonly item: Item;
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

/** An open group laid out: both halves share the height, and the rows. Coordinates are inside the half's own frame. */
export interface Block {
  readonly forward: readonly Placed[];
  readonly backward: readonly Placed[];
  readonly widthForward: number;
  readonly widthBackward: number;
  readonly height: number;
  readonly inner: ReadonlyMap<Group, Block>;
}

export function nodeWidth(label: string): number {
  return Math.min(210, Math.max(70, Math.round(label.length * 7 + 20)));
}

/** A lifted weight by its own name, not by the path that Dynamo makes a name of. */
export function nodeLabel(node: GraphNode): string {
  const lifted = /_(?:parameters|buffers)_(.+?)_?$/.exec(node.name);
  return lifted ? lifted[1]! : node.name.replace(/^l_(?:self_)?(.+?)_$/, "$1");
}

export function closedLabel(group: Group, backward: boolean): string {
  const count = backward ? group.sizeBackward : group.sizeForward;
  return `${group.label}${backward && group.kind !== "again" ? " ∇" : ""} (${count})`;
}

/**
 * Lays out what is open. The forward half ranks itself; the backward half takes rows and order from it, mirrored: a module
 * lies beside its forward half, a node beside its twin, and only what has neither is placed by its neighbours.
 */
export function layoutTree(graph: GraphModel, tree: Tree, open: ReadonlySet<string>): Block {
  const local = localEdges(graph, tree, open);
  const lay = (group: Group): Block => {
    const inner = new Map<Group, Block>();
    for (const child of group.children) if (open.has(child.key)) inner.set(child, lay(child));
    return layoutGroup(graph, tree, group, local.get(group) ?? [], inner);
  };
  return lay(tree.root);
}

/** Edges as each open group sees them: between the two of its items that hold their ends. */
function localEdges(graph: GraphModel, tree: Tree, open: ReadonlySet<string>): Map<Group, (readonly [Item, Item])[]> {
  const local = new Map<Group, (readonly [Item, Item])[]>();
  graph.source.forEach((from, i) => {
    const to = graph.target[i]!;
    if (graph.nodes[from]!.backward !== graph.nodes[to]!.backward) return;
    const meeting = meet(tree, from, to);
    if (!meeting || !isOpen(meeting.group, open)) return;
    const edges = local.get(meeting.group);
    if (edges) edges.push([meeting.a, meeting.b]);
    else local.set(meeting.group, [[meeting.a, meeting.b]]);
  });
  return local;
}

function isOpen(group: Group, open: ReadonlySet<string>): boolean {
  for (let up: Group | null = group; up; up = up.parent) if (!open.has(up.key) && up.parent) return false;
  return true;
}

function meet(tree: Tree, from: number, to: number): { group: Group; a: Item; b: Item } | null {
  let left = tree.of[from] ?? null;
  let right = tree.of[to] ?? null;
  if (!left || !right) return null;
  let a: Item = from;
  let b: Item = to;
  while (left !== right) {
    if (!left || !right) return null;
    if (left.depth >= right.depth) {
      a = left;
      left = left.parent;
    } else {
      b = right;
      right = right.parent;
    }
  }
  return left && a !== b ? { group: left, a, b } : null;
}

/** The item of `group` that holds a node, if any. */
function itemOf(tree: Tree, group: Group, node: number): Item | null {
  let item: Item = node;
  for (let up = tree.of[node] ?? null; up; up = up.parent) {
    if (up === group) return item;
    item = up;
  }
  return null;
}

function layoutGroup(
  graph: GraphModel,
  tree: Tree,
  group: Group,
  edges: readonly (readonly [Item, Item])[],
  inner: ReadonlyMap<Group, Block>,
): Block {
  const size = (item: Item, backward: boolean): { w: number; h: number } => {
    if (typeof item === "number") return { w: nodeWidth(nodeLabel(graph.nodes[item]!)), h: NODE_H };
    const block = inner.get(item);
    if (!block) return { w: nodeWidth(closedLabel(item, backward)), h: NODE_H };
    return { w: backward ? block.widthBackward : block.widthForward, h: block.height };
  };
  const first = (item: Item): number => (typeof item === "number" ? tree.order[item]! : item.first);
  const forward: Item[] = [...group.children.filter((child) => child.sizeForward > 0), ...group.forward];
  forward.sort((a, b) => first(a) - first(b));
  const cellOf = new Map<Item, number>();
  const numberOf = new Map(forward.map((item, i) => [item, i]));
  const numbered = pairs(edges, numberOf, true);
  const rank = rankItems(forward.length, numbered);
  forward.forEach((item, i) => cellOf.set(item, 2 * rank[i]!));

  const backward = backwardItems(graph, tree, group, edges, cellOf);
  const leftRows = wrap(rowsByCell(forward.map((item, i) => [2 * rank[i]!, item] as const)));
  const rightRows = wrap(backward.rows);

  const left = half(leftRows, (item) => size(item, false), edges, null);
  const anchors = new Map<Item, number>();
  const mirrorAt = (item: Item): number | undefined => {
    const at = left.x.get(item);
    return at === undefined ? undefined : left.width - at;
  };
  for (const { item, twin } of backward.items) {
    // What runs again stands at the gutter, before the gradients that need it.
    const at = isAgain(graph, item) ? -40 : twin === null ? undefined : mirrorAt(twin);
    anchors.set(item, at ?? Number.NaN);
  }
  for (const { item } of backward.items) {
    if (!Number.isNaN(anchors.get(item)!)) continue;
    const near = backward.near.get(item)?.map((other) => anchors.get(other)!).filter((x) => !Number.isNaN(x)) ?? [];
    anchors.set(item, near.length ? near.reduce((sum, x) => sum + x, 0) / near.length : left.width / 2);
  }
  const right = half(rightRows, (item) => size(item, true), edges, anchors);
  return stack(leftRows, rightRows, left, right, size, inner);
}

function isAgain(graph: GraphModel, item: Item): boolean {
  return typeof item === "number" ? graph.nodes[item]!.roles.has("recomputed") : item.kind === "again";
}

function pairs(
  edges: readonly (readonly [Item, Item])[],
  numberOf: ReadonlyMap<Item, number>,
  ascending: boolean,
): (readonly [number, number])[] {
  const seen = new Set<number>();
  const found: (readonly [number, number])[] = [];
  for (const [from, to] of edges) {
    const a = numberOf.get(from);
    const b = numberOf.get(to);
    if (a === undefined || b === undefined || a === b || (ascending && a > b)) continue;
    const key = a * 1_048_576 + b;
    if (seen.has(key)) continue;
    seen.add(key);
    found.push([a, b]);
  }
  return found;
}

type Row = { readonly cell: number; readonly items: readonly Item[] };

function rowsByCell(placed: readonly (readonly [number, Item])[]): Row[] {
  const cells = new Map<number, Item[]>();
  for (const [cell, item] of placed) {
    const items = cells.get(cell);
    if (items) items.push(item);
    else cells.set(cell, [item]);
  }
  return [...cells].toSorted(([a], [b]) => a - b).map(([cell, items]) => ({ cell, items }));
}

/** Rows of many nodes are broken, so that a graph of many parallel inputs does not become one line. */
function wrap(rows: readonly Row[]): Row[] {
  return rows.flatMap(({ cell, items }) => {
    if (items.length <= MAX_ROW) return [{ cell, items }];
    const lines = Math.ceil(items.length / MAX_ROW);
    const each = Math.ceil(items.length / lines);
    return Array.from({ length: lines }, (_, i) => ({ cell, items: items.slice(i * each, (i + 1) * each) }));
  });
}

interface BackwardItems {
  readonly rows: readonly Row[];
  readonly items: readonly { readonly item: Item; readonly twin: Item | null }[];
  readonly near: ReadonlyMap<Item, readonly Item[]>;
}

/** Even cells are the forward's ranks, odd ones the gaps below them. The backward flows up: later is a smaller cell. */
function backwardItems(
  graph: GraphModel,
  tree: Tree,
  group: Group,
  edges: readonly (readonly [Item, Item])[],
  cellOf: ReadonlyMap<Item, number>,
): BackwardItems {
  const last = Math.max(0, ...cellOf.values()) + 1;
  const children = group.children.filter((child) => child.sizeBackward > 0);
  const near = new Map<Item, Item[]>();
  const inputs = new Map<Item, Item[]>();
  for (const [from, to] of edges) {
    (near.get(from) ?? near.set(from, []).get(from)!).push(to);
    (near.get(to) ?? near.set(to, []).get(to)!).push(from);
    (inputs.get(to) ?? inputs.set(to, []).get(to)!).push(from);
  }
  const cell = new Map<Item, number>();
  const twins = new Map<Item, Item | null>();
  for (const child of children) {
    twins.set(child, cellOf.has(child) ? child : null);
    const own = cellOf.get(child);
    if (own !== undefined) cell.set(child, own);
  }
  const withGroups = new Set(children.map((child) => cell.get(child)));
  const orphan = (item: Item): void => {
    const from = (inputs.get(item) ?? []).map((input) => cell.get(input)).filter((at) => at !== undefined);
    if (!from.length) {
      cell.set(item, last);
      return;
    }
    const lowest = Math.min(...from);
    cell.set(item, withGroups.has(lowest) ? Math.max(-1, lowest - 1) : lowest);
  };
  for (const child of children) {
    if (cell.has(child)) continue;
    // Runs again, or has no forward of its own: beside the forward of what it repeats.
    const repeats = child.backward.map((node) => itemOf(tree, group, graph.nodes[node]!.twin)).find((item) => item !== null);
    const at = repeats === undefined || repeats === null ? undefined : cellOf.get(repeats);
    twins.set(child, repeats ?? null);
    if (at === undefined) orphan(child);
    else cell.set(child, at);
  }
  for (const node of group.backward) {
    const twin = graph.nodes[node]!.twin;
    const item = twin < 0 ? null : itemOf(tree, group, twin);
    const known = item !== null && cellOf.has(item) ? item : null;
    twins.set(node, known);
    if (known === null) orphan(node);
    else {
      const base = cellOf.get(known)!;
      cell.set(node, withGroups.has(base) && !isAgain(graph, node) ? Math.max(-1, base - 1) : base);
    }
  }
  for (const [node, at] of unroll(graph, group, inputs, cellOf)) if (!withGroups.has(at)) cell.set(node, at);
  const byCell = rowsByCell([...cell].map(([item, at]) => [at, item] as const));
  return {
    rows: byCell.flatMap((row) => upward(row, inputs)),
    items: [...cell.keys()].map((item) => ({ item, twin: twins.get(item) ?? null })),
    near,
  };
}

/**
 * An operator's pieces share one number in the forward, and so do the pieces of its gradient: the gradient's steps are spread
 * over the rows of the forward's, from the last up, so that both run side by side.
 */
function unroll(
  graph: GraphModel,
  group: Group,
  inputs: ReadonlyMap<Item, readonly Item[]>,
  cellOf: ReadonlyMap<Item, number>,
): Map<number, number> {
  const rows = new Map<number, number[]>();
  for (const node of group.forward) {
    const { seq, op } = graph.nodes[node]!;
    if (seq >= 0 && op !== "placeholder") (rows.get(seq) ?? rows.set(seq, []).get(seq)!).push(cellOf.get(node)!);
  }
  const gradients = new Map<number, number[]>();
  for (const node of group.backward) {
    const { seq, twin } = graph.nodes[node]!;
    if (twin < 0 || isAgain(graph, node)) continue;
    (gradients.get(seq) ?? gradients.set(seq, []).get(seq)!).push(node);
  }
  const cells = new Map<number, number>();
  for (const [seq, nodes] of gradients) {
    const up = [...new Set(rows.get(seq) ?? [])].toSorted((a, b) => b - a);
    if (up.length < 2) continue;
    const depth = new Map<number, number>();
    for (const node of nodes) {
      let at = 0;
      for (const input of inputs.get(node) ?? []) {
        const before = typeof input === "number" ? depth.get(input) : undefined;
        if (before !== undefined) at = Math.max(at, before + 1);
      }
      depth.set(node, at);
    }
    const steps = Math.max(...depth.values()) + 1;
    for (const node of nodes) {
      const share = steps <= up.length ? depth.get(node)! : Math.floor((depth.get(node)! * up.length) / steps);
      cells.set(node, up[share]!);
    }
  }
  return cells;
}

/** Items of one cell by their depth in it, the deepest on top; what is not of the same flow shares a line. */
function upward(row: Row, inputs: ReadonlyMap<Item, readonly Item[]>): Row[] {
  const depth = new Map<Item, number>();
  const inside = new Set(row.items);
  const sorted = row.items.toSorted((a, b) => (typeof a === "number" ? a : a.first) - (typeof b === "number" ? b : b.first));
  for (const item of sorted) {
    if (typeof item !== "number") {
      depth.set(item, 0);
      continue;
    }
    let at = 0;
    for (const input of inputs.get(item) ?? []) if (inside.has(input)) at = Math.max(at, (depth.get(input) ?? -1) + 1);
    depth.set(item, at);
  }
  const lines: Item[][] = [];
  for (const item of sorted) (lines[depth.get(item)!] ??= []).push(item);
  return lines
    .filter((line) => line.length > 0)
    .toReversed()
    .map((items) => ({ cell: row.cell, items }));
}

interface Half {
  readonly x: ReadonlyMap<Item, number>;
  readonly width: number;
}

function half(
  rows: readonly Row[],
  size: (item: Item) => { w: number },
  edges: readonly (readonly [Item, Item])[],
  anchors: ReadonlyMap<Item, number> | null,
): Half {
  const items = rows.flatMap((row) => row.items);
  const numberOf = new Map(items.map((item, i) => [item, i]));
  const widths = items.map((item) => size(item).w);
  const placed = placeRows(
    rows.map((row) => row.items.map((item) => numberOf.get(item)!)),
    widths,
    pairs(edges, numberOf, false),
    anchors ? Float64Array.from(items, (item) => anchors.get(item)!) : null,
  );
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  placed.forEach((x, i) => {
    low = Math.min(low, x - widths[i]! / 2);
    high = Math.max(high, x + widths[i]! / 2);
  });
  if (!items.length) return { x: new Map(), width: 0 };
  return { x: new Map(items.map((item, i) => [item, placed[i]! - low])), width: high - low };
}

/** Rows of both halves on one ladder of heights. */
function stack(
  leftRows: readonly Row[],
  rightRows: readonly Row[],
  left: Half,
  right: Half,
  size: (item: Item, backward: boolean) => { w: number; h: number },
  inner: ReadonlyMap<Group, Block>,
): Block {
  const cells = [...new Set([...leftRows, ...rightRows].map((row) => row.cell))].toSorted((a, b) => a - b);
  const forward: Placed[] = [];
  const backward: Placed[] = [];
  const rowHeight = (row: Row, back: boolean): number => Math.max(...row.items.map((item) => size(item, back).h));
  const total = (rows: readonly Row[], back: boolean): number =>
    rows.reduce((sum, row) => sum + rowHeight(row, back), 0) + GAP_Y * Math.max(0, rows.length - 1);
  let y = HEAD + PAD / 2;
  for (const cell of cells) {
    const sides = [
      { rows: leftRows.filter((row) => row.cell === cell), half: left, back: false, into: forward },
      { rows: rightRows.filter((row) => row.cell === cell), half: right, back: true, into: backward },
    ];
    const height = Math.max(...sides.map((side) => total(side.rows, side.back)));
    for (const side of sides) {
      let at = y + (height - total(side.rows, side.back)) / 2;
      for (const row of side.rows) {
        const high = rowHeight(row, side.back);
        for (const item of row.items) {
          const { w, h } = size(item, side.back);
          side.into.push({ item, x: PAD + side.half.x.get(item)! - w / 2, y: at + (high - h) / 2, w, h });
        }
        at += high + GAP_Y;
      }
    }
    y += height + GAP_Y;
  }
  return {
    forward,
    backward,
    widthForward: left.width + 2 * PAD,
    widthBackward: right.width + 2 * PAD,
    height: y - GAP_Y + PAD,
    inner,
  };
}
