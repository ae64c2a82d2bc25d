import type { GroupKind } from "../fold/tree";

export interface Area {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

/** One box of the picture: a node, a closed group, or the frame of an open group. Coordinates are its top left corner. */
export interface Box extends Area {
  readonly key: string;
  readonly label: string;
  readonly kind: "node" | GroupKind;
  /** The node's number; -1 for groups. */
  readonly node: number;
  /** The group that opens or closes with this box; for a node, the group it lies in. */
  readonly group: string;
  readonly backward: boolean;
  readonly open: boolean;
  readonly count: number;
  readonly depth: number;
  readonly recomputed: boolean;
  readonly saved: boolean;
  readonly input: boolean;
}

/** Data flow inside one half, between visible boxes. `long` edges pass behind, faded. */
export interface SceneEdge {
  readonly from: number;
  readonly to: number;
  readonly backward: boolean;
  readonly again: boolean;
  readonly long: boolean;
  readonly count: number;
  /** The line around what is in the way, as x, y, x, y, …; null where nothing is. */
  readonly path: readonly number[] | null;
}

/** What crosses from the forward to the backward half, bundled by the pair of visible boxes. */
export interface Wire {
  readonly from: number;
  readonly to: number;
  readonly nodes: readonly number[];
  readonly bytes: number;
  readonly saved: boolean;
  /** Where it leaves and enters, as shares of its boxes' heights. */
  readonly start: number;
  readonly end: number;
  readonly path: readonly number[] | null;
}

export interface Scene {
  readonly boxes: readonly Box[];
  readonly edges: readonly SceneEdge[];
  readonly wires: readonly Wire[];
  /** From the forward's outputs to the tangents: boxes of both sides. */
  readonly turn: { readonly from: readonly number[]; readonly to: readonly number[] };
  /** For each node, the box that stands for it; -1 for what is not drawn. */
  readonly shown: Int32Array;
  readonly width: number;
  readonly height: number;
  readonly open: readonly string[];
  readonly mirrored: boolean;
}
