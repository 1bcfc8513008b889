"""Hooks of local scope: they run in the workers, on what these have, and give the same whoever computes."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define, field

import sigma_ml as sm
from sigma_hooks import Evaluate
from sigma_kernel import Environment, Hook, HookContext, SigmaConfigError, SigmaTrainingError, every
from sigma_kernel.clock import TimeStep
from sigma_operator_local import LocalOperator
from sigma_operator_processes import ProcessesOperator
from sigma_testing import Do
from sigma_testing.transports.threads import ThreadOperator, kill_at_random
from sigma_training.evaluator import Evaluator
from sigma_training.workers import replica
from sigma_training.workers.calls import SentCall, run_call

WEIGHTS = "network.layers.1-dense.weights"
GRADIENT = "gradients.1-dense.weights"
TEXT = """format = 1
[run]
name = "local"
seed = 4
[data]
dataset = "iris"
batch_size = 18
[network]
architecture = 'input(4) + dense(6, activation="tanh") + dropout(0.2) + output(3) + softmax_cross_entropy()'
[trainer]
epochs = 2
optimiser = { type = "gradient_descent", learning_rate = 0.1 }
"""


@define(eq=False, kw_only=True)
class Look(Hook):
    """Publish what a worker has."""

    scope: str = "local"
    every: TimeStep = every(3, "iteration")
    reads: Sequence[str] = ("training.loss", WEIGHTS, GRADIENT, "activations.3-output", "batch.rows", "shared")
    writes: Sequence[str] = ("process", "norm", "slope", "rows", "outputs", "turn", "seen", "score")
    splits: Sequence[str] = ("validation",)

    def fire(self, context: HookContext) -> None:
        turn = context.memory["turn"] = context.memory.get("turn", 0) + 1
        context.publish("turn", turn)
        context.publish("process", os.getpid())
        context.publish("norm", float(np.sum(context.read(WEIGHTS))))
        context.publish("slope", float(np.sum(context.read(GRADIENT))))
        context.publish("rows", int(context.read("batch.rows").sum()))
        context.publish("outputs", len(context.read("activations.3-output")))
        context.publish("seen", context.read("shared"))
        context.publish("score", context.evaluate("validation", {})["loss"])
        context.command("set", pattern="optimiser.learning_rate", value=0.1 * float(context.read("training.loss")))


@define(eq=False, kw_only=True)
class Share(Hook):
    """Publish a number before the workers look at it, at the same boundary."""

    every: TimeStep = every(3, "iteration")
    writes: Sequence[str] = ("shared",)

    def fire(self, context: HookContext) -> None:
        context.publish("shared", context.moment.iteration)


@define(eq=False, kw_only=True)
class Boom(Hook):
    """Raise in one worker."""

    scope: str = "local"
    every: TimeStep = every(1, "epoch")
    reads: Sequence[str] = ("training.loss",)
    here: int = field(factory=os.getpid)

    def fire(self, context: HookContext) -> None:
        raise ValueError(f"wrong {'here' if os.getpid() == self.here else 'elsewhere'}")


@define(eq=False, kw_only=True)
class Names(Hook):
    """Publish the names that a pattern gives."""

    every: TimeStep = every(1, "epoch")
    reads: Sequence[str] = ("**",)
    writes: Sequence[str] = ("names",)

    def fire(self, context: HookContext) -> None:
        context.publish("names", " ".join(sorted(context.read(self.reads[0]))))


@define(eq=False, kw_only=True)
class Better(Hook):
    """Publish which values at an address are better that it does not read."""

    scope: str = "local"
    every: TimeStep = every(1, "epoch")
    writes: Sequence[str] = ("better",)

    def fire(self, context: HookContext) -> None:
        context.publish("better", [context.direction(f"validation.{name}") for name in ("accuracy", "loss", "other")])


def environment(operator: Any, folder: Path | None = None, **hooks: Hook) -> Environment:
    sigma = sm.from_file(TEXT, folder=folder)
    trainer = sigma.trainer("trainer")
    trainer.operator, trainer.hooks = operator, {**trainer.hooks, **hooks}
    return sigma


def until(holds: Any) -> None:
    end = time.monotonic() + 60.0
    while not holds():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.002)


def values(sigma: Environment, *without: str) -> dict[str, Any]:
    found = sigma.find("trainer.workers.*.*")
    return {name: value for name, value in found.items() if name.rpartition(".")[2] not in without}


@pytest.mark.long
def test_hooks_of_local_scope_run_in_the_processes_of_the_workers_and_give_what_local_gives() -> None:
    ends = []
    for operator in (LocalOperator(workers=2, shards=4), ProcessesOperator(workers=2, shards=4)):
        sigma = environment(operator, look=Look(), share=Share())
        summary = sigma.run(progress=False)
        processes = set(sigma.find("trainer.workers.*.process").values())
        ends.append((values(sigma, "process"), summary.parameters_sha256, processes))
    (here, bits, [own]), (elsewhere, others, processes) = ends
    assert (here, bits) == (elsewhere, others)
    assert own == os.getpid()
    assert len(processes) == 2
    assert own not in processes
    assert here["trainer.workers.1.seen"] == 12
    assert here["trainer.workers.1.turn"] == 4


def test_a_worker_has_the_gradients_activations_and_rows_of_its_shards() -> None:
    seen: dict[str, list[Any]] = {"global": [], "local": []}
    reads = [GRADIENT, "gradients.**", "activations.*", "batch.rows"]

    def note(scope: str) -> Do:
        def look(context: HookContext) -> None:
            seen[scope].append([context.read(name) for name in reads])

        return Do(does=look, reads=reads, every=every(5, "iteration"), scope=scope)

    environment(LocalOperator(workers=2, shards=3), a=note("global"), b=note("local")).run(progress=False)
    (gradient, gradients, activations, rows), first, second = seen["global"][0], *seen["local"][:2]
    order = [*range(6), *range(12, 18), *range(6, 12)]  # the first worker has the first and the last of three shards
    assert [*first[3], *second[3]] == [*rows[order]]
    np.testing.assert_allclose((2 * first[0] + second[0]) / 3, gradient, rtol=1e-4, atol=1e-7)
    assert not np.allclose(first[0], second[0], rtol=1e-2)
    assert {*first[1]} == {*second[1]} == {*gradients}
    np.testing.assert_array_equal(second[1][GRADIENT], second[0])
    for layer in ("activations.1-dense", "activations.2-dropout"):  # whose random numbers go by the row in the batch
        joined = np.concatenate([first[2][layer], second[2][layer]])
        np.testing.assert_allclose(joined, activations[layer][order], rtol=1e-5)
    cost = "activations.4-softmax_cross_entropy"
    np.testing.assert_allclose((2 * first[2][cost] + second[2][cost]) / 3, activations[cost], rtol=1e-5)


@pytest.mark.parametrize("watched", [False, True])
def test_a_worker_without_rows_of_a_small_batch_fires_no_hook_that_observes_it(watched: bool) -> None:
    seen, counted = list[tuple[int, str, int]](), list[str]()

    def look(context: Any) -> None:
        seen.append((context.moment.iteration, context.scope, len(context.read("batch.rows"))))

    every_batch: dict[str, Any] = {"every": every(1, "iteration"), "scope": "local"}
    reads = ["batch.rows", GRADIENT]
    hooks: dict[str, Hook] = {
        "look": Do(does=look, reads=reads, **every_batch),
        "count": Do(does=lambda context: counted.append(context.scope), **every_batch),
    }
    if watched:
        hooks["all"] = Do(reads=reads, every=every(1, "iteration"))
    trainer = environment(LocalOperator(workers=3, shards=3), **hooks).trainer("trainer")
    trainer.batch_size = 59
    trainer.fit(epochs=1, progress=False)
    assert trainer.session.setup.feed.sizes == [59, 2]  # of 120 rows
    everyone = ["workers.0.", "workers.1.", "workers.2."]
    assert counted == 3 * everyone
    sizes = {1: [20, 20, 19], 2: [20, 20, 19], 3: [1, 1]}
    assert seen == [(n, *each) for n, rows in sizes.items() for each in zip(everyone, rows, strict=False)]


def test_weighted_rows_count_in_the_gradients_of_a_worker_as_in_the_batch() -> None:
    seen: dict[str, list[Any]] = {"global": [], "local": []}
    draw = np.random.default_rng(0)
    data = {
        "inputs": draw.normal(size=(12, 3)).astype("float32"), "targets": draw.normal(size=(12, 1)).astype("float32"),
        "weights": draw.uniform(0.1, 3.0, size=12).astype("float32"),
    }  # fmt: skip
    sigma = Environment("weighted", seed=1)
    trainer = sigma.create_trainer(
        "trainer", data=data, batch_size=12, optimiser="gradient_descent", operator=LocalOperator(workers=2, shards=2),
        network='input(3) + output(1) + squared_difference(weights="weights")',
    )  # fmt: skip
    reads = ["gradients.1-output.weights"]
    trainer.hooks = {
        scope: Do(
            does=lambda context, scope=scope: seen[scope].append(context.read(reads[0])),  # type: ignore[misc]
            reads=reads, every=every(1, "iteration"), scope=scope,
        )
        for scope in seen
    }  # fmt: skip
    trainer.fit(iterations=1, progress=False)
    np.testing.assert_allclose(sum(seen["local"]) / 2, seen["global"][0], rtol=1e-5)


@pytest.mark.parametrize(("scope", "pattern"), [("global", "**"), ("local", "**"), ("local", "*")])
def test_a_pattern_gives_the_same_names_whoever_computes(scope: str, pattern: str, tmp_path: Path) -> None:
    """Not what is shown of the workers, which depends on time and on the operator."""
    found, local, names = [], LocalOperator(workers=2, shards=4), Names(scope=scope, reads=(pattern,))
    for operator in (local, ThreadOperator(workers=2, shards=4)):
        sigma = environment(operator, tmp_path, names=names)
        sigma.run(progress=False)
        found.append(sigma.find("trainer.**.names"))
        assert environment(local, names=names).replay(sigma.run_folder, progress=False)[1] == {}
    assert found[0] == found[1]
    assert all("epoch" in value for value in found[0].values())


@pytest.mark.parametrize("kind", [LocalOperator, ThreadOperator])
def test_a_hook_knows_which_values_are_better_wherever_it_runs(kind: Any) -> None:
    score = Evaluate(on="validation", metrics={"accuracy": "accuracy"})
    sigma = environment(kind(workers=2, shards=4), score=score, better=Better())
    sigma.run(progress=False)
    assert [*sigma.find("trainer.**.better").values()] == [["higher", "lower", ""]] * 2


@pytest.mark.parametrize("scope", ["local", "global"])
def test_what_kills_every_worker_that_runs_it_ends_the_run_and_never_runs_in_the_operator(
    scope: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both a hook of local scope, and a pass over a split."""
    operator = ThreadOperator(workers=2, shards=2)

    def deadly(*given: Any) -> Any:
        (transport,) = operator.transports
        for worker in [worker for worker, channel in transport.channels.items() if not channel.dead]:
            transport.kill(worker)
        raise ConnectionError("killed")

    if scope == "local":
        monkeypatch.setattr(replica, "run_call", deadly)
        monkeypatch.setattr(Look, "fire", lambda *_: pytest.fail("runs in the operator"))
    else:
        monkeypatch.setattr(Evaluator, "measure", deadly)
    sigma = environment(operator, tmp_path, share=Share(), **({"look": Look()} if scope == "local" else {}))
    with pytest.raises(SigmaTrainingError, match=r"workers were lost, and no burst was computed: the last one, killed"):
        sigma.run(progress=False)


