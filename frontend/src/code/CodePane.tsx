import { useEffect, useMemo, useRef } from "preact/hooks";
import type { CodePayload } from "../generated/contract";
import { closure, codeMarks, linkIndex, select, selected } from "../state/store";
import { CodeViewer } from "./viewer";

/** A text whose lines are linked: what belongs to the selection is marked, what belongs to nothing is dim. */
export function CodePane({ code, label }: { code: CodePayload; label: string }) {
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
        if (entities.some((id) => reached.has(id) && (!id.startsWith("line/") || id === chosen))) lines.add(line);
      }
    }
    viewer.current?.setDress({ selected: lines, dim: (line) => marks.size > 0 && !marks.has(line), error: null });
    const first = Math.min(...lines);
    if (Number.isFinite(first)) viewer.current?.reveal(first);
  }, [code, reached, chosen]);

  return <div class="cm-host" ref={host} data-code={code.id} />;
}
