/** Layered placement, linear in nodes and edges. Items are numbers in topological order; edges go from lower to higher. */

export interface Links {
  readonly up: readonly (readonly number[])[];
  readonly down: readonly (readonly number[])[];
}

export const GAP_X = 16;
/** Edges over more ranks than this get no room of their own: they pass behind, faded. */
const SHORT = 5;

/** The rank of each item: the longest path to it, pulled down towards its use where it has fewer inputs than uses. */
export function rankItems(count: number, edges: readonly (readonly [number, number])[]): Int32Array {
  const rank = new Int32Array(count);
  const down: number[][] = Array.from({ length: count }, () => []);
  const inputs = new Int32Array(count);
  for (const [from, to] of edges) {
    down[from]!.push(to);
    inputs[to]!++;
  }
  for (let v = 0; v < count; v++) for (const u of down[v]!) rank[u] = Math.max(rank[u]!, rank[v]! + 1);
  for (let v = count - 1; v >= 0; v--) {
    if (down[v]!.length === 0 || inputs[v]! > 0) continue;
    let use = Number.MAX_SAFE_INTEGER;
    for (const u of down[v]!) use = Math.min(use, rank[u]!);
    rank[v] = use - 1;
  }
  return rank;
}

/** Keeps the order, keeps the distances, comes closest to what is wanted (least squares; pool adjacent violators). */
export function settle(order: readonly number[], want: Float64Array, width: Float64Array): Float64Array {
  const n = order.length;
  const offset = new Float64Array(n);
  for (let i = 1; i < n; i++) {
    offset[i] = offset[i - 1]! + (width[order[i - 1]!]! + width[order[i]!]!) / 2 + GAP_X;
  }
  const value: number[] = [];
  const count: number[] = [];
  for (let i = 0; i < n; i++) {
    let v = want[order[i]!]! - offset[i]!;
    let c = 1;
    while (value.length && value[value.length - 1]! > v) {
      const pooled = count.pop()!;
      v = (v * c + value.pop()! * pooled) / (c + pooled);
      c += pooled;
    }
    value.push(v);
    count.push(c);
  }
  const x = new Float64Array(n);
  let at = 0;
  value.forEach((v, block) => {
    for (let j = 0; j < count[block]!; j++, at++) x[at] = v + offset[at]!;
  });
  return x;
}

/**
 * Centres of items in rows. Forward: order by barycentres, with thin places for short edges to pass through. `anchor`
 * (mirrored halves) fixes the order instead, so that the second half repeats the first.
 */
export function placeRows(
  rows: readonly (readonly number[])[],
  width: readonly number[],
  edges: readonly (readonly [number, number])[],
  anchor: Float64Array | null,
): Float64Array {
  const count = width.length;
  const lines = rows.map((row) => [...row]);
  const rowOf = new Int32Array(count).fill(-1);
  lines.forEach((row, r) => row.forEach((v) => (rowOf[v] = r)));
  const widths = [...width];
  const up: number[][] = Array.from({ length: count }, () => []);
  const down: number[][] = Array.from({ length: count }, () => []);
  for (const [a, b] of edges) {
    if (rowOf[a]! < 0 || rowOf[b]! < 0 || rowOf[a] === rowOf[b]) continue;
    const [high, low] = rowOf[a]! < rowOf[b]! ? [a, b] : [b, a];
    const span = rowOf[low]! - rowOf[high]!;
    if (span > SHORT) continue;
    let from = high;
    for (let step = 1; step < span && !anchor; step++) {
      const pass = widths.length;
      widths.push(2);
      up.push([from]);
      down.push([]);
      down[from]!.push(pass);
      lines[rowOf[high]! + step]!.push(pass);
      from = pass;
    }
    down[from]!.push(low);
    up[low]!.push(from);
  }
  const w = Float64Array.from(widths);
  const x = new Float64Array(widths.length);
  if (anchor) x.set(anchor);
  else order(lines, up, down);
  for (const row of lines) {
    if (anchor) row.sort((a, b) => x[a]! - x[b]!);
    else spread(row, w, x);
  }
  for (let sweep = 0; sweep < 8; sweep++) {
    const turn = sweep % 2 === 0;
    const both = sweep > 4 || anchor !== null;
    for (let r = 0; r < lines.length; r++) {
      const row = lines[turn ? r : lines.length - 1 - r]!;
      const want = new Float64Array(widths.length);
      for (const v of row) {
        const near = both ? [...up[v]!, ...down[v]!] : turn ? up[v]! : down[v]!;
        let sum = anchor && v < count ? anchor[v]! : 0;
        let weight = anchor && v < count ? 1 : 0;
        for (const u of near) {
          sum += x[u]!;
          weight++;
        }
        want[v] = weight ? sum / weight : x[v]!;
      }
      const settled = settle(row, want, w);
      row.forEach((v, i) => (x[v] = settled[i]!));
    }
  }
  return x.slice(0, count);
}

function order(rows: number[][], up: readonly number[][], down: readonly number[][]): void {
  const position = new Float64Array(up.length);
  for (const row of rows) row.forEach((v, i) => (position[v] = i));
  for (let sweep = 0; sweep < 6; sweep++) {
    const side = sweep % 2 === 0 ? up : down;
    for (let r = 0; r < rows.length; r++) {
      const row = rows[sweep % 2 === 0 ? r : rows.length - 1 - r]!;
      const key = new Map<number, number>();
      for (const v of row) {
        const near = side[v]!;
        key.set(v, near.length ? near.reduce((sum, u) => sum + position[u]!, 0) / near.length : position[v]!);
      }
      row.sort((a, b) => key.get(a)! - key.get(b)!);
      row.forEach((v, i) => (position[v] = i));
    }
  }
}

function spread(row: readonly number[], width: Float64Array, x: Float64Array): void {
  let at = 0;
  for (const v of row) {
    x[v] = at + width[v]! / 2;
    at += width[v]! + GAP_X;
  }
  for (const v of row) x[v] = x[v]! - at / 2;
}
