import type { GraphPayload, Payloads, StageName } from "../generated/contract";
import { decodeGraph, mergeHalves, type GraphModel } from "../graph/model/graph";
import type { Entity } from "../link/entity";
import { findArtifact, stageOf, STAGES } from "./events";
import { scheduledGraph, type ScheduledHalf } from "../graph/model/scheduled";
import { artifacts, entityPrefix, graphsOf, payload, ready, run } from "./store";

const decoded = new WeakMap<GraphPayload, GraphModel>();
const merged = new WeakMap<GraphModel, { backward: GraphModel; both: GraphModel }>();

function decode(graph: GraphPayload): GraphModel {
  let model = decoded.get(graph);
  if (!model) decoded.set(graph, (model = decodeGraph(graph)));
  return model;
}

/** A graph of the chosen compile, decoded once; null until it is there. */
export function graphModel(stage: StageName, graph: string): GraphModel | null {
  const held = ready(payload(stage, "graph", graph));
  return held ? decode(held) : null;
}

/** Forward and backward of a stage as one mirrored picture; the forward alone until the backward is there. */
export function bothHalves(stage: StageName): GraphModel | null {
  const forward = graphModel(stage, "forward");
  const backward = graphModel(stage, "backward");
  if (!forward || !backward) return forward ?? backward;
  const held = merged.get(forward);
  if (held?.backward === backward) return held.both;
  const both = mergeHalves(forward, backward);
  merged.set(forward, { backward, both });
  return both;
}

/** The picture of a stage: both halves mirrored where it has two graphs, else the one that it has. */
export function stagePicture(stage: StageName): GraphModel | null {
  const graphs = graphsOf(stage, "graph");
  if (graphs.includes("forward") || graphs.includes("backward")) return bothHalves(stage);
  return graphs.length ? graphModel(stage, graphs[0]!) : null;
}

/** A payload of the entity's own stage and graph, whichever compile is chosen. */
export function payloadOf<K extends keyof Payloads>(entity: Entity, kind: K): Payloads[K] | null {
  const stage = STAGES.find((name) => name === entity.stage);
  if (!stage) return null;
  const made = findArtifact(stageOf(run.value, entity.compile, stage), kind, entity.graph);
  return made ? ready(artifacts.value.get<K>({ ...made.ref, kind }).value) : null;
}

export function nodeOf(entity: Entity): { graph: GraphModel; node: number } | null {
  const held = payloadOf(entity, "graph");
  if (!held) return null;
  const graph = decode(held);
  const node = graph.byId.get(entity.id);
  return node === undefined ? null : { graph, node };
}

/** A graph named by its hash, as a pass names what it began and ended with. */
export function graphByHash(hash: string): GraphModel | null {
  const loaded = artifacts.value.get<"graph">({ hash, kind: "graph", format: "graph/1", bytes: 0 }).value;
  return loaded.state === "ready" ? decode(loaded.value) : null;
}

const scheduled = new WeakMap<GraphModel, { halves: readonly ScheduledHalf[]; made: GraphModel }>();

/** The fused groups of the chosen compile as a graph; null until all that it is made of is there. */
export function fusedGraph(): GraphModel | null {
  const graphs = graphsOf("fusion", "fusion");
  const fx = graphs.includes("backward") ? bothHalves("post_grad") : graphs[0] ? graphModel("post_grad", graphs[0]) : null;
  const halves: ScheduledHalf[] = [];
  for (const graph of graphs) {
    const schedule = ready(payload("schedule", "schedule", graph));
    const fusion = ready(payload("fusion", "fusion", graph));
    if (schedule && fusion) halves.push({ graph, schedule, fusion });
  }
  if (!fx || !halves.length || halves.length < graphs.length) return null;
  const held = scheduled.get(fx);
  if (held && held.halves.every((half, i) => half.fusion === halves[i]?.fusion)) return held.made;
  const made = scheduledGraph(halves, fx, (graph) => entityPrefix("fusion", graph));
  scheduled.set(fx, { halves, made });
  return made;
}
