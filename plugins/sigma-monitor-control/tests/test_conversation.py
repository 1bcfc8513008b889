"""A conversation: every document is answered, in its scope, and none raises."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable
from concurrent.futures import Future
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sigma_kernel import Moment, catalogue
from sigma_kernel.contracts import AddressEntry, Branch, HookEntry, LayerEntry, StateEntry, TextValue, Ticket, WorkEntry
from sigma_kernel.periods import Period
from sigma_monitor_control.protocol import LONGEST, READS, STEERS, SUBSCRIBES, Conversation, subscriptions
from sigma_testing import FakeView
from sigma_testing.stores import media_entry
from sigma_testing.watching import FakeTrainerView

Ask = Callable[..., Any]


class Shown(FakeView):
    """A fake view, whose methods can be replaced."""


def view(**given: Any) -> Shown:
    kinds = [
        AddressEntry("trainer.training.loss", "number", 0.25),
        AddressEntry("trainer.optimiser.learning_rate", "number", 0.1, settable=True, above=0.0),
        AddressEntry("trainer.optimiser.1-output.weights.learning_rate", "number", 0.1, settable=True),
        AddressEntry("trainer.hooks.loss.every", "text", "1 epoch", settable=True),
        AddressEntry("trainer.epochs", "number", float("inf")),
        AddressEntry("trainer.data.training.rows", "whole", 10),
        AddressEntry("trainer.network.layers.1-output.weights", "array", None, shape=(2, 2)),
    ]
    values = {one.address: one.value for one in kinds}
    values["trainer.network.layers.1-output.weights"] = np.array([[1.0, 2.0], [3.0, 6.0]], np.float32)
    return Shown(**{"values": values, "entries_of": {one.address: one for one in kinds}, **given})


LOSS = "trainer.training.loss"


def asked(conversation: Conversation, do: str, id: Any = 1, **arguments: Any) -> Any:
    """Return the result of a request, or its error."""
    (line,) = conversation.receive(json.dumps({"id": id, "do": do, **arguments}))
    found = json.loads(line)
    assert found["id"] == id
    return found["result"] if "result" in found else found["error"]


@pytest.fixture
def ask() -> Ask:
    conversation = Conversation(view())
    return lambda do, **arguments: asked(conversation, do, **arguments)


# -- documents ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        (b"\xff\xfe\x00", "is not JSON"),
        ("[1, 2]", "is not a JSON object"),
        ('{"id": 1, "do": "get", "pattern": NaN}', "NaN is not a JSON number"),
        ("[" * 100_000, "is not JSON"),
        ("9" * 5_000, "is not JSON"),
        ('{"do": "status"}', "needs an 'id'"),
        ('{"id": true, "do": "status"}', "needs an 'id'"),
        ('{"id": [1], "do": "status"}', "needs an 'id'"),
        ('{"id": "' + "x" * 101 + '", "do": "status"}', "needs an 'id'"),
        ('{"id": 1}', "needs 'do'"),
        ('{"id": 1, "do": ["status"]}', "needs 'do'"),
        ('{"id": 1, "do": "stauts"}', "Did you mean 'status'?"),
        ('{"id": 1, "do": "status", "pattern": "x"}', "status: has no setting 'pattern'"),
        ('{"id": 1, "do": "get"}', "get.pattern: is missing. Give it a string."),
        ('{"id": 1, "do": "get", "pattern": 3}', "get.pattern: must be a string (got 3)"),
        ('{"id": 1, "do": "tickets", "after": true}', "tickets.after: must be a whole number"),
        ('{"id": 1, "do": "series", "addresses": ["a", 1]}', "must be a list, each a string"),
        ('{"id": 1, "do": "series", "addresses": ["a"], "after": {"a": "b"}}', "an object, each value a whole number"),
        ('{"id": 1, "do": "command", "name": "system"}', "command 'system': no plugin offers it"),
        ('{"id": 1, "do": "command", "name": "stop", "arguments": {"cause": "x"}}', "stop: has no setting 'cause'"),
        ('{"id": 1, "do": "command", "name": "step", "arguments": {"count": 1.5}}', "must be a whole number"),
        ('{"id": 1, "do": "command", "name": "exclude", "arguments": {"rows": ["x"]}}', "each a whole number"),
        ('{"id": 1, "do": "components", "kind": "source"}', "'kind' must be one of hook, optimiser, backend, iterator"),
        ('{"id": 1, "do": "watch", "patterns": []}', "needs 1 to 100 patterns"),
        ('{"id": 1, "do": "watch", "patterns": ["**"], "every": 0.01}', "'every' must be 0.1 to 3600 seconds"),
        ('{"id": 1, "do": "branches", "trainer": "critic"}', "there is no such trainer. There is trainer"),
    ],
)
def test_a_malformed_document_is_answered_and_nothing_is_sent(text: str | bytes, message: str) -> None:
    shown = view()
    conversation = Conversation(shown)
    (line,) = conversation.receive(text)
    found = json.loads(line)
    assert message in found["error"]["message"]
    assert found["error"]["kind"].startswith("Sigma")
    assert shown.sent == []
    assert asked(conversation, "hello")["protocol"] == 1  # it goes on


def test_an_answer_is_one_line_whatever_is_in_it() -> None:
    conversation = Conversation(view(texts=["two\nlines\u2028\x85"]))
    (line,) = conversation.receive('{"id": "a\\nb", "do": "messages"}')
    assert line.endswith("\n")
    assert len(line.splitlines()) == 1
    assert json.loads(line) == {"id": "a\nb", "result": [[1, "two\nlines\u2028\x85"]]}


def test_an_answer_that_is_too_long_is_refused() -> None:
    conversation = Conversation(view(texts=["x" * 1000] * (LONGEST // 1000)))
    assert "Ask for less" in asked(conversation, "messages")["message"]


def test_an_unexpected_error_is_answered_too() -> None:
    conversation = Conversation(view(), more={"broken": lambda view: 1 / 0})
    assert asked(conversation, "broken") == {
        "kind": "ZeroDivisionError",
        "message": "ZeroDivisionError: division by zero",
    }


def test_further_requests_can_be_added() -> None:
    def double(view: Any, number: float) -> float:
        return 2 * number

    assert asked(Conversation(view(), more={"double": double}), "double", number=4) == 8


@pytest.mark.parametrize(
    ("server", "client", "sender"),
    [
        (None, "anna", "anna"), (None, "an\x07na\n" + "x" * 100, "anna" + "x" * 60), (None, "", None),
        ("ben", "anna", "ben"), ("", "anna", None),
    ],
)  # fmt: skip
def test_the_sender_of_a_command_is_who_the_server_says_or_else_the_client(
    server: str | None, client: str, sender: str | None
) -> None:
    shown = view()
    conversation = Conversation(shown, who=server)
    assert asked(conversation, "command", name="pause", who=client)["who"] == (sender or "")
    assert shown.sent[0].arguments.get("who") == sender
    assert asked(conversation, "tickets")[0]["arguments"] == {}


# -- scopes ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("do", [*READS, *SUBSCRIBES])
def test_without_the_scope_read_nothing_can_be_read(do: str) -> None:
    conversation = Conversation(view(), scopes=frozenset({"steer"}))
    assert "not allowed here" in asked(conversation, do)["message"]


@pytest.mark.parametrize("do", STEERS)
def test_without_the_scope_steer_nothing_can_be_steered(do: str) -> None:
    shown = view()
    conversation = Conversation(shown, scopes=frozenset({"read"}))
    found = asked(conversation, do, pattern="learning_rate", value=1.0, name="stop")
    assert found == {"kind": "SigmaStateError", "message": f"{do}: not allowed here, as this connection may only read."}
    assert shown.sent == []


def test_the_scopes_are_told() -> None:
    assert asked(Conversation(view(), scopes=frozenset({"read"})), "hello")["scopes"] == ["read"]
    assert asked(Conversation(view()), "hello")["scopes"] == ["read", "steer"]


# -- reading -----------------------------------------------------------------------------------------------------------
def test_a_short_name_is_read(ask: Ask) -> None:
    assert ask("get", pattern="loss") == {"trainer.training.loss": 0.25}
    assert ask("get", pattern="learning_rate") == {"trainer.optimiser.learning_rate": 0.1}
    assert ask("get", pattern="training.loss", trainer="trainer") == {"trainer.training.loss": 0.25}


def test_a_pattern_is_read(ask: Ask) -> None:
    assert len(ask("get", pattern="**.learning_rate")) == 2
    assert "matches no value" in ask("get", pattern="**.nothing")["message"]
    assert ask("get", pattern="nothing")["kind"] == "SigmaAddressError"


def test_a_number_that_is_not_finite_is_a_string(ask: Ask) -> None:
    assert ask("get", pattern="epochs") == {"trainer.epochs": "inf"}


def test_an_array_is_summarised(ask: Ask) -> None:
    (found,) = ask("get", pattern="layers.1-output.weights").values()
    assert found == {
        "array": {"shape": [2, 2], "dtype": "float32", "low": 1.0, "high": 6.0, "mean": 3.0,
                  "deviation": float(np.std([1, 2, 3, 6]))}
    }  # fmt: skip


def test_an_array_is_read_by_another_thread_if_there_is_one() -> None:
    waiting: list[tuple[Callable[[], Any], Future[Any]]] = []

    def later(act: Callable[[], Any]) -> Future[Any]:
        waiting.append((act, Future()))
        return waiting[-1][1]

    conversation = Conversation(view(), later=later)
    assert conversation.receive('{"id": 1, "do": "get", "pattern": "1-output.weights"}') == []
    assert conversation.waits
    assert asked(conversation, "get", id=2, pattern="loss") == {"trainer.training.loss": 0.25}  # meanwhile
    assert (
        "another request with this id"
        in json.loads(conversation.receive('{"id": 1, "do": "status"}')[0])["error"]["message"]
    )
    act, future = waiting[0]
    future.set_result(act())
    (line,) = conversation.answers()
    assert json.loads(line)["id"] == 1
    assert not conversation.waits


def test_a_read_that_is_cancelled_or_whose_client_has_left_is_not_computed() -> None:
    futures, shared = [Future[Any](), Future[Any]()], Future[Any]()
    conversation = Conversation(view(), later=lambda act: futures[-1], more={"shared": lambda view: shared})
    assert conversation.receive('{"id": 1, "do": "get", "pattern": "1-output.weights"}') == []
    assert asked(conversation, "cancel", id=2, of=1) is True
    assert futures.pop().cancelled()
    assert conversation.receive('{"id": 1, "do": "get", "pattern": "1-output.weights"}') == []
    assert conversation.receive('{"id": 2, "do": "shared"}') == []
    conversation.close()
    assert futures.pop().cancelled()
    assert not shared.cancelled()  # others may wait for it
    assert not conversation.waits


def test_the_status_has_what_each_trainer_measured(ask: Ask) -> None:
    found = ask("status")
    assert found["status"] == "running"
    assert found["trainers"]["trainer"]["values"] == {"trainer.training.loss": 0.25}
    assert found["trainers"]["trainer"]["epochs"] == "inf"
    assert found["trainers"]["trainer"]["rows"] == 10


def test_entries_have_their_kinds(ask: Ask) -> None:
    (found,) = ask("entries", pattern="trainer.optimiser.learning_rate")
    assert (found["type"], found["settable"], found["above"], found["value"]) == ("number", True, 0.0, 0.1)
    (array,) = ask("entries", pattern="**.layers.*.weights")
    assert (array["type"], array["shape"], array["value"]) == ("array", [2, 2], None)


def test_a_series_is_read_on_from_its_cursor() -> None:
    conversation = Conversation(view(measured={"trainer.training.loss": [3.0, float("nan"), 1.0]}))
    found = asked(conversation, "series", addresses=["trainer.training.loss"])["trainer.training.loss"]
    (stretch,) = found["stretches"]
    assert (found["next"], stretch["branch"]) == (3, 0)
    assert (stretch["iteration"], stretch["value"]) == ([1, 2, 3], [3.0, None, 1.0])
    after = {"trainer.training.loss": 2}
    found = asked(conversation, "series", addresses=["trainer.training.loss", "trainer.nothing"], after=after)
    assert found["trainer.training.loss"]["stretches"][0]["value"] == [1.0]
    assert found["trainer.nothing"] == {"next": 0, "whole": True, "stretches": []}


def test_a_series_is_read_in_a_part_of_an_axis_and_in_few_points() -> None:
    conversation = Conversation(view(measured={LOSS: [float(i) for i in range(1, 1001)]}))
    for over, span in (("iteration", [300, 500]), ("second", [30.0, 50.0])):
        (stretch,) = asked(conversation, "series", addresses=[LOSS], span=span, over=over)[LOSS]["stretches"]
        assert stretch["iteration"] == [*range(299, 502)]
    found = asked(conversation, "series", addresses=[LOSS], span=[300, 500], most=20)[LOSS]
    (stretch,) = found["stretches"]
    assert found["whole"]
    assert len(stretch["value"]) == 20
    assert (min(stretch["low"]), max(stretch["high"])) == (299, 501)


def test_any_number_of_series_is_answered_with_fewer_points_of_each() -> None:
    names = [f"trainer.value{i}" for i in range(500)]
    conversation = Conversation(view(measured={name: [float(i) for i in range(3000)] for name in names}))
    found = asked(conversation, "series", addresses=names, most=4000)
    assert {len(found[name]["stretches"][0]["value"]) for name in names} == {64}


def test_one_who_was_away_for_long_is_told_the_whole_in_few_points() -> None:
    conversation = Conversation(view(measured={LOSS: [float(i) for i in range(3000)]}))
    some = asked(conversation, "series", addresses=[LOSS], after={LOSS: 2900}, most=100)[LOSS]
    assert (some["whole"], some["stretches"][0]["iteration"]) == (False, [*range(2901, 3001)])
    many = asked(conversation, "series", addresses=[LOSS], after={LOSS: 2899}, most=100)[LOSS]
    assert (many["whole"], len(many["stretches"][0]["iteration"]), many["next"]) == (True, 100, 3000)


@pytest.mark.parametrize("span", [[1], [2, 1], [1, 2, 3]])
def test_a_span_that_is_no_part_of_an_axis_is_refused(span: list[int]) -> None:
    told = asked(Conversation(view(measured={LOSS: [1.0]})), "series", addresses=[LOSS], span=span)
    assert told["kind"] == "SigmaConfigError"
    assert "'span' must be the first and the last place on the axis" in told["message"]


def test_an_axis_that_is_none_is_refused() -> None:
    told = asked(Conversation(view(measured={LOSS: [1.0]})), "series", addresses=[LOSS], over="hour")
    assert told["kind"] == "SigmaConfigError"
    assert "'iteration' or 'epoch' or 'second' (got 'hour')" in told["message"]


def test_the_branches_of_a_resumed_run_are_those_before_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    rewinds = [{"trainer": "trainer", "command": "rewind", "branch": n, "parent": n - 1, "to": 10 * n} for n in (1, 2)]
    shown = view(noted=[{"event": "begin"}, *rewinds])
    monkeypatch.setattr(FakeTrainerView, "branches", lambda self: [Branch(2), Branch(3, 2, 30)])
    found = asked(Conversation(shown), "branches")
    assert [(one["number"], one["parent"], one["start"]) for one in found] == [
        (0, None, 0), (1, 0, 10), (2, 1, 20), (3, 2, 30),
    ]  # fmt: skip


def test_the_periods_of_a_trainer_are_objects_and_are_followed() -> None:
    shown = view(trained=[Period(0, 1.5, 1000.0, 2.0)])
    one = {"branch": 0, "second": 1.5, "time": 1000.0, "seconds": 2.0}
    assert asked(Conversation(shown), "periods", trainer="trainer") == [one]
    following = subscriptions.follow(shown)
    assert following.event(0.0)["periods"] == [one]
    assert "periods" not in (following.event(2.0) or {})
    shown.trained.append(Period(0, 3.5, 1100.0))
    assert following.event(4.0)["periods"] == [one, {**one, "second": 3.5, "time": 1100.0, "seconds": 0.0}]


def test_records_of_a_trainer_are_objects() -> None:
    shown = view(
        layers=[LayerEntry("1-output", "output", (), (2,), {"a.weights": (2, 2)}, {"size": 2})],
        attached=[HookEntry("loss", "loss", "1 epoch", "", (), False, False)],
        kept=[StateEntry(10, 1, True, False)],
        noted=[{"command": "pause"}],
        worked=[WorkEntry("1-output", 24, {"parameters": 16})],
    )
    conversation = Conversation(shown)
    assert asked(conversation, "work")[0]["sizes"] == {"parameters": 16}
    assert asked(conversation, "network")[0]["parameters"] == {"a.weights": [2, 2]}
    assert asked(conversation, "hooks", trainer="trainer")[0]["every"] == "1 epoch"
    assert asked(conversation, "states") == [
        {"iteration": 10, "epoch": 1, "kept": True, "saved": False, "name": "", "note": ""}
    ]
    assert asked(conversation, "journal") == [[1, {"command": "pause"}]]
    assert asked(conversation, "branches") == [{"number": 0, "parent": None, "start": 0}]
    assert asked(conversation, "splits") == {"training": 10}


def test_of_several_trainers_one_has_to_be_named() -> None:
    conversation = Conversation(view(names=["actor", "critic"]))
    assert asked(conversation, "network")["message"] == "trainer: there are actor, critic. Name one."


# -- steering ----------------------------------------------------------------------------------------------------------
def test_a_command_is_answered_once_it_was_applied() -> None:
    shown = view()
    found = asked(Conversation(shown), "set", pattern="learning_rate", value=0.01)
    assert (found["state"], found["moments"]) == ("applied", {"trainer": {"iteration": 7, "epoch": 1}})
    assert shown.sent[0].arguments == {"pattern": "trainer.optimiser.learning_rate", "value": 0.01}


def test_a_queued_command_is_acknowledged_at_once_and_answered_later() -> None:
    shown, ready = view(), list[bool]()
    ticket = Ticket(1, "pause", {})
    shown.send = lambda command, **arguments: ticket  # type: ignore[method-assign]
    conversation = Conversation(shown)
    conversation.notify(lambda: ready.append(True))
    (line,) = conversation.receive('{"id": 5, "do": "command", "name": "pause"}')
    told = json.loads(line)
    assert (told["id"], told["event"]["ticket"]["number"], told["event"]["ticket"]["state"]) == (5, 1, "queued")
    assert (conversation.answers(), ready) == ([], [])
    ticket.answer.set_result({"trainer": Moment(iteration=3)})
    assert ready == [True]
    (line,) = conversation.answers()
    assert json.loads(line)["result"]["state"] == "applied"
    assert conversation.answers() == []


def test_what_a_command_has_changed_is_told_before_the_interval_has_passed() -> None:
    shown = view()
    ticket = Ticket(1, "pause", {})
    shown.send = lambda command, **arguments: shown.sent.append(ticket) or ticket  # type: ignore[method-assign,func-returns-value]
    conversation = Conversation(shown)
    conversation.receive('{"id": 1, "do": "follow", "every": 100}')
    events(conversation, 0)
    conversation.receive('{"id": 2, "do": "command", "name": "pause"}')
    assert events(conversation, 1) == []
    ticket.answer.set_result({})
    conversation.answers()
    (news,) = events(conversation, 2)
    assert [one["state"] for one in news["tickets"]] == ["applied"]
    assert events(conversation, 3) == []


def test_a_refused_command_says_why() -> None:
    conversation = Conversation(view(refusals={"go": "nothing is paused."}))
    found = asked(conversation, "command", name="go")
    assert (found["state"], found["why"], found["kind"]) == ("refused", "nothing is paused.", "SigmaStateError")


@pytest.mark.parametrize("name", [one.name for one in catalogue().components("command")])
def test_every_command_reaches_the_run_with_its_arguments(name: str) -> None:
    arguments: dict[str, Any] = {
        "set": {"pattern": "learning_rate", "value": 1.0},
        "step": {"count": 2, "scale": "epoch"},
        "rewind": {"to": 3},
        "attach": {"name": "a", "hook": {"type": "loss"}},
        "detach": {"name": "a"},
        "swap": {"slot": "optimiser", "component": "adam"},
        "exclude": {"rows": [1, 2]},
        "include": {"rows": [1, 2], "split": "validation"},
        "relabel": {"rows": [1], "label": "cat"},
        **{command: {"pattern": "network.layers.**"} for command in ("freeze", "release")},
    }.get(name, {})
    shown = view()
    found = asked(Conversation(shown), "command", name=name, arguments=arguments, trainer="trainer")
    assert found["state"] == "applied"
    (sent,) = shown.sent
    assert sent.command == name
    known = {key: value for key, value in arguments.items() if key != "pattern"}
    assert sent.arguments.items() >= known.items()


def test_a_name_that_could_be_several_is_refused_with_the_candidates() -> None:
    shown = view()
    found = asked(Conversation(shown), "set", pattern="weights", value=1.0)
    assert found["kind"] == "SigmaAddressError"
    shown.entries_of["critic.optimiser.learning_rate"] = AddressEntry("critic.optimiser.learning_rate", settable=True)
    shown.values["critic.optimiser.learning_rate"] = 0.1
    found = asked(Conversation(shown), "set", pattern="learning_rate", value=1.0)
    assert "could be trainer.optimiser.learning_rate, critic.optimiser.learning_rate" in found["message"]
    assert shown.sent == []


def test_what_can_only_be_read_is_not_set() -> None:
    shown = view()
    assert (
        asked(Conversation(shown), "set", pattern="loss", value=1)["message"] == "trainer.training.loss: is read-only."
    )
    assert shown.sent == []


def test_a_pattern_sets_all_that_it_matches_within_a_trainer() -> None:
    shown = view()
    asked(Conversation(shown), "set", pattern="**.learning_rate", value="nan", trainer="trainer")
    assert shown.sent[0].arguments["pattern"] == "trainer.**.learning_rate"
    assert np.isnan(shown.sent[0].arguments["value"])


def test_a_text_that_looks_like_a_number_stays_a_text() -> None:
    shown = view()
    asked(Conversation(shown), "set", pattern="loss.every", value="inf")
    assert shown.sent[0].arguments["value"] == "inf"


# -- subscriptions -----------------------------------------------------------------------------------------------------
def events(conversation: Conversation, now: float) -> list[Any]:
    return [json.loads(line)["event"] for line in conversation.events(now)]


def test_a_watch_tells_what_has_changed() -> None:
    shown = view()
    conversation = Conversation(shown)
    assert conversation.receive('{"id": 1, "do": "watch", "patterns": ["loss", "**.learning_rate"], "every": 2}') == []
    (first,) = events(conversation, 0.0)
    assert len(first["values"]) == 3
    assert events(conversation, 2.5) == []  # nothing is new
    change(shown, "trainer.training.loss", 0.125)
    assert events(conversation, 3.0) == []  # not due
    assert [one["values"] for one in events(conversation, 4.5)] == [{"trainer.training.loss": 0.125}]


def change(shown: FakeView, address: str, value: Any) -> None:
    shown.values[address] = value
    shown.entries_of[address] = AddressEntry(address, "number", value)


def test_a_value_that_is_not_finite_is_not_always_new() -> None:
    shown = view()
    change(shown, "trainer.training.loss", float("nan"))
    conversation = Conversation(shown)
    conversation.receive('{"id": 1, "do": "watch", "patterns": ["loss"], "every": 0.1}')
    assert [one["values"] for one in events(conversation, 0)] == [{"trainer.training.loss": "nan"}]
    assert events(conversation, 1) == []


def test_a_cancelled_subscription_is_over() -> None:
    conversation = Conversation(view())
    conversation.receive('{"id": 1, "do": "watch", "patterns": ["loss"]}')
    assert conversation.is_subscribed
    assert asked(conversation, "cancel", id=2, of=1) is True
    assert not conversation.is_subscribed
    assert events(conversation, 100) == []
    assert asked(conversation, "cancel", id=3, of=1) is False


@pytest.mark.parametrize("left", [[], [1.0, 2.0]])
def test_points_that_a_resume_replaced_are_told_again_as_a_whole(left: list[float]) -> None:
    shown = view(measured={LOSS: [1.0, 2.0, 3.0]})
    conversation = Conversation(shown)
    conversation.receive(json.dumps({"id": 1, "do": "follow", "addresses": [LOSS]}))
    assert events(conversation, 0)[0]["series"][LOSS]["next"] == 3
    shown.measured, whole = {LOSS: left}, shown.points
    shown.points = lambda address, window, after=0: (0, []) if after == 3 else whole(address, window, after)  # type: ignore[method-assign]
    told = events(conversation, 1)[0]["series"][LOSS]
    assert (told["whole"], told["next"]) == (True, len(left))
    assert [x for stretch in told["stretches"] for x in stretch["value"]] == left


def test_following_tells_everything_once() -> None:
    shown = view(measured={"trainer.training.loss": [1.0]}, noted=[{"event": "begin"}], texts=["hello"])
    shown.send("pause")
    open_ = Ticket(2, "go", {})
    shown.sent.append(open_)
    conversation = Conversation(shown)
    conversation.receive('{"id": 1, "do": "follow", "every": 0.5, "addresses": ["trainer.training.loss"]}')
    (first,) = events(conversation, 0)
    assert first["journal"] == [[1, {"event": "begin"}]]
    assert first["messages"] == [[1, "hello"]]
    assert [one["state"] for one in first["tickets"]] == ["applied", "queued"]
    assert first["series"]["trainer.training.loss"]["next"] == 1
    assert first["status"]["status"] == "running"
    assert first["states"] == []
    assert first["branches"] == [{"number": 0, "parent": None, "start": 0}]
    assert events(conversation, 1) == []
    assert [one.keys() for one in events(conversation, 2.5)] == [{"status"}]  # a sign of life
    shown.measured["trainer.training.loss"] = [1.0, 0.5]
    open_.answer.set_result({})
    (second,) = events(conversation, 3)
    assert second.keys() == {"tickets", "series"}
    assert [(one["number"], one["state"]) for one in second["tickets"]] == [(2, "applied")]
    assert second["series"]["trainer.training.loss"]["stretches"][0]["value"] == [0.5]
    shown.state = "paused"
    shown.texts.append("more")
    (third,) = events(conversation, 4)
    assert third.keys() == {"status", "messages"}


def test_what_is_published_later_is_followed_by_its_pattern() -> None:
    late = "trainer.validation.loss"
    shown = view(measured={LOSS: [1.0]})
    conversation = Conversation(shown)
    conversation.receive('{"id": 1, "do": "follow", "every": 0.5, "addresses": ["trainer.*.loss"]}')
    assert events(conversation, 0)[0]["series"].keys() == {LOSS}
    shown.values[late], shown.entries_of[late] = None, AddressEntry(late)  # a hook declares it
    (declared,) = events(conversation, 1)
    assert (late, "any") in [(one["address"], one["type"]) for one in declared["entries"]]
    assert "series" not in declared
    shown.values[late], shown.entries_of[late] = 0.5, AddressEntry(late, "number", 0.5)
    shown.measured[late] = [0.5]
    (published,) = events(conversation, 2)
    assert (late, "number", 0.5) in [(one["address"], one["type"], one["value"]) for one in published["entries"]]
    assert published["series"][late]["stretches"][0]["value"] == [0.5]
    shown.values[late], shown.entries_of[late] = None, AddressEntry(late)  # what was published once stays a number
    assert [[*event] for event in events(conversation, 4)] == [["status"]]


def test_an_address_is_followed_before_it_is_published_and_one_of_no_trainer_is_no_error() -> None:
    late = "trainer.late"
    shown = view()
    conversation = Conversation(shown)
    conversation.receive(json.dumps({"id": 1, "do": "follow", "every": 0.5, "addresses": [late, "nobody.late"]}))
    assert "series" not in events(conversation, 0)[0]
    shown.measured[late] = [1.0]
    (event,) = events(conversation, 1)
    assert event["series"].keys() == {late}


def test_more_addresses_than_an_event_holds_are_not_sent_but_matched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "MOST_ENTRIES", 3)
    conversation = Conversation(view(measured={LOSS: [1.0]}))
    conversation.receive('{"id": 1, "do": "follow", "addresses": ["**.loss"]}')
    (first,) = events(conversation, 0)
    assert "entries" not in first
    assert first["series"].keys() == {LOSS}


def test_addresses_that_take_long_to_list_are_listed_the_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, seconds = view(), iter(np.arange(0, 100, 0.04))  # 40 ms each
    monkeypatch.setattr(subscriptions, "time", SimpleNamespace(perf_counter=lambda: next(seconds)))
    conversation = Conversation(shown)
    conversation.receive('{"id": 1, "do": "follow", "every": 0.5}')
    events(conversation, 0)
    shown.values["trainer.late"] = 1.0
    assert [at for at in (1, 2, 3.9) for event in events(conversation, at) if "entries" in event] == []
    assert "entries" in events(conversation, 5)[0]


def test_following_goes_on_from_what_is_known() -> None:
    shown = view(measured={"trainer.training.loss": [1.0, 0.5]}, noted=[{"event": "begin"}] * 3, texts=["a", "b"])
    for command in ("pause", "go"):
        shown.send(command)
    conversation = Conversation(shown)
    known = {"journal": 2, "messages": 1, "tickets": 1, "after": {"trainer.training.loss": 1}, "most": 10}
    asking = {"id": 1, "do": "follow", "trainer": "trainer", "addresses": ["trainer.training.loss"], **known}
    assert conversation.receive(json.dumps(asking)) == []
    (first,) = events(conversation, 0)
    assert [number for number, _ in first["journal"]] == [3]
    assert first["messages"] == [[2, "b"]]
    assert [one["command"] for one in first["tickets"]] == ["go"]
    assert first["series"]["trainer.training.loss"]["stretches"][0]["value"] == [0.5]


def test_states_are_told_again_when_they_have_changed() -> None:
    shown = view()
    conversation = Conversation(shown)
    conversation.receive('{"id": 1, "do": "follow", "every": 0.1}')
    assert events(conversation, 0)[0]["states"] == []
    shown.kept.append(StateEntry(10, 1, True, False))
    assert events(conversation, 0.5) == []  # they are looked at once a second
    assert [one.keys() for one in events(conversation, 1.5)] == [{"states"}]


def test_following_no_trainer_of_several_tells_the_states_of_all() -> None:
    conversation = Conversation(view(names=["actor", "critic"]))
    conversation.receive('{"id": 1, "do": "follow"}')
    (first,) = events(conversation, 0)
    assert first["states"] == {"actor": [], "critic": []}
    assert "branches" not in first


def test_components_have_their_settings(ask: Ask) -> None:
    found = {one["name"]: one for one in ask("components", kind="optimiser")}
    for one in found.values():
        assert one["summary"].endswith(".")
        assert all(setting["name"] and setting["type"] for setting in one["settings"])


def test_an_error_ends_its_subscription_alone() -> None:
    shown = view()
    conversation = Conversation(shown)
    conversation.receive('{"id": 1, "do": "watch", "patterns": ["loss"]}')
    conversation.receive('{"id": 2, "do": "follow"}')
    shown.trainers = lambda: [1 / 0]  # type: ignore[method-assign, list-item]
    assert [json.loads(line)["error"]["kind"] for line in conversation.events(0)] == ["ZeroDivisionError"] * 2
    assert not conversation.is_subscribed
    assert asked(conversation, "get", pattern="loss")


def test_requests_that_are_not_over_are_bounded() -> None:
    conversation = Conversation(view())
    for id in range(64):
        assert conversation.receive(json.dumps({"id": id, "do": "watch", "patterns": ["loss"]})) == []
    assert "64 requests are pending" in asked(conversation, "status", id=64)["message"]


def test_at_the_end_every_request_is_answered() -> None:
    shown = view()
    shown.send = lambda command, **arguments: Ticket(1, command, arguments)  # type: ignore[method-assign]
    conversation = Conversation(shown)
    conversation.receive('{"id": 1, "do": "watch", "patterns": ["loss"]}')
    conversation.receive('{"id": 2, "do": "command", "name": "pause"}')
    event, answer = map(json.loads, conversation.last_lines())
    assert event["event"]["values"] == {"trainer.training.loss": 0.25}
    assert answer == {"id": 2, "error": {"kind": "SigmaStateError", "message": "the run has ended."}}


@pytest.mark.parametrize("label", [None, "cat", 3, 0.5, True, [1, 2], {"targets": 1}])
def test_a_row_is_given_any_label_and_with_null_that_of_the_data_again(label: Any) -> None:
    shown = view()
    asked(Conversation(shown), "command", name="relabel", arguments={"rows": [1], "label": label})
    assert [(ticket.command, ticket.arguments) for ticket in shown.sent] == [
        ("relabel", {"rows": [1], "label": label, "split": "training"})
    ]


def test_null_stands_for_an_argument_that_is_left_out_but_where_it_says_something() -> None:
    conversation = Conversation(view())
    for arguments, message in (
        ({"rows": [1]}, "relabel.label: is missing. Give it a string"),
        ({"rows": None, "label": 1}, "relabel.rows: is missing. Give it a list"),
    ):
        assert message in asked(conversation, "command", name="relabel", arguments=arguments)["message"]


# -- media -------------------------------------------------------------------------------------------------------------
def with_media(*iterations: int, name: str = "a.b") -> Shown:
    return view(published=[media_entry(n, TextValue(f"{name} {n}"), name=name) for n in iterations])


def test_media_are_listed_by_name_and_their_bytes_are_sent() -> None:
    conversation = Conversation(with_media(1, 2))
    found = asked(conversation, "media")
    assert found["a.b"]["total"] == 2
    (first, second) = found["a.b"]["entries"]
    assert (first["iteration"], first["kind"], first["is_left"], first["facts"]["beginning"]) == (
        1,
        "text",
        False,
        "a.b 1",
    )
    assert "name" not in first
    medium = asked(conversation, "medium", key=second["key"])
    assert (medium["type"], b64decode(medium["data"])) == ("text/plain", b"a.b 2")


def test_of_many_moments_some_are_listed_evenly_with_the_first_and_the_last() -> None:
    conversation = Conversation(with_media(*range(1, 1001)))
    shown = asked(conversation, "media", most=10)["a.b"]
    numbers = [entry["iteration"] for entry in shown["entries"]]
    assert (shown["total"], len(numbers), numbers[0], numbers[-1]) == (1000, 10, 1, 1000)
    assert {after - before for before, after in pairwise(numbers)} == {111}
    part = asked(conversation, "media", span=[100.0, 104.5])["a.b"]
    assert [entry["iteration"] for entry in part["entries"]] == [100, 101, 102, 103, 104]
    assert [entry["iteration"] for entry in asked(conversation, "media", most=1)["a.b"]["entries"]] == [1000]
    assert asked(conversation, "media", name="other") == {}


def test_an_answer_about_very_many_names_is_no_longer_than_it_may_be() -> None:
    published = [media_entry(n, TextValue("x" * 80), name=f"n{name}") for name in range(200) for n in range(100)]
    conversation = Conversation(view(published=published))
    (line,) = conversation.receive(json.dumps({"id": 1, "do": "media", "most": 1000}))
    assert len(line) < LONGEST
    assert {len(own["entries"]) for own in json.loads(line)["result"].values()} == {20}


@pytest.mark.parametrize(
    ("do", "arguments", "text"),
    [
        (
            "medium",
            {"key": "../config.toml"},
            "medium: ../config.toml is not there, or no longer. Ask for the media again.",
        ),
        ("medium", {"key": "0" * 32 + ".txt"}, "is not there, or no longer"),
        ("media", {"span": [2.0, 1.0]}, "media: 'span' must be the first and the last iteration (got [2.0, 1.0])."),
        ("media", {"span": [2.0]}, "'span' must be the first and the last iteration"),
        ("media", {"trainer": "other"}, "there is no such trainer"),
    ],
)
def test_what_is_no_media_is_refused(do: str, arguments: dict[str, Any], text: str) -> None:
    assert text in asked(Conversation(with_media(1)), do, **arguments)["message"]


def test_who_follows_a_run_is_told_that_there_are_new_media_and_nothing_without_any() -> None:
    seen = with_media()
    conversation = Conversation(seen)
    conversation.receive('{"id": 1, "do": "follow"}')

    def events(now: float) -> list[dict[str, Any]]:
        return [json.loads(line)["event"] for line in conversation.events(now)]

    assert all("media" not in event for event in events(1.0))
    seen.published.append(media_entry(1, TextValue("1")))
    assert [event["media"] for event in events(3.0) if "media" in event] == [1]
    assert all("media" not in event for event in events(5.0))
    seen.published.append(media_entry(2, TextValue("2")))
    assert [event["media"] for event in events(7.0) if "media" in event] == [2]
