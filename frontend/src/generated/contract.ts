// Generated from the pydantic models by scripts/gen-types.mjs. Do not edit.

export type Body =
  | RunStarted
  | PhaseStarted
  | CompileStarted
  | StageStarted
  | StageFinished
  | StageFailed
  | StageSkipped
  | ArtifactMade
  | Finding
  | Printed
  | OutputCut
  | Summary
  | Finished
  | Failed
  | TimedOut
  | Cancelled
  | Lost;
/**
 * auto: training when anything requires grad, else inference.
 */
export type Mode = "auto" | "training" | "inference";
/**
 * The stages, in the order in which they are shown.
 */
export type StageName =
  | "source"
  | "dynamo"
  | "pre_grad"
  | "joint"
  | "joint_passes"
  | "partition"
  | "post_grad"
  | "schedule"
  | "fusion"
  | "codegen"
  | "memory"
  | "execute"
  | "cache";
export type StageStatus = "ok" | "changed" | "unchanged";
export type Severity = "error" | "warning" | "note";

export interface Contract {
  Body?: Body;
  Envelope?: Envelope;
  Payloads?: Payloads;
  RunComparison?: RunComparison;
  RunRequest?: RunRequest;
  StageName?: StageName;
  version?: 1;
}
export interface RunStarted {
  engine: Engine;
  request: RunRequest;
  type: "run_started";
}
/**
 * What ran the snippet.
 */
export interface Engine {
  aotscope: string;
  /**
   * Vector instruction set that Inductor compiles for, e.g. "avx512"; "" if unknown.
   */
  cpu: string;
  platform: string;
  python: string;
  threads: number;
  torch: string;
}
/**
 * One snippet and its options; with a `question`, one thing more about a finished run of them.
 */
export interface RunRequest {
  options: Options;
  /**
   * Set by `POST /api/v1/runs/{id}/kernels`: this run is derived from another.
   */
  question: KernelQuestion | null;
  /**
   * Python source of the snippet.
   */
  source: string;
}
/**
 * How to run a snippet. Each field is a field of the REST API and a flag of the command line.
 */
export interface Options {
  mode: Mode;
  /**
   * Compile with the C++ compiler, run, time and compare.
   */
  native: boolean;
  /**
   * What the code is compiled for: an id, or a name that people know it by, as h100.
   */
  target: "cpu" | "cuda" | "sm_75" | "sm_80" | "sm_89" | "sm_90" | "sm_100" | "gfx942";
  /**
   * Keep torch's structured trace, as TORCH_TRACE writes it.
   */
  trace: boolean;
  /**
   * The last stage to show; null for all of them.
   */
  until: StageName | null;
}
/**
 * What a derived run asks: one Triton kernel of a finished run, down to machine code.
 *
 * `kernel` is its entity, `0_0/codegen/forward/triton_poi_fused_0`; `text` its source, whose first line is line
 * `first_line` of the generated code; `marks` are those of the generated code for the kernel's lines, with `strings` as in
 * `code/1`.
 */
export interface KernelQuestion {
  /**
   * Index of the configuration, in the order of Inductor's heuristics.
   */
  config: number;
  first_line: number;
  kernel: string;
  marks: LineMarks;
  /**
   * Id of the run that the kernel is of.
   */
  parent: string;
  strings: string[];
  text: string;
}
/**
 * Parallel columns: line `line[i]` (1-based) of the text comes from entity `strings[entity[i]]`.
 */
export interface LineMarks {
  entity: number[];
  line: number[];
}
/**
 * A fork of the warmed parent began: `capture` (every stage up to generated code), `native` (g++ and timing), or `kernel` (a
 * derived run: one kernel down to machine code).
 */
export interface PhaseStarted {
  phase: "capture" | "native" | "kernel";
  type: "phase_started";
}
/**
 * Dynamo began to compile a frame: the envelope's `compile` is its id.
 */
export interface CompileStarted {
  /**
   * As shown to the user; the snippet's own file is `snippet.py` or its real name.
   */
  file: string;
  function: string;
  line: number;
  /**
   * For a recompile, torch's own text of the guard that failed.
   */
  reason: string | null;
  type: "compile_started";
}
export interface StageStarted {
  type: "stage_started";
}
/**
 * `seconds` is what torch spent in the stage (null where it cannot be told apart), without our own work.
 */
export interface StageFinished {
  /**
   * A few figures for the stage rail and the command line, e.g. nodes=196.
   */
  facts: {
    [k: string]: number | string | boolean | null;
  };
  graph: string | null;
  seconds: number | null;
  status: StageStatus;
  type: "stage_finished";
}
export interface StageFailed {
  cause: Message;
  /**
   * The exception's own type and text, as torch says it.
   */
  error: string;
  /**
   * Line of the snippet, where it is known.
   */
  line: number | null;
  /**
   * The user's frames only.
   */
  traceback: string;
  type: "stage_failed";
}
/**
 * A sentence of the product. `key` names an entry of `compiler/messages/<language>/*.json`; what torch or the
 * user said travels as a parameter and stays as it is.
 */
export interface Message {
  key: string;
  params: {
    [k: string]: string | number | boolean | null;
  };
}
export interface StageSkipped {
  reason: Message;
  type: "stage_skipped";
}
/**
 * A payload is ready. `name` tells several of one stage apart; `graph` is the graph that it belongs to.
 */
export interface ArtifactMade {
  artifact: ArtifactRef;
  graph: string | null;
  name: string;
  type: "artifact";
}
/**
 * An immutable payload: `hash` is the sha256 of its uncompressed bytes, `bytes` their number.
 */
