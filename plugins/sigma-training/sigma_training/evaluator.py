"""Evaluate, predict and observe with a model, outside training."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from attrs import define, evolve, field

from sigma_kernel.contracts import Batches, Dataset, Label, Metric, RowLosses, Step, TextGenerator
from sigma_kernel.errors import SigmaDataError, SigmaNetworkError
from sigma_kernel.graph.node import Spec
from sigma_kernel.network.network import Network
from sigma_kernel.plugins.resolver import resolve_components
from sigma_step.blocks import RowRecords
from sigma_step.graphs import (
    activity_step,
    evaluation_step,
    excitation_step,
    judgement_step,
    observation_step,
    outcome_step,
    prediction_step,
)
from sigma_step.measuring import evaluate_totals, merge_totals
from sigma_step.model import DIRECTIONS, JUDGED, WANTED
from sigma_step.steps import Programs, Steps
from sigma_training.components import check_split
from sigma_training.data.dataset import Host, samples as arrays_of
from sigma_training.data.feed import Feed, placing
from sigma_training.data.iterators import InOrder
from sigma_training.data.preprocessing import (
    Preparation,
    cast_quietly,
    check_finite,
    check_indices,
    conform,
    is_finite,
)
from sigma_training.passes import SplitPass, SplitPiece, join_pieces

EDITED = "default:edited-rows"  # the data set that leaves rows of another one out, and gives them other labels
TOGETHER = 4096  # rows that are judged at once, and that a worker evaluates at once

Delegate = Callable[[Steps, SplitPass], Iterable[SplitPiece] | None]


def join_losses(parts: Sequence[RowLosses]) -> RowLosses:
    """Return the losses of several parts of a split."""
    columns = [name for name in ("rows", "losses", "predicted", "targets") if getattr(parts[0], name) is not None]
    return RowLosses(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in columns})


def choose_classes(network: Network, output: str, predictions: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the index of the most probable class in each row, the lowest of equal ones, and the number of classes.

    Raises SigmaNetworkError for an output that has no classes.
    """
    if (classes := network.classify(output, predictions)) is None:
        raise SigmaNetworkError(f"{output}: its cost does not predict classes. Use predict().")
    if not np.isfinite(predictions).all():
        raise SigmaNetworkError(f"{output}: predictions are not finite. Train with other settings, or a nan_guard.")
    return classes


def _unwrap_single(found: Mapping[str, np.ndarray]) -> Any:
    """Return the array of the only output, or those of several by output."""
    return next(iter(found.values())) if len(found) == 1 else found


def _array(labels: Sequence[Label]) -> np.ndarray:
    """Return labels as an array of their type; of objects if they have several."""
    return np.array(labels, None if len({*map(type, labels)}) == 1 else object)


