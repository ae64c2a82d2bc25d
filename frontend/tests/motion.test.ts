import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import type { FusionPayload, GraphPayload, LinksPayload, SchedulePayload } from "../src/generated/contract";
import { buildTree } from "../src/graph/fold/tree";
import { compose } from "../src/graph/layout/compose";
import { decodeGraph, mergeHalves, type GraphModel } from "../src/graph/model/graph";
import { scheduledGraph } from "../src/graph/model/scheduled";
import { motion } from "../src/graph/render/motion";
import { LinkIndex } from "../src/link";
import type { Event } from "../src/state/events";
import { graph, stack } from "./make";

const same = (node: number): readonly number[] => [node];

function scene(model: GraphModel, open?: readonly string[]) {
  const tree = buildTree(model);
  return compose(model, tree, new Set(open ?? tree.groups.keys()));
}

describe("boxes keep their identity", () => {
  const model = graph(stack(3));
  const closed = scene(model, [""]);
  const opened = scene(model);

  test("opening: what was inside comes out of the group", () => {
    const { from, ghosts } = motion(closed, closed.boxes, opened, same);
    const layer = closed.boxes.find((box) => box.key === "f:layers")!;
    opened.boxes.forEach((box, i) => {
      if (box.kind === "node" && box.key.includes("relu_")) expect(from[i]).toBe(layer);
    });
    expect(ghosts).toEqual([]);
  });

  test("closing: what was inside goes into the group", () => {
    const { ghosts } = motion(opened, opened.boxes, closed, same);
    const layer = closed.boxes.find((box) => box.key === "f:layers")!;
    const relus = ghosts.filter(({ box }) => box.key.includes("relu_"));
    expect(relus.map(({ to }) => to)).toEqual([layer, layer, layer]);
  });

  test("what has no origin comes from nowhere, what has no heir goes where it stands", () => {
    const one = graph([{ name: "a" }, { name: "b", inputs: ["a"] }]);
    const other = graph([{ name: "a" }, { name: "c", inputs: ["a"] }]);
    const { from, ghosts } = motion(scene(one), scene(one).boxes, scene(other), (node) => (node === 0 ? [0] : []));
    expect(from.map((rect) => rect !== null)).toEqual([true, false]);
    expect(ghosts.map(({ box, to }) => [box.label, to])).toEqual([["b", null]]);
  });
});

describe("a recorded run", () => {
  const file = new URL("../../server/examples/recorded/attention_block.json.gz", import.meta.url);
  const recording = JSON.parse(gunzipSync(readFileSync(file)).toString()) as {
    events: readonly Event[];
    artifacts: Record<string, unknown>;
  };
  const links = new LinkIndex();
  const made = new Map<string, unknown>();
  for (const event of recording.events) {
    if (event.type !== "artifact" || event.name === "step") continue;
    const { hash, kind } = event.artifact;
    if (kind === "links") links.add(hash, recording.artifacts[hash] as LinksPayload);
    else made.set(`${event.stage}/${kind}/${event.graph}`, recording.artifacts[hash]);
  }
  const fx = (stage: string, name: string): GraphModel => decodeGraph(made.get(`${stage}/graph/${name}`) as GraphPayload);
  const postGrad = mergeHalves(fx("post_grad", "forward"), fx("post_grad", "backward"));
  const halves = ["forward", "backward"].map((name) => ({
    graph: name,
    schedule: made.get(`schedule/schedule/${name}`) as SchedulePayload,
    fusion: made.get(`fusion/fusion/${name}`) as FusionPayload,
  }));
  const fused = scheduledGraph(halves, postGrad, (name) => `0_0/fusion/${name}`);

  test("a node is followed from Dynamo to the joint graph, and to the fused kernel and back", () => {
    const [dynamo, joint] = [fx("dynamo", "dynamo"), fx("joint", "joint")];
    const gelu = dynamo.nodes.find((node) => node.target.includes("gelu"))!;
    const pieces = links.nearest(gelu.id, (id) => joint.byId.has(id));
    expect(pieces.length).toBeGreaterThan(3);
    expect(links.nearest(pieces[0]!, (id) => dynamo.byId.has(id))).toContain(gelu.id);
    const kernels = links.nearest(gelu.id, (id) => fused.byId.has(id));
    expect(kernels.length).toBeGreaterThan(1);
    for (const kernel of kernels) expect(links.nearest(kernel, (id) => dynamo.byId.has(id))).toContain(gelu.id);
  });

  test("every fused group is a node, inputs before use, a kernel's gradient beside it", () => {
    const groups = halves.flatMap(({ graph: name, fusion }) => fusion.groups.map((group) => `0_0/fusion/${name}/${group.name}`));
    for (const id of groups) expect(fused.byId.has(id)).toBe(true);
    fused.source.forEach((from, i) => {
      if (fused.nodes[from]!.backward === fused.nodes[fused.target[i]!]!.backward) expect(from).toBeLessThan(fused.target[i]!);
    });
    const backward = fused.nodes.filter((node) => node.backward && node.op !== "placeholder");
    expect(backward.filter((node) => node.twin >= 0).length).toBeGreaterThan(backward.length / 2);
  });

  test("the wires between groups carry what the partition saved, no more", () => {
    const saved = new Set(postGrad.nodes.filter((node) => node.roles.has("saved")).map((node) => node.name));
    const crossing = fused.carries!.filter((_, i) => fused.nodes[fused.target[i]!]!.backward && !fused.nodes[fused.source[i]!]!.backward);
    expect(crossing.length).toBeGreaterThan(5);
    for (const { tensor } of crossing) expect(saved).toContain(tensor);
  });
});