export interface ArtifactRef {
  bytes: number;
  format: string;
  hash: string;
  kind: string;
}
/**
 * Something the user should know: a graph break, a recompile, a divergence, with its line and its evidence.
 */
export interface Finding {
  /**
   * Id of the entity that is the evidence.
   */
  entity: string | null;
  hint: Message | null;
  line: number | null;
  message: Message;
  severity: Severity;
  type: "finding";
}
export interface Printed {
  stream: "stdout" | "stderr";
  text: string;
  type: "printed";
}
/**
 * The snippet printed more than is kept; nothing after this is shown.
 */
export interface OutputCut {
  limit_bytes: number;
  type: "output_cut";
}
/**
 * The figures of the whole run; the names are defined in `tests/corpus/README.md`.
 */
export interface Summary {
  summary: {
    [k: string]: number | string | number[] | string[] | null;
  };
  type: "summary";
}
/**
 * Terminal: the snippet ran. `error` is set when compiling or running the model raised.
 */
export interface Finished {
  error: Message | null;
  type: "finished";
}
/**
 * Terminal: the snippet could not be run.
 */
export interface Failed {
  cause: Message;
  error: string;
  line: number | null;
  traceback: string;
  type: "failed";
}
export interface TimedOut {
  limit_seconds: number;
  /**
   * The stage that was running.
   */
  stage: StageName | null;
  type: "timed_out";
}
export interface Cancelled {
  type: "cancelled";
}
/**
 * Terminal: the worker died; the run was not repeated.
 */
export interface Lost {
  cause: Message;
  type: "lost";
}
/**
 * One event of a run. `seq` counts from 1 without gaps and is the SSE id; `t` is seconds since the run began.
 * On the wire, the fields of `body` lie beside those of the envelope (see `dump_event`).
 */
export interface Envelope {
  compile?: string | null;
  run: string;
  seq: number;
  stage?: StageName | null;
  t: number;
  v: 1;
}
export interface Payloads {
  aot_steps: AotStepsPayload;
  breaks: BreaksPayload;
  cache: CachePayload;
  code: CodePayload;
  execution: ExecutionPayload;
  fidelity: FidelityPayload;
  fusion: FusionPayload;
  graph: GraphPayload;
  guards: GuardsPayload;
  kernels: KernelsPayload;
  ledger: LedgerPayload;
  links: LinksPayload;
  memory: MemoryPayload;
  metal: MetalPayload;
  network: NetworkPayload;
  partition: PartitionPayload;
  passes: PassesPayload;
  recompiles: RecompilesPayload;
  roofline: RooflinePayload;
  schedule: SchedulePayload;
  source: SourcePayload;
  timeline: MemoryTimelinePayload;
  trace: TracePayload;
}
/**
 * `id` is `compile/joint/graph`. Without steps, `skipped` says why.
 */
export interface AotStepsPayload {
  format: "aot_steps/1";
  id: string;
  skipped: Message | null;
  steps: AotStep[];
}
/**
 * The graph after one transform. `graph` is the hash of a `graph/1` artifact, null when `unknown` says why there is none.
 *
 * `gained` and `lost` are operators by how many more, or fewer, there are than a step earlier; `diff` is a unified diff of the
 * two graphs' printed form. `equal_to_real` is said of `decomposed` only: whether the graph traced again is the one that
 * AOTAutograd made, node for node (operators, arguments, shapes, types, strides), up to names; `difference` is the first
 * place where it is not. `seconds` are those of the replay.
 */
export interface AotStep {
  backward: number | null;
  diff: string;
  difference: string;
  equal_to_real: boolean | null;
  forward: number | null;
  gained: OpCount[];
  graph: string | null;
  lost: OpCount[];
  name: "traced" | "functionalized" | "decomposed" | "joint";
  nodes: number | null;
  seconds: number | null;
  unknown: Message | null;
}
export interface OpCount {
  count: number;
  op: string;
}
export interface BreaksPayload {
  breaks: GraphBreak[];
  format: "breaks/1";
}
/**
 * One cause, shown once; `count` says how often it struck.
 *
 * `stack` begins at the user's first frame and ends where it broke, inside a library too: then `library` is that place, and
 * `line` the user's line that led there. `cause_type` is the break that came first, where this one is what torch made of it.
 *
 * kind: `break` (the graph was cut and compilation went on after it), `rest_of_function` (the rest of a function was
 * given to eager), `whole_function` (the frame was skipped), `recompile_limit`, `backend_failure`, `skipped`.
 */
export interface GraphBreak {
  cause_gb_id: string;
  cause_type: string;
  context: string;
  count: number;
  explanation: string;
  function: string;
  gb_id: string;
  gb_type: string;
  hints: string[];
  id: string;
  kind: "break" | "rest_of_function" | "whole_function" | "recompile_limit" | "backend_failure" | "skipped";
  library: string;
  line: number | null;
  reason: string;
  stack: StackFrame[];
  text: string;
  url: string;
}
/**
 * One Python frame, outermost first in a stack. `user` marks frames of the snippet's own files.
 */
export interface StackFrame {
  code: string;
  file: string;
  function: string;
  line: number;
  user: boolean;
}
export interface CachePayload {
  cold_seconds: number | null;
  format: "cache/1";
  notes: Message[];
  probes: CacheProbe[];
  warm_seconds: number | null;
}
/**
 * One look-up in an otherwise equal setting; `changed` is another batch size. `outcome` is torch's: hit, miss, bypass;
 * `reason` its own text for a bypass. `parts` are those of the key where torch tells them (cold only), `changes` what differs
 * from the cold look-up in the same place.
 */
