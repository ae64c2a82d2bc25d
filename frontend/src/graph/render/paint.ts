import { edgeCurve, movedPath, wireCurve, wireLine, type Curve } from "../layout/lines";
import type { Area, Box, Scene, Wire } from "../layout/scene";
import type { Camera } from "./camera";
import type { Overlay } from "../overlay/overlay";
import { shadeOf, type Palette } from "./palette";

export type Rect = Area;

export interface Marks {
  /** Key of the selected box. */
  readonly selected: string | null;
  /** Keys of boxes that hold a part of the selection. */
  readonly linked: ReadonlySet<string>;
  readonly focus: string | null;
  /** Keys of the boxes to look at; the others stand back. Null: all. */
  readonly near: ReadonlySet<string> | null;
  readonly found: ReadonlySet<string>;
}

export interface Words {
  readonly turn: string;
  readonly backward: string;
  readonly bytes: (bytes: number) => string;
  readonly name: (node: number) => string;
}

export interface Frame {
  readonly scene: Scene;
  readonly rects: readonly Rect[];
  readonly alpha: readonly number[];
  /** 1 when nothing moves; lines stand back while their boxes are on their way. */
  readonly settled: number;
  readonly ghosts: readonly { readonly box: Box; readonly rect: Rect; readonly alpha: number }[];
  readonly camera: Camera;
  readonly marks: Marks;
  readonly overlay: Overlay | null;
  readonly palette: Palette;
  readonly words: Words;
  readonly width: number;
  readonly height: number;
}

const LABELS_FROM = 0.34;
const EDGES_FROM = 0.08;
const MANY_WIRES = 12;

export function paint(context: CanvasRenderingContext2D, frame: Frame): void {
  const { camera, palette, width, height } = frame;
  const ratio = context.getTransform().a;
  context.fillStyle = palette.bg;
  context.fillRect(0, 0, width, height);
  context.save();
  context.translate(camera.x, camera.y);
  context.scale(camera.k, camera.k);
  const seen = viewport(frame);
  frames(context, frame, seen);
  if (camera.k >= EDGES_FROM) {
    edges(context, frame, seen);
    turn(context, frame);
  }
  wires(context, frame);
  leaving(context, frame);
  boxes(context, frame, seen, ratio);
  context.restore();
}

function viewport({ camera, width, height }: Frame): (rect: Rect) => boolean {
  const left = -camera.x / camera.k;
  const top = -camera.y / camera.k;
  const right = left + width / camera.k;
  const bottom = top + height / camera.k;
  return (rect) => rect.x < right && rect.x + rect.w > left && rect.y < bottom && rect.y + rect.h > top;
}

function frames(context: CanvasRenderingContext2D, frame: Frame, seen: (rect: Rect) => boolean): void {
  const { scene, rects, alpha, palette, camera, words } = frame;
  context.textAlign = "left";
  context.textBaseline = "alphabetic";
  scene.boxes.forEach((box, i) => {
    const rect = rects[i]!;
    if (!box.open || !seen(rect)) return;
    context.globalAlpha = alpha[i]!;
    context.beginPath();
    context.roundRect(rect.x, rect.y, rect.w, rect.h, 11);
    if (box.depth % 2 === 1) {
      context.fillStyle = palette.panel;
      context.globalAlpha = alpha[i]! * 0.55;
      context.fill();
      context.globalAlpha = alpha[i]!;
    }
    context.strokeStyle = box.recomputed ? palette.re : palette.line;
    context.setLineDash(box.recomputed ? [4, 3] : []);
    context.lineWidth = frame.marks.focus === box.key ? 2 : 1.2;
    context.stroke();
    context.setLineDash([]);
    if (camera.k < LABELS_FROM) return;
    context.font = `11px ${palette.ui}`;
    context.fillStyle = palette.dim;
    const label = box.backward && !box.recomputed ? `${box.label} · ${words.backward}` : box.label;
    context.fillText(clip(context, label, rect.w - 34), rect.x + 10, rect.y + 16);
    context.fillStyle = palette.faint;
    context.textAlign = "center";
    context.fillText("–", rect.x + rect.w - 14, rect.y + 16);
    context.textAlign = "left";
  });
  context.globalAlpha = 1;
}

