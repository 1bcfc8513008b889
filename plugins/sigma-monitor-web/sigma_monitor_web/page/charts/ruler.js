// The ticks below all charts.
import { t } from "../words.js";
import { rule, write } from "./paint.js";
import { palette } from "./palette.js";

export function paintRuler(pen, scene) {
  const { frame, sx, axis, small } = scene, colours = palette();
  const own = { colour: colours["ink-3"], family: colours.family };
  const most = Math.max(2, Math.floor((frame.right - frame.left) / (axis.clock ? 96 : 76)));
  for (const [place, text] of axis.ticks(most)) {
    const x = sx(place);
    if (x < frame.left - 1 || x > frame.right + 1) continue;
    rule(pen, Math.round(x) + 0.5, 0, Math.round(x) + 0.5, 5, colours.edge);
    write(pen, text, Math.min(x, frame.width - 4), 20, { ...own, align: small && x > frame.right - 16 ? "right" : "center" });
  }
  if (!small) write(pen, t(`axis.${axis.mode}.unit`), frame.right + 36, 20, own);
}
