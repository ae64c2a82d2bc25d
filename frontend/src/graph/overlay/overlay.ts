import { dtype } from "../../messages/format";
import type { GraphModel } from "../model/graph";

export const OVERLAYS = ["bytes", "time", "recompute", "phase", "dtype", "changed", "critical"] as const;
export type OverlayName = (typeof OVERLAYS)[number];

export const overlayOf = (text: string | null): OverlayName | null => OVERLAYS.find((name) => name === text) ?? null;

/** How a box is filled: one of a few shades, and the same in words. */
export interface Tint {
  /** 0 to `SHADES - 1`, light to dark. */
  readonly shade: number;
  readonly tag: string;
}

export const SHADES = 5;

/** What an overlay needs to know of a picture. */
export interface Shown {
  readonly boxes: readonly { readonly open: boolean }[];
  readonly shown: Int32Array;
}

export interface Overlay {
  readonly name: OverlayName;
  /** By box of the scene; null for what the overlay says nothing of. */
  readonly tints: readonly (Tint | null)[];
  /** Edges and wires to stress, as `from × boxes + to`. */
  readonly chain: ReadonlySet<number>;
  /** What each shade means, light to dark, those in use. */
  readonly legend: readonly Tint[];
}

/** What an overlay needs to know of a graph besides the graph. */
export interface Facts {
  /** Seconds of each kernel that a node is part of, by the kernel's id; null when nothing was timed. */
  readonly kernels: ((node: number) => ReadonlyMap<string, number>) | null;
  /** Nodes that the step before does not have, or has otherwise. */
  readonly changes: { readonly added: ReadonlySet<number>; readonly changed: ReadonlySet<number> } | null;
  readonly bytes: (value: number) => string;
  readonly seconds: (value: number) => string;
  readonly words: Readonly<Record<"forward" | "backward" | "saved" | "recomputed" | "once" | "added" | "changed" | "mixed" | "chain", string>>;
}

const NOTHING: ReadonlySet<number> = new Set();

export function overlay(name: OverlayName, graph: GraphModel, scene: Shown, facts: Facts): Overlay {
  const members = membersOf(scene);
  switch (name) {
    case "bytes":
      return scale(name, facts.bytes, members.map((nodes) => total(nodes.map((node) => Math.max(0, graph.nodes[node]!.bytes)))));
    case "time":
      return scale(name, facts.seconds, members.map((nodes) => timeOf(nodes, facts.kernels)));
    case "recompute":
      return kinds(name, facts.words.mixed, members, (node) => {
        const { roles } = graph.nodes[node]!;
        return roles.has("recomputed") ? facts.words.recomputed : roles.has("saved") ? facts.words.saved : facts.words.once;
      }, [facts.words.once, facts.words.saved, facts.words.recomputed]);
    case "phase":
      return kinds(name, facts.words.mixed, members, (node) => {
        const { roles, backward } = graph.nodes[node]!;
        return roles.has("recomputed") ? facts.words.recomputed : backward ? facts.words.backward : facts.words.forward;
      }, [facts.words.forward, facts.words.recomputed, facts.words.backward]);
    case "dtype":
      return kinds(name, facts.words.mixed, members, (node) => {
        const { value } = graph.nodes[node]!;
        return value?.kind === "tensor" ? dtype(value.dtype) : null;
      });
    case "changed": {
      const { added, changed } = facts.changes ?? { added: NOTHING, changed: NOTHING };
      return kinds(name, facts.words.mixed, members, (node) => (added.has(node) ? facts.words.added : changed.has(node) ? facts.words.changed : null), [facts.words.changed, facts.words.added]);
    }
    case "critical":
      return critical(graph, scene, facts);
  }
}

/** The nodes that each box stands for. */
function membersOf(scene: Shown): number[][] {
  const members: number[][] = scene.boxes.map(() => []);
  scene.shown.forEach((box, node) => {
    if (box >= 0) members[box]!.push(node);
  });
  return members;
}

const total = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

/** A kernel of many nodes is counted once, whatever part of it lies in the box. */
function timeOf(nodes: readonly number[], kernels: Facts["kernels"]): number {
  const own = new Map<string, number>();
  if (kernels) for (const node of nodes) for (const [id, seconds] of kernels(node)) own.set(id, seconds);
  return total([...own.values()]);
}

