import type { NetworkPayload, PartitionPayload } from "../generated/contract";
import { t } from "../messages";
import { bytes, count } from "../messages/format";
import { closure, entityPrefix, payload, ready, select } from "../state/store";
import { LineLink } from "./Dynamo";
import { Empty } from "./parts";

/** What the min cut was computed with: its figures, the checkpointed regions, the edges that it cuts, the options. */
export function CutFacts() {
  const partition = ready(payload("partition", "partition"));
  const network = ready(payload("partition", "network"));
  if (!partition) return <Empty>{t("loading")}</Empty>;
  return (
    <div class="scroll pad" tabIndex={0}>
      <Figures partition={partition} />
      {partition.regions?.length > 0 && <Regions partition={partition} />}
      {network && <CutEdges network={network} />}
      {Object.keys(partition.options).length > 0 && (
        <>
          <h3>{t("partition.options")}</h3>
          <dl class="wide-terms">
            {Object.entries(partition.options).map(([name, value]) => (
              <>
                <dt class="mono">{name}</dt>
                <dd>{String(value)}</dd>
              </>
            ))}
          </dl>
        </>
      )}
    </div>
  );
}

function Figures({ partition }: { partition: PartitionPayload }) {
  const rows: [string, string | null][] = [
    [t("partition.partitioner"), partition.partitioner],
    [t("saved"), `${partition.saved.length} · ${bytes(partition.saved_bytes)}`],
    [t("derive.activations"), bytes(partition.saved_activation_bytes)],
    [t("derive.everything"), partition.save_everything_bytes === null ? null : bytes(partition.save_everything_bytes)],
    [t("partition.budget"), partition.memory_budget === null ? null : String(partition.memory_budget)],
    [
      t("partition.network"),
      partition.network_nodes === null ? null : t("partition.network_size", { nodes: partition.network_nodes, edges: partition.network_edges ?? 0 }),
    ],
    [t("partition.value"), partition.cut_value === null ? null : count(Math.round(partition.cut_value))],
    [t("partition.heavy"), partition.recomputed_heavy?.join(", ") || null],
    [t("partition.drawn"), partition.drawn_again?.join(", ") || null],
  ];
  return (
    <dl class="wide-terms">
      {rows.map(
        ([label, value]) =>
          value !== null && (
            <>
              <dt>{label}</dt>
              <dd>{value}</dd>
            </>
          ),
      )}
    </dl>
  );
}

function Regions({ partition }: { partition: PartitionPayload }) {
  return (
    <>
      <h3>{t("partition.regions")}</h3>
      <table class="t">
        <thead>
          <tr>
            <th class="n">{t("partition.region")}</th>
            <th>{t("partition.policies")}</th>
            <th class="n">{t("partition.region_nodes")}</th>
            <th class="n">{t("recomputed")}</th>
            <th>{t("inspector.line")}</th>
          </tr>
        </thead>
        <tbody>
          {partition.regions.map((one) => (
            <tr key={one.region}>
              <td class="n">{one.region}</td>
              <td class="m">
                {Object.entries(one.policies)
                  .map(([policy, nodes]) => `${policy} ×${nodes}`)
                  .join(", ")}
              </td>
              <td class="n">{one.nodes}</td>
              <td class="n re">{one.recomputed}</td>
              <td>
                {one.lines.map((line) => (
                  <span key={line} style={{ marginRight: "8px" }}>
                    <LineLink line={line} />
                  </span>
                ))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

/** Edges through which the cut goes: their capacities are what saving costs, and add up to the value of the cut. */
function CutEdges({ network }: { network: NetworkPayload }) {
  const { nodes, edges, strings } = network;
  const prefix = entityPrefix("joint_passes", "joint");
  const cut = edges.cut.flatMap((through, i) => (through ? [i] : []));
  const sum = cut.reduce((total, i) => total + (edges.capacity[i] ?? 0), 0);
  const node = (at: number): string => nodes.name[at]!.replace(/_(in|out)$/, "");
  return (
    <>
      <h3>{t("partition.cut_edges", { count: cut.length, all: network.edges_in_all })}</h3>
      <table class="t">
        <thead>
          <tr>
            <th>{t("table.name")}</th>
            <th>{t("partition.edge")}</th>
            <th class="n">{t("inspector.capacity")}</th>
            <th>{t("partition.why")}</th>
          </tr>
        </thead>
        <tbody>
          {cut.map((i) => {
            const id = `${prefix}/${node(edges.source[i]!)}`;
            return (
              <tr key={i} class={`go ${closure.value.has(id) ? "sel" : ""}`} onClick={() => select(id)}>
                <td class="m">
                  <button>{node(edges.source[i]!)}</button>
                </td>
                <td class="m dim">
                  {nodes.name[edges.source[i]!]} → {nodes.name[edges.target[i]!]}
                </td>
                <td class="n">{edges.capacity[i] === null ? "∞" : count(Math.round(edges.capacity[i]!))}</td>
                <td class="dim">{strings[edges.reason[i]!]}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {network.value !== null && (
        <p class="dim">
          {t("partition.adds_up", { sum: count(Math.round(sum)), value: count(Math.round(network.value)) })}{" "}
          <b class={Math.abs(sum - network.value) < 1 ? "" : "bad"}>{Math.abs(sum - network.value) < 1 ? "✓" : "≠"}</b>
        </p>
      )}
    </>
  );
}
