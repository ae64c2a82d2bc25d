import { signal, type Signal } from "@preact/signals";
import type { Message, MetalPayload } from "../generated/contract";
import { askKernel, follow, Refused } from "../transport/api";
import { fromServer } from "../transport/artifacts";
import { run } from "./store";

export type Metal =
  | { readonly state: "asking"; readonly since: number }
  | { readonly state: "ready"; readonly value: MetalPayload; readonly run: string }
  | { readonly state: "failed"; readonly said: Message | null; readonly detail: string };

const known = new Map<string, Signal<Metal>>();

/** A kernel's levels under one configuration. The first one who looks asks the server, once for each run of the page. */
export function metal(kernel: string, config: number): Signal<Metal> {
  const id = run.peek().id;
  const key = `${id} ${kernel} ${config}`;
  let held = known.get(key);
  if (!held) {
    held = signal<Metal>({ state: "asking", since: performance.now() });
    known.set(key, held);
    void answer(id, kernel, config, held);
  }
  return held;
}

async function answer(id: string, kernel: string, config: number, into: Signal<Metal>): Promise<void> {
  try {
    const derived = await askKernel(id, kernel, config);
    into.value = await outcome(derived);
  } catch (fault) {
    into.value = {
      state: "failed",
      said: fault instanceof Refused ? fault.said : null,
      detail: fault instanceof Refused ? fault.detail : String(fault),
    };
  }
}

/** What a derived run came to. */
function outcome(derived: string): Promise<Metal> {
  return new Promise((resolve) => {
    let hash = "";
    follow(
      derived,
      (events) => {
        for (const event of events) {
          if (event.type === "artifact" && event.artifact.kind === "metal") hash = event.artifact.hash;
          else if (event.type === "finished" && hash) {
            const load = fromServer(derived).get<"metal">({ hash, kind: "metal", format: "metal/1", bytes: 0 });
            const stop = load.subscribe((loaded) => {
              if (loaded.state === "ready") resolve({ state: "ready", value: loaded.value, run: derived });
              else if (loaded.state === "broken") resolve({ state: "failed", said: null, detail: loaded.error });
              if (loaded.state !== "loading") queueMicrotask(() => stop());
            });
          } else if (event.type === "failed" || event.type === "lost") {
            resolve({ state: "failed", said: event.cause, detail: event.type === "failed" ? event.error : "" });
          } else if (event.type === "timed_out" || event.type === "cancelled") {
            resolve({ state: "failed", said: null, detail: event.type });
          }
        }
      },
      () => undefined,
      () => resolve({ state: "failed", said: null, detail: derived }),
    );
  });
}