@define(eq=False)
class Evaluator:
    """Evaluate and predict with a model, for a state given as its ``steps``.

    ``prepare`` preprocesses samples as it did the training data; ``ready`` also checks a whole block.  ``edits`` are
    those in force, by split; ``classes`` are the labels of the data set's classes, by index; ``learned`` is what the
    data set needs to read samples for predictions.
    """

    programs: Programs
    splits: Mapping[str, Dataset]
    batch_size: int
    prepare: Callable[[Mapping[str, np.ndarray]], Host]
    ready: Callable[[Mapping[str, np.ndarray]], Host]
    learned: Mapping[str, Any] = field(factory=dict)
    classes: Sequence[Label] = ()
    edits: Mapping[str, Mapping[str, Any]] = field(factory=dict)
    alone: threading.Lock = field(factory=threading.Lock, init=False)  # held while a split is read
    _edited: dict[str, Dataset] = field(factory=dict, init=False)
    _feeds: dict[tuple[str, bool], Feed] = field(factory=dict, init=False)
    _rows: RowRecords = field(init=False)
    _delegate: Delegate | None = field(default=None, init=False)

    @_rows.default
    def _(self) -> RowRecords:
        return RowRecords(self.batch_size)

    def data(self, on: str, edited: bool = True) -> Dataset:
        """Return the data set of a split, with its edits or without; raise SigmaConfigError for an unknown split."""
        check_split("data", on, self.splits)
        if not edited or on not in self.edits:
            return self.splits[on]
        if on not in self._edited:
            about = {"dataset": self.splits[on], "edits": self.edits[on], "classes": self.classes}
            self._edited[on] = self.programs.model.resolve("dataset", {"type": EDITED, **about})
        return self._edited[on]

    def silent_copy(self) -> Evaluator:
        """Return an evaluator for another thread, for which training does not wait."""
        return evolve(self, programs=self.programs.silent_copy())

    # -- evaluation ----------------------------------------------------------------------------------------------------
    def evaluate(
        self, steps: Steps, on: str, chosen: Mapping[str, Metric | str], edited: bool = True
    ) -> dict[str, Any]:
        """Return ``loss``, the mean over all rows of a split (by their weights, if any), and each metric over them.

        If there are several costs, each is ``cost.<name>``.  The split is ``edited``, or as it is in the data set.
        """
        model = self.programs.model
        resolved = resolve_components(model.resolve, "metrics", Metric, chosen)
        metrics, totals, rows = model.per_output(resolved), dict[str, Any](), 0
        with self.alone:
            for piece in join_pieces(self._pass(steps, SplitPass(on, edited, resolved))):
                totals, rows = merge_totals(totals, piece.records, metrics), rows + piece.rows
        return evaluate_totals(totals, metrics, rows)

    def read(self, on: str) -> None:
        """Read the first block of a split, which the first evaluation uses; raise SigmaDataError if it is refused."""
        try:
            with self.alone:
                (feed := self._feed(on, edited=True)).next_batches(feed.start(), 1)
        except SigmaDataError as error:
            raise SigmaDataError(f"data: split {on!r}: {str(error).removeprefix('data: ')}") from error

    def _feed(self, on: str, edited: bool) -> Feed:
        key, dataset = (on, edited and on in self.edits), self.data(on, edited)
        if key not in self._feeds:
            if not len(dataset):
                raise SigmaDataError(f"evaluate: the split {on!r} has no rows. Give it some, or evaluate another.")
            size, how = min(self.batch_size, len(dataset)), placing(self.programs.backend, dataset)
            self._feeds[key] = Feed(dataset, size, 0, self.ready, iterator=InOrder(), **how)
        return self._feeds[key]

    def _ring(self, kind: Callable[..., Step], steps: Steps, at: Batches, *about: Any) -> Mapping[str, np.ndarray]:
        """Return the records of a step of some kind over consecutive minibatches."""
        programs = self.programs.select_tier(steps.moment.iteration)
        step, program = programs.get(kind, at.rows.shape[1], *about)
        return program.run(steps.arrays, at.block, at.rows, steps.steer(step), len(at.rows)).ring

    # -- passes over a split -------------------------------------------------------------------------------------------
    def delegate_to(self, delegate: Delegate) -> None:
        """Ask others for what passes measure, from now on; for None, a pass is measured here, to the same bits."""
        self._delegate = delegate

    def _pass(self, steps: Steps, what: SplitPass) -> Iterable[SplitPiece]:
        pieces = None if self._delegate is None else self._delegate(steps, what)
        return self.measure(steps, what) if pieces is None else pieces

    def measure(self, steps: Steps, what: SplitPass, part: int = 0, parts: int = 1) -> Iterator[SplitPiece]:
        """Yield what one of several parts of a pass measures, in the order of its rows."""
        feed, model = self._feed(what.on, what.edited), self.programs.model
        count = feed.iterations_per_epoch
        done, end = count * part // parts, count * (part + 1) // parts
        most = count if what.metrics is not None and parts == 1 else max(1, TOGETHER // feed.batch_size)
        about = () if what.metrics is None else (tuple(model.per_output(what.metrics).items()),)
        while done < end:
            batches = feed.next_batches(at := feed.seek(done), min(most, end - done))
            n, size = batches.rows.shape
            if what.metrics is None:
                yield SplitPiece(at.block, size, n, self._row_losses(steps, batches, feed.numbers(at)))
            else:
                yield SplitPiece(at.block, size, n, self._ring(evaluation_step, steps, batches, *about))
            done += n

    # -- rows ----------------------------------------------------------------------------------------------------------
    def losses(self, steps: Steps, on: str, most: int | None = None) -> RowLosses:
        """Return the loss of each row of a split alone, in the order of their numbers.

        With ``most``, return that many rows, the greatest losses first; one that is not a number is the greatest.
        """
        with self.alone:
            parts = [piece.records for piece in self._pass(steps, SplitPass(on))]
        return join_losses(parts) if most is None else join_losses(parts).worst(most)

    def _row_losses(self, steps: Steps, at: Batches, named: np.ndarray) -> RowLosses:
        """Return the losses of the rows of consecutive minibatches; ``named`` are the numbers of all in the block."""
        model, backend, rows = self.programs.model, self.programs.backend, at.rows.reshape(-1)
        batch = self._batch_records(steps, at, outcome_step) if model.judged_layers else {}
        block = {name: backend.take(at.block[name], rows) for name in model.sections}
        block |= {JUDGED + name: backend.to_device(batch[JUDGED + name]) for name in model.judged_layers}
        alone = Batches(block, np.arange(len(rows), dtype=np.int32)[:, None])
        losses = np.asarray(self._ring(judgement_step, steps, alone)["row"], np.float64)
        return RowLosses(named[rows], losses, *self._answers(batch, {n: backend.to_host(x) for n, x in block.items()}))

    def _answers(self, known: Host, block: Host) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return what the first output predicts, and its targets, as classes if it chooses among them."""
        network = self.programs.model.network
        if not network.costs:
            return None, None
        output = network.outputs[0].name
        if all(cost.sources[0] != output for cost in network.targeted_costs):
            return known[output], None
        said, wanted = known[output], known.get(WANTED, block[network.targets(output)])
        if (classes := network.classify(output, said)) is None:
            return said, wanted
        alike = network.classify(output, wanted.reshape(said.shape)) if wanted.size == said.size else None
        return classes[0], alike[0] if alike else wanted

    def close(self) -> None:
        """Stop prefetching."""
        for feed in self._feeds.values():
            feed.close()

    # -- prediction ----------------------------------------------------------------------------------------------------
    def predict(self, steps: Steps, samples: Any) -> Any:
        """Return predictions for samples, an array or one for each section of inputs, with one row per sample.

        Without samples there are no rows.  Those of several outputs are a dictionary by output.
        """
        return _unwrap_single(self.predictions(steps, samples))

    def predictions(self, steps: Steps, samples: Any) -> dict[str, np.ndarray]:
        """Return the predictions of each output for samples."""
        return self._sample_records(steps, samples, prediction_step)

    def activations(self, steps: Steps, samples: Any) -> dict[str, np.ndarray]:
        """Return what each layer before the costs makes of samples, by its name, as when it predicts them."""
        return self._sample_records(steps, samples, activity_step)

    def _sample_records(self, steps: Steps, samples: Any, kind: Callable[..., Step]) -> dict[str, np.ndarray]:
        """Return the records of a step of some kind over samples, one row per sample."""
        if type(samples) is np.ndarray and len(self._plain_sections) == 1:  # in the least time, for few rows
            bound = self._rows.recall(steps, kind, samples)
            if bound is not None and is_finite(samples):
                return bound.compute(steps, dict.fromkeys(self._plain_sections, samples))
        data = self._plain_samples(samples) or self._samples(samples)
        programs, compute = self.programs.select_tier(steps.moment.iteration), self._rows.compute
        if len(next(iter(data.values()))):
            return compute(programs, steps, kind, data)
        blank = {name: np.zeros((1, *values.shape[1:]), values.dtype) for name, values in data.items()}
        return {name: values[:0] for name, values in compute(programs, steps, kind, blank).items()}

    def classify(self, steps: Steps, samples: Any) -> Any:
        """Return the most probable class of each sample for each output, by its label if classes have labels.

        The labels are those of all outputs, unless each has learned its own from the data.
        """
        network, own, classes = self.programs.model.network, self.learned.get("classes", {}), dict[str, np.ndarray]()
        for name, each in self.predictions(steps, samples).items():
            places, count = choose_classes(network, name, each)
            labels = own.get(network.targets(name), ()) if own else self.classes
            classes[name] = _array(labels)[places] if len(labels) == count else places
        return _unwrap_single(classes)

    @cached_property
    def _sections(self) -> dict[str, Spec]:
        """Return the spec of a sample of each section of samples."""
        return {name: self.programs.model.sections[name] for name in self.programs.model.network.samples}

    @cached_property
    def _plain_sections(self) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
        """Return shape and type of a sample of each section; of none if some have preprocessors, or are no floats."""
        prepare, wanted = self.prepare, self._sections
        if not isinstance(prepare, Preparation) or {x.dtype for x in wanted.values()} != {prepare.precision}:
            return {}
        if wanted.keys() & {*prepare.sections, *self.programs.model.shapes.indices}:
            return {}
        return {name: (spec.shape, np.dtype(spec.dtype)) for name, spec in wanted.items()}

    def _plain_samples(self, samples: Any) -> Host:
        """Return samples if they are arrays of finite floats that need at most a cast; else none."""
        wanted, data, rows = self._plain_sections, Host(), None
        given = samples if type(samples) is dict else dict.fromkeys(wanted, samples)
        if len(given) != len(wanted):
            return data
        for name, (shape, dtype) in wanted.items():
            values = given.get(name)
            if type(values) is not np.ndarray or values.shape[1:] != shape or values.dtype.kind != "f":
                return {}
            values = values if values.dtype is dtype else cast_quietly(values, dtype)
            rows = len(values) if rows is None else rows
            if len(values) != rows or not is_finite(values):
                return {}
            data[name] = values
        return data

    def _samples(self, samples: Any) -> Host:
        model, wanted = self.programs.model, self._sections
        arrays = arrays_of(samples, [*wanted], self.learned, model.resolve)
        for name, spec in wanted.items():
            if name in arrays and arrays[name].shape == spec.shape:
                raise SigmaDataError(
                    f"predict: section {name!r} has shape {spec.shape}, one sample without the axis of the batch. "
                    "Write predict(x[None])."
                )
        block = conform(self.prepare(arrays), wanted, "predict")
        counts = {name: len(values) for name, values in block.items()}
        if len({*counts.values()}) != 1:
            raise SigmaDataError(f"predict: sections must have equally many rows (got {counts}).")
        check_finite(block, "predict")
        check_indices(block, model.shapes.indices, "predict")
        return block

    def _batch_records(self, steps: Steps, at: Batches, kind: Callable[..., Step]) -> dict[str, np.ndarray]:
        ring = self._ring(kind, steps, at)
        return {name: values.reshape(at.rows.size, *values.shape[2:]) for name, values in ring.items()}

    # -- observation ---------------------------------------------------------------------------------------------------
    def observe(self, steps: Steps, at: Batches, wanted: Sequence[str]) -> dict[str, np.ndarray]:
        """Compute the matching gradients, updates and activations of the next iteration, without changing the state."""
        names = self.programs.model.observable(wanted)
        if not names:
            return {}
        ring = self._ring(observation_step, steps, at, names)
        return {name: values[0] for name, values in ring.items()}

    def continuation(self, steps: Steps, *how: Any) -> Iterator[str]:
        """Return the pieces that continue a text, by the default generator; see ``Trainer.generate``."""
        generator: TextGenerator = steps.programs.model.resolve("generator", "default:generator")
        return generator.continuation(steps, self, *how)

    def generate(self, steps: Steps, *how: Any) -> str:
        """Return the continuation of a text."""
        return "".join(self.continuation(steps, *how))

    def excite(
        self,
        steps: Steps,
        samples: np.ndarray,
        directions: np.ndarray,
        layer: str = "",
        section: str = "",
        given: Mapping[str, Any] = MappingProxyType({}),
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return a layer's output for prepared samples of an input section, and its slopes along directions.

        By default these are the first output, before costs, and the first input.  All other inputs are held as
        ``given``, or at 0.
        """
        model, place = self.programs.model, self.programs.backend.to_device
        model.ends(layer, section)
        first, *others = sorted(model.network.sections(costs=False), key=lambda name: name != section)
        rows, block = np.arange(len(samples), dtype=np.int32), {first: place(samples), DIRECTIONS: place(directions)}
        for name in others:
            spec = model.sections[name]
            held = np.asarray(given.get(name, 0), spec.dtype)
            block[name] = place(np.broadcast_to(held, (len(samples), *spec.shape)).copy())
        ring = self._ring(excitation_step, steps, Batches(block, rows[None]), layer, section)
        return ring["output"][0], ring["slopes"][0]
