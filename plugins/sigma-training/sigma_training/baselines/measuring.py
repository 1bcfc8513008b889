"""Measure baselines of a run: fitted to its training rows, and evaluated with its own costs and metrics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from math import prod
from typing import Any, ClassVar

import numpy as np
from attrs import define, evolve, field, frozen

from sigma_kernel.clock import Moment
from sigma_kernel.contracts import Backend, Context, CostLayer, Dataset, Layer, Metric
from sigma_kernel.graph.node import Node, Spec
from sigma_kernel.network.architecture import Placed
from sigma_kernel.network.network import Network
from sigma_kernel.plugins import rooms
from sigma_step.rules import live_values
from sigma_step.steps import Programs, Steps
from sigma_training.baselines.fitting import (
    CLASSES,
    DECISIONS,
    NUMBERS,
    Goals,
    count_operations,
    fit_constant,
    fit_linear,
)
from sigma_training.data.dataset import Host, Rows, read
from sigma_training.data.preprocessing import conform
from sigma_training.evaluator import Evaluator
from sigma_training.session.session import Session
from sigma_training.session.state import Setup

LARGEST = 2**27  # bytes of prepared rows that are read for baselines
MOST = 4 * 10**9  # operations of a linear model: less than a second
TOGETHER = 4096  # rows that are evaluated at once
SECTION = "baseline of "  # name of an extra section; no data set has it

Outputs = Callable[[Host], Host]  # from the sections of rows to the output of each layer that has targets
Values = dict[str, float]


@define(eq=False)
class Given(Layer):
    """Outputs that were computed before, in place of the layers of a network."""

    section: str = field(kw_only=True)
    role: ClassVar[str] = "input"

    def forward(self, context: Context, x: Node) -> Node:
        """Return the section."""
        return x


@frozen(eq=False)
class Judged:
    """What baselines predict: the outputs of a network, each with its only cost, and the sections of inputs."""

    setup: Setup
    costs: Mapping[str, Placed]  # by output

    def goals(self, rows: Host, weighing: Collection[str]) -> dict[str, Goals]:
        """Return what each output is to predict; of the sections of weights, those ``weighing`` count."""
        return {name: self._goals_of(name, cost.layer, rows, weighing) for name, cost in self.costs.items()}

    def _goals_of(self, output: str, cost: CostLayer, rows: Host, weighing: Collection[str]) -> Goals:
        targets, weighs = rows[cost.targets], cost.weights in rows and cost.weights in weighing
        weights = rows[cost.weights].reshape(-1).astype(np.float64) if weighs else np.ones(len(targets))
        return Goals(_kind_of(cost), targets, self._shape(output), weights, cost.ignores)

    def _shape(self, output: str) -> tuple[int, ...]:
        return self.setup.model.shapes.judged_specs[output].shape

    @property
    def judging(self) -> tuple[str, ...]:
        """Return the sections that the costs read beside the outputs."""
        names = (name for cost in self.costs.values() for name in (cost.layer.targets, cost.layer.weights))
        return tuple(dict.fromkeys(names))

    def affords_linear(self, rows: int) -> bool:
        """Return whether a linear model of so many rows takes less than a second.

        There is none of inputs that are indices, nor of targets, which the identity predicts.
        """
        names, sections = self.setup.model.network.sections(costs=False), self.setup.model.sections
        copied = {cost.layer.targets for cost in self.costs.values()} & {*names}
        if copied or any(np.dtype(sections[name].dtype).kind != "f" for name in names):
            return False
        features = sum(prod(sections[name].shape) for name in names)
        about = ((_kind_of(cost.layer), self._shape(name)) for name, cost in self.costs.items())
        return sum(count_operations(rows, features, kind, shape) for kind, shape in about) <= MOST

    def inputs(self, rows: Host) -> np.ndarray:
        """Return the numbers of all input sections as vectors."""
        sections = [rows[name] for name in self.setup.model.network.sections(costs=False)]
        return np.concatenate([section.reshape(len(section), -1) for section in sections], axis=1, dtype=np.float64)

    def network(self) -> Network:
        """Return the network of the costs, with given outputs."""
        outputs = [Placed(name, Given(section=SECTION + name)) for name in self.costs]
        return Network((*outputs, *self.costs.values()), [])


def measure_baselines(session: Session) -> dict[str, Values]:
    """Return the loss and metrics of each baseline, by the addresses at which hooks publish those of the network.

    ``majority`` predicts the shares of classes, ``mean`` the mean of numbers, and ``linear`` is a linear model, if that
    takes less than a second.  There are none for data that is too large, or that cannot be read repeatedly, and for
    outputs that no cost compares with targets of the same kind.
    """
    setup = session.setup
    judged = _find_judged(setup)
    metrics = _metrics_by_split(setup)
    training = setup.evaluator.data("training")
    if judged is None or not metrics:
        return {}
    linear = judged.affords_linear(len(training)) and _is_readable(setup, training)
    names = None if linear else judged.judging
    if not _is_readable(setup, training, names):
        return {}
    data = {on: setup.evaluator.data(on) for on in metrics}
    held = {on: _read_rows(setup, split, names) for on, split in data.items() if _is_readable(setup, split, names)}
    rows = _read_rows(setup, training, names)
    goals = judged.goals(rows, _find_weighing(judged, held.values()))
    if not held or not all(goal.fits_shape for goal in goals.values()):
        return {}
    models, results = _fit_models(judged, rows, goals, linear), dict[str, Values]()
    for on, split in held.items():
        for name, values in _Evaluation(session, judged, split).measure(models, metrics[on]).items():
            results.setdefault(name, {}).update({f"{on}.{key}": value for key, value in values.items()})
    return results


def _find_weighing(judged: Judged, held: Iterable[Host]) -> set[str]:
    """Return the sections of weights that weigh the held-out rows as well.

    Those of training rows alone, such as weights of classes, are to change the network, not what is measured.
    """
    return {name for rows in held for name in judged.judging if name in rows and np.ptp(rows[name])}


def _kind_of(cost: CostLayer) -> str:
    return CLASSES if cost.chooses else DECISIONS if cost.decides else NUMBERS


def _find_judged(setup: Setup) -> Judged | None:
    """Return the outputs with their costs; None if a cost compares something else, or an output has several."""
    network = setup.model.network
    if not isinstance(network, Network) or not network.costs:
        return None
    costs = {cost.sources[0]: cost for cost in network.costs if len(cost.sources) == 1 and _is_plain(cost.layer)}
    alone = len(costs) == len(network.costs)
    return Judged(setup, costs) if alone and {x.name for x in network.outputs} <= {*costs} else None


def _is_plain(cost: CostLayer) -> bool:
    """Return whether it is known which outputs are predictions of the targets."""
    own = cost.chooses or cost.decides
    kept = all(getattr(type(cost), name) is getattr(CostLayer, name) for name in ("prediction", "predict"))
    return bool(cost.targets) and (own or (cost.estimates and kept))


def _metrics_by_split(setup: Setup) -> dict[str, dict[str, Metric]]:
    """Return the metrics that hooks publish of each split but that of training, by name."""
    results: dict[str, dict[str, Metric]] = {}
    for hook in setup.order.hooks.values():
        for on in {*hook.splits} - {"training"} if len(hook.splits) == 1 and not hook.weights else ():
            metrics = results.setdefault(on, {})
            for address, metric in hook.metrics_by_address.items():
                head, _, name = address.partition(".")
                if head == on and isinstance(metric, Metric) and not metric.section and not metric.lengths:
                    metrics[name] = metric
    return results


def _is_readable(setup: Setup, data: Dataset, names: Collection[str] | None = None) -> bool:
    """Return whether rows are the same whenever they are read, and not too many; of those named alone, if possible."""
    alone = names if names and _read_columns(data, names) else setup.model.sections
    specs = (spec for name, spec in setup.model.sections.items() if name in alone)
    size = sum(prod(spec.shape) * np.dtype(spec.dtype).itemsize for spec in specs)
    return data.has_row_numbers and not data.drawn_anew and 0 < len(data) * size <= LARGEST


def _read_rows(setup: Setup, data: Dataset, names: Collection[str] | None) -> Host:
    """Return the prepared sections of all rows; of those named alone, if the data set can read them alone."""
    if columns := _read_columns(data, names or ()):
        prepared = setup.evaluator.prepare(columns)
        return conform(prepared, {name: setup.model.sections[name] for name in prepared})
    blocks = [setup.evaluator.ready(read(data, number)) for number in range(data.blocks)]
    return blocks[0] if len(blocks) == 1 else {name: np.concatenate([x[name] for x in blocks]) for name in blocks[0]}


def _read_columns(data: Dataset, names: Collection[str]) -> Host:
    """Return sections by name as a data set holds them; nothing if it cannot read them alone."""
    column: Callable[[str], np.ndarray | None] = getattr(data, "column", lambda name: None)
    wanted = [name for name in names if name in data.sections]
    columns = {name: values for name in wanted if (values := column(name)) is not None}
    return columns if len(columns) == len(wanted) else {}


def _fit_models(judged: Judged, rows: Host, goals: Mapping[str, Goals], linear: bool) -> dict[str, Outputs]:
    """Return the baselines by name: a constant, and, if wanted, a linear model of vectors."""
    precision = judged.setup.model.precision
    constants = {name: fit_constant(goal).astype(precision) for name, goal in goals.items()}
    kinds = {goal.kind for goal in goals.values()}
    name = "constant" if NUMBERS in kinds and len(kinds) > 1 else "mean" if NUMBERS in kinds else "majority"
    models: dict[str, Outputs] = {name: lambda held: _repeat(constants, len(next(iter(held.values()))))}
    if not linear or not all(goal.is_vector for goal in goals.values()):
        return models
    inputs = judged.inputs(rows)
    fitted = {name: fit_linear(inputs, goal) for name, goal in goals.items()}

    def predict(held: Host) -> Host:
        given = judged.inputs(held)
        return {name: given @ matrix + shift for name, (matrix, shift) in fitted.items()}

    return {**models, "linear": predict}


def _repeat(constants: Mapping[str, np.ndarray], rows: int) -> Host:
    return {name: np.broadcast_to(value, (rows, *value.shape)) for name, value in constants.items()}


@frozen(eq=False)
class _Evaluation:
    """The evaluation of outputs for the rows of a split, compiled once for all baselines."""

    session: Session
    judged: Judged
    rows: Host

    def measure(self, models: Mapping[str, Outputs], metrics: Mapping[str, Metric]) -> dict[str, Values]:
        """Return the finite numbers among loss and metrics, by baseline and name."""
        evaluator: Evaluator | None = None
        results: dict[str, Values] = {}
        for name, predict in models.items():
            block = self._block(predict(self.rows))
            evaluator = self._evaluator(block) if evaluator is None else evaluator
            ready = evolve(evaluator, splits={"rows": Rows(block)})
            live = live_values(ready.programs.model).with_base(self.session.state.live.base)
            values = ready.evaluate(Steps(ready.programs, {}, live, Moment()), "rows", metrics)
            ready.close()
            results[name] = {
                key: float(x) for key, x in values.items() if isinstance(x, int | float) and np.isfinite(x)
            }
        return results

    def _backend(self) -> Backend:
        """Return the reference, on which nothing is compiled: that of the run, if it is one."""
        setup, name = self.session.setup, rooms.reference()
        own = setup.programs.select_tier(self.session.moment.iteration).backend
        return own if self.session.backend_name == name else self.judged.setup.model.resolve(Backend, name)

    def _block(self, outputs: Host) -> Host:
        """Return the sections that the costs read."""
        network, precision = self.judged.network(), self.judged.setup.model.precision
        wanted = {placed.layer.targets for placed in network.costs} | {*network.weights(self.rows)}
        block = {name: values for name, values in self.rows.items() if name in wanted}
        return block | {SECTION + name: np.asarray(values, precision) for name, values in outputs.items()}

    def _evaluator(self, block: Host) -> Evaluator:
        """Return the evaluator of the costs on sections like those of a block."""
        whole, network = self.judged.setup.model, self.judged.network()
        specs = {name: Spec(values.shape[1:], values.dtype.name) for name, values in block.items()}
        backend = self._backend()
        shapes = network.declare(specs, whole.precision, whole.resolve)
        bare: Mapping[str, Any] = {"low": "", "optimisers": {}, "owners": {}, "metrics": {}}
        model = evolve(whole, network=network, shapes=shapes, sections=specs, **bare)
        return Evaluator(Programs(model, backend), {}, TOGETHER, dict, dict)
