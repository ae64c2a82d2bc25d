import { cppLanguage } from "@codemirror/lang-cpp";
import { pythonLanguage } from "@codemirror/lang-python";
import { LanguageSupport } from "@codemirror/language";
import { parseMixed } from "@lezer/common";

/** Inductor's wrapper is Python that holds its C++ kernels in long strings: those are read as C++. */
const language = pythonLanguage.configure({
  wrap: parseMixed((node, input) => {
    if (node.name !== "String" || node.to - node.from < 80) return null;
    const start = input.read(node.from, Math.min(node.to, node.from + 400));
    if (!start.includes("#include")) return null;
    return { parser: cppLanguage.parser, overlay: [{ from: node.from + 3, to: node.to - 3 }] };
  }),
});

export const pythonWithKernels = new LanguageSupport(language);
