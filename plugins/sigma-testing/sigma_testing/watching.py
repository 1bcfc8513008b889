"""Conformance suites for monitors and for the views that they watch, to inherit in a plugin's tests, and a fake view.

::

    class TestMine(MonitorSuite):
        def make(self) -> Monitor:
            return Mine()
"""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from attrs import asdict, define, field, frozen

from sigma_kernel.clock import Moment, TimeStep, every
from sigma_kernel.contracts import (
    AddressEntry,
    Branch,
    Hook,
    HookContext,
    HookEntry,
    LayerEntry,
    MediaEntry,
    Monitor,
    Operator,
    Panel,
    RowHistory,
    RowLosses,
    StateEntry,
    Stretch,
    Ticket,
    View,
    WorkEntry,
)
from sigma_kernel.contracts.storing import ALL, Checkpoint
from sigma_kernel.curves import BranchedCurves, Curve, Window, downsample
from sigma_kernel.errors import SigmaAddressError, SigmaError, SigmaStateError
from sigma_kernel.periods import Period
from sigma_kernel.registry.addresses import matches
from sigma_testing.steering import Slow, Sweep, small_environment, state_bytes, wait_until
from sigma_testing.suite import Suite, alike


@frozen(eq=False)
class FakeTrainerView:
    """A trainer as shown by a :class:`FakeView`."""

    view: FakeView

    def stretches(self, name: str, after: int = 0, most: int = 2000) -> tuple[int, list[Stretch]]:
        """Return the measured values after a cursor."""
        return self.view.stretches(f"{self.view.names[0]}.{name}", after, most)

    def points(self, name: str, window: Window, after: int = 0) -> tuple[int, list[Stretch]]:
        """Return the measured values in a window, or after a cursor."""
        return self.view.points(f"{self.view.names[0]}.{name}", window, after)

    def media(self) -> list[MediaEntry]:
        """Return the entries of the media that were given."""
        return [entry for entry, _ in self.view.published]

    def media_version(self) -> int | None:
        """Return how many were given; None without any."""
        return len(self.view.published) or None

    def read_media(self, key: str) -> bytes | None:
        """Return the bytes of one of them."""
        return next((data for entry, data in self.view.published if entry.key == key), None)

    def branches(self) -> list[Branch]:
        """Return the only branch."""
        return [Branch(0)]

    def periods(self) -> list[Period]:
        """Return the periods that were given."""
        return self.view.trained

    def network(self) -> list[LayerEntry]:
        """Return the layers that were given."""
        return self.view.layers

    def work(self) -> list[WorkEntry]:
        """Return the entries that were given."""
        return self.view.worked

    def record(self, readings: Mapping[str, float], units: Mapping[str, str]) -> None:
        """Add readings to those that were recorded."""
        self.view.recorded.append({name: (value, units[name]) for name, value in readings.items()})

    def hooks(self) -> list[HookEntry]:
        """Return the hooks that were given."""
        return self.view.attached

    def states(self) -> list[StateEntry]:
        """Return the states that were given."""
        return self.view.kept

    def state(self, iteration: int) -> FakeTrainerView:
        """Return the same view, if such a state was given; else raise SigmaStateError."""
        if iteration not in [state.iteration for state in self.view.kept]:
            raise SigmaStateError(f"iteration {iteration}: is not kept. Give the fake view this state.")
        return self

    def with_state(self, state: Checkpoint) -> FakeTrainerView:
        """Return the same view."""
        return self

    def parameters(self) -> dict[str, np.ndarray]:
        """Return the values that are the parameters of the layers that were given."""
        names = [name for layer in self.view.layers for name in layer.parameters if name in self.view.values]
        return {name: np.asarray(self.view.values[name]) for name in names}

    def splits(self) -> dict[str, int]:
        """Return one split of ten rows."""
        return {"training": 10}

    def classes(self) -> list[Any]:
        """Return no classes."""
        return []

    def columns(self) -> dict[str, list[str]]:
        """Return the names that were given."""
        return self.view.named

    def targets(self) -> dict[str, list[str]]:
        """Return no names."""
        return {}

    def rows(self, split: str, numbers: Sequence[int], prepared: bool = False) -> dict[str, np.ndarray]:
        """Return the given rows of the sections."""
        return {name: values[list(numbers)] for name, values in self.view.sections.items()}

    def losses(self, split: str, most: int | None = None) -> RowLosses:
        """Return losses that fall from row to row."""
        losses = RowLosses(np.arange(10), 1.0 / np.arange(1, 11), np.zeros(10, int), np.zeros(10, int))
        return losses if most is None else losses.worst(most)

    def row_history(self, split: str) -> RowHistory:
        """Return rows of which row n has the loss n, and every third was forgotten, n times."""
        rows, forgotten = np.arange(10), np.where(np.arange(10) % 3 == 0, np.arange(10), 0)
        losses = np.stack([rows + 0.5, rows - 0.5], axis=1).astype(np.float32)
        return RowHistory(rows, np.array([1, 2]), losses, rows.astype(float), rows % 2, forgotten, rows % 2 * 2 - 1)

    def edits(self) -> dict[str, dict[str, Any]]:
        """Return the edits that were given."""
        return self.view.edited

    def predict(self, samples: Any) -> dict[str, np.ndarray]:
        """Return the samples themselves."""
        return {"output": np.asarray(samples)}

    def activations(self, samples: Any) -> dict[str, np.ndarray]:
        """Return the samples themselves."""
        return {layer.name: np.asarray(samples) for layer in self.view.layers}


