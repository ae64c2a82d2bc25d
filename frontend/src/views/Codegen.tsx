import { CodePane } from "../code/CodePane";
import { useRef } from "preact/hooks";
import type { MetalPayload } from "../generated/contract";
import { t } from "../messages";
import { offline } from "../app/control";
import { stageOf } from "../state/events";
import { closure, compile, entityPrefix, graphsOf, payload, place, ready, run, select, selected, show } from "../state/store";
import { formatPlace, NOWHERE } from "../state/url";
import { Derived } from "./Derived";
import { coverageDerivation, kernelsDerivation } from "./derivations";
import { chosenGraph } from "./GraphStage";
import { levelTabs, MetalOf, MetalView, type LevelTab } from "./Metal";
import { Empty, GraphPick, shortKernel, Tabs } from "./parts";
import { useReveal } from "./reveal";
import { Roofline } from "./Roofline";

type Tab = "file" | "roofline" | LevelTab;

/** The kernel whose levels are open: the selected one, the one that was opened before, one that the selection reaches. */
function openKernel(names: readonly string[]): string | null {
  const has = (id: string | null): id is string => id !== null && names.includes(id);
  if (has(selected.value)) return selected.value;
  if (has(place.value.kernel)) return place.value.kernel;
  return names.find((id) => closure.value.has(id)) ?? names[0] ?? null;
}

/** Inductor's generated file, its kernels beside it; below a Triton kernel its levels, and the least time of each kernel. */
export function Codegen() {
  const answer = ready(payload("codegen", "metal"));
  return answer ? <Answer value={answer} /> : <Generated />;
}

const level = (tab: LevelTab) => ({ id: tab, label: t(`level.${tab}`) });

/** A derived run: its one kernel. */
function Answer({ value }: { value: MetalPayload }) {
  const tabs: readonly LevelTab[] = ["needs", ...value.levels.map((one) => one.name)];
  const tab = tabs.find((known) => known === place.value.tab) ?? "needs";
  const parent = run.value.request?.question?.parent;
  const graph = value.kernel.split("/")[2] ?? null;
  return (
    <>
      <div class="bar">
        <Tabs tabs={tabs.map(level)} at={tab} onPick={(to) => show({ tab: to })} />
        <span class="dim mono">{value.kernel}</span>
        {parent && !offline.value && (
          <a class="lnk" href={`/r/${parent}${formatPlace({ ...NOWHERE, stage: "codegen", graph, tab, kernel: value.kernel })}`}>
            {t("metal.parent")}
          </a>
        )}
      </div>
      <div class="body view">
        <MetalOf value={value} tab={tab} />
      </div>
      <span />
    </>
  );
}

function Generated() {
  const graphs = graphsOf("codegen", "code");
  const graph = chosenGraph("codegen", "code");
  const code = ready(payload("codegen", "code", graph || undefined));
  const kernels = ready(payload("codegen", "kernels", graph || undefined));
  const roofline = ready(payload("codegen", "roofline", graph || undefined));
  const prefix = entityPrefix("codegen", graph);
  const tritons = (kernels?.kernels ?? []).filter((kernel) => kernel.kind === "triton").map((kernel) => `${prefix}/${kernel.name}`);
  const below: readonly LevelTab[] = tritons.length ? levelTabs(run.value.request?.options.target ?? "") : [];
  const tabs: readonly Tab[] = ["file", ...(roofline ? (["roofline"] as const) : []), ...below];
  const tab = tabs.find((known) => known === place.value.tab) ?? "file";
  const opened = tab === "file" || tab === "roofline" ? null : openKernel(tritons);
  const list = useRef<HTMLDivElement>(null);
  useReveal(list, closure.value, kernels);
  const own = kernels?.kernels.find((kernel) => `${prefix}/${kernel.name}` === selected.value);
  const starts = kernels?.kernels.map((kernel) => kernel.first_line || (kernel.launches[0]?.line ?? 0)).filter(Boolean) ?? [];
  return (
    <>
      <div class="bar">
        <GraphPick graphs={graphs} at={graph} onPick={(to) => show({ graph: to, node: null })} />
        <Tabs
          tabs={tabs.map((one) => (one === "file" || one === "roofline" ? { id: one, label: t(`codegen.tab_${one}`) } : level(one)))}
          at={tab}
          onPick={(to) => show({ tab: to === "file" ? null : to, kernel: to === "file" || to === "roofline" ? place.value.kernel : openKernel(tritons) })}
        />
        {kernels && (
          <Derived class="chip" how={kernelsDerivation(kernels, stageOf(run.value, compile.value, "codegen").byGraph[graph] ?? {})}>
            {t("codegen.count", {
              kernels: kernels.kernels.filter((kernel) => kernel.kind !== "extern").length,
              calls: kernels.kernels.filter((kernel) => kernel.kind === "extern").length,
            })}
          </Derived>
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
                aria-current={id === opened}
                class="item"
                data-kernel={kernel.name}
                title={kernel.name}
                onClick={() => {
                  select(id);
                  if (tritons.includes(id)) show({ kernel: id });
                }}
              >
                <span class="m">{shortKernel(kernel.name)}</span>
                <em class={kernel.recomputed.length ? "re" : ""}>
                  {kernel.kind === "extern" ? "" : t("codegen.ops", { count: kernel.nodes.length })}
                </em>
              </button>
            );
          })}
        </div>
        <div>
          {tab === "roofline" && roofline ? (
            <Roofline key={roofline.id} roofline={roofline} prefix={prefix} />
          ) : tab !== "file" && tab !== "roofline" && opened ? (
            offline.value ? (
              <Empty>{t("metal.offline")}</Empty>
            ) : (
              <MetalView key={opened} kernel={opened} tab={tab} />
            )
          ) : code && kernels ? (
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
