import { useEffect } from "preact/hooks";
import { t } from "../messages";
import { place, show } from "../state/store";
import { offline } from "./control";
import { comparable, openPair } from "./pair";
import { AXES, axisOf, playing, SPEEDS, speed, told, walkOf, type Axis } from "./steps";

/** Goes through the run one step at a time, by hand or by itself, and says what each step did. */
export function Stepper() {
  const axis = axisOf(place.value.step);
  return axis && <Steps axis={axis} />;
}

function Steps({ axis }: { axis: Axis }) {
  const { count, at, go } = walkOf(axis);
  const on = playing.value && at < count - 1;
  useEffect(() => {
    if (!on) {
      playing.value = false;
      return;
    }
    const timer = setTimeout(() => walkOf(axis).go(at + 1), 1000 * speed.value);
    return () => clearTimeout(timer);
  }, [on, at, axis, speed.value]);
  const move = (to: number): void => {
    playing.value = false;
    go(Math.max(0, Math.min(count - 1, to)));
  };
  const present = place.value.present !== null;
  return (
    <section class="stepper" aria-label={t("step.title")}>
      <span role="group" aria-label={t("step.axis")} class="seg">
        {AXES.map((name) => (
          <button key={name} aria-pressed={name === axis} onClick={() => show({ step: name })}>
            {t(`step.by_${name}`)}
          </button>
        ))}
      </span>
      <span class="moves">
        <button aria-label={t("step.first")} disabled={at <= 0} onClick={() => move(0)}>
          ⇤
        </button>
        <button data-step="back" aria-label={t("step.back")} disabled={at <= 0} onClick={() => move(at - 1)}>
          ‹
        </button>
        <button
          data-step="play"
          aria-pressed={on}
          aria-label={t(on ? "step.pause" : "step.play")}
          disabled={count < 2}
          onClick={() => {
            if (!on && at >= count - 1) go(0);
            playing.value = !on;
          }}
        >
          {on ? "‖" : "▷"}
        </button>
        <button data-step="next" aria-label={t("step.next")} disabled={at >= count - 1} onClick={() => move(at + 1)}>
          ›
        </button>
        <button aria-label={t("step.last")} disabled={at >= count - 1} onClick={() => move(count - 1)}>
          ⇥
        </button>
      </span>
      <label class="pill">
        <small>{t("step.speed")}</small>
        <select value={String(speed.value)} onChange={(event) => (speed.value = SPEEDS.find((one) => String(one) === event.currentTarget.value) ?? 2)}>
          {SPEEDS.map((one) => (
            <option key={one} value={String(one)}>
              {one} s
            </option>
          ))}
        </select>
      </label>
      <span class="dim count">{count > 0 ? t("step.at", { at: at + 1, count }) : t("step.none")}</span>
      <p aria-live="polite" data-told={axis}>
        {told(axis)}
      </p>
      {!offline.value && comparable() && (
        <button class="pill" aria-pressed={place.value.pair !== null} title={t("pair.help")} onClick={() => void openPair()}>
          {t("pair.title")}
        </button>
      )}
      <button class="pill" aria-pressed={present} title={t("step.present_help")} onClick={() => show({ present: present ? null : "1" })}>
        {t("step.present")}
      </button>
      <button class="ic" aria-label={t("close")} onClick={() => show({ step: null, present: null, pair: null })}>
        ✕
      </button>
    </section>
  );
}