export interface CacheProbe {
  cache: "aot_autograd" | "fx_graph";
  changes: KeyChange[];
  count: number;
  key: string;
  outcome: "hit" | "miss" | "bypass" | "unused";
  parts: KeyPart[];
  reason: string;
  what: "cold" | "warm" | "changed";
}
/**
 * A part of the key that is not what it was in the cold compile: both texts, cut around where they differ; "" where there was
 * no such part.
 */
export interface KeyChange {
  after: string;
  before: string;
  name: string;
}
/**
 * One of the things that a cache key is a hash of, under torch's name; `text` is cut.
 */
export interface KeyPart {
  digest: string;
  name: string;
  text: string;
}
/**
 * `id` is the prefix of the lines' ids: line 412 is `<id>/@412`. Entities in `marks` are FX nodes of the neighbouring
 * earlier stage, and `line/18` where the snippet's line is known.
 */
export interface CodePayload {
  format: "code/1";
  id: string;
  language: "python" | "cpp" | "text" | "diff";
  marks: LineMarks1;
  strings: string[];
  text: string;
}
/**
 * Parallel columns: line `line[i]` (1-based) of the text comes from entity `strings[entity[i]]`.
 */
export interface LineMarks1 {
  entity: number[];
  line: number[];
}
/**
 * `autotuned`, `configs` (Triton kernel → the configuration that is launched) and `cuda_graphs` are of a GPU, where `timing`
 * is by its own clock and `kernels` by torch's profiler.
 */
export interface ExecutionPayload {
  autotuned: Autotuned[];
  compared: boolean;
  comparisons: Comparison[];
  compile_seconds: number | null;
  configs: {
    [k: string]: string;
  };
  cuda_graphs: CudaGraphEvent[];
  divergence: Divergence | null;
  format: "execution/1";
  graphs_differ: Message | null;
  kernels: KernelTime[];
  native_seconds: number | null;
  slope: SlopeCheck | null;
  timing: Timing | null;
  why_no_slope: Message | null;
  why_not_compared: Message | null;
  why_not_timed: Message | null;
}
/**
 * One operator whose kernel was chosen by timing: the candidates, the fastest first.
 */
export interface Autotuned {
  candidates: TimedCandidate[];
  operator: string;
}
/**
 * A kernel that Inductor timed, in torch's words; `seconds` is null when it could not be run.
 */
export interface TimedCandidate {
  seconds: number | null;
  text: string;
}
/**
 * One tensor, compiled against eager. `max_abs` and `max_rel` are over all elements, null when the shapes or types differ
 * (then `mismatch` says how). `agrees` uses torch.testing's default tolerances for the dtype.
 */
export interface Comparison {
  agrees: boolean | null;
  call: number;
  dtype: string;
  kind: "output" | "gradient" | "buffer" | "printed";
  max_abs: number | null;
  max_rel: number | null;
  mismatch: string;
  name: string;
  shape: number[];
}
/**
 * What torch did about a CUDA graph, in its own words.
 */
export interface CudaGraphEvent {
  kind: "recorded" | "again" | "skipped";
  text: string;
}
/**
 * Where results that differ come from. `first` is the first backend that differs from the one before by more than rounding
 * (null: none does). `own` says that all differences are of the size of eager's own error against float64.
 */
export interface Divergence {
  buffer: WrongBuffer | null;
  buffers_compared: number | null;
  first: string | null;
  notes: Message[];
  own: boolean;
  steps: StageStep[];
}
/**
 * The first of Inductor's buffers that is not the value of its FX node: both against the float64 value, whose largest
 * magnitude is `scale`; `difference` is the buffer's, `own` that of the same graph, interpreted.
 */
export interface WrongBuffer {
  buffer: string;
  difference: number | null;
  entity: string;
  kernel: string;
  line: number | null;
  own: number | null;
  scale: number;
}
/**
 * The whole snippet run with one of torch's backends, against the one before (`before`, "" for eager itself). `worst` is the
 * first tensor that does not agree. `error` is the largest distance from eager in float64, as a share of the tensor's largest
 * value; null without that yardstick. `failed` is the exception's type and text, when it raised.
 */
export interface StageStep {
  backend: string;
  before: string;
  compared: number;
  disagree: number;
  error: number | null;
  failed: string;
  worst: Comparison | null;
}
export interface KernelTime {
  calls: number;
  entity: string;
  name: string;
  seconds: number;
}
/**
 * Gradients of a model that draws random numbers, at fixed seeds: how far each is from the model's difference quotient
 * along a random direction, as a share of both. `agrees` is false when all of compiled's are much farther than eager's.
 */
export interface SlopeCheck {
  agrees: boolean;
  compiled: number[];
  eager: number[];
}
/**
 * Paired samples in seconds: `eager[i]` and `compiled[i]` were measured one after the other. `ratio` is the median of
 * compiled/eager over pairs, `low` and `high` its bootstrap 95 % interval.
 */
export interface Timing {
  compiled: number[];
  eager: number[];
  high: number;
  low: number;
  ratio: number;
  what: Message;
}
/**
 * `device` is the name that the device's driver gives; `assumed` the versions that the code was compiled for.
 */
