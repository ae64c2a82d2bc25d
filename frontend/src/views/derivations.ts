import type { AotStepsPayload, ExecutionPayload, FusionPayload, GuardsPayload, KernelsPayload, MemoryTimelinePayload, RecompilesPayload, SchedulePayload, StageName } from "../generated/contract";
import type { GraphModel } from "../graph/model/graph";
import { say, t, type Key } from "../messages";
import { bytes, seconds } from "../messages/format";
import type { Facts } from "../state/events";
import { memoryFigures, memoryPhases } from "../state/memory";
import { payload, ready, run } from "../state/store";
import { aliveAt } from "../timeline/stack";
import type { Check, Derivation } from "./Derived";

const sum = (values: Iterable<number>): number => [...values].reduce((a, b) => a + b, 0);

function check(label: string, own: number, other: number | null | undefined, show: (value: number) => string = String): Check[] {
  return other === null || other === undefined ? [] : [{ label, value: show(other), holds: own === other }];
}

/** What crosses from forward to backward, as the partitioner counts it, and as autograd really held it. */
export function savedDerivation(): Derivation | null {
  const partition = ready(payload("partition", "partition"));
  if (!partition) return null;
  const memory = memoryFigures()?.saved;
  const inputs = partition.saved.filter((tensor) => tensor.is_input);
  const alone = run.value.compiles.length === 1;
  const terms: [string, string][] = [
    [t("derive.inputs"), `${inputs.length} · ${bytes(sum(inputs.map((tensor) => tensor.bytes ?? 0)))}`],
    [t("derive.activations"), `${partition.saved.length - inputs.length} · ${bytes(partition.saved_activation_bytes)}`],
  ];
  if (partition.save_everything_bytes !== null) terms.push([t("derive.everything"), bytes(partition.save_everything_bytes)]);
  if (!alone && memory?.partition_bytes) terms.push([t("derive.all_compiles"), bytes(memory.partition_bytes)]);
  // Views of one storage count once there and each for itself above, so these need not agree.
  if (memory?.kept_storages_bytes) terms.push([t("derive.kept_storages"), bytes(memory.kept_storages_bytes)]);
  const own = alone ? partition.saved_bytes : memory?.partition_bytes;
  return {
    from: t("derive.saved", { count: partition.saved.length, bytes: bytes(partition.saved_bytes) }),
    terms,
    checks: [
      ...check(t("derive.added"), partition.saved_bytes, sum(partition.saved.map((tensor) => tensor.bytes ?? 0)), bytes),
      ...(own ? check(t("derive.kept"), own, memory?.kept_tensor_bytes, bytes) : []),
    ],
  };
}

export function recomputedDerivation(count: number): Derivation {
  const partition = ready(payload("partition", "partition"));
  const terms: [string, string][] = [];
  if (partition?.recomputed_heavy?.length) terms.push([t("partition.heavy"), partition.recomputed_heavy.join(", ")]);
  if (partition?.drawn_again?.length) terms.push([t("partition.drawn"), partition.drawn_again.join(", ")]);
  return { from: t("derive.recomputed"), terms, checks: check(t("derive.partitioner"), count, partition?.recomputed.length) };
}

/** Nodes of one half; those of the joint graph are counted a second time by the replay of AOTAutograd's steps. */
export function nodesDerivation(stage: StageName, graph: GraphModel, half: "forward" | "backward"): Derivation {
  const mine = graph.nodes.filter((node) => node.backward === (half === "backward"));
  const kinds = new Map<string, number>();
  for (const { op } of mine) kinds.set(op, (kinds.get(op) ?? 0) + 1);
  const last = stage === "joint" ? ready(payload("joint", "aot_steps"))?.steps.at(-1) : null;
  return {
    from: t("derive.nodes"),
    terms: [...kinds].map(([op, number]) => [op, String(number)]),
    checks: check(t("derive.replayed"), mine.length, last?.[half]),
  };
}

const TWINS: Record<MemoryTimelinePayload["series"], readonly MemoryTimelinePayload["series"][]> = {
  plan: ["dry_run", "compiled"],
  dry_run: ["plan", "compiled"],
  compiled: ["dry_run", "plan"],
  eager: [],
};

