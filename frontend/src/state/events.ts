import type { ArtifactRef, Body, Engine, Envelope, Finding, Message, RunRequest, StageName } from "../generated/contract";

/** An event as it comes over the wire: envelope and body in one flat object. */
export type Event = Envelope & Body;

export const STAGES: readonly StageName[] = [
  "source",
  "dynamo",
  "pre_grad",
  "joint",
  "joint_passes",
  "partition",
  "post_grad",
  "schedule",
  "fusion",
  "codegen",
  "memory",
  "execute",
  "cache",
];

/** Stages of the whole run; the others belong to a compile. */
export const RUN_STAGES: ReadonlySet<StageName> = new Set<StageName>(["source", "memory", "execute", "cache"]);

export type StageStatus = "waiting" | "running" | "ok" | "changed" | "unchanged" | "failed" | "skipped";
export type Facts = Record<string, number | string | boolean | null>;

export interface Artifact {
  readonly name: string;
  readonly graph: string | null;
  readonly kind: string;
  readonly ref: ArtifactRef;
}

export interface StageState {
  readonly status: StageStatus;
  readonly seconds: number | null;
  readonly facts: Facts;
  readonly byGraph: Readonly<Record<string, Facts>>;
  readonly artifacts: readonly Artifact[];
  readonly failure: { cause: Message; error: string; line: number | null; traceback: string } | null;
  readonly reason: Message | null;
}

export interface Compile {
  readonly id: string;
  readonly function: string;
  readonly file: string;
  readonly line: number;
  readonly reason: string | null;
}

export type RunStatus = "idle" | "queued" | "running" | "finished" | "failed" | "timed_out" | "cancelled" | "lost";

export interface RunState {
  readonly id: string;
  readonly status: RunStatus;
  readonly seq: number;
  readonly t: number;
  readonly request: RunRequest | null;
  readonly engine: Engine | null;
  readonly phase: "capture" | "native" | "kernel" | null;
  readonly captureEnd: number | null;
  readonly compiles: readonly Compile[];
  readonly stages: Readonly<Record<string, StageState>>;
  readonly findings: readonly (Finding & { readonly stage: StageName | null; readonly compile: string | null })[];
  readonly printed: readonly { stream: "stdout" | "stderr"; text: string }[];
  readonly cutAt: number | null;
  readonly summary: Readonly<Record<string, unknown>> | null;
  readonly ending: Ending | null;
}

export interface Ending {
  readonly cause: Message | null;
  readonly error: string;
  readonly line: number | null;
  readonly traceback: string;
  readonly limitSeconds: number | null;
  readonly stage: StageName | null;
}

export const EMPTY_STAGE: StageState = {
  status: "waiting",
  seconds: null,
  facts: {},
  byGraph: {},
  artifacts: [],
  failure: null,
  reason: null,
};

export function emptyRun(id: string, status: RunStatus = "idle"): RunState {
  return {
    id,
    status,
    seq: 0,
    t: 0,
    request: null,
    engine: null,
    phase: null,
    captureEnd: null,
    compiles: [],
    stages: {},
    findings: [],
    printed: [],
    cutAt: null,
    summary: null,
    ending: null,
  };
}

export const stageKey = (compile: string | null, stage: StageName): string => `${compile ?? ""}:${stage}`;

const NO_ENDING: Ending = { cause: null, error: "", line: null, traceback: "", limitSeconds: null, stage: null };

const TERMINAL: ReadonlySet<Event["type"]> = new Set(["finished", "failed", "timed_out", "cancelled", "lost"]);

/** When a run has ended, nothing in it is at work any more. */
function stopped(stages: RunState["stages"]): RunState["stages"] {
  const entries = Object.entries(stages).map(([key, state]): [string, StageState] => [
    key,
    state.status === "running" ? { ...state, status: "skipped" } : state,
  ]);
  return Object.fromEntries(entries);
}

