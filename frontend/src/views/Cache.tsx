import { say, t } from "../messages";
import { seconds } from "../messages/format";
import { payload, ready } from "../state/store";
import { Empty, Figure } from "./parts";

export function Cache() {
  const cache = ready(payload("cache", "cache"));
  return (
    <>
      <div class="bar">
        <span class="dim">{t("cache.what")}</span>
      </div>
      <div class="body view">
        {!cache ? (
          <Empty>{t("loading")}</Empty>
        ) : (
          <div class="scroll pad">
            <div class="cards">
              {cache.cold_seconds !== null && <Figure value={seconds(cache.cold_seconds)} label={t("cache.cold")} />}
              {cache.warm_seconds !== null && <Figure value={seconds(cache.warm_seconds)} label={t("cache.warm")} />}
            </div>
            {cache.notes.map((note, i) => (
              <p key={i}>{say(note)}</p>
            ))}
            <table class="t">
              <thead>
                <tr>
                  <th>{t("cache.when")}</th>
                  <th>{t("cache.cache")}</th>
                  <th>{t("cache.outcome")}</th>
                  <th class="n">{t("cache.count")}</th>
                  <th>{t("cache.reason")}</th>
                </tr>
              </thead>
              <tbody>
                {cache.probes.map((probe, i) => (
                  <tr key={i}>
                    <td>{t(`cache.${probe.what}`)}</td>
                    <td class="m">{probe.cache}</td>
                    <td>
                      <b>{t(`cache.${probe.outcome}`)}</b>
                    </td>
                    <td class="n">{probe.count}</td>
                    <td class="m">
                      {probe.reason} <span class="dim">{probe.key}</span>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </div>
      <span />
    </>
  );
}
