import { CodePane } from "../code/CodePane";
import { useRef } from "preact/hooks";
import { t } from "../messages";
import { closure, entityPrefix, graphsOf, payload, ready, select, selected, show } from "../state/store";
import { Derived } from "./Derived";
import { coverageDerivation } from "./derivations";
import { chosenGraph } from "./GraphStage";
import { Empty, GraphPick } from "./parts";
import { useReveal } from "./reveal";

/** In a narrow list, what tells kernels apart. */
const short = (name: string): string => name.replace(/^(cpp|triton_[a-z]+)_fused_+/, "");

/** Inductor's generated file, its kernels beside it. */
export function Codegen() {
  const graphs = graphsOf("codegen", "code");
  const graph = chosenGraph("codegen", "code");
  const code = ready(payload("codegen", "code", graph || undefined));
  const kernels = ready(payload("codegen", "kernels", graph || undefined));
  const prefix = entityPrefix("codegen", graph);
  const list = useRef<HTMLDivElement>(null);
  useReveal(list, closure.value, kernels);
  const own = kernels?.kernels.find((kernel) => `${prefix}/${kernel.name}` === selected.value);
  const starts = kernels?.kernels.map((kernel) => kernel.first_line || (kernel.launches[0]?.line ?? 0)).filter(Boolean) ?? [];
  return (
    <>
      <div class="bar">
        <GraphPick graphs={graphs} at={graph} onPick={(to) => show({ graph: to, node: null })} />
        {kernels && (
          <span class="dim">
            {t("codegen.count", {
              kernels: kernels.kernels.filter((kernel) => kernel.kind !== "extern").length,
              calls: kernels.kernels.filter((kernel) => kernel.kind === "extern").length,
            })}
          </span>
        )}
        <span class="sp" />
        {kernels && kernels.statements > 0 && (
          <Derived how={coverageDerivation(kernels)} class="chip" title={t("codegen.coverage_help")}>
            {t("codegen.coverage", { percent: Math.floor((100 * kernels.statements_with_line) / kernels.statements) })}
          </Derived>
        )}
      </div>
      <div class="body view cols slim">
        <div ref={list} role="listbox" aria-label={t("codegen.kernels")}>
          {kernels?.kernels.map((kernel) => {
            const id = `${prefix}/${kernel.name}`;
            return (
              <button
                key={kernel.name}
                role="option"
                aria-selected={closure.value.has(id)}
                class="item"
                data-kernel={kernel.name}
                title={kernel.name}
                onClick={() => select(id)}
              >
                <span class="m">{short(kernel.name)}</span>
                <em class={kernel.recomputed.length ? "re" : ""}>
                  {kernel.kind === "extern" ? "" : t("codegen.ops", { count: kernel.nodes.length })}
                </em>
              </button>
            );
          })}
        </div>
        <div>
          {code && kernels ? (
            <CodePane
              code={code}
              label={t("code.label", { stage: t("stage.codegen") })}
              home={Math.min(...starts, code.text.length)}
              at={own ? own.first_line || (own.launches[0]?.line ?? null) : null}
            />
          ) : (
            <Empty>{t("loading")}</Empty>
          )}
        </div>
      </div>
      <span />
    </>
  );
}
