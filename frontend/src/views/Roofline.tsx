import { useRef } from "preact/hooks";
import type { KernelRoofline, RooflinePayload } from "../generated/contract";
import { say, t } from "../messages";
import { bytes, seconds } from "../messages/format";
import { closure, select } from "../state/store";
import { Derived, type Derivation } from "./Derived";
import { Figure, shortKernel } from "./parts";
import { useReveal } from "./reveal";

const UNITS = ["", "K", "M", "G", "T", "P"];

/** `1.5 M`, in thousands. */
export function count(value: number): string {
  let unit = 0;
  let rest = value;
  while (rest >= 1000 && unit < UNITS.length - 1) {
    rest /= 1000;
    unit++;
  }
  return `${rest >= 100 || unit === 0 ? rest.toFixed(0) : rest.toFixed(1)} ${UNITS[unit]}`.trim();
}

/** The least time of each kernel, and of the step. */
export function Roofline({ roofline, prefix }: { roofline: RooflinePayload; prefix: string }) {
  const pane = useRef<HTMLDivElement>(null);
  useReveal(pane, closure.value, roofline);
  const most = Math.max(...roofline.kernels.map((kernel) => kernel.seconds ?? 0), Number.MIN_VALUE);
  const sorted = roofline.kernels.toSorted((a, b) => (b.seconds ?? 0) - (a.seconds ?? 0));
  return (
    <div class="scroll pad" tabIndex={0} ref={pane} data-roofline={roofline.target}>
      <div class="cards">
        <Figure value={`${roofline.complete ? "" : "≥ "}${fine(roofline.seconds)}`} label={t("roofline.floor")} how={floorDerivation(roofline)} />
        <Figure
          value={`${(roofline.bandwidth.value / 1e12).toFixed(2)} TB/s`}
          label={roofline.device}
          how={{ from: t("roofline.published"), terms: rates(roofline) }}
        />
      </div>
      <p class="dim">{t("roofline.estimate")}</p>
      <Chart roofline={roofline} prefix={prefix} />
      <table class="t tight">
        <thead>
          <tr>
            <th>{t("table.name")}</th>
            <th class="n">{t("roofline.bytes")}</th>
            <th class="n">{t("roofline.operations")}</th>
            <th class="n">{t("roofline.least")}</th>
            <th>{t("roofline.bound")}</th>
          </tr>
        </thead>
        <tbody>
          {sorted.map((kernel) => {
            const id = `${prefix}/${kernel.kernel}`;
            return (
              <tr key={kernel.kernel} class={`go ${closure.value.has(id) ? "sel" : ""}`} data-kernel={kernel.kernel} onClick={() => select(id)}>
                <td class="m" title={kernel.kernel}>
                  <button>{shortKernel(kernel.kernel)}</button>
                  <div class="least" style={{ width: `${(100 * (kernel.seconds ?? 0)) / most}%` }} />
                </td>
                <td class="n">{kernel.bytes === null ? t("metal.unknown") : bytes(kernel.bytes)}</td>
                <td class="n">{kernel.operations === null ? t("metal.unknown") : count(kernel.operations)}</td>
                <td class="n">
                  <Derived how={kernelDerivation(kernel, roofline)} class="lnk mono">
                    {kernel.seconds === null ? t("metal.unknown") : `${kernel.complete ? "" : "≥ "}${fine(kernel.seconds)}`}
                  </Derived>
                </td>
                <td class="nb">{t(`bound.${kernel.bound}`)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** Times here may be far below a microsecond. */
const fine = (value: number): string => (value < 1e-6 ? `${(value * 1e9).toFixed(value < 1e-8 ? 1 : 0)} ns` : value < 1e-3 ? `${(value * 1e6).toFixed(2)} µs` : seconds(value));

/** The published rate that a node's operations are held against, if there is one. */
const rateOf = (roofline: RooflinePayload, node: KernelRoofline["nodes"][number]): number | undefined => roofline[node.unit]?.[node.dtype]?.value;

const unitOf = (node: KernelRoofline["nodes"][number]): string => `${t(`bound.${node.unit}`)} ${node.dtype}`;

function rates(roofline: RooflinePayload): [string, string][] {
  const rows: [string, string][] = [[t("roofline.bandwidth"), `${(roofline.bandwidth.value / 1e12).toFixed(2)} TB/s · ${roofline.bandwidth.source}`]];
  for (const unit of ["vector", "matrix"] as const) {
    for (const [dtype, figure] of Object.entries(roofline[unit])) {
      rows.push([`${t(`bound.${unit}`)} ${dtype}`, `${(figure.value / 1e12).toFixed(1)} T/s · ${figure.source}`]);
    }
  }
  return rows;
}

function floorDerivation(roofline: RooflinePayload): Derivation {
  const unknown = roofline.kernels.filter((kernel) => !kernel.complete);
  return {
    from: t("roofline.floor_how"),
    terms: [
      [t("codegen.kernels"), String(roofline.kernels.length)],
      [t("roofline.incomplete"), unknown.length ? unknown.map((kernel) => kernel.kernel).join(", ") : "0"],
      [t("roofline.products"), t(roofline.tf32 ? "roofline.tf32" : "roofline.no_tf32")],
      ...(typeof roofline.tf32_convolutions === "boolean"
        ? [[t("roofline.convolutions"), t(roofline.tf32_convolutions ? "roofline.tf32" : "roofline.no_tf32")] as [string, string]]
        : []),
    ],
  };
}

function kernelDerivation(kernel: KernelRoofline, roofline: RooflinePayload): Derivation {
  const terms: [string, string][] = kernel.traffic.map((one) => [
    `${t(`roofline.${one.direction}`)} ${one.name}`,
    `${one.bytes === null ? t("metal.unknown") : bytes(one.bytes)}${one.note ? ` · ${say(one.note)}` : ""}`,
  ]);
  for (const node of kernel.nodes) {
    if (node.operations === 0) continue;
    const rate = rateOf(roofline, node);
    const said =
      node.operations === null
        ? [t("metal.unknown")]
        : [`${count(node.operations)} (${node.formula})`, `${unitOf(node)} ${rate === undefined ? t("roofline.no_rate") : `${count(rate)}/s`}`, node.source];
    terms.push([`${node.node} · ${node.target.replace(".default", "")}`, said.join(" · ")]);
  }
  if (kernel.memory_seconds !== null) terms.push([t("roofline.by_bytes"), fine(kernel.memory_seconds)]);
  if (kernel.compute_seconds !== null) terms.push([t("roofline.by_operations"), fine(kernel.compute_seconds)]);
  const own = kernel.bytes;
  const checks =
    own === null || kernel.group_bytes === null ? [] : [{ label: t("roofline.inductor_bytes"), value: bytes(kernel.group_bytes), holds: own === kernel.group_bytes }];
  return { from: t("roofline.kernel_how"), terms, checks };
}

const WIDE = 640;
const HIGH = 190;
const LEFT = 64;
const RIGHT = 12;
const TOP = 10;
const BOTTOM = 30;

/** Operations per byte across, operations per second up, both in powers of ten; each kernel where its own figures put it. */
function Chart({ roofline, prefix }: { roofline: RooflinePayload; prefix: string }) {
  const points = roofline.kernels.filter((kernel) => kernel.bytes && kernel.operations && kernel.seconds);
  if (!points.length) return null;
  const at = points.map((kernel) => ({ kernel, x: kernel.operations! / kernel.bytes!, y: kernel.operations! / kernel.seconds! }));
  const used = new Map<string, number>();
  for (const kernel of points) {
    for (const node of kernel.nodes) {
      const rate = rateOf(roofline, node);
      if (node.operations && rate !== undefined) used.set(unitOf(node), rate);
    }
  }
  const bandwidth = roofline.bandwidth.value;
  const roofs = [...used].toSorted((a, b) => b[1] - a[1]);
  const highest = roofs[0]?.[1] ?? bandwidth;
  const x0 = Math.floor(Math.log10(Math.min(...at.map((one) => one.x)))) - 0.2;
  const x1 = Math.max(Math.log10(Math.max(...at.map((one) => one.x))), Math.log10(highest / bandwidth)) + 0.7;
  const y1 = Math.log10(highest) + 0.25;
  const y0 = Math.log10(bandwidth) + x0;
  const sx = (x: number): number => LEFT + ((Math.log10(x) - x0) / (x1 - x0)) * (WIDE - LEFT - RIGHT);
  const sy = (y: number): number => TOP + ((y1 - Math.log10(y)) / (y1 - y0)) * (HIGH - TOP - BOTTOM);
  const decades = Array.from({ length: Math.floor(x1) - Math.ceil(x0) + 1 }, (_, i) => Math.ceil(x0) + i);
  const heights = Array.from({ length: Math.floor(y1) - Math.ceil(y0) + 1 }, (_, i) => Math.ceil(y0) + i);
  return (
    <svg class="roof" viewBox={`0 0 ${WIDE} ${HIGH}`} role="img" aria-label={t("roofline.chart")}>
      {decades.map((power) => (
        <g key={power}>
          <line x1={sx(10 ** power)} x2={sx(10 ** power)} y1={TOP} y2={HIGH - BOTTOM} class="grid" />
          <text x={sx(10 ** power)} y={HIGH - BOTTOM + 12} text-anchor="middle">
            {10 ** power}
          </text>
        </g>
      ))}
      {heights.map((power) => (
        <text key={power} x={LEFT - 6} y={sy(10 ** power) + 3} text-anchor="end">
          {`${count(10 ** power)}/s`}
        </text>
      ))}
      <text x={(LEFT + WIDE - RIGHT) / 2} y={HIGH - 4} text-anchor="middle">
        {t("roofline.intensity")}
      </text>
      <line x1={sx(10 ** x0)} y1={sy(bandwidth * 10 ** x0)} x2={sx(highest / bandwidth)} y2={sy(highest)} class="limit" />
      {roofs.map(([name, rate]) => (
        <g key={name}>
          <line x1={sx(rate / bandwidth)} x2={WIDE - RIGHT} y1={sy(rate)} y2={sy(rate)} class="limit" />
          <text x={WIDE - RIGHT} y={sy(rate) - 4} text-anchor="end">
            {`${name} ${count(rate)}/s`}
          </text>
        </g>
      ))}
      {at.map(({ kernel, x, y }) => {
        const id = `${prefix}/${kernel.kernel}`;
        return (
          <circle key={kernel.kernel} cx={sx(x)} cy={sy(y)} r={closure.value.has(id) ? 6 : 4} class={closure.value.has(id) ? "dot sel" : "dot"} onClick={() => select(id)}>
            <title>{`${kernel.kernel}: ${x.toFixed(2)} · ${fine(kernel.seconds!)}`}</title>
          </circle>
        );
      })}
    </svg>
  );
}
