import { Boxes, Room, rounded } from "./route";
import type { Area, Scene, SceneEdge, Wire } from "./scene";

const STUB = 5;
/** In pictures of more boxes than this lines pass behind the boxes: nobody could follow one of so many. */
const MOST_BOXES = 2500;
const SAMPLES = 14;

/** A curve with its own ends and the two points that it leans to (Bézier). */
export type Curve = readonly [number, number, number, number, number, number, number, number];

/** Data flow inside a half as it runs where nothing is in its way: down in the forward, up in the backward. */
export function edgeCurve(edge: SceneEdge, areas: readonly Area[]): Curve {
  const a = areas[edge.from]!;
  const b = areas[edge.to]!;
  const up = edge.backward;
  const x1 = a.x + a.w / 2;
  const x2 = b.x + b.w / 2;
  const y1 = up ? a.y : a.y + a.h;
  const y2 = up ? b.y + b.h : b.y;
  const bend = Math.max(10, Math.min(46, Math.abs(y2 - y1) / 2)) * (up ? -1 : 1);
  return [x1, y1, x1, y1 + bend, x2, y2 - bend, x2, y2];
}

/** What crosses from one half to the other, where nothing is in its way. */
export function wireCurve(wire: Wire, areas: readonly Area[]): Curve {
  const a = areas[wire.from]!;
  const b = areas[wire.to]!;
  const y1 = a.y + a.h * wire.start;
  const y2 = b.y + b.h * wire.end;
  const middle = (a.x + a.w + b.x) / 2;
  return [a.x + a.w, y1, middle, y1, middle, y2, b.x, y2];
}

export function flat(curve: Curve): number[] {
  const [ax, ay, bx, by, cx, cy, dx, dy] = curve;
  const line: number[] = [];
  for (let i = 0; i <= SAMPLES; i++) {
    const t = i / SAMPLES;
    const s = 1 - t;
    line.push(s ** 3 * ax + 3 * s * s * t * bx + 3 * s * t * t * cx + t ** 3 * dx);
    line.push(s ** 3 * ay + 3 * s * s * t * by + 3 * s * t * t * cy + t ** 3 * dy);
  }
  return line;
}

/** Wires leave a box at its side, each at its own height, in the order of where they go: shares of the box's height. */
export function spreadPorts<W extends { from: number; to: number }>(wires: readonly W[], areas: readonly Area[]): (W & { start: number; end: number })[] {
  const shares = (own: (wire: W) => number, other: (wire: W) => number): number[] => {
    const sides = new Map<number, number[]>();
    wires.forEach((wire, i) => {
      const held = sides.get(own(wire));
      if (held) held.push(i);
      else sides.set(own(wire), [i]);
    });
    const into: number[] = [];
    for (const list of sides.values()) {
      list.sort((a, b) => areas[other(wires[a]!)]!.y - areas[other(wires[b]!)]!.y);
      list.forEach((wire, at) => (into[wire] = (at + 1) / (list.length + 1)));
    }
    return into;
  };
  const start = shares(
    (wire) => wire.from,
    (wire) => wire.to,
  );
  const end = shares(
    (wire) => wire.to,
    (wire) => wire.from,
  );
  return wires.map((wire, i) => ({ ...wire, start: start[i]!, end: end[i]! }));
}

/** The picture with a way around the boxes for each line whose straight way meets one. */
export function routeLines(scene: Scene): Scene {
  const { boxes } = scene;
  const closed = boxes.flatMap((box, i) => (box.open ? [] : [i]));
  if (closed.length > MOST_BOXES) return scene;
  const index = new Boxes(boxes, closed);
  let held: Room | null = null;
  const room = (): Room =>
    (held ??= new Room(
      closed.map((i) => boxes[i]!),
      scene.width,
      scene.height,
    ));
  const edges = scene.edges.map((edge) => {
    const a = boxes[edge.from]!;
    const b = boxes[edge.to]!;
    const against = edge.backward ? b.y + b.h > a.y : a.y + a.h > b.y;
    if (!against && index.met(flat(edgeCurve(edge, boxes)), edge.from, edge.to).size === 0) return edge;
    return { ...edge, path: edgePath(room(), a, b, edge.backward) };
  });
  const wires = scene.wires.map((wire) => {
    if (index.met(flat(wireCurve(wire, boxes)), wire.from, wire.to).size === 0) return wire;
    return { ...wire, path: wirePath(room(), wire, boxes) };
  });
  return { ...scene, edges, wires };
}

function edgePath(room: Room, a: Area, b: Area, backward: boolean): readonly number[] | null {
  const below = b.y >= a.y + a.h || (b.y + b.h > a.y && !backward);
  const x1 = a.x + a.w / 2;
  const x2 = b.x + b.w / 2;
  const leave = below ? a.y + a.h : a.y;
  const enter = below ? b.y : b.y + b.h;
  const step = below ? STUB : -STUB;
  const way = room.route(x1, Math.round(leave + step), x2, Math.round(enter - step), below);
  return way && rounded([x1, leave, ...way, x2, enter]);
}

function wirePath(room: Room, wire: Wire, boxes: readonly Area[]): readonly number[] | null {
  const [x1, y1, , , , , x2, y2] = wireCurve(wire, boxes);
  const way = room.route(x1 + STUB, y1, x2 - STUB, y2, y2 > y1);
  return way && rounded([x1, y1, ...way, x2, y2]);
}

/** A path of the finished picture while its ends are still on their way. */
export function movedPath(path: readonly number[], from: Area, to: Area, fromNow: Area, toNow: Area): readonly number[] {
  const ax = fromNow.x + fromNow.w / 2 - (from.x + from.w / 2);
  const ay = fromNow.y - from.y;
  const bx = toNow.x + toNow.w / 2 - (to.x + to.w / 2);
  const by = toNow.y - to.y;
  if (ax === 0 && ay === 0 && bx === 0 && by === 0) return path;
  const steps = path.length / 2 - 1;
  return path.map((value, i) => {
    const t = (i >> 1) / steps;
    return value + (i % 2 === 0 ? ax + (bx - ax) * t : ay + (by - ay) * t);
  });
}

/** An edge or a wire as it is drawn, as a line of short stretches. */
export const edgeLine = (edge: SceneEdge, areas: readonly Area[]): readonly number[] => edge.path ?? flat(edgeCurve(edge, areas));
export const wireLine = (wire: Wire, areas: readonly Area[]): readonly number[] => wire.path ?? flat(wireCurve(wire, areas));

/** How many times a line passes through a box that it has nothing to do with. */
export function boxesCrossed(scene: Scene): { edges: number; wires: number } {
  const index = new Boxes(
    scene.boxes,
    scene.boxes.flatMap((box, i) => (box.open ? [] : [i])),
  );
  const sum = (lines: readonly (readonly [readonly number[], number, number])[]): number =>
    lines.reduce((total, [line, from, to]) => total + index.met(line, from, to).size, 0);
  return {
    edges: sum(scene.edges.map((edge) => [edgeLine(edge, scene.boxes), edge.from, edge.to])),
    wires: sum(scene.wires.map((wire) => [wireLine(wire, scene.boxes), wire.from, wire.to])),
  };
}
