import { say, t } from "../messages";
import { seconds } from "../messages/format";
import { payload, ready } from "../state/store";
import type { CacheProbe } from "../generated/contract";
import { Empty, Figure } from "./parts";

/** What the key is a hash of, and what of it has changed, where torch tells. */
function Key({ probe }: { probe: CacheProbe }) {
  return (
    <>
      {probe.changes?.map((change) => (
        <div key={change.name}>
          {t("cache.differs", { name: change.name })} <s>{change.before}</s> → {change.after}
        </div>
      ))}
      {probe.parts?.length > 0 && (
        <details>
          <summary>{t("cache.parts", { count: probe.parts.length })}</summary>
          {probe.parts.map((part) => (
            <div key={part.name} class="dim">
              {part.digest} {part.name}: {part.text}
            </div>
          ))}
        </details>
      )}
    </>
  );
}

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
          <div class="scroll pad" tabIndex={0}>
            <div class="cards">
              {cache.cold_seconds !== null && <Figure value={seconds(cache.cold_seconds)} label={t("cache.cold")} how={{ from: t("derive.cold") }} />}
              {cache.warm_seconds !== null && <Figure value={seconds(cache.warm_seconds)} label={t("cache.warm")} how={{ from: t("derive.warm") }} />}
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
                    <td class="m nb">{probe.cache}</td>
                    <td>
                      <b>{t(`cache.${probe.outcome}`)}</b>
                    </td>
                    <td class="n">{probe.count}</td>
                    <td class="m">
                      {probe.reason} <span class="dim">{probe.key}</span>
                      <Key probe={probe} />
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
