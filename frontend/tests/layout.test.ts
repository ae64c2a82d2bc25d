import { describe, expect, test } from "vitest";
import { buildTree, openFirst } from "../src/graph/fold/tree";
import { compose } from "../src/graph/layout/compose";
import { rankItems, settle } from "../src/graph/layout/rows";
import type { Box, Scene } from "../src/graph/layout/scene";
import type { GraphModel } from "../src/graph/model/graph";
import { LayoutSession } from "../src/graph/worker/session";
import { graph, stack } from "./make";

function everything(model: GraphModel): Scene {
  const tree = buildTree(model);
  return compose(model, tree, new Set(tree.groups.keys()));
}

const box = (scene: Scene, key: string): Box => scene.boxes.find((one) => one.key === key)!;
const overlap = (a: Box, b: Box): boolean => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;

function siblingsApart(scene: Scene): void {
  const closed = scene.boxes.filter((one) => !one.open);
  for (const [i, a] of closed.entries()) {
    for (const b of closed.slice(i + 1)) expect(overlap(a, b), `${a.key} on ${b.key}`).toBe(false);
  }
}

describe("layout", () => {
  test.each([1, 4, 9, 40])("boxes of %i layers stand apart, folded and all open", (layers) => {
    const model = graph(stack(layers));
    siblingsApart(everything(model));
    siblingsApart(new LayoutSession(model, false).layout(null));
  });

  test("forward flows down, backward flows up", () => {
    const model = graph(stack(5));
    const scene = everything(model);
    for (const edge of scene.edges) {
      const from = scene.boxes[edge.from]!;
      const to = scene.boxes[edge.to]!;
      if (edge.backward) expect(from.y).toBeGreaterThan(to.y);
      else expect(from.y).toBeLessThan(to.y);
    }
  });

  test("a module's two halves share their rows, and so do a node and its gradient", () => {
    const scene = everything(graph(stack(5)));
    for (let i = 0; i < 5; i++) {
      const forward = box(scene, `f:layers.${i}`);
      const backward = box(scene, `b:layers.${i}`);
      expect({ y: backward.y, h: backward.h }).toEqual({ y: forward.y, h: forward.h });
      expect(box(scene, `0_0/joint/joint/le_${i}`).y).toBe(box(scene, `0_0/joint/joint/relu_${i}`).y);
    }
  });

  test("children lie inside their frame", () => {
    const scene = everything(graph(stack(7)));
    for (const frame of scene.boxes.filter((one) => one.open)) {
      for (const inner of scene.boxes) {
        if (inner === frame || inner.backward !== frame.backward || inner.depth !== frame.depth + 1) continue;
        if (!(inner.kind === "node" ? inner.group === frame.group : inner.group.startsWith(`${frame.group}.`))) continue;
        expect(inner.x).toBeGreaterThanOrEqual(frame.x);
        expect(inner.y).toBeGreaterThanOrEqual(frame.y);
        expect(inner.x + inner.w).toBeLessThanOrEqual(frame.x + frame.w);
        expect(inner.y + inner.h).toBeLessThanOrEqual(frame.y + frame.h);
      }
    }
  });

  test("the halves do not touch, and what crosses is a wire with its bytes", () => {
    const scene = everything(graph(stack(3)));
    const right = Math.max(...scene.boxes.filter((one) => !one.backward).map((one) => one.x + one.w));
    const left = Math.min(...scene.boxes.filter((one) => one.backward).map((one) => one.x));
    expect(left - right).toBeGreaterThan(100);
    expect(scene.wires.map(({ bytes, saved, nodes }) => ({ bytes, saved, nodes: nodes.length }))).toEqual(
      Array.from({ length: 3 }, () => ({ bytes: 64, saved: true, nodes: 1 })),
    );
  });

  test("wires of closed groups are bundled, a tensor counted once", () => {
    const model = graph([
      { name: "a", module: "m", bytes: 8, roles: "saved" },
      { name: "b", inputs: ["a"], module: "m", bytes: 16, roles: "saved" },
      { name: "c", inputs: ["a", "b"], module: "n", backward: true },
      { name: "d", inputs: ["a", "c"], module: "n", backward: true },
    ]);
    const tree = buildTree(model);
    const scene = compose(model, tree, new Set([tree.root.key]));
    expect(scene.wires.map(({ bytes, nodes }) => ({ bytes, nodes }))).toEqual([{ bytes: 24, nodes: [0, 1] }]);
  });

  test("two modules that feed each other do not hang or overlap", () => {
    const model = graph([
      { name: "a", module: "m" },
      { name: "b", inputs: ["a"], module: "n" },
      { name: "c", inputs: ["b"], module: "m" },
      { name: "d", inputs: ["c"], module: "n" },
    ]);
    siblingsApart(everything(model));
  });

  test("20,000 nodes are laid out folded", () => {
    const scene = new LayoutSession(graph(stack(5000)), false).layout(null);
    expect(scene.boxes.filter((one) => !one.open).length).toBeLessThan(20);
  });
});

describe("rows", () => {
  test("the rank is the longest path; what has no input is pulled down to its use", () => {
    expect([...rankItems(4, [[0, 1], [1, 3], [2, 3]])]).toEqual([0, 1, 1, 2]);
  });

  test("settling keeps order and distance and moves as little as it can", () => {
    const x = settle([0, 1, 2], Float64Array.from([10, 10, 500]), Float64Array.from([20, 20, 20]));
    expect([...x]).toEqual([-8, 28, 500]);
  });
});

describe("first view", () => {
  test("a small graph is all open, a large one within its budget", () => {
    const small = buildTree(graph(stack(3)));
    expect(openFirst(small, 14, 60)).toEqual(new Set(small.groups.keys()));
    const large = graph(stack(5));
    const tree = buildTree(large);
    expect(openFirst(tree, 500, 4).size).toBe(1);
  });
});
