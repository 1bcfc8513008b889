// The vendored libraries under one name: preact draws, hooks keep state, htm writes elements as templates.
import { Fragment, h, render } from "./vendor/preact.js";
import { useCallback, useEffect, useId, useLayoutEffect, useMemo, useReducer, useRef, useState } from "./vendor/hooks.js";
import htm from "./vendor/htm.js";

const html = htm.bind(h);

export { Fragment, html, render, useCallback, useEffect, useId, useLayoutEffect, useMemo, useReducer, useRef, useState };