function edges(context: CanvasRenderingContext2D, frame: Frame, seen: (rect: Rect) => boolean): void {
  const { scene, rects, alpha, palette, marks } = frame;
  const quiet = marks.selected !== null;
  for (const edge of scene.edges) {
    const a = rects[edge.from]!;
    const b = rects[edge.to]!;
    if (!seen(union(a, b))) continue;
    const touches = marks.selected === scene.boxes[edge.from]!.key || marks.selected === scene.boxes[edge.to]!.key;
    const stressed = frame.overlay?.chain.has(edge.from * scene.boxes.length + edge.to) ?? false;
    const strength = touches || stressed ? 0.95 : edge.long ? 0.16 : quiet ? 0.42 : 0.62;
    const back = isFar(marks, scene.boxes[edge.from]!) || isFar(marks, scene.boxes[edge.to]!);
    context.globalAlpha = frame.settled * (back ? 0.12 : 1) * strength * Math.min(alpha[edge.from]!, alpha[edge.to]!);
    context.strokeStyle = stressed ? palette.ink : edge.again ? palette.re : edge.backward ? palette.bw : palette.fw;
    context.setLineDash(edge.again ? [4, 3] : []);
    context.lineWidth = stressed ? 2.6 : touches ? 1.8 : 1.25;
    context.beginPath();
    trace(context, edgeCurve(edge, rects), edge.path && movedPath(edge.path, scene.boxes[edge.from]!, scene.boxes[edge.to]!, a, b));
    context.stroke();
  }
  context.setLineDash([]);
  context.globalAlpha = 1;
}

function turn(context: CanvasRenderingContext2D, { scene, rects, palette, words, camera }: Frame): void {
  const { from, to } = scene.turn;
  if (!from.length || !to.length) return;
  context.strokeStyle = palette.faint;
  context.lineWidth = 1.3;
  context.setLineDash([3, 4]);
  const low = scene.height + 40;
  const start = rects[from.at(-1)!]!;
  for (const at of to) {
    const end = rects[at]!;
    context.beginPath();
    context.moveTo(start.x + start.w / 2, start.y + start.h);
    context.bezierCurveTo(start.x + start.w / 2, low, end.x + end.w / 2, low, end.x + end.w / 2, end.y + end.h);
    context.stroke();
  }
  context.setLineDash([]);
  if (camera.k < LABELS_FROM) return;
  const end = rects[to[0]!]!;
  context.font = `11.5px ${palette.ui}`;
  context.fillStyle = palette.dim;
  context.textAlign = "center";
  const y1 = start.y + start.h;
  const y2 = end.y + end.h;
  context.fillText(words.turn, (start.x + start.w / 2 + end.x + end.w / 2) / 2, (y1 + y2) / 8 + low * 0.75 + 14);
}

function trace(context: CanvasRenderingContext2D, curve: Curve, path: readonly number[] | null): void {
  if (!path) {
    const [ax, ay, bx, by, cx, cy, dx, dy] = curve;
    context.moveTo(ax, ay);
    context.bezierCurveTo(bx, by, cx, cy, dx, dy);
    return;
  }
  context.moveTo(path[0]!, path[1]!);
  for (let i = 2; i < path.length; i += 2) context.lineTo(path[i]!, path[i + 1]!);
}

function wires(context: CanvasRenderingContext2D, frame: Frame): void {
  const { scene, rects, palette, camera, marks, words } = frame;
  if (!scene.wires.length) return;
  const most = Math.max(1, ...scene.wires.map((wire) => (wire.saved ? wire.bytes : 0)));
  context.lineCap = "round";
  const selection = marks.selected !== null || marks.linked.size > 0;
  const lit = (wire: Wire): boolean =>
    [wire.from, wire.to].some((at) => marks.linked.has(scene.boxes[at]!.key) || marks.selected === scene.boxes[at]!.key);
  const drawn = scene.wires.map((wire) => ({ wire, lit: lit(wire) }));
  drawn.sort((a, b) => Number(a.lit) - Number(b.lit) || a.wire.bytes - b.wire.bytes);
  for (const { wire, lit: on } of drawn) {
    const thick = wire.saved ? 1.3 + 5.7 * Math.sqrt(wire.bytes / most) : 1.1;
    context.lineWidth = Math.max(thick, wire.saved ? 0.8 / camera.k : 0);
    const stressed = frame.overlay?.chain.has(wire.from * scene.boxes.length + wire.to) ?? false;
    context.strokeStyle = stressed ? palette.ink : wire.saved ? palette.save : palette.faint;
    const back = isFar(marks, scene.boxes[wire.from]!) || isFar(marks, scene.boxes[wire.to]!);
    context.globalAlpha = frame.settled * (back ? 0.2 : 1) * (wire.saved ? (selection && !on ? 0.3 : 0.85) : on ? 0.8 : 0.3);
    context.setLineDash(wire.saved ? [] : [3, 3]);
    context.beginPath();
    trace(context, wireCurve(wire, rects), wire.path && movedPath(wire.path, scene.boxes[wire.from]!, scene.boxes[wire.to]!, rects[wire.from]!, rects[wire.to]!));
    context.stroke();
  }
  context.setLineDash([]);
  context.globalAlpha = 1;
  context.lineCap = "butt";
  if (camera.k < LABELS_FROM) return;
  wireLabels(context, frame, drawn, words);
}

