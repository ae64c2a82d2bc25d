import { missing } from "../app/control";
import { t, say } from "../messages";
import { bytes, count, shape } from "../messages/format";
import { payload, ready, run } from "../state/store";
import { Empty } from "./parts";

/** The snippet as understood, and what it printed. */
export function Source() {
  const source = ready(payload("source", "source"));
  const now = run.value;
  return (
    <>
      <div class="bar">
        <span class="dim">{source ? t(`source.${source.form}`) : missing.value ? "" : t("loading")}</span>
      </div>
      <div class="body view scroll pad" tabIndex={0}>
        {source && (
          <dl style={{ gridTemplateColumns: "130px minmax(0, 1fr)", margin: "6px 0 14px" }}>
            {source.model && (
              <>
                <dt>{t("source.model")}</dt>
                <dd>{source.model}</dd>
              </>
            )}
            {source.parameters && (
              <>
                <dt>{t("source.parameters")}</dt>
                <dd>
                  {t("source.parameter_figures", {
                    tensors: source.parameters.tensors,
                    elements: count(source.parameters.elements),
                    bytes: bytes(source.parameters.bytes),
                  })}
                  {source.parameters.buffers > 0 &&
                    ` · ${t("source.buffers", { count: source.parameters.buffers, bytes: bytes(source.parameters.buffer_bytes) })}`}
                </dd>
              </>
            )}
            {source.inputs.map((input) => (
              <>
                <dt>{t("source.input")}</dt>
                <dd>
                  {input.name} {input.value ? shape(input.value) : input.text}
                  {input.value?.kind === "tensor" && input.value.requires_grad && <span class="dim"> requires_grad</span>}
                </dd>
              </>
            ))}
            {source.calls > 1 && (
              <>
                <dt>{t("source.calls")}</dt>
                <dd>{source.calls}</dd>
              </>
            )}
            {source.loss && (
              <>
                <dt>{t("source.loss")}</dt>
                <dd>{source.loss}</dd>
              </>
            )}
            {source.mode && (
              <>
                <dt>{t("top.mode")}</dt>
                <dd>{t(`mode.${source.mode}`)}</dd>
              </>
            )}
            <dt>{t("source.backend")}</dt>
            <dd>
              {source.backend} {source.compile_kwargs}
            </dd>
            {source.config && (
              <>
                <dt>{t("source.config")}</dt>
                <dd>{source.config}</dd>
              </>
            )}
          </dl>
        )}
        {source && source.assumed.length > 0 && (
          <>
            <h3>{t("source.assumed")}</h3>
            {source.assumed.map((one) => (
              <p key={one.key}>{say(one)}</p>
            ))}
          </>
        )}
        {!missing.value && <h3>{t("source.printed")}</h3>}
        {now.printed.length ? (
          <pre class="out" tabIndex={0} data-pane="printed">
            {now.printed.map((part, i) => (
              <span key={i} class={part.stream === "stderr" ? "dim" : ""}>
                {part.text}
              </span>
            ))}
            {now.cutAt !== null && <b class="bad">{`\n${t("source.cut", { bytes: bytes(now.cutAt) })}`}</b>}
          </pre>
        ) : (
          !missing.value && <p class="dim">{t("source.printed_nothing")}</p>
        )}
        {source?.model_text && (
          <>
            <h3>{t("source.model")}</h3>
            <pre class="out" tabIndex={0}>{source.model_text}</pre>
          </>
        )}
        {!source && now.status === "idle" && !missing.value && <Empty>{t("source.idle")}</Empty>}
      </div>
      <span />
    </>
  );
}
