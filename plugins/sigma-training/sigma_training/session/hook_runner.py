"""The hook runner: runs the hooks that are due, in their order, and applies what others have found.

Hooks of local scope run in the workers, if these are elsewhere: on a snapshot of what they declare, as background hooks
do. They run so in this process too: what a run computes does not depend on who its workers are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from attrs import define, evolve, field

from sigma_kernel.clock import Moment, TimeScale
from sigma_kernel.contracts import Hook
from sigma_kernel.contracts.media import FOLDER
from sigma_kernel.errors import SigmaTrainingError, error_text
from sigma_training.history.replay import Row
from sigma_training.hooks.background import WORKER, HookCall
from sigma_training.hooks.order import ROWS
from sigma_training.hooks.policies import Budgets, fail, holds, limit
from sigma_training.session.checkpoint_policy import CheckpointPolicy
from sigma_training.session.current import CurrentRun
from sigma_training.session.hook_view import HookView
from sigma_training.session.timing import Timed

LATER = "Lower the learning rate, clip the gradients, or add a nan_guard hook."
FIRST = (
    "No update was made yet: look for data or labels that the cost does not accept, such as more labels than ctc has "
    "steps for, for numbers that are too large for the precision, and for initial values that are too large."
)

FIRST_ROWS = f"workers.0.{ROWS}"  # which are there if the rows of any worker are

RunCalls = Callable[[Sequence[HookCall]], bool]  # in workers elsewhere; False if there are none


@define(eq=False, repr=False)
class HookRunner:
    """Run the hooks of the current run."""

    current: CurrentRun
    checkpoints: CheckpointPolicy
    _elsewhere: RunCalls | None = field(default=None, init=False)
    _settled: Moment = field(factory=Moment, init=False)  # hooks that were due until then have run
    _budgets: Budgets = field(factory=Budgets, init=False)

    def run_elsewhere(self, run: RunCalls | None) -> None:
        """Let hooks of local scope run in workers elsewhere from now on; None for this process."""
        self._elsewhere = run

    # -- which are due -------------------------------------------------------------------------------------------------
    def run_due(self) -> Moment:
        """Run the hooks that are due since the last time; return the moment of that."""
        before, now = self._settled, self.current.moment
        self._settled = now
        due = self._due(before, now)
        with Timed(self.current.phases, "hooks"):
            for name in due if self.current.present.last.finite else self._guards(due):
                self.fire(name)
        return before

    def settle_at(self, moment: Moment) -> None:
        """Take all hooks that are due up to a moment for done."""
        self._settled = moment

    def tick(self, scale: TimeScale) -> None:
        """Run the hooks that are due at an event, such as start or stop."""
        state = self.current.state
        before, now = state.moment, state.moment.tick(scale)
        self.current.set_state(evolve(state, moment=now))
        self._settled = now
        order, memory = self.current.setup.order, state.memory
        with self.checkpoints.save_together():
            for name in order.active(memory) if scale is TimeScale.STOP else ():
                self._conclude(name)
            for name in self._due(before, now):
                self.fire(name, at_once=scale is TimeScale.STOP)  # nothing trains at that time

    def _due(self, before: Moment, now: Moment) -> list[str]:
        """Return the hooks that are due; in a replay, all that depend on the wall clock too: the journal decides."""
        order = self.current.setup.order
        due = order.due(self.current.state.memory, before, now)
        if self.current.recorder.replay is None:
            return due
        return [name for name in order.names if name in due or name in order.clock_dependent]

    def _guards(self, due: list[str]) -> list[str]:
        """Return the hooks to run after a loss that is not finite; raise SigmaTrainingError if none handles it."""
        order = self.current.setup.order
        for name in (name for name in due if order.hooks[name].repeats):  # they find wrong numbers: a possible cause
            self.fire(name)
        run = self.current.present
        if not (guards := order.guards(run.state.memory)):
            now, what = run.state.moment, f"{run.setup.name}: the loss is {run.state.published['training.loss']}"
            raise SigmaTrainingError(
                f"{what} at iteration {now.iteration} (epoch {now.epoch}). {LATER if now.iteration > 1 else FIRST} "
                "The backend 'debug' (sigma run --debug-ops) names the op that it comes from."
            )
        return list(dict.fromkeys((*guards, *due)))

    # -- running one ---------------------------------------------------------------------------------------------------
    def fire(self, name: str, at_once: bool = False) -> None:
        """Run one hook if its criterion holds; a hook of local scope once in each worker.

        A background hook is queued with a snapshot, unless it is to run ``at_once``.
        """
        hook, order = self.current.setup.order.hooks.get(name), self.current.setup.order
        beside = hook is not None and not at_once and order.in_background(name, self.current.state.memory)
        if hook is None or beside or hook.scope == "global":
            self._run_in_each_scope(name, lambda scope: self._fire_in(scope, name, beside))
        else:
            self._fire_in_workers(name, hook)

    def _fire_in_workers(self, name: str, hook: Hook) -> None:
        """Run a hook of local scope in all workers; then take over what each has left, and last obey their commands."""
        views = list[HookView]()
        self._run_in_each_scope(name, lambda scope: views.extend(self._views(scope, name)))
        calls = [view.freeze(WORKER) for view in views]
        if calls and (self._elsewhere is None or not self._elsewhere(calls)):
            for call in calls:
                call.run()
        for call in calls:
            if isinstance(call.error, KeyboardInterrupt):
                raise call.error
            if self._is_active(name, hook):
                self._budgets.took(name, hook, call.seconds)
                self._attempt(name, partial(self._write_files, call.files))
                self._apply(call.row, HookView.take_over)
        for call in calls:  # a command may rewind the run, or detach the hook
            if self._is_active(name, hook):
                self._apply(call.row, HookView.obey)
                self._report(hook, call.row, call.error)

    def _write_files(self, files: Mapping[str, bytes]) -> None:
        """Write files of the run, if it is stored; media are kept without that, too."""
        stored, media = self.current.recorder.stored, self.current.recorder.media
        for name, data in files.items():
            if name.startswith(FOLDER):
                media.write(name, data)
            elif stored is not None:
                stored.write(name, data, durable=False)

    def _conclude(self, name: str) -> None:
        """Let a hook act at the end of training."""

        def conclude(scope: str) -> None:
            view = HookView(self.current, name, scope)
            if not self._is_left_out(view.hook):
                view.hook.at_end(view)

        self._run_in_each_scope(name, conclude)

    def report_failure(self, why: str) -> None:
        """Let all hooks act after a failure of training; what they raise is a message, as that is what failed."""
        if self.current.recorder.replay is not None:
            return
        for name in self.current.setup.order.active(self.current.state.memory):
            view = HookView(self.current, name)
            try:
                view.hook.at_failure(view, why)
            except Exception as error:  # the failure of training is what is raised
                self.current.recorder.log(f"hook {name!r}: {error_text(error)}")

    def _is_left_out(self, hook: Hook) -> bool:
        """Return whether a hook does not run now, as it acts outside, and this is a replay."""
        return hook.outward and self.current.recorder.replay is not None

    def _run_in_each_scope(self, name: str, act: Callable[[str], None]) -> None:
        hook = self.current.setup.order.hooks.get(name)
        local = hook is not None and hook.scope == "local"
        workers = self.current.state.workers(self.current.setup)
        for scope in [f"workers.{worker}." for worker in range(workers)] if local else [""]:
            if self._is_active(name, hook):  # an earlier firing may have detached or muted it
                self._attempt(name, partial(act, scope))

    def _fire_in(self, scope: str, name: str, beside: bool) -> None:
        for view in self._views(scope, name):
            if self._is_left_out(view.hook):
                continue
            if not beside:
                self._budgets.run(name, view.hook, view)
            elif self.current.recorder.replay is None:  # else its results are in the journal
                self.current.background.submit(view.freeze())

    def _views(self, scope: str, name: str) -> list[HookView]:
        """Return the context of a hook in a scope, if its criterion holds there, and there is what it observes."""
        current = self.current
        if not self._has_rows(scope, name):
            return []
        view, setup, memory = HookView(current, name, scope), current.setup, current.state.memory
        if name in setup.listening:
            self._read_other_trainers(name)
        asked = partial(holds, view.hook, memory[name], view, scope)
        if name not in setup.order.clock_dependent:
            return [view] if asked() else []
        second = current.recorder.judge(current.moment, name, scope, asked)
        return [] if second is None else [HookView(current, name, scope, second)]

    def _has_rows(self, scope: str, name: str) -> bool:
        """Return whether a worker has rows of the batch that a hook observes: a small one has fewer shards."""
        order, observed = self.current.setup.order, self.current.present.last.observed
        return name not in order.observers or FIRST_ROWS not in observed or scope + ROWS in observed

    def _read_other_trainers(self, name: str) -> None:
        """Take over what other trainers have published last of what a hook reads; the journal holds it."""
        setup, state = self.current.setup, self.current.state
        new = dict[str, Any]()
        for other, asked in setup.listening[name]:
            values = setup.others[other].read_published(asked) if other in setup.others else {}
            full = {f"{other}.{address}": value for address, value in values.items()}
            new |= {address: value for address, value in full.items() if state.published.get(address) != value}
        if heard := self.current.recorder.hear(state.moment, name, new):
            self.current.set_state(evolve(state, published={**state.published, **heard}))

    def _attempt(self, name: str, act: Callable[[], None]) -> None:
        """Run a hook's code; its error policy applies to whatever that raises."""
        hook = self.current.setup.order.hooks[name]
        try:
            act()
        except (Exception, SystemExit) as error:  # it must not end the process
            self._report_failure(name, hook, error)

    def _report_failure(self, name: str, hook: Any, error: BaseException | str) -> None:
        there = self.current.setup.order.hooks.get(name) is hook
        fail(name, hook, self.current.state.memory[name] if there else {}, self.current.recorder.log, error)

    def _is_active(self, name: str, hook: Any) -> bool:
        """Return whether this hook is still attached and not muted."""
        run = self.current.present
        return hook is not None and run.setup.order.hooks.get(name) is hook and not run.state.memory[name]["muted"]

    # -- the background ------------------------------------------------------------------------------------------------
    def catch_up(self) -> None:
        """Apply results of background hooks, and the consequences of exceeded budgets."""
        while (firing := self.current.background.result()) is not None:
            if isinstance(firing.error, KeyboardInterrupt):
                raise firing.error
            if self._is_active(firing.name, firing.hook):
                self._budgets.took(firing.name, firing.hook, firing.seconds)
                self._attempt(firing.name, partial(self._write_files, firing.files))
                self.apply_result(firing.row)
        for name, then in self._budgets.spent(self.current.setup.order, self.current.state.memory).items():
            self.apply_result({"event": "budget", "hook": name, "then": then})

    def forget_budgets(self) -> None:
        """Forget which hooks have exceeded their budgets too often: in a replay, the journal holds the consequences."""
        self._budgets.spent(self.current.setup.order, self.current.state.memory)

    def apply_result(self, row: Row) -> None:
        """Write a background result, or an exceeded budget, to the journal; then apply it."""
        self.current.note(row)
        name, order, memory = row["hook"], self.current.setup.order, self.current.state.memory
        if name not in order.hooks:  # detached since it was submitted
            return
        hook = order.hooks[name]
        if row["event"] == "budget":
            limit(name, hook, memory[name], self.current.recorder.log, row["then"])
            return
        with self.checkpoints.save_together():
            self._apply(row, HookView.apply)
            self._report(hook, row)

    def _apply(self, row: Row, how: Callable[[HookView, Row], None]) -> None:
        """Apply results of a hook that ran on a snapshot, all or some of them."""
        self._attempt(row["hook"], partial(how, HookView(self.current, row["hook"], row["scope"]), row))

    def _report(self, hook: Hook, row: Row, error: BaseException | None = None) -> None:
        """Report the failure of a hook that ran on a snapshot, if it failed; ``error`` is of this process."""
        if "error" in row:
            self._report_failure(row["hook"], hook, error or row["error"])

    def finish(self) -> None:
        """Wait for background hooks and apply their results, unless training was interrupted."""
        if self.current.recorder.replay is None and not self.current.progress.interrupted:
            self.current.background.finish()
            self.catch_up()
        if left := self.current.background.forget():
            self.current.log(f"training ended; background hooks dropped: {', '.join(left)}")
