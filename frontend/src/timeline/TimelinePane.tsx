import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { keysOn, painted } from "../app/settings";
import type { MemoryTimelinePayload } from "../generated/contract";
import { language, t, type Key } from "../messages";
import { bytes, shortBytes } from "../messages/format";
import { closure, payload, place, ready, run, select, selected, show } from "../state/store";
import { memoryFigures } from "../state/memory";
import { blocksOf, tensorsOf, type Tensor } from "../state/tensors";
import { aliveAt } from "./stack";
import { useReveal } from "../views/reveal";
import { TimelineView } from "./view";

type Series = MemoryTimelinePayload["series"];
const NO_TENSORS: readonly Tensor[] = [];
const SERIES: readonly Series[] = ["eager", "plan", "dry_run", "compiled"];

function useTimelines(): Record<Series, MemoryTimelinePayload | null> {
  return {
    plan: ready(payload("memory", "timeline", undefined, "plan")),
    dry_run: ready(payload("memory", "timeline", undefined, "dry_run")),
    eager: ready(payload("memory", "timeline", undefined, "eager")),
    compiled: ready(payload("memory", "timeline", undefined, "compiled")),
  };
}

const IN_SIGHT = 3;

/** The strip below: live bytes of one step, and what is alive at the cursor, or at the peak. */
export function TimelinePane({ list = 9 }: { list?: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const view = useRef<TimelineView | null>(null);
  const timelines = useTimelines();
  const wanted = useSignal<Series>("dry_run");
  const available = SERIES.filter((name) => timelines[name]);
  const series = timelines[wanted.value] ? wanted.value : (available[0] ?? "dry_run");
  const timeline = timelines[series];
  const peak = timeline?.peak_bytes ?? 0;
  // The device's memory is a line where it is within sight of the peak.
  const memory = memoryFigures()?.limit_bytes ?? null;
  const limit = memory !== null && memory <= IN_SIGHT * peak ? memory : null;
  const scale = Math.max(peak, limit ?? 0);
  const tensors = timeline ? tensorsOf(timeline) : NO_TENSORS;
  const pick = (block: number): void => {
    const line = timeline?.blocks.line[block];
    select(tensors[block]?.node ?? (line ? `line/${line}` : null));
  };
  const last = useRef<((block: number) => void) | null>(null);
  last.current = pick;

  useEffect(() => {
    const made = new TimelineView(canvas.current!, words(), {
      onPoint: (point) => show({ point }),
      onBlock: (block, point) => {
        show({ point });
        last.current?.(block);
      },
    });
    view.current = made;
    return () => made.close();
  }, []);
  useEffect(() => view.current?.set(timeline, scale, limit), [timeline, scale, limit]);
  useEffect(() => view.current?.setWords(words()), [language.value]);
  useEffect(() => view.current?.retheme(), [painted.value]);
  const point = place.value.point;
  useEffect(() => view.current?.setCursor(point), [point]);
  const linked = useMemo(
    () => (timeline ? blocksOf(timeline, tensors, closure.value, selected.value) : new Set<number>()),
    [timeline, tensors, closure.value, selected.value],
  );
  useEffect(() => view.current?.setLinked(linked), [linked]);

  const onKey = (event: KeyboardEvent): void => {
    if (!timeline || !keysOn.value || event.ctrlKey || event.metaKey || event.altKey) return;
    const end = timeline.points.live.length - 1;
    const at = point ?? timeline.peak_point;
    const to: Record<string, number> = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: end, p: timeline.peak_point };
    const next = to[event.key];
    if (next === undefined) return;
    show({ point: Math.max(0, Math.min(end, next)) });
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <section class="mem" aria-label={t("timeline.label")}>
      <div class="tl">
        <div class="plot">
          <canvas
            ref={canvas}
            tabIndex={0}
            role="slider"
            aria-label={t("timeline.label")}
            aria-valuemin={0}
            aria-valuemax={timeline ? timeline.points.live.length - 1 : 0}
            aria-valuenow={point ?? timeline?.peak_point ?? 0}
            aria-valuetext={timeline ? headline(timeline, point) : t("timeline.none")}
            onKeyDown={onKey}
          />
          {!timeline && <p class="empty">{run.value.status === "running" ? t("timeline.waiting") : t("timeline.none")}</p>}
        </div>
        <div class="under">
          <span>{t("timeline.by_point")}</span>
          <span role="group" aria-label={t("timeline.series")}>
            {available.map((name) => (
              <button key={name} aria-pressed={name === series} onClick={() => (wanted.value = name)}>
                {t(`series.${name}` as Key)} {name === series ? "●" : "○"}
              </button>
            ))}
          </span>
        </div>
      </div>
      <Alive timeline={timeline} tensors={tensors} point={point} linked={linked} list={list} onPick={pick} />
    </section>
  );
}

