import type { ComparedFinding, ComparedRun, Difference, Part, RunComparison, StageComparison, StageName } from "../generated/contract";
import { stageLabel } from "../app/Rail";
import { nextTheme, theme } from "../app/settings";
import { language, say, t, type Key } from "../messages";
import { bytes, seconds } from "../messages/format";
import { Diff, Empty, LongTable } from "../views/parts";
import { at, found, go, shown, trouble, waiting, type Pair } from "./state";

const NONE = "–";
const MARKS = { added: "+", removed: "−", changed: "~", same: "" } as const;

/** Two runs side by side, over all stages. */
export function Compare({ pair }: { pair: Pair }) {
  const runs = found.value;
  return (
    <div class="page cmp" data-status={runs ? "ready" : trouble.value ? "failed" : "waiting"}>
      <header class="top">
        <a class="logo" href="/">
          <i>aot</i>
          <b>scope</b>
        </a>
        <h1>{t("cmp.title")}</h1>
        <Side label="A" id={pair.a} run={runs?.a ?? null} />
        <a class="pill" href={`/compare/${pair.b}/${pair.a}${location.hash}`} title={t("cmp.swap")} aria-label={t("cmp.swap")}>
          ⇄
        </a>
        <Side label="B" id={pair.b} run={runs?.b ?? null} />
        <span class="sp" />
        {runs && (
          <b role="status" class={runs.equal ? "save" : ""} data-equal={runs.equal}>
            {t(runs.equal ? "cmp.equal" : "cmp.different")}
          </b>
        )}
        <button class="ic" title={language.value === "en" ? "中文" : "English"} onClick={() => (language.value = language.value === "en" ? "zh" : "en")}>
          {language.value === "en" ? "中" : "EN"}
        </button>
        <button class="ic" title={t(`theme.${theme.value}`)} aria-label={t(`theme.${theme.value}`)} onClick={nextTheme}>
          ◐
        </button>
      </header>
      {runs ? <Both runs={runs} /> : <Absent />}
    </div>
  );
}

function Absent() {
  if (trouble.value) {
    const { said, detail } = trouble.value;
    return (
      <p class="empty" role="alert">
        {said ? say(said) : detail}
      </p>
    );
  }
  return <Empty>{t(waiting.value ? "cmp.waiting" : "loading")}</Empty>;
}

function Side({ label, id, run }: { label: string; id: string; run: ComparedRun | null }) {
  const torch = String(run?.engine?.["torch"] ?? "").replace(/\+.*/, "");
  return (
    <a class="pill" href={`/r/${id}`}>
      <b>{label}</b>
      <span class="mono">{id}</span>
      {run && <small>{[torch && `torch ${torch}`, String(run.options["mode"] ?? "")].filter(Boolean).join(" · ")}</small>}
    </a>
  );
}

function Both({ runs }: { runs: RunComparison }) {
  return (
    <div class="cols">
      <nav aria-label={t("cmp.stages")}>
        <button class="item" aria-current={at.value.stage === null} onClick={() => go({ stage: null, compile: -1 })}>
          <span class="m">{t("cmp.overview")}</span>
        </button>
        <StageList stages={runs.stages} compile={-1} />
        {runs.compiles.map((made, i) => (
          <div key={i}>
            <h2 class="h3">
              {[made.a, made.b].map((one) => one?.id ?? NONE).join(" | ")} <span class="dim">{made.a?.function ?? made.b?.function}</span>
            </h2>
            <StageList stages={made.stages} compile={i} />
          </div>
        ))}
      </nav>
      <main aria-label={t("cmp.title")}>{shown.value ? <Stage {...shown.value} /> : <Overview runs={runs} />}</main>
    </div>
  );
}

