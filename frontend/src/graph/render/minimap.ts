import type { Scene } from "../layout/scene";
import { firstView, fit, type Camera } from "./camera";
import type { Marks, Rect } from "./paint";
import type { Palette } from "./palette";

const WIDE = 150;
const HIGH = 120;
const MARGIN = 10;

interface Size {
  readonly width: number;
  readonly height: number;
}

/** Where the small map lies on the screen, and its scale; null while the whole picture is in view. */
export interface Minimap extends Rect {
  readonly k: number;
}

export function minimap(scene: Size, camera: Camera, view: Size): Minimap | null {
  const slack = 2;
  const whole =
    camera.x >= -slack &&
    camera.y >= -slack &&
    camera.x + scene.width * camera.k <= view.width + slack &&
    camera.y + scene.height * camera.k <= view.height + slack;
  // On a pane not much larger than the map it would only be in the way.
  if (whole || view.width < 3 * WIDE || view.height < 1.5 * HIGH) return null;
  const k = Math.min(Math.min(WIDE, view.width / 9) / scene.width, Math.min(HIGH, view.height / 2.5) / scene.height);
  const h = scene.height * k;
  return { x: MARGIN, y: view.height - h - MARGIN, w: scene.width * k, h, k };
}

/** How a picture is first shown: beside its small map, where it needs one. */
export function firstBeside(scene: Size, view: Size): Camera {
  const camera = firstView(scene, view);
  const map = minimap(scene, camera, view);
  const taken = map ? map.x + map.w : 0;
  if (camera.x >= taken) return camera;
  const narrow = firstView(scene, { ...view, width: view.width - taken }, MARGIN);
  const beside = { ...narrow, x: narrow.x + taken };
  // So much smaller, all of it may be in view, and there is no map to stand beside.
  return minimap(scene, beside, view) ? beside : fit(scene, view, MARGIN);
}

export function paintMinimap(
  context: CanvasRenderingContext2D,
  map: Minimap,
  { scene, camera, marks, palette, view }: { scene: Scene; camera: Camera; marks: Marks; palette: Palette; view: Size },
): void {
  context.save();
  context.globalAlpha = 0.92;
  context.fillStyle = palette.panel;
  context.strokeStyle = palette.line;
  context.lineWidth = 1;
  context.beginPath();
  context.roundRect(map.x - 4, map.y - 4, map.w + 8, map.h + 8, 6);
  context.fill();
  context.stroke();
  context.globalAlpha = 1;
  for (const box of scene.boxes) {
    if (box.open) continue;
    const marked = marks.linked.has(box.key) || marks.selected === box.key;
    context.fillStyle = marked ? palette.ink : box.recomputed ? palette.re : box.backward ? palette.bw : palette.fw;
    context.globalAlpha = marked ? 1 : 0.55;
    const grown = marked ? 1 : 0;
    context.fillRect(
      map.x + box.x * map.k - grown,
      map.y + box.y * map.k - grown,
      Math.max(1.5, box.w * map.k) + 2 * grown,
      Math.max(1.5, box.h * map.k) + 2 * grown,
    );
  }
  context.globalAlpha = 1;
  context.beginPath();
  context.rect(map.x - 4, map.y - 4, map.w + 8, map.h + 8);
  context.clip();
  context.strokeStyle = palette.ink;
  context.lineWidth = 1.4;
  const at = { x: map.x - (camera.x / camera.k) * map.k, y: map.y - (camera.y / camera.k) * map.k };
  context.strokeRect(at.x, at.y, (view.width / camera.k) * map.k, (view.height / camera.k) * map.k);
  context.restore();
}

export const inMinimap = (map: Minimap, x: number, y: number): boolean =>
  x >= map.x - 4 && x <= map.x + map.w + 4 && y >= map.y - 4 && y <= map.y + map.h + 4;

/** The camera that has the map's point (x, y) in the middle of the view. */
export function lookAt(map: Minimap, camera: Camera, view: Size, x: number, y: number): Camera {
  return {
    k: camera.k,
    x: view.width / 2 - ((x - map.x) / map.k) * camera.k,
    y: view.height / 2 - ((y - map.y) / map.k) * camera.k,
  };
}
