import { describe, expect, test } from "vitest";
import { foldRuns } from "../src/graph/fold/runs";
import { buildTree } from "../src/graph/fold/tree";
import { mergeHalves } from "../src/graph/model/graph";
import { assignModules, tidyPath } from "../src/graph/model/modules";
import { graph, stack } from "./make";

describe("fold", () => {
  test("six equal layers fold into one, five do not", () => {
    const paths = (layers: number): string[] => {
      const model = graph(stack(layers));
      return [...new Set(foldRuns(model, assignModules(model)))];
    };
    expect(paths(5)).toEqual(["", "layers.0", "layers.1", "layers.2", "layers.3", "layers.4"]);
    expect(paths(6)).toEqual(["", ...[0, 1, 2, 3, 4, 5].map((i) => `layers.[0–5] ×6.${i}`)]);
  });

  test("a layer that differs stays out of the run", () => {
    const specs = stack(8);
    specs.splice(1, 0, { name: "extra", inputs: ["x"], module: "layers.0" });
    const model = graph(specs);
    const paths = new Set(foldRuns(model, assignModules(model)));
    expect(paths.has("layers.0")).toBe(true);
    expect(paths.has("layers.[1–7] ×7.1")).toBe(true);
  });

  test("what one operator became is one group, named by its gradient, with its gradient's steps", () => {
    const op = { module: "", seq: 7, gradFn: "GeluBackward0" };
    const tree = buildTree(
      graph([
        { name: "view" },
        { name: "mul", inputs: ["view"], ...op },
        { name: "erf", inputs: ["mul"], ...op },
        { name: "mul_1", inputs: ["erf"], ...op },
        { name: "out", inputs: ["mul_1"], module: "down" },
        { name: "exp", inputs: ["mul"], backward: true, twin: "mul", ...op },
      ]),
    );
    const group = tree.root.children.find((child) => child.kind === "op")!;
    expect({ label: group.label, forward: group.forward, backward: group.backward }).toEqual({
      label: "gelu",
      forward: [1, 2, 3],
      backward: [5],
    });
  });

  test("a module of many calls is read by its source lines", () => {
    const specs = Array.from({ length: 30 }, (_, i) => ({ name: `op_${i}`, inputs: i ? [`op_${i - 1}`] : [], line: 10 + Math.floor(i / 10), code: "y = f(x)" }));
    const tree = buildTree(graph(specs));
    expect(tree.root.children.map(({ label, forward }) => [label, forward.length])).toEqual([
      ["10 y = f(x)", 10],
      ["11 y = f(x)", 10],
      ["12 y = f(x)", 10],
    ]);
  });

  test("parameters that the backward does not read are not drawn, unless asked for", () => {
    const model = graph([
      { name: "bias", op: "placeholder", module: "m", roles: "primal parameter" },
      { name: "weight", op: "placeholder", module: "m", roles: "primal parameter" },
      { name: "addmm", inputs: ["bias", "weight"], module: "m" },
      { name: "mm", inputs: ["weight"], backward: true, module: "m" },
    ]);
    expect(buildTree(model).of.map((group) => group !== null)).toEqual([false, true, true, true]);
    expect(buildTree(model, true).of.every((group) => group !== null)).toBe(true);
  });
});

describe("modules", () => {
  test("wrappers are not part of a path", () => {
    expect(["_orig_mod.layers.0", "_orig_mod", "attn.qkv"].map(tidyPath)).toEqual(["layers.0", "", "attn.qkv"]);
  });
});

describe("both halves in one picture", () => {
  const forward = graph(
    [
      { name: "primals_1", op: "placeholder", roles: "primal input", bytes: 8 },
      { name: "mm", inputs: ["primals_1"], seq: 1, bytes: 8 },
      { name: "relu", inputs: ["mm"], seq: 2, bytes: 8 },
    ],
    "0_0/partition/forward",
  );
  const backward = graph(
    [
      { name: "mm", op: "placeholder", backward: true },
      { name: "tangents_1", op: "placeholder", backward: true },
      { name: "relu", inputs: ["mm"], backward: true, seq: 2 },
      { name: "le", inputs: ["relu", "tangents_1"], backward: true, seq: 2 },
      { name: "sum", inputs: ["le"], backward: true, seq: 2, roles: "accumulation" },
    ],
    "0_0/partition/backward",
  );
  const both = mergeHalves(forward, backward);

  test("a backward input is the forward node itself, which is saved", () => {
    expect(both.nodes.map((node) => node.id)).toEqual([
      "0_0/partition/forward/primals_1",
      "0_0/partition/forward/mm",
      "0_0/partition/forward/relu",
      "0_0/partition/backward/tangents_1",
      "0_0/partition/backward/relu",
      "0_0/partition/backward/le",
      "0_0/partition/backward/sum",
    ]);
    expect(both.nodes.map((node) => node.roles.has("saved"))).toEqual([false, true, false, false, false, false, false]);
    const edges = both.source.map((from, i) => [from, both.target[i]]);
    expect(edges).toContainEqual([1, 4]);
  });

  test("a call of both halves runs again; gradients find their twin, sums have none", () => {
    expect(both.nodes.map((node) => node.roles.has("recomputed"))).toEqual([false, false, false, false, true, false, false]);
    expect(both.nodes.slice(4).map((node) => node.twin)).toEqual([2, 2, -1]);
  });
});
