import { signal } from "@preact/signals";
import type { StageName } from "../generated/contract";
import { fusedGraph, stagePicture } from "../state/graphs";
import { t } from "../messages";
import { bytes } from "../messages/format";
import { findArtifact, STAGES, stageOf } from "../state/events";
import { pictureOf, passPicture, stepOf, type Step } from "../state/overlay";
import { compile, graphsOf, payload, place, ready, run, show, stage } from "../state/store";
import { stageLabel } from "./Rail";

export const AXES = ["stage", "pass", "point"] as const;
export type Axis = (typeof AXES)[number];

/** Seconds that each step stays on show while it plays by itself. */
export const SPEEDS = [1, 2, 4, 8] as const;

export const playing = signal(false);
export const speed = signal<(typeof SPEEDS)[number]>(2);

export const axisOf = (text: string | null): Axis | null => AXES.find((axis) => axis === text) ?? null;

interface Walk {
  readonly count: number;
  /** The step that is on show; -1 before the first. */
  readonly at: number;
  readonly go: (to: number) => void;
}

export function walkOf(axis: Axis): Walk {
  if (axis === "stage") return stages();
  return axis === "pass" ? passes() : points();
}

/** Stages that have something to show, in their order. */
function stages(): Walk {
  const shown = STAGES.filter((name) => name === "source" || stageOf(run.value, compile.value, name).artifacts.some((made) => made.kind !== "links"));
  return {
    count: shown.length,
    at: shown.indexOf(stage.value),
    go: (to) => show({ stage: shown[to]!, graph: null, tab: null, pass: null }),
  };
}

interface PassAt {
  readonly stage: StageName;
  readonly graph: string;
  readonly pass: number;
}

/** Every pass of the compile that changed something, in the order in which they ran. */
function changedPasses(): PassAt[] {
  const found: PassAt[] = [];
  for (const name of ["pre_grad", "joint_passes", "post_grad"] as const) {
    for (const graph of graphsOf(name, "passes")) {
      ready(payload(name, "passes", graph))?.steps.forEach((step, pass) => {
        if (step.changed) found.push({ stage: name, graph, pass });
      });
    }
  }
  return found;
}

function passes(): Walk {
  const all = changedPasses();
  const { graph, pass } = place.value;
  return {
    count: all.length,
    at: all.findIndex((one) => one.stage === stage.value && one.pass === pass && (graph ?? one.graph) === one.graph),
    go: (to) => {
      const next = all[to]!;
      const drawn = findArtifact(stageOf(run.value, compile.value, next.stage), "graph") !== null;
      show({ ...next, tab: drawn ? "graph" : null, overlay: drawn ? "changed" : place.value.overlay });
    },
  };
}

/** The timeline's points: the one on show by default, which is Inductor's own wrapper, run dry. */
function points(): Walk {
  const timeline = shownTimeline();
  return {
    count: timeline?.points.live.length ?? 0,
    at: place.value.point ?? -1,
    go: (point) => {
      const entity = timeline?.strings[timeline.points.entity[point]!];
      const line = timeline?.points.line[point];
      show({ point, node: entity || null, line: entity || !line ? null : line });
    },
  };
}

function shownTimeline() {
  for (const series of ["dry_run", "plan", "compiled", "eager"]) {
    const held = ready(payload("memory", "timeline", undefined, series));
    if (held) return held;
  }
  return null;
}

/** What the step on show did, in a sentence of its own figures. */
export function told(axis: Axis): string {
  if (axis === "point") return pointTold();
  const name = stage.value;
  const what = t(`about.${name}`);
  const graph = axis === "pass" ? (passPicture(name) ?? stagePicture(name)) : name === "fusion" ? fusedGraph() : pictureOf(name);
  const step = graph && stepOf(name, graph);
  if (!step) return what;
  return `${axis === "stage" ? `${what} ` : ""}${changeTold(step)}`;
}

function changeTold({ from, changes }: Step): string {
  const figures = { added: changes.added.size, changed: changes.changed.size, gone: changes.gone.length, same: changes.same };
  const quiet = figures.added + figures.changed + figures.gone === 0;
  const of = "pass" in from ? from.pass : stageLabel(from.stage);
  if (quiet) return t("step.same", { from: of, same: figures.same });
  return t("pass" in from ? "step.pass" : "step.since", { from: of, ...figures });
}

function pointTold(): string {
  const timeline = shownTimeline();
  const at = place.value.point;
  if (!timeline || at === null) return t("step.points");
  const { blocks, points: held, strings } = timeline;
  const names = (places: readonly number[]): string => {
    const own = blocks.name.flatMap((name, i) => (places[i] === at ? [`${strings[name]!} (${bytes(blocks.bytes[i]!)})`] : []));
    return own.slice(0, 3).join(", ") + (own.length > 3 ? ` +${own.length - 3}` : "");
  };
  const came = names(blocks.start);
  const went = names(blocks.end);
  const parts = [
    strings[held.label[at]!]!.split(" = ")[0]!.slice(0, 60),
    came && t("step.allocated", { names: came }),
    went && t("step.freed", { names: went }),
    t("step.alive", { bytes: bytes(held.live[at]!) }),
  ];
  return parts.filter(Boolean).join(" · ");
}
