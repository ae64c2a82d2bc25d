import { beforeEach, describe, expect, test, vi } from "vitest";
import type { MemoryTimelinePayload } from "../src/generated/contract";
import type { Event } from "../src/state/events";
import { links, payload, type Spec } from "./make";

// The page's own modules look at the document that they are loaded into.
vi.stubGlobal("location", { pathname: "/", search: "", hash: "", protocol: "http:" });
vi.stubGlobal("navigator", { language: "en", platform: "" });
vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener: () => undefined }));
vi.stubGlobal("document", { documentElement: { dataset: {}, lang: "en" } });
vi.stubGlobal("localStorage", { getItem: () => null, setItem: () => undefined });

const { told, walkOf } = await import("../src/app/steps");
const { language } = await import("../src/messages");
const { openRun, place, receive, show } = await import("../src/state/store");
const { NOWHERE } = await import("../src/state/url");
const { fromRecording } = await import("../src/transport/artifacts");

const specs = (...names: readonly string[]): Spec[] => names.map((name, i) => ({ name, inputs: i ? [names[i - 1]!] : [], ...(i ? {} : { op: "placeholder" }) }));
const step = (name: string, before: string, after: string) => ({
  name, changed: before !== after, before, after, diff: "", added: [], removed: [], nodes_before: 0, nodes_after: 0, seconds: null,
});
const TIMELINE = {
  format: "timeline/1",
  id: "0_0/memory/dry_run",
  series: "dry_run",
  strings: ["", "buf0 = empty((4,))", "buf0", "del buf0"],
  blocks: { bytes: [2048], start: [0], end: [1], name: [2], line: [0], entity: [0], kind: [0], module: [0] },
  points: { live: [2048, 0], label: [1, 3], entity: [0, 0], line: [0, 0], phase: [0, 0], device: [] },
} as unknown as MemoryTimelinePayload;

const STORED = {
  a: payload("0_0/joint/joint", specs("x", "mm", "relu")),
  b: payload("0_0/joint_passes/joint", specs("x", "mm", "gelu", "neg")),
  mid: payload("0_0/joint_passes/joint", specs("x", "mm", "relu")),
  p: { format: "passes/1", id: "", unchanged: 0, steps: [step("fold", "mid", "mid"), step("rewrite", "mid", "b")] },
  t: TIMELINE,
  l: links([["mm", "mm"], ["x", "x"], ["relu", "gelu"]].map(([from, to]): [string, string] => [`0_0/joint/joint/${from}`, `0_0/joint_passes/joint/${to}`])),
};
const made = (seq: number, stage: string, kind: string, hash: string, graph: string | null, name = kind): Event =>
  ({ v: 1, run: "r", seq, t: 0, ...(stage === "memory" ? {} : { compile: "0/0" }), stage, type: "artifact", name, graph, artifact: { hash, kind, format: `${kind}/1`, bytes: 1 } }) as unknown as Event;

beforeEach(async () => {
  language.value = "en";
  openRun("r", fromRecording(STORED), false);
  place.value = NOWHERE;
  receive([
    { v: 1, run: "r", seq: 1, t: 0, type: "compile_started", compile: "0/0", function: "f", file: "snippet.py", line: 1 } as unknown as Event,
    made(2, "joint", "graph", "a", "joint"),
    made(3, "joint_passes", "graph", "b", "joint"),
    made(4, "joint_passes", "passes", "p", "joint"),
    made(5, "joint_passes", "links", "l", null),
    made(6, "memory", "timeline", "t", null, "dry_run"),
  ]);
  // The first question asks for what it needs; the answer comes a little later, as from a server.
  for (const stage of ["joint", "joint_passes"] as const) {
    for (const pass of [null, 0, 1]) {
      show({ stage, pass });
      told("pass");
      told("stage");
      told("point");
      await Promise.resolve();
    }
  }
  show(NOWHERE);
});

describe("what a step did, in words", () => {
  test("a stage says what it is about, and what it changed since the one before", () => {
    show({ stage: "joint_passes" });
    expect(told("stage")).toBe("Passes that look at forward and backward together. Since joint: 1 nodes new, 1 rewritten, 0 gone, 2 the same.");
    show({ stage: "joint" });
    expect(told("stage")).toBe("AOTAutograd traces forward and backward into one graph of plain operators without mutation.");
  });

  test("only passes that changed something are steps, and each is named", () => {
    const { count, at, go } = walkOf("pass");
    expect([count, at]).toEqual([1, -1]);
    go(0);
    expect(place.value).toMatchObject({ stage: "joint_passes", pass: 1, overlay: "changed" });
    expect(told("pass")).toBe("rewrite: 2 nodes new, 0 rewritten, 1 gone, 2 the same.");
    show({ pass: 0 });
    expect(told("pass")).toBe("The graph is the one of fold: 3 nodes, none changed.");
  });

  test("a point says what it allocates and frees, with sizes", () => {
    expect(told("point")).toBe("The memory of one step, one allocation or release at a time.");
    show({ point: 0 });
    expect(told("point")).toBe("buf0 · allocates buf0 (2 KiB) · 2 KiB alive");
    show({ point: 1 });
    expect(told("point")).toBe("del buf0 · frees buf0 (2 KiB) · 0 B alive");
  });

  test("in Chinese, too", () => {
    language.value = "zh";
    show({ stage: "joint_passes", pass: 1 });
    expect(told("pass")).toMatch(/^rewrite：.*2/);
  });
});
