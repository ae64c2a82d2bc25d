import { describe, expect, test } from "vitest";
import { emptyRun, findArtifact, reduce, stageOf, type Event } from "../src/state/events";
import { mergeMemory } from "../src/state/memory";
import { formatPlace, NOWHERE, parsePath, parsePlace } from "../src/state/url";
import { LinkIndex } from "../src/link";
import { parseEntity } from "../src/link/entity";
import { stackBlocks, aliveAt } from "../src/timeline/stack";
import { bytes } from "../src/messages/format";
import type { MemoryTimelinePayload } from "../src/generated/contract";
import { links } from "./make";
import en from "../src/messages/en.json";
import zh from "../src/messages/zh.json";

const event = (seq: number, rest: Record<string, unknown>): Event => ({ v: 1, run: "r", seq, t: seq / 10, ...rest }) as unknown as Event;
const artifact = (seq: number, stage: string, graph: string | null, hash: string, compile: string | undefined = "0/0"): Event =>
  event(seq, { compile, stage, type: "artifact", name: "x", graph, artifact: { hash, kind: "graph", format: "graph/1", bytes: 1 } });

describe("events", () => {
  test("a replayed event changes nothing", () => {
    const one = event(1, { type: "printed", stream: "stdout", text: "hi" });
    const run = reduce(emptyRun("r"), one);
    expect(reduce(run, one)).toBe(run);
  });

  test("a stage of two graphs adds up, and a change in one is a change", () => {
    const run = [
      event(1, { compile: "0/0", stage: "post_grad", type: "stage_started" }),
      event(2, { compile: "0/0", stage: "post_grad", type: "stage_finished", status: "changed", seconds: 1, graph: "forward", facts: { changed: 2 } }),
      event(3, { compile: "0/0", stage: "post_grad", type: "stage_finished", status: "unchanged", seconds: 2, graph: "backward", facts: { changed: 0 } }),
    ].reduce(reduce, emptyRun("r"));
    expect(stageOf(run, "0/0", "post_grad")).toEqual({
      status: "changed",
      seconds: 3,
      facts: { changed: 2 },
      byGraph: { forward: { changed: 2 }, backward: { changed: 0 } },
      artifacts: [],
      failure: null,
      reason: null,
    });
  });

  test("a derived run has the compile that it is about", () => {
    const events = [
      event(1, { type: "run_started", request: { source: "", options: {}, question: { parent: "p", kernel: "1_0/codegen/forward/k" } }, engine: {} }),
      event(2, { compile: "1/0", stage: "codegen", type: "stage_started" }),
      artifact(3, "codegen", "forward", "m", "1/0"),
    ];
    const run = events.reduce(reduce, emptyRun("r"));
    expect(run.compiles.map((one) => one.id)).toEqual(["1/0"]);
    expect(findArtifact(stageOf(run, "1/0", "codegen"), "graph", "forward")?.ref.hash).toBe("m");
  });

  test("what a stage says of the whole run joins what it says of a compile", () => {
    const run = [artifact(1, "dynamo", "dynamo", "a"), artifact(2, "dynamo", null, "b", undefined)].reduce(reduce, emptyRun("r"));
    expect(stageOf(run, "0/0", "dynamo").artifacts.map((made) => made.ref.hash)).toEqual(["a", "b"]);
    expect(findArtifact(stageOf(run, "0/0", "dynamo"), "graph", "dynamo")?.ref.hash).toBe("a");
  });

  test.each([
    ["failed", { cause: { key: "k", params: {} }, error: "E", line: 3, traceback: "" }, 3],
    ["timed_out", { limit_seconds: 5, stage: "joint" }, null],
    ["cancelled", {}, null],
    ["lost", { cause: { key: "k", params: {} } }, null],
  ])("a run that %s says so", (type, body, line) => {
    const run = reduce(emptyRun("r"), event(1, { type, ...body }));
    expect([run.status, run.ending?.line]).toEqual([type, line]);
  });
});

describe("address", () => {
  test("a place comes back as it was", () => {
    const place = { ...NOWHERE, stage: "codegen" as const, compile: "0/0", node: "0_0/codegen/forward/@412", line: 18, point: 3 };
    expect(formatPlace(place)).toBe("#stage=codegen&compile=0/0&node=0_0/codegen/forward/@412&line=18&point=3");
    expect(parsePlace(formatPlace(place))).toEqual(place);
    expect(parsePlace("#stage=nonsense&line=x")).toEqual(NOWHERE);
    const odd = { ...NOWHERE, node: "0_0/codegen/forward/extern_kernels.addmm#3&a=b" };
    expect(parsePlace(formatPlace(odd))).toEqual(odd);
  });

  test("paths of pages", () => {
    expect([parsePath("/"), parsePath("/r/a-1"), parsePath("/embed/x")]).toEqual([
      { run: null, embed: false },
      { run: "a-1", embed: false },
      { run: "x", embed: true },
    ]);
  });
});

