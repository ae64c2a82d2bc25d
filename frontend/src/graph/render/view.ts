import type { Box, Scene } from "../layout/scene";
import type { Overlay } from "../overlay/overlay";
import { fit, zoomAt, type Camera } from "./camera";
import { firstBeside, inMinimap, lookAt, minimap, paintMinimap, type Minimap } from "./minimap";
import { motion, type Ghost, type Kin } from "./motion";
import { hit, hitWire, paint, type Marks, type Rect, type Words } from "./paint";
import { readPalette, type Palette } from "./palette";

export interface ViewEvents {
  /** A node's id, or a closed group's key with its side. */
  onPick(box: Box | null): void;
  onPickNode(node: number): void;
  onToggle(group: string): void;
  onHover(box: Box | null, x: number, y: number): void;
}

/** The picture of another graph, as it stood on the screen when it was left, and which of its nodes ours were. */
export interface Arrival {
  readonly scene: Scene;
  readonly rects: readonly Rect[];
  readonly kin: Kin;
}

const MOVE_MS = 220;
/** From one graph to another, the eye needs longer to follow. */
const CROSS_MS = 420;
/** Pictures of so few boxes need no map. */
const SMALL = 12;
const NO_MARKS: Marks = { selected: null, linked: new Set(), focus: null, near: null, found: new Set() };

