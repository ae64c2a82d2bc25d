import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { tags } from "@lezer/highlight";

// Few voices: the colours of the page mean forward, backward, saved, recomputed and trouble, so code has weight and grey only.
const style = HighlightStyle.define([
  { tag: [tags.keyword, tags.controlKeyword, tags.definitionKeyword, tags.moduleKeyword], fontWeight: "650" },
  { tag: [tags.comment, tags.docString], color: "var(--faint)", fontStyle: "italic" },
  { tag: [tags.number, tags.bool, tags.null, tags.string, tags.special(tags.string)], color: "var(--dim)" },
  { tag: [tags.meta, tags.processingInstruction], color: "var(--faint)" },
]);

export const highlighting = syntaxHighlighting(style);
