import { useSignal } from "@preact/signals";
import type { Candidate, MetalPayload, Need, Occupancy } from "../generated/contract";
import { CodePane } from "../code/CodePane";
import { say, t, type Key } from "../messages";
import { bytes } from "../messages/format";
import { metal, type Metal } from "../state/metal";
import { formatPlace, NOWHERE } from "../state/url";
import { Derived, type Derivation } from "./Derived";
import { Empty } from "./parts";

export type LevelTab = MetalPayload["levels"][number]["name"] | "needs";

/** The tabs below the generated file: what a target's kernels have. */
export function levelTabs(target: string): readonly LevelTab[] {
  return target.startsWith("gfx")
    ? ["needs", "triton", "ttir", "ttgir", "llir", "amdgcn"]
    : ["needs", "triton", "ttir", "ttgir", "llir", "ptx", "sass"];
}

/** One kernel down to the metal, asked for when it is first looked at. */
export function MetalView({ kernel, tab }: { kernel: string; tab: LevelTab }) {
  const config = useSignal(0);
  const asked = metal(kernel, config.value).value;
  return <Shown asked={asked} tab={tab} onConfig={(to) => (config.value = to)} />;
}

/** A derived run's own answer. */
export function MetalOf({ value, tab }: { value: MetalPayload; tab: LevelTab }) {
  return <Shown asked={{ state: "ready", value, run: "" }} tab={tab} onConfig={null} />;
}

function Shown({ asked, tab, onConfig }: { asked: Metal; tab: LevelTab; onConfig: ((to: number) => void) | null }) {
  if (asked.state === "asking") return <Empty>{t("metal.asking")}</Empty>;
  if (asked.state === "failed") {
    return (
      <div class="pad" role="alert">
        <div class="card bad">
          <b>{asked.said ? say(asked.said) : t("metal.failed")}</b>
          {asked.detail && <pre>{asked.detail}</pre>}
        </div>
      </div>
    );
  }
  const { value } = asked;
  const level = value.levels.find((one) => one.name === tab);
  return (
    <div class="metal" data-metal={value.kernel}>
      <div class="bar">
        <Configurations value={value} onConfig={onConfig} />
        {asked.run && (
          <a class="lnk" href={`/r/${asked.run}${formatPlace({ ...NOWHERE, stage: "codegen", tab })}`} title={t("metal.own_page_help")}>
            {t("metal.own_page")}
          </a>
        )}
        <span class="sp" />
        <Facts value={value} />
        {level && level.statements > 0 && (
          <span class="chip" title={t("metal.linked_help")}>
            {t("metal.linked", { percent: Math.floor((100 * level.linked) / level.statements) })}
          </span>
        )}
      </div>
      {level ? (
        <CodePane key={level.code.id} code={level.code} label={t("code.label", { stage: t(`level.${level.name}`) })} />
      ) : tab === "needs" ? (
        <Needs value={value} onConfig={onConfig} />
      ) : (
        <Empty>{t("metal.no_level")}</Empty>
      )}
    </div>
  );
}

/** In Triton's own words. */
const named = (candidate: Candidate): string =>
  [
    ...Object.entries(candidate.blocks).map(([name, size]) => `${name}=${String(size)}`),
    `num_warps=${candidate.warps}`,
    `num_stages=${candidate.stages}`,
  ].join(" ");

function Configurations({ value, onConfig }: { value: MetalPayload; onConfig: ((to: number) => void) | null }) {
  if (!onConfig || value.candidates.length < 2) return <span class="dim mono">{named(value.candidates[value.config]!)}</span>;
  return (
    <label class="pill" title={say(value.chosen)}>
      <select
        aria-label={t("metal.configuration")}
        value={String(value.config)}
        onChange={(event) => onConfig(Number(event.currentTarget.value))}
      >
        {value.candidates.map((candidate, i) => (
          <option key={i} value={String(i)}>
            {`${i + 1}/${value.candidates.length} ${named(candidate)}`}
          </option>
        ))}
      </select>
    </label>
  );
}

const need = (value: MetalPayload, name: string): Need | undefined => value.needs.find((one) => one.name === name);
const known = (figure: number | null | undefined): string => (figure === null || figure === undefined ? "?" : String(figure));