function wireLabels(
  context: CanvasRenderingContext2D,
  { scene, rects, palette, marks }: Frame,
  drawn: readonly { wire: Wire; lit: boolean }[],
  words: Words,
): void {
  const gutterLeft = Math.max(0, ...scene.boxes.filter((box) => !box.backward).map((box) => box.x + box.w));
  const gutterRight = Math.min(...scene.boxes.filter((box) => box.backward).map((box) => box.x));
  const taken: number[] = [];
  const said = new Set<string>();
  const limit = scene.wires.length > MANY_WIRES ? 8 : MANY_WIRES;
  const wanted = drawn
    .filter(({ wire, lit }) => wire.saved && (wire.bytes > 0 || lit) && !isFar(marks, scene.boxes[wire.from]!) && !isFar(marks, scene.boxes[wire.to]!))
    .toSorted((a, b) => Number(b.lit) - Number(a.lit) || b.wire.bytes - a.wire.bytes)
    .slice(0, limit);
  context.textAlign = "center";
  context.lineJoin = "round";
  const x = (gutterLeft + gutterRight) / 2;
  for (const { wire, lit } of wanted) {
    const y = heightAt(wireLine(wire, rects), x) - 8;
    if (taken.some((other) => Math.abs(other - y) < 14)) continue;
    taken.push(y);
    const first = words.name(wire.nodes[0]!);
    const text = `${first}${wire.nodes.length > 1 ? ` +${wire.nodes.length - 1}` : ""} · ${words.bytes(wire.bytes)}`;
    if (said.has(text)) continue;
    said.add(text);
    context.font = `${lit ? "600 " : ""}11px ${palette.ui}`;
    context.strokeStyle = palette.bg;
    context.lineWidth = 4;
    context.strokeText(text, x, y);
    context.fillStyle = palette.save;
    context.fillText(text, x, y);
  }
}

/** How high a line runs at `x`, where it first gets there. */
function heightAt(line: readonly number[], x: number): number {
  for (let i = 0; i + 3 < line.length; i += 2) {
    const [ax, ay, bx, by] = [line[i]!, line[i + 1]!, line[i + 2]!, line[i + 3]!];
    if (Math.min(ax, bx) <= x && x <= Math.max(ax, bx)) return ax === bx ? ay : ay + ((by - ay) * (x - ax)) / (bx - ax);
  }
  return line.at(-1) ?? 0;
}

/** Boxes on their way into what they became. */
function leaving(context: CanvasRenderingContext2D, { ghosts, palette }: Frame): void {
  for (const { box, rect, alpha } of ghosts) {
    context.globalAlpha = alpha;
    context.fillStyle = palette.panel;
    context.strokeStyle = inkOf(box, palette);
    context.lineWidth = 1.1;
    context.beginPath();
    context.roundRect(rect.x, rect.y, rect.w, rect.h, 6);
    context.fill();
    context.stroke();
  }
  context.globalAlpha = 1;
}

const inkOf = (box: Box, palette: Palette): string => (box.recomputed ? palette.re : box.backward ? palette.bw : palette.fw);

