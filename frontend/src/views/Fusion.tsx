import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { FusionDecision, FusionPayload } from "../generated/contract";
import { say, t, type Key } from "../messages";
import { bytes } from "../messages/format";
import { closure, entityPrefix, graphsOf, linkIndex, payload, ready, select, show } from "../state/store";
import { groupsDerivation, refusedDerivation, trafficDerivation } from "./derivations";
import { fusedGraph } from "../state/graphs";
import { chosenGraph, GraphStage } from "./GraphStage";
import { Empty, Figure, GraphPick } from "./parts";
import { useReveal } from "./reveal";

/** What was fused with what, and for any two nodes why they were not. */
export function Fusion() {
  const graphs = graphsOf("fusion", "fusion");
  const graph = chosenGraph("fusion", "fusion");
  const fusion = ready(payload("fusion", "fusion", graph || undefined));
  return (
    <GraphStage
      stage="fusion"
      picture={fusedGraph()}
      table={() => (fusion ? <Groups key={fusion.id} fusion={fusion} graph={graph} /> : <Empty>{t("loading")}</Empty>)}
      beside={
        <>
          <GraphPick graphs={graphs} at={graph} onPick={(to) => show({ graph: to })} />
          {fusion && <span class="dim">{t("fusion.count", { before: fusion.nodes_before, after: fusion.nodes_after })}</span>}
        </>
      }
    />
  );
}

function Groups({ fusion, graph }: { fusion: FusionPayload; graph: string }) {
  const prefix = entityPrefix("fusion", graph);
  const schedule = ready(payload("schedule", "schedule", graph || undefined));
  const pane = useRef<HTMLDivElement>(null);
  useReveal(pane, closure.value, fusion);
  const known = fusion.groups.filter((group) => group.bytes_before !== null && group.bytes_after !== null);
  const before = known.reduce((sum, group) => sum + group.bytes_before!, 0);
  const after = known.reduce((sum, group) => sum + group.bytes_after!, 0);
  return (
    <div class="scroll pad" tabIndex={0} ref={pane}>
      <div class="cards">
        <Figure value={`${fusion.nodes_before} → ${fusion.nodes_after}`} label={t("fusion.nodes")} how={groupsDerivation(fusion, schedule)} />
        <Figure value={`${bytes(before)} → ${bytes(after)}`} label={t("fusion.traffic")} how={trafficDerivation(fusion, schedule, before, after)} />
        <Figure
          value={String(fusion.decisions.filter((one) => !one.fused).length)}
          label={t("fusion.refused")}
          how={refusedDerivation(fusion)}
        />
      </div>
      <WhyNot fusion={fusion} />
      <h3>{t("fusion.groups")}</h3>
      <table class="t">
        <thead>
          <tr>
            <th>{t("table.name")}</th>
            <th>{t("table.kind")}</th>
            <th>{t("inspector.members")}</th>
            <th class="n">{t("fusion.bytes")}</th>
            <th>{t("fusion.kernel")}</th>
          </tr>
        </thead>
        <tbody>
          {fusion.groups.map((group) => {
            const id = `${prefix}/${group.name}`;
            return (
              <tr key={group.name} class={`go ${closure.value.has(id) ? "sel" : ""}`} onClick={() => select(id)}>
                <td class="m">
                  <button>{group.name}</button>
                </td>
                <td class="nb">{t(`kind.${group.kind}` as Key)}</td>
                <td class="m">{group.members.length > 1 ? group.members.join(" + ") : "–"}</td>
                <td class="n">
                  {group.bytes_before === null || group.bytes_after === null
                    ? ""
                    : group.bytes_before === group.bytes_after
                      ? bytes(group.bytes_after)
                      : `${bytes(group.bytes_before)} → ${bytes(group.bytes_after)}`}
                </td>
                <td class="m">{group.kernel || kernelsOf(id)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function kernelsOf(group: string): string {
  return linkIndex()
    .children(group)
    .map((id) => id.slice(id.lastIndexOf("/") + 1).replace(/^(cpp|triton_[a-z]+)_fused_+/, ""))
    .join(", ");
}

function WhyNot({ fusion }: { fusion: FusionPayload }) {
  const names = [...new Set(fusion.groups.flatMap((group) => group.members))];
  const apart = (a: string, b: string): boolean =>
    names.includes(a) && names.includes(b) && !fusion.groups.some((group) => group.members.includes(a) && group.members.includes(b));
  const refused = fusion.decisions.find((one) => !one.fused && apart(one.first, one.second));
  const first = useSignal(refused?.first ?? names[0] ?? "");
  const second = useSignal(refused?.second ?? names[1] ?? "");
  const pick = (label: string, value: typeof first) => (
    <label class="pill">
      <select aria-label={label} value={value.value} onChange={(event) => (value.value = event.currentTarget.value)}>
        {names.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
  return (
    <div class="card">
      <h3 style={{ marginTop: 0 }}>{t("fusion.why_not")}</h3>
      <div style={{ display: "flex", gap: "8px", alignItems: "center" }}>
        {pick(t("fusion.first"), first)} + {pick(t("fusion.second"), second)}
      </div>
      <Answer fusion={fusion} a={first.value} b={second.value} />
    </div>
  );
}

function Answer({ fusion, a, b }: { fusion: FusionPayload; a: string; b: string }) {
  const given = answer(fusion, a, b);
  return (
    <div style={{ marginTop: "8px" }} aria-live="polite">
      {typeof given === "string" ? (
        <p>{given}</p>
      ) : (
        <>
          {given.reason && <p class="mono">{given.reason}</p>}
          {given.explanation && <p>{say(given.explanation)}</p>}
          {!given.reason && !given.explanation && <p>{t("fusion.no_reason")}</p>}
          <p class="dim">{t(given.asked === "again" ? "fusion.asked_again" : "fusion.asked_itself", { first: given.first, second: given.second })}</p>
        </>
      )}
    </div>
  );
}

/** Inductor's decision on the pair, or a sentence where there is none. */
function answer(fusion: FusionPayload, a: string, b: string): FusionDecision | string {
  if (a === b) return t("fusion.same");
  const holder = (name: string) => fusion.groups.find((group) => group.members.includes(name));
  const one = holder(a);
  const other = holder(b);
  if (one && one === other) return t("fusion.together", { group: one.name });
  const about = (x: string | undefined, y: string | undefined) =>
    fusion.decisions.findLast(
      (decision) =>
        !decision.fused && ((decision.first === x && decision.second === y) || (decision.first === y && decision.second === x)),
    );
  // Inductor asks about nodes, and, as groups grow, about groups.
  const hit = about(a, b) ?? about(one?.name, other?.name) ?? about(a, other?.name) ?? about(one?.name, b);
  return hit ?? t("fusion.never_asked");
}