export interface FidelityPayload {
  assumed: {
    [k: string]: string;
  };
  decisions: Decision[];
  device: string;
  format: "fidelity/1";
  name: string;
  ran: Message;
  target: "cpu" | "cuda" | "sm_75" | "sm_80" | "sm_89" | "sm_90" | "sm_100" | "gfx942";
}
/**
 * One kind of decision. `count` of `of` (null where there is no whole) are open; `entities` are the ids of what they are
 * about, kernels or FX nodes; `text` is it in a sentence. `details` are torch's own words: the candidates of a choice, why a
 * CUDA graph is not recorded.
 */
export interface Decision {
  count: number;
  details: string[];
  entities: string[];
  kind: "autotune" | "selection" | "attention" | "padding" | "cudagraphs" | "library";
  of: number | null;
  text: Message;
}
/**
 * Pairs absent from `decisions` were never considered by Inductor.
 */
export interface FusionPayload {
  decisions: FusionDecision[];
  format: "fusion/1";
  groups: FusionGroup[];
  id: string;
  nodes_after: number;
  nodes_before: number;
}
/**
 * Inductor's own answer for a pair that it considered, or that was asked of it again afterwards. `reason` is its own
 * text; where it gives none, `explanation` says which of its conditions decided.
 */
export interface FusionDecision {
  asked: "by_inductor" | "again";
  explanation: Message | null;
  first: string;
  fused: boolean;
  reason: string;
  second: string;
}
/**
 * A node after fusion: `members` are the names of the nodes before. `bytes_before` sums what the members read and
 * write each for itself; `bytes_after` what the group reads from and writes to memory, buffers inside it not counted.
 */
export interface FusionGroup {
  bytes_after: number | null;
  bytes_before: number | null;
  kernel: string;
  kind: string;
  members: string[];
  name: string;
}
/**
 * `roles` of a node are one string, words separated by a space.
 */
export interface GraphPayload {
  edges: EdgeColumns;
  format: "graph/1";
  id: string;
  nodes: NodeColumns;
  stacks: StackFrame[][];
  strings: string[];
  values: (TensorValue | ScalarValue | TupleValue)[];
}
/**
 * Data flow: `source[i]` → `target[i]`, indices of nodes.
 */
export interface EdgeColumns {
  source: number[];
  target: number[];
}
/**
 * Parallel columns. Strings are indices into `GraphPayload.strings` (0 is always ""); -1 is "none" for `value`,
 * `stack`, `seq_nr`, `twin` and `bytes`; line 0 is "unknown".
 */
export interface NodeColumns {
  args: number[];
  bytes: number[];
  call: number[];
  grad_fn: number[];
  line: number[];
  module: number[];
  module_type: number[];
  name: number[];
  op: number[];
  phase: number[];
  roles: number[];
  seq_nr: number[];
  stack: number[];
  target: number[];
  twin: number[];
  value: number[];
}
/**
 * A tensor's metadata. `stride` is in elements and null for sparse layouts; `bytes` are those of
 * its elements (not of its storage), by the hint of each symbolic size, null when that is unknown.
 */
export interface TensorValue {
  bytes: number | null;
  device: string;
  dtype: string;
  kind: "tensor";
  layout: string;
  memory_format: string | null;
  requires_grad: boolean;
  shape: (number | SymbolicSize)[];
  stride: (number | SymbolicSize)[] | null;
}
/**
 * A size that is an expression: `hint` is its value in this run, null when it is data-dependent (unbacked).
 */
export interface SymbolicSize {
  expr: string;
  hint: number | null;
}
/**
 * A Python or symbolic number that flows through the graph.
 */
export interface ScalarValue {
  kind: "scalar";
  type: string;
  value: number | SymbolicSize | boolean | string | null;
}
export interface TupleValue {
  items: (TensorValue | ScalarValue | null)[];
  kind: "tuple";
}
/**
 * `leaf_guards` counts the leaf lines of torch's guard tree; `tree` is its own text.
 */
export interface GuardsPayload {
  format: "guards/1";
  guards: Guard[];
  leaf_guards: number;
  tree: string;
}
/**
 * `source` is torch's expression of what is guarded, `code` the conditions checked, `value` its value when compiled,
 * as text; `line` the snippet's line that made the guard, null where torch keeps only a library's.
 */
export interface Guard {
  code: string[];
  line: number | null;
  source: string;
  stack: StackFrame[];
  type: string;
  value: string;
}
/**
 * Coverage counts statements of generated kernels: all, linked to an FX node, linked to a line of the snippet. `library`
 * counts those linked to a library's line alone, by that line (`torch/optim/adam.py:526`); `unlinked` are the others.
 */
export interface KernelsPayload {
  format: "kernels/1";
  id: string;
  kernels: Kernel[];
  library: {
    [k: string]: number;
  };
  statements: number;
  statements_with_line: number;
  statements_with_node: number;
  unlinked: UnlinkedStatement[];
}
/**
 * A kernel or an external call. `first_line` and `last_line` are its source's range in the generated code (0 for an external
 * call); `nodes` FX nodes of the post-grad graph, `lines` lines of the snippet; `recomputed` those of the
 * nodes that the forward has computed already.
 */
export interface Kernel {
  first_line: number;
  group: string;
  kind: "cpp" | "extern" | "triton";
  last_line: number;
  launches: KernelLaunch[];
  lines: number[];
  name: string;
  nodes: string[];
  ops: string[];
  recomputed: string[];
}
/**
 * `line` is a line of the generated code.
 */
export interface KernelLaunch {
  line: number;
  text: string;
}
/**
 * A statement of a kernel that is linked to no line of Python: `line` is that of the generated code, `node` the FX node it
 * computes, "" if that is not known either.
 */
