"""Conformance suite for hooks, which runs them in real sessions, to inherit in a plugin's tests.

::

    class TestAccuracy(HookSuite):
        def make(self) -> Hook:
            return Accuracy()
"""

from __future__ import annotations

import json
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from copy import copy, deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
from attrs import define, evolve, field

from sigma_kernel import functions as f
from sigma_kernel.clock import TimeStep, after, every
from sigma_kernel.contracts import Context, CostLayer, Hook, HookContext, Layer, Media, Operator, Parameter
from sigma_kernel.contracts.commanding import make_command
from sigma_kernel.encoding import pack
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaWarning
from sigma_kernel.graph.node import Node, Spec
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.plugins.resolver import Resolver
from sigma_kernel.registry.addresses import literal, matches
from sigma_testing.doing import Do
from sigma_testing.held import attributes, changed_attributes
from sigma_testing.steering import Desk, Sweep, small_environment, state_bytes
from sigma_testing.suite import Suite
from sigma_training.hooks.order import by_the_clock, reads

NATIVE = ("training.", "network.", "optimiser.", "optimisers.", "gradients.", "updates.", "activations.", "phases.")
IMAGES = np.random.default_rng(5).normal(size=(20, 4, 3)).astype(np.float32)
TIMES = ("epoch", "iteration", "sample", "second")


# -- a classifier ------------------------------------------------------------------------------------------------------
@define(eq=False)
class _Input(Layer):
    role: ClassVar[str] = "input"
    section: str = "inputs"

    def forward(self, context: Context, *inputs: Node, **_: Any) -> Node:
        return inputs[0]


@define(eq=False)
class _Linear(Layer):
    def parameters(self, *inputs: Spec, **_: Any) -> Mapping[str, Parameter]:
        return {"weights": Parameter((int(np.prod(inputs[0].shape)), 2), 0.01)}

    def forward(self, context: Context, *inputs: Node, **_: Any) -> Node:
        return f.flatten(inputs[0]) @ context.parameters["weights"]


@define(eq=False, kw_only=True)
class _CrossEntropy(CostLayer):
    def forward(self, context: Context, *inputs: Node, **_: Any) -> Node:
        return f.mean(f.softmax_cross_entropy(*inputs))

    def prediction(self, output: Node) -> Node:
        return f.softmax(output)


@define(eq=False, kw_only=True)
class _Square(CostLayer):
    def forward(self, context: Context, *inputs: Node, **_: Any) -> Node:
        return f.mean(f.square(inputs[0] - inputs[1]))


def small_classifier(operator: Operator, **settings: Any) -> Environment:
    """Return an environment that classifies 20 images of 4 by 3 pixels: is the upper half brighter than the lower."""
    labels = (IMAGES[:, :2].sum((1, 2)) > IMAGES[:, 2:].sum((1, 2))).astype(np.int32)
    return _model(small_environment(operator, **settings), labels, _CrossEntropy())


def small_regression(operator: Operator, **settings: Any) -> Environment:
    """Return an environment that predicts two numbers of 20 images of 4 by 3 pixels: their corners."""
    return _model(small_environment(operator, **settings), IMAGES[:, ::3, 0].copy(), _Square())


def _model(environment: Environment, targets: np.ndarray, cost: CostLayer) -> Environment:
    trainer, data = environment.trainer("trainer"), {"inputs": IMAGES, "targets": targets}
    trainer.data = {"training": data, "validation": data}
    trainer.network = _Input() + _Linear() + cost
    return environment


# -- one run -----------------------------------------------------------------------------------------------------------
@define(eq=False)
class Watched:
    """A hook's context that notes its actions, and refuses what no session guarantees."""

    hook: Hook
    inner: HookContext
    seen: Seen

    def __getattr__(self, name: str) -> Any:
        assert not name.startswith("_"), f"{name} is not part of a hook's context"
        assert hasattr(HookContext, name), f"{name} is not part of a hook's context"
        return getattr(self.inner, name)

    def evaluate(self, on: str, metrics: Any) -> Any:
        assert on in self.hook.splits, f"it evaluates {on!r} without declaring it in splits"
        return self.inner.evaluate(on, metrics)

    def losses(self, on: str, most: int | None = None) -> Any:
        assert on in self.hook.splits, f"it measures {on!r} without declaring it in splits"
        return self.inner.losses(on, most)

    def publish(self, address: str, value: Any) -> None:
        self.seen.published.append((address, pack(value.encode().hex() if isinstance(value, Media) else value)))
        self.inner.publish(address, value)

    def command(self, command: str, **arguments: Any) -> None:
        make_command(Resolver(catalogue()), command, arguments)
        self.seen.commands.append(command)
        self.inner.command(command, **arguments)

    def bring_back(self) -> None:
        self.seen.commands.append("bring back")
        self.inner.bring_back()


