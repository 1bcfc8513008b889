"""Conformance suite for exporters, to inherit in a plugin's tests.

::

    class TestNpz(ExporterSuite):
        def make(self) -> Exporter:
            return Npz()
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from attrs import evolve

from sigma_kernel import functions as f
from sigma_kernel.contracts import Exporter, Inference, Step
from sigma_kernel.graph.node import Graph, symbol
from sigma_testing.determinism import DeterministicSuite

LAYERS = "network.layers."
FILE = "some model.file"  # an exporter has no say in the name
TRIED = 8  # entries of an array


def inference() -> Inference:
    """Return a small network: two dense layers from 3 numbers to 2, ``f.tanh`` between them."""
    shapes = {"1-dense.weights": (3, 4), "1-dense.biases": (4,), "2-output.weights": (4, 2), "2-output.biases": (2,)}
    draw = np.random.default_rng(5)
    arrays = {name: draw.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    text = 'input(3) + dense(4, activation="tanh") + output(2)'

    def step(rows: int) -> Step:
        entries = {LAYERS + name: symbol(shape, "float32", name) for name, shape in shapes.items()}
        inputs = symbol((rows, 3), "float32", "inputs")
        w1, b1, w2, b2 = entries.values()
        graph = Graph((*entries.values(), inputs), (f.tanh(inputs @ w1 + b1) @ w2 + b2,))
        return Step(graph, tuple(entries), ("inputs",), (), (), ("2-output",))

    return Inference(text, ("no", "yes"), arrays, step, {})


class ExporterSuite(DeterministicSuite):
    """Conformance tests of an exporter: inherit, and override :meth:`make`."""

    @abstractmethod
    def make(self) -> Exporter:
        """Return the exporter under test."""

    def network(self) -> Inference:
        """Return a network that the format can express."""
        return inference()

    def export_files(self, network: Inference | None = None) -> dict[str, bytes]:
        """Return the files that an export writes into a new directory, by name."""
        with TemporaryDirectory() as outside:
            folder, current = Path(outside) / "folder", Path(outside) / "current"
            folder.mkdir()
            current.mkdir()
            with chdir(current):
                self.make().export(network or self.network(), folder / FILE)
            stray = {*Path(outside).iterdir(), *current.iterdir()} - {folder, current}
            names = ", ".join(sorted(path.name for path in stray))
            assert not stray, f"{names}: is outside the folder of the file. Write only beside the path that is given."
            return {path.name: path.read_bytes() for path in folder.iterdir()}

    def results(self) -> Mapping[str, Any]:
        """Return the files."""
        return {"files": self.export_files()}

    def test_it_writes_the_file_it_is_asked_for(self) -> None:
        """Write exactly the given path, with its extension."""
        files = self.export_files()
        assert files.get(FILE), f"wrote {', '.join(files) or 'nothing'} instead of {FILE}"

    def test_it_writes_the_same_bytes_every_time(self) -> None:
        """Leave out times, and sort unordered collections."""
        assert self.export_files() == self.export_files(), "two exports of one network differ"

    def test_the_parameters_are_in_the_file(self) -> None:
        """Write every array with all its digits."""
        network = self.network()
        first = self.export_files(network)
        for name in network.arrays:
            for what, other in _variations(network.arrays[name]):
                changed = evolve(network, arrays={**network.arrays, name: other})
                assert self.export_files(changed) != first, (
                    f"{name}: {what} does not change the file. Write every number."
                )

    def test_it_reads_what_it_writes(self) -> None:
        """Return the parameters from arrays(), by address and with all their digits, if it reads files."""
        exporter, network = self.make(), self.network()
        if type(exporter).arrays is Exporter.arrays:
            return
        with TemporaryDirectory() as folder:
            exporter.export(network, Path(folder) / FILE)
            arrays = exporter.arrays(Path(folder) / FILE)
        for name, values in network.arrays.items():
            assert name in arrays, f"{name}: is not among {', '.join(arrays)}"
            np.testing.assert_array_equal(arrays[name], values, err_msg=name)

    def test_it_leaves_the_arrays_as_they_are(self) -> None:
        """Copy arrays before changing them."""
        network = self.network()
        before = {name: values.copy() for name, values in network.arrays.items()}
        self.export_files(network)
        for name, values in before.items():
            np.testing.assert_array_equal(network.arrays[name], values)


def _variations(values: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield changed copies of an array with descriptions: single entries by their last digit, and their order."""
    for place in np.unique(np.linspace(0, values.size - 1, TRIED).astype(int)):
        other = values.copy()
        other.flat[place] = np.nextafter(other.flat[place], np.inf, dtype=other.dtype)
        yield f"the last digit of entry {place}", other
    if not np.array_equal(turned := values.ravel()[::-1].reshape(values.shape), values):
        yield "the order of the entries", turned
