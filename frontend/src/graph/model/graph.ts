import type { GraphPayload } from "../../generated/contract";

export type Value = GraphPayload["values"][number];
export type StackFrame = GraphPayload["stacks"][number][number];

export interface GraphNode {
  readonly id: string;
  readonly name: string;
  readonly op: string;
  readonly target: string;
  readonly args: string;
  readonly backward: boolean;
  readonly module: string;
  readonly moduleType: string;
  readonly call: number;
  readonly line: number;
  readonly stack: readonly StackFrame[];
  readonly seq: number;
  /** The number of the forward node that this one is the gradient of, or repeats; -1 for none in this graph. */
  readonly twin: number;
  readonly gradFn: string;
  readonly roles: ReadonlySet<string>;
  readonly value: Value | null;
  readonly bytes: number;
}

/** What an edge carries, where that is not simply its source's value. */
export interface Carried {
  readonly tensor: string;
  readonly bytes: number;
}

/** A graph as the page works with it. Edges are parallel arrays of node numbers. */
export interface GraphModel {
  readonly id: string;
  readonly nodes: readonly GraphNode[];
  readonly source: readonly number[];
  readonly target: readonly number[];
  readonly byId: ReadonlyMap<string, number>;
  readonly mirrored: boolean;
  /** By edge; null where a node has one value, of the node's bytes. */
  readonly carries: readonly Carried[] | null;
}

export function decodeGraph(payload: GraphPayload): GraphModel {
  const { nodes: columns, strings, values, stacks } = payload;
  const roleSets = new Map<number, ReadonlySet<string>>();
  const roles = (index: number): ReadonlySet<string> => {
    let held = roleSets.get(index);
    if (!held) roleSets.set(index, (held = new Set(strings[index]!.split(" ").filter(Boolean))));
    return held;
  };
  const byName = new Map(columns.name.map((name, i) => [name, i]));
  const nodes = columns.name.map((name, i): GraphNode => {
    const stack = columns.stack[i]!;
    const value = columns.value[i]!;
    return {
      id: `${payload.id}/${strings[name]!}`,
      name: strings[name]!,
      op: strings[columns.op[i]!]!,
      target: strings[columns.target[i]!]!,
      args: strings[columns.args[i]!]!,
      backward: strings[columns.phase[i]!] === "backward",
      module: strings[columns.module[i]!]!,
      moduleType: strings[columns.module_type[i]!]!,
      call: columns.call[i]!,
      line: columns.line[i]!,
      stack: stack < 0 ? [] : stacks[stack]!,
      seq: columns.seq_nr[i]!,
      twin: byName.get(columns.twin[i]!) ?? -1,
      gradFn: strings[columns.grad_fn[i]!]!,
      roles: roles(columns.roles[i]!),
      value: value < 0 ? null : values[value]!,
      bytes: columns.bytes[i]!,
    };
  });
  return assemble(payload.id, nodes, payload.edges.source, payload.edges.target);
}

export function assemble(
  id: string,
  nodes: readonly GraphNode[],
  source: readonly number[],
  target: readonly number[],
): GraphModel {
  const byId = new Map(nodes.map((node, i) => [node.id, i]));
  return { id, nodes, source, target, byId, mirrored: nodes.some((node) => node.backward), carries: null };
}

/**
 * Forward and backward graphs as one mirrored picture: what the backward takes in from the forward becomes an edge from
 * the forward node itself, and a call that the forward has too is a recomputation.
 */
export function mergeHalves(forward: GraphModel, backward: GraphModel): GraphModel {
  const inForward = new Map<string, number>();
  forward.nodes.forEach((node, i) => inForward.set(node.name, i));
  const bySeq = new Map<number, number>();
  forward.nodes.forEach((node, i) => {
    if (node.seq >= 0 && node.op !== "placeholder" && !bySeq.has(node.seq)) bySeq.set(node.seq, i);
  });
  const nodes: GraphNode[] = [...forward.nodes];
  const place: number[] = [];
  const crossing = new Set<number>();
  for (const node of backward.nodes) {
    const same = inForward.get(node.name);
    if (node.op === "placeholder" && same !== undefined) {
      place.push(same);
      crossing.add(same);
      continue;
    }
    place.push(nodes.length);
    const again = same !== undefined && node.op !== "output" && node.op !== "placeholder";
    // A sum of gradients carries the number of whatever came before it: it has no twin.
    const twin = again ? same : node.roles.has("accumulation") ? -1 : (bySeq.get(node.seq) ?? -1);
    const roles = again ? new Set([...node.roles, "recomputed"]) : without(node.roles, "recomputed");
    nodes.push({ ...node, backward: true, twin, roles });
  }
  forward.nodes.forEach((node, i) => {
    const roles = without(without(node.roles, "recomputed"), "saved");
    nodes[i] = { ...node, backward: false, roles: crossing.has(i) ? new Set([...roles, "saved"]) : roles };
  });
  const source = [...forward.source, ...backward.source.map((at) => place[at]!)];
  const target = [...forward.target, ...backward.target.map((at) => place[at]!)];
  return assemble(forward.id, nodes, source, target);
}

function without(roles: ReadonlySet<string>, role: string): ReadonlySet<string> {
  return roles.has(role) ? new Set([...roles].filter((other) => other !== role)) : roles;
}