/** The run after one more event. An event that was seen already changes nothing, so a stream may be replayed. */
export function reduce(run: RunState, event: Event): RunState {
  if (event.seq <= run.seq) return run;
  const next = { ...run, seq: event.seq, t: event.t, stages: TERMINAL.has(event.type) ? stopped(run.stages) : run.stages };
  const compile = event.compile ?? null;
  const stage = event.stage ?? null;
  const update = (change: (state: StageState) => Partial<StageState>): RunState => {
    if (stage === null) return next;
    const key = stageKey(compile, stage);
    const before = run.stages[key] ?? EMPTY_STAGE;
    return { ...next, stages: { ...run.stages, [key]: { ...before, ...change(before) } } };
  };
  switch (event.type) {
    case "run_started":
      return { ...next, status: "running", request: event.request, engine: event.engine };
    case "phase_started":
      return { ...next, phase: event.phase, captureEnd: event.phase === "native" ? event.t : run.captureEnd };
    case "compile_started": {
      if (compile === null) return next;
      const made: Compile = {
        id: compile,
        function: event.function,
        file: event.file,
        line: event.line,
        reason: event.reason,
      };
      return { ...next, compiles: [...run.compiles.filter((known) => known.id !== compile), made] };
    }
    case "stage_started": {
      const started = update((state) => ({ status: state.status === "waiting" ? "running" : state.status }));
      // A derived run says more about a compile of its parent, and starts none.
      if (compile === null || !run.request?.question || run.compiles.some((known) => known.id === compile)) return started;
      return { ...started, compiles: [...run.compiles, { id: compile, function: "", file: "", line: 0, reason: null }] };
    }
    case "stage_finished":
      return update((state) => finish(state, event));
    case "stage_failed":
      return update(() => ({
        status: "failed",
        failure: { cause: event.cause, error: event.error, line: event.line, traceback: event.traceback },
      }));
    case "stage_skipped":
      return update((state) => (state.artifacts.length ? {} : { status: "skipped", reason: event.reason }));
    case "artifact":
      return update((state) => ({
        artifacts: [
          ...state.artifacts,
          { name: event.name, graph: event.graph, kind: event.artifact.kind, ref: event.artifact },
        ],
      }));
    case "finding":
      return { ...next, findings: [...run.findings, { ...event, stage, compile }] };
    case "printed":
      return { ...next, printed: [...run.printed, { stream: event.stream, text: event.text }] };
    case "output_cut":
      return { ...next, cutAt: event.limit_bytes };
    case "summary":
      return { ...next, summary: event.summary };
    case "finished":
      return { ...next, status: "finished", ending: { ...NO_ENDING, cause: event.error } };
    case "failed":
      return {
        ...next,
        status: "failed",
        ending: { ...NO_ENDING, cause: event.cause, error: event.error, line: event.line, traceback: event.traceback },
      };
    case "timed_out":
      return {
        ...next,
        status: "timed_out",
        ending: { ...NO_ENDING, limitSeconds: event.limit_seconds, stage: event.stage },
      };
    case "cancelled":
      return { ...next, status: "cancelled", ending: NO_ENDING };
    case "lost":
      return { ...next, status: "lost", ending: { ...NO_ENDING, cause: event.cause } };
  }
}

function finish(state: StageState, event: Extract<Event, { type: "stage_finished" }>): Partial<StageState> {
  // A stage of several graphs finishes once for each: its times and numbers add up, a change in one is a change.
  const again = event.graph !== null && Object.keys(state.byGraph).length > 0;
  const facts: Facts = { ...state.facts };
  for (const [key, value] of Object.entries(event.facts)) {
    const before = facts[key];
    facts[key] = again && typeof value === "number" && typeof before === "number" ? before + value : value;
  }
  const status = state.status === "failed" || (again && state.status === "changed") ? state.status : event.status;
  const seconds = again && state.seconds !== null ? state.seconds + (event.seconds ?? 0) : event.seconds;
  return {
    status,
    seconds,
    facts,
    byGraph: event.graph === null ? state.byGraph : { ...state.byGraph, [event.graph]: event.facts },
  };
}

export const isOver = (status: RunStatus): status is Exclude<RunStatus, "idle" | "queued" | "running"> =>
  status === "finished" || status === "failed" || status === "timed_out" || status === "cancelled" || status === "lost";

/** A stage as seen with one compile chosen: its own state and what the stage says for the whole run, together. */
export function stageOf(run: RunState, compile: string | null, stage: StageName): StageState {
  const whole = run.stages[stageKey(null, stage)];
  const own = compile === null || RUN_STAGES.has(stage) ? undefined : run.stages[stageKey(compile, stage)];
  if (!own) return whole ?? EMPTY_STAGE;
  if (!whole) return own;
  return { ...own, artifacts: [...own.artifacts, ...whole.artifacts], failure: own.failure ?? whole.failure };
}

export function findArtifact(state: StageState, kind: string, graph?: string | null, name?: string): Artifact | null {
  return (
    state.artifacts.findLast(
      (made) =>
        made.kind === kind &&
        // Graphs between passes are named by the passes; they are not the stage's own.
        (name !== undefined || made.name !== "step") &&
        (graph === undefined || made.graph === graph) &&
        (name === undefined || made.name === name),
    ) ?? null
  );
}
