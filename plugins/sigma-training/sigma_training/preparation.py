"""Build a session from a trainer's settings, in stages.

Each stage is a cached property of :class:`Stages`, computed from earlier ones: resolve names and tables to components,
read the data and fit preprocessors, infer shapes; :func:`prepare_session` makes the session's setup of them.  A stage
raises the first mistake.  Where mistakes are collected instead, each with its path in the trainer's tables, the stages
that depend on a failed one are skipped.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import cached_property, partial, wraps
from math import inf, prod
from typing import Any, TypeVar

import numpy as np
from attrs import define, evolve, field, fields

from sigma_kernel.arrays import read_only
from sigma_kernel.contracts import Backend, Dataset, Hook, Label, Operator, Step
from sigma_kernel.errors import (
    FIRST,
    Mistakes,
    SigmaConfigError,
    SigmaDataError,
    SigmaError,
    SigmaNetworkError,
    SigmaPluginError,
    introduce_errors,
    suggest_name,
    warn,
)
from sigma_kernel.graph.node import Spec
from sigma_kernel.network.architecture import Placed
from sigma_kernel.network.network import Network
from sigma_kernel.settings import MIXED, is_total, is_whole
from sigma_step.graphs import training_step
from sigma_step.initial import Initial
from sigma_step.model import UNCUT, Model
from sigma_step.rules import assign_optimisers, check_matches, live_values
from sigma_step.steps import Programs
from sigma_training import components as choices
from sigma_training.components import Learned, Settings
from sigma_training.data.augmenting import Augmenter
from sigma_training.data.dataset import Host, keep_blocks, read, specs
from sigma_training.data.feed import Feed, check_rows_kept, placing
from sigma_training.data.identity import describe_rows
from sigma_training.data.preprocessing import Preparation, check_finite, check_indices, coarse_columns, conform
from sigma_training.data.sizes import SizeInference
from sigma_training.evaluator import Evaluator
from sigma_training.hooks.outlook import ModelPreview, check_end, check_one
from sigma_training.session.bindings import check_declared
from sigma_training.session.changes import Factory, Parts
from sigma_training.session.state import Setup
from sigma_training.tiers import has_open_tiers, known_tiers, restore_tiers, settle_tiers

BATCH = 100  # default rows of a minibatch
ARCHITECTURE = ("network", "architecture")  # path of the network in a trainer's tables
DATASET = ("data", "dataset")  # and of the data

T = TypeVar("T")


class Missing(Exception):
    """A stage needs another that is left out, or that failed and was reported."""


def stage(*path: str) -> Callable[[Callable[[Stages], T]], cached_property[T]]:
    """Make a method a stage; its mistakes are reported under this path of the trainer's tables."""

    def decorate(make: Callable[[Stages], T]) -> cached_property[T]:
        @wraps(make)
        def run_stage(stages: Stages) -> T:
            if make.__name__ not in stages.left_out:
                with suppress(Missing), stages.mistakes.locate(*path):
                    return make(stages)
                stages.left_out.add(make.__name__)
            raise Missing

        return cached_property(run_stage)

    return decorate