@define(eq=False)
class Seen:
    """The record of a hook in a run: its actions, changed attributes and memory, and the arrays at the end."""

    published: list[tuple[str, Any]] = field(factory=list)
    commands: list[str] = field(factory=list)
    fired: int = 0
    kept: list[str] = field(factory=list)  # attributes that changed
    memory: Any = None
    arrays: dict[str, bytes] = field(factory=dict)


def watch(hook: Hook, seen: Seen) -> Hook:
    """Return a copy of a hook that acts through :class:`Watched`, and notes which of its attributes that changes."""

    def fire(self: Any, context: HookContext) -> None:
        seen.fired += 1
        acts(self, own.fire, context)

    def at_end(self: Any, context: HookContext) -> None:
        acts(self, own.at_end, context)

    def acts(self: Any, act: Any, context: HookContext) -> None:
        before = deepcopy(_settings(self))
        try:
            act(self, Watched(self, context, seen))
        finally:
            seen.kept += changed_attributes(before, _settings(self))

    own, watcher = type(hook), copy(hook)
    named = {"__module__": own.__module__, "__qualname__": own.__qualname__}
    watcher.__class__ = type(own.__name__, (own,), {**named, "fire": fire, "at_end": at_end, "__slots__": ()})
    return watcher


def _settings(hook: Hook) -> dict[str, Any]:
    """Return the attributes of a hook that can be compared."""
    return {name: value for name, value in attributes(hook).items() if not callable(value)}


def _values_at(address: str, value: Any) -> Mapping[str, Any]:
    """Return the values that are given at an address, or for a pattern."""
    return {address: value} if literal(address) else value


