/** Picture to screen: `screen = picture × k + (x, y)`. */
export interface Camera {
  readonly x: number;
  readonly y: number;
  readonly k: number;
}

export const MIN_SCALE = 0.02;
export const MAX_SCALE = 3;
/** Below this a first view would not be readable: then it shows the top, at this scale or what the width allows. */
const READABLE = 0.7;

interface Size {
  readonly width: number;
  readonly height: number;
}

export function fit(scene: Size, view: Size, margin = 24): Camera {
  const k = Math.min(1.25, (view.width - 2 * margin) / scene.width, (view.height - 2 * margin) / scene.height);
  const scale = Math.max(MIN_SCALE, k);
  return { k: scale, x: (view.width - scene.width * scale) / 2, y: (view.height - scene.height * scale) / 2 };
}

export function firstView(scene: Size, view: Size, margin = 24): Camera {
  const whole = fit(scene, view, margin);
  if (whole.k >= READABLE) return whole;
  const wide = Math.max(MIN_SCALE, Math.min(READABLE, (view.width - 2 * margin) / scene.width));
  if (wide <= whole.k) return whole;
  return { k: wide, x: (view.width - scene.width * wide) / 2, y: margin / 2 };
}

export function zoomAt(camera: Camera, x: number, y: number, factor: number): Camera {
  const k = Math.min(MAX_SCALE, Math.max(MIN_SCALE, camera.k * factor));
  const ratio = k / camera.k;
  return { k, x: x - (x - camera.x) * ratio, y: y - (y - camera.y) * ratio };
}