/** Shades by halves of the largest value, so that each step is twice the one before. */
function scale(name: OverlayName, say: (value: number) => string, values: readonly number[]): Overlay {
  const most = Math.max(0, ...values);
  const shade = (value: number): number => Math.max(0, SHADES - 1 + Math.ceil(Math.log2(value / most) - 1e-9));
  const tints = values.map((value) => (value > 0 ? { shade: shade(value), tag: say(value) } : null));
  const used = [...new Set(tints.flatMap((tint) => (tint ? [tint.shade] : [])))].toSorted((a, b) => a - b);
  const legend = used.map((one) => ({ shade: one, tag: `≤ ${say(most / 2 ** (SHADES - 1 - one))}` }));
  return { name, tints, chain: NOTHING, legend };
}

function kinds(
  name: OverlayName,
  mixed: string,
  members: readonly (readonly number[])[],
  kindOf: (node: number) => string | null,
  order: readonly string[] = [],
): Overlay {
  const found = members.map((nodes) => {
    const own = new Set(nodes.map(kindOf).filter((kind) => kind !== null));
    return own.size === 0 ? null : own.size === 1 ? [...own][0]! : mixed;
  });
  const counts = new Map<string, number>();
  for (const kind of found) if (kind !== null) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const all = [...counts.keys()].toSorted((a, b) => order.indexOf(a) - order.indexOf(b) || counts.get(b)! - counts.get(a)!);
  const shades = new Map(all.map((kind, i) => [kind, all.length === 1 ? 2 : Math.round((i * (SHADES - 1)) / (all.length - 1))]));
  const tint = (kind: string): Tint => ({ shade: shades.get(kind)!, tag: kind });
  return { name, tints: found.map((kind) => (kind === null ? null : tint(kind))), chain: NOTHING, legend: all.map(tint) };
}

function critical(graph: GraphModel, scene: Shown, facts: Facts): Overlay {
  const chain = longestChain(graph, weights(graph, facts));
  const place = new Map<number, number>();
  chain.forEach((node, i) => {
    const box = scene.shown[node]!;
    if (box >= 0 && !place.has(box)) place.set(box, i + 1);
  });
  const stressed = new Set<number>();
  for (let i = 1; i < chain.length; i++) {
    const from = scene.shown[chain[i - 1]!]!;
    const to = scene.shown[chain[i]!]!;
    if (from >= 0 && to >= 0 && from !== to) stressed.add(from * scene.boxes.length + to);
  }
  const tints = scene.boxes.map((box, i) => (place.has(i) && !box.open ? { shade: SHADES - 1, tag: `${place.get(i)}` } : null));
  return { name: "critical", tints, chain: stressed, legend: [{ shade: SHADES - 1, tag: facts.words.chain }] };
}

/** What a node costs on a chain: its kernel's measured time where a node is one kernel, else one for each operator. */
function weights(graph: GraphModel, facts: Facts): (node: number) => number {
  const { kernels } = facts;
  if (isTimed(graph, facts) && kernels) return (node) => timeOf([node], kernels);
  return (node) => (isOperator(graph, node) ? 1 : 0);
}

const isOperator = (graph: GraphModel, node: number): boolean => graph.nodes[node]!.op.startsWith("call") && !graph.nodes[node]!.target.includes("getitem");

/** Whether the chain is weighted by time: only where a node is a group of its own do times not count twice. */
export const isTimed = (graph: GraphModel, facts: Pick<Facts, "kernels">): boolean => graph.carries !== null && facts.kernels !== null;

/**
 * The heaviest chain of nodes of which each needs the one before: the longest path of the graph, by dynamic programming in
 * topological order (Kahn's). The span of the computation, in Blumofe and Leiserson's words.
 */
export function longestChain(graph: GraphModel, weight: (node: number) => number): number[] {
  const { nodes, source, target } = graph;
  const uses: number[][] = nodes.map(() => []);
  const missing = new Int32Array(nodes.length);
  source.forEach((from, i) => {
    uses[from]!.push(target[i]!);
    missing[target[i]!]!++;
  });
  const length = Float64Array.from(nodes, (_, i) => weight(i));
  const before = new Int32Array(nodes.length).fill(-1);
  const ready = [...missing.keys()].filter((node) => missing[node] === 0);
  for (let at = ready.pop(); at !== undefined; at = ready.pop()) {
    for (const use of uses[at]!) {
      const sum = length[at]! + weight(use);
      if (before[use]! < 0 || sum > length[use]!) {
        length[use] = sum;
        before[use] = at;
      }
      if (--missing[use]! === 0) ready.push(use);
    }
  }
  let end = -1;
  length.forEach((sum, node) => {
    if (nodes[node]!.op !== "output" && (end < 0 || sum > length[end]!)) end = node;
  });
  const chain: number[] = [];
  for (let at = end; at >= 0; at = before[at]!) if (weight(at) > 0) chain.unshift(at);
  return chain;
}
