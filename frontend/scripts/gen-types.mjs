// Writes src/generated/contract.ts from the pydantic models. Python: $PYTHON, else the project's own environment.
import { execFileSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { compile } from "json-schema-to-typescript";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const own = join(root, ".venv", "bin", "python");
const python = process.env.PYTHON ?? (existsSync(own) ? own : "python3");
const schema = JSON.parse(execFileSync(python, ["-m", "compiler.schema"], { cwd: root, encoding: "utf-8" }));
const text = await compile(schema, "Contract", {
  bannerComment: "// Generated from the pydantic models by scripts/gen-types.mjs. Do not edit.",
  additionalProperties: false,
  format: true,
  style: { printWidth: 120 },
});
writeFileSync(join(root, "frontend", "src", "generated", "contract.ts"), text);