export interface UnlinkedStatement {
  cause: Message;
  line: number;
  node: string;
  text: string;
}
/**
 * `id` is `compile/joint/graph`. `exact` when the joint graph was reproduced, so that its nodes are named; else the nodes
 * are those of the graph traced again. `unknown` says why parts are missing.
 */
export interface LedgerPayload {
  decompositions: Decomposition[];
  effect_tokens: string[];
  exact: boolean;
  format: "ledger/1";
  id: string;
  intermediate_bases: string[];
  mutated_inputs: MutatedInput[];
  mutations: Mutation[];
  outputs: OutputAlias[];
  regenerated: Regenerated[];
  rng: Rng;
  subclasses: Subclass[];
  synthetic_bases: SyntheticBase[];
  unknown: Message | null;
  views: TrackedView[];
}
/**
 * An operator that a decomposition replaced, and by what; once for each way that it went. `examples` are nodes of the
 * joint graph, those of one call.
 */
export interface Decomposition {
  count: number;
  examples: string[];
  into: OpCount[];
  lines: number[];
  op: string;
}
/**
 * An input that is another one after the call. `type` is torch's word. `copy_node` is the node of the joint graph that
 * writes it back, `value` the node that holds its last value. Without a `copy_node`, the value is an output of the graph,
 * and the runtime writes it back.
 */
export interface MutatedInput {
  copy_node: string | null;
  data: boolean;
  hidden_from_autograd: boolean;
  line: number | null;
  metadata: boolean;
  requires_grad: boolean;
  tensor: string;
  type: string;
  under_no_grad: boolean;
  value: string | null;
  what: "input" | "parameter" | "buffer" | "intermediate";
}
/**
 * One in-place operation of the traced program on one tensor.
 *
 * `tensor` is the tensor whose memory it writes, as the user wrote it, or, for an intermediate, the node of the
 * functionalized graph that made it; `through_view` when it was written by way of a view. `functional` are the nodes of the
 * functionalized graph that stand for the operation, `nodes` those of the joint graph. `copy_node` is the node of the joint
 * graph that writes an input's last value back, null when there is none. `line` is the snippet's.
 */
export interface Mutation {
  backward: boolean;
  copy_node: string | null;
  functional: NodeOp[];
  line: number | null;
  nodes: string[];
  op: string;
  tensor: string;
  through_view: boolean;
  what: "input" | "parameter" | "buffer" | "intermediate";
}
/**
 * A node by its name in the graph that the field speaks of, and its operator.
 */
export interface NodeOp {
  node: string;
  op: string;
}
/**
 * An output of the model that shares memory. `type` is torch's word; `base` is the input as the user wrote it, or the
 * node of the joint graph that is the base, "" where torch names none; `views` lead from the base to the output.
 */
export interface OutputAlias {
  base: string;
  output: number;
  requires_grad: boolean;
  type: string;
  views: string[];
}
/**
 * Views that were made anew from a written base, when `reader` next read them. Nodes are the functionalized graph's.
 */
export interface Regenerated {
  line: number | null;
  reader: string;
  views: NodeOp[];
}
/**
 * `functionalized`: seeds are inputs of the graph (`seeds`, its placeholders) and not the generator's state. `nodes` draw.
 */
export interface Rng {
  functionalized: boolean;
  nodes: RandomNode[];
  seeds: string[];
}
export interface RandomNode {
  line: number | null;
  node: string;
  op: string;
}
/**
 * A tensor subclass at the edge of the graph, which the graph has as `count` plain tensors from place `first` on.
 */
export interface Subclass {
  attrs: string[];
  count: number;
  first: number;
  index: number;
  side: "input" | "output" | "tangent";
  tensor: string;
  type: string;
}
/**
 * Inputs that share memory and are written: torch passes their common base in their place. `made` when the base is not
 * a tensor that exists already.
 */
export interface SyntheticBase {
  base_of: string;
  made: boolean;
}
/**
 * A view of memory that is written in place, so that the one shows in the other. `nodes` are the joint graph's.
 */
export interface TrackedView {
  line: number | null;
  nodes: string[];
  op: string;
  tensor: string;
  what: "input" | "parameter" | "buffer" | "intermediate";
}
export interface LinksPayload {
  format: "links/1";
  links: LinkColumns;
  strings: string[];
}
/**
 * All are indices into `strings`. `kind` is "lowered" for "became", "line" for a source line, "code" for a line of
 * generated code; `evidence` names where torch keeps the relation, e.g. "stack_trace", "from_node", "origins".
 */
export interface LinkColumns {
  evidence: number[];
  kind: number[];
  source: number[];
  target: number[];
}
/**
 * The stage's figures side by side; the timelines are artifacts of their own. `limit_bytes` is the memory of the device that
 * the code was compiled for, parameters and inputs having their part of it too; null for the CPU. `beyond_plan` is there where
 * a plan is.
 */
export interface MemoryPayload {
  beyond_plan: BeyondPlan | null;
  definition: Message;
  format: "memory/1";
  limit_bytes: number | null;
  notes: Message[];
  peaks: {
    [k: string]: number;
  };
  saved: SavedForBackward;
}
/**
 * What the dry run has besides Inductor's plan, in bytes. `planned_peak` is its peak without it: without what an operator
 * allocates for itself and releases (its workspace), what runs outside of the compiled graphs (autograd, eager code between
 * them), and the buffers of the bodies of higher-order operators, which are planned apart. The others are those bytes at the
 * peak of the dry run.
 */
