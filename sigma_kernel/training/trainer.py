"""A trainer: what is to be trained, on what, how; and the way from these settings to a session at work."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from numbers import Integral
from typing import Any, Protocol

import numpy as np
from attrs import define, evolve, field, fields_dict

from sigma_kernel.contracts import (
    Backend,
    Dataset,
    Hook,
    Initialiser,
    Metric,
    Operator,
    Optimiser,
    Order,
    Parameter,
    Preprocessor,
)  # fmt: skip
from sigma_kernel.errors import SigmaConfigError, SigmaDataError, SigmaStateError, near
from sigma_kernel.graph.node import Spec
from sigma_kernel.graph.random import Draw
from sigma_kernel.network.network import Network
from sigma_kernel.network.tracing import Resolve
from sigma_kernel.registry.registry import Registry
from sigma_kernel.settings import seed
from sigma_kernel.signals import ENDING, Signals
from sigma_kernel.training import checking as beginning, components as choices
from sigma_kernel.training.commands.changes import Factory, Parts
from sigma_kernel.training.commands.reconfigure import optimised
from sigma_kernel.training.components import one, several
from sigma_kernel.training.data.dataset import Host, specs
from sigma_kernel.training.data.feed import Feed, Shuffled
from sigma_kernel.training.data.preprocessing import Preparation, check_finite, conform
from sigma_kernel.training.history.messages import Messages
from sigma_kernel.training.history.metrics import History
from sigma_kernel.training.history.recorder import Recorder
from sigma_kernel.training.hooks.order import HookOrder
from sigma_kernel.training.session.bindings import bindings, check_settable
from sigma_kernel.training.session.loop import Session
from sigma_kernel.training.session.setup import Setup
from sigma_kernel.training.step import live
from sigma_kernel.training.step.evaluator import Evaluator
from sigma_kernel.training.step.live import check_matches, hits, live_values
from sigma_kernel.training.step.model import LAYERS, Model
from sigma_kernel.training.step.programs import Programs

BATCH = 100  # rows of a minibatch where nothing is said


class Home(Protocol):
    """The environment of a trainer."""

    messages: Messages

    def fitting(self, trainer: Trainer) -> AbstractContextManager[None]:
        """Keep the run folder while one trainer is trained by itself."""


@define(eq=False)
class Trainer:
    """Settings until it is prepared, then a session.

    Components may be objects, names or tables ``{"type": name, setting: value}``.  ``network`` is an architecture, or
    its text form.  ``data`` is one data set, or one for each split (``training``, ``validation``, ...): arrays by
    section, a pair ``(inputs, targets)``, an iterable of such blocks, or a Dataset.  ``preprocessors`` and ``metrics``
    are a list, or have names.  ``initialisers`` are named rules ``(match, initialiser)``, the most specific match
    winning.
    """

    name: str
    resolve: Resolve
    seed: int = 0
    precision: str = "float32"
    backend: Backend | str | Mapping[str, Any] = "numpy"
    operator: Operator | str | Mapping[str, Any] = "local"
    network: Any = None
    data: Any = None
    optimiser: Optimiser | None = None
    batch_size: int | None = None  # BATCH, or all rows if there are fewer
    last_batch: str = "keep"
    order: Order = field(factory=Shuffled)
    preprocessors: Mapping[str, Preprocessor] = field(factory=dict)
    initialisers: Mapping[str, tuple[str, Initialiser]] = field(factory=dict)
    hooks: Mapping[str, Hook] = field(factory=dict)
    metrics: Mapping[str, Metric] = field(factory=dict)
    registry: Registry = field(factory=Registry)
    home: Home | None = None  # its environment
    recorder: Recorder = field(init=False)
    _session: Session | None = field(default=None, init=False)
    _preparing: threading.RLock = field(factory=threading.RLock, init=False)  # two may ask for the session at once

    def __attrs_post_init__(self) -> None:
        """Record what happens, also where nothing is written."""
        self.recorder = Recorder(self.name, self.home.messages.log) if self.home else Recorder(self.name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse what is no setting, and changes that would change nothing any more."""
        known = fields_dict(Trainer)
        if name not in known:
            hint = near(name, known) or f" It has {', '.join(known)}."
            raise SigmaConfigError(f"{self.name}: a trainer has no setting {name!r}.{hint}")
        if getattr(self, "_session", None) is not None:
            raise SigmaStateError(
                f"{self.name}.{name}: is fixed, as the trainer is prepared. Set it before, on a new trainer."
            )
        object.__setattr__(self, name, seed(value) if name == "seed" else value)

    # -- what users call -----------------------------------------------------------------------------------------------
    @property
    def session(self) -> Session:
        """Return the session, which is prepared on first use; settings are fixed from then on."""
        with self._preparing:
            if self._session is None:
                self._session = prepare(self)
            return self._session

    def prepare(self) -> None:
        """Infer shapes, draw the initial state and register every address."""
        self.session.batches(1)  # reads, checks and places the first block

    def close(self) -> None:
        """End training if it is under way, and stop everything in the background."""
        if self._session is not None:
            self._session.close()

    @property
    def history(self) -> History:
        """Return everything measured so far."""
        return self.recorder.history

    def fit(self, epochs: int | None = None, iterations: int | None = None) -> History:
        """Train for so many more epochs or iterations, or until a hook stops it; return the history.

        Without either, a hook must stop training.  Ctrl-C finishes the present burst and is raised then; training can
        go on later.  Raises SigmaStateError if it is training already.
        """
        for name, count in (("epochs", epochs), ("iterations", iterations)):
            if count is not None and (not isinstance(count, Integral) or isinstance(count, bool) or count < 0):
                raise SigmaConfigError(f"fit: {name} must be a whole number from 0 on (got {count!r}).")
        session = self.session
        session.claim()
        home = self.home.fitting(self) if self.home else nullcontext()
        with Signals(ENDING[:1], patience=1, heed=lambda number: session.hurry()) as signals, home:
            self.train(epochs, iterations)
        if signals.came:
            raise KeyboardInterrupt
        return self.history

    def train(self, epochs: int | None = None, iterations: int | None = None, hold: bool = False) -> None:
        """Train in the calling thread, which has claimed the session; ``hold`` the claim while a replay has more."""
        failed = True
        try:
            self.session.begin(epochs, iterations)
            one(self.resolve, f"{self.name}.operator", "operator", Operator, self.operator).run(self.session)
            failed = False
        finally:
            self.session.end(failed, hold and not failed)

    def relive(self) -> None:
        """Train; during replay, from one beginning of training in the journal to the next."""
        session, replay = self.session, self.session.recorder.replay
        if replay is not None and not session.progress.underway:
            session.relive(replay)  # what was changed before training began
        while True:
            self.train(hold=True)
            if replay is None or replay.left or not replay.rows:
                return session.leave()
            session.relive(replay)  # what was changed after its end, before others change anything
            if not replay.rows and not (replay.goes_on and session.progress.interrupted):
                return session.leave()
            session.claim(again=True)

    def evaluate(self, on: str = "validation", metrics: Mapping[str, Metric | str] | None = None) -> dict[str, float]:
        """Return the loss, and metrics by name, over a split of the data."""
        found = several(self.resolve, "evaluate", "metric", Metric, metrics or {})
        return dict(self.session.ask(partial(self.session.evaluate, on, found)))

    def predict(self, samples: Any) -> Any:
        """Return predictions for samples: an array, or one for each input section.

        The result has one row a sample; with several outputs it is a dictionary of arrays by output layer.
        """
        session = self.session
        inputs = session.model.network.sections(costs=False)
        sections = samples if isinstance(samples, Mapping) else {inputs[0]: samples}
        found = session.ask(lambda: session.setup.evaluator.predict(session.state.arrays, sections))
        return next(iter(found.values())) if len(found) == 1 else found


