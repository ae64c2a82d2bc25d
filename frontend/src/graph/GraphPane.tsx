import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { keysOn, painted } from "../app/settings";
import type { StageName } from "../generated/contract";
import { parseEntity } from "../link/entity";
import { language, t } from "../messages";
import { bytes, opName, shape } from "../messages/format";
import { kinOf, overlayFacts, stepOf } from "../state/overlay";
import { closure, linkIndex, payload, place, ready, run, select, selected, show } from "../state/store";
import { groupKey } from "./layout/compose";
import type { Area, Box, Scene } from "./layout/scene";
import type { GraphModel } from "./model/graph";
import { near } from "./model/near";
import { overlay, OVERLAYS, overlayOf, type Overlay } from "./overlay/overlay";
import type { Words } from "./render/paint";
import { GraphView, type Arrival } from "./render/view";
import { LayoutClient } from "./worker/client";

/** How far each graph was opened, kept while the page lives, so that going to another stage and back changes nothing. */
const opened = new Map<string, readonly string[]>();

/** The picture that was last left: the next one begins where it stood. */
let left: { graph: GraphModel; run: string; scene: Scene; rects: readonly Area[] } | null = null;

const MOST_HOPS = 3;

/** Where the boxes of the picture before stand, and which of its nodes ours came from. */
function arrivalOf(graph: GraphModel): Arrival | null {
  if (!left || left.run !== run.value.id) return null;
  const { graph: before, scene, rects } = left;
  return { scene, rects, kin: kinOf(graph, before) };
}

interface Props {
  readonly stage: StageName;
  readonly graph: GraphModel;
  /** Whether every weight and buffer is drawn. */
  readonly parameters: Signal<boolean>;
  readonly label: string;
}

