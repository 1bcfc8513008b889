// The tabs of the page and the panels on them: which there are, how they change, and how they are written into a file. Pure.
export const NAMES = ["train", "network", "data", "try", "runs", "journal"];

// The tabs in their order, all of them without a layout.
export const tabsOf = ({ tabs }) => (tabs.length ? tabs : NAMES.map((view) => ({ view })));

// The panels on a view: those that its tab names, else those that name the view.
export function panelsOn({ tabs, panels }, view) {
  const named = tabs.find((one) => one.view === view)?.panels;
  return panels.filter((one) => (named ? named.includes(one.name) : one.view === view));
}

// Show or hide a view, at its usual place; the last one stays.
export function withView(state, view) {
  const shown = tabsOf(state), left = shown.filter((one) => one.view !== view);
  if (left.length < shown.length) return left.length ? left : shown;
  const after = shown.findIndex((one) => NAMES.indexOf(one.view) > NAMES.indexOf(view));
  return shown.toSpliced(after < 0 ? shown.length : after, 0, { view });
}

// Put a panel on a view, or take it away.
export function withPanel(state, view, name) {
  const there = panelsOn(state, view).map((one) => one.name);
  const panels = there.includes(name) ? there.filter((one) => one !== name) : [...there, name];
  return tabsOf(state).map((tab) => (tab.view === view ? { ...tab, panels } : tab));
}

const chart = ({ patterns, title, section, hidden, log, bounds, tall }) => ({
  patterns, ...(title ? { title } : {}), ...(section ? { section } : {}), ...(hidden?.length ? { hidden } : {}), log: Boolean(log), ...(bounds ? { bounds } : {}), tall,
});

// How the charts are laid out: what is as usual is left out.
const display = ({ logAxis, columns, tight }) => ({ ...(logAxis ? { log: true } : {}), ...(columns > 1 ? { columns } : {}), ...(tight ? { tight: true } : {}) });

// The layout as it is now, for the file; charts that nobody has chosen stay the usual ones.
export function written(state, lanes) {
  const { axis, smoothing } = state, charts = lanes ? { charts: lanes.map(chart) } : {};
  const tabs = tabsOf(state).map(({ view, panels }) => ({ view, ...(panels ? { panels } : {}), ...(view === "train" ? { axis, smoothing, ...display(state), ...charts } : {}) }));
  return { format: 1, tabs };
}
