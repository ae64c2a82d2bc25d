import type { StageName } from "../generated/contract";
import { changes, type Changes } from "../graph/overlay/changes";
import { isTimed, overlay, overlayOf, type Facts, type OverlayName } from "../graph/overlay/overlay";
import type { GraphModel } from "../graph/model/graph";
import { t } from "../messages";
import { bytes, seconds } from "../messages/format";
import { STAGES } from "./events";
import { fusedGraph, graphByHash, stagePicture } from "./graphs";
import { linkIndex, payload, place, ready } from "./store";

/** The graph of a stage as its picture shows it, the fused groups among them. */
export const pictureOf = (stage: StageName): GraphModel | null => (stage === "fusion" ? fusedGraph() : stagePicture(stage));

/** What a node of one graph was in another: itself where its id is there, else what the links between stages say. */
export function kinOf(after: GraphModel, before: GraphModel): (node: number) => readonly number[] {
  const links = linkIndex();
  return (node) => {
    const { id } = after.nodes[node]!;
    const own = before.byId.get(id);
    if (own !== undefined) return [own];
    return links.nearest(id, (other) => before.byId.has(other)).map((other) => before.byId.get(other)!);
  };
}

export interface Step {
  /** The stage, or the pass, that the step began with and ended with, as it is called. */
  readonly from: { readonly stage: StageName } | { readonly pass: string };
  readonly changes: Changes;
}

let last: { before: GraphModel; after: GraphModel; links: number; step: Step } | null = null;

/** What the shown step changed in this graph: the chosen pass, else the stage since the last one that has a graph. */
export function stepOf(stage: StageName, after: GraphModel): Step | null {
  const pass = passAt(stage);
  const passBefore = pass?.step.before ? graphByHash(pass.step.before) : null;
  if (pass && passBefore) return remember(passBefore, after, { pass: pass.step.name });
  const earlier = STAGES.slice(0, STAGES.indexOf(stage)).toReversed();
  for (const name of earlier) {
    const before = pictureOf(name);
    if (before) return remember(before, after, { stage: name });
  }
  return null;
}

function remember(before: GraphModel, after: GraphModel, from: Step["from"]): Step {
  const links = linkIndex().size;
  if (last?.before === before && last.after === after && last.links === links) return last.step;
  const step = { from, changes: changes(before, after, kinOf(after, before)) };
  last = { before, after, links, step };
  return step;
}

/** The pass that the address names in a stage of passes, in the graph that it names or the first. */
export function passAt(stage: StageName) {
  const at = place.value.pass;
  if (at === null || (stage !== "pre_grad" && stage !== "joint_passes" && stage !== "post_grad")) return null;
  const passes = ready(payload(stage, "passes", place.value.graph ?? undefined));
  const step = passes?.steps[at];
  return passes && step ? { passes, step, at } : null;
}

/** Measured seconds of the kernels that a node went into; null where nothing was timed. */
function kernelTimes(graph: GraphModel): Facts["kernels"] {
  const timed = ready(payload("execute", "execution"))?.kernels;
  if (!timed?.length) return null;
  const seconds = new Map(timed.map((kernel) => [kernel.entity, kernel.seconds]));
  const links = linkIndex();
  return (node) => new Map(links.nearest(graph.nodes[node]!.id, (id) => seconds.has(id)).map((id) => [id, seconds.get(id)!]));
}

export function overlayFacts(graph: GraphModel, step: Step | null): Facts {
  const kernels = overlayOf(place.value.overlay) === "time" || overlayOf(place.value.overlay) === "critical" ? kernelTimes(graph) : null;
  return {
    kernels,
    changes: step?.changes ?? null,
    bytes,
    seconds,
    words: {
      forward: t("forward"),
      backward: t("backward"),
      saved: t("saved"),
      recomputed: t("recomputed"),
      once: t("overlay.once"),
      added: t("overlay.added"),
      changed: t("overlay.rewritten"),
      mixed: t("overlay.mixed"),
      chain: t(isTimed(graph, { kernels }) ? "overlay.chain_timed" : "overlay.chain_counted"),
    },
  };
}

/** The graph as the chosen pass left it; null where no pass is chosen, or its graph was not kept. */
export function passPicture(stage: StageName): GraphModel | null {
  const pass = passAt(stage);
  if (!pass) return null;
  const { steps } = pass.passes;
  const changed = steps.slice(0, pass.at + 1).findLast((step) => step.changed && step.after);
  const next = steps.slice(pass.at + 1).find((step) => step.changed && step.before);
  const hash = changed?.after ?? next?.before ?? null;
  return hash ? graphByHash(hash) : null;
}

/** What an overlay says of each node, for the graph's table. */
export function nodeTags(name: OverlayName, graph: GraphModel, step: Step | null): (string | null)[] {
  const alone = { boxes: graph.nodes.map(() => ({ open: false })), shown: Int32Array.from(graph.nodes.keys()) };
  return overlay(name, graph, alone, overlayFacts(graph, step)).tints.map((tint) => tint?.tag ?? null);
}
