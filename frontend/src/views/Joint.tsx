import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { AotStep, LedgerPayload, OpCount } from "../generated/contract";
import { say, t, type Key } from "../messages";
import { stageOf } from "../state/events";
import { compile, entityPrefix, graphsOf, payload, ready, run, select } from "../state/store";
import { LineLink } from "./Dynamo";
import { Derived } from "./Derived";
import { stepDerivation } from "./derivations";
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
  const facts = stageOf(run.value, compile.value, "joint").byGraph[graphsOf("joint", "aot_steps")[0] ?? "joint"] ?? {};
  return (
    <div class="cols">
      <div>
        <div
          role="listbox"
          tabIndex={0}
          aria-label={t("joint.steps")}
          onKeyDown={(event) => stepKeys(event, at.value, held.steps.length, (to) => (at.value = to))}
        >
          {held.steps.map((one, i) => (
            <button key={one.name} role="option" tabIndex={-1} aria-selected={i === at.value} class="item" onClick={() => (at.value = i)}>
              <span class="m">{t(`aot.${one.name}` as Key)}</span>
              <em>{one.nodes === null ? "–" : t("codegen.ops", { count: one.nodes })}</em>
            </button>
          ))}
        </div>
        {step && (
          <div class="pad">
            {step.unknown && <p>{say(step.unknown)}</p>}
            {step.nodes !== null && (
              <Derived class="chip" how={stepDerivation(held, at.value, facts)}>
                {t("aot.nodes", { forward: step.forward ?? 0, backward: step.backward ?? 0 })}
              </Derived>
            )}
            {step.equal_to_real !== null && <p>{step.equal_to_real ? t("aot.same") : t("aot.differs", { difference: step.difference })}</p>}
            <p class="mono dim">{counts(step.gained, "+")}</p>
            <p class="mono dim">{counts(step.lost, "−")}</p>
          </div>
        )}
      </div>
      <div>{step && <Change step={step} />}</div>
    </div>
  );
}

function Change({ step }: { step: AotStep }) {
  if (step.diff) return <Diff text={step.diff} label={t(`aot.${step.name}` as Key)} />;
  if (step.unknown) return <Empty>{say(step.unknown)}</Empty>;
  return <Empty>{t(step.name === "traced" ? "aot.first" : "aot.no_diff")}</Empty>;
}

function Ledger() {
  const ledger = ready(payload("joint", "ledger"));
  const graph = graphsOf("joint", "ledger")[0] ?? "joint";
  if (!ledger) return <Empty>{t("loading")}</Empty>;
  const prefix = entityPrefix("joint", graph);
  // Nodes of a graph traced again that is another one are no nodes of the page.
  const node = (name: string | null) =>
    name &&
    (ledger.exact ? (
      <button class="lnk mono" key={name} style={{ marginRight: "8px" }} onClick={() => select(`${prefix}/${name}`)}>
        {name}
      </button>
    ) : (
      <code key={name}>{name} </code>
    ));
  return (
    <div class="scroll pad" tabIndex={0}>
      {ledger.unknown && <p>{say(ledger.unknown)}</p>}
      {!ledger.exact && <p class="dim">{t("ledger.not_exact")}</p>}
      <h3>{t("ledger.mutations")}</h3>
      <Mutations ledger={ledger} node={node} />
      <Inputs ledger={ledger} node={node} />
      {ledger.outputs.length > 0 && (
        <>
          <h3>{t("ledger.aliases")}</h3>
          {ledger.outputs.map((one) => (
            <p key={one.output}>
              {t("ledger.output", { index: one.output })} <code>{one.type}</code> <code>{[one.base, ...one.views].filter(Boolean).join(" → ")}</code>
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

type NodeLink = (name: string | null) => ComponentChildren;

/** What the graph's own inputs become, and how the ones that share memory are passed. */
function Inputs({ ledger, node }: { ledger: LedgerPayload; node: NodeLink }) {
  return (
    <>
      {ledger.mutated_inputs.length > 0 && (
        <>
          <h3>{t("ledger.inputs")}</h3>
          <table class="t">
            <tbody>
              {ledger.mutated_inputs.map((one, i) => (
                <tr key={i}>
                  <td class="m">
                    {one.tensor} <span class="dim">{t(`ledger.${one.what}` as Key)}</span>
                  </td>
                  <td class="m">{one.type}</td>
                  <td class="m dim">{FLAGS.filter((flag) => one[flag]).join(", ")}</td>
                  <td>
                    {node(one.value)} → {node(one.copy_node) || <span class="dim">{t("ledger.by_runtime")}</span>}
                  </td>
                  <td class="nb">
                    <LineLink line={one.line} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
      {ledger.regenerated.length > 0 && (
        <>
          <h3>{t("ledger.regenerated")}</h3>
          {ledger.regenerated.map((one, i) => (
            <p key={i}>
              <code>{one.views.map((part) => part.op).join(", ")}</code> → <code>{one.reader}</code> <LineLink line={one.line} />
            </p>
          ))}
        </>
      )}
      {ledger.synthetic_bases.length + ledger.intermediate_bases.length > 0 && <h3>{t("ledger.bases")}</h3>}
      {ledger.synthetic_bases.map((one, i) => (
        <p key={i}>{t(one.made ? "ledger.base_made" : "ledger.base_found", { tensor: one.base_of })}</p>
      ))}
      {ledger.intermediate_bases.map((name) => (
        <p key={name}>
          {node(name)} {t("ledger.intermediate_base")}
        </p>
      ))}
      {ledger.subclasses.length > 0 && <h3>{t("ledger.subclasses")}</h3>}
      {ledger.subclasses.map((one, i) => (
        <p key={i}>
          {t(`ledger.side_${one.side}`, { index: one.index })} <code>{one.tensor}</code>: <code>{one.type}</code> (
          {one.attrs.join(", ")})
        </p>
      ))}
      {ledger.effect_tokens.length > 0 && <p>{t("ledger.tokens", { tokens: ledger.effect_tokens.join(", ") })}</p>}
    </>
  );
}

const FLAGS = ["data", "metadata", "requires_grad", "hidden_from_autograd", "under_no_grad"] as const;

function Mutations({ ledger, node }: { ledger: LedgerPayload; node: NodeLink }) {
  if (!ledger.mutations.length && !ledger.views.length) return <p class="dim">{t("ledger.no_mutations")}</p>;
  return (
    <table class="t">
      <tbody>
        {ledger.mutations.map((one, i) => (
          <tr key={i}>
            <td class="m nb">{one.op.replace(/\.(default|Tensor|int|Scalar)$/, "")}</td>
            <td class="m">
              {one.tensor} <span class="dim">{t(`ledger.${one.what}` as Key)}</span>{" "}
              {one.through_view && <span class="dim">{t("ledger.through_view")}</span>}{" "}
              {one.backward && <span class="bw">{t("backward")}</span>}
            </td>
            <td class="m dim">→ {one.functional.map((part) => part.op.replace(/\.default$/, "")).join(", ")}</td>
            <td>{one.nodes.map(node)}</td>
            <td>{one.copy_node && <>→ {node(one.copy_node)}</>}</td>
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
            <td />
            <td>{one.nodes.map(node)}</td>
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