@define(eq=False, slots=False)
class Stages:
    """The stages of preparing a trainer; those in ``left_out`` raise Missing when accessed."""

    settings: Settings
    mistakes: Mistakes = FIRST
    left_out: set[str] = field(factory=set)

    @property
    def precision(self) -> str:
        """Return the dtype of parameters; float32 if the given one was refused, to avoid follow-up errors."""
        return "float32" if "backend" in self.left_out else self.settings.dtype

    # -- components ----------------------------------------------------------------------------------------------------
    @stage()
    def resolved_settings(self) -> Settings:
        """Return the settings with names and tables resolved, except for those that later stages resolve."""
        return choices.resolve_settings(self.settings)

    @stage("run", "precision")
    def backend(self) -> Backend:
        """Return the backend, checked for the precision."""
        name, resolve = self.settings.name, self.settings.resolve
        backend: Backend = resolve(Backend, self.settings.backend, f"{name}.backend")
        choices.check_precision(name, self.settings.precision, backend)
        return restore_tiers(backend, self.settings.learned.about)

    @stage()
    def operator(self) -> Operator:
        """Return the operator."""
        return self.settings.resolve(Operator, self.settings.operator, f"{self.settings.name}.operator")  # type: ignore[no-any-return]

    @stage(*ARCHITECTURE)
    def network(self) -> Network:
        """Return the network, before shapes are inferred, with the sizes that an earlier training took from data."""
        network = choices.network(self.settings.resolve, self.settings.name, self.settings.network)
        learned = self.settings.learned
        settled = isinstance(network, Network) and learned.about and network.sizes is None
        return network.with_sizes(learned.facts_of("sizes")) if settled else network

    @stage(*DATASET)
    def data(self) -> dict[str, Dataset]:
        """Return the data set of each split."""
        return choices.splits(self.resolved_settings)

    @stage("hooks")
    def hooks(self) -> dict[str, Hook]:
        """Return the hooks by name; one measures on a split for validation, unless another does."""
        resolve, where, splits = self.settings.resolve, f"{self.settings.name}.hooks", None
        with suppress(Missing):
            splits = self.data
        hooks = choices.hooks(resolve, where, self.settings.hooks, splits, self.mistakes)
        measured = any("validation" in hook.splits for hook in hooks.values())
        if measured or "validation" not in (splits or ()):
            return hooks
        table = {"type": "default:evaluation", "metrics": self.resolved_settings.metrics}
        try:
            return {**choices.hooks(resolve, where, {"validation": table}, splits), **hooks}
        except SigmaPluginError:  # the room of the hook is not installed
            if self.settings.validation_split is not None or self.settings.metrics:
                raise
            return hooks

    # -- data ----------------------------------------------------------------------------------------------------------
    @stage(*DATASET)
    def encoded_splits(self) -> dict[str, Dataset]:
        """Return the splits encoded as the network reads them."""
        with suppress(Missing):
            return choices.encode_splits(self.data, self.network, self.resolved_settings)
        return self.data

    @stage(*DATASET)
    def rows(self) -> tuple[Preparation, dict[str, Spec]]:
        """Return the preprocessors, fitted on the training split, and the specs of their output sections."""
        training, done, path = self.encoded_splits["training"], Preparation(self.precision), ("data", "preprocessors")
        for name, step in self.resolved_settings.preprocessors.items():
            with self.mistakes.locate(*path, name):
                done = done.add_step(name, step, training, self.settings.learned.fitted.get(name))
                continue
            raise Missing  # so that later ones are not blamed
        block = read(training, 0)  # read after fitting, so that only one block is held
        done = evolve(done, samples={name: (values.shape[1:], values.dtype.name) for name, values in block.items()})
        first = {name: values[:1] for name, values in block.items()}
        for name, varying in self.resolved_settings.augmentations.items() if len(training) else ():
            with self.mistakes.locate("data", "augmentations", name):
                Augmenter(0, {name: varying}).apply(first, 0, np.arange(1))
        for name in done.preprocessors:
            with self.mistakes.locate(*path, name):
                block = done.apply(name, block)
                continue
            raise Missing
        cast = done.cast(block)
        for text in [] if self.settings.learned.about else coarse_columns(block, cast, training):
            warn(f"{self.settings.name}: {text}")
        return done, specs(cast)

    @stage("data", "batch_size")
    def feed(self) -> Feed:
        """Return the feed of minibatches, not preprocessed and on the host; :func:`prepare_session` adds both."""
        settings, training = self.resolved_settings, self.encoded_splits["training"]
        size, last = settings.batch_size, settings.last_batch
        if size is None:
            size = min(BATCH, len(training))
        elif not is_whole(size, 1):
            raise SigmaConfigError(f"{settings.name}.batch_size: must be a whole number of at least 1 (got {size!r}).")
        elif settings.learned.about:  # other rows may be fewer than those for which it was chosen
            size = min(size, len(training))
        if last not in ("keep", "drop"):
            raise SigmaConfigError(f"{settings.name}.last_batch: must be 'keep' or 'drop' (got {last!r}).")
        seed, steps = settings.seed, settings.augmentations
        augmenter = Augmenter(seed, steps) if steps else None
        order, keep = settings.iterator, last == "keep"
        return Feed(training, size, seed, dict, np.asarray, order, keep, augmenter=augmenter, lanes=self.lanes)

    @stage("data", "lanes")
    def lanes(self) -> int:
        """Return the number of lanes of the training split; raise SigmaConfigError unless it is that of shards."""
        lanes, shards = self.encoded_splits["training"].lanes, self.operator.shards
        if lanes not in (1, shards):
            raise SigmaConfigError(
                f"{self.settings.name}.data: there are {lanes} lanes, and {shards} shards of each batch, which have a "
                f"lane each. Set lanes = {shards}, or shards = {lanes} for the operator."
            )
        return lanes

    @stage("epochs")
    def epochs(self) -> float | None:
        """Return the total number of epochs; None if only a hook ends training."""
        epochs = self.settings.epochs
        if epochs is not None and not is_total(epochs):
            raise SigmaConfigError(
                f"{self.settings.name}.epochs: must be a whole number of at least 1, or inf (got {epochs!r})."
            )
        return epochs

    @stage("epochs")
    def ending(self) -> None:
        """Check that something ends training."""
        check_end(self.settings.name, self.epochs, self.hooks)

    # -- the model -----------------------------------------------------------------------------------------------------
    @stage(*ARCHITECTURE)
    def sized_network(self) -> Network:
        """Return the network with all sizes: those that it leaves open, and that were not learned, from the data."""
        network = self.network
        if not isinstance(network, Network) or not network.takes_sizes:
            return network
        return SizeInference(self.encoded_splits, *self.rows, self.settings.resolve).apply(network)

    @stage(*ARCHITECTURE)
    def fitting(self) -> Model:
        """Return the model of the network on the data."""
        _, there = self.rows
        network = self.sized_network
        wanted = network.sections(there=there)
        for name in wanted:
            if name not in there:
                raise SigmaDataError(
                    f"{self.settings.name}: the network reads section {name!r}; the data has {', '.join(there)}. "
                    f"Name one of these: Input(section=...), or targets of a cost.{suggest_name(name, there)}"
                )
        check_read(network, wanted, there)
        model = self.trace_model({name: there[name] for name in wanted}, network)
        with self.mistakes.locate("data", "iterator"):
            check_rows_kept(self.settings.name, model.shapes, self.resolved_settings.iterator, self.lanes)
        return model

    @stage(*ARCHITECTURE)
    def declared_model(self) -> Model | None:
        """Return the model on the input shapes that the network declares, without costs; None if it declares none."""
        network = self.network
        inputs = {placed.layer.section: placed for placed in network.inputs}
        shapes = {name: _known_shape(placed, network.sizes) for name, placed in inputs.items()}
        if network.takes_sizes or None in shapes.values():
            return None
        return self.trace_model(
            {n: Spec(shapes[n] or (), x.layer.dtype or self.precision) for n, x in inputs.items()}, network
        )

    @property
    def model(self) -> Model:
        """Return the model on the data, or, if that failed and was reported, on the declared input shapes."""
        with suppress(Missing):
            return self.fitting
        if self.declared_model is None:
            raise Missing
        return self.declared_model

    @stage("initialisers")
    def initial(self) -> Initial:
        """Return the initial state, with initialiser rules that each match a parameter or layer state."""
        rules, among = {}, [*self.model.shapes.parameters, *self.model.shapes.state]
        for name, (match, chosen) in self.resolved_settings.initialisers.items():
            with self.mistakes.locate("initialisers", name, "match"):
                check_matches(self.settings.name, {f"initialisers.{name}": match}, self.model, among=among)
                rules[name] = match, chosen
        return Initial(self.model, rules, self.settings.seed, kept=self.settings.learned.initial)

    def trace_model(self, sections: Mapping[str, Spec], network: Network) -> Model:
        """Trace a network on sections of these specs; check its memory and that its numbers fit the precision."""
        precision, resolve = self.precision, self.settings.resolve
        shapes = network.declare(sections, precision, resolve)
        model = Model(network, shapes, sections, precision, resolve, MIXED.get(self.settings.precision, ""))
        settings = self.resolved_settings
        model = evolve(model, metrics=model.per_output(settings.metrics), rewritings=settings.rewritings)
        check_memory(model)
        live_values(model)
        return model


