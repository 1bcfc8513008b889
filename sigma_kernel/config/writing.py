"""Write a configuration as TOML again: every default filled in, every component as ``distribution:name``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import tomlkit

from sigma_kernel.config import schema
from sigma_kernel.config.choice import Choice, plain

_FORMAT = 1


def resolved(configuration: schema.Configuration) -> str:
    """Return the text of a file that means exactly this configuration, whatever plugins are installed later."""
    tree: dict[str, Any] = {"format": _FORMAT, "run": _table(configuration.run)}
    trainers = {name: _trainer(trainer) for name, trainer in configuration.trainers.items()}
    if list(trainers) == ["trainer"]:
        tree |= _alone(trainers["trainer"])
    else:
        tree["trainers"] = trainers
    tree["monitors"] = plain(configuration.monitors)
    return tomlkit.dumps({name: _readable(value) for name, value in tree.items() if value != {}})


def _table(record: Any) -> dict[str, Any]:
    values = {f.name: getattr(record, f.name) for f in attrs.fields(type(record))}
    return {name: _short(value) for name, value in values.items() if value is not None}


def _short(value: Any) -> Any:
    return value.name if isinstance(value, Choice) and not value.settings else plain(value)


def _trainer(trainer: schema.Trainer) -> dict[str, Any]:
    training = {f.name: getattr(trainer, f.name) for f in attrs.fields(schema.Training)}
    return {
        **_table(schema.Training(**training)),
        "data": _data(trainer.data),
        "network": {"architecture": str(trainer.network.architecture)},
        "initialisers": {n: {"match": r.match, **plain(r.type)} for n, r in trainer.initialisers.items()},
        "hooks": plain(trainer.hooks),
    }


def _data(data: schema.Data) -> dict[str, Any]:
    """Put the dataset's settings beside it, where ``--set data.folder=...`` finds them too."""
    table, inner = _table(data), plain(data.dataset.settings)
    if inner.keys() & table.keys():
        return table
    return {**table, "dataset": data.dataset.name, **inner}


def _alone(trainer: dict[str, Any]) -> dict[str, Any]:
    parts = ("data", "network", "initialisers", "hooks")
    own = {name: value for name, value in trainer.items() if name not in parts}
    found = {"data": trainer["data"], "network": trainer["network"], "initialisers": trainer["initialisers"]}
    return {**found, "trainer": own, "hooks": trainer["hooks"]}


def _readable(value: Any) -> Any:
    """Give a string of several lines the form of several lines."""
    if isinstance(value, Mapping):
        return {key: _readable(inner) for key, inner in value.items() if inner != {}}
    return tomlkit.string(f"\n{value}", multiline=True) if isinstance(value, str) and "\n" in value else value