class HookSuite(Suite):
    """Conformance tests of a hook: inherit, and override :meth:`make`; also :meth:`environment` for another network."""

    in_background: ClassVar[bool] = True  # False for a hook that guards, repeats, keeps or brings back

    @abstractmethod
    def make(self) -> Hook:
        """Return the hook under test."""

    def environment(self, hooks: Mapping[str, Hook]) -> Environment:
        """Return an environment whose trainer has these hooks; it trains for three epochs of four iterations."""
        return small_classifier(Sweep(), hooks=hooks)

    def values(self) -> dict[str, Any]:
        """Return the values for the hook to read, by address; by default, 0.5 at each, and none for a pattern.

        Give those that match a pattern by their addresses, or in a mapping under the pattern.
        """
        return {address: 0.5 for address in self.make().reads if literal(address)}

    def desk(self, values: dict[str, Any] | None = None) -> Desk:
        """Return a context for the hook alone; override it for hooks that need samples and outputs of other shapes."""
        return Desk(values or {})

    def run(self, hook: Hook | None, late: bool = False) -> Seen:
        """Train with a hook, and with one that publishes its reads, ``late``: from the second epoch."""
        seen, given = Seen(), self.values()
        read = reads(hook) if hook else ()
        own = {a: given.get(a, 0.5) for a in read if literal(a)}
        single = {a: x for pattern, value in given.items() for a, x in _values_at(pattern, value).items()}
        own |= {a: value for a, value in single.items() if any(matches(pattern, a) for pattern in read)}
        own = {a: value for a, value in own.items() if a not in TIMES and not a.startswith(NATIVE)}
        own = {a: value for a, value in own.items() if not any(matches(p, a) for p in (hook.writes if hook else ()))}
        does = lambda context: [context.publish(address, value) for address, value in own.items()]  # noqa: E731
        often = after(2, "epoch") if late else every(1, "epoch")
        hooks: dict[str, Hook] = {"first": Do(does=does, writes=[*own], every=often)}
        hooks |= {"it": watch(hook, seen)} if hook else {}
        with TemporaryDirectory() as folder, self.environment(hooks) as sigma:
            sigma.folder, trainer = Path(folder), sigma.trainer("trainer")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SigmaWarning)  # the hooks of the suite cannot be written down
                trainer.fit(epochs=3)
            seen.memory = trainer.session.state.memory.get("it", {}).get("hook", {})
            seen.arrays = {name: x for name, x in state_bytes(trainer).items() if name.startswith("network.")}
        return seen

    def use(self) -> None:
        """Make it, and use it once."""
        self.run(self.make())

    # -- alone ---------------------------------------------------------------------------------------------------------
    def test_it_declares_when_it_fires_and_what_it_reads_and_writes(self) -> None:
        """Return lists of addresses from reads, writes, requires and splits."""
        hook = self.make()
        assert isinstance(hook.every, TimeStep)
        for addresses in (hook.reads, hook.writes, hook.requires, hook.splits, hook.settable):
            assert not isinstance(addresses, str), f"{addresses!r}: must be a list of addresses"
            assert all(isinstance(address, str) and address for address in addresses)
        assert hook.scope in ("global", "local")
        assert hook.on_error in ("fail", "mute", "ignore")

    def test_it_runs_before_anything_has_been_published(self) -> None:
        """Expect None from context.read(), and no values for a pattern."""
        self.make().fire(self.desk())
        self.make().at_end(self.desk())

    def test_it_declares_that_it_ends_training(self) -> None:
        """Set `ends = True` in the class."""
        hook, desk = self.make(), self.desk(self.values())
        for _ in range(12):
            hook.fire(desk)
        stops = "stop" in [command for command, _ in desk.commands]
        assert not stops or hook.ends or hook.guards, "a hook that sends `stop` must declare `ends = True`"

    def test_its_memory_is_plain_data_and_is_its_only_state(self) -> None:
        """Keep numbers, strings, lists and dictionaries in context.memory."""
        desk, other = self.desk(self.values()), self.desk(self.values())
        hook = self.make()
        hook.fire(desk)
        hook.fire(desk)
        copied = json.loads(json.dumps(desk.memory))
        assert copied == desk.memory, "a hook's memory must be plain JSON values"
        hook.fire(other)
        fresh = self.desk(self.values())
        self.make().fire(fresh)
        assert other.memory == fresh.memory, "a hook must remember nothing outside its memory"

    # -- in a session --------------------------------------------------------------------------------------------------
    def test_it_runs_in_a_session_and_does_only_what_it_declared(self) -> None:
        """Declare its reads, writes and evaluations."""
        memory = self.run(self.make()).memory
        assert json.loads(json.dumps(pack(memory))) == pack(memory)

    def test_it_publishes_what_it_declares(self) -> None:
        """Publish every address in `writes`."""
        hook = self.make()
        result = self.run(hook)
        silent = {address for address in hook.writes if literal(address)} - {address for address, _ in result.published}
        assert not result.fired or not silent, (
            f"writes: {', '.join(sorted(silent))} is never published. Publish it, or remove the declaration; if it "
            "needs other values, give them in values()."
        )

    def test_it_runs_in_a_session_in_which_what_it_reads_comes_late(self) -> None:
        """Expect None from context.read() until there is a value, and no values for a pattern."""
        self.run(self.make(), late=True)

    def test_it_keeps_nothing_on_itself(self) -> None:
        """Keep state in context.memory."""
        hook = self.make()
        first, second = self.run(hook), self.run(hook)
        kept = sorted({*first.kept})
        assert not kept, f"fire() changes self.{', self.'.join(kept)}. A hook's memory is context.memory."
        if not by_the_clock({"it": hook}):
            assert (first.published, first.memory) == (second.published, second.memory)

    def test_equal_sessions_give_equal_values_unless_it_declares_the_clock(self) -> None:
        """Set `timed = True` if it uses the clock or random numbers."""
        first, second = self.run(self.make()), self.run(self.make())
        if not by_the_clock({"it": self.make()}):
            assert (first.published, first.commands, first.memory) == (second.published, second.commands, second.memory)

    def test_it_changes_training_by_commands_only(self) -> None:
        """Change no array that it reads; send commands."""
        result = self.run(self.make())
        if not result.commands:
            assert result.arrays == self.run(None).arrays

    def test_it_runs_in_the_background_on_a_snapshot(self) -> None:
        """Set `in_background = False` in the suite if it has to act at once."""
        if self.in_background:
            result = self.run(evolve(self.make(), background=True))
            if not result.commands:
                assert result.arrays == self.run(None).arrays
