import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { t, type Key } from "../messages";
import { Derived, type Derivation } from "./Derived";

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

/** In a narrow list, what tells kernels apart. */
export const shortKernel = (name: string): string => name.replace(/^(cpp|triton_[a-z]+)_fused_+/, "");

export function Tabs<T extends string>({
  tabs,
  at,
  onPick,
}: {
  tabs: readonly { id: T; label: string }[];
  at: T;
  onPick: (id: T) => void;
}) {
  if (tabs.length < 2) return null;
  return (
    <div class="seg" role="tablist">
      {tabs.map((tab) => (
        <button key={tab.id} role="tab" aria-selected={tab.id === at} data-tab={tab.id} onClick={() => onPick(tab.id)}>
          {tab.label}
        </button>
      ))}
    </div>
  );
}

/** A figure and what it is of; it opens how it came about. */
export function Figure({ value, label, how }: { value: string; label: string; how: Derivation }) {
  return (
    <Derived how={how} class="fig">
      <b>{value}</b>
      <span>{label}</span>
    </Derived>
  );
}

/** Two-sided choice of graph, where a stage has a forward and a backward. */
export function GraphPick({ graphs, at, onPick }: { graphs: readonly string[]; at: string; onPick: (graph: string) => void }) {
  return (
    <Tabs
      tabs={graphs.map((graph) => ({ id: graph, label: t(`graph.${graph}` as Key) }))}
      at={at}
      onPick={onPick}
    />
  );
}

const ROW = 25;

/** Rows of one height, of which only those in sight exist. */
export function LongTable<T>({
  rows,
  head,
  row,
  scrollTo,
}: {
  rows: readonly T[];
  head: ComponentChildren;
  row: (item: T, index: number) => ComponentChildren;
  scrollTo: number;
}) {
  const host = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const high = host.current?.clientHeight ?? 800;
  const first = Math.max(0, Math.floor(top / ROW) - 10);
  const last = Math.min(rows.length, first + Math.ceil(high / ROW) + 24);
  useEffect(() => {
    const element = host.current;
    if (!element || scrollTo < 0) return;
    const at = scrollTo * ROW;
    if (at < element.scrollTop || at > element.scrollTop + element.clientHeight - 60) {
      element.scrollTop = Math.max(0, at - element.clientHeight / 2);
    }
  }, [scrollTo]);
  return (
    <div class="scroll" ref={host} tabIndex={0} onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
      <table class="t" aria-rowcount={rows.length}>
        <thead>{head}</thead>
        <tbody>
          {first > 0 && <tr style={{ height: `${first * ROW}px` }} />}
          {rows.slice(first, last).map((item, i) => row(item, first + i))}
          {last < rows.length && <tr style={{ height: `${(rows.length - last) * ROW}px` }} />}
        </tbody>
      </table>
    </div>
  );
}

/** A unified diff, its lines marked. */
export function Diff({ text, label }: { text: string; label: string }) {
  return (
    <div class="diff" tabIndex={0} aria-label={label}>
      {text.split("\n").map((line, i) => {
        if (line.startsWith("---") || line.startsWith("+++")) return null;
        if (line.startsWith("@@")) return <div key={i} class="at">{line}</div>;
        const kind = line.startsWith("+") ? "add" : line.startsWith("-") ? "del" : "";
        const sign = { add: "+", del: "−", "": " " }[kind];
        return (
          <div key={i} class={kind}>
            <i>{sign}</i>
            {line.slice(1) || " "}
          </div>
        );
      })}
    </div>
  );
}

/** Up and down in a list of choices, by keyboard; Home and End too. */
export function stepKeys(event: KeyboardEvent, at: number, count: number, go: (to: number) => void): void {
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: count - 1 }[event.key];
  if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  go(Math.max(0, Math.min(count - 1, to)));
  event.preventDefault();
  event.stopPropagation();
}
