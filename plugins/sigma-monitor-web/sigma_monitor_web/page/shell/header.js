// The header: the run, the views as links, the connection, language, theme, keys.
import { html } from "../lib.js";
import { Arrange } from "./arrange.js";
import { Icon } from "../widgets/icon.js";
import { Menu } from "../widgets/menu.js";
import { Again, Link, Notify, Others } from "../widgets/share.js";
import { look } from "../session.js";
import { store, useStore } from "../store.js";
import { nextLanguage, nextTheme } from "../looks.js";
import { languageAfter, t } from "../words.js";

const THEMES = { system: "theme", light: "sun", dark: "moon" };

function Run() {
  const hello = useStore((state) => state.hello), trainer = useStore((state) => state.trainer);
  const parts = (hello?.folder ?? "").split("/").filter(Boolean).slice(-2).join("/");
  const name = html`<b>${hello?.name ?? t("loading")}</b><span class="folder" title=${hello?.folder ?? undefined}>${parts}</span>`;
  if ((hello?.trainers.length ?? 0) < 2) return html`<p class="run">${name}</p>`;
  return html`<div class="run">${name}<${Menu} label=${t("trainer.choose")} icon="down" text=${trainer}>${(close) => hello.trainers.map((one) => html`
    <button class="quiet" type="button" aria-pressed=${String(one === trainer)} onClick=${() => { look(one); close(); }}>${one}</button>`)}<//></div>`;
}

function Connection() {
  const connection = useStore((state) => state.connection), steers = useStore((state) => !state.hello || state.hello.scopes.includes("steer"));
  const silent = useStore((state) => state.silent), calm = (connection === "online" && !silent) || connection === "over";
  const text = silent ? t("connection.silent", { n: silent }) : connection === "online" && !steers ? t("connection.reading") : t(`connection.${connection}`);
  return html`<span class=${`link ${calm ? "" : "off"} ${connection}`}><${Icon} name=${connection === "over" ? "check" : calm ? "dot" : "wait"} /><span>${text}</span></span>`;
}

export function Header({ views, view, help }) {
  const theme = useStore((state) => state.theme), next = languageAfter(useStore((state) => state.language));
  const says = `${next.code.toUpperCase()}: ${next.into}`;
  return html`<header class="top">
    <a class="brand" href=${`#${views[0].name}`} aria-label=${t("brand")}><svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true"><path d="M4 3.2h12v3H8.6L12.4 10l-3.8 3.8H16v3H4v-2.1L8.6 10 4 5.3z" /></svg></a>
    <${Run} />
    <nav aria-label=${t("views")}>${views.map((one) => html`<a key=${one.name} href=${`#${one.name}`} aria-current=${one.name === view ? "page" : undefined}>${t(`view.${one.name}`)}</a>`)}</nav>
    <div class="top-end">
      <${Connection} />
      <button class="quiet icon" id="find" type="button" aria-label=${t("find")} title=${`${t("find")} (${t("key.control.k")})`} aria-keyshortcuts="Control+K Meta+K" onClick=${() => store.set({ finding: true })}><${Icon} name="find" /></button>
      <${Menu} label=${t("share")} icon="link">${() => html`<${Link} /><${Others} /><${Again} /><${Notify} />`}<//>
      <${Arrange} view=${view} />
      <button class="quiet icon text" id="language" type="button" lang=${next.code} aria-label=${says} title=${says} onClick=${nextLanguage}>${next.code.toUpperCase()}</button>
      <button class="quiet icon" id="theme" type="button" aria-label=${t(`theme.${theme}`)} title=${`${t(`theme.${theme}`)} (T)`} aria-keyshortcuts="T" onClick=${nextTheme}><${Icon} name=${THEMES[theme]} /></button>
      <button class="quiet icon" id="keys" type="button" aria-label=${t("keys")} title=${`${t("keys")} (?)`} onClick=${help}><${Icon} name="keys" /></button>
    </div>
  </header>`;
}
