import { useEffect, useMemo, useRef } from "preact/hooks";
import { embed, submit } from "../app/control";
import { lineId } from "../link/entity";
import { t } from "../messages";
import { bytes, shortBytes } from "../messages/format";
import { stageOf } from "../state/events";
import { compile, linkedLines, payload, ready, run, select, selected, selectedLines, source } from "../state/store";
import { aliveAt } from "../timeline/stack";
import { SourceEditor, type Costs, type LineCost } from "./editor";

/** What each line costs: bytes saved for the backward, its share of the peak, and whether the graph broke there. */
function useCosts(): Costs {
  const partition = ready(payload("partition", "partition"));
  const breaks = ready(payload("dynamo", "breaks"));
  const timeline = ready(payload("memory", "timeline", undefined, "dry_run"));
  return useMemo(() => {
    const saved = new Map<number, number>();
    for (const tensor of partition?.saved ?? []) {
      if (!tensor.is_input && tensor.line) saved.set(tensor.line, (saved.get(tensor.line) ?? 0) + (tensor.bytes ?? 0));
    }
    const blame = new Map<number, number>();
    if (timeline) {
      for (const block of aliveAt(timeline, timeline.peak_point)) {
        const line = timeline.blocks.line[block]!;
        if (line) blame.set(line, (blame.get(line) ?? 0) + timeline.blocks.bytes[block]!);
      }
    }
    const most = Math.max(1, ...saved.values(), ...blame.values());
    const costs = new Map<number, LineCost>();
    for (const line of new Set([...saved.keys(), ...blame.keys()])) {
      const kept = saved.get(line) ?? 0;
      const peak = blame.get(line) ?? 0;
      if (kept + peak === 0) continue;
      const title = [
        kept ? t("cost.saved", { bytes: bytes(kept) }) : "",
        peak ? t("cost.peak", { bytes: bytes(peak) }) : "",
      ].filter(Boolean);
      costs.set(line, {
        share: Math.sqrt(Math.max(kept, peak) / most),
        text: kept ? shortBytes(kept) : "",
        title: title.join(" · "),
        trouble: false,
      });
    }
    for (const one of breaks?.breaks ?? []) {
      if (!one.line || one.kind === "skipped") continue;
      costs.set(one.line, { share: 1, text: t("cost.break"), title: one.reason || one.gb_type, trouble: true });
    }
    return costs;
  }, [partition, breaks, timeline]);
}

/** The first line that broke the graph, else the first that costs anything. */
function firstMark(costs: Costs): number {
  const broken = [...costs].filter(([, cost]) => cost.trouble).map(([line]) => line);
  return Math.min(...(broken.length ? broken : costs.keys()));
}

function errorLine(): number | null {
  const now = run.value;
  if (now.ending?.line) return now.ending.line;
  for (const state of Object.values(now.stages)) if (state.failure?.line) return state.failure.line;
  return stageOf(now, compile.value, "source").failure?.line ?? null;
}

export function SourcePane() {
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<SourceEditor | null>(null);
  const costs = useCosts();
  const same = run.value.request?.source === source.value;

  useEffect(() => {
    const made = new SourceEditor(
      host.current!,
      source.peek(),
      {
        onChange: (text) => (source.value = text),
        onLine: (line) => {
          const known = linkedLines.peek();
          select(known?.has(line) ? lineId(line) : null);
        },
        onRun: () => void submit(),
      },
      t("editor.label"),
    );
    editor.current = made;
    return () => made.close();
  }, []);

  useEffect(() => editor.current?.setText(source.value), [source.value]);
  useEffect(() => editor.current?.setReadOnly(embed.value), [embed.value]);
  useEffect(() => editor.current?.setCosts(same ? costs : new Map<number, LineCost>()), [costs, same]);
  const linked = linkedLines.value;
  const lines = selectedLines.value;
  const chosen = selected.value !== null;
  const wrong = errorLine();
  useEffect(() => {
    editor.current?.setDress({
      selected: same ? lines : new Set<number>(),
      // Only while something is selected: at rest the code is there to be read.
      dim: same && chosen && linked !== null ? (line) => !linked.has(line) : null,
      error: same ? wrong : null,
    });
    const first = Math.min(...lines);
    if (same && Number.isFinite(first) && !selected.peek()?.startsWith("line/")) editor.current?.reveal(first);
    else if (same && lines.size === 1) editor.current?.reveal(first);
  }, [linked, lines, chosen, wrong, same, costs]);
  useEffect(() => {
    if (wrong !== null) editor.current?.reveal(wrong);
  }, [wrong]);
  const opened = useRef("");
  const id = run.value.id;
  useEffect(() => {
    // Once for each run, when its first marks are there, and never under the hands of who is typing.
    if (!same || !costs.size || opened.current === id) return;
    opened.current = id;
    if (selected.peek() === null && wrong === null && !editor.current?.view.hasFocus) editor.current?.reveal(firstMark(costs));
  }, [same, costs, id]);

  return <div class="cm-host" ref={host} data-pane="source" />;
}