function StageList({ stages, compile }: { stages: readonly StageComparison[]; compile: number }) {
  return (
    <>
      {stages.map((stage) => {
        const here = at.value.stage === stage.stage && at.value.compile === compile;
        return (
          <button
            key={stage.stage}
            class={`item ${stage.equal ? "same" : ""}`}
            aria-current={here}
            data-compared={stage.stage}
            onClick={() => go({ stage: stage.stage, compile, part: -1 })}
          >
            <span aria-label={t(stage.equal ? "cmp.equal" : "cmp.different")}>{stage.equal ? "=" : "≠"}</span>
            <span class="m">{stageLabel(stage.stage as StageName)}</span>
            <em>{counts(stage)}</em>
          </button>
        );
      })}
    </>
  );
}

/** What differs in a stage's graphs, else in all of its tables. */
function counts(stage: StageComparison): string {
  const graphs = stage.parts.filter((part) => part.kind === "graph");
  const parts = graphs.length ? graphs : stage.parts;
  const sum = (of: "added" | "removed" | "changed"): number => parts.reduce((total, part) => total + part[of], 0);
  const said = (["added", "removed", "changed"] as const).map((of): string => (sum(of) ? `${MARKS[of]}${sum(of)}` : ""));
  return said.filter(Boolean).join(" ");
}

