"""The context of a hook: what it may read, publish and command while it runs in the training thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, Concatenate

from attrs import define, evolve, field

from sigma_kernel.arrays import protect
from sigma_kernel.clock import Moment
from sigma_kernel.contracts import Hook, Media
from sigma_kernel.contracts.storing import StoredRun
from sigma_kernel.encoding import unpack
from sigma_kernel.registry.addresses import literal
from sigma_step.model import Model
from sigma_step.steps import Iteration, Steps
from sigma_training.evaluator import Evaluator
from sigma_training.hooks.background import BACKGROUND, HookCall
from sigma_training.hooks.context import MeasuringContext, P, R
from sigma_training.hooks.order import check_read, check_write, reads
from sigma_training.session import keeping
from sigma_training.session.current import CurrentRun


@define(eq=False)
class HookView(MeasuringContext):
    """The context of one hook; a local scope is a prefix of addresses, such as ``workers.0.``."""

    run: CurrentRun
    name: str
    scope: str = ""
    second: float | None = None  # of the journal, for a hook that depends on the wall clock
    hook: Hook = field(init=False)
    _memory: dict[str, Any] = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Hold the hook and its memory, as the hook may detach itself."""
        present = self.run.present
        self.hook, self._memory = present.setup.order.hooks[self.name], present.state.memory[self.name]

    @property
    def moment(self) -> Moment:
        """Return the current moment; for a hook that depends on the wall clock, with the second at which it fired."""
        now = self.run.present.state.moment
        return now if self.second is None else evolve(now, second=self.second)

    @property
    def memory(self) -> dict[str, Any]:
        """Return the hook's own memory."""
        memory: dict[str, Any] = self.run.present.state.memory.get(self.name, self._memory)["hook"]
        return memory.setdefault(self.scope, {}) if self.scope else memory

    @property
    def stored_run(self) -> StoredRun | None:
        """Return the stored run, if there is one."""
        return self.run.recorder.stored

    @property
    def model(self) -> Model:
        """Return the model."""
        return self.run.present.setup.model

    def measure(
        self, what: str, act: Callable[Concatenate[Evaluator, Steps, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Return the result of a method of the evaluator, at the current parameters, or at the hook's own weights."""
        return self.run.measure(self.hook.weights, act, *args, **kwargs)

    def read(self, address: str) -> Any:
        """Return a value that the hook declared in ``reads``, or None if there is none yet."""
        check_read(self.name, self.hook, address)
        return protect(self.run.lookup(address, self.scope))

    def direction(self, address: str) -> str:
        """Return which values at an address are better."""
        return self.run.present.setup.direction(address)

    def publish(self, address: str, value: Any) -> None:
        """Publish a value under an address that the hook declared in ``writes``, unless it has detached itself."""
        check_write(self.name, self.hook, address, value)
        if self.run.present.setup.order.hooks.get(self.name) is not self.hook:
            return
        if not isinstance(value, Media):
            self.run.publish(self.scope + address, value)
        elif (media := self.describe_media(address, value)) is not None:
            self.run.recorder.keep_media(self.moment, self.scope + address, *media)

    def command(self, command: str, **arguments: Any) -> None:
        """Apply a command at this boundary."""
        with self.run.recorder.on_behalf(self.name):
            self.run.commands.apply(self.run.commands.make(command, **arguments))

    @property
    def iteration(self) -> Iteration | None:
        """Return the last iteration, if a hook is due that repeats it."""
        return self.run.present.last.iteration

    def keep(self) -> None:
        """Keep a copy of the parameters, of layer state, and of the optimiser's slots."""
        self.run.put(keeping.keep(self.run.present, self.name))

    def bring_back(self) -> None:
        """Restore the copy that was kept last."""
        self.run.put(keeping.restore_kept(self.run.present, self.name))

    def log(self, text: str) -> None:
        """Log a message for people."""
        self.run.recorder.log(text)

    # -- the background ------------------------------------------------------------------------------------------------
    def freeze(self, place: str = BACKGROUND) -> HookCall:
        """Return a firing of the hook elsewhere, on copies of everything that it declared."""
        hook, run, background = self.hook, self.run, self.run.background
        values: dict[str, Any] = {}
        for address in reads(hook):
            value = run.lookup(address, self.scope)
            single = {} if value is None else {address: value}  # None would be a value that a pattern matches
            values |= single if literal(address) else value
        return HookCall(
            self.name, self.scope, hook, self.moment, run.recorder.stored if place == BACKGROUND else None,
            known=deepcopy(values),
            fresh=background.fresh(self.moment) if place == BACKGROUND else {},
            memory=deepcopy(self.memory),
            evaluator=background.evaluator,
            steps=run.present.copy_steps(hook.weights) if hook.splits else evolve(run.present.steps(), arrays={}),
            directions=run.present.setup.directions,
            place=place,
        )  # fmt: skip

    def apply(self, row: Mapping[str, Any]) -> None:
        """Apply the results of a background firing from its journal row."""
        self.take_over(row)
        self.obey(row)

    def take_over(self, row: Mapping[str, Any]) -> None:
        """Take over the memory of a firing elsewhere, and what it has logged and published."""
        if "memory" in row:
            self.memory.clear()
            self.memory.update(unpack(row["memory"]))
        for text in row["logged"]:
            self.log(text)
        for address, value in row["published"].items():
            self.publish(address, unpack(value))
        for address, about in row.get("media", {}).items():  # whose bytes were written before
            self.run.recorder.keep_media(self.moment, self.scope + address, about)

    def obey(self, row: Mapping[str, Any]) -> None:
        """Apply the commands of a firing elsewhere."""
        for command, arguments in row["commands"]:
            self.command(command, **unpack(arguments))
