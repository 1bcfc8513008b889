"""Describe an environment that was made in Python as a configuration, for ``config.toml`` in its run folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from attrs import field, fields, frozen

from sigma_kernel.contracts import Dataset
from sigma_kernel.contracts.media import BUDGET
from sigma_kernel.criteria import Criterion
from sigma_kernel.environment import Environment
from sigma_kernel.errors import (
    SigmaConfigError,
    SigmaDataError,
    SigmaNetworkError,
    SigmaPluginError,
    SigmaStateError,
    warn,
)
from sigma_kernel.plugins.catalogue import catalogue, load
from sigma_kernel.plugins.components import KINDS
from sigma_kernel.plugins.dumping import Dumper
from sigma_kernel.settings import NAME, phrase
from sigma_kernel.settings.mistakes import Faults, Wrong, format_path
from sigma_kernel.settings.records import construct, explain
from sigma_run.config.loading import FileLoader
from sigma_run.config.location import write_path
from sigma_run.config.schema import METRIC
from sigma_run.config.writing import UNWRITTEN, toml
from sigma_store.files import digest, put_bytes
from sigma_training.data.iterators import Shuffled
from sigma_training.trainer import NetworkTrainer, expect_trainer

ROWS = "default:saved-rows"  # the data set of rows that are saved with a run


def record_configuration(environment: Environment, run: Path) -> str:
    """Return the configuration of an environment as TOML; save the arrays that it refers to in its run folder.

    What cannot be written or saved is a SigmaWarning, at the line of the caller's code.
    """
    place = partial(write_path, run=run, project=Path.cwd())
    description = Description(Dumper(environment.catalogue, place), run / "data", environment.most_data)
    about = {name: getattr(environment, name) for name in ("name", "seed", "precision", "plugins", "control")}
    trainers = {name: expect_trainer(trainer) for name, trainer in environment.trainers.items()}
    text = description.text({**about, "folder": place(run.parent)}, trainers, environment.monitors)
    for problem in description.problems():
        warn(problem)
    return text


def record_trainer(trainer: NetworkTrainer, folder: Path) -> str:
    """Return the configuration of one trainer as TOML, for workers; save the arrays that it refers to in a folder.

    Hooks, operator and monitors are left out, which no worker needs; paths are absolute. Raises SigmaConfigError for
    what cannot be written.
    """
    dumper = Dumper(catalogue(), lambda path: str(path.absolute()))
    description = Description(dumper, folder / "data", inf, computes_only=True)
    run = {"name": "worker", "seed": trainer.seed, "precision": trainer.precision, "control": False}
    text = description.text(run, {trainer.name: trainer}, {})
    if description.unwritten:
        what = "; ".join(f"{place}: {why}" for place, why in description.unwritten.items())
        raise SigmaConfigError(
            f"{trainer.name}.operator: workers in other processes cannot make what is trained: {what} Move it to a"
            " module that they can import, or use operator = 'local'."
        )
    return text


class _Checker(FileLoader):
    """A reader of tables that constructs no component, as there is one already, of which the table was written."""

    def make(self, name: str, factory: Any, values: Mapping[str, Any], key: str) -> Any:
        """Return an object that holds the settings, once the validators of the component have run on it."""
        faults = Faults()
        bare = explain(factory, values, faults)
        faults.raise_all()
        return construct(factory, values) if bare is None else bare

    def look_up(self, kind: str, name: str) -> Any:
        """Return a component's object; that of a criterion is a class whose objects hold no settings."""
        thing = super().look_up(kind, name)
        is_criterion = isinstance(thing, type) and issubclass(thing, Criterion)
        return type(thing.__name__, (thing,), {"__init__": _hold_nothing}) if is_criterion else thing


def _hold_nothing(criterion: Criterion, *given: Any, **settings: Any) -> None:
    pass