export function GraphPane({ stage, graph, parameters, label }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const view = useRef<GraphView | null>(null);
  const client = useRef<LayoutClient | null>(null);
  const scene = useSignal<Scene | null>(null);
  const focus = useSignal<string | null>(null);
  const tip = useSignal<{ box: Box; x: number; y: number } | null>(null);
  const hops = useSignal(0);
  const finding = useSignal<string | null>(null);
  const revealed = useRef<string | null>(null);
  const opening = useRef<string | null>(null);

  const words = useMemo<Words>(
    () => ({
      turn: t("graph.turn"),
      backward: t("backward"),
      bytes,
      name: (node) => graph.nodes[node]!.name,
    }),
    [graph, language.value],
  );

  const toggle = (key: string): void => {
    const now = scene.value;
    if (!now) return;
    const group = key.slice(2);
    view.current?.hold(key);
    const open = now.open.includes(group)
      ? now.open.filter((other) => other !== group && !other.startsWith(`${group}.`) && !other.startsWith(`${group}/`))
      : [...now.open, group];
    opened.set(graph.id, open);
    client.current?.layout(open);
  };

  useEffect(() => {
    const made = new GraphView(canvas.current!, words, {
      onPick: (box) => {
        focus.value = box?.kind === "node" ? null : (box?.key ?? null);
        if (!box) select(null);
        else if (box.kind === "node") select(box.key);
      },
      onPickNode: (node) => select(graph.nodes[node]!.id),
      onToggle: toggle,
      onHover: (box, x, y) => (tip.value = box ? { box, x, y } : null),
    });
    view.current = made;
    let arrival = arrivalOf(graph);
    const layout = new LayoutClient(graph, parameters.value, (next) => {
      scene.value = next;
      made.setScene(next, arrival);
      arrival = null;
    });
    client.current = layout;
    layout.layout(opened.get(graph.id) ?? null);
    return () => {
      const last = made.snapshot();
      if (last) left = { graph, run: run.value.id, ...last };
      layout.close();
      made.close();
    };
  }, [graph, parameters.value]);

  useEffect(() => view.current?.setWords(words), [words]);
  useEffect(() => view.current?.retheme(), [painted.value]);

  const reached = closure.value;
  const chosen = selected.value;
  const now = scene.value;
  const marks = useMemo(() => markBoxes(graph, now, reached, chosen), [graph, now, reached, chosen]);
  const query = finding.value;
  const hits = useMemo(() => (query ? search(graph, query) : []), [graph, query]);
  useEffect(() => {
    const found = new Set(hits.map((node) => graph.nodes[node]!.id));
    const start = new Set([...marks.linked, ...(focus.value ? [focus.value] : [])]);
    const around = now && hops.value > 0 ? near(now, start, hops.value) : null;
    view.current?.setMarks({ ...marks, focus: focus.value, near: around, found });
  }, [now, marks, focus.value, hits, hops.value]);

  const shading = overlayOf(place.value.overlay);
  const timed = ready(payload("execute", "execution"));
  const step = shading === "changed" ? stepOf(stage, graph) : null;
  const shades = useMemo(
    () => (shading && now ? overlay(shading, graph, now, overlayFacts(graph, step)) : null),
    [shading, graph, now, step, timed, linkIndex().size, language.value],
  );
  useEffect(() => view.current?.setOverlay(shades), [shades, now]);

  // A selection made elsewhere is opened and brought into view once, not again and again while the user moves about.
  useEffect(() => {
    if (!now || revealed.current === chosen) return;
    const own = chosen === null ? undefined : (graph.byId.get(chosen) ?? marks.nodes[0]);
    if (own === undefined) {
      revealed.current = chosen;
      return;
    }
    const id = graph.nodes[own]!.id;
    const here = now.boxes.some((box) => box.key === id);
    if (!here && opening.current !== chosen && graph.byId.get(chosen!) === own && graph.nodes[own]!.op !== "output") {
      opening.current = chosen;
      client.current?.layout([...now.open], own);
      return;
    }
    revealed.current = chosen;
    const key = here ? id : [...marks.linked][0];
    if (key) view.current?.reveal(key);
  }, [now, chosen, marks]);

  const walk = (by: number): void => {
    if (!now) return;
    const boxes = now.boxes.filter((box) => !box.open);
    const current = focus.value ?? chosen;
    const at = boxes.findIndex((box) => box.key === current);
    const here = boxes[at];
    const column = boxes.filter((box) => !here || box.backward === here.backward);
    column.sort((a, b) => a.y - b.y || a.x - b.x);
    const place = here ? column.indexOf(here) + by : 0;
    const next = column[Math.max(0, Math.min(column.length - 1, place))];
    if (next) goTo(next);
  };
  const goTo = (box: Box): void => {
    revealed.current = box.kind === "node" ? box.key : revealed.current;
    focus.value = box.kind === "node" ? null : box.key;
    if (box.kind === "node") select(box.key);
    view.current?.reveal(box.key);
  };
  const mirror = (): void => {
    const key = focus.value ?? chosen;
    if (!now || !key) return;
    const node = graph.byId.get(key);
    const other = node === undefined ? undefined : twinOf(graph, node);
    const id = other === undefined ? groupKey(key.slice(2), !key.startsWith("b:")) : graph.nodes[other]!.id;
    const box = now.boxes.find((one) => one.key === id);
    if (box) goTo(box);
  };

  const nextHops = (): void => {
    hops.value = (hops.value + 1) % (MOST_HOPS + 1);
  };

  const onKey = (event: KeyboardEvent): void => {
    if (!keysOn.value || event.ctrlKey || event.metaKey || event.altKey) return;
    const actions: Record<string, () => void> = {
      " ": () => view.current?.fitAll(),
      "/": () => (finding.value = ""),
      "+": () => view.current?.zoom(1.25),
      "=": () => view.current?.zoom(1.25),
      "-": () => view.current?.zoom(0.8),
      ArrowDown: () => walk(1),
      ArrowUp: () => walk(-1),
      m: mirror,
      n: nextHops,
      Enter: () => {
        const box = now?.boxes.find((one) => one.key === (focus.value ?? chosen));
        if (box && box.kind !== "node") toggle(box.key);
      },
    };
    const action = actions[event.key];
    if (!action) return;
    action();
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div class="graph" data-ready={now ? "true" : "false"}>
      {shades ? <Shades overlay={shades} untimed={!timed?.kernels.length} /> : <span />}
      <div class="paper">
        <canvas
          ref={canvas}
          tabIndex={0}
          role="application"
          aria-label={label}
          aria-describedby="graph-said"
          onKeyDown={onKey}
        />
      </div>
      <span id="graph-said" class="sr" aria-live="polite">
        {chosen && graph.byId.has(chosen) ? describe(graph, graph.byId.get(chosen)!) : ""}
      </span>
      {finding.value !== null && (
        <Find
          query={finding.value}
          hits={hits}
          find={(text) => search(graph, text)}
          onQuery={(text) => (finding.value = text)}
          onGo={(node) => {
            revealed.current = null;
            select(graph.nodes[node]!.id);
          }}
          onClose={() => {
            finding.value = null;
            canvas.current?.focus();
          }}
        />
      )}
      <div class="tools">
        <label class="pill pick">
          <small>{t("overlay.title")}</small>
          <select
            aria-label={t("overlay.title")}
            value={shading ?? ""}
            onChange={(event) => show({ overlay: event.currentTarget.value || null })}
          >
            <option value="">{t("overlay.none")}</option>
            {OVERLAYS.map((name) => (
              <option key={name} value={name}>
                {t(`overlay.${name}`)}
              </option>
            ))}
          </select>
        </label>
        {(chosen ?? focus.value) !== null && (
          <button class="word" aria-pressed={hops.value > 0} title={`${t("keys.near")} (n)`} onClick={nextHops}>
            {hops.value > 0 ? t("graph.near_hops", { hops: hops.value }) : t("graph.near")}
          </button>
        )}
        <button
          class="word wide"
          aria-pressed={parameters.value}
          title={t("graph.parameters_help")}
          onClick={() => (parameters.value = !parameters.value)}
        >
          {t("graph.parameters")}
        </button>
        <button title={`${t("keys.search")} (/)`} aria-label={t("keys.search")} onClick={() => (finding.value ??= "")}>
          ⌕
        </button>
        <button title={t("graph.out")} aria-label={t("graph.out")} onClick={() => view.current?.zoom(0.8)}>
          −
        </button>
        <button title={t("graph.in")} aria-label={t("graph.in")} onClick={() => view.current?.zoom(1.25)}>
          +
        </button>
        <button title={`${t("keys.fit")} (Space)`} aria-label={t("keys.fit")} onClick={() => view.current?.fitAll()}>
          ⤢
        </button>
      </div>
      {tip.value && <Tip graph={graph} at={tip.value} />}
    </div>
  );
}

