import { cpp } from "@codemirror/lang-cpp";
import { pythonWithKernels } from "./language";
import { search, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { EditorView, keymap, lineNumbers } from "@codemirror/view";
import type { CodePayload } from "../generated/contract";
import { dressing, scrollTo, setDress, type LineDress } from "./lines";
import { highlighting } from "./theme";

/** Generated code: read, searched, and clicked. */
export class CodeViewer {
  private readonly view: EditorView;

  constructor(
    parent: HTMLElement,
    text: string,
    language: CodePayload["language"],
    label: string,
    onLine: (line: number) => void,
  ) {
    const grammar = language === "python" ? [pythonWithKernels] : language === "cpp" ? [cpp()] : [];
    this.view = new EditorView({
      parent,
      state: EditorState.create({
        doc: text,
        extensions: [
          lineNumbers(),
          EditorState.readOnly.of(true),
          EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
          EditorView.editable.of(false),
          search({ top: true }),
          keymap.of(searchKeymap),
          ...grammar,
          highlighting,
          dressing,
          EditorView.domEventHandlers({
            mouseup: (event, view) => {
              if (!view.state.selection.main.empty) return false;
              const at = view.posAtCoords({ x: event.clientX, y: event.clientY });
              if (at !== null) onLine(view.state.doc.lineAt(at).number);
              return false;
            },
          }),
        ],
      }),
    });
  }

  setDress(dress: LineDress): void {
    this.view.dispatch({ effects: setDress.of(dress) });
  }

  reveal(line: number, where: "center" | "start" = "center"): void {
    scrollTo(this.view, line, where);
  }

  close(): void {
    this.view.destroy();
  }
}
