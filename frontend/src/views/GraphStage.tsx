import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { CodePane } from "../code/CodePane";
import { GraphPane } from "../graph/GraphPane";
import type { GraphModel } from "../graph/model/graph";
import { overlayOf } from "../graph/overlay/overlay";
import { tidyPath } from "../graph/model/modules";
import type { StageName } from "../generated/contract";
import { language, t } from "../messages";
import { bytes, opName, shape } from "../messages/format";
import { stageLabel } from "../app/Rail";
import { stagePicture } from "../state/graphs";
import { nodeTags, passPicture, stepOf } from "../state/overlay";
import { closure, graphsOf, linkIndex, payload, place, ready, select, selected, show } from "../state/store";
import { Derived } from "./Derived";
import { nodesDerivation, recomputedDerivation, savedDerivation } from "./derivations";
import { Empty, GraphPick, LongTable, Tabs } from "./parts";

export interface Tab {
  readonly id: string;
  readonly label: string;
  readonly body: () => ComponentChildren;
}

/** The graph whose text or table is on show: what the address says, else the side of the selection, else the first. */
export function chosenGraph(stage: StageName, kind: string): string {
  const graphs = graphsOf(stage, kind);
  const asked = place.value.graph;
  if (asked && graphs.includes(asked)) return asked;
  const side = /\/(forward|backward)\//.exec(selected.value ?? "")?.[1];
  return side && graphs.includes(side) ? side : (graphs[0] ?? "");
}

/** Graph, code and table of a stage, with what else it has to say in further tabs. */
export function GraphStage({
  stage,
  extra = [],
  before = [],
  table,
  picture,
  beside,
  say,
}: {
  stage: StageName;
  extra?: readonly Tab[];
  before?: readonly Tab[];
  /** A table of the stage's own, instead of that of the nodes. */
  table?: () => ComponentChildren;
  /** A graph that is made of the stage's other artifacts, where it has none of its own. */
  picture?: GraphModel | null;
  /** What stands beside the tabs when the table is on show. */
  beside?: ComponentChildren;
  say?: ComponentChildren;
}) {
  const parameters = useSignal(false);
  const graph = picture ?? passPicture(stage) ?? stagePicture(stage);
  const tabs: Tab[] = [
    ...before,
    {
      id: "graph",
      label: t("tab.graph"),
      body: () =>
        graph ? (
          <GraphPane key={graph.id} stage={stage} graph={graph} parameters={parameters} label={t("graph.label", { stage: stageLabel(stage) })} />
        ) : (
          <Empty>{t("loading")}</Empty>
        ),
    },
    ...(graphsOf(stage, "code").length ? [{ id: "code", label: t("tab.code"), body: () => <StageCode stage={stage} /> }] : []),
    { id: "table", label: t("tab.table"), body: table ?? (() => (graph ? <NodeTable stage={stage} graph={graph} /> : <Empty>{t("loading")}</Empty>)) },
    ...extra,
  ];
  const at = tabs.find((tab) => tab.id === place.value.tab) ?? tabs[0]!;
  const graphs = graphsOf(stage, "code");
  return (
    <>
      <div class="bar">
        <Tabs tabs={tabs} at={at.id} onPick={(tab) => show({ tab })} />
        {at.id === "code" && graphs.length > 1 && (
          <GraphPick graphs={graphs} at={chosenGraph(stage, "code")} onPick={(to) => show({ graph: to })} />
        )}
        {at.id === "table" && beside}
        {graph && at.id === "graph" && <Legend graph={graph} stage={stage} />}
      </div>
      <div class="body view">{at.body()}</div>
      {say && at.id === "graph" ? <div class="say" tabIndex={0}>{say}</div> : <span />}
    </>
  );
}

