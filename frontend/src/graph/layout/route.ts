import type { Area } from "./scene";

/** Room kept between a line and the boxes that it passes; less than half of the gap between two of them. */
const CLEARANCE = 5;
/** Lines may go this far around the outside of the picture. */
const OUTSIDE = 60;
/** How near its corner a line begins to turn. The arc strays from the corner by half of it, which `CLEARANCE` covers. */
const TURN = 9;
const ARC = [0.25, 0.5, 0.75];

interface Cell {
  readonly band: number;
  readonly left: number;
  readonly right: number;
}

/**
 * The free room between boxes, cut into bands at the heights where a box begins or ends; in each band, the gaps between
 * boxes. A route is the shortest way from gap to gap (A*), pulled taut (the "funnel" of triangulated polygons).
 */
export class Room {
  private readonly heights: number[];
  private readonly cells: Cell[] = [];
  /** The first cell of each band; one more at the end. */
  private readonly firstOf: number[] = [];

  constructor(boxes: readonly Area[], width: number, height: number) {
    const grown = boxes.map(({ x, y, w, h }) => ({
      left: x - CLEARANCE,
      right: x + w + CLEARANCE,
      top: Math.round(y - CLEARANCE),
      bottom: Math.round(y + h + CLEARANCE),
    }));
    const edges = new Set([-OUTSIDE, Math.round(height) + OUTSIDE]);
    for (const { top, bottom } of grown) edges.add(top).add(bottom);
    this.heights = [...edges].toSorted((a, b) => a - b);
    const bandAt = new Map(this.heights.map((y, band) => [y, band]));
    const taken: { left: number; right: number }[][] = this.heights.slice(1).map(() => []);
    for (const box of grown) {
      for (let band = bandAt.get(box.top)!; band < bandAt.get(box.bottom)!; band++) taken[band]!.push(box);
    }
    taken.forEach((held, band) => {
      this.firstOf.push(this.cells.length);
      held.sort((a, b) => a.left - b.left);
      let at = -OUTSIDE;
      for (const { left, right } of held) {
        if (left - at >= 1) this.cells.push({ band, left: at, right: left });
        at = Math.max(at, right);
      }
      if (width + OUTSIDE - at >= 1) this.cells.push({ band, left: at, right: width + OUTSIDE });
    });
    this.firstOf.push(this.cells.length);
  }

  /** The corners of a way from a to b that touches no box; null when there is none, or an end lies in a box. */
  route(ax: number, ay: number, bx: number, by: number, down: boolean): number[] | null {
    const start = this.cellAt(ax, ay, down);
    const goal = this.cellAt(bx, by, !down);
    if (start < 0 || goal < 0) return null;
    if (start === goal) return [ax, ay, bx, by];
    const way = this.search(start, goal, ax, bx, by);
    return way && this.taut(way, [ax, ay], [bx, by]);
  }