/** A peak: the largest point of its series, against the blocks alive there and the other ways of obtaining it. */
export function peakDerivation(series: MemoryTimelinePayload["series"]): Derivation | null {
  const timeline = ready(payload("memory", "timeline", undefined, series));
  if (!timeline) return null;
  const peaks = memoryFigures()?.peaks ?? {};
  const alive = aliveAt(timeline, timeline.peak_point);
  const beyond = series === "plan" ? memoryFigures()?.beyond_plan : null;
  const reasons = (["workspace", "outside", "bodies"] as const).filter((kind) => beyond?.[kind]);
  return {
    from: [say(timeline.method), ...timeline.caveats.map((caveat) => say(caveat))].join(" "),
    terms: [
      [t("derive.points"), String(timeline.points.live.length)],
      [t("derive.end"), bytes(timeline.end_bytes)],
      [t("derive.peak_at"), `${timeline.peak_point} · ${timeline.strings[timeline.points.label[timeline.peak_point]!] ?? ""}`],
      // Why the dry run below has more.
      ...reasons.map((kind): [string, string] => [t(`derive.beyond_${kind}` as Key), bytes(beyond![kind])]),
    ],
    checks: [
      ...check(t("derive.blocks", { count: alive.length }), timeline.peak_bytes, sum(alive.map((block) => timeline.blocks.bytes[block]!)), bytes),
      ...(beyond?.bodies || beyond?.outside ? [] : check(t("derive.planned"), timeline.peak_bytes, beyond?.planned_peak, bytes)),
      ...TWINS[series].flatMap((other) => check(t(`peak.${other}` as Key), timeline.peak_bytes, peaks[other], bytes)),
    ],
  };
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

export function ratioDerivation(timing: NonNullable<ExecutionPayload["timing"]>): Derivation {
  const pairs = timing.eager.map((eager, i) => timing.compiled[i]! / eager);
  const again = median(pairs);
  return {
    from: `${say(timing.what)} ${t("derive.ratio", { count: pairs.length })}`,
    terms: [
      [t("series.eager"), seconds(median(timing.eager))],
      [t("derive.compiled"), seconds(median(timing.compiled))],
      [t("derive.interval"), `${timing.low.toFixed(3)} – ${timing.high.toFixed(3)}`],
    ],
    checks: [{ label: t("derive.median"), value: again.toFixed(4), holds: Math.abs(again - timing.ratio) < 1e-6 }],
  };
}

export function agreeDerivation({ comparisons }: ExecutionPayload): Derivation {
  const kinds = new Map<string, number>();
  for (const { kind } of comparisons) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  const worst = Math.max(0, ...comparisons.map((one) => one.max_abs ?? 0));
  return {
    from: t("derive.agree"),
    terms: [...[...kinds].map(([kind, count]): [string, string] => [t(`compare.${kind}` as Key), String(count)]), [t("execute.max_abs"), worst.toExponential(1)]],
  };
}

export function trafficDerivation(fusion: FusionPayload, schedule: SchedulePayload | null, before: number, after: number): Derivation {
  const apart = schedule?.nodes.map((node) => sum([...Object.values(node.reads), ...Object.values(node.writes)]));
  const unknown = fusion.groups.filter((group) => group.bytes_before === null || group.bytes_after === null).length;
  return {
    from: t("derive.traffic"),
    terms: [
      [t("derive.never_written"), bytes(before - after)],
      ...(unknown ? [[t("derive.unknown_groups"), String(unknown)] as const] : []),
    ],
    checks: unknown ? [] : check(t("derive.scheduled"), before, apart && sum(apart), bytes),
  };
}

export function groupsDerivation(fusion: FusionPayload, schedule: SchedulePayload | null): Derivation {
  return {
    from: t("derive.groups"),
    checks: [
      ...check(t("derive.schedule_lists"), fusion.nodes_before, schedule?.nodes.length),
      ...check(t("derive.members"), fusion.nodes_before, sum(fusion.groups.map((group) => group.members.length))),
      ...check(t("derive.listed"), fusion.nodes_after, fusion.groups.length),
    ],
  };
}

export function refusedDerivation({ decisions, groups }: FusionPayload): Derivation {
  const refused = decisions.filter((one) => !one.fused);
  const again = refused.filter((one) => one.asked === "again").length;
  const left = new Set(groups.map((group) => group.name));
  const pairs = new Set(refused.filter((one) => left.has(one.first) && left.has(one.second)).map((one) => [one.first, one.second].toSorted().join()));
  return {
    from: t("derive.refused"),
    terms: [
      [t("fusion.by_inductor"), String(refused.length - again)],
      [t("fusion.again"), String(again)],
    ],
    // Of many groups not every pair is asked about again.
    checks: again ? check(t("derive.pairs"), pairs.size, (groups.length * (groups.length - 1)) / 2) : [],
  };
}

/** Statements of the generated kernels: of a line of the model, of a library's line, of none, and why. */
export function coverageDerivation({ statements, statements_with_node, statements_with_line, library, unlinked }: KernelsPayload): Derivation {
  const places = Object.entries(library ?? {}).toSorted(([, a], [, b]) => b - a);
  const ofLibrary = sum(places.map(([, count]) => count));
  const why = new Map<string, number>();
  for (const { cause } of unlinked ?? []) why.set(say(cause), (why.get(say(cause)) ?? 0) + 1);
  return {
    from: t("codegen.coverage_help"),
    terms: [
      [t("derive.statements"), String(statements)],
      [t("derive.with_node"), String(statements_with_node)],
      [t("derive.with_line"), String(statements_with_line)],
      ...(ofLibrary ? [[t("derive.with_library"), String(ofLibrary)] as const] : []),
      ...places.slice(0, MOST_PLACES).map(([place, count]) => [place, String(count)] as const),
      ...[...why].map(([cause, count]) => [cause, String(count)] as const),
    ],
    checks: library ? check(t("derive.added_up"), statements, statements_with_line + ofLibrary + unlinked.length) : [],
  };
}

const MOST_PLACES = 6;

/** Kernels and external calls: those listed, against those that the stage counted in the generated text. */
export function kernelsDerivation(kernels: KernelsPayload, facts: Facts): Derivation {
  const external = kernels.kernels.filter((kernel) => kernel.kind === "extern").length;
  return {
    from: t("derive.kernels"),
    terms: [[t("derive.launches"), String(facts["launches"] ?? "")]],
    checks: [
      ...check(t("derive.kernels_in_text"), kernels.kernels.length - external, number(facts["kernels"])),
      ...check(t("derive.calls_in_text"), external, number(facts["extern"])),
      ...check(t("derive.launches_listed"), number(facts["launches"]) ?? 0, sum(kernels.kernels.map((kernel) => (kernel.kind === "extern" ? 0 : kernel.launches.length)))),
    ],
  };
}

const number = (value: unknown): number | null => (typeof value === "number" ? value : null);

/** Inductor's nodes before fusion, against what the fusion was given. */
export function scheduledDerivation(schedule: SchedulePayload, fusion: FusionPayload | null): Derivation {
  const kinds = new Map<string, number>();
  for (const { kind } of schedule.nodes) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  return {
    from: t("derive.schedule"),
    terms: [...kinds].map(([kind, count]) => [kind, String(count)]),
    checks: check(t("derive.fusion_given"), schedule.nodes.length, fusion?.nodes_before),
  };
}

/** What is kept for the backward: the partition's account of it, and the storages held. */
export function keptDerivation(): Derivation {
  const partition = savedDerivation();
  const held = heldDerivation("kept_storages_bytes");
  return partition ? { ...partition, checks: [...(partition.checks ?? []), ...(held.checks ?? [])] } : held;
}

/** Storages held after a forward: each phase measures them in a process of its own. */
export function heldDerivation(name: "kept_storages_bytes" | "eager_storages_bytes"): Derivation {
  const found = memoryPhases().map(({ saved }) => saved[name]).filter((size) => size !== null);
  const [first, ...again] = found;
  return {
    from: t("derive.storages"),
    checks: first === undefined ? [] : again.flatMap((size) => check(t("derive.measured_again"), first, size, bytes)),
  };
}

/** Leaf conditions: as the run counted them in torch's own tree, and again in the tree's text. */
export function guardsDerivation({ guards, leaf_guards, tree }: GuardsPayload): Derivation {
  const leaf = /\+- (?!\w*GuardManager)/;
  return {
    from: t("derive.guards"),
    terms: [[t("derive.guards_made"), String(guards.length)]],
    checks: tree ? check(t("derive.leaves_in_text"), leaf_guards, tree.split("\n").filter((line) => leaf.test(line)).length) : [],
  };
}

/** Cache entries that did not fit, against how often Dynamo was asked to compile a function once more. */
export function recompilesDerivation({ recompiles }: RecompilesPayload): Derivation {
  const compiles = new Set(recompiles.map((one) => one.compile)).size;
  return { from: t("derive.recompiles"), checks: check(t("derive.recompiles_asked"), compiles, number(run.value.summary?.["recompiles"])) };
}

/** Nodes after one of AOTAutograd's transforms, against the step before it and, of the last, against the graph itself. */
export function stepDerivation({ steps }: AotStepsPayload, at: number, real: Facts): Derivation {
  const step = steps[at]!;
  const before = steps[at - 1]?.nodes ?? null;
  const change = sum(step.gained.map((one) => one.count)) - sum(step.lost.map((one) => one.count));
  return {
    from: t("derive.step"),
    checks: [
      ...(before === null ? [] : check(t("derive.step_before"), step.nodes ?? 0, before + change)),
      ...(at === steps.length - 1 ? check(t("derive.step_real"), step.nodes ?? 0, number(real["nodes"])) : []),
    ],
  };
}

/** Compiling as torch counts it, and the C++ compiler's part of it. */
export function compileDerivation(execution: ExecutionPayload): Derivation {
  const { compile_seconds: all, native_seconds: native } = execution;
  const terms: [string, string][] = native === null ? [] : [[t("execute.native"), seconds(native)]];
  if (all !== null && native !== null) terms.push([t("derive.compile_rest"), seconds(all - native)]);
  return { from: t("derive.compile"), terms };
}
