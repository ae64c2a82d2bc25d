import { signal, type Signal } from "@preact/signals";
import type { ArtifactRef, Payloads } from "../generated/contract";

export type Loaded<T> = { readonly state: "loading" } | { readonly state: "ready"; readonly value: T } | Broken;
export interface Broken {
  readonly state: "broken";
  readonly error: string;
}

/** What an earlier version of a format did not write: a stored run or a recording of it is read with these. */
const ADDED: Readonly<Record<string, object>> = {
  "execution/1": { autotuned: [], configs: {}, cuda_graphs: [] },
  "kernels/1": { library: {}, unlinked: [] },
  "memory/1": { beyond_plan: null, limit_bytes: null },
};

function whole(payload: unknown): unknown {
  const { format } = payload as { format?: string };
  return format !== undefined && format in ADDED ? { ...ADDED[format], ...(payload as object) } : payload;
}

/** Payloads of one run, each fetched once. They never change: their name is their hash. */
export class Artifacts {
  private readonly known = new Map<string, Signal<Loaded<unknown>>>();

  constructor(private readonly load: (hash: string) => Promise<unknown>) {}

  get<K extends keyof Payloads>(ref: ArtifactRef & { kind: K | string }): Signal<Loaded<Payloads[K]>> {
    let held = this.known.get(ref.hash);
    if (!held) {
      held = signal<Loaded<unknown>>({ state: "loading" });
      this.known.set(ref.hash, held);
      this.fetch(ref.hash, held);
    }
    return held as Signal<Loaded<Payloads[K]>>;
  }

  private fetch(hash: string, into: Signal<Loaded<unknown>>): void {
    this.load(hash).then(
      (value) => (into.value = { state: "ready", value: whole(value) }),
      (fault: unknown) => (into.value = { state: "broken", error: String(fault) }),
    );
  }
}

export function fromServer(run: string): Artifacts {
  return new Artifacts(async (hash) => {
    const answer = await fetch(`/api/v1/runs/${run}/artifacts/${hash}`);
    if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
    return answer.json() as Promise<unknown>;
  });
}

export function fromRecording(artifacts: Readonly<Record<string, unknown>>): Artifacts {
  return new Artifacts((hash) =>
    hash in artifacts ? Promise.resolve(artifacts[hash]) : Promise.reject(new Error(`no artifact ${hash}`)),
  );
}
