"""The trainer: settings for a network, its data and optimiser; fit, evaluate and predict."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import Any, NoReturn

from attrs import define, field, fields_dict

from sigma_kernel.contracts import Array, Metric, RowHistory, running as contracts
from sigma_kernel.contracts.running import Goals, Host
from sigma_kernel.contracts.storing import StoredRun
from sigma_kernel.errors import SigmaAddressError, SigmaConfigError, SigmaStateError, refuse_unknown, suggest_name
from sigma_kernel.network.outline import Outline, outline
from sigma_kernel.network.tracing import fix
from sigma_kernel.registry.registry import Registry
from sigma_kernel.settings import OWNED, is_table, is_whole, precision, seed
from sigma_step.model import LAYERS
from sigma_training import workers
from sigma_training.arguments import BELONGS, advise, check_metrics
from sigma_training.components import SETTINGS, Learned, Settings, network
from sigma_training.data.dataset import keep_blocks
from sigma_training.data.inference import infer_data
from sigma_training.evaluator import Evaluator
from sigma_training.history.media import MediaRecorder
from sigma_training.history.metrics import History
from sigma_training.history.recorder import Recorder
from sigma_training.hooks.order import meet
from sigma_training.lifecycle import SessionLifecycle
from sigma_training.preparation import prepare_session, prepared_for
from sigma_training.runs.resume import read_newest
from sigma_training.session.session import Session, build_session
from sigma_training.session.state import learned_from, plain_values
from sigma_training.view import SessionView


def _drive_group(*given: Any) -> Any:
    """Return what computes bursts by workers; its modules are imported by runs that have some."""
    return workers.GroupDriver(*given)


class Fixed(dict[str, Any]):
    """A table of settings that are in use."""

    def __setitem__(self, *_: Any, **__: Any) -> NoReturn:
        raise SigmaStateError("settings: are fixed, as the trainer is prepared. Set them before, on a new trainer.")

    __delitem__ = update = pop = popitem = setdefault = clear = __ior__ = __setitem__


def fix_setting(setting: Any) -> Any:
    """Return tables that cannot be changed, and copies of lists, of which the owner may change his own."""
    if isinstance(setting, dict):
        return Fixed({name: fix_setting(entry) for name, entry in setting.items()})
    return [*map(fix_setting, setting)] if type(setting) is list else setting


@define(eq=False, repr=False, kw_only=True)
class NetworkTrainer(Settings, contracts.Trainer):
    """Hold the settings of a trainer; prepare its session on first use, which fixes them."""

    registry: Registry = field(metadata=OWNED)
    recorder: Recorder = field(metadata=OWNED)
    host: Host = field(metadata=OWNED)
    _lifecycle: SessionLifecycle | None = field(default=None, init=False)
    _view: SessionView = field(init=False)
    _preparing: threading.RLock = field(factory=threading.RLock, init=False)  # several threads may ask for the session

    @_view.default
    def _(self) -> SessionView:
        return SessionView(self.name, self.recorder)

    @classmethod
    def create(cls, name: str, host: Host, settings: Mapping[str, Any]) -> NetworkTrainer:
        """Return a trainer of an environment; raise SigmaConfigError for unknown settings."""
        refuse_unknown(f"trainer {name!r}", settings, SETTINGS, remedies=BELONGS)
        media = MediaRecorder(name, host.log)
        history = History(host.resolve, gallery=media.gallery, periods=lambda: recorder.periods())
        recorder = Recorder(name, host.log, host.publish_row, history, media=media)
        return cls(
            name=name,
            resolve=host.resolve,
            registry=host.registry.branch(name, "trainer"),
            recorder=recorder,
            host=host,
            others=host.trainers,
            **settings,
        )

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse unknown settings, and changes after preparation, which would have no effect."""
        if name not in fields_dict(NetworkTrainer):
            refuse_unknown(f"trainer {self.name!r}", [name], SETTINGS, remedies=BELONGS)
        if getattr(self, "_lifecycle", None) is not None:
            raise SigmaStateError(
                f"{self.name}.{name}: is fixed, as the trainer is prepared. Set it before, on a new trainer."
            )
        converter = {"seed": seed, "data": self._read_data, "precision": precision}.get(name)
        object.__setattr__(self, name, converter(value) if converter else value)
        if name == "target":
            object.__setattr__(self, "data", self._read_data(self.data))

    def _read_data(self, given: Any) -> Any:
        """Return data with the blocks of iterators kept, and inferred where they are a place or a table."""
        return keep_blocks(infer_data(given, getattr(self, "target", None), self.resolve))

    def __repr__(self) -> str:
        network = "no network" if self.network is None else shorten(str(self.network), 120, placeholder=" ...")
        moment = None if self._lifecycle is None else self._lifecycle.session.moment
        done = "" if moment is None else f", epoch {moment.epoch}, iteration {moment.iteration}"
        return f"Trainer({self.name!r}, {network}{done})"

    # -- what users call -----------------------------------------------------------------------------------------------
    @property
    def lifecycle(self) -> SessionLifecycle:
        """Return what an environment drives, prepared on first use; the settings are fixed from then on."""
        with self._preparing:
            if self._lifecycle is None:
                for name in SETTINGS if is_table(self.data) else [name for name in SETTINGS if name != "data"]:
                    object.__setattr__(self, name, fix_setting(getattr(self, name)))
                setup, initial = prepare_session(self)
                for head, owner in setup.model.optimisers.items():
                    fix(owner.type, f"{self.name}.{head}")
                for placed in setup.model.network.layers:
                    fix(placed.layer, f"{self.name}.network.layers.{placed.name}")
                self.recorder.media.limit(setup.settings.media_bytes)
                session = build_session(setup, initial, self.recorder, self.host, self.registry, _drive_group)
                self.learned.restore(session)
                self._view.open(session)
                self._lifecycle = SessionLifecycle(session, self)
            return self._lifecycle

    @property
    def session(self) -> Session:
        """Return the session, prepared on first use."""
        return self.lifecycle.session

    @property
    def view(self) -> SessionView:
        """Return what monitors see of the trainer."""
        return self._view

    def read_published(self, pattern: str) -> dict[str, Any]:
        """Return the plain values that match a pattern, for other trainers: nothing waits for the training thread.

        Raises SigmaAddressError for an address that will never have a value.
        """
        names = [a for a in self.registry.addresses(pattern) if self.registry.kind(a).shape is None]
        if self.is_prepared and not names and not any(meet(pattern, a) for a in self.session.setup.published_addresses):
            wrong = f"{self.name}.{pattern}: is not published, or an array"
            raise SigmaAddressError(f"{wrong}.{suggest_name(pattern, self.registry.addresses())}")
        return plain_values({name: value for address in names for name, value in self.registry.find(address)})

    def learn_from(self, learned: Learned, shards: int) -> None:
        """Read the data as an earlier preparation has learned to, rather than anew, for so many shards of a batch."""
        self.learned, self.operator = learned, {"type": "default:operator", "shards": shards}

    def begin_from(self, run: StoredRun) -> None:
        """Read data as an earlier training did, and take its initial values, unless the trainer is prepared."""
        if not self.is_prepared:
            checkpoint, initial = read_newest(run, self.name, whole=bool(self.preprocessors)), run.initial(self.name)
            self.learned = Learned.from_checkpoint(
                checkpoint.values, checkpoint.arrays, restore=self.learned.restore, initial=initial
            )

    def prepare(self) -> None:
        """Infer shapes, draw the initial state and register every address; once only."""
        with self._preparing:
            if not self.is_prepared:
                self.session.loop.batches(1)  # reads, checks and places the first block

    @property
    def is_prepared(self) -> bool:
        """Return whether the trainer is prepared."""
        return self._lifecycle is not None

    def summary(self) -> Outline:
        """Return a table of the layers; before preparation, with the shapes and counts that follow from inputs."""
        if not self.is_prepared:
            return outline(network(self.resolve, self.name, self.network).layers)
        model = self.session.setup.model
        return outline(model.network.layers, model.shapes)

    def close(self) -> None:
        """End training if it is in progress, and stop all background work."""
        if self._lifecycle is not None:
            self._lifecycle.session.close()

    @property
    def history(self) -> History:
        """Return everything measured so far."""
        return self.recorder.history

    @advise()
    def fit(self, epochs: int | None = None, iterations: int | None = None, progress: bool | None = None) -> History:
        """Train for this many more epochs or iterations, in the calling thread; return the history.

        Without either, training ends after the total of the setting ``epochs``; a hook may end it before.  A hook that
        has ended training already, such as ``early_stop``, watches anew if more epochs or iterations are asked for.  By
        default, a terminal or a notebook shows the progress; ``progress`` shows it always or never.

        Ctrl-C finishes the current burst, saves, then raises KeyboardInterrupt; training can be continued later.
        SIGTERM and SIGHUP do the same, then have their usual effect; SIGUSR1 saves a checkpoint.  Raises
        SigmaConfigError if nothing ends training, SigmaStateError if the trainer is training already.
        """
        self.host.fit_trainer(self, _goals(epochs=epochs, iterations=iterations), progress)
        return self.history

    def parameters(self) -> dict[str, Array]:
        """Return a copy of every parameter by its address: arrays of the backend, on its device, that export DLPack."""
        session, setup = self.session, self.session.setup
        names = sorted(LAYERS + name for name in setup.model.parameters())
        return dict(session.ask(lambda: {name: setup.to_device(session.state.arrays[name]) for name in names}))

    @advise("Write evaluate((x, y)).", takes=True)
    def evaluate(
        self, on: Any = "validation", metrics: Mapping[str, Metric | str] | None = None, edited: bool = False,
        weights: str = "",
    ) -> dict[str, float]:  # fmt: skip
        """Return the loss and the metrics by name over a split of the data, or over other data.

        A split is as it is in the data, or ``edited`` as it is in training now.  Other data are whatever a trainer
        takes as the data of a split, such as a tuple ``(inputs, targets)``; they are read like those of the training:
        with its classes, its columns by name, and its preprocessors.  ``weights`` names a modifier, such as
        ``average``, whose weights take the place of the parameters.
        """
        check_metrics(metrics)
        session, chosen = self.session, metrics or {}
        if isinstance(on, str):
            return dict(self._measure(weights, Evaluator.evaluate, on, chosen, edited))
        learned = session.ask(lambda: learned_from(session.state, session.setup))
        size, setup = session.setup.evaluator.batch_size, prepared_for(session.setup.settings, on, learned)
        return session.ask(lambda: setup.evaluate(session.present.steps(weights), "training", chosen, batch_size=size))  # type: ignore[no-any-return]

    def row_history(self, on: str = "training") -> RowHistory:
        """Return what became of each row of a split over the epochs: its losses, when it was learned, or forgotten.

        The hook ``row_history`` records it; raises SigmaStateError if none has. ``order("mislabelled")`` of the result
        has the places of rows that are probably mislabelled first, ``order("forgotten")`` of those that were forgotten.
        """
        return SessionView(self.name, self.recorder, self.session).row_history(on)

    def save(self, path: Path | str) -> Path:
        """Save the network to a directory: configuration, preprocessors, classes, parameters and state; no data.

        ``load(path)`` predicts with the same bits.  A network that was saved there is replaced.  Raises
        SigmaConfigError for settings that a file cannot hold, SigmaStateError if ``path`` holds anything else.
        """
        return self.host.save_trainer(self, path)

    def predict(self, samples: Any, weights: str = "") -> Any:
        """Return predictions for samples: an array or a data frame, or one for each input section.

        Columns of a frame are found by name, if training was on columns with names.  The result has
        one row a sample; with several outputs it is a dictionary of arrays by output layer.  ``weights`` are those of
        :meth:`evaluate`.
        """
        return self._measure(weights, Evaluator.predict, samples)

    def classify(self, samples: Any, weights: str = "") -> Any:
        """Return the most probable class of each sample: its label, of the type in the data, else its index.

        Of equal probabilities, the first class wins.  The result has one row a sample; with several outputs it is a
        dictionary by output layer.  ``weights`` are those of :meth:`evaluate`.
        """
        return self._measure(weights, Evaluator.classify, samples)

    def generate(self, text: str, length: int = 200, temperature: float = 1.0, seed: int = 0, weights: str = "") -> str:
        """Return what continues a text: ``length`` characters, or tokens, as those that the network was trained on.

        It is shorter if the text ends before.  They are drawn from the predicted probabilities to the power of ``1 /
        temperature``, by random numbers of the ``seed``; at temperature 0, each is the most probable one.
        ``weights`` are those of :meth:`evaluate`.  Raises
        SigmaDataError for characters that the network has not learned.
        """
        return str(self._measure(weights, Evaluator.generate, text, length, temperature, seed))

    def _measure(self, weights: str, act: Callable[..., Any], *about: Any) -> Any:
        """Return the result of a method of the evaluator between two bursts."""
        return self.session.ask(partial(self.session.measure, weights, act, *about))


def expect_trainer(trainer: contracts.Trainer) -> NetworkTrainer:
    """Return a trainer with the type that it has; raise SigmaConfigError for one of another plugin."""
    if not isinstance(trainer, NetworkTrainer):
        kind = type(trainer)
        raise SigmaConfigError(
            f"trainer {trainer.name!r}: is a {kind.__name__} of {kind.__module__}, and this needs one of "
            f"{NetworkTrainer.__module__}. Leave it out."
        )
    return trainer


def _goals(**given: int | None) -> Goals:
    for name, count in given.items():
        if count is not None and not is_whole(count, 0):
            raise SigmaConfigError(f"fit: {name} must be a whole number from 0 on (got {count!r}).")
    return given["epochs"], given["iterations"]