def _known_shape(placed: Placed, sizes: Mapping[str, tuple[int, ...]] | None) -> tuple[int, ...] | None:
    """Return the shape of an input layer, as declared or as taken from the data; None if it is not known."""
    scalar = () if sizes is not None and placed.layer.shape == () else None  # of a run before inputs took other shapes
    return (sizes or {}).get(placed.name, scalar if placed.declared_shape is None else placed.declared_shape)


# -- the session -------------------------------------------------------------------------------------------------------
def prepare_session(settings: Settings) -> tuple[Setup, Initial]:
    """Return the setup of a session and its initial state; raise the first mistake."""
    stages, name = Stages(settings), settings.name
    chosen = stages.resolved_settings
    parts = Parts(stages.hooks, chosen.optimisers_by_head, stages.backend, chosen.iterator)
    preparation, _ = stages.rows
    check_shards(stages)
    model = assign_optimisers(name, stages.model, parts.optimisers, chosen.order)
    model = evolve(model, units=preparation.units(parts.backend))
    splits = choices.encode_splits(stages.encoded_splits, model.network, chosen, model.shapes.judged_specs)
    if not settings.learned.about:  # else they were told before the training that goes on
        choices.tell_findings(name, splits, model.network)
    classes = choices.class_names(splits["training"], model.network)
    programs, ready = _programs(model, parts.backend, stages), partial(ready_block, model, preparation)
    parts = evolve(parts, backend=programs.backend)
    learned = _learned_facts(chosen.data, splits, preparation, model, classes) | known_tiers(parts.backend)
    feed = evolve(stages.feed, dataset=splits["training"], prepare=ready, **placing(parts.backend, splits["training"]))
    labels = tuple(next(iter(classes.values()), choices.labels(getattr(chosen.data, "classes", ()))))  # of all splits
    setup = Setup(
        name=name,
        factory=Factory(name, parts, settings.resolve, splits),
        parts=parts,
        programs=programs,
        feed=feed,
        epochs=stages.epochs,
        settings=evolve(chosen, network=model.network, backend=parts.backend, operator=stages.operator),
        others=settings.others,
        evaluator=Evaluator(
            programs, splits, feed.batch_size, preparation, ready, {**settings.learned.about, **learned}, labels
        ),
    )
    check_declared(setup)
    check_one(f"{name}.metrics", ModelPreview(model).measure, chosen.metrics)
    rows = partial(first_rows, splits["training"], ready, model)
    initial = evolve(stages.initial, model=model, fitted=preparation.arrays(), rows=rows)
    initial.check_names({**learned, "classes": classes})
    for hook in parts.hooks.values():
        for on in {*hook.splits} - {"training"} if hook.on_error == "fail" and not hook.background else ():
            setup.evaluator.read(on)  # rather than fail after an epoch
    return setup, initial