export interface BeyondPlan {
  bodies: number;
  outside: number;
  planned_peak: number;
  workspace: number;
}
/**
 * Bytes kept from forward to backward, by how they were obtained; null where unknown. `kept_tensor_bytes` sums the
 * tensors that the compiled graphs' autograd nodes really hold, and should be `partition_bytes`. The storages are distinct
 * ones that are no parameter, buffer or input.
 */
export interface SavedForBackward {
  eager_storages_bytes: number | null;
  kept_storages_bytes: number | null;
  kept_tensor_bytes: number | null;
  partition_activation_bytes: number | null;
  partition_bytes: number | null;
}
/**
 * `kernel` is the kernel's entity; `config` the index in `candidates` of the one that was compiled. Which candidate a real
 * GPU would choose is decided there, by timing, and unknown here.
 */
export interface MetalPayload {
  assembler_log: string;
  candidates: Candidate[];
  chosen: Message;
  config: number;
  format: "metal/1";
  id: string;
  kernel: string;
  levels: Level[];
  needs: Need[];
  occupancy: Occupancy | null;
  occupancy_unknown: Message | null;
  target: string;
  triton: string;
}
/**
 * A configuration as Inductor's heuristics propose it. `blocks` are the kernel's own constants, e.g. XBLOCK.
 */
export interface Candidate {
  blocks: {
    [k: string]: number | string | boolean;
  };
  stages: number;
  warps: number;
}
/**
 * One text of the kernel. Line N of `code` is `<code.id>/@N`; its marks name lines of the generated code, FX nodes of the
 * post-grad graph and lines of the snippet. `linked` of `statements` lines, those that do something, come from a line of the
 * Triton source; `triton_line` is parallel to the text's lines, 0 where none is known (a statement that the compiler added
 * belongs to no line).
 */
export interface Level {
  code: CodePayload;
  linked: number;
  name: "triton" | "ttir" | "ttgir" | "llir" | "ptx" | "sass" | "amdgcn";
  statements: number;
  triton_line: number[];
}
/**
 * What the compiled kernel needs: `value` is null where the tools do not say, and `source` the tool or document that says it.
 *
 * Names: registers, vector_registers and accumulation_registers (per thread), scalar_registers (per wave); spill_stores and
 * spill_loads (bytes per thread), vector_spills and scalar_spills (registers); stack (bytes per thread); shared_dynamic,
 * shared_static and shared_reserved (bytes per block); threads (per block).
 */
export interface Need {
  name: string;
  source: string;
  value: number | null;
}
/**
 * Warps (wavefronts on AMD) that can be resident on a multiprocessor at once, of at most `most_warps`. An upper bound by the
 * vendor's formula from compiled figures: nothing was run.
 */
export interface Occupancy {
  blocks: number;
  limits: OccupancyLimit[];
  most_warps: number;
  source: string;
  warps: number;
  warps_per_block: number;
}
/**
 * How many blocks fit on a multiprocessor as far as one resource is concerned, and how that was computed. `blocks` is null
 * for a resource that the kernel does not use.
 */
export interface OccupancyLimit {
  blocks: number | null;
  formula: string;
  resource: "threads" | "blocks" | "registers" | "scalar_registers" | "shared";
}
/**
 * The flow network that was solved for the partition that was taken, the edges of the cut first. `edges_in_all` is the
 * number of edges, with those that were left out for length.
 */
export interface NetworkPayload {
  edges: NetworkEdges;
  edges_in_all: number;
  format: "network/1";
  id: string;
  nodes: NetworkNodes;
  strings: string[];
  value: number | null;
}
/**
 * Columns. `source` and `target` are indices of nodes; `capacity` in bytes as the partitioner weights them, null: unbounded;
 * `reason` an index of `strings` (0 is "", a plain edge of the data flow); `cut` is whether the cut goes through it.
 */
export interface NetworkEdges {
  capacity: (number | null)[];
  cut: boolean[];
  reason: number[];
  source: number[];
  target: number[];
}
/**
 * Columns: `name` is torch's (`mul_in`, `mul_out`, `source`, `sink`); `source_side` is whether the cut leaves it there.
 */
export interface NetworkNodes {
  name: string[];
  source_side: boolean[];
}
/**
 * Byte figures are the partitioner's, by hint of symbolic sizes; what is really kept is measured in the memory stage.
 *
 * Of `recomputed`, `recomputed_heavy` are those that torch counts as compute-intensive (matrix products, convolutions,
 * attention), and `drawn_again` those that draw random numbers from a new seed in the backward, so other ones than in the
 * forward.
 */
export interface PartitionPayload {
  cut_value: number | null;
  decisions: NodeDecision[];
  drawn_again: string[];
  eager_saved_bytes: number | null;
  format: "partition/1";
  id: string;
  memory_budget: number | null;
  network_edges: number | null;
  network_nodes: number | null;
  options: {
    [k: string]: boolean | number | string | null;
  };
  partitioner: string;
  recomputed: string[];
  recomputed_heavy: string[];
  regions: CheckpointRegion[];
  save_everything_bytes: number | null;
  saved: SavedTensor[];
  saved_activation_bytes: number;
  saved_bytes: number;
}
/**
 * What became of one forward node of the joint graph.
 *
 * verdict: `saved` (an output of the forward that the backward reads), `recomputed` (runs again in the backward),
 * `forward_only` (the backward does not need it), `input` (a graph input the backward reads: kept anyway),
 * `backward_only` (traced in the forward, but only the backward needs it: it moved there and runs once).
 * `capacity` is the weight of its edge in the flow network in bytes, weighted as the partitioner weights it; null: unbounded.
 * `reasons` are the partitioner's own texts on the edges of the node.
 * `policy` is what the model's checkpoint says of the node, in torch's words (MUST_SAVE, PREFER_RECOMPUTE, …), and `region` the
 * number of the checkpointed region that it lies in.
 */
