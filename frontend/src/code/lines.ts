import { RangeSetBuilder, StateEffect, StateField, type Extension, type Text } from "@codemirror/state";
import { Decoration, EditorView, type DecorationSet } from "@codemirror/view";

/** How lines are dressed: the selection, lines nothing was made from, the line of an error. Line numbers from 1. */
export interface LineDress {
  readonly selected: ReadonlySet<number>;
  /** Null where none is. */
  readonly dim: ((line: number) => boolean) | null;
  readonly error: number | null;
}

export const setDress = StateEffect.define<LineDress>();

const SELECTED = Decoration.line({ class: "l-sel" });
const DIM = Decoration.line({ class: "l-dim" });
const ERROR = Decoration.line({ class: "l-err" });

function decorate(doc: Text, dress: LineDress): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>();
  for (let number = 1; number <= doc.lines; number++) {
    const line = doc.line(number);
    if (dress.error === number) builder.add(line.from, line.from, ERROR);
    if (dress.selected.has(number)) builder.add(line.from, line.from, SELECTED);
    else if (line.length > 0 && dress.dim?.(number)) builder.add(line.from, line.from, DIM);
  }
  return builder.finish();
}

const field = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(value, transaction) {
    for (const effect of transaction.effects) {
      if (effect.is(setDress)) return decorate(transaction.state.doc, effect.value);
    }
    return value.map(transaction.changes);
  },
  provide: (held) => EditorView.decorations.from(held),
});

export const dressing: Extension = field;

/** Scrolls a line into view, unless it is there. */
export function scrollTo(view: EditorView, number: number, where: "center" | "start" = "center"): void {
  if (number < 1 || number > view.state.doc.lines) return;
  const line = view.state.doc.line(number);
  const block = view.lineBlockAt(line.from);
  const { scrollTop, clientHeight } = view.scrollDOM;
  const top = view.documentTop - view.scrollDOM.getBoundingClientRect().top + scrollTop + block.top;
  if (where === "center" && clientHeight > 0 && top > scrollTop + 10 && top < scrollTop + clientHeight - 40) return;
  view.dispatch({ effects: EditorView.scrollIntoView(line.from, { y: where, yMargin: 6 }) });
}