function Legend({ graph, stage }: { graph: GraphModel; stage: StageName }) {
  let forward = 0;
  let backward = 0;
  let again = 0;
  let saved = 0;
  let size = 0;
  if (graph.carries) {
    const crossing = new Map<string, number>();
    graph.carries.forEach(({ tensor, bytes: own }, i) => {
      if (graph.nodes[graph.target[i]!]!.backward && !graph.nodes[graph.source[i]!]!.backward) crossing.set(tensor, own);
    });
    saved = crossing.size;
    size = [...crossing.values()].reduce((sum, own) => sum + own, 0);
  }
  for (const node of graph.nodes) {
    if (node.op === "output") continue;
    if (!graph.carries && node.roles.has("saved") && !node.backward) {
      saved++;
      size += Math.max(0, node.bytes);
    }
    if (node.op === "placeholder") continue;
    if (node.roles.has("recomputed")) again++;
    if (node.backward && !node.roles.has("recomputed")) backward++;
    else if (!node.backward) forward++;
  }
  return (
    <>
      <Derived class="chip" how={nodesDerivation(stage, graph, "forward")}>
        <i class="fw" />
        {t("legend.forward", { count: forward })}
      </Derived>
      {backward > 0 && (
        <Derived class="chip" how={nodesDerivation(stage, graph, "backward")}>
          <i class="bw" />
          {t("legend.backward", { count: backward })}
        </Derived>
      )}
      {saved > 0 && (
        <Derived class="chip" how={(graph.carries ? null : savedDerivation()) ?? { from: t(graph.carries ? "derive.saved_buffers" : "derive.saved", { count: saved, bytes: bytes(size) }) }}>
          <i class="save" />
          {t("legend.saved", { count: saved, bytes: bytes(size) })}
        </Derived>
      )}
      {again > 0 && (
        <Derived class="chip" how={recomputedDerivation(again)}>
          <i class="re" />
          {t("legend.recomputed", { count: again })}
        </Derived>
      )}
    </>
  );
}

export function StageCode({ stage }: { stage: StageName }) {
  const graph = chosenGraph(stage, "code");
  const loaded = payload(stage, "code", graph || undefined);
  const code = ready(loaded);
  if (!code) return <Empty>{loaded?.state === "broken" ? loaded.error : t("loading")}</Empty>;
  return <CodePane code={code} label={t("code.label", { stage: stageLabel(stage) })} />;
}

/** The graph in words: every node a row. */
function NodeTable({ stage, graph }: { stage: StageName; graph: GraphModel }) {
  const shading = overlayOf(place.value.overlay);
  const step = shading === "changed" ? stepOf(stage, graph) : null;
  const timed = ready(payload("execute", "execution"));
  const tags = useMemo(() => (shading ? nodeTags(shading, graph, step) : null), [shading, graph, step, timed, linkIndex().size, language.value]);
  const order = graph.nodes.map((_, i) => i);
  const own = selected.value === null ? -1 : (graph.byId.get(selected.value) ?? -1);
  const chosen = own >= 0 ? own : graph.nodes.findIndex((node) => closure.value.has(node.id));
  return (
    <LongTable
      rows={order}
      scrollTo={chosen}
      head={
        <tr>
          <th>{t("table.name")}</th>
          <th>{t("table.op")}</th>
          <th>{t("inspector.shape")}</th>
          <th class="n">{t("inspector.size")}</th>
          <th>{t("inspector.module")}</th>
          <th class="n">{t("inspector.line")}</th>
          <th>{t("table.role")}</th>
          {shading && <th>{t(`overlay.${shading}`)}</th>}
        </tr>
      }
      row={(i) => {
        const node = graph.nodes[i]!;
        const side = node.backward ? "bw" : "fw";
        return (
          <tr
            key={node.id}
            class={`go ${closure.value.has(node.id) ? "sel" : ""}`}
            style={{ height: "25px" }}
            onClick={() => select(node.id)}
          >
            <td class="m nb">
              <button>{node.name}</button>
            </td>
            <td class="m">{opName(node.op, node.target)}</td>
            <td class="m" style={{ whiteSpace: "nowrap" }}>
              {shape(node.value)}
            </td>
            <td class="n">{node.bytes >= 0 ? bytes(node.bytes) : ""}</td>
            <td class="m">{tidyPath(node.module)}</td>
            <td class="n">{node.line || ""}</td>
            <td style={{ whiteSpace: "nowrap" }}>
              {graph.mirrored && <span class={side}>{node.backward ? t("backward") : t("forward")}</span>}{" "}
              {node.roles.has("saved") && <span class="save">{t("saved")}</span>}
              {node.roles.has("recomputed") && <span class="re">{t("recomputed")}</span>}
            </td>
            {tags && <td class="nb">{tags[i] ?? ""}</td>}
          </tr>
        );
      }}
    />
  );
}