function Facts({ value }: { value: MetalPayload }) {
  const registers = need(value, "registers") ?? need(value, "vector_registers");
  const spills = ["spill_stores", "spill_loads", "vector_spills", "scalar_spills"].map((name) => need(value, name)).filter((one) => one !== undefined);
  const spilled = spills.reduce((sum, one) => sum + (one.value ?? 0), 0);
  return (
    <>
      <span class="chip" title={registers?.source}>
        {t("metal.registers", { count: known(registers?.value) })}
      </span>
      <span class="chip" title={spills[0]?.source}>
        {spills.some((one) => one.value === null) ? t("metal.spills_unknown") : t("metal.spills", { count: spilled })}
      </span>
      {value.occupancy ? (
        <Derived how={occupancyDerivation(value.occupancy)} class="chip">
          {t("metal.occupancy", { warps: value.occupancy.warps, most: value.occupancy.most_warps })}
        </Derived>
      ) : (
        <span class="chip" title={value.occupancy_unknown ? say(value.occupancy_unknown) : ""}>
          {t("metal.no_occupancy")}
        </span>
      )}
    </>
  );
}

function occupancyDerivation(occupancy: Occupancy): Derivation {
  return {
    from: t("metal.occupancy_how", { source: occupancy.source }),
    terms: [
      [t("metal.warps_per_block"), String(occupancy.warps_per_block)],
      ...occupancy.limits.map((limit): [string, string] => [
        t(`limit.${limit.resource}`),
        limit.blocks === null ? t("metal.no_limit") : `${limit.formula}${limit.formula === String(limit.blocks) ? "" : ` = ${limit.blocks}`}`,
      ]),
      [t("metal.blocks"), String(occupancy.blocks)],
      [t("metal.resident"), `${occupancy.blocks} × ${occupancy.warps_per_block} = ${occupancy.warps} / ${occupancy.most_warps}`],
    ],
  };
}

function Needs({ value, onConfig }: { value: MetalPayload; onConfig: ((to: number) => void) | null }) {
  const occupancy = value.occupancy;
  return (
    <div class="scroll pad" tabIndex={0}>
      <h3>{t("metal.needs")}</h3>
      <table class="t">
        <tbody>
          {value.needs.map((one) => (
            <tr key={one.name} data-need={one.name}>
              <td class="nb">{t(`need.${one.name}` as Key)}</td>
              <td class="n">{one.value === null ? t("metal.unknown") : one.name.startsWith("shared") ? bytes(one.value) : one.value}</td>
              <td class="dim">{one.source}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <h3>{t("metal.occupancy_title")}</h3>
      {occupancy ? (
        <>
          <table class="t">
            <tbody>
              {occupancy.limits.map((limit) => (
                <tr key={limit.resource} class={limit.blocks === occupancy.blocks ? "sel" : ""}>
                  <td class="nb">{t(`limit.${limit.resource}`)}</td>
                  <td class="m">{limit.formula}</td>
                  <td class="n">{limit.blocks === null ? t("metal.no_limit") : t("metal.blocks_count", { count: limit.blocks })}</td>
                </tr>
              ))}
            </tbody>
          </table>
          <p class="dim">{t("metal.occupancy_how", { source: occupancy.source })}</p>
        </>
      ) : (
        <p class="dim">{value.occupancy_unknown ? say(value.occupancy_unknown) : ""}</p>
      )}
      <h3>{t("metal.candidates")}</h3>
      <p class="dim">{say(value.chosen)}</p>
      <table class="t">
        <tbody>
          {value.candidates.map((candidate, i) => (
            <tr key={i} class={i === value.config ? "sel" : ""}>
              <td class="n">{i + 1}</td>
              <td class="m">{named(candidate)}</td>
              <td>
                {i === value.config ? (
                  t("metal.shown")
                ) : onConfig ? (
                  <button class="lnk" onClick={() => onConfig(i)}>
                    {t("metal.compile_this")}
                  </button>
                ) : (
                  ""
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {value.assembler_log && (
        <>
          <h3>{t("metal.log")}</h3>
          <pre class="out" tabIndex={0}>{value.assembler_log}</pre>
        </>
      )}
      <p class="dim">{t("metal.not_run", { triton: value.triton })}</p>
    </div>
  );
}