export interface NodeDecision {
  banned: boolean;
  bytes: number | null;
  capacity: number | null;
  line: number | null;
  node: string;
  policy: string;
  reasons: string[];
  region: number | null;
  sentence: Message;
  verdict: "saved" | "recomputed" | "forward_only" | "input" | "backward_only";
}
/**
 * One call of a checkpoint in the model: how many nodes it has under each policy, the snippet's lines that they come from,
 * and what of it runs again.
 */
export interface CheckpointRegion {
  lines: number[];
  nodes: number;
  policies: {
    [k: string]: number;
  };
  recomputed: number;
  region: number;
}
/**
 * One tensor that crosses from forward to backward, parameters and inputs among them (`is_input`).
 */
export interface SavedTensor {
  bytes: number | null;
  is_input: boolean;
  line: number | null;
  node: string;
  readers: string[];
}
/**
 * `id` is `compile/stage/graph`. Steps that changed nothing are counted in `unchanged`, and listed by name.
 */
export interface PassesPayload {
  format: "passes/1";
  id: string;
  steps: PassStep[];
  unchanged: number;
}
/**
 * `before` and `after` are hashes of `graph/1` artifacts, null when the pass changed nothing or both sides are already named
 * by the neighbours. `diff` is a unified diff of the two graphs' printed form.
 */
export interface PassStep {
  added: string[];
  after: string | null;
  before: string | null;
  changed: boolean;
  diff: string;
  name: string;
  nodes_after: number;
  nodes_before: number;
  removed: string[];
  seconds: number | null;
}
export interface RecompilesPayload {
  format: "recompiles/1";
  recompiles: Recompile[];
}
/**
 * A cache entry that did not fit: `entry` is the compile that it belongs to, `compile` the new one.
 */
export interface Recompile {
  compile: string;
  entry: string;
  guard: string;
  line: number | null;
  new: string;
  old: string;
  source: string;
  text: string;
}
/**
 * `seconds` sums the kernels': the floor of this graph's step, when one kernel runs after the other and each reads from and
 * writes to the device's memory (a tensor that is still in a cache comes faster). `tf32` and `tf32_convolutions`: whether
 * float32 matrix products, and convolutions, may use it by torch's switches; null in runs from before these were told apart.
 */
export interface RooflinePayload {
  bandwidth: Figure;
  complete: boolean;
  device: string;
  format: "roofline/1";
  id: string;
  kernels: KernelRoofline[];
  matrix: {
    [k: string]: Figure;
  };
  seconds: number;
  target: string;
  tf32: boolean;
  tf32_convolutions: boolean | null;
  vector: {
    [k: string]: Figure;
  };
}
/**
 * A published number, in the unit that the field which holds it says, and where it is published.
 */
export interface Figure {
  source: string;
  value: number;
}
/**
 * All launches of one kernel in a step of the graph, or one external call.
 *
 * `bytes` and `operations` are null when any part of them is unknown; then `seconds` rests on what is known, and `complete` is
 * false: the true least time is no smaller. `seconds` is the larger of two: `bytes` over the bandwidth, and the operations
 * over their rates; null when nothing is known. `group_bytes` is Inductor's own count for its scheduler nodes.
 */
export interface KernelRoofline {
  bound: "memory" | "vector" | "matrix" | "unknown";
  bytes: number | null;
  complete: boolean;
  compute_seconds: number | null;
  group_bytes: number | null;
  kernel: string;
  launches: number;
  memory_seconds: number | null;
  nodes: NodeOperations[];
  operations: number | null;
  seconds: number | null;
  traffic: Traffic[];
}
/**
 * One FX node's arithmetic. `operations` is null when there is no formula for its operator; 0 is for an operator that moves
 * data only. `unit` and `dtype` name the rate that it is held against, a key of the target's `vector` or `matrix`
 * rates: a product runs on the ordinary units where the device has no matrix units for its type. A key that is not there has no
 * published rate.
 */
export interface NodeOperations {
  dtype: string;
  formula: string;
  node: string;
  operations: number | null;
  source: string;
  target: string;
  unit: "vector" | "matrix";
}
/**
 * One tensor that a kernel reads or writes, counted once. `bytes` is null when its size is unknown. `note` says where the
 * count is not simply the tensor's size.
 */
export interface Traffic {
  bytes: number | null;
  direction: "read" | "write";
  name: string;
  note: Message | null;
}
export interface SchedulePayload {
  format: "schedule/1";
  id: string;
  nodes: SchedulerNode[];
}
/**
 * `origins` are FX node names of the post-grad graph. `reads` and `writes` are buffer names with their bytes.
 * `kind` is Inductor's class in words: pointwise, reduction, extern, nop, template, foreach, grouped, other.
 * `ir` is Inductor's own readable text of the node.
 */
export interface SchedulerNode {
  buffers: string[];
  dtype: string;
  ir: string;
  kind: string;
  line: number | null;
  name: string;
  origins: string[];
  reads: {
    [k: string]: number;
  };
  shape: (number | SymbolicSize)[];
  writes: {
    [k: string]: number;
  };
}
/**
 * `assumed` says what the snippet left open and was decided for it.
 */