@pytest.mark.long_cases("2")
@pytest.mark.parametrize("workers", [1, 2])
def test_values_of_workers_are_replayed_and_resumed_whoever_dies(workers: int, tmp_path: Path) -> None:
    def make(operator: Any) -> Environment:
        sigma = environment(operator, tmp_path, look=Look(), share=Share())
        sigma.trainer("trainer").epochs = 12
        return sigma

    wanted = make(LocalOperator(workers=workers, shards=4))
    bits = wanted.run(progress=False).parameters_sha256
    operator = ThreadOperator(workers=workers, shards=4, burst_seconds=0.001)
    sigma = make(operator)
    with kill_at_random(operator, 1, 0.2) as killed:
        assert sigma.run(progress=False).parameters_sha256 == bits
    assert killed
    assert values(sigma, "process") == values(wanted, "process")
    summary, differences = make(LocalOperator(workers=workers, shards=4)).replay(sigma.run_folder, progress=False)
    assert (summary.parameters_sha256, differences) == (bits, {})


def test_a_command_of_a_worker_acts_after_all_results_of_the_others() -> None:
    rewound = list[str]()

    def count(context: Any) -> None:
        turn = context.memory["turn"] = context.memory.get("turn", 0) + 1
        context.publish("turn", turn)
        if turn == 4 and context.scope == "workers.0." and not rewound:
            rewound.append(context.scope)
            context.command("rewind", to=2, scale="epoch")

    hook = Do(does=count, scope="local", every=every(1, "epoch"), writes=["turn"])
    sigma = environment(LocalOperator(workers=2, shards=2), count=hook)
    trainer = sigma.trainer("trainer")
    trainer.epochs = 5
    sigma.run(progress=False)
    assert rewound
    assert values(sigma, "loss") == {"trainer.workers.0.turn": 5, "trainer.workers.1.turn": 5}
    assert trainer.session.state.memory["count"]["hook"] == {"workers.0.": {"turn": 5}, "workers.1.": {"turn": 5}}


