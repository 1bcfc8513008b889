// Edit and save the layout: views, panels of plugins on this one, and charts.
import { html, useState } from "../lib.js";
import { Menu } from "../widgets/menu.js";
import { useLanes } from "../charts/uselanes.js";
import { saveTabs } from "../entering.js";
import { maySteer, store, useStore } from "../store.js";
import { NAMES, panelsOn, tabsOf, withPanel, withView, written } from "../tabs.js";
import { t } from "../words.js";

const check = (key, text, on, change) => html`<label class="check" key=${key}><input type="checkbox" checked=${on} onChange=${change} /> ${text}</label>`;

export function Arrange({ view }) {
  const state = useStore((all) => all), { chosen } = useLanes(), [told, say] = useState("");
  const shown = tabsOf(state).map((one) => one.view), on = panelsOn(state, view).map((one) => one.name);
  const save = async () => {
    const layout = written(store.get(), chosen), answer = await saveTabs(layout);
    if (!answer.error) store.set({ tabs: layout.tabs, lanes: null });
    say(answer.error ?? t("layout.saved", { where: answer.saved }));
  };
  return html`<${Menu} label=${t("layout")} icon="layout">${() => html`
    <fieldset><legend>${t("views")}</legend>${NAMES.map((name) => check(name, t(`view.${name}`), shown.includes(name), () => store.set({ tabs: withView(store.get(), name) })))}</fieldset>
    ${state.panels.length ? html`<fieldset><legend>${t("layout.panels")}</legend>${state.panels.map(({ name, title }) =>
    check(name, title, on.includes(name), () => store.set({ tabs: withPanel(store.get(), view, name) })))}</fieldset>` : null}
    <button class="primary" type="button" disabled=${!maySteer(state)} onClick=${save}>${t("layout.save")}</button>
    <p class="note" role="status">${told || t("layout.hint")}</p>`}<//>`;
}
