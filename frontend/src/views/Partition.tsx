import { slug } from "../link/entity";
import { say, t } from "../messages";
import { bytes } from "../messages/format";
import { closure, compile, payload, ready, select } from "../state/store";
import { CutFacts } from "./CutFacts";
import { GraphStage } from "./GraphStage";
import { Empty, LongTable } from "./parts";

export function Partition() {
  const partition = ready(payload("partition", "partition"));
  return <GraphStage stage="partition" table={() => <Verdicts />} extra={[{ id: "cut", label: t("partition.tab"), body: () => <CutFacts /> }]} say={partition && <Cut />} />;
}

/** The cut in one sentence, with this run's own figures. */
function Cut() {
  const partition = ready(payload("partition", "partition"));
  if (!partition) return null;
  const inputs = partition.saved.filter((tensor) => tensor.is_input).length;
  const parts = [
    t("partition.cross", { count: partition.saved.length, bytes: bytes(partition.saved_bytes), inputs }),
    partition.eager_saved_bytes !== null ? t("partition.eager", { bytes: bytes(partition.eager_saved_bytes) }) : "",
    partition.recomputed.length ? t("partition.again", { count: partition.recomputed.length }) : t("partition.none_again"),
    partition.recomputed_heavy?.length ? t("partition.heavy_among", { nodes: partition.recomputed_heavy.join(", ") }) : "",
    partition.drawn_again?.length ? t("partition.drawn_among", { nodes: partition.drawn_again.join(", ") }) : "",
  ];
  return (
    <>
      <b>{t("partition.cut")}</b> {parts.filter(Boolean).join(" ")}
    </>
  );
}

function Verdicts() {
  const partition = ready(payload("partition", "partition"));
  if (!partition) return <Empty>{t("loading")}</Empty>;
  const id = (node: string): string => `${slug(compile.value ?? "")}/joint_passes/joint/${node}`;
  const rows = partition.decisions;
  const look = { saved: "save", recomputed: "re", input: "save", forward_only: "dim", backward_only: "dim" } as const;
  return (
    <LongTable
      rows={rows}
      scrollTo={rows.findIndex((one) => closure.value.has(id(one.node)))}
      head={
        <tr>
          <th>{t("table.name")}</th>
          <th>{t("partition.verdict")}</th>
          <th class="n">{t("inspector.size")}</th>
          <th class="n">{t("inspector.line")}</th>
          <th>{t("partition.why")}</th>
        </tr>
      }
      row={(one) => (
        <tr
          key={one.node}
          class={`go ${closure.value.has(id(one.node)) ? "sel" : ""}`}
          style={{ height: "25px" }}
          onClick={() => select(id(one.node))}
        >
          <td class="m nb">
            <button>{one.node}</button>
          </td>
          <td class={look[one.verdict]} style={{ whiteSpace: "nowrap" }}>
            {t(`verdict.${one.verdict}`)}
          </td>
          <td class="n">{one.bytes === null ? "" : bytes(one.bytes)}</td>
          <td class="n">{one.line ?? ""}</td>
          <td class="dim" style={{ whiteSpace: "nowrap", overflow: "hidden", textOverflow: "ellipsis", maxWidth: "340px" }} title={say(one.sentence)}>
            {say(one.sentence)}
          </td>
        </tr>
      )}
    />
  );
}
