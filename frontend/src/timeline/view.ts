import type { MemoryTimelinePayload } from "../generated/contract";
import { readPalette, type Palette } from "../graph/render/palette";
import { stackBlocks, type Slab } from "./stack";

export interface TimelineEvents {
  onPoint(point: number): void;
  onBlock(block: number, point: number): void;
}

export interface TimelineWords {
  readonly forward: string;
  readonly backward: string;
  readonly peak: string;
  readonly limit: string;
  readonly bytes: (value: number) => string;
}

const LEFT = 46;
const RIGHT = 14;
const TOP = 26;
const BOTTOM = 4;

/** Live bytes over the program points of one step, each tensor a band of its own. */
export class TimelineView {
  private readonly context: CanvasRenderingContext2D;
  private timeline: MemoryTimelinePayload | null = null;
  private slabs: Slab[] = [];
  private palette: Palette;
  private size = { width: 0, height: 0 };
  private cursor: number | null = null;
  private linked: ReadonlySet<number> = new Set();
  private scaleTo = 0;
  private limit: number | null = null;
  private queued = 0;
  private dragging = false;
  private readonly observer: ResizeObserver;
  private readonly abort = new AbortController();

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private words: TimelineWords,
    private readonly events: TimelineEvents,
  ) {
    this.context = canvas.getContext("2d", { alpha: false })!;
    this.palette = readPalette(canvas);
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(canvas.parentElement!);
    const options = { signal: this.abort.signal };
    canvas.addEventListener("pointerdown", (event) => this.press(event), options);
    canvas.addEventListener("pointermove", (event) => this.move(event), options);
    canvas.addEventListener("pointerup", () => (this.dragging = false), options);
    this.resize();
  }

  close(): void {
    this.observer.disconnect();
    this.abort.abort();
    cancelAnimationFrame(this.queued);
  }

  /** `scaleTo`: the bytes at the top of the picture. */
  /** `limit` is drawn as a line across, where it is not null. */
  set(timeline: MemoryTimelinePayload | null, scaleTo: number, limit: number | null): void {
    if (timeline !== this.timeline) this.slabs = timeline ? stackBlocks(timeline) : [];
    this.timeline = timeline;
    this.scaleTo = scaleTo;
    this.limit = limit;
    this.draw();
  }

  setCursor(point: number | null): void {
    this.cursor = point;
    this.draw();
  }

  setLinked(blocks: ReadonlySet<number>): void {
    this.linked = blocks;
    this.draw();
  }

  setWords(words: TimelineWords): void {
    this.words = words;
    this.draw();
  }

  retheme(): void {
    this.palette = readPalette(this.canvas);
    this.draw();
  }

  private get points(): number {
    return Math.max(1, this.timeline?.points.live.length ?? 1);
  }

  private x(point: number): number {
    return LEFT + ((this.size.width - LEFT - RIGHT) * point) / this.points;
  }

  private y(bytes: number): number {
    const top = Math.max(1, this.scaleTo);
    return this.size.height - BOTTOM - ((this.size.height - TOP - BOTTOM) * bytes) / top;
  }

  private resize(): void {
    const { clientWidth, clientHeight } = this.canvas.parentElement!;
    const ratio = window.devicePixelRatio || 1;
    this.size = { width: clientWidth, height: clientHeight };
    this.canvas.width = Math.max(1, Math.round(clientWidth * ratio));
    this.canvas.height = Math.max(1, Math.round(clientHeight * ratio));
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.paint();
  }

  private draw(): void {
    this.queued ||= requestAnimationFrame(() => {
      this.queued = 0;
      this.paint();
    });
  }

  private paint(): void {
    const { context, palette, size, timeline } = this;
    context.fillStyle = palette.panel;
    context.fillRect(0, 0, size.width, size.height);
    if (!timeline) return;
    this.axis();
    this.bands(timeline);
    this.markers(timeline);
  }

  private axis(): void {
    const { context, palette, size, words } = this;
    context.font = `11px ${palette.ui}`;
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const share of [0, 0.5, 1]) {
      const value = this.scaleTo * share;
      const y = this.y(value);
      context.fillStyle = palette.dim;
      context.fillText(share === 0 ? "0" : words.bytes(value), LEFT - 7, Math.min(y, size.height - 6));
      context.strokeStyle = palette.line;
      context.lineWidth = 1;
      context.globalAlpha = share === 0 ? 1 : 0.6;
      context.beginPath();
      context.moveTo(LEFT, Math.round(y) + 0.5);
      context.lineTo(size.width - RIGHT, Math.round(y) + 0.5);
      context.stroke();
      context.globalAlpha = 1;
    }
  }

  private bands(timeline: MemoryTimelinePayload): void {
    const { context, palette } = this;
    const { blocks, strings, forward_end: turn } = timeline;
    const gap = this.size.width / this.points > 3 ? 0.7 : 0;
    for (const slab of this.slabs) {
      const bytes = blocks.bytes[slab.block]!;
      const top = this.y(slab.base + bytes);
      const height = this.y(slab.base) - top;
      if (height < 0.25) continue;
      const left = this.x(slab.from);
      const width = Math.max(0.5, this.x(slab.to) - left);
      const kind = strings[blocks.kind[slab.block]!]!;
      const backward = turn !== null && blocks.start[slab.block]! >= turn;
      context.fillStyle = kind === "saved" ? palette.save : backward ? palette.bw : palette.fw;
      const strong = kind === "saved" || kind === "output" || kind === "gradient";
      const quiet = this.linked.size > 0 && !this.linked.has(slab.block);
      context.globalAlpha = this.linked.has(slab.block) ? 1 : (strong ? 0.8 : 0.42) * (quiet ? 0.45 : 1);
      context.fillRect(left, top, width, height > 2.4 ? height - Math.max(gap, 0.5) : height);
    }
    context.globalAlpha = 1;
  }

  private markers(timeline: MemoryTimelinePayload): void {
    const { context, palette, words } = this;
    const turn = timeline.forward_end;
    context.font = `11px ${palette.ui}`;
    context.textBaseline = "alphabetic";
    if (turn !== null && turn < this.points) {
      const x = Math.round(this.x(turn)) + 0.5;
      this.upright(x, palette.faint, [3, 3], 1);
      context.fillStyle = palette.fw;
      context.textAlign = "right";
      context.fillText(words.forward, x - 8, 13);
      context.fillStyle = palette.bw;
      context.textAlign = "left";
      context.fillText(words.backward, x + 8, 13);
    }
    const peak = this.x(timeline.peak_point + 0.5);
    this.upright(peak, palette.bad, [], 1.5, this.y(timeline.peak_bytes) - 4);
    const nearTurn = turn !== null && Math.abs(this.x(turn) - peak) < 120;
    const right = peak < this.x(0) + 70 || (nearTurn && peak >= this.x(turn));
    context.fillStyle = palette.bad;
    context.textAlign = right ? "left" : "right";
    context.fillText(words.peak, peak + (right ? 6 : -6), nearTurn ? Math.max(26, this.y(timeline.peak_bytes)) : Math.max(12, this.y(timeline.peak_bytes) - 4));
    if (this.limit !== null) this.level(this.limit);
    if (this.cursor !== null) this.upright(this.x(this.cursor + 0.5), palette.ink, [], 1);
  }

  private upright(x: number, colour: string, dash: number[], width: number, top = 2): void {
    const { context } = this;
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(x, top);
    context.lineTo(x, this.size.height - BOTTOM);
    context.stroke();
    context.setLineDash([]);
  }

  private level(bytes: number): void {
    const { context, palette, words, size } = this;
    const y = Math.round(this.y(bytes)) + 0.5;
    context.strokeStyle = palette.bad;
    context.lineWidth = 1;
    context.setLineDash([6, 4]);
    context.beginPath();
    context.moveTo(LEFT, y);
    context.lineTo(size.width - RIGHT, y);
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = palette.bad;
    context.textAlign = "left";
    context.fillText(`${words.limit} · ${words.bytes(bytes)}`, LEFT + 6, y + 13);
  }

  private pointAt(event: PointerEvent): number {
    const bounds = this.canvas.getBoundingClientRect();
    const share = (event.clientX - bounds.left - LEFT) / Math.max(1, this.size.width - LEFT - RIGHT);
    return Math.max(0, Math.min(this.points - 1, Math.floor(share * this.points)));
  }

  private press(event: PointerEvent): void {
    if (!this.timeline || event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.dragging = true;
    const point = this.pointAt(event);
    const y = event.clientY - this.canvas.getBoundingClientRect().top;
    const hit = this.slabs.find((slab) => {
      if (point < slab.from || point >= slab.to) return false;
      return y <= this.y(slab.base) && y >= this.y(slab.base + this.timeline!.blocks.bytes[slab.block]!);
    });
    if (hit) this.events.onBlock(hit.block, point);
    else this.events.onPoint(point);
  }

  private move(event: PointerEvent): void {
    if (this.dragging) this.events.onPoint(this.pointAt(event));
  }
}