function boxes(context: CanvasRenderingContext2D, frame: Frame, seen: (rect: Rect) => boolean, ratio: number): void {
  const { scene, rects, alpha, palette, marks, camera, overlay } = frame;
  const labels = camera.k >= LABELS_FROM;
  const plain = camera.k * ratio < 0.3;
  context.textAlign = "center";
  context.textBaseline = "middle";
  scene.boxes.forEach((box, i) => {
    const rect = rects[i]!;
    if (box.open || !seen(rect)) return;
    const selected = marks.selected === box.key;
    const linked = marks.linked.has(box.key);
    context.globalAlpha = alpha[i]! * (isFar(marks, box) ? 0.16 : 1);
    const ink = inkOf(box, palette);
    const tint = box.recomputed ? palette.rebg : box.backward ? palette.bwbg : palette.fwbg;
    const own = overlay?.tints[i] ?? null;
    const shade = own && shadeOf(palette, own.shade);
    const paper = shade?.fill ?? (box.kind === "node" || overlay ? palette.panel : tint);
    context.fillStyle = (linked || selected) && !shade ? palette.sel : paper;
    if (plain) {
      context.fillStyle = linked || selected ? palette.sel : overlay ? paper : ink;
      context.fillRect(rect.x, rect.y, rect.w, rect.h);
      return;
    }
    context.beginPath();
    context.roundRect(rect.x, rect.y, rect.w, rect.h, box.input ? rect.h / 2 : 6);
    context.fill();
    context.strokeStyle = box.input && !selected ? palette.faint : ink;
    context.lineWidth = selected ? 3 : linked ? (shade ? 2.4 : 1.6) : 1.1;
    context.setLineDash(box.recomputed ? [4, 3] : []);
    context.stroke();
    context.setLineDash([]);
    if (marks.found.has(box.key) || marks.focus === box.key) ring(context, rect, palette.ink);
    if (box.saved) {
      context.fillStyle = palette.save;
      context.beginPath();
      context.roundRect(rect.x + rect.w - 4, rect.y + 5, 3, rect.h - 10, 1.5);
      context.fill();
    }
    if (!labels) return;
    context.font = `${selected ? "600 " : ""}11.5px ${palette.mono}`;
    context.fillStyle = shade?.text ?? (box.input && !selected && !linked ? palette.dim : palette.ink);
    context.fillText(clip(context, box.label, rect.w - 12), rect.x + rect.w / 2, rect.y + rect.h / 2 + 0.5);
    if (own) badge(context, rect, own.tag, palette);
  });
  context.globalAlpha = 1;
}

/** What a shade says in words, on the box's upper edge. */
function badge(context: CanvasRenderingContext2D, rect: Rect, text: string, palette: Palette): void {
  context.font = `600 9.5px ${palette.ui}`;
  const wide = context.measureText(text).width + 8;
  const x = rect.x + rect.w - Math.min(wide, rect.w) + 4;
  context.fillStyle = palette.panel;
  context.strokeStyle = palette.faint;
  context.lineWidth = 0.8;
  context.beginPath();
  context.roundRect(x, rect.y - 8, wide, 13, 6);
  context.fill();
  context.stroke();
  context.fillStyle = palette.ink;
  context.fillText(text, x + wide / 2, rect.y - 1);
}

const isFar = (marks: Marks, box: Box): boolean => marks.near !== null && !box.open && !marks.near.has(box.key);

function ring(context: CanvasRenderingContext2D, rect: Rect, colour: string): void {
  context.beginPath();
  context.roundRect(rect.x - 3, rect.y - 3, rect.w + 6, rect.h + 6, 8);
  context.strokeStyle = colour;
  context.lineWidth = 1.4;
  context.stroke();
}

function clip(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (context.measureText(text).width <= room) return text;
  let short = text;
  while (short.length > 1 && context.measureText(`${short}…`).width > room) short = short.slice(0, -1);
  return `${short}…`;
}

function union(a: Rect, b: Rect): Rect {
  const x = Math.min(a.x, b.x);
  const y = Math.min(a.y, b.y);
  return { x, y, w: Math.max(a.x + a.w, b.x + b.w) - x, h: Math.max(a.y + a.h, b.y + b.h) - y };
}

/** The box under a point of the picture: the innermost, boxes before frames. */
export function hit(scene: Scene, x: number, y: number): Box | null {
  let found: Box | null = null;
  for (const box of scene.boxes) {
    if (x < box.x || x > box.x + box.w || y < box.y || y > box.y + box.h) continue;
    if (!found || box.depth > found.depth || !box.open) found = box;
  }
  return found;
}

/** The wire near a point, by its nodes. */
export function hitWire(scene: Scene, x: number, y: number, reach: number): Wire | null {
  let best: Wire | null = null;
  let least = reach;
  for (const wire of scene.wires) {
    const away = distance(wireLine(wire, scene.boxes), x, y);
    if (away < least) {
      least = away;
      best = wire;
    }
  }
  return best;
}

function distance(line: readonly number[], x: number, y: number): number {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i + 3 < line.length; i += 2) {
    const [ax, ay, bx, by] = [line[i]!, line[i + 1]!, line[i + 2]!, line[i + 3]!];
    const long = (bx - ax) ** 2 + (by - ay) ** 2;
    const t = long === 0 ? 0 : Math.max(0, Math.min(1, ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / long));
    least = Math.min(least, Math.hypot(ax + (bx - ax) * t - x, ay + (by - ay) * t - y));
  }
  return least;
}
