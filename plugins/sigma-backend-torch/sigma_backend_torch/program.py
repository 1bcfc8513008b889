"""A step as a loop over one function, whose state stays in place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from attrs import define, field

from sigma_backend_torch.composing import ATTENTION, compose_calls
from sigma_backend_torch.devices import use_device
from sigma_backend_torch.fusing import fuse_patterns
from sigma_backend_torch.graphs import RecordedRun, record_run
from sigma_backend_torch.loops import Run
from sigma_backend_torch.namespace import TorchFunctions, namespace
from sigma_backend_torch.source import function, new
from sigma_kernel.contracts import Array, Arrays, Burst, Numbers, Step
from sigma_kernel.graph import Graph, rewrite, takes_indices

WORDS = torch.uint32  # which is held, but not computed with


def simplify(graph: Graph) -> Graph:
    """Return a graph in PyTorch's functions."""
    return fuse_patterns(rewrite(compose_calls(rewrite(graph, keep=TorchFunctions(ATTENTION))), keep=TorchFunctions()))


@define(eq=False, slots=False)
class TorchProgram:
    """A step that writes into its state: a burst calls it once per iteration.

    The given state is copied before a burst if the step may fail, or if it must stay unchanged.
    """

    step: Step
    device: torch.device
    in_place: bool
    compiled: bool = False
    graphs: bool = True  # whether a GPU records the step
    peak_bytes: int = 0
    _places: dict[int, int] = field(init=False)  # of results that replace state: the places of that
    _call: Run = field(init=False)
    _kinds: list[torch.dtype] = field(init=False)
    _shared: list[int] = field(init=False)  # results that may be a part of something else
    _spent: bool = field(init=False)  # whether the given state may be written into

    def __attrs_post_init__(self) -> None:
        """Write the function of the step; ``torch.compile`` plans the storage of results itself."""
        graph, ns, self._places = simplify(self.step.graph), namespace(), self.step.donations
        with use_device(self.device), torch.no_grad():
            call = function(graph, ns, None if self.compiled else self._places)
        self._call = torch.compile(call, dynamic=False) if self.compiled else call
        self._kinds = [ns.dtype(x.dtype) for x in graph.inputs]
        self._shared = [out for out, alone in enumerate(new(graph)) if not alone]
        self._spent = self.in_place and not takes_indices(graph)
        if self.graphs and not self.compiled:
            self._call = record_run(self._call, self._places, self.device, takes_indices(graph))

    def run(self, state: Arrays, block: Arrays, rows: np.ndarray, steer: Numbers, n: int) -> Burst:
        """Run ``n`` steps, one call each; see :class:`sigma_kernel.contracts.Program`."""
        step, count = self.step, len(self.step.writes)
        watched = [count + k for k, name in enumerate(step.ring) if name == "loss"]
        records: list[list[Array]] = []
        with use_device(self.device), torch.no_grad(), self._claim_call():
            values = self._cast_state(state)
            kinds = self._kinds[len(step.state) : len(step.state) + len(step.data)]
            data = [block[name].to(kind) for name, kind in zip(step.data, kinds, strict=True)]
            places = torch.from_numpy(rows.astype(np.int64)).to(self.device)
            live = self._live(steer, n)
            for i in range(n):
                batch = [x.index_select(0, places[i]) for x in data]
                results = [*self._call(*values, *batch, *(x[i] for x in live))]
                for out in self._shared:
                    results[out] = results[out].clone()
                for out, position in self._places.items():
                    values[position] = results[out]
                records.append(results[count:])
                if not all(_finite(results[out]) for out in watched):
                    break
            return Burst({**state, **self._collect_entries(values)}, self._ring(records), len(records))

    def _cast_state(self, state: Arrays) -> list[Array]:
        """Return the state in the types that PyTorch computes with; entries that the step writes are not shared."""
        written, seen = frozenset(self.step.writes), set[int]()
        values = []
        for name, kind in zip(self.step.state, self._kinds, strict=False):
            value = state[name].to(kind)
            if name in written and value is state[name] and (id(value) in seen or not self._spent):
                value = value.clone()
            seen.add(id(value))
            values.append(value)
        return values

    def _claim_call(self) -> AbstractContextManager[None]:
        """Return a context in which no other thread calls a recorded step."""
        return self._call.claim() if isinstance(self._call, RecordedRun) else nullcontext()

    def _collect_entries(self, values: Sequence[Array]) -> Arrays:
        """Return the entries that the step writes, in the types that are held."""
        nodes = self.step.graph.inputs
        kept = self._call.copy_for_keeping if isinstance(self._call, RecordedRun) else lambda x: x
        return {self.step.state[i]: _cast_for_holding(kept(values[i]), nodes[i].dtype) for i in self._places.values()}

    def _live(self, steer: Numbers, n: int) -> list[Sequence[Array]]:
        """Return each live value as one array for every iteration; equal numbers are one array."""
        tensors: dict[Any, list[Array]] = {}
        columns: list[Sequence[Array]] = []
        for name, kind in zip(self.step.steer, self._kinds[len(self._kinds) - len(self.step.steer) :], strict=True):
            value = np.array(steer[name])
            if value.ndim:
                columns.append(torch.tensor(value, dtype=kind, device=self.device).unbind())
            else:
                key = value.tobytes(), value.dtype, kind
                tensors[key] = column = tensors.get(key) or [torch.tensor(value, dtype=kind, device=self.device)] * n
                columns.append(column)
        return columns

    def _ring(self, records: Sequence[Sequence[Array]]) -> dict[str, np.ndarray]:
        """Return the records of all iterations on the host."""
        nodes = self.step.graph.outputs[len(self.step.writes) :]
        columns = (torch.stack([row[k] for row in records]) for k in range(len(nodes)))
        named = zip(self.step.ring, columns, nodes, strict=True)
        return {name: _cast_for_holding(column, node.dtype).cpu().numpy() for name, column, node in named}


def _cast_for_holding(x: Array, dtype: str) -> Array:
    return x.to(WORDS) if dtype == "uint32" else x


def _finite(loss: Array) -> bool:
    return bool(torch.isfinite(loss).all()) if loss.ndim else math.isfinite(loss.item())