def test_a_hook_of_local_scope_fires_for_each_worker_at_every_start() -> None:
    seen = list[int]()
    hook = Do(does=lambda context: seen.append(context.moment.start), scope="local", every=every(1, "start"))
    trainer = environment(LocalOperator(workers=2, shards=2), begin=hook).trainer("trainer")
    for _ in range(2):
        trainer.fit(epochs=1, progress=False)
    assert seen == [1, 1, 2, 2]


@define(eq=False, kw_only=True)
class Paths(Hook):
    """Write a file, and publish the paths that the context has."""

    scope: str = "local"
    every: TimeStep = every(1, "epoch")
    writes: Sequence[str] = ("paths",)

    def fire(self, context: HookContext) -> None:
        epoch = context.moment.epoch
        context.publish("paths", [str(context.folder), str(context.write(f"seen/{epoch}", b"%d" % epoch))])


@pytest.mark.parametrize("kind", [LocalOperator, ThreadOperator])
def test_files_that_a_hook_of_local_scope_writes_are_in_the_run_folder(kind: Any, tmp_path: Path) -> None:
    sigma = environment(kind(workers=2, shards=2), tmp_path, paths=Paths())
    sigma.run(progress=False)
    assert sigma.run_folder is not None
    assert (sigma.run_folder / "seen" / "2").read_bytes() == b"2"
    assert [*sigma.find("trainer.**.paths").values()] == [["None", "None"]] * 2  # only the operator has the folder
    assert environment(kind(workers=2, shards=2), paths=Paths()).run(progress=False).status == "finished"


