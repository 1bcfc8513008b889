"""Steps as CUDA graphs, on a stand-in that records and replays calls on the processor."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from sigma_backend_torch import TorchBackend, graphs
from sigma_backend_torch.graphs import RecordedRun
from sigma_kernel import Environment, functions as f
from sigma_kernel.contracts import Backend, Step
from sigma_kernel.errors import SigmaMemoryError
from sigma_kernel.graph import Graph, symbol
from sigma_testing import BackendSuite

NAN = float("nan")


class StandIn:
    """What :mod:`torch.cuda` offers for recording, on the processor.

    A graph holds the calls of ATen while it is recorded, with the very tensors; replaying repeats the calls, and writes
    their results to where these were. As on a GPU, a recording computes nothing: what it made is NaN or -1 then.
    Neither can numbers be read on the host while recording, nor copied from there.
    """

    def __init__(self) -> None:
        self.recordings = self.replays = 0

    class Stream:
        def __init__(self, device: Any = None) -> None: ...

        def wait_stream(self, other: Any) -> None: ...

    def current_stream(self, device: Any) -> Any:
        return self.Stream()

    def stream(self, stream: Any) -> Any:
        return nullcontext()

    def device(self, device: Any) -> Any:
        return nullcontext()

    def CUDAGraph(self) -> Any:  # noqa: N802  (the name is PyTorch's)
        return Calls(self)

    @contextmanager
    def graph(self, calls: Any, capture_error_mode: str) -> Iterator[None]:
        assert capture_error_mode == "thread_local"
        self.recordings += 1
        with calls:
            yield
        calls.forget()


class Calls(TorchDispatchMode):
    def __init__(self, owner: StandIn) -> None:
        super().__init__()
        self.owner, self.calls, self.given = owner, list[tuple[Any, ...]](), set[int]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.lift_fresh.default):
            raise RuntimeError("operation not permitted when stream is capturing")
        own = {x.untyped_storage().data_ptr() for x in self.made()}
        every = [x for one in args for x in (one if isinstance(one, tuple | list) else [one])]
        self.given |= {x.untyped_storage().data_ptr() for x in every if isinstance(x, torch.Tensor)} - own
        found = func(*args, **(kwargs or {}))
        self.calls.append((func, args, kwargs or {}, found))
        return found

    def made(self) -> Iterator[torch.Tensor]:
        for *_, found in self.calls:
            yield from (
                x for x in (found if isinstance(found, tuple | list) else [found]) if isinstance(x, torch.Tensor)
            )

    def forget(self) -> None:
        own = {x.untyped_storage().data_ptr() for x in self.made()} - self.given
        for x in self.made():
            if x.untyped_storage().data_ptr() in own and (0 not in x.stride() or x.numel() < 2):
                x.fill_(NAN if x.dtype.is_floating_point else x.dtype == torch.bool or -1)

    def replay(self) -> None:
        self.owner.replays += 1
        for func, args, kwargs, found in self.calls:
            again = func(*args, **kwargs)
            pairs = zip(found, again, strict=True) if isinstance(found, tuple | list) else [(found, again)]
            for old, new in pairs:
                if (
                    isinstance(old, torch.Tensor)
                    and old.untyped_storage().data_ptr() != new.untyped_storage().data_ptr()
                ):
                    old.copy_(new)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    made = StandIn()
    monkeypatch.setattr(graphs, "CUDA", made)
    monkeypatch.setattr(graphs, "DEVICES", ("cpu",))
    return made


class TestOnAStandIn(BackendSuite):
    keeps_state = True

    @pytest.fixture(autouse=True)
    def _gpu(self, gpu: StandIn) -> None: ...

    def make(self) -> Backend:
        return TorchBackend()


def trained(
    folder: Any = None, backend: Any = None, architecture: str = "dense(8, activation='tanh') + dropout(0.3)"
) -> Any:
    rows = np.random.default_rng(0)
    trainer = Environment("it", seed=4).create_trainer(
        data=(rows.normal(size=(50, 6)), rows.integers(0, 3, 50)), batch_size=8,
        network=f"input(6) + {architecture} + batch_norm() + output(3) + softmax_cross_entropy()",
        optimiser={"type": "adam", "learning_rate": 0.05}, backend=backend or TorchBackend(),
    )  # fmt: skip
    trainer.fit(epochs=5)
    return trainer


def test_a_run_of_recorded_steps_has_the_bits_of_one_op_by_op(gpu: StandIn) -> None:
    plain, recorded = trained(backend=TorchBackend(graphs=False)), trained()
    assert (gpu.recordings, gpu.replays) == (2, 35)  # for batches of 8 rows and of 2, and 7 batches an epoch
    np.testing.assert_array_equal(recorded.history["training.loss"], plain.history["training.loss"])
    for name, values in plain.session.snapshot().arrays.items():
        np.testing.assert_array_equal(recorded.session.snapshot().arrays[name], values)


def test_a_step_that_reads_indices_is_called_op_by_op(gpu: StandIn, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "sigma.torch")
    backend, table, places = TorchBackend(), symbol((5, 2)), symbol((3, 1), "int32")
    step = Step(
        Graph((table, places), (table * 2.0, f.sum(f.take(table, places), (0, 1, 2)))),
        ("t",),
        ("p",),
        (),
        ("t",),
        ("s",),
    )
    program = backend.compile(step)
    given = {"t": backend.to_device(np.ones((5, 2), "float32"))}, {"p": backend.to_device(np.array([[1], [2], [0]]))}
    assert program.run(*given, np.array([[0, 1, 2]]), {}, 1).ring["s"].tolist() == [6.0]
    assert (gpu.recordings, gpu.replays) == (0, 0)
    assert [one.message for one in caplog.records] == [
        "a step that reads indices is not recorded as a CUDA graph: it is called op by op"
    ]


def counting() -> Step:
    """Return a step: x becomes 2 x + batch * rate, and y what x was."""
    x, y, batch, rate = symbol((2,)), symbol((2,)), symbol((1, 2)), symbol(())
    new = x * 2.0 + f.sum(batch, 0) * rate
    return Step(Graph((x, y, batch, rate), (new, x, f.sum(new))), ("x", "y"), ("b",), ("rate",), ("x", "y"), ("loss",))


def given(backend: Backend, first: float = 1.0) -> Any:
    state = {name: backend.to_device(np.full(2, first, "float32")) for name in "xy"}
    return state, {"b": backend.to_device(np.arange(8, dtype="float32").reshape(4, 2))}, np.arange(4)[:, None]


def numbers(burst: Any) -> list[Any]:
    return [burst.done, *(np.asarray(burst.state[name]).tolist() for name in "xy"), burst.ring["loss"].tolist()]


def test_bursts_go_on_from_any_state_and_leave_what_they_returned_alone(gpu: StandIn) -> None:
    rates = {"rate": np.float32([1.0, 2.0, 3.0, 4.0])}
    plain = TorchBackend(graphs=False).compile(counting())
    recorded = TorchBackend().compile(counting(), in_place=False)
    backend = TorchBackend()
    first = recorded.run(*given(backend), rates, 4)
    kept = numbers(first)
    other = recorded.run(*given(backend, -3.0), rates, 4)
    on = recorded.run(first.state, *given(backend)[1:], rates, 4)
    assert numbers(first) == kept == numbers(plain.run(*given(backend), rates, 4))
    assert numbers(other) == numbers(plain.run(*given(backend, -3.0), rates, 4))
    assert numbers(on) == numbers(plain.run(first.state, *given(backend)[1:], rates, 4))
    assert (gpu.recordings, gpu.replays) == (1, 12)


def test_a_burst_ends_after_a_loss_that_is_not_finite(gpu: StandIn) -> None:
    backend = TorchBackend()
    found = backend.compile(counting()).run(*given(backend), {"rate": np.float32([1.0, np.inf, 1.0, 1.0])}, 4)
    assert (found.done, gpu.replays) == (2, 2)


def test_threads_wait_for_each_other(gpu: StandIn) -> None:
    backend, rates = TorchBackend(), {"rate": np.float32([1.0, 2.0, 3.0, 4.0])}
    program, found = backend.compile(counting(), in_place=False), dict[int, Any]()
    threads = [
        threading.Thread(
            target=lambda i=i: found.update({i: numbers(program.run(*given(backend, float(i)), rates, 4))})
        )
        for i in range(8)
    ]
    _ = [one.start() for one in threads], [one.join() for one in threads]
    plain = TorchBackend(graphs=False).compile(counting())
    assert found == {i: numbers(plain.run(*given(backend, float(i)), rates, 4)) for i in range(8)}


def test_what_cannot_be_recorded_is_logged_once_and_called_op_by_op(
    gpu: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "sigma.torch")

    def waits(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (x * x.sum().item(),)

    run, x = RecordedRun(waits, {0: 0}, torch.device("cpu")), torch.tensor([1.0, 2.0])
    for _ in range(2):
        torch.testing.assert_close(run(x)[0], torch.tensor([3.0, 6.0]))
    assert run.copy_for_keeping(x) is x
    assert x.tolist() == [1.0, 2.0]
    (line,) = [one.getMessage() for one in caplog.records]
    assert line.startswith("a step cannot be recorded as a CUDA graph: it is called op by op (operation not permitted")
    assert gpu.recordings == 1


def test_memory_that_a_step_lacks_without_a_recording_too_is_told(gpu: StandIn) -> None:
    def full(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    program = TorchBackend().compile(counting())
    program._call = RecordedRun(full, {}, torch.device("cpu"))
    with pytest.raises(
        SigmaMemoryError, match=r"too little memory \(CUDA out of memory\. Tried to allocate 2\.00 GiB\)"
    ):
        program.run(*given(TorchBackend()), {"rate": 1.0}, 1)


def test_on_the_processor_nothing_is_recorded() -> None:
    program = TorchBackend().compile(counting())
    assert not isinstance(program._call, RecordedRun)
