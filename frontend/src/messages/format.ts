import type { TensorValue } from "../generated/contract";
import type { Value } from "../graph/model/graph";

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** `32.0 KiB`: three figures are enough to compare by. */
export function bytes(count: number): string {
  let value = count;
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = unit === 0 || Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  const text = value.toFixed(digits);
  return `${digits > 0 ? text.replace(/\.?0+$/, "") : text} ${UNITS[unit]}`;
}

/** `48 K`, for a gutter. */
export function shortBytes(count: number): string {
  return bytes(count).replace("iB", "").replace(/ B$/, " B");
}

export function seconds(value: number): string {
  if (value >= 100) return `${value.toFixed(0)} s`;
  if (value >= 1) return `${value.toFixed(1)} s`;
  if (value >= 0.001) return `${(value * 1000).toFixed(value >= 0.1 ? 0 : 1)} ms`;
  return `${(value * 1e6).toFixed(0)} µs`;
}

const DTYPES: Record<string, string> = {
  float32: "f32",
  float64: "f64",
  float16: "f16",
  bfloat16: "bf16",
  int64: "i64",
  int32: "i32",
  int16: "i16",
  int8: "i8",
  uint8: "u8",
  bool: "b8",
  complex64: "c64",
  complex128: "c128",
};

export const dtype = (name: string): string => DTYPES[name.replace("torch.", "")] ?? name.replace("torch.", "");

export function size(value: TensorValue["shape"][number]): string {
  return typeof value === "number" ? String(value) : value.hint === null ? value.expr : `${value.expr}=${value.hint}`;
}

/** `f32[32, 256]` */
export function shape(value: Value | null): string {
  if (!value) return "";
  if (value.kind === "tensor") return `${dtype(value.dtype)}[${value.shape.map(size).join(", ")}]`;
  if (value.kind === "tuple") return `(${value.items.map((item) => (item ? shape(item) : "–")).join(", ")})`;
  const held = value.value;
  if (held === null) return value.type;
  return typeof held === "object" ? `${value.type} ${size(held)}` : `${value.type} ${String(held)}`;
}

export function opName(op: string, target: string): string {
  if (op === "placeholder" || op === "output" || op === "get_attr") return op;
  return target
    .replace(/^torch\.ops\./, "")
    .replace(/^<built-in (?:function|method) (.+?)(?: of .*)?>$/, "$1")
    .replace(/^<function (.+?) at .*>$/, "$1")
    .replace(/\.default$/, "");
}

export const count = (value: number): string => value.toLocaleString("en").replaceAll(",", "\u202f");
