"""What hooks share that tell people outside of a run how it goes: when, in which words, and where their secrets are."""

from __future__ import annotations

import math
import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from sigma_hooks.report import format_value
from sigma_kernel import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.errors import SigmaConfigError

EVENTS = ("end", "failure", "plateau")
PATIENCE = 8.0  # seconds that a server may take
LONGEST = 4096  # bytes of a file with a secret


def check_reference(where: str, given: str) -> None:
    """Raise SigmaConfigError unless a setting says where a secret is: ``$NAME`` or the path of a file."""
    if given.startswith("$") and not given[1:].isidentifier():
        raise SigmaConfigError(
            f"{where}: {given!r:.100} is not the name of an environment variable. Write it like $NAME."
        )
    if "://" in given:
        raise SigmaConfigError(
            f"{where}: settings are written to the run folder, and this is a secret. Put it into an environment "
            "variable, and write $NAME; or into a file, and write its path."
        )


def read_secret(given: str) -> str:
    """Return the first line of an environment variable or a file; raise SigmaConfigError if there is none."""
    if given.startswith("$"):
        secret, place = os.environ.get(given[1:], ""), f"the environment variable {given[1:]}"
    else:
        place = f"the file {given}"
        try:
            with Path(os.path.expanduser(given)).open("rb") as file:
                secret = file.read(LONGEST).decode(errors="replace")
        except OSError as error:
            raise SigmaConfigError(f"{place} cannot be read: {error.strerror}") from None
    if not (secret := secret.strip().partition("\n")[0].rstrip()):
        raise SigmaConfigError(f"{place} is empty or missing")
    return secret


def _events(hook: Any, attribute: Any, given: Sequence[str]) -> None:
    wrong = [event for event in given if event not in EVENTS]
    if isinstance(given, str) or wrong or not given:
        raise SigmaConfigError(f"{type(hook).__name__}.on: must be some of {', '.join(EVENTS)} (got {given!r}).")


@frozen
class Announcement:
    """What is told: the event, the run, the moment, the values, and the reason of a failure."""

    event: str
    run: str
    epoch: int
    iteration: int
    values: Mapping[str, Any]
    why: str = ""

    @property
    def title(self) -> str:
        """Return the run and what happened to it."""
        what = {"end": "training has ended", "failure": "training has failed", "plateau": "a value has settled"}
        return f"{self.run}: {what[self.event]}"

    @property
    def text(self) -> str:
        """Return the whole in a few words."""
        values = ", ".join(f"{address} {format_value(value)}" for address, value in self.values.items())
        parts = [f"{self.title}, at epoch {self.epoch}, iteration {self.iteration}", self.why, values]
        return ". ".join(part.rstrip(".") for part in parts if part)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values; ``text`` is what Slack and its like show."""
        about = {"event": self.event, "run": self.run, "epoch": self.epoch, "iteration": self.iteration}
        return {"text": self.text, **about, "values": dict(map(_json_pair, self.values.items())), "why": self.why}


def _json_pair(item: tuple[str, Any]) -> tuple[str, Any]:
    """Return an address with a number that JSON has; with None for arrays and numbers that are not finite."""
    address, value = item
    number = value.item() if hasattr(value, "item") and getattr(value, "size", 1) == 1 else value
    finite = isinstance(number, str | bool) or (isinstance(number, int | float) and math.isfinite(number))
    return address, number if finite else None


@define(eq=False, kw_only=True)
class Notification(Hook):
    """The base of hooks that tell people outside: at the end, after a failure, and when a criterion begins to hold.

    A delivery that fails is a message of the run, and never more.

    Args:
        on: The events that are told: ``end``, ``failure``, and ``plateau``: the first of the firings in a row at which
            the criterion ``when`` holds.
        values: Addresses of values that are told.
    """

    every: TimeStep = every(1, "epoch")
    background: bool = True
    on_error: str = "ignore"
    on: Sequence[str] = field(default=EVENTS, validator=_events)
    values: Sequence[str] = ("training.loss", "validation.loss")

    outward = True

    @property
    def reads(self) -> Sequence[str]:
        """Return the addresses of the values."""
        return list(self.values)

    @abstractmethod
    def deliver(self, notice: Announcement) -> None:
        """Tell a notice; raise an OSError, an HTTPException or a SigmaConfigError if that fails."""

    def fire(self, context: HookContext) -> None:
        """Tell that the criterion has begun to hold."""
        if self.when is None or "plateau" not in self.on:
            return
        now, last = context.moment.count(self.every.scale), context.memory.get("held")
        context.memory["held"] = now
        if last is None or now - last > self.every.interval:
            context.log(f"plateau: {self.when} holds")
            self._tell(context, "plateau", f"{self.when} holds")

    def at_end(self, context: HookContext) -> None:
        """Tell that training has ended."""
        if "end" in self.on:
            self._tell(context, "end")

    def at_failure(self, context: HookContext, why: str) -> None:
        """Tell that training has failed, and why."""
        if "failure" in self.on:
            self._tell(context, "failure", why)

    def _tell(self, context: HookContext, event: str, why: str = "") -> None:
        moment, folder = context.moment, context.folder
        readings = {address: context.read(address) for address in self.values}
        values = {address: value for address, value in readings.items() if value is not None}
        run = "run" if folder is None else folder.name
        try:
            self.deliver(Announcement(event, run, moment.epoch, moment.iteration, values, why))
        except (OSError, ValueError, HTTPException, SigmaConfigError) as error:
            context.log(
                f"{type(self).__name__}: {event} was not told: {self.describe(error)}. Training is not affected."
            )

    def describe(self, error: Exception) -> str:
        """Return why a delivery failed, without secrets."""
        if isinstance(error, SigmaConfigError):
            return str(error)
        if isinstance(error, TimeoutError):
            return f"the server did not answer within {PATIENCE:.0f} s"
        return getattr(error, "strerror", None) or type(error).__name__
