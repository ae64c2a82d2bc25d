import { useRef } from "preact/hooks";
import { Words } from "../code/Words";
import type { GraphBreak } from "../generated/contract";
import { t } from "../messages";
import { lineId } from "../link/entity";
import { payload, ready, select, selectedLines, show, source } from "../state/store";
import { Derived } from "./Derived";
import { guardsDerivation, recompilesDerivation } from "./derivations";
import { GraphStage, type Tab } from "./GraphStage";
import { Empty } from "./parts";
import { useReveal } from "./reveal";

export function Dynamo() {
  const breaks = ready(payload("dynamo", "breaks"));
  const guards = ready(payload("dynamo", "guards"));
  const recompiles = ready(payload("dynamo", "recompiles"));
  const tally = (label: string, count: number | undefined): string => (count === undefined ? label : `${label} ${count}`);
  const extra: Tab[] = [
    { id: "breaks", label: tally(t("dynamo.breaks"), breaks?.breaks.length), body: () => <Breaks /> },
    { id: "guards", label: tally(t("dynamo.guards"), guards?.guards.length), body: () => <Guards /> },
    { id: "recompiles", label: tally(t("dynamo.recompiles"), recompiles?.recompiles.length), body: () => <Recompiles /> },
  ];
  return <GraphStage stage="dynamo" extra={extra} say={breaks && breaks.breaks.length > 0 && <Broken breaks={breaks.breaks} />} />;
}

/** Under the graph: that it is not the whole model, and where to read on. */
function Broken({ breaks }: { breaks: readonly GraphBreak[] }) {
  const first = breaks.find((one) => one.line) ?? breaks[0]!;
  return (
    <>
      <b class="bad">{t("dynamo.broken", { count: breaks.length })}</b> {first.reason || first.gb_type} <LineLink line={first.line} />{" · "}
      <button class="lnk" onClick={() => show({ tab: "breaks" })}>
        {t("dynamo.read_on")}
      </button>
    </>
  );
}

export function LineLink({ line }: { line: number | null }) {
  if (!line) return null;
  return (
    <button class="lnk" onClick={() => select(lineId(line))}>
      {t("line", { line })}
    </button>
  );
}

function Breaks() {
  const breaks = ready(payload("dynamo", "breaks"));
  const pane = useRef<HTMLDivElement>(null);
  useReveal(pane, selectedLines.value, breaks);
  if (!breaks) return <Empty>{t("dynamo.breaks_later")}</Empty>;
  if (!breaks.breaks.length) return <Empty>{t("dynamo.no_breaks")}</Empty>;
  return (
    <div class="scroll pad" tabIndex={0} ref={pane}>
      {breaks.breaks.map((one) => (
        <article class={`card bad ${one.line && selectedLines.value.has(one.line) ? "sel" : ""}`} key={one.id}>
          <div style={{ display: "flex", gap: "10px", alignItems: "baseline" }}>
            <b class="bad">{t(`break.${one.kind}`)}</b>
            <code>{one.gb_type}</code>
            {one.count > 1 && <span class="dim">×{one.count}</span>}
            <span class="sp" />
            <LineLink line={one.line} />
          </div>
          {one.line && (
            <button class="at" onClick={() => select(lineId(one.line!))}>
              <span>{one.line}</span>
              <code>{(source.value.split("\n")[one.line - 1] ?? "").trim()}</code>
            </button>
          )}
          {one.reason !== one.gb_type && <p style={{ margin: "4px 0" }}>
              <Words text={one.reason} />
            </p>}
          {one.explanation && one.explanation !== one.reason && <p class="dim">
              <Words text={one.explanation} />
            </p>}
          {one.hints.length > 0 && (
            <div class="try">
              <b>{t("findings.try")}</b>
              {one.hints.map((hint) => (
                <p key={hint}>
                  <Words text={hint} />
                </p>
              ))}
            </div>
          )}
          {one.cause_type && (
            <p class="dim">
              {t("dynamo.cause")} <code>{one.cause_type}</code> {one.cause_gb_id}
            </p>
          )}
          {one.library && (
            <p class="dim">
              {t("dynamo.library")} <code>{one.library}</code>
            </p>
          )}
          {one.context && <code class="dim">{one.context}</code>}
          {one.stack.length > 0 && (
            <pre class="dim" style={{ marginTop: "6px" }}>
              {one.stack
                .filter((frame) => frame.user)
                .map((frame) => `${frame.file}:${frame.line} ${frame.function}  ${frame.code}`)
                .join("\n")}
            </pre>
          )}
          {one.url && /^https:/.test(one.url) && (
            <a href={one.url} target="_blank" rel="noreferrer">
              {one.gb_id || one.url}
            </a>
          )}
        </article>
      ))}
    </div>
  );
}

function Guards() {
  const guards = ready(payload("dynamo", "guards"));
  const pane = useRef<HTMLDivElement>(null);
  useReveal(pane, selectedLines.value, guards);
  if (!guards) return <Empty>{t("dynamo.guards_later")}</Empty>;
  return (
    <div class="scroll" ref={pane}>
      <table class="t">
        <thead>
          <tr>
            <th>{t("guard.type")}</th>
            <th>{t("guard.source")}</th>
            <th>{t("guard.code")}</th>
            <th class="n">{t("inspector.line")}</th>
          </tr>
        </thead>
        <tbody>
          {guards.guards.map((guard, i) => (
            <tr
              key={i}
              class={`${guard.line ? "go" : ""} ${guard.line && selectedLines.value.has(guard.line) ? "sel" : ""}`}
              onClick={() => guard.line && select(lineId(guard.line))}
            >
              <td class="m" style={{ whiteSpace: "nowrap" }}>
                {guard.type}
              </td>
              <td class="m">{guard.source}</td>
              <td class="m each">
                {[...guard.code, ""].join("\n")}
                <span class="dim">{guard.value}</span>
              </td>
              <td class="n">{guard.line ?? ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="empty">
        <Derived class="chip" how={guardsDerivation(guards)}>
          {t("guard.leaves", { count: guards.leaf_guards })}
        </Derived>
      </p>
      {guards.tree && (
        <details class="pad">
          <summary class="dim">{t("guard.tree")}</summary>
          <pre>{guards.tree}</pre>
        </details>
      )}
    </div>
  );
}

function Recompiles() {
  const recompiles = ready(payload("dynamo", "recompiles"));
  if (!recompiles) return <Empty>{t("dynamo.recompiles_later")}</Empty>;
  if (!recompiles.recompiles.length) return <Empty>{t("dynamo.no_recompiles")}</Empty>;
  return (
    <div class="scroll pad" tabIndex={0}>
      <Derived class="chip" how={recompilesDerivation(recompiles)}>
        {t("dynamo.recompiles")} {recompiles.recompiles.length}
      </Derived>
      {recompiles.recompiles.map((one, i) => (
        <article class="card bad" key={i}>
          <div style={{ display: "flex", gap: "10px" }}>
            <b>
              [{one.entry}] → [{one.compile}]
            </b>
            <span class="sp" />
            <LineLink line={one.line} />
          </div>
          <pre>{one.guard}</pre>
          {one.source && (
            <p>
              <code>{one.source}</code> {one.old} → <b>{one.new}</b>
            </p>
          )}
        </article>
      ))}
    </div>
  );
}
