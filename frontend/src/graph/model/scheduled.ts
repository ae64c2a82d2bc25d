import type { FusionPayload, SchedulePayload } from "../../generated/contract";
import { assemble, type Carried, type GraphModel, type GraphNode } from "./graph";

/** A half of the step, after fusion: what Inductor schedules, and how it groups it. */
export interface ScheduledHalf {
  readonly graph: string;
  readonly schedule: SchedulePayload;
  readonly fusion: FusionPayload;
}

/**
 * The fused groups as a graph: a node a group, an edge for each buffer that one writes and another reads, forward and
 * backward in one picture. `fx` is the post-grad graph of both halves: it says where a group lies, and which saved tensor
 * is which buffer.
 */
export function scheduledGraph(halves: readonly ScheduledHalf[], fx: GraphModel, prefix: (graph: string) => string): GraphModel {
  const nodes: GraphNode[] = [];
  const source: number[] = [];
  const target: number[] = [];
  const carries: Carried[] = [];
  const fxByName = { forward: new Map<string, number>(), backward: new Map<string, number>() };
  fx.nodes.forEach((node, i) => fxByName[node.backward ? "backward" : "forward"].set(node.name, i));
  const inputs = inputsOf(fx);
  /** The group that computes an FX node, and the node of a graph input. */
  const holder = new Map<number, number>();
  const find = (half: "forward" | "backward", name: string): number | undefined => fxByName[half].get(name) ?? fxByName.forward.get(name);

  /** The node here that holds an FX node's value: its group's; of a view, that of what it is a view of. */
  const held = (at: number): number | null => {
    for (let node: number | undefined = at; node !== undefined; node = inputs.get(node)) {
      const found = holder.get(node);
      if (found !== undefined) return found;
      if (fx.nodes[node]!.op === "placeholder") {
        const made = nodes.push({ ...fx.nodes[node]! }) - 1;
        holder.set(node, made);
        return made;
      }
    }
    return null;
  };
  for (const { graph, schedule, fusion } of halves) {
    const half = graph === "backward" ? "backward" : "forward";
    const byName = new Map(schedule.nodes.map((node) => [node.name, node]));
    const writer = new Map<string, number>();
    const groups = fusion.groups.map((group) => {
      const members = group.members.map((name) => byName.get(name)).filter((node) => node !== undefined);
      const origins = members.flatMap((node) => node.origins.map((name) => find(half, name)).filter((at) => at !== undefined));
      const written = new Map(members.flatMap((node) => Object.entries(node.writes)));
      const at = nodes.length;
      const lead = origins.map((origin) => fx.nodes[origin]!).findLast((node) => !node.roles.has("recomputed")) ?? fx.nodes[origins.at(-1) ?? -1];
      nodes.push({
        id: `${prefix(graph)}/${group.name}`,
        name: label(fx, origins, group.kind),
        op: "call_function",
        target: group.kind,
        args: "",
        backward: half === "backward",
        module: lead?.module ?? "",
        moduleType: lead?.moduleType ?? "",
        call: lead?.call ?? 0,
        line: members.find((node) => node.line !== null)?.line ?? 0,
        stack: lead?.stack ?? [],
        seq: -1,
        twin: -1,
        gradFn: "",
        roles: new Set(origins.length > 0 && origins.every((origin) => fx.nodes[origin]!.roles.has("recomputed")) ? ["recomputed"] : []),
        value: null,
        bytes: [...written.values()].reduce((sum, size) => sum + size, 0),
      });
      for (const origin of origins) holder.set(origin, at);
      for (const buffer of written.keys()) writer.set(buffer, at);
      return { at, members, origins };
    });
    for (const { at, members } of groups) {
      const reads = new Map(members.flatMap((node) => Object.entries(node.reads)));
      for (const [buffer, bytes] of reads) {
        const input = find(half, buffer);
        const from = writer.get(buffer) ?? (input === undefined ? null : held(input));
        if (from === null || from === at) continue;
        source.push(from);
        target.push(at);
        carries.push({ tensor: buffer, bytes });
      }
    }
    if (half === "backward") for (const { at, origins } of groups) nodes[at] = { ...nodes[at]!, twin: twin(fx, origins, holder) };
  }
  const crosses = new Set(source.filter((from, i) => nodes[target[i]!]!.backward && !nodes[from]!.backward));
  const marked = nodes.map((node, i) => (crosses.has(i) ? { ...node, roles: new Set([...node.roles, "saved"]) } : node));
  return { ...ordered(`${prefix(halves[0]!.graph)}/`, marked, source, target, carries) };
}

/** What a view is a view of: an FX node's first input. */
function inputsOf(fx: GraphModel): Map<number, number> {
  const first = new Map<number, number>();
  fx.target.forEach((node, i) => {
    if (!first.has(node)) first.set(node, fx.source[i]!);
  });
  return first;
}

/** The forward group whose gradient this one computes most of. */
function twin(fx: GraphModel, origins: readonly number[], holder: ReadonlyMap<number, number>): number {
  const votes = new Map<number, number>();
  for (const origin of origins) {
    const forward = fx.nodes[origin]!.twin;
    const group = forward < 0 ? undefined : holder.get(forward);
    if (group !== undefined) votes.set(group, (votes.get(group) ?? 0) + 1);
  }
  return [...votes].toSorted((a, b) => b[1] - a[1])[0]?.[0] ?? -1;
}

/** A group by its operators, each once: the last ones say most. */
function label(fx: GraphModel, origins: readonly number[], kind: string): string {
  const names = new Set<string>();
  for (const origin of origins) {
    const { target } = fx.nodes[origin]!;
    if (!/getitem|view|permute|reshape|expand|unsqueeze|squeeze/.test(target)) names.add(/^(?:torch\.ops\.)?\w+\.(\w+)/.exec(target)?.[1] ?? target);
  }
  const all = [...names];
  if (!all.length) return kind;
  return all.length > 3 ? `${all[0]} … ${all.at(-1)}` : all.join(" ");
}

/** The graph in an order in which inputs come before their use: graph inputs first. */
function ordered(id: string, nodes: readonly GraphNode[], source: readonly number[], target: readonly number[], carries: readonly Carried[]): GraphModel {
  const order = nodes.map((_, i) => i).toSorted((a, b) => Number(nodes[b]!.op === "placeholder") - Number(nodes[a]!.op === "placeholder") || a - b);
  const place = new Map(order.map((old, i) => [old, i]));
  const moved = order.map((old) => ({ ...nodes[old]!, twin: place.get(nodes[old]!.twin) ?? -1 }));
  return { ...assemble(id, moved, source.map((at) => place.get(at)!), target.map((at) => place.get(at)!)), carries };
}
