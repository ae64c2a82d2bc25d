import { batch, computed, effect, signal } from "@preact/signals";
import type { CodePayload, Payloads, StageName } from "../generated/contract";
import { LinkIndex } from "../link";
import { parseEntity, slug } from "../link/entity";
import { Artifacts, fromRecording, type Loaded } from "../transport/artifacts";
import { emptyRun, findArtifact, reduce, RUN_STAGES, stageOf, STAGES, type Event, type RunState } from "./events";
import { NOWHERE, type Place } from "./url";

export const run = signal<RunState>(emptyRun(""));
export const artifacts = signal<Artifacts>(fromRecording({}));
export const place = signal<Place>(NOWHERE);
export const connected = signal(true);
/** The text in the editor, which may be newer than the run's. */
export const source = signal("");
export const hoverLine = signal<number | null>(null);

const links = new LinkIndex();
let linksOf = "";
const linksVersion = signal(0);

export function show(next: Partial<Place>): void {
  place.value = { ...place.value, ...next };
}

/** Empties the page for another run. What the address asks for is kept when `keepPlace` says so. */
export function openRun(id: string, from: Artifacts, keepPlace: boolean): void {
  batch(() => {
    run.value = emptyRun(id, "queued");
    artifacts.value = from;
    connected.value = true;
    if (!keepPlace) place.value = { ...NOWHERE, stage: place.value.stage, tab: place.value.tab };
  });
}

export function receive(events: readonly Event[]): void {
  let next = run.value;
  for (const event of events) next = reduce(next, event);
  run.value = next;
}

export const compile = computed<string | null>(() => {
  const known = run.value.compiles;
  const asked = place.value.compile;
  return known.find((made) => made.id === asked)?.id ?? known[0]?.id ?? null;
});

/** The stage on show: the chosen one; else one that failed; else the partition, which says most; else the last that has something to show. */
export const stage = computed<StageName>(() => {
  const chosen = place.value.stage;
  if (chosen) return chosen;
  const failed = STAGES.find((name) => stageOf(run.value, compile.value, name).failure);
  if (failed) return failed;
  const state = (name: StageName): string => stageOf(run.value, compile.value, name).status;
  if (findArtifact(stageOf(run.value, compile.value, "partition"), "partition")) return "partition";
  const shown = STAGES.filter((name) => !RUN_STAGES.has(name) && ["ok", "changed", "unchanged"].includes(state(name)));
  return shown.includes("joint") ? "joint" : (shown.at(-1) ?? "source");
});

export const stageState = computed(() => stageOf(run.value, compile.value, stage.value));

/** A payload by stage, kind and, where several exist, graph; undefined until it is there. */
export function payload<K extends keyof Payloads>(
  of: StageName,
  kind: K,
  graph?: string | null,
  name?: string,
): Loaded<Payloads[K]> | null {
  const made = findArtifact(stageOf(run.value, compile.value, of), kind, graph, name);
  return made ? artifacts.value.get<K>({ ...made.ref, kind }).value : null;
}

export function ready<T>(loaded: Loaded<T> | null): T | null {
  return loaded?.state === "ready" ? loaded.value : null;
}

effect(() => {
  // Links of every compile are read as they come: a selection reaches through all of them.
  const id = run.value.id;
  let fresh = false;
  if (id !== linksOf) {
    linksOf = id;
    links.clear();
    fresh = true;
  }
  for (const state of Object.values(run.value.stages)) {
    for (const made of state.artifacts) {
      if (made.kind !== "links") continue;
      const loaded = artifacts.value.get<"links">({ ...made.ref, kind: "links" }).value;
      if (loaded.state === "ready" && links.add(made.ref.hash, loaded.value)) fresh = true;
    }
  }
  if (fresh) linksVersion.value = linksVersion.peek() + 1;
});

/** The selected entity's id: what the address says, a line as `line/18`. */
export const selected = computed<string | null>(() => {
  const { node, line } = place.value;
  return node ?? (line === null ? null : `line/${line}`);
});

export const closure = computed<ReadonlySet<string>>(() => {
  void linksVersion.value;
  return selected.value === null ? new Set<string>() : links.closure(selected.value);
});

/** Source lines of the selection. */
export const selectedLines = computed<ReadonlySet<number>>(() => {
  const lines = new Set<number>();
  for (const id of closure.value) {
    const entity = id.startsWith("line/") ? parseEntity(id) : null;
    if (entity?.line) lines.add(entity.line);
  }
  return lines;
});

/** Lines of the source that anything was made from; null until links are there. A derived run has those of its question. */
export const linkedLines = computed<ReadonlySet<number> | null>(() => {
  void linksVersion.value;
  const lines = new Set(links.lines());
  for (const id of run.value.request?.question?.strings ?? []) {
    const line = id.startsWith("line/") ? parseEntity(id)?.line : null;
    if (line) lines.add(line);
  }
  return lines.size ? lines : null;
});

export function linkIndex(): LinkIndex {
  void linksVersion.value;
  return links;
}

export function select(id: string | null): void {
  if (id === null) {
    show({ node: null, line: null });
    return;
  }
  const entity = parseEntity(id);
  if (entity?.line) show({ line: entity.line, node: null });
  else show({ node: id, line: null });
}

/**
 * Goes to where an entity is at home, and selects it. What is no entity of a graph, such as `break/2`, is at home in a
 * table of its `stage`: there its line is selected.
 */
export function visit(id: string, at: StageName | null = null, line: number | null = null): void {
  const entity = parseEntity(id);
  if (!entity && at) {
    const tab = id.startsWith("break/") ? "breaks" : id.startsWith("recompile/") ? "recompiles" : null;
    show({ stage: at, tab, graph: null, pass: null, node: null, line });
    return;
  }
  if (!entity || entity.stage === "source") {
    select(id);
    return;
  }
  const home = STAGES.find((name) => name === entity.stage);
  batch(() => {
    select(id);
    if (home) show({ stage: home, graph: entity.graph, compile: entity.compile, pass: null, tab: null });
  });
}

/** Graphs of a compile that can be told apart in a stage, forward first. */
export function graphsOf(name: StageName, kind: string): string[] {
  const order = ["dynamo", "joint", "inference", "forward", "backward"];
  const found = new Set<string>();
  for (const made of stageOf(run.value, compile.value, name).artifacts) {
    if (made.kind === kind && made.graph) found.add(made.graph);
  }
  return [...found].toSorted((a, b) => order.indexOf(a) - order.indexOf(b));
}

export const entityPrefix = (name: StageName, graph: string): string =>
  `${slug(compile.value ?? "")}/${name}/${graph}`;

export function codeMarks(code: CodePayload): Map<number, string[]> {
  const marks = new Map<number, string[]>();
  code.marks.line.forEach((line, i) => {
    const held = marks.get(line);
    const entity = code.strings[code.marks.entity[i]!]!;
    if (held) held.push(entity);
    else marks.set(line, [entity]);
  });
  return marks;
}
