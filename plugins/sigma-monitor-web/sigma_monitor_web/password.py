"""``sigma password``: let a person into dashboards that are open to a team."""

from __future__ import annotations

from pathlib import Path

import click

from sigma_http.passwords import hash_password
from sigma_kernel.errors import SigmaConfigError
from sigma_monitor_web.accounts import Account, check_name, read_accounts, write_accounts
from sigma_run.launcher import say


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("name")
@click.option("--read-only", is_flag=True, help="The person may watch, and not steer.")
@click.option("--remove", is_flag=True, help="Remove the person.")
def password(file: Path, name: str, read_only: bool, remove: bool) -> None:
    """Set the password of NAME in FILE, the accounts of a dashboard that is open to a team.

    It is typed, never an argument, and kept as a hash. Dashboards that are running notice the change.
    """
    check_name("NAME", name)
    accounts = read_accounts(file) if file.exists() else {}
    if remove:
        if accounts.pop(name, None) is None:
            raise SigmaConfigError(f"{file}: has no account {name!r}. It has {', '.join(accounts) or 'none'}.")
        write_accounts(file, accounts)
        say(f"{file}: {name} can no longer log in")
        return
    typed = click.prompt(f"Password of {name}", hide_input=True, confirmation_prompt=True, err=True)
    account = Account(name, "read" if read_only else "steer", hash_password(typed))
    write_accounts(file, {**accounts, name: account})
    say(f"{file}: {name} can log in and {'watch' if read_only else 'watch and steer'}")
