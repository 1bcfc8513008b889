// Where the page is drawn: in its document, or in the shadow root of a notebook's cell, which has neither a body nor an address.
let root = document;

export const drawIn = (shadow) => { root = shadow; };

// What is drawn, for colours and letters; an element of the page; and the one that has the focus.
export const home = () => root.body ?? root.firstElementChild;
export const find = (selector) => root.querySelector(selector);
export const focused = () => root.activeElement;

// Go to a view, where there are several.
export const goTo = (view) => { if (root === document) location.hash = view; };
