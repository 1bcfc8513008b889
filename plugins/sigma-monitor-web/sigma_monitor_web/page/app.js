// The page: the frame around the views, and the current view.
import { html, render, useEffect, useState } from "./lib.js";
import { Banner } from "./shell/banner.js";
import { Deck } from "./shell/deck.js";
import { Finder } from "./shell/finder.js";
import { Foot, Help } from "./shell/help.js";
import { Header } from "./shell/header.js";
import { Login } from "./shell/login.js";
import { Panels } from "./shell/panels.js";
import { useCurves } from "./charts/uselanes.js";
import { PAST_VIEWS } from "./film.js";
import { Moment } from "./widgets/film.js";
import { VIEWS } from "./views/index.js";
import { announce, speakInto } from "./announce.js";
import { begin } from "./looks.js";
import { listen } from "./keys.js";
import { keep } from "./link.js";
import { watch } from "./notify.js";
import { phase, wording } from "./playback.js";
import { start } from "./session.js";
import { ofTrainer, store, useStore } from "./store.js";
import { tabsOf } from "./tabs.js";
import { count } from "./numbers.js";
import { t } from "./words.js";


const route = () => location.hash.slice(1).split("?")[0];

// The views in the order of the layout, all of them without one.
const arranged = (state) => tabsOf(state).map((tab) => VIEWS.find((view) => view.name === tab.view)).filter(Boolean);

// Say a change of state, and keep the title of the window up to date.
function useAnnouncements() {
  const now = useStore(phase), name = useStore((state) => state.hello?.name ?? "");
  const epoch = useStore((state) => ofTrainer(state)?.epoch ?? 0);
  useEffect(() => {
    if (now !== "offline") return undefined;
    const counting = setInterval(() => store.set({}), 1000);
    return () => clearInterval(counting);
  }, [now]);
  useEffect(() => { announce(wording(store.get()).filter(Boolean).join(", ")); }, [now]);
  useEffect(() => {
    const of = ofTrainer(store.get())?.epochs;
    if (name) document.title = of ? t("title.epoch", { name, epoch: count(epoch), of: count(of) }) : t("title", { name });
  }, [name, epoch, now]);
}

function App() {
  const [at, see] = useState(route), [help, open] = useState(false);
  const views = arranged({ tabs: useStore((state) => state.tabs) }), view = views.find((one) => one.name === at) ?? views[0];
  const login = useStore((state) => state.login);
  useStore((state) => state.language);
  useAnnouncements();
  useCurves();
  useEffect(() => {
    const changed = () => { see(route()); scrollTo(0, 0); };
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  const about = useStore((state) => state.hello?.version ?? "");
  return html`
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.querySelector("#main").focus(); }}>${t("skip")}</a>
    <p class="sr" role="status" aria-live="polite" ref=${speakInto}></p>
    <${Header} views=${views} view=${view.name} help=${() => open(true)} />
    <${Deck} /><${Banner} />${PAST_VIEWS.includes(view.name) ? html`<${Moment} />` : null}
    <main id="main" tabindex="-1">${login ? html`<${Login} />` : null}<section class="view" id=${`v-${view.name}`} hidden=${login} aria-labelledby=${`h-${view.name}`}>
      <h1 class="sr" id=${`h-${view.name}`}>${t(`view.${view.name}`)}</h1><${view.component} key=${view.name} /><${Panels} view=${view.name} /></section></main>
    <${Foot} about=${about ? `sigma ${about}` : ""} />
    <${Finder} views=${views} />
    <${Help} open=${help} views=${views.length} close=${() => open(false)} />`;
}

begin();
watch();
render(html`<${App} />`, document.querySelector("#page"));
listen(() => arranged(store.get()), (name) => { location.hash = name; });
start().then(() => keep(() => (arranged(store.get()).find((view) => view.name === route()) ?? arranged(store.get())[0]).name));
