import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { bracketMatching, indentOnInput, indentUnit } from "@codemirror/language";
import { searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, StateEffect, StateField } from "@codemirror/state";
import { drawSelection, EditorView, gutter, GutterMarker, keymap, lineNumbers } from "@codemirror/view";
import { dressing, scrollTo, setDress, type LineDress } from "./lines";
import { highlighting } from "./theme";

/** What the gutter says of a line: how much of the cost is its own (0 to 1), the figure, and whether it broke the graph. */
export interface LineCost {
  readonly share: number;
  readonly text: string;
  readonly title: string;
  readonly trouble: boolean;
}

export type Costs = ReadonlyMap<number, LineCost>;

const setCosts = StateEffect.define<Costs>();
const costs = StateField.define<Costs>({
  create: () => new Map(),
  update(value, transaction) {
    for (const effect of transaction.effects) if (effect.is(setCosts)) return effect.value;
    // Once edited, figures of the old text would stand at the wrong lines.
    return transaction.docChanged ? new Map() : value;
  },
});

class Mark extends GutterMarker {
  constructor(private readonly cost: LineCost) {
    super();
  }
  override eq(other: Mark): boolean {
    return other.cost.share === this.cost.share && other.cost.trouble === this.cost.trouble;
  }
  override toDOM(): Node {
    const mark = document.createElement("span");
    mark.className = "mark";
    const strength = Math.round(18 + 82 * this.cost.share);
    mark.style.background = this.cost.trouble ? "var(--bad)" : `color-mix(in srgb, var(--save) ${strength}%, transparent)`;
    mark.title = this.cost.title;
    return mark;
  }
}

class Figure extends GutterMarker {
  constructor(private readonly cost: LineCost) {
    super();
  }
  override eq(other: Figure): boolean {
    return other.cost.text === this.cost.text && other.cost.trouble === this.cost.trouble;
  }
  override toDOM(): Node {
    const figure = document.createElement("span");
    figure.textContent = this.cost.text;
    figure.title = this.cost.title;
    if (this.cost.trouble) figure.className = "brk";
    return figure;
  }
}

const lineNumber = (view: EditorView, from: number): number => view.state.doc.lineAt(from).number;

export interface EditorEvents {
  onChange(text: string): void;
  onLine(line: number): void;
  onRun(): void;
}

/** The user's source: editable, with the run's marks beside it. */
export class SourceEditor {
  readonly view: EditorView;
  private readonly readOnly = new Compartment();
  private plain = true;

  constructor(parent: HTMLElement, text: string, events: EditorEvents, label: string) {
    const pick = (view: EditorView, from: number): boolean => {
      events.onLine(lineNumber(view, from));
      return false;
    };
    this.view = new EditorView({
      parent,
      state: EditorState.create({
        doc: text,
        extensions: [
          lineNumbers({ domEventHandlers: { mousedown: (view, line) => pick(view, line.from) } }),
          costs,
          gutter({
            class: "cm-marks",
            lineMarker: (view, line) => {
              const cost = view.state.field(costs).get(lineNumber(view, line.from));
              return cost ? new Mark(cost) : null;
            },
            lineMarkerChange: (update) => update.docChanged || update.startState.field(costs) !== update.state.field(costs),
            domEventHandlers: { mousedown: (view, line) => pick(view, line.from) },
          }),
          gutter({
            class: "cm-costs",
            side: "after",
            lineMarker: (view, line) => {
              const cost = view.state.field(costs).get(lineNumber(view, line.from));
              return cost ? new Figure(cost) : null;
            },
            lineMarkerChange: (update) => update.docChanged || update.startState.field(costs) !== update.state.field(costs),
          }),
          history(),
          drawSelection(),
          indentOnInput(),
          indentUnit.of("    "),
          bracketMatching(),
          python(),
          highlighting,
          dressing,
          EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
          keymap.of([
            {
              key: "Mod-Enter",
              run: () => {
                events.onRun();
                return true;
              },
            },
            { key: "Ctrl-F10", run: (view) => pick(view, view.state.selection.main.head) || true },
            ...defaultKeymap,
            ...historyKeymap,
            ...searchKeymap,
            indentWithTab,
          ]),
          this.readOnly.of([]),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) events.onChange(update.state.doc.toString());
          }),
          EditorView.domEventHandlers({
            mouseup: (event, view) => {
              if (event.button !== 0 || !view.state.selection.main.empty) return false;
              const at = view.posAtCoords({ x: event.clientX, y: event.clientY });
              if (at !== null) events.onLine(lineNumber(view, at));
              return false;
            },
          }),
        ],
      }),
    });
  }

  setText(text: string): void {
    const doc = this.view.state.doc;
    if (doc.toString() !== text) this.view.dispatch({ changes: { from: 0, to: doc.length, insert: text } });
  }

  setCosts(value: Costs): void {
    if (value.size === 0 && this.view.state.field(costs).size === 0) return;
    this.view.dispatch({ effects: setCosts.of(value) });
  }

  // Every dispatch makes the browser lay out the page: what changes nothing is not sent.
  setDress(dress: LineDress): void {
    const plain = dress.selected.size === 0 && dress.dim === null && dress.error === null;
    if (plain && this.plain) return;
    this.plain = plain;
    this.view.dispatch({ effects: setDress.of(dress) });
  }

  setReadOnly(on: boolean): void {
    if (on === this.view.state.readOnly) return;
    const extension = on ? [EditorState.readOnly.of(true), EditorView.editable.of(false)] : [];
    this.view.dispatch({ effects: this.readOnly.reconfigure(extension) });
  }

  reveal(line: number): void {
    scrollTo(this.view, line);
  }

  close(): void {
    this.view.destroy();
  }
}