@define(eq=False)
class FakeView:
    """A view for tests of monitors: it shows given values, and records commands.

    ``values`` are by address, with ``entries_of`` for those whose kinds matter; ``measured`` holds the values of one
    branch, one per iteration; ``published`` are media with their bytes; ``recorded`` is what a monitor measured, with
    units. A command is applied at ``moment``, unless its name is in ``refusals``, with the reason.
    """

    values: dict[str, Any] = field(factory=dict)
    entries_of: dict[str, AddressEntry] = field(factory=dict)
    measured: dict[str, Sequence[float]] = field(factory=dict)
    layers: list[LayerEntry] = field(factory=list)
    attached: list[HookEntry] = field(factory=list)
    kept: list[StateEntry] = field(factory=list)
    noted: list[Mapping[str, Any]] = field(factory=list)
    sections: dict[str, np.ndarray] = field(
        factory=lambda: {"inputs": np.arange(20.0).reshape(10, 2), "targets": np.zeros(10, int)}
    )
    edited: dict[str, dict[str, Any]] = field(factory=dict)
    named: dict[str, list[str]] = field(factory=dict)
    texts: list[str] = field(factory=list)
    sent: list[Ticket] = field(factory=list)
    refusals: dict[str, str] = field(factory=dict)
    moment: Moment = Moment(iteration=7, epoch=1)
    state: str = "running"
    reason: str = ""  # why it failed
    name: str = "fake"
    folder: Path | None = None
    names: list[str] = field(factory=lambda: ["trainer"])
    over: threading.Event = field(factory=threading.Event)
    shown: type[FakeTrainerView] = FakeTrainerView
    published: list[tuple[MediaEntry, bytes]] = field(factory=list)
    worked: list[WorkEntry] = field(factory=list)
    recorded: list[Mapping[str, tuple[float, str]]] = field(factory=list)
    trained: list[Period] = field(factory=list)

    def status(self) -> str:
        """Return the state that was given."""
        return self.state

    def why(self) -> str:
        """Return the reason that was given."""
        return self.reason

    def wait(self, seconds: float) -> bool:
        """Sleep; return whether ``over`` is set."""
        return self.over.wait(seconds)

    def log(self, text: str) -> None:
        """Add a text to those that were given."""
        self.texts.append(text)

    def get(self, address: str) -> Any:
        """Return a value; raises SigmaAddressError if there is none."""
        if address not in self.values:
            raise SigmaAddressError(f"{address}: is not there. Give the fake view this value.")
        return self.values[address]

    def find(self, pattern: str) -> list[tuple[str, Any]]:
        """Return the values that match a pattern."""
        return [(address, value) for address, value in self.values.items() if matches(pattern, address)]

    def entries(self, pattern: str = "**") -> list[AddressEntry]:
        """Return the addresses that match a pattern."""
        plain = ((address, AddressEntry(address, value=value)) for address, value in self.find(pattern))
        return [self.entries_of.get(address, entry) for address, entry in plain]

    def stretches(self, address: str, after: int = 0, most: int = 2000) -> tuple[int, list[Stretch]]:
        """Return the measured values after a cursor."""
        values = np.array(self.measured.get(address, ()), float)
        at = np.arange(1, len(values) + 1)[after:]
        curve = Curve(at, at * 0, at * 0.1, *3 * [values[after:]])
        return len(values), [Stretch(0, downsample(curve, most))] if len(at) else []

    def points(self, address: str, window: Window, after: int = 0) -> tuple[int, list[Stretch]]:
        """Return the measured values in a window, or after a cursor."""
        cursor, stretches = self.stretches(address, after, ALL)
        lines = dict(enumerate(stretch.curve for stretch in stretches))
        return cursor, stretches if after else window.cut(BranchedCurves([Branch(0)], {"": lines})).stretches("")

    def trainers(self) -> list[str]:
        """Return the names that were given."""
        return self.names

    def trainer(self, name: str) -> FakeTrainerView:
        """Return the view of a trainer; all show the same."""
        return self.shown(self)

    def send(self, command: str, **arguments: Any) -> Ticket:
        """Record a command, and answer it."""
        self.sent.append(ticket := Ticket(len(self.sent) + 1, command, arguments))
        if command in self.refusals:
            ticket.answer.set_exception(SigmaStateError(self.refusals[command]))
        else:
            ticket.answer.set_result(dict.fromkeys(self.names, self.moment))
        return ticket

    def tickets(self, after: int = 0) -> list[Ticket]:
        """Return the commands after a number."""
        return self.sent[after:]

    def journal(self, after: int = 0) -> list[tuple[int, Mapping[str, Any]]]:
        """Return the rows that were given, after a number."""
        return list(enumerate(self.noted, 1))[after:]

    def messages(self, after: int) -> list[tuple[int, str]]:
        """Return the texts that were given, after a number."""
        return list(enumerate(self.texts, 1))[after:]


