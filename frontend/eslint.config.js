import js from "@eslint/js";
import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["node_modules", "src/generated"] },
  js.configs.recommended,
  ...tseslint.configs.strict,
  {
    languageOptions: { globals: { process: "readonly" } },
    rules: {
      "@typescript-eslint/no-non-null-assertion": "off",
      "no-restricted-properties": [
        "error",
        { property: "innerHTML", message: "Text of the user is never markup." },
        { property: "outerHTML", message: "Text of the user is never markup." },
      ],
      "no-console": "error",
      eqeqeq: "error",
    },
  },
  { files: ["scripts/**"], languageOptions: { globals: { process: "readonly", console: "readonly" } } },
);
