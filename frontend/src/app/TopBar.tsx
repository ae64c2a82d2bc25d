import { signal } from "@preact/signals";
import { language, t } from "../messages";
import { seconds } from "../messages/format";
import { isOver } from "../state/events";
import { connected, run, source } from "../state/store";
import { cancel, chosenTarget, examples, mode, native, offline, openExample, permalink, service, submit, submitting, target } from "./control";
import { CompareMenu } from "./CompareMenu";
import { Export } from "./Export";
import { sheet, toggleSheet } from "./sheets";
import { nextTheme, theme } from "./settings";

const GROUPS = ["examples", "questions"] as const;
const shared = signal(false);
const apple = /Mac|iPhone|iPad/.test(navigator.platform);

async function share(): Promise<void> {
  try {
    await navigator.clipboard.writeText(permalink());
  } catch {
    prompt(t("top.share"), permalink());
    return;
  }
  shared.value = true;
  setTimeout(() => (shared.value = false), 1600);
}

/** The example whose text is in the editor. */
function shownExample(): string {
  const text = source.value.trim();
  const own = run.value.request?.source.trim() === text ? run.value.id : null;
  return examples.value.find((example) => example.source.trim() === text || example.run === own)?.name ?? "";
}

function Status() {
  const { status, t: time, engine, captureEnd, seq } = run.value;
  let text = "";
  if (status === "queued") text = t("status.queued");
  else if (status === "running") text = captureEnd === null ? t("top.compiling") : t("top.native");
  else if (isOver(status)) text = t(`top.${status}`, { time: seconds(captureEnd ?? time) });
  if (!connected.value && seq > 0 && !isOver(status)) text = t("top.reconnecting");
  return (
    <span class="status" role="status">
      {text}
      {engine && <span class="wide"> · torch {engine.torch.replace(/\+.*/, "")}</span>}
    </span>
  );
}

export function TopBar() {
  const busy = run.value.status === "running" || run.value.status === "queued";
  const worst = run.value.findings.length;
  const serious = run.value.findings.some((finding) => finding.severity !== "note");
  const shown = shownExample();
  const targets = service.value?.targets.length ? service.value.targets : [{ id: "cpu", name: "CPU", kind: "cpu" }];
  const virtual = targets.find((one) => one.id === chosenTarget.value)?.kind === "virtual";
  return (
    <header class="top">
      <a class="logo" href="/">
        <i>aot</i>
        <b>scope</b>
      </a>
      {!offline.value && (
        <>
          <label class="pill">
            <small>{t("top.example")}</small>
            <select
              onChange={(event) => {
                const example = examples.value.find((one) => one.name === event.currentTarget.value);
                if (example) {
                  history.pushState(null, "", "/");
                  openExample(example);
                }
              }}
            >
              {shown === "" && (
                <option value="" selected>
                  –
                </option>
              )}
              {GROUPS.map((group) => (
                <optgroup key={group} label={t(`top.${group}`)}>
                  {examples.value
                    .filter((example) => example.group === group)
                    .map((example) => {
                      const { title, description } = (language.value === "zh" && example.zh) || example;
                      return (
                        <option key={example.name} value={example.name} selected={example.name === shown} title={description}>
                          {title}
                        </option>
                      );
                    })}
                </optgroup>
              ))}
            </select>
          </label>
          <label class="pill">
            <small>{t("top.target")}</small>
            <select
              value={chosenTarget.value}
              title={virtual ? t("top.virtual_help") : undefined}
              onChange={(event) => (target.value = event.currentTarget.value as typeof target.value)}
            >
              {targets.map((one) => (
                <option key={one.id} value={one.id} selected={one.id === chosenTarget.value}>
                  {one.name}
                </option>
              ))}
            </select>
          </label>
          <label class="pill">
            <small>{t("top.mode")}</small>
            <select value={mode.value} onChange={(event) => (mode.value = event.currentTarget.value as typeof mode.value)}>
              <option value="auto">{t("mode.auto")}</option>
              <option value="training">{t("mode.training")}</option>
              <option value="inference">{t("mode.inference")}</option>
            </select>
          </label>
          <button
            class={`pill ${native.value && !virtual ? "on" : ""}`}
            disabled={virtual}
            aria-pressed={native.value && !virtual}
            title={virtual ? t("top.virtual_help") : t("top.native_help")}
            onClick={() => (native.value = !native.value)}
          >
            {native.value && !virtual ? "g++ ✓" : "g++ –"}
          </button>
          {busy ? (
            <button class="run stop" onClick={() => void cancel()}>
              {t("top.cancel")}
            </button>
          ) : (
            <button class="run" disabled={submitting.value} onClick={() => void submit()}>
              {t("top.run")}
              <kbd>{apple ? "⌘↵" : "Ctrl ↵"}</kbd>
            </button>
          )}
        </>
      )}
      <span class="sp" />
      <Status />
      {!offline.value && (
        <button class="pill" data-share onClick={() => void share()}>
          {shared.value ? t("top.copied") : t("top.share")}
        </button>
      )}
      <CompareMenu />
      <Export />
      <button class="pill" aria-expanded={sheet.value === "findings"} onClick={() => toggleSheet("findings")}>
        <b class={serious ? "bad" : ""}>{worst}</b> {t("top.findings")}
      </button>
      <button
        class="ic"
        lang={language.value === "en" ? "zh" : "en"}
        title={language.value === "en" ? "中文" : "English"}
        onClick={() => (language.value = language.value === "en" ? "zh" : "en")}
      >
        {language.value === "en" ? <b>EN</b> : "EN"} / {language.value === "zh" ? <b>中</b> : "中"}
      </button>
      <button class="ic" title={t(`theme.${theme.value}`)} aria-label={t(`theme.${theme.value}`)} onClick={nextTheme}>
        {theme.value === "system" ? "◐" : theme.value === "light" ? "○" : "●"}
      </button>
      <button class="ic" aria-label={t("help.title")} aria-expanded={sheet.value === "help"} onClick={() => toggleSheet("help")}>
        ?
      </button>
    </header>
  );
}
