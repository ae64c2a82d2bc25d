import { describe, expect, test } from "vitest";
import { changes } from "../src/graph/overlay/changes";
import { longestChain, overlay, overlayOf, SHADES, type Facts } from "../src/graph/overlay/overlay";
import { graph, type Spec } from "./make";

const FACTS: Facts = {
  kernels: null,
  changes: null,
  bytes: (value) => `${value} B`,
  seconds: (value) => `${value} s`,
  words: { forward: "fw", backward: "bw", saved: "saved", recomputed: "again", once: "once", added: "new", changed: "rewritten", mixed: "several", chain: "chain" },
};

/** Each node in a box of its own, but for those that lie in the same closed group. */
const boxes = (places: readonly number[]) => ({
  boxes: Array.from({ length: Math.max(...places) + 1 }, () => ({ open: false })),
  shown: Int32Array.from(places),
});

const LINE: readonly Spec[] = [
  { name: "x", op: "placeholder" },
  { name: "mm", inputs: ["x"], bytes: 64 },
  { name: "relu", inputs: ["mm"], bytes: 16, roles: "saved" },
  { name: "sum", inputs: ["relu"], bytes: 8, roles: "recomputed", backward: true },
];

describe("overlays", () => {
  test("an unknown name is none", () => {
    expect(overlayOf("bytes")).toBe("bytes");
    expect(overlayOf("nonsense")).toBeNull();
    expect(overlayOf(null)).toBeNull();
  });

  test("bytes: each shade is half of the next, a group is the sum, and nothing is said of what has none", () => {
    const { tints, legend } = overlay("bytes", graph(LINE), boxes([0, 1, 2, 2]), FACTS);
    expect(tints).toEqual([null, { shade: SHADES - 1, tag: "64 B" }, { shade: 3, tag: "24 B" }]);
    expect(legend).toEqual([
      { shade: 3, tag: "≤ 32 B" },
      { shade: 4, tag: "≤ 64 B" },
    ]);
  });

  test("time: a kernel of two nodes in one box counts once, and apart shows its whole time at each", () => {
    const own = [[], [["k", 2]], [["k", 2]], [["other", 1]]] as const;
    const kernels = (node: number): ReadonlyMap<string, number> => new Map(own[node]!);
    const tags = (places: readonly number[]) => overlay("time", graph(LINE), boxes(places), { ...FACTS, kernels }).tints.map((tint) => tint?.tag ?? null);
    expect(tags([0, 1, 1, 2])).toEqual([null, "2 s", "1 s"]);
    expect(tags([0, 1, 2, 3])).toEqual([null, "2 s", "2 s", "1 s"]);
    expect(overlay("time", graph(LINE), boxes([0, 1, 2, 3]), FACTS).legend).toEqual([]);
  });

  test("kinds: each has a shade of its own in a fixed order, and a group of two kinds says so", () => {
    const apart = overlay("recompute", graph(LINE), boxes([0, 1, 2, 3]), FACTS);
    expect(apart.tints.map((tint) => tint!.tag)).toEqual(["once", "once", "saved", "again"]);
    expect(apart.legend.map(({ tag, shade }) => `${tag} ${shade}`)).toEqual(["once 0", "saved 2", "again 4"]);
    const phases = overlay("phase", graph(LINE), boxes([0, 0, 0, 0]), FACTS);
    expect(phases.tints.map((tint) => tint!.tag)).toEqual(["several"]);
  });

  test("what changed: new and rewritten, and no word of the rest", () => {
    const facts = { ...FACTS, changes: { added: new Set([1]), changed: new Set([3]) } };
    expect(overlay("changed", graph(LINE), boxes([0, 1, 2, 3]), facts).tints.map((tint) => tint?.tag ?? null)).toEqual([null, "new", null, "rewritten"]);
    expect(overlay("changed", graph(LINE), boxes([0, 1, 2, 3]), FACTS).legend).toEqual([]);
  });

  test("the critical path is the heaviest chain, numbered, with its edges", () => {
    const fork = graph([
      { name: "x", op: "placeholder" },
      { name: "short", inputs: ["x"] },
      { name: "long", inputs: ["x"] },
      { name: "longer", inputs: ["long"] },
      { name: "join", inputs: ["short", "longer"] },
      { name: "output", op: "output", inputs: ["join"] },
    ]);
    expect(longestChain(fork, (node) => (node === 0 || node === 5 ? 0 : 1))).toEqual([2, 3, 4]);
    expect(longestChain(fork, (node) => [0, 9, 1, 1, 1, 0][node]!)).toEqual([1, 4]);
    const { tints, chain } = overlay("critical", fork, boxes([0, 1, 2, 3, 4, 5]), FACTS);
    expect(tints.map((tint) => tint?.tag ?? null)).toEqual([null, null, "1", "2", "3", null]);
    expect([...chain]).toEqual([2 * 6 + 3, 3 * 6 + 4]);
  });
});

test("a step's changes: the same by name and operator, rewritten by kin, new, and gone; outputs do not count", () => {
  const before = graph([{ name: "x", op: "placeholder" }, { name: "mul", inputs: ["x"] }, { name: "div", inputs: ["mul"] }, { name: "output", op: "output", inputs: ["div"] }]);
  const after = graph([{ name: "x", op: "placeholder" }, { name: "fma", inputs: ["x"] }, { name: "abs", inputs: ["fma"] }, { name: "output", op: "output", inputs: ["abs"] }]);
  const kin: Record<number, readonly number[]> = { 0: [0], 1: [1], 2: [], 3: [3] };
  const found = changes(before, after, (node) => kin[node]!);
  expect([...found.added]).toEqual([2]);
  expect([...found.changed]).toEqual([1]);
  expect(found.gone).toEqual([2]);
  expect(found.same).toBe(1);
});
