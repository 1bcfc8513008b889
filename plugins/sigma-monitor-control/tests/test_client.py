"""The client in Python: values, commands, errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sigma_kernel.errors import SigmaAddressError, SigmaConfigError, SigmaStateError
from sigma_monitor_control import connect
from sigma_monitor_control.client import to_error


def test_values_are_read_by_short_names_and_patterns(serve: Any) -> None:
    serve()
    with connect() as run:
        assert run.get("accuracy") == 0.75
        assert run.get("every") == "1 epoch"
        assert math.isinf(run.get("epochs"))
        assert run.find("**.loss") == {"trainer.training.loss": 0.25, "trainer.validation.loss": 0.5}
        assert run.status()["trainers"]["trainer"]["iteration"] == 120
        (entry,) = run.entries("learning_rate")
        assert (entry["address"], entry["settable"]) == ("trainer.optimiser.learning_rate", True)


def test_errors_are_those_of_the_run(serve: Any) -> None:
    view = serve()
    view.refusals["go"] = "nothing is paused."
    with connect() as run:
        with pytest.raises(SigmaAddressError, match="loss: could be trainer.training.loss, trainer.validation.loss"):
            run.get("loss")
        with pytest.raises(SigmaAddressError, match=r"Call find\(\)"):
            run.get("**.loss")
        with pytest.raises(SigmaStateError, match="nothing is paused"):
            run.send("go")
        with pytest.raises(SigmaConfigError, match="do 'nonsense': unknown"):
            run.request("nonsense")
        assert run.get("accuracy") == 0.75  # it goes on


def test_an_unknown_kind_of_error_is_a_state_error() -> None:
    assert type(to_error({"kind": "ZeroDivisionError", "message": "x"})) is SigmaStateError
    assert type(to_error({"kind": "near", "message": "x"})) is SigmaStateError
    assert str(to_error({"kind": "SigmaAddressError", "message": "x: gone."})) == "x: gone."


def test_commands_return_the_moment_at_which_they_were_applied(serve: Any) -> None:
    view = serve()
    with connect() as run:
        assert run.set("learning_rate", np.float32(0.5)) == {"trainer": {"iteration": 7, "epoch": 1}}
        assert run.set("learning_rate", float("inf"))
        assert run.send("attach", name="a", hook={"type": "loss", "at": [np.int64(3), math.nan]})
    first, second, third = view.sent
    assert first.arguments == {"pattern": "trainer.optimiser.learning_rate", "value": 0.5}
    assert math.isinf(second.arguments["value"])
    assert third.arguments["hook"] == {"type": "loss", "at": [3, "nan"]}


def test_a_watch_yields_changes_and_other_requests_go_on_meanwhile(serve: Any) -> None:
    view = serve()
    with connect() as run:
        seen = run.watch("accuracy", every=0.1)
        assert next(seen) == (4.5, {"trainer.validation.accuracy": 0.75})
        assert run.get("accuracy") == 0.75
        other = run.watch("training.loss", every=0.1)
        assert next(other)[1] == {"trainer.training.loss": 0.25}
        other.close()
        view.entries_of["trainer.validation.accuracy"] = type(view.entries_of["trainer.epoch"])(
            "trainer.validation.accuracy", "number", 0.875
        )
        assert next(seen)[1] == {"trainer.validation.accuracy": 0.875}
        view.over.set()
        assert list(seen) == []
        with pytest.raises(SigmaStateError, match="the run has ended"):
            run.status()
        with pytest.raises(SigmaStateError, match="the run has ended"):
            run.status()


def test_a_watch_that_is_refused_raises(serve: Any) -> None:
    serve()
    with connect() as run, pytest.raises(SigmaAddressError, match="Did you mean 'accuracy'"):
        next(run.watch("acuracy"))


def test_a_watch_that_was_left_leaves_nothing_behind(serve: Any) -> None:
    serve()
    with connect() as run:
        for _ in range(3):
            seen = run.watch("accuracy", every=0.1)
            next(seen)
            seen.close()
            run.status()
        run.status()
        assert run._others == {}