  /** The gap that holds a point; of two bands that meet there, the one below when `below` says so. */
  private cellAt(x: number, y: number, below: boolean): number {
    let low = 0;
    let high = this.heights.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      const at = this.heights[middle]!;
      if (at < y || (at === y && below)) low = middle;
      else high = middle;
    }
    for (let cell = this.firstOf[low]!; cell < this.firstOf[low + 1]!; cell++) {
      const { left, right } = this.cells[cell]!;
      if (x >= left && x <= right) return cell;
    }
    return -1;
  }

  private search(start: number, goal: number, ax: number, bx: number, by: number): number[] | null {
    const came = new Map<number, { from: number; cost: number; x: number }>([[start, { from: -1, cost: 0, x: ax }]]);
    const done = new Set<number>();
    const open = new Queue();
    open.push(start, 0);
    for (let at = open.pop(); at >= 0; at = open.pop()) {
      if (at === goal) return this.trace(came, goal);
      if (done.has(at)) continue;
      done.add(at);
      const here = this.cells[at]!;
      const { cost, x } = came.get(at)!;
      const high = this.heights[here.band + 1]! - this.heights[here.band]!;
      for (const band of [here.band - 1, here.band + 1]) {
        if (band < 0 || band >= this.heights.length - 1) continue;
        for (let next = this.firstOf[band]!; next < this.firstOf[band + 1]!; next++) {
          const cell = this.cells[next]!;
          const left = Math.max(cell.left, here.left);
          const right = Math.min(cell.right, here.right);
          if (right - left < 1 || done.has(next)) continue;
          const to = Math.max(left, Math.min(right, x));
          const sum = cost + Math.abs(to - x) + high;
          const held = came.get(next);
          if (held && held.cost <= sum) continue;
          came.set(next, { from: at, cost: sum, x: to });
          open.push(next, sum + Math.abs(bx - to) + Math.abs(by - this.heights[band]!));
        }
      }
    }
    return null;
  }

  private trace(came: ReadonlyMap<number, { from: number }>, goal: number): number[] {
    const way: number[] = [];
    for (let at = goal; at >= 0; at = came.get(at)!.from) way.unshift(at);
    return way;
  }

  private taut(way: readonly number[], start: Point, end: Point): number[] {
    const gates: { left: Point; right: Point }[] = [];
    for (let i = 1; i < way.length; i++) {
      const a = this.cells[way[i - 1]!]!;
      const b = this.cells[way[i]!]!;
      const low = Math.max(a.left, b.left);
      const high = Math.min(a.right, b.right);
      const down = b.band > a.band;
      const y = this.heights[Math.max(a.band, b.band)]!;
      gates.push(down ? { left: [low, y], right: [high, y] } : { left: [high, y], right: [low, y] });
    }
    gates.push({ left: end, right: end });
    return funnel(start, end, gates);
  }
}

type Point = readonly [x: number, y: number];

const turnOf = (o: Point, a: Point, b: Point): number => (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]);

/** The shortest line through gates, each seen with its left and right in the direction of travel. */
function funnel(start: Point, end: Point, gates: readonly { left: Point; right: Point }[]): number[] {
  const line: number[] = [...start];
  let apex = start;
  let left = start;
  let right = start;
  let leftAt = 0;
  let rightAt = 0;
  for (let i = 0; i < gates.length; i++) {
    const gate = gates[i]!;
    if (turnOf(apex, right, gate.right) >= 0) {
      if (apex === right || turnOf(apex, left, gate.right) < 0) {
        right = gate.right;
        rightAt = i;
      } else {
        line.push(...left);
        apex = right = left;
        i = rightAt = leftAt;
        continue;
      }
    }
    if (turnOf(apex, left, gate.left) <= 0) {
      if (apex === left || turnOf(apex, right, gate.left) > 0) {
        left = gate.left;
        leftAt = i;
      } else {
        line.push(...right);
        apex = left = right;
        i = leftAt = rightAt;
        continue;
      }
    }
  }
  if (line.at(-2) !== end[0] || line.at(-1) !== end[1]) line.push(...end);
  return line;
}

/** The same line with its corners rounded, as a finer line. */
export function rounded(corners: readonly number[]): number[] {
  const points: number[] = [];
  for (let i = 0; i < corners.length; i += 2) {
    const last = points.length - 2;
    if (last >= 0 && Math.hypot(corners[i]! - points[last]!, corners[i + 1]! - points[last + 1]!) < 0.5) continue;
    points.push(corners[i]!, corners[i + 1]!);
  }
  const line = points.slice(0, 2);
  for (let i = 2; i + 2 < points.length; i += 2) {
    const [ax, ay, bx, by, cx, cy] = points.slice(i - 2, i + 4) as [number, number, number, number, number, number];
    const before = Math.hypot(bx - ax, by - ay);
    const after = Math.hypot(cx - bx, cy - by);
    const inward = Math.min(TURN, before / 2) / before;
    const outward = Math.min(TURN, after / 2) / after;
    const fx = bx + (ax - bx) * inward;
    const fy = by + (ay - by) * inward;
    const tx = bx + (cx - bx) * outward;
    const ty = by + (cy - by) * outward;
    line.push(fx, fy);
    for (const t of ARC) {
      line.push((1 - t) ** 2 * fx + 2 * (1 - t) * t * bx + t * t * tx, (1 - t) ** 2 * fy + 2 * (1 - t) * t * by + t * t * ty);
    }
    line.push(tx, ty);
  }
  if (points.length > 2) line.push(...points.slice(-2));
  return line;
}