def block(context: HookContext) -> None:
    """Put a file in place of the folder."""
    assert context.folder is not None
    (context.folder / "seen").write_text("")


@pytest.mark.parametrize("kind", [LocalOperator, ThreadOperator])
def test_a_file_that_cannot_be_written_follows_the_policy_of_the_hook(kind: Any, tmp_path: Path) -> None:
    def train(**policy: Any) -> str:
        sigma = environment(
            kind(workers=2, shards=2), tmp_path, paths=Paths(**policy), block=Do(does=block, every=every(1, "start"))
        )
        return sigma.run(progress=False).status

    assert train(on_error="ignore") == "finished"
    with pytest.raises(SigmaTrainingError, match=r"hook 'paths' .* failed: .*seen/1: cannot be written"):
        train()


def test_hooks_of_local_scope_reach_the_workers_as_they_are_attached_and_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[Any]()

    def run_call(sent: Any, *given: Any) -> Any:
        made.append((sent.table["of"], sent.table["every"], sent.moment.iteration))
        return run(sent, *given)

    run = replica.run_call
    monkeypatch.setattr(replica, "run_call", run_call)
    sigma = sm.from_file(TEXT.replace("epochs = 2", "epochs = 100000"), folder=tmp_path)
    sigma.trainer("trainer").operator = ThreadOperator(workers=2, shards=2, burst_seconds=0.01)
    handle = sigma.run_async(progress=False)
    sigma.attach("slopes", {"type": "statistics", "of": GRADIENT, "scope": "local", "every": "2 iterations"})
    until(lambda: len(made) >= 4)
    sigma.set("trainer.hooks.slopes.every", "3 iterations")
    until(lambda: made[-1][1] == "every 3 iterations")
    sigma.detach("slopes")
    handle.stop()
    assert handle.wait(60.0)
    times = {(of, every) for of, every, _ in made}
    assert times == {(GRADIENT, "every 2 iterations"), (GRADIENT, "every 3 iterations")}
    assert not sigma.find("trainer.workers.*.statistics.**")


