"""Resolve a trainer's settings, which are objects, names or tables, to components."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from attrs import define, field, fields, frozen, has

from sigma_kernel import contracts
from sigma_kernel.clock import TimeStep
from sigma_kernel.contracts import Dataset, Hook, Iterator, Label, Metric, Optimisation, Optimiser, Preprocessor
from sigma_kernel.contracts.media import BUDGET
from sigma_kernel.criteria import Criterion
from sigma_kernel.errors import (
    FIRST,
    Mistakes,
    SigmaConfigError,
    SigmaNetworkError,
    error_text,
    expect,
    introduce_errors,
    suggest_name,
    warn,
)
from sigma_kernel.graph.node import Spec
from sigma_kernel.network.network import Network
from sigma_kernel.network.tracing import Resolve
from sigma_kernel.plugins.resolver import resolve_components
from sigma_kernel.settings import MIXED, OWNED, PRECISIONS, is_table, is_whole
from sigma_training.data.dataset import FITTED, dataset
from sigma_training.data.inference import InferredData, check_target
from sigma_training.data.iterators import Shuffled
from sigma_training.notation import parse

TIMES: dict[str, tuple[Callable[[str], Any], Any, str]] = {  # when a hook fires: parser of the text, type, description
    "every": (TimeStep.parse, TimeStep, "a time, such as '1 epoch' or every(1, 'epoch')"),
    "when": (Criterion.parse, Criterion | None, "a criterion, such as 'epoch reaches 3' or when('epoch').reaches(3)"),
}


@frozen(eq=False)
class Learned:
    """What an earlier training derived from its data, which is how later data are read, and its state."""

    about: Mapping[str, Any] = field(factory=dict)  # plain values: frames, columns, classes and more, by section
    classes: Sequence[Label] = ()  # labels of all sections, if there are none by section
    fitted: Mapping[str, Mapping[str, np.ndarray]] = field(factory=dict)  # by preprocessor
    restore: Callable[[Any], object] = id  # a session; there is nothing to restore
    initial: Mapping[str, np.ndarray] = field(factory=dict)  # values that came from outside, by address

    @classmethod
    def from_checkpoint(cls, values: Mapping[str, Any], arrays: Mapping[str, np.ndarray], **others: Any) -> Learned:
        """Return what is in the values and arrays of a checkpoint."""
        fitted = dict[str, dict[str, np.ndarray]]()
        for address in (a for a in arrays if a.startswith(FITTED)):
            name, _, key = address.removeprefix(FITTED).partition(".")
            fitted.setdefault(name, {})[key] = arrays[address]
        return cls(values.get("learned", {}), tuple(values.get("classes", ())), fitted, **others)

    def facts_of(self, name: str) -> Mapping[str, Any]:
        """Return what is known of each section, such as ``columns``; empty if nothing is."""
        return facts if isinstance(facts := self.about.get(name), Mapping) else {}

    def labels(self, section: str) -> Sequence[Label]:
        """Return the labels of the classes of a section by index; empty if none are known."""
        return own.get(section, ()) if (own := self.facts_of("classes")) else self.classes

    def earlier_columns(self, resolve: Resolve) -> Any:
        """Return the columns of the earlier data, for :meth:`Dataset.align`; None if they had no names."""
        tables = {name: resolve("extractor", table) for name, table in self.facts_of("frames").items()}
        columns = self.facts_of("columns")
        stand_in = SimpleNamespace(tables=tables, column_names=lambda section: columns.get(section, ()))
        return stand_in if columns or tables else None


@define(eq=False)
class Settings:
    """The settings of a trainer, as given by the user.

    Components may be objects, names or tables ``{"type": name, setting: value}``.

    Args:
        seed: The seed of all random numbers.
        precision: The precision of parameters and of computation.
        backend: What computes; by default the fastest backend of this machine, and another while that compiles.
        operator: What drives the training loop.
        network: An architecture, or its text form.
        data: One data set, or one for each split (``training``, ``validation``, ...): arrays by section, a tuple
            ``(inputs, targets)`` or ``(inputs, targets, weights)``, an iterable of such blocks (kept if it is an
            iterator), a function that returns a generator of them, or a Dataset. A path of a file or a folder, a frame
            or a table of Arrow is inspected, see :class:`InferredData`.
        target: The column to predict of a file, a frame, a table of Arrow, or a dictionary of columns.
        validation_split: The share of the rows to validate on, or a table with the keys ``split``, ``split_by``,
            ``seed`` and ``fold`` of a configuration's ``[data]``.
        optimiser: The optimiser of all parameters.
        optimisers: Several optimisers, by name: each an Optimisation, or a table of an optimiser with its ``match`` and
            ``minimises``.
        order: The names of optimisers that update one after another.
        epochs: The number of epochs in total; by default a hook ends training.
        batch_size: The rows of a batch; by default 100, or all rows if there are fewer.
        last_batch: Whether to ``keep`` or ``drop`` the rows at the end of an epoch that do not fill a batch.
        iterator: The order of the rows.
        preprocessors: Preprocessors of the data, a list or by name.
        augmentations: Augmentations of the rows of training, applied before preprocessors, a list or by name.
        initialisers: Rules ``(match, initialiser)`` by name; the most specific match wins.
        rewritings: Rewritings of the network's graph, applied one after the other, a list or by name.
        hooks: Hooks by name.
        metrics: Metrics, a list or by name.
        baselines: Whether the summary of a run has the metrics of baselines: the majority or the mean, and a linear
            model.
        media_bytes: How many bytes of media that hooks publish are kept; beyond it, older ones go, the older the
            further apart. With 0, none are kept.
    """

    name: str = field(metadata=OWNED)
    resolve: Resolve = field(metadata=OWNED)
    seed: int = 0
    precision: str = "float32"
    backend: contracts.Backend | str | Mapping[str, Any] | None = None  # None: the default of this machine
    operator: contracts.Operator | str | Mapping[str, Any] = "default:operator"
    network: Any = None
    data: Any = None
    target: str | None = None
    validation_split: float | Mapping[str, Any] | None = None
    optimiser: Optimiser | None = None
    optimisers: Mapping[str, Optimisation] = field(factory=dict)
    order: Sequence[str] = ()
    epochs: float | None = None  # in total; None: until a hook ends training
    batch_size: int | None = None  # BATCH, or all rows if there are fewer
    last_batch: str = "keep"
    iterator: Iterator = field(factory=Shuffled)
    preprocessors: Mapping[str, Preprocessor] = field(factory=dict)
    augmentations: Mapping[str, contracts.Augmentation] = field(factory=dict)
    initialisers: Mapping[str, tuple[str, contracts.Initialiser]] = field(factory=dict)
    rewritings: Mapping[str, contracts.Rewriting] = field(factory=dict)
    hooks: Mapping[str, Hook] = field(factory=dict)
    metrics: Mapping[str, Metric] = field(factory=dict)
    baselines: bool = True
    media_bytes: int = BUDGET
    others: Mapping[str, Any] = field(factory=dict, metadata=OWNED)  # all trainers of the environment, by name
    learned: Learned = field(default=Learned(), metadata=OWNED)  # set by ``load``

    @property
    def dtype(self) -> str:
        """Return the dtype of parameters, and of all numbers but the operands of mixed products."""
        return "float32" if self.precision in MIXED else self.precision

    @property
    def optimisers_by_head(self) -> dict[str, Any]:
        """Return the optimisers by the heads of their addresses: ``optimiser``, or ``optimisers.<name>`` of several."""
        if self.optimiser is not None:
            return {"optimiser": self.optimiser}
        return {f"optimisers.{name}": chosen for name, chosen in self.optimisers.items()}


# those that users set
SETTINGS = [f.name for f in fields(Settings) if f.metadata != OWNED]


def resolve_settings(given: Settings) -> Settings:
    """Resolve names and tables to objects, except for the network, the backend, the operator and the hooks."""
    resolve, where = given.resolve, f"{given.name}."
    values = {a.name: getattr(given, a.name) for a in fields(Settings)}
    check_target(given.name, given.target, given.data)
    if not is_whole(given.media_bytes, 0):
        raise SigmaConfigError(f"{where}media_bytes: must be a whole number of at least 0 (got {given.media_bytes!r}).")
    if isinstance(given.data, InferredData):
        own = {name: value for name, value in given.data.settings().items() if name == "data" or not values[name]}
        values |= {**own, "target": None}
    values["data"] = data(resolve, where + "data", values["data"])
    kinds = {"metrics": Metric, "preprocessors": Preprocessor}
    kinds |= {"augmentations": contracts.Augmentation, "rewritings": contracts.Rewriting}
    for name, kind in kinds.items():
        values[name] = resolve_components(resolve, where + name, kind, values[name])
    values["preprocessors"] = _join_preprocessors(where, values["data"], values["preprocessors"])
    values["initialisers"] = initialisers(resolve, where + "initialisers", given.initialisers)
    values["iterator"] = resolve(Iterator, given.iterator, where + "iterator")
    check_one_or_several(where + "optimisers", given)
    by_head = {head: optimisation(resolve, where + head, chosen) for head, chosen in given.optimisers_by_head.items()}
    values["optimiser"] = by_head.pop("optimiser", None)
    values["optimisers"] = {head.partition(".")[2]: chosen for head, chosen in by_head.items()}
    return Settings(**values)


def _join_preprocessors(where: str, data: Any, own: Mapping[str, Preprocessor]) -> dict[str, Preprocessor]:
    """Return the preprocessors of the data set, then those of the trainer; a run that was saved has them all."""
    lent: Mapping[str, Preprocessor] = getattr(data, "preprocessors", {})
    if other := next((name for name, step in lent.items() if repr(own.get(name, step)) != repr(step)), None):
        raise SigmaConfigError(f"{where}preprocessors: the data set has one of the name {other!r}. Rename one of them.")
    return {**lent, **own}


def check_one_or_several(where: str, given: Settings) -> None:
    """Raise SigmaConfigError for several optimisers without names, or beside a single one."""
    if not isinstance(given.optimisers, Mapping) or isinstance(given.optimisers.get("type"), str):
        raise SigmaConfigError(f"{where}: each needs a name: {{'critic': {{'type': 'adam', 'match': 'critic.**'}}}}.")
    if given.optimiser is not None and given.optimisers:
        raise SigmaConfigError(f"{where}: there is an optimiser as well. Give one optimiser, or several with names.")


def optimisation(resolve: Resolve, where: str, chosen: Any, now: Optimisation | None = None) -> Optimisation:
    """Resolve an optimiser with what it updates and minimises; what a table omits is as ``now``, or the default."""
    names = {a.name for a in fields(Optimisation)} - {"type"}
    about = {name: getattr(now, name) for name in names} if now else {}
    if isinstance(chosen, Optimisation):
        about, chosen = {name: getattr(chosen, name) for name in names}, chosen.type
    elif isinstance(chosen, Mapping):
        about |= {name: chosen[name] for name in names & chosen.keys()}
        rest = {name: value for name, value in chosen.items() if name not in names}
        chosen = rest["type"] if rest.keys() == {"type"} and not isinstance(rest["type"], str) else rest
    return Optimisation(resolve(Optimiser, chosen, where), **about)


def check_precision(trainer: str, precision: str, backend: contracts.Backend) -> None:
    """Raise SigmaConfigError if the backend does not support the precision."""
    names = sorted(dtype for dtype in backend.dtypes if dtype in PRECISIONS)
    names += MIXED if "float32" in names else ()
    if precision not in names:
        raise SigmaConfigError(f"{trainer}: the backend has no precision {precision!r}. It has {', '.join(names)}.")


def hooks(
    resolve: Resolve, where: str, chosen: Any, splits: Collection[str] | None, mistakes: Mistakes = FIRST
) -> dict[str, Hook]:
    """Resolve hooks by name, and parse times and criteria given as strings.

    Without the ``splits`` of the data, the splits that hooks measure on are not checked.
    """
    if not isinstance(chosen, Mapping):
        raise SigmaConfigError(f"{where}: each needs a name: {{'score': Accuracy()}}.")
    by_name: dict[str, Hook] = resolve_components(resolve, where, Hook, chosen)
    for name, hook in by_name.items():
        with mistakes.locate("hooks", name):
            by_name[name] = _parse_times(resolve, f"{where}.{name}", hook)
            _check_declared(f"{where}.{name}", hook)
            for split in hook.splits if splits is not None else ():
                check_split(f"{where}.{name}", split, splits or ())
    return by_name


def check_split(where: str, split: str, splits: Collection[str]) -> None:
    """Raise SigmaConfigError for an unknown split of the data."""
    if split not in splits:
        raise SigmaConfigError(f"{where}: the data has no split {split!r}.{suggest_name(split, splits, 'There are:')}")


def _parse_times(resolve: Resolve, where: str, hook: Hook) -> Hook:
    """Return a hook with its times and criteria parsed; raise SigmaConfigError for invalid ones."""
    for what, (read, kind, words) in TIMES.items():
        chosen = getattr(hook, what)
        time = read(chosen) if isinstance(chosen, str) else chosen
        time = time.bound(resolve) if isinstance(time, Criterion) else time
        if time is not chosen:
            hook = copy(hook)  # leave the user's object unchanged
            setattr(hook, what, time)
        if not isinstance(time, kind):
            raise SigmaConfigError(f"{where}.{what}: must be {words} (got {chosen!r}).")
    return hook


def _check_declared(where: str, hook: Hook) -> None:
    """Raise SigmaConfigError for declarations other than lists of strings; a string would iterate over its letters."""
    for what in ("reads", "writes", "requires", "splits", "settable"):
        try:
            declared = getattr(hook, what)
        except Exception as error:  # whatever a plugin's code raises
            raise SigmaConfigError(f"{where}.{what}: {error_text(error)}") from error
        several_ = isinstance(declared, Collection) and not isinstance(declared, str)
        if not several_ or not all(isinstance(entry, str) for entry in declared):
            raise SigmaConfigError(f"{where}.{what}: must be a list of strings (got {declared!r}). Write ['...'].")


def initialisers(resolve: Resolve, where: str, chosen: Any) -> dict[str, tuple[str, contracts.Initialiser]]:
    """Resolve the initialiser rules by name: pattern and initialiser; a configuration gives both in one table."""
    rules: dict[str, tuple[str, contracts.Initialiser]] = {}
    for name, rule in chosen.items() if isinstance(chosen, Mapping) else [("rule", chosen)]:
        if isinstance(rule, Mapping) and "match" in rule:
            rule = rule["match"], {key: value for key, value in rule.items() if key != "match"}
        if not isinstance(rule, tuple) or len(rule) != 2 or not isinstance(rule[0], str):
            form = "{'weights': ('**.weights', 'he_normal')}"
            raise SigmaConfigError(f"{where}: must be named rules, such as {form} (got {rule!r}).")
        rules[name] = rule[0], resolve("initialiser", rule[1], f"{where}.{name}")
    return rules


def data(resolve: Resolve, where: str, chosen: Any) -> Any:
    """Return the data, with names and tables resolved to data sets."""
    named = isinstance(chosen, str | type) or is_table(chosen) or has(type(chosen))
    return resolve("dataset", chosen, where) if named else chosen


def splits(given: Settings) -> dict[str, Dataset]:
    """Return the data set of each split: only ``training`` if no splits were given, cut in parts if there is a share.

    Columns with names are in the order of the training split in all of them, or as learned from earlier data.
    """
    where, chosen = given.name, given.data
    share = None if getattr(chosen, "divided", False) else given.validation_split  # it was when the rows were saved
    if not isinstance(chosen, Mapping) or not _in_splits(chosen):
        chosen = {"training": chosen}
    if chosen.get("training") is None:
        hint = "" if "training" in chosen else f" No split is called 'training', only {', '.join(chosen)}."
        raise SigmaConfigError(f"{where}: there is no data to train on. Set data, such as Arrays(inputs=...).{hint}")
    alone = len(chosen) == 1
    places = {name: f"{where}.data" if alone else f"{where}.data.{name}" for name in chosen}
    apart = bool(given.learned.about) or not alone  # whole numbers may be classes, of which a split may have no row
    parts = {name: dataset(_only_split(x), places[name], given.resolve, apart) for name, x in chosen.items()}
    first = given.learned.earlier_columns(given.resolve) or parts["training"]
    parts = {name: x if x is first else x.align(first) for name, x in parts.items()}
    return parts if share is None else _split_data(given.resolve, f"{where}.validation_split", parts, share)


def _only_split(chosen: Any) -> Any:
    """Return the data of one split; a data set in splits must have only one."""
    return chosen["training"] if isinstance(chosen, Mapping) and [*chosen] == ["training"] else chosen


def _split_data(resolve: Resolve, where: str, made: Mapping[str, Dataset], share: Any) -> dict[str, Dataset]:
    """Return the parts of the only split."""
    if len(made) > 1:
        others = ", ".join(name for name in made if name != "training")
        raise SigmaConfigError(f"{where}: the data has splits already: {others}. Leave one of both out.")
    table = share if isinstance(share, Mapping) else {"split": share}
    return dict(resolve("dataset", {"type": "default:parts", "dataset": made["training"], **table}, where))


def encode_splits(
    splits: Mapping[str, Dataset], network: Network, given: Settings, outputs: Mapping[str, Spec] | None = None
) -> dict[str, Dataset]:
    """Encode every section as the network reads it: class indices for classification costs, else numbers.

    If the specs of ``outputs``, as predictions, are known, they give the number of classes; labels may be learned from
    earlier data.
    """
    takers = {step.section: 0 for step in given.preprocessors.values() if step.takes_classes}
    labels_of = dict[str, Sequence[Label]]()
    for cost in network.targeted_costs:
        if cost.layer.chooses or cost.layer.decides:
            section, width = cost.layer.targets, outputs[cost.sources[0]].shape[-1:] if outputs else ()
            takers[section] = 2 if cost.layer.decides else sum(width)
            indices = range(takers[section] if given.learned.about else 0)  # if the earlier data held no other labels
            labels_of[section] = given.learned.labels(section) or indices
            if _ignores(splits["training"], cost.layer):
                del takers[cost.layer.targets]
    for section in network.sections(there=splits["training"].sections):
        first = _encode(splits["training"], section, takers.get(section), labels_of.get(section, ()))
        names = first.class_names(section)
        others = {name: _encode(x, section, takers.get(section), names) for name, x in splits.items()}
        splits = {**others, "training": first}
    return dict(splits)


def _ignores(data: Dataset, cost: contracts.CostLayer) -> bool:
    """Return whether a label that does not count would be encoded as one of the classes."""
    names = () if cost.ignores is None else _encode(data, cost.targets, 0).class_names(cost.targets)
    return cost.ignores in names and names.index(cost.ignores) != cost.ignores


def _encode(data: Dataset, section: str, classes: int | None, names: Sequence[Label] = ()) -> Dataset:
    with introduce_errors("data", data):
        rows = data.encode(section, classes, names)
        expect(isinstance(rows, Dataset), "encode() must return a data set", rows)
    return rows


def class_names(data: Dataset, network: Network) -> dict[str, list[Label]]:
    """Return the labels of the classes of each section of targets that has any."""
    classes = {cost.layer.targets: labels(data.class_names(cost.layer.targets)) for cost in network.targeted_costs}
    return {section: names for section, names in classes.items() if names}


def column_names(data: Dataset, network: Network) -> dict[str, list[str]]:
    """Return the names of the columns of each section of inputs that has any."""
    with introduce_errors("data", data):
        columns = {name: [*map(str, data.column_names(name))] for name in network.sections(costs=False)}
        for name, names in columns.items():
            shape = data.sections[name].shape
            expect(not names or shape == (len(names),), f"column_names({name!r}) must return {shape} names", names)
    return {name: names for name, names in columns.items() if names}


def target_names(network: Network, learned: Learned) -> dict[str, list[str]]:
    """Return the names of the columns that outputs estimate, by output, of those that have any."""
    columns = {**learned.facts_of("columns"), **learned.facts_of("targets")}
    every = {x.name: columns.get(network.estimated_section(x.name), ()) for x in getattr(network, "outputs", ())}
    return {output: [*map(str, names)] for output, names in every.items() if names}


def tell_findings(where: str, splits: Mapping[str, Dataset], network: Network) -> None:
    """Warn of what is odd about the rows, in the words of their data set."""
    training, others = splits["training"], {name: rows for name, rows in splits.items() if name != "training"}
    classes = [cost.layer.targets for cost in network.targeted_costs if cost.layer.chooses or cost.layer.decides]
    with introduce_errors("data", training):
        sentences = training.findings([*dict.fromkeys(classes)], others)
        several = not isinstance(sentences, str) and all(isinstance(text, str) for text in sentences)
        expect(several, "findings() must return a list of sentences", sentences)
    for text in sentences:
        warn(f"{where}: {text}")


def labels(names: Sequence[Any]) -> list[Label]:
    """Return the labels of classes as plain values, which a checkpoint holds with their types; others as text."""
    return [x.item() if isinstance(x, np.generic) else x if isinstance(x, Label) else str(x) for x in names]


def _in_splits(chosen: Mapping[str, Any]) -> bool:
    """Return whether a mapping holds data sets rather than arrays."""
    return "training" in chosen or any(isinstance(given, Dataset | Mapping | tuple) for given in chosen.values())


def network(resolve: Resolve, where: str, chosen: Any) -> Network:
    """Return the network of a text form, an architecture, several ends, or an object that declares itself."""
    if chosen is None:
        raise SigmaNetworkError(f"{where}: there is no network. Set one, such as Input(4) + Dense(3) + ...")
    if hasattr(chosen, "declare"):
        return cast("Network", chosen)
    return Network.build(parse(chosen, resolve) if isinstance(chosen, str) else chosen)
