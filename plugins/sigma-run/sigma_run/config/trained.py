"""Load a trained network from a run folder, and predict or evaluate with it.

::

    model = load("runs/digits-20260101-120000")
    probabilities = model.predict(images)

Nothing is trained. Shapes come from the network's input layers, the state of fitted preprocessors from the checkpoint.
Data are read only by :meth:`Trained.evaluate`, through ``Trained.data``, and for an input layer that infers its shape
from them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from inspect import signature
from os import PathLike
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np
from attrs import define, evolve, field

from sigma_kernel.clock import Moment
from sigma_kernel.contracts import Backend, Inference, Label, Metric
from sigma_kernel.contracts.storing import Checkpoint, Log, StoredRun
from sigma_kernel.curves import BranchedCurves
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.graph.node import Spec
from sigma_kernel.network.network import Network
from sigma_kernel.periods import read_periods
from sigma_run.config import choosing
from sigma_run.config.stored import SUMMARY, changed_plugins, open_stored, read_document
from sigma_run.config.stores import CONFIGURATION, open_run
from sigma_run.config.trained_data import TrainedData
from sigma_run.predicting.predicted import PredictedTable, predict_table
from sigma_step.graphs import prediction_step
from sigma_step.live import Live
from sigma_step.model import LAYERS, Model
from sigma_step.rules import live_values
from sigma_step.steps import Programs, Steps
from sigma_step.units import Units
from sigma_step.weights import apply_weights
from sigma_training.arguments import check_metrics
from sigma_training.compatibility import check_layers
from sigma_training.components import Learned, target_names
from sigma_training.data.dataset import samples as arrays_of, specs
from sigma_training.data.preprocessing import Preparation
from sigma_training.evaluator import Evaluator
from sigma_training.history.media import read_gallery
from sigma_training.history.metrics import History
from sigma_training.hooks.outlook import list_metrics
from sigma_training.preparation import BATCH, Stages
from sigma_training.trainer import NetworkTrainer, expect_trainer

Ready = tuple[Evaluator, Steps]
Select = Callable[[StoredRun, str, choosing.Use], tuple[Path, Checkpoint]]  # of a trainer: place and state, if they fit
MOST_FORMS = 64  # types and shapes of samples whose evaluators are found at once


# -- trained networks --------------------------------------------------------------------------------------------------
@define(eq=False, repr=False)
class Trained:
    """A trained network, with the ``trainer`` that trained it and the ``path`` of its checkpoint.

    ``summary`` is that of the run, empty if it has not ended; ``data`` are its data; ``classes`` are the labels of the
    classes; ``run`` is where it is stored.
    """

    trainer: NetworkTrainer
    network: Network
    path: Path
    checkpoint: Checkpoint
    summary: Mapping[str, Any]
    shapes: Mapping[str, tuple[int, ...]]  # of one sample of each input section
    data: TrainedData
    run: StoredRun
    _stages: Stages
    _arrays: Mapping[str, Any]  # parameters and layer state, on the device
    _evaluators: dict[tuple[str, ...], Evaluator] = field(factory=dict, init=False)
    _readied: dict[tuple[Any, ...], Ready] = field(factory=dict, init=False)  # by types and shapes

    def __repr__(self) -> str:
        return f"Trained({self.trainer.name!r}, {shorten(str(self.network), 120, placeholder=' ...')}, {self.path})"

    @property
    def classes(self) -> tuple[Label, ...]:
        """Return the labels of the classes by index, as words, numbers or booleans; empty if there are none."""
        return tuple(self.checkpoint.values.get("classes", ()))

    def names(self, output: str) -> Sequence[Label]:
        """Return the labels of the classes of an output by index; empty if it has none."""
        return self.trainer.learned.labels(self.network.targets(output))

    @property
    def columns(self) -> Mapping[str, Sequence[str]]:
        """Return the names of the columns of each section of inputs that has any."""
        return self.trainer.learned.facts_of("columns")

    @property
    def targets(self) -> Mapping[str, Sequence[str]]:
        """Return the names of the columns that outputs predict, by output, of those that have any."""
        return target_names(self.network, self.trainer.learned)

    @property
    def history(self) -> History:
        """Return what was measured during the run; empty for a network that was saved by itself."""
        curves = self.run.curves(warnings.warn)
        own = curves.get(self.trainer.name, BranchedCurves([], {}))
        return History.from_curves(
            own,
            self.trainer.resolve,
            gallery=partial(read_gallery, self.run, self.trainer.name),
            periods=lambda: read_periods(self.run.journal_rows()).get(self.trainer.name, []),
        )

    @property
    def dataset(self) -> Any:
        """Return the data set that the network was trained on, as it is described; nothing is read."""
        return self.trainer.data

    @property
    def extractors(self) -> dict[str, Any]:
        """Return what reads tables, by section; empty if the network was not trained on columns with names."""
        frames, resolve = self.trainer.learned.facts_of("frames"), self.trainer.resolve
        return {name: resolve("extractor", frames[name]) for name in self.shapes if name in frames}

    @property
    def predicted_columns(self) -> dict[str, Sequence[str]]:
        """Return the names of the columns that were targets, of classes too, by output, of those that have any."""
        facts, costs = self.trainer.learned.facts_of("targets"), self.network.targeted_costs
        sections = {cost.sources[0]: cost.layer.targets for cost in reversed(costs)}
        return {**{name: facts[section] for name, section in sections.items() if section in facts}, **self.targets}

    def predict_table(self, place: Any, keep: Sequence[str] = (), white: float | None = None) -> PredictedTable:
        """Return the predictions for a file, a folder of pictures or a frame as a table.

        It begins with the columns that name a row, which the training left out, and those to ``keep``; classes are
        named, and have their probabilities.  ``white`` is that of :meth:`read`.
        """
        return predict_table(self, place, keep, white)

    def predict(self, samples: Any, batch_size: int | None = None) -> Any:
        """Predict for samples, an array or one per input section; they are preprocessed as in training.

        The path of a file is predicted as a table, see :meth:`predict_table`.

        The result has the same bits as ``trainer.predict`` on the same backend. If the network ends in
        ``softmax_cross_entropy`` or ``binary_cross_entropy``, predictions are probabilities, else the values of the
        output layer. There is one row per sample; several outputs are a dictionary of arrays by output layer.

        Rows are computed ``batch_size`` at a time, by default as many as in training, and those that are no whole batch
        in blocks of a power of two, of which the last two may overlap. With 1, the bits of a row do not depend on the
        others. Several threads may predict at once.
        """
        if isinstance(samples, str | Path):
            return self.predict_table(samples)
        if batch_size is not None and (type(batch_size) is not int or batch_size < 1):
            raise SigmaConfigError(f"predict: batch_size is a whole number from 1 on (got {batch_size!r}).")
        if type(samples) is not np.ndarray or samples.dtype.kind not in "fiub":
            evaluator, steps, samples = self._ready(samples, batch_size)
            return evaluator.predict(steps, samples)
        form = batch_size, samples.dtype, samples.shape
        ready = self._readied.get(form) or _keep(self._readied, form, self._ready(samples, batch_size)[:2])
        return ready[0].predict(ready[1], samples)

    def arrays(self, samples: Any) -> dict[str, np.ndarray]:
        """Return samples as the arrays that predictions read, by section, before any preprocessor; frames by column."""
        return arrays_of(samples, [*self.shapes], self.checkpoint.values.get("learned", {}), self.trainer.resolve)

    def read(self, path: Path, white: float | None = None) -> np.ndarray:
        """Return the samples of a file: by the ``samples`` of the data set, else by the reader for its extension.

        ``white`` is the value of a white pixel in the training data. Raises SigmaDataError if the file does not fit.
        """
        shape = next(iter(self.shapes.values()))
        if (own := getattr(self.trainer.data, "samples", None)) is not None:
            learned = {"learned": self.checkpoint.values.get("learned", {})}
            return np.asarray(own(path, shape, white, **(learned if "learned" in signature(own).parameters else {})))
        resolve = self.trainer.resolve
        reader = resolve("reader", {"type": "default:samples", "shape": shape, "white": white})
        return np.asarray(reader.read(resolve("source", {"type": "default:file", "path": path}))["values"])

    def classify(self, samples: Any) -> Any:
        """Return the most probable class of each sample, as ``trainer.classify`` does."""
        evaluator, steps, arrays = self._ready(samples)
        return evaluator.classify(steps, arrays)

    def generate(self, text: str, length: int = 200, temperature: float = 1.0, seed: int = 0) -> str:
        """Return what continues a text, ``length`` characters or tokens, as ``trainer.generate`` does."""
        return "".join(self.continuation(text, length, temperature, seed))

    def continuation(self, text: str, length: int = 200, temperature: float = 1.0, seed: int = 0) -> Iterator[str]:
        """Return the same text piece by piece, as it is computed."""
        tokens = {name: np.zeros((1, *shape), np.int32) for name, shape in self.shapes.items()}
        evaluator, steps, _ = self._ready(tokens)
        return evaluator.continuation(steps, text, length, temperature, seed)

    def activations(self, samples: Any) -> dict[str, np.ndarray]:
        """Return the output of each layer before the costs for samples, by its name, one row per sample."""
        evaluator, steps, arrays = self._ready(samples)
        return evaluator.activations(steps, arrays)

    def excite(
        self, samples: Any, directions: np.ndarray, layer: str = "", section: str = ""
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return a layer's output for samples, and its slopes along directions by an input section, as prepared.

        By default these are the first output, before costs, and the first input.  ``directions`` have the shape of the
        output; slopes are the gradient of its sum, weighted by them, of the shape of the section.
        """
        evaluator, steps, arrays = self._ready(samples)
        prepared = evaluator.prepare(arrays)
        first = section or self.network.sections(costs=False)[0]
        return evaluator.excite(steps, prepared[first], directions, layer, first, prepared)

    def evaluate(
        self, on: Any = "validation", metrics: Mapping[str, Metric | str] | None = None, edited: bool = False
    ) -> dict[str, float]:
        """Return the loss and metrics by name over a split of the data, which are read now, or over other data.

        A split is as it is in the data, or ``edited`` as it was in the run when the checkpoint was written.

        Other data are whatever a trainer takes as the data of a split, such as a tuple ``(inputs, targets)``.  They are
        read like those of the training: with its classes, its columns by name, and its preprocessors.
        """
        check_metrics(metrics)
        setup = self.data.session.setup if isinstance(on, str) else self.data.setup_for(on)
        own = self.checkpoint.values.get("data", {}).get("edits", {}) if isinstance(on, str) else {}
        how = {"batch_size": self.batch_size, "edits": own if edited else {}}
        steps = Steps(setup.programs, self._arrays, self._live(setup.model), read_moment(self.checkpoint))
        return setup.evaluate(steps, on if isinstance(on, str) else "training", metrics or {}, **how)

    @property
    def metrics(self) -> dict[str, Metric]:
        """Return the metrics that the trainer and its hooks measure, by the names under which they are published."""
        return list_metrics(self.trainer.hooks.values(), self._model({}))

    def _live(self, model: Model) -> Live:
        return live_values(model).with_base(self.checkpoint.values.get("live", {}))

    def _restore_learned(self) -> Learned:
        """Return what the training has learned from its data, and its state."""
        values = self.checkpoint.values
        changes = {slot: new for slot, new in values.get("changes", {}).items() if slot != "backend"}  # load() chose it
        checkpoint = evolve(self.checkpoint, values={**values, "changes": changes})
        restore, initial = partial(self.data.restore, checkpoint), self.run.initial(self.trainer.name)
        return Learned.from_checkpoint(values, self.checkpoint.arrays, restore=restore, initial=initial)

    def parameters(self) -> dict[str, np.ndarray]:
        """Return a copy of every parameter by its address."""
        model = self._model({})
        return {a: np.array(self.checkpoint.arrays[a]) for a in sorted(LAYERS + name for name in model.parameters())}

    def inference(self) -> Inference:
        """Return the network as exporters receive it: its graph, its arrays on the host, its classes."""
        preparation, stored = self._preparation(), self.checkpoint.arrays
        model = self._model(self._types)
        return Inference(
            architecture=str(self.network),
            classes=tuple(map(str, self.classes)),
            arrays={name.removeprefix(LAYERS): np.array(stored[name]) for name in sorted(model.layer_specs())},
            step=partial(prediction_step, evolve(model, units=Units())),
            restored=model.restore_units,
            targets=self.targets,
            live={name: value for name, value in self._live(model).base.items() if name.startswith(LAYERS)},
            samples=self._sample_types,
            preprocessors={n: (step, preparation.fitted[n]) for n, step in preparation.preprocessors.items()},
            origin="/".join(self.path.parts[-4:]),
        )

    @property
    def _sample_types(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """Return shape and type of a sample in the data of the run; none of a checkpoint of an earlier version."""
        samples = self.trainer.learned.facts_of("samples")
        return {name: (tuple(samples[name][0]), str(samples[name][1])) for name in self.shapes if name in samples}

    @property
    def _types(self) -> dict[str, str]:
        """Return the types that the network was built for, by section of samples."""
        rows = {name: np.zeros((1, *shape), dtype) for name, (shape, dtype) in self._sample_types.items()}
        with np.errstate(all="ignore"):  # of zeros
            return {name: spec.dtype for name, spec in specs(self._preparation()(rows)).items()}

    def _ready(self, samples: Any, batch_size: int | None = None) -> tuple[Evaluator, Steps, Mapping[str, np.ndarray]]:
        """Return the evaluator and the steps for samples, and these as arrays."""
        arrays = self.arrays(samples)
        form = batch_size, *[(n, x.dtype, x.shape[1:], x.shape == self.shapes.get(n)) for n, x in arrays.items()]
        if (ready := self._readied.get(form)) is None:
            evaluator = self._evaluator(arrays)
            evaluator = evaluator if batch_size is None else evolve(evaluator, batch_size=batch_size)
            live = self._live(evaluator.programs.model)
            steps = Steps(evaluator.programs, self._arrays, live, read_moment(self.checkpoint))
            ready = _keep(self._readied, form, (evaluator, steps))
        return *ready, arrays

    def _evaluator(self, arrays: Mapping[str, np.ndarray]) -> Evaluator:
        """Return the evaluator for samples, of the types of the training, or of their own if these are not known."""
        prepare = self._preparation()
        batches = {n: values for n, values in arrays.items() if values.shape != self.shapes.get(n)}
        types = {name: spec.dtype for name, spec in specs(prepare({n: v[:1] for n, v in batches.items()})).items()}
        types |= self._types
        key = tuple(types.get(name, "") for name in self.shapes)
        if key not in self._evaluators:
            programs = Programs(self._model(types), self._stages.backend)
            programs = programs.select_tier(read_moment(self.checkpoint).iteration)
            learned = self.checkpoint.values.get("learned", {})
            facts = learned, self.classes
            self._evaluators[key] = Evaluator(programs, {}, self.batch_size, prepare, prepare, *facts)
        return self._evaluators[key]

    @property
    def batch_size(self) -> int:
        """Return the rows that are predicted at a time, as many as in training."""
        return int(self.checkpoint.values.get("batch_size") or self.trainer.batch_size or BATCH)

    def _model(self, types: Mapping[str, str]) -> Model:
        """Trace the model for samples of these dtypes, without costs."""
        dtypes = {name: types.get(name, self.trainer.dtype) for name in self.shapes}
        model = self._stages.trace_model(
            {name: Spec(self.shapes[name], dtype) for name, dtype in dtypes.items()}, self.network
        )
        return evolve(model, units=self._preparation().units(self._stages.backend))

    def _preparation(self) -> Preparation:
        steps, fitted = self._stages.resolved_settings.preprocessors, self.trainer.learned.fitted
        samples = self.trainer.learned.facts_of("samples")
        return Preparation(self.trainer.dtype, steps, {name: dict(fitted.get(name, {})) for name in steps}, samples)


def _keep(forms: dict[tuple[Any, ...], Ready], form: tuple[Any, ...], ready: Ready) -> Ready:
    """Keep the evaluator and the steps for a form of samples, and return them."""
    if len(forms) >= MOST_FORMS:
        forms.clear()
    forms[form] = ready
    return ready


def read_moment(checkpoint: Checkpoint) -> Moment:
    """Return the moment at which a checkpoint was taken."""
    return Moment(**checkpoint.values.get("clock", {}))


def load(
    run: Path | str,
    trainer: str | None = None,
    *,
    backend: str | Mapping[str, Any] | Backend | None = None,
    checkpoint: choosing.Which = None,
    weights: str = "",
    data: Path | str | None = None,
    trust: Iterable[str] = (),
    log: Log = warnings.warn,
) -> Trained:
    """Load the trained network of a run folder, ready to predict.

    ``trainer`` names one of several; ``backend`` replaces the run's own; ``checkpoint`` is an iteration, ``best`` or
    ``newest``; by default, the best if a hook keeps that, else the newest. ``weights`` names a modifier, such as
    ``average``, whose weights take the place of the parameters. ``data`` is where the data lie now, if not where they
    were. Skipped checkpoints and changed versions of plugins are logged to ``log``. Own code that the run names is
    imported only of the packages and modules in ``trust``. Raises SigmaConfigError if ``run`` is not a run folder, or
    names code that is not trusted, and SigmaCheckpointError if no checkpoint is intact and fits the network.
    """

    def select(stored: StoredRun, name: str, use: choosing.Use) -> tuple[Path, Checkpoint]:
        return choosing.select_checkpoint(stored, name, checkpoint, log, use)

    return open_trained(run, trainer, select, backend=backend, weights=weights, data=data, trust=trust, log=log)


def open_trained(
    run: Path | str,
    trainer: str | None,
    select: Select,
    *,
    backend: str | Mapping[str, Any] | Backend | None = None,
    weights: str = "",
    data: Path | str | None = None,
    trust: Iterable[str] = (),
    log: Log = warnings.warn,
) -> Trained:
    """Return the trained network of a run folder in the state that ``select`` returns, as :func:`load` does."""
    if not isinstance(run, str | PathLike):
        got = type(run).__name__
        raise SigmaConfigError(f"load: a run is given by the path of its folder (got {got}). `sigma runs` lists them.")
    folder, stored = Path(run), open_run(Path(run), log)
    configuration, environment = open_stored(folder, trust, None if data is None else Path(data))
    chosen = select_trainer(folder, environment, trainer)
    if backend is not None:
        chosen.backend = backend
    tried: list[tuple[Stages, Model]] = []
    path, state = select(stored, chosen.name, partial(_fit, chosen, tried))
    stages, model = tried[-1]
    state = evolve(state, arrays=apply_weights(state.arrays, weights, np.asarray))
    if state.chain.get("configuration") not in (None, sha256(stored.read(CONFIGURATION) or b"").hexdigest()):
        stored.excerpt(environment.trainers, log, whole=False)  # raises unless `sigma resume --set` changed it
    for line in changed_plugins(stored, log):
        log(line)
    shapes = {name: model.sections[name].shape for name in stages.network.samples}
    summary, own = read_document(stored, SUMMARY, log), TrainedData(chosen, path, state, configuration)
    arrays = {name: stages.backend.to_device(state.arrays[name]) for name in model.layer_specs()}
    trained = Trained(chosen, stages.network, path, state, summary, shapes, own, stored, stages, arrays)
    chosen.learned = trained._restore_learned()
    return trained


def _fit(chosen: NetworkTrainer, tried: list[tuple[Stages, Model]], path: Path, checkpoint: Checkpoint) -> None:
    """Append the stages with what a checkpoint has learned, and the model; raise SigmaCheckpointError if it differs.

    The data are read if an input layer takes its shape from them, and the checkpoint does not know that yet.
    """
    chosen.learned = Learned.from_checkpoint(checkpoint.values, checkpoint.arrays)
    stages = Stages(chosen)
    model = stages.declared_model or stages.fitting
    check_layers(path, checkpoint, chosen.name, model)
    tried.append((stages, model))


def select_trainer(run: Path, environment: Environment, name: str | None) -> NetworkTrainer:
    """Return a trainer of a run; raise SigmaConfigError if there are several, and none is named."""
    if name is None and len(environment.trainers) > 1:
        raise SigmaConfigError(f"{run}: has several trainers: {', '.join(environment.trainers)}. Name one of them.")
    return expect_trainer(environment.trainer(name or next(iter(environment.trainers))))
