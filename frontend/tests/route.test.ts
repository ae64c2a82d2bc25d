import { readdirSync, readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { buildTree } from "../src/graph/fold/tree";
import { compose } from "../src/graph/layout/compose";
import { boxesCrossed } from "../src/graph/layout/lines";
import { Room, rounded } from "../src/graph/layout/route";
import type { Scene } from "../src/graph/layout/scene";
import { decodeGraph, mergeHalves, type GraphModel } from "../src/graph/model/graph";
import { LayoutSession } from "../src/graph/worker/session";
import type { GraphPayload } from "../src/generated/contract";
import type { Event } from "../src/state/events";

const FOLDER = new URL("../../server/examples/recorded/", import.meta.url);

interface Recording {
  readonly events: readonly Event[];
  readonly artifacts: Readonly<Record<string, unknown>>;
}

/** Every graph of a recorded run as the page shows it: the halves of a stage together. */
function graphsOf(file: string): GraphModel[] {
  const recording = JSON.parse(gunzipSync(readFileSync(new URL(file, FOLDER))).toString()) as Recording;
  const found = new Map<string, GraphModel>();
  for (const event of recording.events) {
    if (event.type !== "artifact" || event.artifact.kind !== "graph" || event.name === "step") continue;
    const model = decodeGraph(recording.artifacts[event.artifact.hash] as GraphPayload);
    found.set(`${event.compile}/${event.stage}/${event.graph}`, model);
  }
  const shown: GraphModel[] = [];
  for (const [key, model] of found) {
    if (key.endsWith("/backward")) continue;
    const backward = found.get(key.replace(/\/forward$/, "/backward"));
    shown.push(key.endsWith("/forward") && backward ? mergeHalves(model, backward) : model);
  }
  return shown;
}

const straight = (scene: Scene): Scene => ({
  ...scene,
  edges: scene.edges.map((edge) => ({ ...edge, path: null })),
  wires: scene.wires.map((wire) => ({ ...wire, path: null })),
});

describe("lines keep off the boxes", () => {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith(".json.gz"));
  const tally = { before: 0, after: 0, lines: 0 };

  test.each(files)("%s: no line crosses a box, folded or all open", (file) => {
    for (const graph of graphsOf(file)) {
      const tree = buildTree(graph);
      for (const scene of [new LayoutSession(graph, false).layout(null), compose(graph, tree, new Set(tree.groups.keys()))]) {
        const before = boxesCrossed(straight(scene));
        const after = boxesCrossed(scene);
        tally.before += before.edges + before.wires;
        tally.after += after.edges + after.wires;
        tally.lines += scene.edges.length + scene.wires.length;
        expect.soft(after, graph.id).toEqual({ edges: 0, wires: 0 });
      }
    }
  });

  test("without the routing, many would", () => {
    expect(tally.before).toBeGreaterThan(1000);
  });
});

describe("a way through the room", () => {
  test("goes straight where nothing is in the way", () => {
    expect(new Room([{ x: 200, y: 0, w: 50, h: 20 }], 300, 300).route(10, 10, 10, 200, true)).toEqual([10, 10, 10, 200]);
  });

  test("goes around a box on its nearer side, and keeps its distance", () => {
    const way = new Room([{ x: 0, y: 100, w: 60, h: 20 }], 300, 300).route(50, 0, 50, 300, true)!;
    expect(way).toEqual([50, 0, 65, 95, 65, 125, 50, 300]);
  });

  test("has none to a point inside a box", () => {
    expect(new Room([{ x: 0, y: 100, w: 60, h: 20 }], 300, 300).route(50, 0, 30, 110, true)).toBeNull();
  });

  test("has its corners rounded, and keeps its ends", () => {
    const line = rounded([0, 0, 0, 40, 40, 40]);
    expect(line.slice(0, 2)).toEqual([0, 0]);
    expect(line.slice(-2)).toEqual([40, 40]);
    expect(line.length).toBeGreaterThan(8);
  });
});