class ViewSuite(Suite):
    """Conformance tests of a view: inherit, and override :meth:`make` and :meth:`train`."""

    @abstractmethod
    def make(self) -> AbstractContextManager[View]:
        """Return a context with the view of a run whose trainers have trained for an epoch or more."""

    def test_every_entry_that_has_a_value_can_be_read(self) -> None:
        """``get`` returns the values that ``entries`` lists."""
        with self.make() as view:
            entries = view.entries()
            assert entries
            for entry in (entry for entry in entries if entry.value is not None):
                assert view.get(entry.address) == entry.value or entry.value != entry.value, entry
                assert [match.address for match in view.entries(entry.address)] == [entry.address]

    def test_only_arrays_have_shapes_and_no_array_has_a_value(self) -> None:
        """Tell the shapes of arrays, and no values of theirs."""
        with self.make() as view:
            assert all(entry.type == "array" or entry.shape is None for entry in view.entries())
            assert all(entry.value is None for entry in view.entries() if entry.type == "array")

    def test_an_unknown_address_is_refused(self) -> None:
        """Raise SigmaAddressError."""
        with self.make() as view, pytest.raises(SigmaAddressError):
            view.get("nowhere.at.all")

    def test_the_loss_of_every_trainer_was_measured_at_increasing_iterations(self) -> None:
        """Return one stretch per branch, of arrays of equal length."""
        with self.make() as view:
            assert view.trainers()
            for trainer in view.trainers():
                _, spans = view.stretches(f"{trainer}.training.loss")
                assert spans
                assert {span.branch for span in spans} <= {branch.number for branch in view.trainer(trainer).branches()}
                for span in spans:
                    assert (np.diff(span.curve.iterations) > 0).all()
                    assert len({len(getattr(span.curve, name)) for name in asdict(span.curve, recurse=False)}) == 1

    def test_reading_on_from_a_cursor_gives_nothing_twice(self) -> None:
        """Return the points after the cursor only."""
        with self.make() as view:
            for trainer in view.trainers():
                cursor, first = view.stretches(f"{trainer}.training.loss")
                later, more = view.stretches(f"{trainer}.training.loss", cursor)
                assert later >= cursor
                last = first[-1].curve.iterations[-1]
                assert all((span.curve.iterations > last).all() for span in more if span.branch == first[-1].branch)

    def test_few_points_keep_the_extremes_of_many(self) -> None:
        """Keep the least and the greatest value of the points that are left out."""
        with self.make() as view:
            for trainer in view.trainers():
                address = f"{trainer}.training.loss"
                every_one = view.stretches(address, 0, 10**9)[1]
                few = view.stretches(address, 0, 4)[1]
                assert len(few) == len(every_one)
                for thin, full in zip(few, every_one, strict=True):
                    assert len(thin.curve.values) <= max(2, len(full.curve.values))
                    assert np.nanmin(thin.curve.low) == np.nanmin(full.curve.low)
                    assert np.nanmax(thin.curve.high) == np.nanmax(full.curve.high)

    def test_the_points_of_a_chart_are_as_many_as_it_asks_for_and_go_on_from_a_cursor(self) -> None:
        """Return them without losing an extreme, and nothing twice."""
        with self.make() as view:
            for trainer in view.trainers():
                address = f"{trainer}.training.loss"
                cursor, every_one = view.points(address, Window(most=ALL))
                few = view.points(address, Window(most=4))[1]
                assert [stretch.branch for stretch in few] == [stretch.branch for stretch in every_one]
                assert sum(len(stretch.curve.values) for stretch in few) <= max(4, len(few))
                for extreme, of in ((np.nanmin, "low"), (np.nanmax, "high")):
                    extremes = [
                        extreme([extreme(getattr(stretch.curve, of)) for stretch in all_]) for all_ in (few, every_one)
                    ]
                    assert extremes[0] == extremes[1]
                last = every_one[-1].curve.iterations[-1]
                for stretch in view.points(address, Window(), cursor)[1]:
                    assert stretch.branch != every_one[-1].branch or (stretch.curve.iterations > last).all()
                beyond = view.points(address, Window(span=(1e12, 2e12)))[1]
                assert sum(len(stretch.curve.values) for stretch in beyond) <= len(beyond), "only what lies nearest."

    def test_what_was_not_measured_is_empty(self) -> None:
        """Return cursor 0 and no stretches."""
        with self.make() as view:
            assert view.stretches(f"{view.trainers()[0]}.never.measured") == (0, [])
            assert view.points(f"{view.trainers()[0]}.never.measured", Window()) == (0, [])

    def test_every_layer_has_its_sources_before_it(self) -> None:
        """Return the layers in the order of the network."""
        with self.make() as view:
            for trainer in view.trainers():
                before: set[str] = set()
                for layer in view.trainer(trainer).network():
                    assert {*layer.sources} <= before
                    before.add(layer.name)

    def test_work_is_that_of_layers_and_optimisers(self) -> None:
        """Estimate each layer of the network, or nothing, and let optimisers name layers and costs."""
        with self.make() as view:
            for trainer in view.trainers():
                layers = [layer.name for layer in view.trainer(trainer).network()]
                work = view.trainer(trainer).work()
                assert [entry.name for entry in work if not entry.component] in ([], layers)
                assert {name for entry in work for name in (*entry.updates, *entry.minimises)} <= {*layers}
                assert all(entry.operations is None or entry.operations >= 0 for entry in work)

    def test_rows_of_every_split_can_be_read_by_number(self) -> None:
        """Return the sections of rows in the order in which they are wanted."""
        with self.make() as view:
            for trainer in view.trainers():
                for split, count in view.trainer(trainer).splits().items():
                    arrays, first = (
                        view.trainer(trainer).rows(split, [count - 1, 0]),
                        view.trainer(trainer).rows(split, [0]),
                    )
                    assert {len(values) for values in arrays.values()} == {2}
                    assert all(values[1].tobytes() == first[name][0].tobytes() for name, values in arrays.items())

    def test_every_row_that_is_not_left_out_has_a_loss(self) -> None:
        """Return the loss of each row, or of the rows with the greatest losses."""
        with self.make() as view:
            for trainer in view.trainers():
                edits = view.trainer(trainer).edits()
                for split, count in view.trainer(trainer).splits().items():
                    losses, worst = view.trainer(trainer).losses(split), view.trainer(trainer).losses(split, 2)
                    assert {*losses.rows.tolist()} >= {*range(count)} - {*edits.get(split, {}).get("excluded", ())}
                    assert worst.losses.tolist() == sorted(losses.losses.tolist(), reverse=True)[:2]

    def test_states_are_in_order_and_can_be_reached(self) -> None:
        """Return each state once, by iteration, that a rewind can reach."""
        with self.make() as view:
            for trainer in view.trainers():
                states = view.trainer(trainer).states()
                assert [state.iteration for state in states] == sorted({state.iteration for state in states})
                assert all(state.kept or state.saved for state in states)

    def test_every_state_can_be_looked_at(self) -> None:
        """Show the parameters of each state, in the shapes of those of now, and refuse a state that is not kept."""
        with self.make() as view:
            for trainer in map(view.trainer, view.trainers()):
                now = {name: values.shape for name, values in trainer.parameters().items()}
                for state in trainer.states():
                    earlier = trainer.state(state.iteration)
                    assert {name: values.shape for name, values in earlier.parameters().items()} == now
                with pytest.raises(SigmaStateError):
                    trainer.state(10**9)

    def test_numbered_entries_are_read_on_from_the_last(self) -> None:
        """Return the entries after a number, by their numbers."""
        with self.make() as view:
            for read in (view.journal, view.messages):
                numbers = [number for number, _ in read(0)]
                assert numbers == sorted(set(numbers))
                assert [number for number, _ in read(numbers[-1] if numbers else 0)] == []

    def test_an_unknown_command_is_refused_on_its_ticket(self) -> None:
        """Return a ticket for any command, and refuse on it."""
        with self.make() as view:
            ticket = view.send("nonsense", of="every kind")
            with pytest.raises(SigmaError):
                ticket.result(60)
            assert ticket.state == "refused"
            assert ticket.why
            assert ticket.moments == {}
            assert ticket.number in [other.number for other in view.tickets()]