@frozen
class Description:
    """The tables of a configuration, and what could not be written in them, with the reason, by its place."""

    dumper: Dumper
    folder: Path | None = None  # where rows that were given as arrays are saved
    limit: float = 0  # bytes of these for each trainer
    computes_only: bool = False  # leave out hooks and operators
    unwritten: dict[str, str] = field(factory=dict)
    unsaved: list[str] = field(factory=list)  # trainers whose rows are not saved

    def text(self, run: Mapping[str, Any], trainers: Mapping[str, NetworkTrainer], monitors: Mapping[str, Any]) -> str:
        """Return the configuration as TOML; if anything could not be written, it says only what that is."""
        tables = {name: self._trainer(trainer) for name, trainer in trainers.items()}
        for setting in ("seed", "precision"):
            if {getattr(trainer, setting) for trainer in trainers.values()} != {run[setting]}:
                self.unwritten[f"run.{setting}"] = "it differs between trainers, and a file has one for all."
        if self.unwritten:
            return toml({"format": 1, UNWRITTEN: self.unwritten})
        return toml({"format": 1, "run": run, **_top_level_tables(tables), "monitors": self._monitors(monitors)})

    def problems(self) -> Iterator[str]:
        """Yield what a person should know when the run begins."""
        if self.unwritten:
            what = "; ".join(f"{place}: {why}" for place, why in self.unwritten.items())
            yield f"the run cannot be opened from its folder later, as some settings cannot be written: {what}"
        elif self.unsaved:
            yield (
                f"{', '.join(self.unsaved)}: the data exceed {self.limit:,} bytes and are not saved with the run: to "
                "evaluate or resume it, give them again. Environment(most_data=...) sets the limit."
            )

    def _trainer(self, trainer: NetworkTrainer) -> dict[str, Any]:
        """Return the table of a trainer, as ``[trainers.NAME]``."""
        setup, where = trainer.session.setup, f"{trainer.name}."
        base, chosen = setup.factory.base, setup.settings
        parts = {"backend": base.backend} | ({} if self.computes_only else {"operator": chosen.operator})
        hooks = {} if self.computes_only else base.hooks
        return {
            "data": {
                "dataset": self._try(f"{where}data", self._data, trainer, chosen.data),
                "validation_split": self._try(f"{where}validation_split", self.dumper.dump, trainer.validation_split),
                "batch_size": setup.feed.batch_size,
                "last_batch": trainer.last_batch,
                "iterator": self._iterator(f"{where}iterator", base.iterator),
                "preprocessors": self._tables_by_name(f"{where}preprocessors", chosen.preprocessors),
                "augmentations": self._tables_by_name(f"{where}augmentations", chosen.augmentations),
            },
            "network": {
                "architecture": self._try(f"{where}network", self._architecture, setup.model.network),
                "rewritings": self._tables_by_name(f"{where}rewritings", chosen.rewritings),
            },
            "initialisers": {
                name: self._try(f"{where}initialisers.{name}", self._rule, *rule)
                for name, rule in chosen.initialisers.items()
            },
            **{name: self._table(f"{where}{name}", part) for name, part in parts.items()},
            **self._optimisers(where, base.optimisers),
            "order": [*trainer.order] or None,
            "epochs": trainer.epochs,
            "baselines": None if trainer.baselines else False,
            "media_bytes": None if trainer.media_bytes == BUDGET else trainer.media_bytes,
            "metrics": self._tables_by_name(f"{where}metrics", chosen.metrics, METRIC),
            "hooks": self._tables_by_name(f"{where}hooks", hooks),
        }

    def _architecture(self, network: Any) -> str:
        if not hasattr(network, "ends"):
            raise SigmaConfigError("a function of parameters is not an architecture.")
        return self.dumper.architecture(network.ends)

    def _iterator(self, where: str, iterator: Any) -> Any:
        return None if isinstance(iterator, Shuffled) else self._table(where, iterator)

    def _rule(self, match: str, initialiser: Any) -> dict[str, Any]:
        return {"match": match, **_component_table(self.dumper.table(initialiser))}

    def _optimisers(self, where: str, parts: Mapping[str, Any]) -> dict[str, Any]:
        """Return the table of the optimiser, or those of several by name."""
        if parts.keys() <= {"optimiser"}:
            return {head: self._table(where + head, part.type) for head, part in parts.items()}
        several = {name: self._try(where + name, self._optimisation, part) for name, part in parts.items()}
        return {"optimisers": {name.partition(".")[2]: table for name, table in several.items()}}

    def _optimisation(self, part: Any) -> dict[str, Any]:
        rest = self.dumper.dump({"match": part.match, "minimises": part.minimises})
        return {**rest, **_component_table(self.dumper.table(part.type))}

    def _tables_by_name(self, where: str, parts: Mapping[str, Any], check: Any = NAME) -> dict[str, Any]:
        """Return a table of tables by name."""
        for name in parts:
            try:
                check(self, fields(Description).folder, name)
            except SigmaConfigError:
                self.unwritten[f"{where}.{name}"] = "names in files have letters, digits, - and _ only."
        return {name: self._table(f"{where}.{name}", part) for name, part in parts.items()}

    def _table(self, where: str, component: Any) -> Any:
        contract = next((cls for cls in KINDS if isinstance(component, cls)), None)
        return self._try(where, lambda: self._readable(self.dumper.table(component), contract))

    def _readable(self, table: Any, contract: Any) -> Any:
        """Return a table, having made sure that it is read as a component; what it names is imported already."""
        plugins = self.dumper.catalogue.trusting(name.partition(".")[0] for name in [*sys.modules])
        _Checker(plugins).load(table, contract)
        return table

    def _try(self, where: str, write: Any, *what: Any) -> Any:
        """Return what is to be written, and note what cannot be."""
        try:
            return write(*what)
        except Wrong as wrong:
            self.unwritten[where] = " ".join(f"{format_path(path)}: {phrase(error)}" for path, error in wrong.found)
        except (SigmaConfigError, SigmaDataError, SigmaNetworkError, SigmaPluginError) as error:
            self.unwritten[where] = str(error)
        return None

    def _monitors(self, monitors: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tables of monitors that plugins offer: results do not depend on others, which one had to trust."""
        return {name: self.dumper.table(m) for name, m in monitors.items() if self.dumper.find_record(type(m))}

    # -- data ----------------------------------------------------------------------------------------------------------
    def _data(self, trainer: NetworkTrainer, chosen: Any) -> Any:
        """Return the table of a data set; the rows of any other data are saved in a file, and this is its table."""
        if isinstance(chosen, Dataset) or self.dumper.find_record(type(chosen)):
            with suppress(SigmaConfigError, Wrong):  # what has no table, its rows are saved
                return self._readable(self.dumper.table(chosen), Dataset)
        splits = trainer.session.setup.factory.splits
        rows = self.dumper.catalogue.resolve("dataset", ROWS)
        table = {
            "type": rows.full_name,
            "splits": [*splits],
            "divided": None if trainer.validation_split is None else True,
        }
        if self.folder is None or sum(map(_size, splits.values())) > self.limit:
            self.unsaved.append(trainer.name)
            return table
        name, data = f"{trainer.name}.safetensors", load(rows).bytes_of(splits)
        self.folder.mkdir(exist_ok=True)
        try:
            put_bytes(self.folder / name, data)
        except OSError as error:
            what = f"{self.folder / name}: cannot be written: {error.strerror}"
            raise SigmaStateError(f"{what}. Free disk space there, and make it writable.") from error
        return {**table, "path": f"{self.folder.name}/{name}", "sha256": digest(data)}


def _component_table(table: Any) -> dict[str, Any]:
    """Return the settings of a component for a table that has others beside them."""
    return table if isinstance(table, dict) and "type" in table else {"type": table}


def _size(rows: Dataset) -> int:
    """Return the bytes of the rows of a split."""
    first = rows.block(0)
    return len(rows) * sum(values.nbytes for values in first.values()) // rows.rows(0)


def _top_level_tables(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the tables of a file: at the top level if there is only one trainer, called ``trainer``."""
    if tables.keys() != {"trainer"}:
        return {"trainers": tables}
    table = tables["trainer"]
    apart = {name: table[name] for name in ("data", "network", "initialisers", "hooks")}
    return {**apart, "trainer": {name: value for name, value in table.items() if name not in apart}}
