// Sentences for screen readers: a change of state and the fate of a command, never every iteration.
let region = null;

export const speakInto = (element) => { region = element; };

export function announce(text) {
  if (region) region.textContent = text;
}
