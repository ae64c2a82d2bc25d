import type { Message, RunComparison, RunRequest } from "../generated/contract";
import type { Event } from "../state/events";

export interface Example {
  readonly name: string;
  readonly group: "examples" | "questions";
  readonly title: string;
  readonly description: string;
  readonly zh: { readonly title: string; readonly description: string } | null;
  readonly source: string;
  readonly options: Partial<RunRequest["options"]>;
  /** The fragment of the address that shows what it is about; empty for the page's own choice. */
  readonly place: string;
  readonly run: string | null;
}

export interface Health {
  readonly state: string;
  /** What keeps runs apart, each from the others and all from the machine. */
  readonly isolation: Message;
  readonly outer: Message;
  readonly limits: Readonly<Record<LimitName, number>>;
  /** What a living worker serves, in the order in which it is offered. */
  readonly targets: readonly { readonly id: RunRequest["options"]["target"]; readonly name: string; readonly kind: string }[];
  readonly default_target: RunRequest["options"]["target"];
}

/** A limit of each run, in seconds, bytes, or a count, as its name ends. */
export type LimitName =
  | "capture_seconds" | "run_seconds" | "memory_bytes" | "processes" | "file_bytes" | "disk_bytes" | "disk_entries"
  | "output_bytes" | "artifact_bytes" | "artifacts_bytes" | "events" | "queue" | "body_bytes";

/** What the server said when it refused: a sentence where it has one, else torch-free text. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly said: Message | null,
    readonly detail: string,
  ) {
    super(detail);
  }
}

async function ask<T>(path: string, init?: RequestInit): Promise<T> {
  const answer = await fetch(path, init);
  if (!answer.ok) throw await refusal(answer);
  return (await answer.json()) as T;
}

async function refusal(answer: Response): Promise<Refused> {
  const text = await answer.text();
  try {
    const body = JSON.parse(text) as { message?: Message; error?: Message; detail?: unknown };
    const said = body.message ?? body.error ?? null;
    const detail = typeof body.detail === "string" ? body.detail : JSON.stringify(body.detail ?? body);
    return new Refused(answer.status, said && typeof said === "object" && "key" in said ? said : null, detail);
  } catch {
    return new Refused(answer.status, null, text.slice(0, 300));
  }
}

export const compareRuns = (a: string, b: string): Promise<RunComparison> => ask(`/api/v1/compare/${a}/${b}`);
export const listExamples = (): Promise<Example[]> => ask("/api/v1/examples");
export const health = (): Promise<Health> => ask("/api/v1/health");

/** Queues a run; with `reuse`, a finished run of the same request is as good. Its id. */
export async function startRun(request: Omit<RunRequest, "question">, reuse = false): Promise<string> {
  const body = JSON.stringify(request);
  const made = await ask<{ id: string }>(`/api/v1/runs${reuse ? "?reuse=true" : ""}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
  });
  return made.id;
}

/** Asks for one kernel of a run down to machine code: the id of the derived run that has it. */
export async function askKernel(run: string, kernel: string, config: number): Promise<string> {
  const made = await ask<{ id: string }>(`/api/v1/runs/${run}/kernels`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ kernel, config }),
  });
  return made.id;
}

export async function cancelRun(run: string): Promise<void> {
  const answer = await fetch(`/api/v1/runs/${run}`, { method: "DELETE" });
  if (!answer.ok) throw await refusal(answer);
}

export interface Stream {
  close(): void;
}

const TERMINAL = new Set(["finished", "failed", "timed_out", "cancelled", "lost"]);

/**
 * Follows a run's events. The browser resumes a broken connection by itself, from the last id that it saw;
 * `onConnection` says when it is trying. Events of one tick are given together, so that a replay paints once.
 */
export function follow(
  run: string,
  onEvents: (events: Event[]) => void,
  onConnection: (up: boolean) => void,
  onMissing: () => void,
): Stream {
  const source = new EventSource(`/api/v1/runs/${run}/events`);
  let waiting: Event[] = [];
  let timer: ReturnType<typeof setTimeout> | null = null;
  const flush = (): void => {
    timer = null;
    const events = waiting;
    waiting = [];
    onEvents(events);
  };
  const take = (message: MessageEvent<string>): void => {
    const event = JSON.parse(message.data) as Event;
    waiting.push(event);
    timer ??= setTimeout(flush, 16);
    if (TERMINAL.has(event.type)) source.close();
  };
  source.onmessage = take;
  source.onopen = () => onConnection(true);
  source.onerror = () => {
    if (source.readyState === EventSource.CLOSED) onMissing();
    else onConnection(false);
  };
  return {
    close: () => {
      source.close();
      if (timer !== null) clearTimeout(timer);
    },
  };
}