function Overview({ runs }: { runs: RunComparison }) {
  const every = [...runs.stages, ...runs.compiles.flatMap((made) => made.stages)];
  const timed = every.filter((stage) => stage.a.seconds !== null || stage.b.seconds !== null);
  return (
    <div class="scroll pad" tabIndex={0}>
      <p class="dim">{t("cmp.what")}</p>
      <Findings title={t("cmp.appeared")} findings={runs.appeared} />
      <Findings title={t("cmp.vanished")} findings={runs.vanished} />
      <Figures title={t("cmp.options")} rows={runs.options} />
      <Figures title={t("cmp.engine")} rows={runs.engine} />
      <Figures title={t("cmp.summary")} rows={runs.summary} />
      {timed.length > 0 && (
        <>
          <h2 class="h3">{t("cmp.times")}</h2>
          <table class="t">
            <Head first={t("cmp.stage")} more={<th class="n">B / A</th>} />
            <tbody>
              {timed.map((stage, i) => (
                <tr key={i}>
                  <td>{stageLabel(stage.stage as StageName)}</td>
                  <td class="n">{stage.a.seconds === null ? NONE : seconds(stage.a.seconds)}</td>
                  <td class="n">{stage.b.seconds === null ? NONE : seconds(stage.b.seconds)}</td>
                  <td class="n">{stage.a.seconds && stage.b.seconds ? (stage.b.seconds / stage.a.seconds).toFixed(2) : NONE}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
      {runs.source && (
        <>
          <h2 class="h3">{t("cmp.source")}</h2>
          <div class="card">
            <Diff text={runs.source} label={t("cmp.source")} />
          </div>
        </>
      )}
    </div>
  );
}

function Head({ first, more }: { first: string; more?: preact.ComponentChildren }) {
  return (
    <thead>
      <tr>
        <th>{first}</th>
        <th class="n">A</th>
        <th class="n">B</th>
        {more}
      </tr>
    </thead>
  );
}

function Findings({ title, findings }: { title: string; findings: readonly ComparedFinding[] }) {
  if (!findings.length) return null;
  return (
    <>
      <h2 class="h3">{title}</h2>
      {findings.map((finding, i) => (
        <p key={i} class={finding.severity === "note" ? "" : "bad"}>
          {say(finding.message)} {finding.line !== null && <span class="dim">{t("line", { line: finding.line })}</span>}
        </p>
      ))}
    </>
  );
}

function Figures({ title, rows }: { title: string; rows: readonly Difference[] }) {
  if (!rows.length) return null;
  return (
    <>
      <h2 class="h3">{title}</h2>
      <table class="t">
        <Head first={t("cmp.figure")} more={<th class="n">B − A</th>} />
        <tbody>
          {rows.map((row) => (
            <tr key={row.name} class={row.measured ? "dim" : ""}>
              <td class="m">
                {row.name} {row.measured && <small>{t("cmp.measured")}</small>}
              </td>
              <td class="n">{value(row.name, row.a)}</td>
              <td class="n">{value(row.name, row.b)}</td>
              <td class="n">{typeof row.a === "number" && typeof row.b === "number" ? signed(row.name, row.b - row.a) : ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

function value(name: string, of: Difference["a"]): string {
  if (of === null) return NONE;
  if (typeof of === "string" && /^\[\d+(, \d+)*\]$/.test(of)) {
    return of.slice(1, -1).split(", ").map((one): string => value(name, Number(one))).join(", ");
  }
  if (typeof of !== "number") return String(of);
  if (/bytes|^peak\./.test(name)) return bytes(of);
  return /seconds|^kernel\./.test(name) ? seconds(of) : Number.isInteger(of) ? String(of) : of.toPrecision(4);
}

const signed = (name: string, by: number): string => (by > 0 ? "+" : "−") + value(name, Math.abs(by));

function partLabel(part: Part): string {
  const graphs = [...new Set([part.graph_a, part.graph_b].filter((graph) => graph !== null))];
  return [t(`cmp.kind.${part.kind}` as Key), part.kind === "timeline" ? part.name : "", graphs.join(" ~ ")].filter(Boolean).join(" · ");
}

function Stage({ stage, part, place }: { stage: StageComparison; part: Part | null; place: number }) {
  return (
    <div class="one">
      <div class="bar">
        <label class="pill">
          <small>{stageLabel(stage.stage as StageName)}</small>
          <select aria-label={t("cmp.part")} onChange={(event) => go({ part: Number(event.currentTarget.value) })}>
            {stage.parts.map((one, i) => (
              <option key={i} value={i} selected={i === place}>
                {one.state === "equal" ? "= " : "≠ "}
                {partLabel(one)}
              </option>
            ))}
          </select>
        </label>
        {stage.a.status !== stage.b.status && (
          <span class="dim">
            {stage.a.status ?? NONE} → {stage.b.status ?? NONE}
          </span>
        )}
        {part && part.added + part.removed + part.changed > 0 && (
          <span class="mono" data-counts>
            +{part.added} −{part.removed} ~{part.changed} ={part.same}
          </span>
        )}
      </div>
      {part ? <PartView part={part} /> : <Empty>{t("cmp.nothing")}</Empty>}
    </div>
  );
}

function PartView({ part }: { part: Part }) {
  if (part.state === "only_a" || part.state === "only_b") return <Empty>{t(`cmp.${part.state}`)}</Empty>;
  if (part.state === "equal" && !part.figures.length && !part.diff) return <Empty>{t("cmp.same")}</Empty>;
  return (
    <div class="two">
      {part.figures.length > 0 && (
        <div class="scroll figures" tabIndex={0}>
          <Figures title={t("cmp.figures")} rows={part.figures} />
        </div>
      )}
      {part.rows.length > 0 && <Rows part={part} />}
      {part.diff && <Diff text={part.diff} label={partLabel(part)} />}
    </div>
  );
}

function Rows({ part }: { part: Part }) {
  return (
    <>
      <LongTable
        rows={part.rows}
        scrollTo={-1}
        head={
          <tr>
            <th>
              <span class="sr">{t("cmp.state")}</span>
            </th>
            <th>A</th>
            <th>B</th>
            <th>{t("cmp.changed")}</th>
          </tr>
        }
        row={(row, i) => (
          <tr key={i} class={`row-${row.state}`} data-row={row.state} style={{ height: "25px" }}>
            <td class="nb">{row.gap > 0 ? <span class="dim">⋯{row.gap}</span> : MARKS[row.state]}</td>
            <td class="m one-line" title={row.a}>
              {row.a}
            </td>
            <td class="m one-line" title={row.b}>
              {row.b}
            </td>
            <td class="nb">{row.what.map((what) => t(`cmp.aspect.${what}` as Key)).join(", ")}</td>
          </tr>
        )}
      />
      {part.left_out > 0 && <Empty>{t("cmp.left_out", { count: part.left_out })}</Empty>}
    </>
  );
}
