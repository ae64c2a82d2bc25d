import type { Ask, Answer } from "./client";
import { LayoutSession } from "./session";

let session: LayoutSession | null = null;

self.onmessage = (message: MessageEvent<Ask>) => {
  const ask = message.data;
  if (ask.graph) session = new LayoutSession(ask.graph, ask.parameters);
  if (!session) return;
  const open = ask.reveal === null ? ask.open : [...(ask.open ?? []), ...session.around(ask.reveal)];
  const answer: Answer = { ticket: ask.ticket, scene: session.layout(open) };
  self.postMessage(answer);
};
