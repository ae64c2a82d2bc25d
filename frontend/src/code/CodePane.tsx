import { useEffect, useMemo, useRef } from "preact/hooks";
import type { CodePayload } from "../generated/contract";
import { closure, codeMarks, linkIndex, select, selected } from "../state/store";
import { CodeViewer } from "./viewer";

interface Props {
  readonly code: CodePayload;
  readonly label: string;
  /** The line to open at, while nothing is selected. */
  readonly home?: number;
  /** The line that stands for the selection, where one of its lines says more than the first. */
  readonly at?: number | null;
}

/** A text whose lines are linked: what belongs to the selection is marked, what belongs to nothing is dim. */
export function CodePane({ code, label, home, at }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const viewer = useRef<CodeViewer | null>(null);
  const marks = useMemo(() => codeMarks(code), [code]);

  useEffect(() => {
    const made = new CodeViewer(host.current!, code.text, code.language, label, (line) => {
      const entities = marks.get(line) ?? [];
      const linked = linkIndex().has(`${code.id}/@${line}`);
      const node = entities.find((id) => !id.startsWith("line/")) ?? entities[0] ?? null;
      select(linked ? `${code.id}/@${line}` : node);
    });
    viewer.current = made;
    return () => made.close();
  }, [code]);

  const chosen = selected.value;
  const reached = closure.value;
  useEffect(() => {
    const lines = new Set<number>();
    const prefix = `${code.id}/@`;
    for (const id of reached) if (id.startsWith(prefix)) lines.add(Number(id.slice(prefix.length)));
    if (!lines.size) {
      // A selected line or node marks what names it; its wider family would mark half of the file.
      for (const [line, entities] of marks) {
        if (chosen?.includes("/@") && entities.length > 0) {
          // A line of other code: only what comes from that very line.
          if (entities.includes(chosen)) lines.add(line);
        } else if (entities.some((id) => reached.has(id) && !id.includes("/@") && (!id.startsWith("line/") || id === chosen))) lines.add(line);
      }
    }
    viewer.current?.setDress({ selected: lines, dim: (line) => marks.size > 0 && !marks.has(line), error: null });
    const first = at ?? Math.min(...lines);
    if (Number.isFinite(first)) viewer.current?.reveal(first);
  }, [code, reached, chosen, at]);
  useEffect(() => {
    if (home && selected.peek() === null) viewer.current?.reveal(home, "start");
  }, [code, home]);

  return <div class="cm-host" ref={host} data-code={code.id} />;
}
