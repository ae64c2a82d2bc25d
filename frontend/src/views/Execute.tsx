import type { Divergence, ExecutionPayload, Timing } from "../generated/contract";
import { say, t } from "../messages";
import { seconds } from "../messages/format";
import { payload, ready, select } from "../state/store";
import { agreeDerivation, compileDerivation, ratioDerivation } from "./derivations";
import { Fidelity } from "./Fidelity";
import { Empty, Figure } from "./parts";

const small = (value: number | null): string => (value === null ? "–" : value === 0 ? "0" : value.toExponential(1));

/** Compiled against eager: values, time, kernels. */
export function Execute() {
  const execution = ready(payload("execute", "execution"));
  const fidelity = ready(payload("execute", "fidelity"));
  return (
    <>
      <div class="bar">
        <span class="dim">{fidelity ? say(fidelity.ran) : t("execute.what")}</span>
      </div>
      <div class="body view">
        {fidelity ? <Fidelity fidelity={fidelity} /> : execution ? <Report execution={execution} /> : <Empty>{t("loading")}</Empty>}
      </div>
      <span />
    </>
  );
}

function Report({ execution }: { execution: ExecutionPayload }) {
  const { comparisons, timing, kernels } = execution;
  const wrong = comparisons.filter((one) => one.agrees === false).length;
  return (
    <div class="scroll pad" tabIndex={0}>
      <div class="cards">
        {timing && (
          <Figure
            value={`×${(1 / timing.ratio).toFixed(2)}`}
            label={t("execute.faster", { low: (1 / timing.high).toFixed(2), high: (1 / timing.low).toFixed(2) })}
            how={ratioDerivation(timing)}
          />
        )}
        <Figure
          value={execution.compared ? `${comparisons.length - wrong} / ${comparisons.length}` : "–"}
          label={t("execute.agree")}
          how={agreeDerivation(execution)}
        />
        {execution.native_seconds !== null && <Figure value={seconds(execution.native_seconds)} label={t("execute.native")} how={{ from: t("derive.native") }} />}
        {execution.compile_seconds !== null && <Figure value={seconds(execution.compile_seconds)} label={t("execute.compile")} how={compileDerivation(execution)} />}
      </div>
      {execution.graphs_differ && <p class="card bad">{say(execution.graphs_differ)}</p>}
      {execution.why_not_compared && <p class="dim">{say(execution.why_not_compared)}</p>}
      {timing ? <Samples timing={timing} /> : execution.why_not_timed && <p class="dim">{say(execution.why_not_timed)}</p>}
      {execution.divergence && <Ladder divergence={execution.divergence} />}
      <h3>{t("execute.values")}</h3>
      {comparisons.length === 0 && <p class="dim">{t("execute.no_values")}</p>}
      {execution.slope && (
        <p class={execution.slope.agrees ? "" : "card bad"}>
          {t(execution.slope.agrees ? "execute.slope_agrees" : "execute.slope_differs", {
            compiled: small(Math.max(...execution.slope.compiled)),
            eager: small(Math.max(...execution.slope.eager)),
          })}
        </p>
      )}
      {execution.why_no_slope && <p class="dim">{say(execution.why_no_slope)}</p>}
      {comparisons.length > 0 && (
        <table class="t">
          <thead>
            <tr>
              <td />
              <th>{t("table.name")}</th>
              <th>{t("table.kind")}</th>
              <th>{t("inspector.shape")}</th>
              <th class="n">{t("execute.max_abs")}</th>
              <th class="n">{t("execute.max_rel")}</th>
            </tr>
          </thead>
          <tbody>
            {comparisons.map((one, i) => (
              <tr key={i}>
                <td class={one.agrees === false ? "bad" : "dim"}>{one.agrees === null ? "–" : one.agrees ? "✓" : "✕"}</td>
                <td class="m">{one.name}</td>
                <td class="nb">{t(`compare.${one.kind}`)}</td>
                <td class="m">
                  {one.mismatch || `${one.dtype}${one.dtype ? `[${one.shape.join(", ")}]` : ""}`}
                </td>
                <td class="n">{small(one.max_abs)}</td>
                <td class="n">{small(one.max_rel)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <h3>{t("execute.kernels")}</h3>
      {kernels.length === 0 ? <p class="dim">{t("execute.no_kernels")}</p> : <Kernels execution={execution} />}
      <OnTheGpu execution={execution} />
    </div>
  );
}

/** What only a GPU decides: kernels chosen by timing, and CUDA graphs. */
function OnTheGpu({ execution: { autotuned, cuda_graphs } }: { execution: ExecutionPayload }) {
  return (
    <>
      {autotuned.length > 0 && <h3>{t("execute.autotuned")}</h3>}
      {autotuned.map(({ operator, candidates }, i) => (
        <details key={i}>
          <summary>
            <b>{operator}</b> · {candidates[0]?.text}
          </summary>
          <table class="t">
            <tbody>
              {candidates.map((one, row) => (
                <tr key={row}>
                  <td class="m">{one.text}</td>
                  <td class="n">{one.seconds === null ? "–" : seconds(one.seconds)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </details>
      ))}
      {cuda_graphs.length > 0 && <h3>{t("execute.cuda_graphs")}</h3>}
      <ul>
        {cuda_graphs.map((event, i) => (
          <li key={i}>
            <b>{t(`execute.graph_${event.kind}`)}</b> <span class="m">{event.text}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

/** Every backend against the one before, and the first wrong buffer inside Inductor. */
function Ladder({ divergence }: { divergence: Divergence }) {
  const { steps, first, buffer } = divergence;
  return (
    <>
      <h3>{t("execute.ladder")}</h3>
      {divergence.own && <p class="dim">{t("execute.ladder_own")}</p>}
      {divergence.buffers_compared !== null && <p class="dim">{t("execute.buffers_compared", { count: divergence.buffers_compared })}</p>}
      {divergence.notes.map((note, i) => (
        <p key={i} class="dim">{say(note)}</p>
      ))}
      {steps.length > 0 && (
        <table class="t">
          <thead>
            <tr>
              <td />
              <th>{t("execute.backend")}</th>
              <th class="n">{t("execute.disagree")}</th>
              <th>{t("execute.worst")}</th>
              <th class="n">{t("execute.max_abs")}</th>
              <th class="n">{t("execute.error64")}</th>
            </tr>
          </thead>
          <tbody>
            {steps.map((step) => (
              <tr key={step.backend}>
                <td class={step.backend === first || step.failed ? "bad" : "dim"}>{step.backend === first || step.failed ? "✕" : "✓"}</td>
                <td class="m">{step.backend}</td>
                <td class="n">{step.before && !step.failed ? `${step.disagree} / ${step.compared}` : "–"}</td>
                <td class="m">{step.failed || step.worst?.name}</td>
                <td class="n">{step.worst ? small(step.worst.max_abs) : "–"}</td>
                <td class="n">{small(step.error)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {buffer && (
        <p>
          <button class="link" onClick={() => select(buffer.entity)}>
            {t("execute.buffer", {
              buffer: buffer.buffer,
              node: buffer.entity.split("/").at(-1)!,
              kernel: buffer.kernel.split("/").at(-1)!,
              line: buffer.line ?? "?",
              difference: small(buffer.difference),
              own: small(buffer.own),
            })}
          </button>
        </p>
      )}
    </>
  );
}

function Kernels({ execution }: { execution: ExecutionPayload }) {
  const sorted = execution.kernels.toSorted((a, b) => b.seconds - a.seconds);
  const most = sorted[0]?.seconds ?? 1;
  return (
    <table class="t">
      <thead>
        <tr>
          <th>{t("fusion.kernel")}</th>
          <th class="n">{t("execute.calls")}</th>
          <th class="n">{t("execute.time")}</th>
          <td style={{ width: "40%" }} />
        </tr>
      </thead>
      <tbody>
        {sorted.map((kernel, i) => (
          <tr key={i} class={kernel.entity ? "go" : ""} onClick={() => kernel.entity && select(kernel.entity)}>
            <td class="m" title={execution.configs[kernel.name]}>
              {kernel.name}
            </td>
            <td class="n">{kernel.calls}</td>
            <td class="n">{seconds(kernel.seconds)}</td>
            <td>
              <div style={{ height: "8px", marginTop: "5px", borderRadius: "3px", background: "var(--faint)", width: `${(100 * kernel.seconds) / most}%` }} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Paired samples, eager above compiled, on one axis from zero. */
function Samples({ timing }: { timing: Timing }) {
  const most = Math.max(...timing.eager, ...timing.compiled);
  const row = (values: readonly number[], y: number, colour: string) =>
    values.map((value, i) => <circle key={i} cx={`${2 + (94 * value) / most}%`} cy={y} r="3.5" fill={colour} fill-opacity="0.5" />);
  const middle = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
  return (
    <>
      <h3>{t("execute.timing")}</h3>
      <p class="dim">{say(timing.what)}</p>
      <div style={{ display: "grid", gridTemplateColumns: "150px minmax(0, 1fr)", margin: "6px 0" }}>
        <div style={{ lineHeight: "24px" }}>
          <div>{t("execute.eager", { time: seconds(middle(timing.eager)) })}</div>
          <div>{t("execute.compiled", { time: seconds(middle(timing.compiled)) })}</div>
        </div>
        <svg height="48" width="100%" role="img" aria-label={t("execute.timing")}>
          {row(timing.eager, 12, "var(--faint)")}
          {row(timing.compiled, 36, "var(--ink)")}
        </svg>
      </div>
    </>
  );
}
