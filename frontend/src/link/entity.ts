/** The parts of an entity's id: `0_0/joint/joint/addmm_1`, `line/18`, `0_0/codegen/forward/@412`. */
export interface Entity {
  readonly id: string;
  readonly compile: string | null;
  readonly stage: string;
  readonly graph: string;
  readonly name: string;
  readonly line: number | null;
  readonly codeLine: number | null;
}

export function parseEntity(id: string): Entity | null {
  const source = /^line\/(\d+)$/.exec(id);
  if (source) {
    const line = Number(source[1]);
    return { id, compile: null, stage: "source", graph: "", name: String(line), line, codeLine: null };
  }
  const parts = id.split("/");
  if (parts.length < 4) return null;
  const name = parts.slice(3).join("/");
  const code = /^@(\d+)$/.exec(name);
  return {
    id,
    compile: parts[0]!.replace("_", "/"),
    stage: parts[1]!,
    graph: parts[2]!,
    name,
    line: null,
    codeLine: code ? Number(code[1]) : null,
  };
}

export const lineId = (line: number): string => `line/${line}`;
export const slug = (compile: string): string => compile.replaceAll("/", "_");
