import type { Scene } from "../layout/scene";
import type { GraphModel } from "../model/graph";
import { LayoutSession } from "./session";

export interface Ask {
  readonly ticket: number;
  readonly graph: GraphModel | null;
  readonly open: readonly string[] | null;
  readonly reveal: number | null;
  readonly parameters: boolean;
}

export interface Answer {
  readonly ticket: number;
  readonly scene: Scene;
}

/** The worker's script lies beside the page's, or, in a one-file page, inside it. */
function startWorker(): Worker {
  const inside = document.getElementById("aotscope-layout-worker")?.textContent;
  // The page says at which address: it carries a hash of the script, so that both are of one version.
  if (!inside) return new Worker(document.getElementById("app")!.dataset["worker"]!);
  const url = URL.createObjectURL(new Blob([inside], { type: "text/javascript" }));
  const worker = new Worker(url);
  URL.revokeObjectURL(url);
  return worker;
}

/** Lays out one graph off the page's thread; where workers are not allowed (a file opened from disk), on it. */
export class LayoutClient {
  private worker: Worker | null = null;
  private local: LayoutSession | null = null;
  private sent = false;
  private ticket = 0;
  private last: Ask | null = null;

  constructor(
    private readonly graph: GraphModel,
    private readonly parameters: boolean,
    private readonly onScene: (scene: Scene) => void,
  ) {
    try {
      this.worker = startWorker();
      this.worker.onmessage = (message: MessageEvent<Answer>) => {
        if (message.data.ticket === this.ticket) this.onScene(message.data.scene);
      };
      this.worker.onerror = () => this.fallBack();
    } catch {
      this.fallBack();
    }
  }

  layout(open: readonly string[] | null, reveal: number | null = null): void {
    this.ticket++;
    const ask: Ask = { ticket: this.ticket, graph: this.sent ? null : this.graph, open, reveal, parameters: this.parameters };
    this.last = ask;
    if (this.worker) {
      this.sent = true;
      this.worker.postMessage(ask);
    } else this.here(ask);
  }

  private here(ask: Ask): void {
    this.local ??= new LayoutSession(this.graph, this.parameters);
    const open = ask.reveal === null ? ask.open : [...(ask.open ?? []), ...this.local.around(ask.reveal)];
    this.onScene(this.local.layout(open));
  }

  private fallBack(): void {
    this.worker?.terminate();
    this.worker = null;
    if (this.last) this.here(this.last);
  }

  close(): void {
    this.worker?.terminate();
    this.worker = null;
  }
}
