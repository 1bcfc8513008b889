"""The table of the rules of `sigma data check`, from the rules."""

from __future__ import annotations

from sigma_data.examining.rules import RULES

COMMANDS = {"run": "`run`, `check`, `data check`", "check": "`check`, `data check`", "data": "`data check`"}


def text(_: str = "") -> str:
    """Return a table of the rules: what each looks for, what to do, and the commands that apply it, as MyST."""
    rows = [f"| `{rule.name}` | {rule.looks_for} | {rule.remedy} | {COMMANDS[rule.stage]} |\n" for rule in RULES]
    return "| rule | looks for | remedy | told by `sigma` |\n|---|---|---|---|\n" + "".join(rows)