IMPORTS = re.compile(r"^\s*+import\b|\bimport\s*+\(|\bfrom\s*+[\"']", re.MULTILINE)


class PanelSuite(Suite):
    """Conformance tests of a panel of the dashboard: inherit, and override :meth:`make`."""

    @abstractmethod
    def make(self) -> Panel:
        """Return the panel under test."""

    def test_its_title_is_plain_and_short(self) -> None:
        """Let a title have 1 to 40 characters, and no markup."""
        title = self.make().title
        assert 0 < len(title) <= 40, f"a title has 1 to 40 characters (got {title!r})."
        assert not set(title) & set("<>&"), f"a title is plain text, without markup (got {title!r})."

    def test_its_view_is_a_name(self) -> None:
        """Name a view by one lower-case word, such as train."""
        view = self.make().view
        assert re.fullmatch(r"[a-z]++", view), f"a view is one lower-case word, such as train (got {view!r})."

    def test_its_script_exports_a_function_by_default(self) -> None:
        """Make the panel the default export of its module."""
        script = self.make().script
        assert re.search(r"^export default\b", script, re.MULTILINE), "a panel is the default export of its module."

    def test_its_script_is_one_file(self) -> None:
        """Import nothing: html and hooks are arguments."""
        script = self.make().script
        match = IMPORTS.search(script)
        assert not match, f"a panel imports nothing: it is given html and hooks (got {match and match[0]!r})."
        assert len(script.encode()) <= 2**20, "a panel has at most 1 MiB."

    def test_its_script_needs_nothing_that_the_page_forbids(self) -> None:
        """Leave out code that the policy of the page refuses."""
        script = self.make().script
        match = re.search(r"\beval\s*+\(|\bnew Function\b|https?://|\binnerHTML\b|\.style\s*+=", script)
        assert not match, f"the page allows no {match and match[0]}: scripts and styles come from its files alone."

    def test_its_script_ends_what_it_begins(self) -> None:
        """Return a function from an effect that clears its timers and listeners."""
        script, ends = self.make().script, {"setInterval": "clearInterval", "addEventListener": "removeEventListener"}
        left = [begin for begin, end in ends.items() if f"{begin}(" in script and f"{end}(" not in script]
        assert not left, f"it calls {left[0]}, and never {ends[left[0]]}: a panel that is closed goes on."

    def test_its_script_draws_and_updates_without_an_error(self) -> None:
        """Draw before there is any curve or value (`get` finds `{}`), with curves of 1, 2 and 40 points, and end."""
        script, node = self.make().script, shutil.which("node")
        if IMPORTS.search(script) or not re.search(r"^export default\b", script, re.MULTILINE):
            return  # which other tests refuse
        if node is None:
            pytest.skip("node is not installed, so that the script of the panel was not run. Install Node.js.")
        with TemporaryDirectory() as folder:
            (file := Path(folder, "panel.mjs")).write_text(script, "utf-8")
            harness = Path(__file__).with_name("panel.mjs")
            done = subprocess.run([node, str(harness), str(file)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"its script fails {done.stderr.strip()[:500]}"


class MonitorSuite(Suite):
    """Conformance tests of a monitor: inherit, and override :meth:`make`."""

    @abstractmethod
    def make(self) -> Monitor:
        """Return the monitor under test."""

    def operator(self) -> Operator:
        """Return an operator to train with."""
        return Sweep()

    def test_the_monitor_watches_a_run_and_ends_with_it(self) -> None:
        """Return from watch() once view.wait() is True, and raise nothing."""
        with small_environment(self.operator(), hooks={"slow": Slow()}) as sigma:
            sigma.monitors["it"] = self.make()
            thread = threading.Thread(target=sigma.run)
            thread.start()
            time.sleep(0.3)
            sigma.stop()
            thread.join(60)
            assert not thread.is_alive()
            wait_until(lambda: not [t for t in threading.enumerate() if t.name == "sigma-it"])  # its thread ends, too
            assert not [text for _, text in sigma.messages.entries_after(0) if "failed" in text]

    def test_it_does_not_change_the_bits_of_the_run(self) -> None:
        """Send no commands unasked."""
        states = []
        for monitors in ({}, {"it": self.make()}):
            with small_environment(self.operator()) as sigma:
                sigma.monitors.update(monitors)
                sigma.trainer("trainer").hooks = {"end": _End()}
                sigma.run()
                states.append(state_bytes(sigma.trainer("trainer")))
        assert alike(*states)


@define(eq=False, kw_only=True)
class _End(Hook):
    """Stop after two epochs."""

    every: TimeStep = every(2, "epoch")

    ends = True

    def fire(self, context: HookContext) -> None:
        """Stop."""
        context.command("stop")