# -- from settings to a session ----------------------------------------------------------------------------------------
def prepare(trainer: Trainer) -> Session:
    """Return the session of a trainer: shapes inferred, state drawn, addresses registered; nothing compiled yet."""
    splits, classes, learned = _splits(trainer)
    _choose(trainer, splits)
    backend = one(trainer.resolve, f"{trainer.name}.backend", "backend", Backend, trainer.backend)
    supported(trainer, backend)
    network = choices.network(trainer.resolve, trainer.name, trainer.network)
    splits = choices.encoded(splits, network, trainer.preprocessors)
    preparation = Preparation(trainer.precision, trainer.preprocessors).fit(splits["training"])
    model = _model(trainer, network, specs(preparation(splits["training"].block(0))))
    splits = choices.encoded(splits, network, trainer.preprocessors, model.shapes.outputs)
    parts = Parts(trainer.hooks, trainer.optimiser, backend, trainer.order)
    classes = tuple(choices.class_names(splits["training"], network) or classes)
    setup = _setup(trainer, model, parts, splits, preparation, learned, classes)
    check_settable(setup.name, setup.order.hooks, bindings(evolve(setup, order=HookOrder({}))))
    beginning.check_reads(trainer.name, setup.order.hooks, model, bindings(setup))
    beginning.check_hooks(f"{trainer.name}.hooks", setup.order.hooks, model)
    beginning.check_one(f"{trainer.name}.metrics", beginning.Prospect(model).measure, trainer.metrics)
    initial = partial(initial_state, trainer, model, preparation)
    return Session(setup=setup, initial=initial, recorder=trainer.recorder, registry=trainer.registry)