def _programs(model: Model, backend: Backend, stages: Stages) -> Programs:
    """Return the programs of a model on a backend, whose tiers are settled by the training step."""
    steps, batch_size = dict[Any, Step](), stages.feed.batch_size
    stages.initial.number_draws()  # before those of the step, whether it is traced now or later: one seed is one model
    if has_open_tiers(backend) and model.optimisers:
        with suppress(SigmaError):  # a step that cannot be built raises when training begins
            step = steps[training_step, batch_size] = training_step(model, batch_size)
            backend = settle_tiers(backend, step.graph)
    return Programs(model, backend, steps)


def _learned_facts(
    data: Any, splits: Mapping[str, Dataset], preparation: Preparation, model: Model, classes: Mapping[str, list[Label]]
) -> dict[str, Any]:
    """Return what a checkpoint holds of the data, as plain values by name."""
    described = describe_rows(splits, preparation.samples, model.sections)
    facts: dict[str, Any] = {"samples": preparation.samples, "rows": described}
    for rows in (data, splits["training"]):  # whose columns are in the order of the training
        facts |= getattr(rows, "learned", {})
    facts |= {"classes": classes} if len(classes) > 1 else {}
    sizes = getattr(model.network, "sizes", None)
    facts |= {"sizes": {name: [*size] for name, size in sizes.items()}} if sizes else {}
    return facts | ({"columns": names} if (names := choices.column_names(splits["training"], model.network)) else {})


