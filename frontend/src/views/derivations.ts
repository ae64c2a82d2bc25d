import type { ExecutionPayload, FusionPayload, KernelsPayload, MemoryTimelinePayload, SchedulePayload, StageName } from "../generated/contract";
import type { GraphModel } from "../graph/model/graph";
import { say, t, type Key } from "../messages";
import { bytes, seconds } from "../messages/format";
import { memoryFigures } from "../state/memory";
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
  return {
    from: say(timeline.method),
    terms: [
      [t("derive.points"), String(timeline.points.live.length)],
      [t("derive.end"), bytes(timeline.end_bytes)],
      [t("derive.peak_at"), `${timeline.peak_point} · ${timeline.strings[timeline.points.label[timeline.peak_point]!] ?? ""}`],
    ],
    checks: [
      ...check(t("derive.blocks", { count: alive.length }), timeline.peak_bytes, sum(alive.map((block) => timeline.blocks.bytes[block]!)), bytes),
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

export function refusedDerivation({ decisions }: FusionPayload): Derivation {
  const refused = decisions.filter((one) => !one.fused);
  const again = refused.filter((one) => one.asked === "again").length;
  return {
    from: t("derive.refused"),
    terms: [
      [t("fusion.by_inductor"), String(refused.length - again)],
      [t("fusion.again"), String(again)],
    ],
  };
}

export function coverageDerivation(kernels: KernelsPayload): Derivation {
  return {
    from: t("codegen.coverage_help"),
    terms: [
      [t("derive.statements"), String(kernels.statements)],
      [t("derive.with_node"), String(kernels.statements_with_node)],
      [t("derive.with_line"), String(kernels.statements_with_line)],
    ],
  };
}
