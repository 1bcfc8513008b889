// Train: the charts on one time axis, and beside them the live settings, and the workers of a group.
import { html } from "../lib.js";
import { Board } from "../charts/board.js";
import { Hooks } from "../widgets/hooks.js";
import { Knobs } from "../widgets/knobs.js";
import { Swap } from "../widgets/swap.js";
import { Workers } from "../widgets/workers.js";
import { t } from "../words.js";

export const Train = () => html`<${Board} /><aside class="side" aria-label=${t("steer")}><${Knobs} /><${Hooks} /><${Swap} /><${Workers} /></aside>`;