def _setup(
    trainer: Trainer,
    model: Model,
    parts: Parts,
    splits: Mapping[str, Dataset],
    preparation: Preparation,
    learned: Mapping[str, Any],
    classes: Sequence[str],
) -> Setup:
    programs = Programs(model, parts.backend)
    ready = partial(ready_block, model, preparation)
    size = batch_size(trainer, len(splits["training"]))
    feed = Feed(
        splits["training"], size, trainer.seed, ready, parts.backend.to_device, trainer.order,
        trainer.last_batch == "keep",
    )  # fmt: skip
    return Setup(
        name=trainer.name,
        factory=Factory(trainer.name, parts, trainer.resolve, splits, trainer.backend),
        parts=parts,
        programs=programs,
        feed=feed,
        evaluator=Evaluator(programs, splits, size, preparation, ready),
        order=HookOrder(trainer.hooks),
        live_values=live_values(model),
        classes=tuple(classes),
        learned=learned,
    )


def batch_size(trainer: Trainer, rows: int) -> int:
    """Return the rows of a minibatch: as many as was said, else BATCH, or all that there are."""
    return min(BATCH, rows) if trainer.batch_size is None else trainer.batch_size


def _splits(trainer: Trainer) -> tuple[dict[str, Dataset], tuple[str, ...], dict[str, Any]]:
    """Return the data set of each split; where all splits together say so, what classes are called and was learned."""
    found = choices.data(trainer.resolve, trainer.data)
    trainer.data = splits = choices.splits(trainer.name, found)
    return splits, tuple(map(str, getattr(found, "classes", ()))), getattr(found, "learned", {})


def _choose(trainer: Trainer, splits: Mapping[str, Dataset]) -> None:
    """Replace names, tables and texts among the settings by the objects that they mean."""
    resolve, name = trainer.resolve, trainer.name
    trainer.hooks = choices.hooks(resolve, f"{name}.hooks", trainer.hooks, splits)
    trainer.metrics = several(resolve, f"{name}.metrics", "metric", Metric, trainer.metrics)
    steps = several(resolve, f"{name}.preprocessors", "preprocessor", Preprocessor, trainer.preprocessors)
    trainer.preprocessors = steps
    trainer.initialisers = choices.initialisers(f"{name}.initialisers", trainer.initialisers)
    trainer.order = one(resolve, f"{name}.order", "iterator", Order, trainer.order)
    if trainer.optimiser is not None:
        trainer.optimiser = one(resolve, f"{name}.optimiser", "optimiser", Optimiser, trainer.optimiser)