@pytest.mark.long
def test_an_error_in_a_worker_follows_the_policy_of_the_hook_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(SigmaTrainingError, match=r"hook 'boom' .* failed: ValueError: wrong elsewhere"):
        environment(ProcessesOperator(workers=2, shards=2), boom=Boom()).run(progress=False)
    sigma = environment(ProcessesOperator(workers=2, shards=2), boom=Boom(on_error="mute"))
    assert sigma.run(progress=False).status == "finished"
    messages = [text for _, text in sigma.messages.entries_after(0)]
    assert any("failed in workers.0: Traceback" in text and "in fire" in text for text in messages)
    assert sum("it is muted" in text for text in messages) == 1


def test_a_hook_that_workers_cannot_make_is_refused_before_they_start() -> None:
    operator = ThreadOperator(workers=2, shards=2)
    hook = Do(does=lambda context: None, scope="local")
    with pytest.raises(SigmaConfigError, match=r"hooks.mine: has scope = 'local', and workers .* set scope = 'global'"):
        environment(operator, mine=hook).run(progress=False)
    assert not operator.transports


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (lambda context: context.keep(), "cannot keep parameters in a worker, .* set scope = 'global'"),
        (lambda context: context.evaluate("training", {}), "cannot evaluate in a worker, as it declares no splits"),
    ],
)
def test_what_a_hook_of_local_scope_cannot_do_is_refused(act: Any, why: str) -> None:
    with pytest.raises(SigmaTrainingError, match=why):
        environment(LocalOperator(), mine=Do(does=act, scope="local")).run(progress=False)


def test_a_hook_of_local_scope_repeats_no_iteration() -> None:
    @define(eq=False, kw_only=True)
    class Again(Do):
        repeats: bool = True

    with pytest.raises(SigmaConfigError, match=r"hooks.mine: repeats iterations of .* Set scope = 'global'"):
        environment(LocalOperator(), mine=Again(scope="local")).run(progress=False)


def test_a_call_that_is_run_again_has_the_memory_that_it_was_sent_with() -> None:
    session = environment(LocalOperator()).trainer("trainer").session
    table = {"type": "extrema", "value": "training.loss", "scope": "local", "every": "1 epoch"}
    known = {"training.loss": 2.0}
    sent = SentCall("most", "workers.0.", table, session.moment, [*known], known, {}, {})
    rows = [run_call(sent, session.present, {}).row for _ in range(2)]
    assert rows[0] == rows[1]
    assert rows[0]["memory"] != {}
    assert sent.memory == {}