/** Which buffers had this block, one after the other, where the plan says so. */
function owners({ owners: held, strings }: MemoryTimelinePayload, block: number): string {
  if (!held) return "";
  const turns = held.block.flatMap((of, i) => (of === block ? [i] : []));
  if (turns.length < 2) return "";
  return turns.map((i) => t(`owner.${held.how[i]!}` as Key, { name: strings[held.name[i]!]!, point: held.point[i]! })).join("\n");
}

function words() {
  return { forward: t("forward"), backward: t("backward"), peak: t("timeline.peak"), limit: t("memory.limit"), bytes: shortBytes };
}

function headline(timeline: MemoryTimelinePayload, point: number | null): string {
  const at = point ?? timeline.peak_point;
  const live = timeline.points.live[at] ?? 0;
  const label = (timeline.strings[timeline.points.label[at]!] ?? "").split(" = ")[0]!.slice(0, 48);
  const said = at === timeline.peak_point ? "timeline.peak_at" : "timeline.alive_at";
  return t(said, { bytes: bytes(live), point: at, what: label ? ` · ${label}` : "" });
}

interface AliveProps {
  readonly timeline: MemoryTimelinePayload | null;
  readonly tensors: readonly Tensor[];
  readonly point: number | null;
  readonly linked: ReadonlySet<number>;
  readonly list: number;
  onPick(block: number): void;
}

function Alive({ timeline, tensors, point, linked, list, onPick }: AliveProps) {
  const pane = useRef<HTMLDivElement>(null);
  useReveal(pane, linked);
  if (!timeline) return <div class="pk" />;
  const at = Math.min(point ?? timeline.peak_point, timeline.points.live.length - 1);
  const alive = aliveAt(timeline, at);
  const shown = alive.slice(0, alive.length > list ? list - 1 : list);
  const rest = alive.slice(shown.length);
  const { blocks, strings } = timeline;
  return (
    <div class="pk" ref={pane} tabIndex={0}>
      <h3>{headline(timeline, at)}</h3>
      {shown.map((block) => {
        const line = blocks.line[block]!;
        const kind = strings[blocks.kind[block]!]!;
        const reused = new Set(timeline.owners?.name.filter((_, i) => timeline.owners!.block[i] === block)).size;
        return (
          <button
            key={block}
            class={`row ${linked.has(block) ? "sel" : ""}`}
            title={[tensors[block]!.buffer, owners(timeline, block)].filter(Boolean).join("\n")}
            onClick={() => onPick(block)}
          >
            <span>{tensors[block]!.name}</span>
            <span>
              {[line ? t("line", { line }) : "", t(`block.${kind}` as Key), reused > 1 ? `×${reused}` : ""].filter(Boolean).join(" · ")}
            </span>
            <span>{bytes(blocks.bytes[block]!)}</span>
          </button>
        );
      })}
      {rest.length > 0 && (
        <div class="row">
          <span class="dim">{t("timeline.more", { count: rest.length })}</span>
          <span />
          <span>{bytes(rest.reduce((sum, block) => sum + blocks.bytes[block]!, 0))}</span>
        </div>
      )}
    </div>
  );
}
