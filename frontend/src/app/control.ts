import { batch, computed, effect, signal } from "@preact/signals";
import type { Message, RunRequest } from "../generated/contract";
import { emptyRun, isOver } from "../state/events";
import { connected, openRun, place, receive, run, source } from "../state/store";
import { formatPlace, NOWHERE, parsePath, parsePlace } from "../state/url";
import { cancelRun, follow, listExamples, Refused, startRun, health, type Example, type Health, type Stream } from "../transport/api";
import { fromRecording, fromServer } from "../transport/artifacts";
import { embeddedRecording } from "../transport/recording";

export const examples = signal<readonly Example[]>([]);
export const mode = signal<RunRequest["options"]["mode"]>("auto");
export const native = signal(true);
/** What to compile for, once chosen: the page's own choice is the service's default. */
export const target = signal<Target | null>(null);
export const embed = signal(false);
/** A page without a server: the run is in it. */
export const offline = signal(false);
export const service = signal<Health | null>(null);
export const trouble = signal<{ said: Message | null; detail: string } | null>(null);
export const missing = signal(false);
export const submitting = signal(false);

type Target = RunRequest["options"]["target"];
export const chosenTarget = computed<Target>(() => target.value ?? service.value?.default_target ?? "cpu");

let stream: Stream | null = null;

function watch(id: string, keepPlace: boolean): void {
  stream?.close();
  missing.value = false;
  openRun(id, fromServer(id), keepPlace);
  stream = follow(
    id,
    (events) => {
      receive(events);
      adopt();
    },
    (up) => (connected.value = up),
    () => {
      if (run.value.seq === 0) {
        missing.value = true;
        run.value = emptyRun(id);
      } else if (!isOver(run.value.status)) connected.value = false;
    },
  );
}

let adopted = "";

/** The editor shows the source of the run that the page was opened on. */
function adopt(): void {
  const { id, request } = run.value;
  if (!request || adopted === id) return;
  adopted = id;
  batch(() => {
    source.value = request.source;
    mode.value = request.options.mode;
    target.value = request.options.target;
    native.value = request.options.native;
  });
}

export async function boot(): Promise<void> {
  place.value = parsePlace(location.hash);
  const recording = embeddedRecording(document);
  if (recording) {
    offline.value = true;
    openRun(recording.run.id, fromRecording(recording.artifacts), true);
    receive(recording.events);
    adopt();
    return;
  }
  const address = parsePath(location.pathname);
  embed.value = address.embed;
  if (address.run) watch(address.run, true);
  // An embedded run has neither the menu of examples nor the footer that these are for.
  if (!address.embed) await Promise.all([loadExamples(address.run === null), loadHealth()]);
}

async function loadHealth(): Promise<void> {
  try {
    service.value = await health();
    // Until its workers are ready, the service cannot say what they can do.
    if (service.value.state === "warming") setTimeout(() => void loadHealth(), 3000);
  } catch (fault) {
    refuse(fault);
  }
}

async function loadExamples(open: boolean): Promise<void> {
  try {
    examples.value = await listExamples();
  } catch (fault) {
    refuse(fault);
    return;
  }
  if (!open) return;
  const first = examples.value.find((example) => example.run !== null) ?? examples.value[0];
  if (first) openExample(first, true);
}

export function openExample(example: Example, keepPlace = false): void {
  batch(() => {
    trouble.value = null;
    source.value = example.source;
    if (!keepPlace) place.value = example.place ? parsePlace(example.place) : { ...NOWHERE, stage: place.value.stage };
  });
  adopted = "";
  if (example.run) watch(example.run, keepPlace || example.place !== "");
}

/** With `trace`, torch's structured trace is kept, too. */
export async function submit(trace = false): Promise<void> {
  if (offline.value || submitting.value) return;
  submitting.value = true;
  trouble.value = null;
  try {
    const options = { target: chosenTarget.value, mode: mode.value, native: native.value, until: null, trace } as const;
    const id = await startRun({ source: source.value, options });
    adopted = id; // What is being typed stays as it is.
    history.pushState(null, "", `/r/${id}${formatPlace({ ...NOWHERE, stage: place.value.stage })}`);
    watch(id, false);
  } catch (fault) {
    refuse(fault);
  } finally {
    submitting.value = false;
  }
}

export async function cancel(): Promise<void> {
  try {
    await cancelRun(run.value.id);
  } catch (fault) {
    refuse(fault);
  }
}

export function refuse(fault: unknown): void {
  trouble.value =
    fault instanceof Refused
      ? { said: fault.said, detail: fault.detail || `HTTP ${fault.status}` }
      : { said: null, detail: String(fault) };
}

export function permalink(): string {
  return `${location.origin}/r/${run.value.id}${formatPlace(place.value)}`;
}

/** The address follows what is seen; going back in the browser restores it. */
export function bindAddress(): void {
  // Inside a document that has no address of its own (a notebook's frame), there is nothing to write it to.
  if (location.protocol === "about:") return;
  effect(() => {
    const hash = formatPlace(place.value);
    if (hash !== location.hash) history.replaceState(null, "", `${location.pathname}${location.search}${hash}`);
  });
  addEventListener("hashchange", () => (place.value = parsePlace(location.hash)));
  addEventListener("popstate", () => {
    const address = parsePath(location.pathname);
    if (address.run && address.run !== run.value.id) {
      adopted = "";
      place.value = parsePlace(location.hash);
      watch(address.run, true);
    }
  });
}