def supported(trainer: Trainer, backend: Backend) -> None:
    """Raise SigmaConfigError for a precision that the backend does not have, and for batches that are none."""
    beginning.check_precision(trainer.name, trainer.precision, backend)
    size = BATCH if trainer.batch_size is None else trainer.batch_size
    if not isinstance(size, Integral) or isinstance(size, bool) or size < 1:
        raise SigmaConfigError(f"{trainer.name}.batch_size: must be 1, 2, 3 ... (got {size!r}).")
    if trainer.last_batch not in ("keep", "drop"):
        raise SigmaConfigError(f"{trainer.name}.last_batch: must be 'keep' or 'drop' (got {trainer.last_batch!r}).")


def _model(trainer: Trainer, network: Network, sections: Mapping[str, Spec]) -> Model:
    for name in network.sections():
        if name not in sections:
            raise SigmaDataError(
                f"{trainer.name}: the network reads section {name!r}; the data has {', '.join(sections)}. "
                "Name one of these in Input(section=...) or cost(targets=...)."
            )
    used = {name: sections[name] for name in network.sections()}
    shapes = network.declare(used, trainer.precision, trainer.resolve)
    model = Model(network, shapes, used, trainer.precision, trainer.resolve, metrics=trainer.metrics)
    model = optimised(trainer.name, model, trainer.optimiser)
    check_matches(trainer.name, dict(patterns(trainer)), model)
    return model


def patterns(trainer: Trainer) -> Iterator[tuple[str, str]]:
    """Yield every pattern that should match a parameter, by what the user called it."""
    yield from ((f"initialisers.{name}", match) for name, (match, _) in trainer.initialisers.items())
    yield from live.patterns(trainer.optimiser)


def ready_block(model: Model, preparation: Preparation, block: Mapping[str, np.ndarray]) -> Host:
    """Return the sections of a block that the model reads, prepared and checked."""
    ready = conform(preparation(block), model.sections)
    check_finite(ready)
    for cost in model.network.costs:
        cost.layer.check(ready[cost.layer.targets], model.shapes.outputs[cost.sources[0]])
    return ready


# -- the initial state -------------------------------------------------------------------------------------------------
def initial_state(trainer: Trainer, model: Model, preparation: Preparation) -> dict[str, np.ndarray]:
    """Return every array of the state tree as training starts."""
    beginning.check_memory(model)
    state = {LAYERS + a: drawn(trainer, model, a, p) for a, p in model.shapes.parameters.items()}
    state |= {LAYERS + a: drawn(trainer, model, a, p) for a, p in model.shapes.state.items()}
    state |= beginning.slots(model)
    state["random.iteration"] = np.zeros((), np.uint32)
    state["random.key"] = np.array([trainer.seed & 0xFFFFFFFF, trainer.seed >> 32 & 0xFFFFFFFF], np.uint32)
    for name, fitted in preparation.fitted.items():
        state |= {f"data.preprocessors.{name}.{key}": np.asarray(value) for key, value in fitted.items()}
    return state


def initialiser_rule(trainer: Trainer, model: Model, address: str) -> str | None:
    """Return the name of the initialiser rule that hits a parameter, or None for the layer's own initialiser."""
    rules = {name: match for name, (match, _) in trainer.initialisers.items()}
    return next(iter(hits(model, rules, address)), None)


def drawn(trainer: Trainer, model: Model, address: str, parameter: Parameter) -> np.ndarray:
    """Return the first values of one parameter, or of one entry of layer state."""
    rule = initialiser_rule(trainer, model, address)
    chosen = trainer.initialisers[rule][1] if rule else parameter.initialiser
    dtype = parameter.dtype or model.precision
    if isinstance(chosen, int | float):
        return np.full(parameter.shape, chosen, dtype)
    initialiser: Initialiser = trainer.resolve("initialiser", chosen)
    draws = Draw(trainer.seed, model.shapes.streams.number(f"initial.{address}"))
    values = np.asarray(initialiser.values(address, parameter, draws))
    if values.shape != tuple(parameter.shape):
        raise SigmaConfigError(
            f"initialisers.{rule or address}: gave shape {values.shape} for {address}, which has {parameter.shape}."
        )
    return values.astype(dtype)