/** One canvas: camera, pointer, motion. Draws only when something changed. */
export class GraphView {
  private readonly context: CanvasRenderingContext2D;
  private scene: Scene | null = null;
  private from: readonly (Rect | null)[] = [];
  private ghosts: readonly Ghost[] = [];
  private movedAt = 0;
  private moveMs = MOVE_MS;
  private camera: Camera = { x: 0, y: 0, k: 1 };
  private palette: Palette;
  private marks: Marks = NO_MARKS;
  private overlay: Overlay | null = null;
  private queued = 0;
  private size = { width: 0, height: 0 };
  private anchor: { key: string; x: number; y: number } | null = null;
  private pendingFit = true;
  private drag: { x: number; y: number; moved: boolean; map: boolean; id: number } | null = null;
  private readonly observer: ResizeObserver;
  private readonly abort = new AbortController();

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private words: Words,
    private readonly events: ViewEvents,
  ) {
    this.context = canvas.getContext("2d", { alpha: false })!;
    this.palette = readPalette(canvas);
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(canvas.parentElement!);
    const options = { signal: this.abort.signal };
    canvas.addEventListener("pointerdown", (event) => this.down(event), options);
    canvas.addEventListener("pointermove", (event) => this.move(event), options);
    canvas.addEventListener("pointerup", (event) => this.up(event), options);
    canvas.addEventListener("pointerleave", () => this.events.onHover(null, 0, 0), options);
    canvas.addEventListener("dblclick", (event) => this.double(event), options);
    canvas.addEventListener("wheel", (event) => this.wheel(event), { ...options, passive: false });
    this.resize();
  }

  close(): void {
    this.observer.disconnect();
    this.abort.abort();
    cancelAnimationFrame(this.queued);
  }

  setWords(words: Words): void {
    this.words = words;
    this.draw();
  }

  retheme(): void {
    this.palette = readPalette(this.canvas);
    this.draw();
  }

  setMarks(marks: Marks): void {
    this.marks = marks;
    this.draw();
  }

  setOverlay(overlay: Overlay | null): void {
    this.overlay = overlay;
    this.draw();
  }

  /**
   * `arrival`: where another graph's picture stood, for the first scene of this one; null then means that it appears at
   * once. A later scene is the same graph with other groups open.
   */
  setScene(scene: Scene, arrival: Arrival | null): void {
    const before = this.scene;
    const rects = before ? this.rects() : [];
    this.scene = scene;
    this.ghosts = [];
    this.from = [];
    if (!before) this.pendingFit = true;
    else if (this.anchor) {
      const key = this.anchor.key;
      const box = scene.boxes.find((other) => other.key === key);
      if (box) {
        this.camera = {
          ...this.camera,
          x: this.anchor.x - box.x * this.camera.k,
          y: this.anchor.y - box.y * this.camera.k,
        };
      }
    }
    this.anchor = null;
    this.applyFit();
    this.movedAt = 0;
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches && !this.pendingFit) {
      if (before) this.start(motion(before, rects, scene, (node) => [node]), MOVE_MS);
      else if (arrival) this.start(motion(arrival.scene, arrival.rects.map((rect) => this.toPicture(rect)), scene, arrival.kin), CROSS_MS);
    }
    this.draw();
  }

  private start({ from, ghosts }: { from: readonly (Rect | null)[]; ghosts: readonly Ghost[] }, ms: number): void {
    this.from = from;
    this.ghosts = ghosts;
    this.movedAt = performance.now();
    this.moveMs = ms;
    this.canvas.dataset["moved"] = String(from.filter((rect) => rect !== null).length);
    this.canvas.dataset["joined"] = String(ghosts.filter((ghost) => ghost.to !== null).length);
  }

  /** Where the boxes stand on the screen, for the picture that comes next. */
  snapshot(): { scene: Scene; rects: readonly Rect[] } | null {
    if (!this.scene) return null;
    const { x, y, k } = this.camera;
    const rects = this.rects().map((rect) => ({ x: rect.x * k + x, y: rect.y * k + y, w: rect.w * k, h: rect.h * k }));
    return { scene: this.scene, rects };
  }

  private toPicture(rect: Rect): Rect {
    const { x, y, k } = this.camera;
    return { x: (rect.x - x) / k, y: (rect.y - y) / k, w: rect.w / k, h: rect.h / k };
  }

  /** Keeps this box where it is on the screen when the next scene comes. */
  hold(key: string): void {
    const box = this.scene?.boxes.find((other) => other.key === key);
    if (!box) return;
    this.anchor = { key, x: box.x * this.camera.k + this.camera.x, y: box.y * this.camera.k + this.camera.y };
  }

  fitAll(): void {
    if (!this.scene) return;
    this.camera = fit(this.extent(), this.size);
    this.draw();
  }

  zoom(factor: number): void {
    this.camera = zoomAt(this.camera, this.size.width / 2, this.size.height / 2, factor);
    this.draw();
  }

  /** Brings a box into view, without moving when it is there already. */
  reveal(key: string): void {
    const box = this.scene?.boxes.find((other) => other.key === key);
    if (!box) return;
    let { x, y, k } = this.camera;
    if (k < 0.5) k = 0.8;
    const left = box.x * k + x;
    const top = box.y * k + y;
    const inside = left > 20 && top > 20 && left + box.w * k < this.size.width - 20 && top + box.h * k < this.size.height - 20;
    if (inside && k === this.camera.k) return;
    x = this.size.width / 2 - (box.x + box.w / 2) * k;
    y = this.size.height / 2 - (box.y + box.h / 2) * k;
    this.camera = { x, y, k };
    this.draw();
  }

  private extent(): { width: number; height: number } {
    const { width, height, turn } = this.scene!;
    return { width, height: height + (turn.to.length ? 44 : 0) };
  }

  private applyFit(): void {
    if (!this.pendingFit || !this.scene || this.size.width < 2) return;
    this.camera = firstBeside(this.extent(), this.size);
    this.pendingFit = false;
  }

  private resize(): void {
    const { clientWidth, clientHeight } = this.canvas.parentElement!;
    const ratio = window.devicePixelRatio || 1;
    const grown = this.size.width > 0 ? (clientWidth - this.size.width) / 2 : 0;
    this.size = { width: clientWidth, height: clientHeight };
    this.canvas.width = Math.max(1, Math.round(clientWidth * ratio));
    this.canvas.height = Math.max(1, Math.round(clientHeight * ratio));
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.camera = { ...this.camera, x: this.camera.x + grown };
    this.applyFit();
    this.paintNow();
  }

  private draw(): void {
    if (this.queued) return;
    this.queued = requestAnimationFrame(() => {
      this.queued = 0;
      this.paintNow();
    });
  }

  private progress(): number {
    if (!this.movedAt) return 1;
    const t = Math.min(1, (performance.now() - this.movedAt) / this.moveMs);
    return 1 - (1 - t) ** 3;
  }

  private rects(): readonly Rect[] {
    const t = this.progress();
    const boxes = this.scene?.boxes ?? [];
    if (t >= 1) return boxes;
    return boxes.map((box, i) => between(this.from[i] ?? box, box, t));
  }

  private paintNow(): void {
    if (!this.scene) {
      this.context.fillStyle = this.palette.bg;
      this.context.fillRect(0, 0, this.size.width, this.size.height);
      return;
    }
    const t = this.progress();
    paint(this.context, {
      scene: this.scene,
      rects: this.rects(),
      alpha: this.scene.boxes.map((_, i) => (t < 1 && !this.from[i] ? t : 1)),
      settled: t < 1 ? 0.25 + 0.75 * t ** 3 : 1,
      ghosts: t < 1 ? this.ghosts.map(({ box, from, to }) => ({ box, rect: between(from, to ?? from, t), alpha: 1 - t })) : [],
      camera: this.camera,
      marks: this.marks,
      // Made for a scene: while the next one is on its way there, it says nothing of it.
      overlay: this.overlay?.tints.length === this.scene.boxes.length ? this.overlay : null,
      palette: this.palette,
      words: this.words,
      ...this.size,
    });
    const map = this.map();
    if (map) {
      const { scene, camera, marks, palette, size: view } = this;
      paintMinimap(this.context, map, { scene, camera, marks, palette, view });
    }
    if (t < 1) this.draw();
    this.canvas.dataset["drawn"] = String(this.scene.boxes.length);
    this.canvas.dataset["marked"] = String(this.marks.linked.size);
    this.canvas.dataset["near"] = this.marks.near === null ? "" : String(this.marks.near.size);
  }

  private map(): Minimap | null {
    return this.scene && this.scene.boxes.length > SMALL ? minimap(this.extent(), this.camera, this.size) : null;
  }

  private onMap(event: MouseEvent): Minimap | null {
    const map = this.map();
    const bounds = this.canvas.getBoundingClientRect();
    return map && inMinimap(map, event.clientX - bounds.left, event.clientY - bounds.top) ? map : null;
  }

  private lookFromMap(event: MouseEvent): void {
    const map = this.map();
    if (!map) return;
    const bounds = this.canvas.getBoundingClientRect();
    this.camera = lookAt(map, this.camera, this.size, event.clientX - bounds.left, event.clientY - bounds.top);
    this.draw();
  }

  private at(event: MouseEvent): { x: number; y: number; box: Box | null } {
    const bounds = this.canvas.getBoundingClientRect();
    const x = (event.clientX - bounds.left - this.camera.x) / this.camera.k;
    const y = (event.clientY - bounds.top - this.camera.y) / this.camera.k;
    return { x, y, box: this.scene ? hit(this.scene, x, y) : null };
  }

  private down(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    const map = this.onMap(event) !== null;
    this.drag = { x: event.clientX, y: event.clientY, moved: map, map, id: event.pointerId };
    if (map) this.lookFromMap(event);
  }

  private move(event: PointerEvent): void {
    if (this.drag) {
      if (this.drag.map) {
        this.lookFromMap(event);
        return;
      }
      const dx = event.clientX - this.drag.x;
      const dy = event.clientY - this.drag.y;
      if (!this.drag.moved && Math.hypot(dx, dy) < 4) return;
      this.drag = { x: event.clientX, y: event.clientY, moved: true, map: false, id: this.drag.id };
      this.camera = { ...this.camera, x: this.camera.x + dx, y: this.camera.y + dy };
      this.canvas.style.cursor = "grabbing";
      this.draw();
      return;
    }
    if (this.onMap(event)) {
      this.canvas.style.cursor = "crosshair";
      this.events.onHover(null, event.clientX, event.clientY);
      return;
    }
    const { box } = this.at(event);
    this.canvas.style.cursor = box && (!box.open || this.onHead(event, box)) ? "pointer" : "grab";
    this.events.onHover(box && !box.open ? box : null, event.clientX, event.clientY);
  }

  private onHead(event: MouseEvent, box: Box): boolean {
    const { x, y } = this.at(event);
    return y < box.y + 22 && x > box.x + box.w - 28;
  }

  private up(event: PointerEvent): void {
    const drag = this.drag;
    this.drag = null;
    this.canvas.style.cursor = "grab";
    if (!drag || drag.moved || !this.scene) return;
    const { x, y, box } = this.at(event);
    if (box?.open && this.onHead(event, box)) {
      this.events.onToggle(box.key);
      return;
    }
    if (!box || box.open) {
      const wire = hitWire(this.scene, x, y, 7 / this.camera.k);
      if (wire) {
        this.events.onPickNode(wire.nodes[0]!);
        return;
      }
    }
    this.events.onPick(box && !box.open ? box : null);
  }

  private double(event: MouseEvent): void {
    if (this.onMap(event)) return;
    const { box } = this.at(event);
    if (box && box.kind !== "node") this.events.onToggle(box.key);
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    if (event.shiftKey) {
      this.camera = { ...this.camera, x: this.camera.x - event.deltaY - event.deltaX, y: this.camera.y };
    } else {
      const bounds = this.canvas.getBoundingClientRect();
      const speed = event.deltaMode === 1 ? 0.05 : 0.0016;
      const factor = Math.exp(-event.deltaY * (event.ctrlKey ? 4 : 1) * speed);
      this.camera = zoomAt(this.camera, event.clientX - bounds.left, event.clientY - bounds.top, factor);
    }
    this.draw();
  }
}

function between(a: Rect, b: Rect, t: number): Rect {
  const mix = (from: number, to: number): number => from + (to - from) * t;
  return { x: mix(a.x, b.x), y: mix(a.y, b.y), w: mix(a.w, b.w), h: mix(a.h, b.h) };
}
