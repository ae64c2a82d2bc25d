import { defineConfig } from "vitest/config";

// One classic script, one style sheet, stable names: what the Python package carries and the one-file page inlines.
export default defineConfig({
  base: "/static/",
  publicDir: false,
  build: {
    outDir: "../server/static",
    emptyOutDir: true,
    target: "es2022",
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    rollupOptions: {
      input: "src/main.tsx",
      output: {
        format: "iife",
        entryFileNames: "app.js",
        assetFileNames: (asset) => (asset.names[0]?.endsWith(".css") ? "app.css" : "[name][extname]"),
      },
    },
  },
  worker: { format: "iife" },
  server: { fs: { allow: [".."] }, proxy: { "/api": process.env["AOTSCOPE_SERVER"] ?? "http://127.0.0.1:8000" } },
  test: { include: ["tests/**/*.test.ts"] },
});