/** The legend of an overlay: each shade with what it means. */
function Shades({ overlay: { name, legend }, untimed }: { overlay: Overlay; untimed: boolean }) {
  const nothing = name === "time" && untimed ? t("overlay.untimed") : name === "changed" ? t("overlay.unchanged") : "";
  return (
    <div class="shades" role="note" aria-label={t("overlay.legend")} title={t(`overlay.help_${name}`)} data-overlay={name}>
      <b>{t(`overlay.${name}`)}</b>
      {legend.map(({ shade, tag }) => (
        <span key={tag}>
          <i class={`shade-${shade}`} /> {tag}
        </span>
      ))}
      {legend.length === 0 && <span>{nothing}</span>}
      <p>{t(`overlay.help_${name}`)}</p>
    </div>
  );
}

function Tip({ graph, at }: { graph: GraphModel; at: { box: Box; x: number; y: number } }) {
  const { box, x, y } = at;
  const left = Math.min(x + 14, innerWidth - 300);
  return (
    <div class="tip" style={{ left: `${left}px`, top: `${Math.min(y + 16, innerHeight - 60)}px` }}>
      {box.node >= 0 ? describe(graph, box.node) : t("graph.group", { name: box.label, count: box.count })}
    </div>
  );
}

function describe(graph: GraphModel, node: number): string {
  const { name, op, target, value, bytes: size, line } = graph.nodes[node]!;
  const parts = [name, opName(op, target), shape(value)];
  if (size > 0) parts.push(bytes(size));
  if (line > 0) parts.push(t("line", { line }));
  return parts.filter(Boolean).join(" · ");
}

function twinOf(graph: GraphModel, node: number): number | undefined {
  const twin = graph.nodes[node]!.twin;
  if (twin >= 0) return twin;
  const back = graph.nodes.findIndex((other) => other.backward && other.twin === node);
  return back < 0 ? undefined : back;
}

function search(graph: GraphModel, text: string): number[] {
  const want = text.toLowerCase();
  const hits: number[] = [];
  graph.nodes.forEach((node, i) => {
    if (node.op === "output") return;
    if (`${node.name} ${node.target} ${node.module} ${node.gradFn}`.toLowerCase().includes(want)) hits.push(i);
  });
  return hits;
}

interface FindProps {
  readonly query: string;
  readonly hits: readonly number[];
  find(text: string): readonly number[];
  onQuery(text: string): void;
  onGo(node: number): void;
  onClose(): void;
}

function Find({ query, hits, find, onQuery, onGo, onClose }: FindProps) {
  const input = useRef<HTMLInputElement>(null);
  const at = useRef(-1);
  useEffect(() => input.current?.focus(), []);
  // Asked anew: whoever types fast presses Enter before the list is drawn again.
  const go = (by: number, text: string): void => {
    const found = find(text);
    if (!found.length) return;
    at.current = (at.current + by + found.length) % found.length;
    onGo(found[at.current]!);
  };
  return (
    <div class="find" role="search">
      <input
        ref={input}
        value={query}
        placeholder={t("graph.find")}
        aria-label={t("graph.find")}
        onInput={(event) => {
          at.current = -1;
          onQuery(event.currentTarget.value);
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") go(event.shiftKey ? -1 : 1, event.currentTarget.value);
          else if (event.key === "Escape") onClose();
          else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      />
      <span class="dim">{query ? t("graph.hits", { count: hits.length }) : ""}</span>
      <button class="ic" aria-label={t("close")} onClick={onClose}>
        ✕
      </button>
    </div>
  );
}

interface Marked {
  readonly selected: string | null;
  readonly linked: ReadonlySet<string>;
  readonly nodes: readonly number[];
}

/** Which boxes hold a part of the selection: nodes by their id, closed groups by what is in them. */
function markBoxes(graph: GraphModel, scene: Scene | null, reached: ReadonlySet<string>, chosen: string | null): Marked {
  const linked = new Set<string>();
  const nodes: number[] = [];
  if (!scene || chosen === null) return { selected: null, linked, nodes };
  for (const id of reached) {
    const node = graph.byId.get(id);
    if (node !== undefined) nodes.push(node);
  }
  if (!nodes.length) {
    // A merged picture holds forward and backward under their own ids; a placeholder there is its forward node here.
    const entity = parseEntity(chosen);
    const twin = entity ? graph.nodes.findIndex((node) => node.name === entity.name && node.id.includes(`/${entity.stage}/`)) : -1;
    if (twin >= 0) nodes.push(twin);
  }
  for (const node of nodes) {
    const at = scene.shown[node]!;
    if (at >= 0) linked.add(scene.boxes[at]!.key);
  }
  return { selected: graph.byId.has(chosen) ? chosen : null, linked, nodes };
}