describe("links", () => {
  const index = new LinkIndex();
  index.add("h", links([["line/1", "0_0/joint/joint/a"], ["line/2", "0_0/joint/joint/b"]]));
  index.add("i", links([["0_0/joint/joint/a", "0_0/codegen/forward/k"], ["0_0/joint/joint/b", "0_0/codegen/forward/k"]]));

  test("the closure goes up, and down, and never down again from above", () => {
    expect([...index.closure("0_0/joint/joint/a")].toSorted()).toEqual(["0_0/codegen/forward/k", "0_0/joint/joint/a", "line/1"]);
    expect(index.closure("0_0/codegen/forward/k").size).toBe(5);
    expect([...index.closure("line/2")].toSorted()).toEqual(["0_0/codegen/forward/k", "0_0/joint/joint/b", "line/2"]);
  });

  test("an artifact counts once; what is unknown is only itself", () => {
    expect(index.add("h", links([]))).toBe(false);
    expect([...index.closure("nowhere/x/y/z")]).toEqual(["nowhere/x/y/z"]);
    expect([...index.lines()]).toEqual([1, 2]);
  });

  test("ids come apart", () => {
    expect(parseEntity("0_0/codegen/forward/@412")).toEqual({
      id: "0_0/codegen/forward/@412",
      compile: "0/0",
      stage: "codegen",
      graph: "forward",
      name: "@412",
      line: null,
      codeLine: 412,
    });
    expect(parseEntity("line/18")?.line).toBe(18);
    expect(parseEntity("nonsense")).toBeNull();
  });
});

describe("timeline", () => {
  const timeline = {
    points: { label: [0, 0, 0, 0], entity: [0, 0, 0, 0], line: [0, 0, 0, 0], phase: [0, 0, 1, 1], live: [4, 6, 4, 3] },
    blocks: { name: [0, 0, 0], bytes: [4, 2, 3], start: [0, 1, 3], end: [3, 2, -1], kind: [0, 0, 0], entity: [0, 0, 0], line: [0, 0, 0], module: [0, 0, 0] },
    strings: [""],
  } as unknown as MemoryTimelinePayload;

  test("slabs of a point add up to its live bytes, without gaps", () => {
    const slabs = stackBlocks(timeline);
    timeline.points.live.forEach((live, point) => {
      const here = slabs.filter((slab) => slab.from <= point && point < slab.to).toSorted((a, b) => a.base - b.base);
      let base = 0;
      for (const slab of here) {
        expect(slab.base).toBe(base);
        base += timeline.blocks.bytes[slab.block]!;
      }
      expect(base).toBe(live);
    });
  });

  test("alive at a point, largest first", () => {
    expect([0, 1, 2, 3].map((point) => aliveAt(timeline, point))).toEqual([[0], [0, 1], [0], [2]]);
  });
});

describe("words", () => {
  test("both languages say everything, with the same parameters", () => {
    const holes = (text: string): string[] => [...text.matchAll(/\{\w+\}/g)].map((hit) => hit[0]).toSorted();
    expect(Object.keys(zh)).toEqual(Object.keys(en));
    for (const [key, text] of Object.entries(en)) expect([key, holes(zh[key as keyof typeof zh])]).toEqual([key, holes(text)]);
  });

  test("bytes in three figures", () => {
    expect([0, 512, 1024, 33_000, 1_048_576, 5e9].map(bytes)).toEqual(["0 B", "512 B", "1 KiB", "32.2 KiB", "1 MiB", "4.66 GiB"]);
  });
});

describe("memory figures", () => {
  const saved = { partition_bytes: null, partition_activation_bytes: null, kept_tensor_bytes: null, kept_storages_bytes: null, eager_storages_bytes: null };
  const definition = { key: "memory.definition", params: {} };
  const beyond = { planned_peak: 8, workspace: 0, outside: 0, bodies: 0 };
  const note = { key: "memory.note", params: {} };

  test("adds what is told later, and unknowns erase nothing", () => {
    const capture = { format: "memory/1" as const, peaks: { dry_run: 8, plan: 8 }, saved: { ...saved, partition_bytes: 5 }, beyond_plan: beyond, definition, limit_bytes: null, notes: [note] };
    const native = { format: "memory/1" as const, peaks: { dry_run: 8, eager: 9 }, saved: { ...saved, eager_storages_bytes: 7 }, beyond_plan: null, definition, limit_bytes: null, notes: [note] };
    expect(mergeMemory(capture, native)).toEqual({
      format: "memory/1",
      peaks: { dry_run: 8, plan: 8, eager: 9 },
      saved: { ...saved, partition_bytes: 5, eager_storages_bytes: 7 },
      beyond_plan: beyond,
      definition,
      limit_bytes: null,
      notes: [note],
    });
  });
});
