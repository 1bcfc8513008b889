"""Build an environment from a configuration, and prepare it to run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from attrs import asdict, evolve

from sigma_kernel.clock import TimeScale, after
from sigma_kernel.contracts import Hook
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaConfigError, SigmaError
from sigma_kernel.participants import Participants
from sigma_kernel.plugins.catalogue import Catalogue, catalogue as installed, load
from sigma_kernel.plugins.choice import make_choices
from sigma_run.config.complaints import complaint, locate_mistake
from sigma_run.config.document import Document, Path as Place
from sigma_run.config.examination import check_cost, examine
from sigma_run.config.location import check_there
from sigma_run.config.schema import Configuration, Data, Run
from sigma_run.config.writing import resolved_toml
from sigma_training.trainer import expect_trainer

Mistakes = list[tuple[Place, Exception]]


def build(
    configuration: Configuration,
    catalogue: Catalogue | None = None,
    folder: Path | None = None,
    folder_name: str | None = None,
) -> Environment:
    """Build an environment from a configuration; with a ``folder``, its runs write a run folder there."""
    run = configuration.run
    plugins = (catalogue or installed()).recalling(configuration.document.plugins).preferring(run.prefer)
    environment = Environment(
        run.name,
        seed=run.seed,
        precision=run.precision,
        plugins=run.plugins,
        control=run.control,
        folder=folder,
        folder_name=folder_name,
        monitors={name: monitor.make() for name, monitor in configuration.monitors.items()},
        configuration=resolved_toml(configuration, folder),
        catalogue=plugins,
    )
    for name, trainer in configuration.trainers.items():
        environment.create_trainer(name, **settings_of(run, asdict(trainer, recurse=False), plugins))
    return environment


def hush(environment: Environment) -> None:
    """Remove the monitors that write to the terminal."""
    environment.monitors = {name: monitor for name, monitor in environment.monitors.items() if not monitor.talks}


def settings_of(run: Run | None, tables: Mapping[str, Any], catalogue: Catalogue) -> dict[str, Any]:
    """Return the settings of a trainer of its tables, without those that are None because the file has mistakes."""
    data, network, optimiser = tables["data"], tables["network"], tables["optimiser"]
    backend, operator = (tables[slot] or getattr(run, slot, None) for slot in ("backend", "operator"))
    settings: dict[str, Any] = {
        "backend": backend and backend.make(),
        "operator": operator and operator.make(),
        "network": network and network.architecture.make(catalogue.load),
        "rewritings": {name: choice.make() for name, choice in network.rewritings.items()} if network else {},
        "initialisers": {name: (rule.match, rule.type.make()) for name, rule in tables["initialisers"].items()},
        "optimiser": optimiser and optimiser.make(),
        "optimisers": {name: evolve(o, type=make_choices(o.type)) for name, o in (tables["optimisers"] or {}).items()},
        "order": tables["order"],
        "epochs": tables["epochs"],
        "baselines": tables["baselines"],
        "media_bytes": tables["media_bytes"],
        "metrics": {name: choice.make() for name, choice in (tables["metrics"] or {}).items()},
        "hooks": {
            **_verifying(run, tables["hooks"] or {}, catalogue),
            **{name: choice.make() for name, choice in (tables["hooks"] or {}).items()},
        },
    } | (_data(data) if data else {})
    return {name: value for name, value in settings.items() if value is not None}


def _verifying(run: Run | None, taken: Collection[str], catalogue: Catalogue) -> dict[str, Hook]:
    """Return the hooks that ``run.verify`` adds: one at each interval, and one after the first iteration."""
    if run is None or run.verify is None:
        return {}
    verify = catalogue.resolve("hook", "default:verification")
    make = load(verify)
    hooks: dict[str, Hook] = {verify.name: make(every=run.verify)}
    if (run.verify.scale, run.verify.first) != (TimeScale.ITERATION, 1):
        hooks[f"{verify.name}-first"] = make(every=after(1, "iteration"))
    for name in hooks:
        if name in taken:
            raise SigmaConfigError(f"run.verify: there is a hook {name!r} already. Rename it, or leave verify out.")
    return hooks


def _data(data: Data) -> dict[str, Any]:
    return {
        "data": data.dataset.make(),
        "validation_split": data.validation_split,
        "batch_size": data.batch_size,
        "last_batch": data.last_batch,
        "preprocessors": {name: choice.make() for name, choice in data.preprocessors.items()},
        "augmentations": {name: choice.make() for name, choice in data.augmentations.items()},
        "iterator": data.iterator and data.iterator.make(),
    }


def prepare(configuration: Configuration, environment: Environment, begins: bool = False) -> None:
    """Prepare every trainer (infer shapes, read data); raises one error that lists every mistake.

    If training ``begins``, something has to end it, and the plugins that take part in it by name have to be there.
    """
    check_there(configuration)
    wrong: Mistakes = []
    try:
        if begins:
            Participants(environment.catalogue, environment.plugins, environment.log).check()
    except SigmaError as error:
        wrong.append((("run", "plugins"), error))
    for name, trainer in environment.trainers.items():
        own = expect_trainer(trainer)
        try:
            own.prepare()
            check_cost(own.session.setup.model.network)
            if begins:
                own.lifecycle.check_end()
        except SigmaError as error:
            wrong += in_file(configuration.document, name, examine(own, () if begins else {"ending"}) or [((), error)])
    if wrong:
        raise complaint(configuration.document, wrong)
    environment.prepare()


def in_file(
    document: Document, trainer: str, found: Iterable[tuple[Place, Exception]]
) -> list[tuple[Place, Exception]]:
    """Return a trainer's mistakes with their paths in the file."""
    head: Place = ("trainers", trainer) if "trainers" in document.values else ()
    return [locate_mistake(document.values, head, path, error) for path, error in found]