/** A binary heap of cells by cost. */
class Queue {
  private readonly heap: { cell: number; cost: number }[] = [];

  push(cell: number, cost: number): void {
    const { heap } = this;
    let at = heap.push({ cell, cost }) - 1;
    while (at > 0) {
      const up = (at - 1) >> 1;
      if (heap[up]!.cost <= cost) break;
      [heap[at], heap[up]] = [heap[up]!, heap[at]!];
      at = up;
    }
  }

  /** The cheapest cell; -1 when empty. */
  pop(): number {
    const { heap } = this;
    const top = heap[0];
    const last = heap.pop();
    if (!top || !last) return -1;
    if (heap.length) {
      heap[0] = last;
      for (let at = 0; ; ) {
        const left = 2 * at + 1;
        const least = left + 1 < heap.length && heap[left + 1]!.cost < heap[left]!.cost ? left + 1 : left;
        if (least >= heap.length || heap[least]!.cost >= last.cost) break;
        [heap[at], heap[least]] = [heap[least]!, heap[at]!];
        at = least;
      }
    }
    return top.cell;
  }
}

/** Boxes by the heights that they cover, to find those that a line meets. */
export class Boxes {
  private readonly shelves = new Map<number, number[]>();
  private static readonly HIGH = 64;

  constructor(
    private readonly areas: readonly Area[],
    which: readonly number[],
  ) {
    for (const box of which) {
      const { y, h } = areas[box]!;
      for (let shelf = Math.floor(y / Boxes.HIGH); shelf <= Math.floor((y + h) / Boxes.HIGH); shelf++) {
        const held = this.shelves.get(shelf);
        if (held) held.push(box);
        else this.shelves.set(shelf, [box]);
      }
    }
  }

  /** The boxes whose inside a line passes through, but for its own two ends. */
  met(line: readonly number[], from: number, to: number): Set<number> {
    const found = new Set<number>();
    for (let i = 0; i + 3 < line.length; i += 2) {
      const [ax, ay, bx, by] = [line[i]!, line[i + 1]!, line[i + 2]!, line[i + 3]!];
      const last = Math.floor(Math.max(ay, by) / Boxes.HIGH);
      for (let shelf = Math.floor(Math.min(ay, by) / Boxes.HIGH); shelf <= last; shelf++) {
        for (const box of this.shelves.get(shelf) ?? []) {
          if (box !== from && box !== to && crosses(this.areas[box]!, ax, ay, bx, by)) found.add(box);
        }
      }
    }
    return found;
  }
}

/** Whether a stretch passes through the inside of an area: more than a pixel deep (Liang and Barsky's clipping). */
function crosses({ x, y, w, h }: Area, ax: number, ay: number, bx: number, by: number): boolean {
  let enter = 0;
  let leave = 1;
  const sides: readonly (readonly [number, number])[] = [
    [ax - bx, ax - (x + 1)],
    [bx - ax, x + w - 1 - ax],
    [ay - by, ay - (y + 1)],
    [by - ay, y + h - 1 - ay],
  ];
  for (const [p, q] of sides) {
    if (p === 0) {
      if (q < 0) return false;
    } else if (p < 0) enter = Math.max(enter, q / p);
    else leave = Math.min(leave, q / p);
  }
  return enter < leave;
}
