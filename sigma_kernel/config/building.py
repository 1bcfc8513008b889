"""From a configuration to an environment that is ready to run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sigma_kernel import notation
from sigma_kernel.config.choice import Choice, made
from sigma_kernel.config.document import Path as Place
from sigma_kernel.config.reading import complaint
from sigma_kernel.config.schema import Configuration, Run, Trainer as Declared
from sigma_kernel.config.writing import resolved
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaConfigError, SigmaNetworkError
from sigma_kernel.graph.node import Spec
from sigma_kernel.network import Network
from sigma_kernel.plugins import Catalogue, catalogue as installed
from sigma_kernel.training.trainer import Trainer


def build(configuration: Configuration, catalogue: Catalogue | None = None, folder: Path | None = None) -> Environment:
    """Return a new environment; with a ``folder``, its runs leave a run folder there."""
    run, found = configuration.run, catalogue or installed()
    environment = Environment(
        run.name,
        seed=run.seed,
        precision=run.precision,
        folder=folder,
        monitors={name: monitor.make() for name, monitor in configuration.monitors.items()},
        configuration=resolved(configuration),
        catalogue=found,
    )
    for name, trainer in configuration.trainers.items():
        environment.create_trainer(name, **_settings(run, trainer, found))
    return environment


def _settings(run: Run, trainer: Declared, catalogue: Catalogue) -> dict[str, Any]:
    data = trainer.data
    return {
        "backend": _table(trainer.backend or run.backend),
        "operator": _table(trainer.operator or run.operator),
        "network": notation.parse(trainer.network.architecture, catalogue.load),
        "data": data.dataset.make(),
        "batch_size": data.batch_size,
        "last_batch": data.last_batch,
        "preprocessors": {name: choice.make() for name, choice in data.preprocessors.items()},
        "initialisers": {name: (rule.match, rule.type.make()) for name, rule in trainer.initialisers.items()},
        "optimiser": trainer.optimiser.make(),
        "hooks": {name: choice.make() for name, choice in trainer.hooks.items()},
    } | ({"order": data.order.make()} if data.order else {})


def _table(choice: Choice[Any]) -> dict[str, Any]:
    """Leave what is chosen to the trainer, which then knows it by its name."""
    return {"type": choice.name, **made(choice.settings)}


def prepare(configuration: Configuration, environment: Environment) -> None:
    """Prepare every trainer, which infers all shapes; errors about the configuration name their place in it."""
    _each(configuration, environment, lambda trainer: trainer.prepare())
    environment.prepare()


def check_shapes(configuration: Configuration, environment: Environment) -> None:
    """Check the layers before the costs, without data: with inputs of the shapes that the network itself states."""
    _each(configuration, environment, _shapes)


def _each(configuration: Configuration, environment: Environment, act: Callable[[Trainer], Any]) -> None:
    values, wrong = configuration.document.values, list[tuple[Place, Exception]]()
    for name, trainer in environment.trainers.items():
        head: Place = ("trainers", name) if "trainers" in values else ()
        try:
            act(trainer)
        except SigmaNetworkError as error:
            wrong.append(((*head, "network", "architecture"), error))
        except SigmaConfigError as error:
            wrong.append(_placed(values, head, error))
    if wrong:
        raise complaint(configuration.document, wrong)


def _placed(values: Mapping[str, Any], head: Place, error: SigmaConfigError) -> tuple[Place, Exception]:
    """Return an error that begins with an address, of the trainer or in it, with the path of that address."""
    address, _, text = str(error).partition(": ")
    parts = tuple(address.split("."))
    for path in ((*head, *parts), (*head, *parts[1:]), ("trainer", *parts)):
        if path != head and _holds(values, path):
            return path, SigmaConfigError(text)
    return head, error


def _holds(values: Any, path: Place) -> bool:
    return not path or (isinstance(values, Mapping) and path[0] in values and _holds(values[path[0]], path[1:]))


def _shapes(trainer: Trainer) -> None:
    network = Network.build(trainer.network)
    inputs = [placed.layer for placed in network.inputs]
    sections = {layer.section: Spec(layer.shape, layer.dtype or trainer.precision) for layer in inputs}
    network.declare(sections, trainer.precision, trainer.resolve)
