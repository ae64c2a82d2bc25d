import { defineConfig } from "vitest/config";

// Two classic scripts and one style sheet, with stable names: what the Python package carries and the one-file page inlines.
// `vite build` makes the page, `vite build --mode worker` the layout worker beside it.
export default defineConfig(({ mode }) => {
  const worker = mode === "worker";
  return {
    base: "/static/",
    publicDir: false,
    define: { "process.env.NODE_ENV": '"production"' },
    build: {
      outDir: "../server/static",
      emptyOutDir: !worker,
      target: "es2022",
      cssCodeSplit: false,
      assetsInlineLimit: 0,
      chunkSizeWarningLimit: 900,
      rollupOptions: {
        input: worker ? "src/graph/worker/worker.ts" : "src/main.tsx",
        output: {
          format: "iife",
          entryFileNames: worker ? "layout-worker.js" : "app.js",
          assetFileNames: (asset) => (asset.names[0]?.endsWith(".css") ? "app.css" : "[name][extname]"),
        },
      },
    },
    server: { fs: { allow: [".."] }, proxy: { "/api": process.env["AOTSCOPE_SERVER"] ?? "http://127.0.0.1:8000" } },
    // A limit against what never ends, not on how fast a busy machine is.
    test: { include: ["tests/**/*.test.ts"], testTimeout: 120_000 },
  };
});