export interface SourcePayload {
  assumed: Message[];
  backend: string;
  calls: number;
  compile_kwargs: string;
  config: string;
  form: "declared" | "script";
  format: "source/1";
  inputs: InputValue[];
  loss: string;
  mode: ("training" | "inference") | null;
  model: string;
  model_text: string;
  parameters: Parameters | null;
}
/**
 * One argument of the model: `name` is its parameter's name where it is known.
 */
export interface InputValue {
  name: string;
  text: string;
  value: TensorValue | ScalarValue | TupleValue | null;
}
export interface Parameters {
  buffer_bytes: number;
  buffers: number;
  bytes: number;
  elements: number;
  tensors: number;
}
/**
 * `series` says how it was obtained: `plan` (Inductor's memory plan, as planned), `dry_run` (Inductor's own wrapper run with
 * empty kernels), `compiled` and `eager` (measured by the profiler). `method` is that in a sentence. `forward_end` is the
 * first point of the backward. A plan has `owners`.
 */
export interface MemoryTimelinePayload {
  blocks: BlockColumns;
  caveats: Message[];
  end_bytes: number;
  format: "timeline/1";
  forward_end: number | null;
  id: string;
  method: Message;
  owners: OwnerColumns | null;
  peak_bytes: number;
  peak_point: number;
  points: PointColumns;
  series: "dry_run" | "compiled" | "eager" | "plan";
  strings: string[];
}
/**
 * A block lives from point `start` up to, not including, point `end` (-1: to the end of the step).
 * `kind` is an index into `strings`: output, saved, temporary, workspace, gradient.
 */
export interface BlockColumns {
  bytes: number[];
  end: number[];
  entity: number[];
  kind: number[];
  line: number[];
  module: number[];
  name: number[];
  start: number[];
}
/**
 * From `point` on, block number `block` belongs to the buffer `name` (an index into `strings`). `how`: 0 it was allocated for
 * it, 1 Inductor reuses what another buffer had, 2 a kernel writes in place over its input.
 */
export interface OwnerColumns {
  block: number[];
  how: number[];
  name: number[];
  point: number[];
}
/**
 * A point is the state after one allocation or release. `label` and `entity` are indices into `strings`: the wrapper's
 * line or operator that was running, and its entity ("" if unknown); `line` is the snippet's line, 0 if unknown; `phase` 0
 * forward, 1 backward.
 */
export interface PointColumns {
  entity: number[];
  label: number[];
  line: number[];
  live: number[];
  phase: number[];
}
/**
 * `text` is a whole log as `TORCH_TRACE` writes it: what `tlparse` reads. It has `records` records; `cut` says that more
 * followed, which were not kept, or that one was longer than all that is kept.
 */
export interface TracePayload {
  cut: boolean;
  format: "trace/1";
  phase: "capture" | "native";
  records: number;
  text: string;
}
/**
 * `equal`: the compiler made the same of both. What was asked (source, options), who ran it (engine), lines of the snippet,
 * comments in generated code, and what a clock says may differ, and are told.
 */
export interface RunComparison {
  a: ComparedRun;
  appeared: ComparedFinding[];
  b: ComparedRun;
  compiles: CompileComparison[];
  engine: Difference[];
  equal: boolean;
  format: "comparison/1";
  options: Difference[];
  source: string;
  stages: StageComparison[];
  summary: Difference[];
  vanished: ComparedFinding[];
}
export interface ComparedRun {
  engine: {
    [k: string]: unknown;
  } | null;
  id: string;
  options: {
    [k: string]: unknown;
  };
  state: string;
}
export interface ComparedFinding {
  compile: string | null;
  line: number | null;
  message: Message;
  severity: string;
  stage: string | null;
}
/**
 * A compile of both, or of one. Compiles are paired in their order and by their function.
 */
export interface CompileComparison {
  a: CompileName | null;
  b: CompileName | null;
  stages: StageComparison[];
}
export interface CompileName {
  function: string | null;
  id: string;
  line: number | null;
}
export interface StageComparison {
  a: StageSide;
  b: StageSide;
  equal: boolean;
  facts: Difference[];
  parts: Part[];
  stage: string;
}
/**
 * `status` is the stage's last, null where the run has no such stage; `seconds` are torch's own in it.
 */
export interface StageSide {
  seconds: number | null;
  status: string | null;
}
/**
 * A figure that is not the same in both. `measured`: it comes from a clock, and does not make two runs different.
 */
export interface Difference {
  a: number | string | boolean | null;
  b: number | string | boolean | null;
  measured: boolean;
  name: string;
}
/**
 * One payload of both runs, or of one (`state`). `graph_a` and `graph_b` differ where a training run's joint graph is held
 * against an inference run's only one. `rows` are those that differ, with a little around them; `added`, `removed`, `changed`
 * and `same` count all of them, `left_out` those that were too many to list. `diff` is a unified diff of text.
 */
export interface Part {
  added: number;
  changed: number;
  diff: string;
  figures: Difference[];
  graph_a: string | null;
  graph_b: string | null;
  hash_a: string;
  hash_b: string;
  kind: string;
  left_out: number;
  name: string;
  removed: number;
  rows: Row[];
  same: number;
  state: "equal" | "different" | "only_a" | "only_b";
}
/**
 * One thing of either run, such as a node, a kernel, or a guard, with its counterpart. `a` and `b` are its text, `a_id` and
 * `b_id` its name or entity where it has one; `what` are the aspects that changed. `gap` rows that are the same precede it and
 * are left out.
 */
export interface Row {
  a: string;
  a_id: string;
  b: string;
  b_id: string;
  gap: number;
  state: "same" | "added" | "removed" | "changed";
  what: string[];
}
