import { describe, expect, test } from "vitest";
import type { Scene } from "../src/graph/layout/scene";
import { near } from "../src/graph/model/near";
import { firstView } from "../src/graph/render/camera";
import { firstBeside, lookAt, minimap } from "../src/graph/render/minimap";

/** a → b → c → d, and a wire a → e. */
const scene = {
  boxes: ["a", "b", "c", "d", "e"].map((key) => ({ key })),
  edges: [
    { from: 0, to: 1 },
    { from: 1, to: 2 },
    { from: 2, to: 3 },
  ],
  wires: [{ from: 0, to: 4 }],
} as unknown as Scene;

describe("neighbours", () => {
  test("lie along data flow, either way, as many steps as asked", () => {
    const around = [0, 1, 2].map((hops) => [...near(scene, new Set(["b"]), hops)!].toSorted());
    expect(around).toEqual([["b"], ["a", "b", "c"], ["a", "b", "c", "d", "e"]]);
  });

  test("of nothing in the picture are none", () => {
    expect(near(scene, new Set(["z"]), 2)).toBeNull();
  });
});

describe("the small map", () => {
  const picture = { width: 3000, height: 1200 };
  const view = { width: 1350, height: 500 };

  test("is there only while a part of the picture is out of view", () => {
    expect(minimap(picture, { x: 0, y: 0, k: 0.25 }, view)).toBeNull();
    expect(minimap(picture, { x: 0, y: 0, k: 1 }, view)).toEqual({ x: 10, y: 430, w: 150, h: 60, k: 0.05 });
  });

  test("brings the clicked place to the middle of the view", () => {
    const map = minimap(picture, { x: 0, y: 0, k: 1 }, view)!;
    const camera = lookAt(map, { x: 0, y: 0, k: 1 }, view, map.x + 100, map.y + 30);
    expect(camera).toEqual({ x: 675 - 2000, y: 250 - 600, k: 1 });
  });

  test("stands beside the picture at first, not over it", () => {
    const tall = { width: 3000, height: 2400 };
    const camera = firstBeside(tall, view);
    const map = minimap(tall, camera, view)!;
    expect(camera.x).toBeGreaterThanOrEqual(map.x + map.w);
    expect(camera.x + tall.width * camera.k).toBeLessThanOrEqual(view.width);
    expect(minimap(picture, firstBeside(picture, view), view)).toBeNull();
    const small = { width: 300, height: 200 };
    expect(firstBeside(small, view)).toEqual(firstView(small, view));
  });
});
