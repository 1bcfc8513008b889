"""A step as a CUDA graph: recorded once, and replayed by one call in place of a call for each op.

It has not run on a GPU yet: the tests record and replay on the processor, with a stand-in for ``torch.cuda``.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from attrs import define, field

from sigma_backend_torch.loops import Run
from sigma_kernel.contracts import Array

DEVICES = ("cuda",)  # that record
WARM = 3  # warm-up calls before the recording, in which libraries allocate: as many as PyTorch recommends
CUDA: Any = torch.cuda
_log = logging.getLogger("sigma.torch")


def record_run(run: Run, places: Mapping[int, int], device: torch.device, reads: bool) -> Run:
    """Return the function of a step that is recorded at its first call, or the function itself on other devices.

    ``places`` are those of the operands that results replace. A step that ``reads`` indices is not recorded: each of
    its checks waits for the device.
    """
    if device.type not in DEVICES:
        return run
    if reads:
        _log.info("a step that reads indices is not recorded as a CUDA graph: it is called op by op")
        return run
    return RecordedRun(run, places, device)


@define(eq=False, slots=False)
class RecordedRun:
    """A function whose operands have fixed places, so that one recording serves all calls.

    A call copies operands from elsewhere to their places, and replays. Results that replace operands are there
    afterwards, so that the next call of a burst need not copy them; others are copies. A failed recording is logged
    once, and the step is called op by op from then on.
    """

    run: Run
    places: Mapping[int, int]
    device: torch.device
    _graph: Any = field(default=None, init=False)
    _failed: bool = field(default=False, init=False)
    _operands: list[Array] = field(factory=list, init=False)
    _results: Sequence[Array] = field(default=(), init=False)
    _lock: Any = field(factory=threading.RLock, init=False)

    @contextmanager
    def claim(self) -> Iterator[None]:
        """Let no other thread call the function, for a burst: the places of its operands are the same ones."""
        with self._lock, CUDA.device(self.device):
            yield

    def __call__(self, *operands: Array) -> tuple[Array, ...]:
        """Return the results; those that replace operands are valid until the next call."""
        if self._graph is None and not self._failed:
            self._record(operands)
        if self._graph is None:
            return self.run(*operands)
        for own, given in zip(self._operands, operands, strict=True):
            if own is not given:
                own.copy_(given)
        self._graph.replay()
        own = {out: self._operands[place] for out, place in self.places.items()}
        return tuple(own[out] if out in own else x.clone() for out, x in enumerate(self._results))

    def copy_for_keeping(self, array: Array) -> Array:
        """Return an array that the next call leaves alone: a copy if it is in one of the places."""
        return array.clone() if any(array is operand for operand in self._operands) else array

    def _record(self, operands: Sequence[Array]) -> None:
        """Record a call on copies of the operands, after warm-up calls on a separate stream."""
        graph, self._operands = CUDA.CUDAGraph(), [x.clone() for x in operands]
        try:
            stream, current = CUDA.Stream(self.device), CUDA.current_stream(self.device)
            stream.wait_stream(current)
            with CUDA.stream(stream):
                for _ in range(WARM):
                    self._step()
            current.wait_stream(stream)
            with CUDA.graph(graph, capture_error_mode="thread_local"):
                self._results = self._step()
            self._graph = graph
        except Exception as error:  # of any library: it waits for the device, copies from the host, or lacks memory
            self._failed = True
            _log.info("a step cannot be recorded as a CUDA graph: it is called op by op (%s)", error)
        finally:
            self._operands = self._operands if self._graph is not None else []

    def _step(self) -> Sequence[Array]:
        """Call the function, and then move results to the places of the operands that they replace."""
        outputs = self.run(*self._operands)
        there = [self._operands[self.places[out]] if out in self.places else None for out in range(len(outputs))]
        results = [x if x is own else x.clone() for x, own in zip(outputs, there, strict=True)]
        for x, own in zip(results, there, strict=True):
            if own is not None and x is not own:
                own.copy_(x)
        return results
