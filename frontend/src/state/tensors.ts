import { computed } from "@preact/signals";
import type { MemoryTimelinePayload } from "../generated/contract";
import { parseEntity, slug } from "../link/entity";
import { findArtifact, stageOf } from "./events";
import { payloadOf } from "./graphs";
import { run } from "./store";

/** What a block of the timeline is: the scheduler node that writes its buffer, and the FX node it holds the value of. */
export interface Tensor {
  readonly name: string;
  readonly buffer: string;
  /** The id to select for it; null when only its line is known, or nothing. */
  readonly node: string | null;
  readonly scheduled: readonly string[];
}

/** Buffers by `compile/graph/name`, as the schedule of each graph has them. */
const buffers = computed(() => {
  const found = new Map<string, { scheduled: string; node: string | null }>();
  for (const compile of run.value.compiles) {
    for (const graph of ["forward", "backward", "inference"]) {
      if (!findArtifact(stageOf(run.value, compile.id, "schedule"), "schedule", graph)) continue;
      const at = slug(compile.id);
      const schedule = payloadOf(parseEntity(`${at}/schedule/${graph}/`)!, "schedule");
      const order = placesOf(`${at}/post_grad/${graph}/`);
      for (const node of schedule?.nodes ?? []) {
        // Of what was fused into one buffer while lowering, the last node is the one whose value it holds.
        const origin = node.origins.toSorted((a, b) => (order.get(a) ?? 0) - (order.get(b) ?? 0)).at(-1);
        const id = origin ? `${at}/post_grad/${graph}/${origin}` : null;
        for (const buffer of node.buffers) {
          found.set(`${at}/${graph}/${buffer}`, { scheduled: `${at}/schedule/${graph}/${node.name}`, node: id });
        }
      }
    }
  }
  return found;
});

function placesOf(graph: string): Map<string, number> {
  const held = payloadOf(parseEntity(graph)!, "graph");
  return new Map(held?.nodes.name.map((name, i) => [held.strings[name]!, i]) ?? []);
}

const held = new WeakMap<MemoryTimelinePayload, { known: unknown; tensors: readonly Tensor[] }>();

export function tensorsOf(timeline: MemoryTimelinePayload): readonly Tensor[] {
  const known = buffers.value;
  const before = held.get(timeline);
  if (before?.known === known) return before.tensors;
  const tensors = name(timeline, known);
  held.set(timeline, { known, tensors });
  return tensors;
}

function name(timeline: MemoryTimelinePayload, known: typeof buffers.value): Tensor[] {
  const { strings, blocks } = timeline;
  return blocks.name.map((name, block) => {
    const buffer = strings[name]!;
    const entity = strings[blocks.entity[block]!]!;
    const place = /^([^/]+)\/codegen\/([^/]+)\//.exec(entity);
    const parts = place ? buffer.split(", ").map((one) => known.get(`${place[1]}/${place[2]}/${one}`)) : [];
    const hits = parts.filter((hit) => hit !== undefined);
    const node = hits[0]?.node ?? null;
    const shown = node ? node.slice(node.lastIndexOf("/") + 1) : buffer;
    return { name: shown, buffer, node: node ?? (entity || null), scheduled: hits.map((hit) => hit.scheduled) };
  });
}

/** The blocks of a selection: a line's own by their line, anything else's by the nodes that write them. */
export function blocksOf(
  timeline: MemoryTimelinePayload,
  tensors: readonly Tensor[],
  reached: ReadonlySet<string>,
  chosen: string | null,
): ReadonlySet<number> {
  const found = new Set<number>();
  if (chosen === null) return found;
  const line = chosen.startsWith("line/") ? Number(chosen.slice(5)) : null;
  tensors.forEach((tensor, block) => {
    if (line !== null) {
      if (timeline.blocks.line[block] === line) found.add(block);
    } else if (tensor.scheduled.some((id) => reached.has(id)) || (tensor.node !== null && reached.has(tensor.node))) {
      found.add(block);
    }
  });
  return found;
}
