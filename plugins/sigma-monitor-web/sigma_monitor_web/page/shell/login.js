// The page that asks for name and password, where a dashboard is open to a team.
import { html, useEffect, useRef, useState } from "../lib.js";
import { logIn } from "../entering.js";
import { t } from "../words.js";

export function Login() {
  const [why, say] = useState(""), [sent, send] = useState(false), name = useRef(null), password = useRef(null);
  useEffect(() => { name.current.focus(); }, []);
  const enter = async (event) => {
    event.preventDefault();
    send(true);
    const error = await logIn(name.current.value.trim(), password.current.value);
    if (!error) return location.reload();
    send(false);
    say(error);
    password.current.value = "";
    password.current.focus();
    return undefined;
  };
  return html`<section class="card login" aria-labelledby="h-login"><h2 id="h-login">${t("login")}</h2>
    <form onSubmit=${enter}><label class="stack">${t("login.name")}<input ref=${name} type="text" name="username" autocomplete="username" autocapitalize="none" spellcheck=${false} required /></label>
      <label class="stack">${t("login.password")}<input ref=${password} type="password" name="password" autocomplete="current-password" required /></label>
      <button class="primary" disabled=${sent}>${t("login.enter")}</button><p class="fate refused" role="alert">${why}</p></form></section>`;
}
