import type { FidelityPayload } from "../generated/contract";
import { say, t } from "../messages";
import { select } from "../state/store";

const MOST = 12;

/** Code for a GPU that is not there: what the real one would have had a say in. */
export function Fidelity({ fidelity }: { fidelity: FidelityPayload }) {
  return (
    <div class="scroll pad" tabIndex={0}>
      <h3>{t("fidelity.title", { device: fidelity.device })}</h3>
      <p class="dim">
        {t("fidelity.assumed", {
          versions: Object.entries(fidelity.assumed)
            .map((pair) => pair.join(" "))
            .join(", "),
        })}
      </p>
      {fidelity.decisions.length === 0 && <p>{t("fidelity.none")}</p>}
      {fidelity.decisions.map((decision) => (
        <div key={decision.kind} class="card">
          <p>
            <b>{t(`fidelity.${decision.kind}`)}</b> · {say(decision.text)}
          </p>
          <p>
            {decision.entities.slice(0, MOST).map((entity) => (
              <button key={entity} class="chip" onClick={() => select(entity)}>
                {entity.slice(entity.lastIndexOf("/") + 1)}
              </button>
            ))}
            {decision.entities.length > MOST && <span class="dim"> {t("fidelity.more", { count: decision.entities.length - MOST })}</span>}
          </p>
          {decision.details.length > 0 && (
            <details>
              <summary>{t("fidelity.details", { count: decision.details.length })}</summary>
              <ul>
                {decision.details.map((detail) => (
                  <li key={detail} class="mono">
                    {detail}
                  </li>
                ))}
              </ul>
            </details>
          )}
        </div>
      ))}
    </div>
  );
}