def prepared_for(settings: Settings, data: Any, learned: Learned) -> Setup:
    """Return the setup that evaluates other data, which are read as an earlier training has learned."""
    given = {"data": {"training": keep_blocks(data)}, "batch_size": None, "validation_split": None, "hooks": {}}
    own = {a.name: getattr(settings, a.name) for a in fields(Settings)}
    return prepare_session(Settings(**{**own, **given, "learned": learned}))[0]


def ready_block(model: Model, preparation: Preparation, block: Mapping[str, np.ndarray]) -> Host:
    """Return the sections of a block that the model reads, prepared and checked."""
    ready = conform({**_weights(model, block), **preparation(block)}, model.sections)
    check_finite(ready)
    check_indices(ready, model.shapes.indices)
    for cost in model.network.targeted_costs:
        with introduce_errors(f"layer {cost.name}", cost.layer):
            cost.layer.check(read_only(ready[cost.layer.targets]), model.shapes.outputs[cost.sources[0]])
    return ready


def first_rows(data: Dataset, ready: Callable[[Mapping[str, Any]], Host], model: Model, count: int) -> Host:
    """Return so many first rows of a data set, or all if there are fewer: the sections of inputs, prepared."""
    blocks, held, sections = list[Host](), 0, model.network.sections(costs=False)
    for number in range(data.blocks):
        if held < count:
            blocks.append(ready(read(data, number)))
            held += len(blocks[-1][next(iter(sections))])
    return {name: np.concatenate([block[name] for block in blocks])[:count] for name in sections}


def _weights(model: Model, block: Mapping[str, np.ndarray]) -> Host:
    """Check the sample weights of a block; return weights of 1 for a split without them."""
    weights: Host = {}
    for name in model.network.weights({*model.sections, *block}) if model.network.costs else ():
        if name not in model.sections:
            raise SigmaDataError(f"data: section {name!r} is not in the training split. Add it, or leave it out here.")
        if name not in block:
            rows, spec = len(next(iter(block.values()))), model.sections[name]
            weights[name] = np.ones((rows, *spec.shape), spec.dtype)
        elif (block[name] < 0).any():
            row = int(np.argwhere(block[name] < 0)[0][0])
            wrong = f"section {name!r}, row {row}: must be at least 0 (got {block[name][row]})"
            raise SigmaDataError(f"data: {wrong}. To leave a row out, give it weight 0.")
        elif not block[name].any():
            raise SigmaDataError(f"data: section {name!r}: all weights are 0. Give some rows a weight above 0.")
    return weights


def check_read(network: Network, wanted: Collection[str], there: Collection[str]) -> None:
    """Raise SigmaDataError for a section that is sample weights by its name, such as sample_weight, if none reads it.

    Other sections that this network does not read may be for another one.
    """
    sections = {cost.layer.weights for cost in network.costs}
    for name in there if sections and not sections & {*there} else ():
        alike = name.lower().replace("_", "").removeprefix("sample").removesuffix("s") == "weight"
        if alike and name not in wanted:
            raise SigmaDataError(
                f"data: section {name!r} is read by nothing. Did you mean {min(sections)!r}, that of sample weights?"
            )


def check_shards(stages: Stages) -> None:
    """Raise SigmaConfigError for optimisers in an order if the operator cuts batches into shards."""
    with stages.mistakes.locate("order"):
        if stages.settings.order and stages.operator.shards > 1:
            raise SigmaConfigError(f"{stages.settings.name}.order: {UNCUT}")


def check_memory(model: Model) -> None:
    """Raise SigmaNetworkError if the parameters need more memory than this machine has."""
    sizes = Counter[str]()
    for address, spec in model.parameters().items():
        sizes[address.partition(".")[0]] += prod(spec.shape) * np.dtype(spec.dtype).itemsize
    if sizes.total() > _machine():
        ((layer, size),) = sizes.most_common(1)
        wanted, there = (f"{int(count) >> 30:,}" for count in (size, _machine()))
        raise SigmaNetworkError(
            f"{layer}: its parameters need {wanted} GiB; this machine has {there}. "
            "Choose fewer units, or make what leads to it smaller."
        )


def _machine() -> float:
    """Return the bytes of memory; infinity if the system does not report them."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return inf
