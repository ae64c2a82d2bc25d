import type { GraphPayload, LinksPayload } from "../src/generated/contract";
import { decodeGraph, type GraphModel } from "../src/graph/model/graph";

export interface Spec {
  readonly name: string;
  readonly inputs?: readonly string[];
  readonly backward?: boolean;
  readonly module?: string;
  readonly op?: string;
  readonly seq?: number;
  readonly twin?: string;
  readonly gradFn?: string;
  readonly roles?: string;
  readonly bytes?: number;
  readonly line?: number;
  readonly code?: string;
}

/** A graph payload from a few words a node, as the compiler would send it. */
export function payload(id: string, specs: readonly Spec[]): GraphPayload {
  const strings = [""];
  const known = new Map([["", 0]]);
  const word = (text: string): number => {
    const at = known.get(text) ?? strings.push(text) - 1;
    known.set(text, at);
    return at;
  };
  // The names begin elsewhere than the nodes do, as in a real payload: a string's number is not a node's.
  word("aten");
  const place = new Map(specs.map((spec, i) => [spec.name, i]));
  const stacks: GraphPayload["stacks"] = [];
  const columns = specs.map((spec) => ({
    name: word(spec.name),
    op: word(spec.op ?? "call_function"),
    target: word(`aten.${spec.name.replace(/_\d+$/, "")}.default`),
    args: 0,
    phase: word(spec.backward ? "backward" : "forward"),
    module: word(spec.module ?? ""),
    module_type: 0,
    call: 0,
    line: spec.line ?? 0,
    stack: spec.code ? stacks.push([{ file: "snippet.py", line: spec.line ?? 0, function: "f", code: spec.code, user: true }]) - 1 : -1,
    seq_nr: spec.seq ?? -1,
    twin: spec.twin === undefined ? -1 : word(spec.twin),
    grad_fn: word(spec.gradFn ?? ""),
    roles: word(spec.roles ?? ""),
    value: -1,
    bytes: spec.bytes ?? -1,
  }));
  const nodes = Object.fromEntries(
    Object.keys(columns[0]!).map((key) => [key, columns.map((column) => column[key as keyof typeof column])]),
  ) as unknown as GraphPayload["nodes"];
  const source: number[] = [];
  const target: number[] = [];
  specs.forEach((spec, i) => {
    for (const input of spec.inputs ?? []) {
      source.push(place.get(input)!);
      target.push(i);
    }
  });
  return { format: "graph/1", id, strings, values: [], stacks, nodes, edges: { source, target } };
}

export const graph = (specs: readonly Spec[], id = "0_0/joint/joint"): GraphModel => decodeGraph(payload(id, specs));

/** `layers` equal modules of two nodes, each with its gradient, as a joint graph. */
export function stack(layers: number): Spec[] {
  const forward: Spec[] = [{ name: "x", op: "placeholder", roles: "primal input" }];
  const backward: Spec[] = [{ name: "tangents_1", op: "placeholder", backward: true, roles: "tangent" }];
  let last = "x";
  for (let i = 0; i < layers; i++) {
    const module = `layers.${i}`;
    forward.push({ name: `mm_${i}`, inputs: [last], module, seq: 2 * i, bytes: 64 });
    forward.push({ name: `relu_${i}`, inputs: [`mm_${i}`], module, seq: 2 * i + 1, bytes: 64, roles: "saved" });
    last = `relu_${i}`;
  }
  let gradient = "tangents_1";
  for (let i = layers - 1; i >= 0; i--) {
    const module = `layers.${i}`;
    backward.push({ name: `le_${i}`, inputs: [`relu_${i}`, gradient], module, backward: true, twin: `relu_${i}`, seq: 2 * i + 1 });
    backward.push({ name: `mmb_${i}`, inputs: [`le_${i}`], module, backward: true, twin: `mm_${i}`, seq: 2 * i });
    gradient = `mmb_${i}`;
  }
  return [...forward, ...backward];
}

/** What was made from what, as the compiler would send it. */
export function links(pairs: readonly [string, string][]): LinksPayload {
  const strings = ["", ...new Set(pairs.flat())];
  return {
    format: "links/1",
    strings,
    links: {
      source: pairs.map(([a]) => strings.indexOf(a)),
      target: pairs.map(([, b]) => strings.indexOf(b)),
      kind: pairs.map(() => 0),
      evidence: pairs.map(() => 0),
    },
  };
}
