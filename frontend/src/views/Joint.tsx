import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { LedgerPayload, OpCount } from "../generated/contract";
import { say, t, type Key } from "../messages";
import { entityPrefix, graphsOf, payload, ready, select } from "../state/store";
import { LineLink } from "./Dynamo";
import { GraphStage, type Tab } from "./GraphStage";
import { Diff, Empty, stepKeys } from "./parts";

/** The joint graph, how AOTAutograd's transforms arrived at it, and what they replaced. */
export function Joint() {
  const extra: Tab[] = [];
  if (graphsOf("joint", "aot_steps").length) extra.push({ id: "steps", label: t("joint.steps"), body: () => <Steps /> });
  if (graphsOf("joint", "ledger").length) extra.push({ id: "ledger", label: t("joint.ledger"), body: () => <Ledger /> });
  return <GraphStage stage="joint" extra={extra} />;
}

const counts = (ops: readonly OpCount[], sign: string): string =>
  ops.map(({ op, count }) => `${sign}${count} ${op.replace(/\.default$/, "")}`).join("  ");

function Steps() {
  const at = useSignal(1);
  const held = ready(payload("joint", "aot_steps"));
  if (!held) return <Empty>{t("loading")}</Empty>;
  if (held.skipped) return <Empty>{say(held.skipped)}</Empty>;
  const step = held.steps[at.value];
  return (
    <div class="cols">
      <div
        role="listbox"
        tabIndex={0}
        aria-label={t("joint.steps")}
        onKeyDown={(event) => stepKeys(event, at.value, held.steps.length, (to) => (at.value = to))}
      >
        {held.steps.map((one, i) => (
          <button key={one.name} role="option" tabIndex={-1} aria-selected={i === at.value} class="item" onClick={() => (at.value = i)}>
            <span class="m">{t(`aot.${one.name}` as Key)}</span>
            <em>{one.nodes ?? "–"}</em>
          </button>
        ))}
        {step && (
          <div class="pad">
            {step.unknown && <p>{say(step.unknown)}</p>}
            {step.equal_to_real !== null && <p>{step.equal_to_real ? t("aot.same") : t("aot.differs", { difference: step.difference })}</p>}
            <p class="mono dim">{counts(step.gained, "+")}</p>
            <p class="mono dim">{counts(step.lost, "−")}</p>
          </div>
        )}
      </div>
      <div>{step?.diff ? <Diff text={step.diff} label={t(`aot.${step.name}` as Key)} /> : <Empty>{t("aot.no_diff")}</Empty>}</div>
    </div>
  );
}

function Ledger() {
  const ledger = ready(payload("joint", "ledger"));
  const graph = graphsOf("joint", "ledger")[0] ?? "joint";
  if (!ledger) return <Empty>{t("loading")}</Empty>;
  const prefix = entityPrefix("joint", graph);
  const node = (name: string | null) =>
    name && (
      <button class="lnk mono" key={name} style={{ marginRight: "8px" }} onClick={() => select(`${prefix}/${name}`)}>
        {name}
      </button>
    );
  return (
    <div class="scroll pad">
      {ledger.unknown && <p>{say(ledger.unknown)}</p>}
      <h3>{t("ledger.mutations")}</h3>
      <Mutations ledger={ledger} node={node} />
      {ledger.outputs.length > 0 && (
        <>
          <h3>{t("ledger.aliases")}</h3>
          {ledger.outputs.map((one) => (
            <p key={one.output}>
              {t("ledger.output", { index: one.output })} <code>{one.type}</code> <code>{one.base}</code>
            </p>
          ))}
        </>
      )}
      <h3>{t("ledger.decompositions")}</h3>
      {ledger.decompositions.length === 0 && <p class="dim">{t("ledger.no_decompositions")}</p>}
      <table class="t">
        <tbody>
          {ledger.decompositions.map((one, i) => (
            <tr key={i}>
              <td class="m nb">{one.op.replace(/\.(default|Tensor|int|Scalar)$/, "")}</td>
              <td class="n">×{one.count}</td>
              <td class="m dim">{counts(one.into, "")}</td>
              <td>{one.examples.slice(0, 3).map(node)}</td>
              <td class="nb">
                <LineLink line={one.lines[0] ?? null} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <h3>{t("ledger.rng")}</h3>
      <p class={ledger.rng.nodes.length ? "" : "dim"}>
        {ledger.rng.nodes.length ? ledger.rng.nodes.map((one) => node(one.node)) : t("ledger.no_rng")}
        {ledger.rng.functionalized && <span class="dim"> {t("ledger.seeds", { seeds: ledger.rng.seeds.join(", ") })}</span>}
      </p>
    </div>
  );
}

function Mutations({ ledger, node }: { ledger: LedgerPayload; node: (name: string | null) => ComponentChildren }) {
  if (!ledger.mutations.length && !ledger.views.length) return <p class="dim">{t("ledger.no_mutations")}</p>;
  return (
    <table class="t">
      <tbody>
        {ledger.mutations.map((one, i) => (
          <tr key={i}>
            <td class="m nb">{one.op.replace(/\.(default|Tensor|int|Scalar)$/, "")}</td>
            <td class="m">
              {one.tensor} <span class="dim">{t(`ledger.${one.what}` as Key)}</span>
            </td>
            <td>→ {one.nodes.map(node)}</td>
            <td>{one.copy_node && <>copy_ {node(one.copy_node)}</>}</td>
            <td class="nb">
              <LineLink line={one.line} />
            </td>
          </tr>
        ))}
        {ledger.views.map((one, i) => (
          <tr key={`v${i}`}>
            <td class="m nb">{one.op.replace(/\.(default|Tensor|int|Scalar)$/, "")}</td>
            <td class="m">
              {one.tensor} <span class="dim">{t("ledger.view")}</span>
            </td>
            <td>→ {one.nodes.map(node)}</td>
            <td />
            <td class="nb">
              <LineLink line={one.line} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
