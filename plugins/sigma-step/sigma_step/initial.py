"""The initial state of a run: initialised parameters and layer state, optimiser slots, random key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from attrs import field, frozen

from sigma_kernel.contracts import Initialiser, Parameter
from sigma_kernel.errors import SigmaConfigError, SigmaDataError, expect, introduce_errors
from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.namespace import numpy_namespace
from sigma_kernel.graph.node import Graph, constant, symbol
from sigma_kernel.graph.random import Draw
from sigma_kernel.network.network import Network
from sigma_kernel.network.tracing import Trace
from sigma_step.model import LAYERS, Model
from sigma_step.rules import hits


@frozen(eq=False)
class Initial:
    """The initial state; ``rules`` are named pairs of a pattern and an initialiser.

    ``kept`` are values that a run has kept, by address: they are not drawn again. ``rows`` returns some first rows of
    the training data by section, for initialisers that are fitted to them.
    """

    model: Model
    rules: Mapping[str, tuple[str, Any]]
    seed: int
    fitted: Mapping[str, np.ndarray] = field(factory=dict)  # fitted values of preprocessors
    kept: Mapping[str, np.ndarray] = field(factory=dict)
    rows: Callable[[int], Mapping[str, np.ndarray]] | None = None

    @property
    def parameters_and_state(self) -> dict[str, Parameter]:
        """Return the parameters and the layer state, by address."""
        return {**self.model.shapes.parameters, **self.model.shapes.state}

    def arrays(self) -> dict[str, np.ndarray]:
        """Return parameters, layer state, optimiser slots, random key, and fitted values, by name."""
        state = {
            LAYERS + address: self.values(address, parameter)
            for address, parameter in self.parameters_and_state.items()
        }
        key = np.array([self.seed & 0xFFFFFFFF, self.seed >> 32 & 0xFFFFFFFF], np.uint32)
        random = {"random.iteration": np.zeros((), np.uint32), "random.key": key}
        return {**state, **self.model.first_slots(state.__getitem__), **random, **self.fitted}

    def number_draws(self) -> None:
        """Give the streams of all initial values their numbers, before those of what is traced later."""
        for address, parameter in self.parameters_and_state.items():
            if address not in self.kept and not isinstance(self.initialiser(address, parameter), int | float):
                self._stream(address)

    def outside_values(self) -> dict[str, np.ndarray]:
        """Return the values that come from outside, by address, for a run to keep."""
        chosen = {
            a: self.model.resolve("initialiser", self.initialiser(a, parameter))
            for a, parameter in self.parameters_and_state.items()
        }
        return {
            a: self.values(a, self.parameters_and_state[a])
            for a, initialiser in chosen.items()
            if getattr(initialiser, "outside", False) or a in self._fitted_values
        }

    def check_names(self, learned: Mapping[str, Any]) -> None:
        """Raise SigmaDataError if matched values were trained on other columns or classes than the network is."""
        network = self.model.network
        if self.kept or not hasattr(network, "layers"):
            return
        ends = {cost.sources[0] for cost in network.targeted_costs}
        for name, (_, initialiser) in self.rules.items():
            with introduce_errors(f"initialisers.{name}", initialiser):
                then: Mapping[str, Any] = getattr(initialiser, "learned", {})
                mine = [address for address in self.parameters_and_state if self.rule(address) == name] if then else []
                taken = {address.partition(".")[0] for address in mine}
                for what, layers in (("columns", _readers(network, self.parameters_and_state)), ("classes", ends)):
                    if taken & layers:
                        _check_same_names(f"initialisers.{name}", what, then.get(what, {}), learned.get(what, {}))

    def rule(self, address: str) -> str | None:
        """Return the name of the rule that applies to an address, or None for the layer's own initialiser."""
        rules = {name: match for name, (match, _) in self.rules.items()}
        return next(iter(hits(self.model, rules, address)), None)

    def initialiser(self, address: str, parameter: Parameter) -> Any:
        """Return the initialiser of a parameter, in any form, or a number."""
        rule = None if parameter.each_epoch else self.rule(address)
        return self.rules[rule][1] if rule is not None else parameter.initialiser

    def values(self, address: str, parameter: Parameter) -> np.ndarray:
        """Return the initial values of a parameter, or of an entry of layer state."""
        fitted = self._fitted_values.get(address)
        return parameter.fix_rows(self._draw_values(address, parameter)) if fitted is None else fitted

    def check_values(self, address: str, parameter: Parameter) -> None:
        """Raise an error for an initialiser that cannot draw a parameter's values; it reads no rows of the data."""
        self._draw_values(address, parameter)

    @cached_property
    def _fitted_values(self) -> dict[str, np.ndarray]:
        """Return the values of the parameters whose initialisers read rows of the data, fitted one after another."""
        chosen = {a: self.initialiser(a, p) for a, p in self.model.shapes.parameters.items() if a not in self.kept}
        resolve = partial(self.model.resolve, "initialiser")
        initialisers = {a: resolve(x) for a, x in chosen.items() if not isinstance(x, int | float)}
        wanted = {a: x for a, x in initialisers.items() if getattr(x, "reads_rows", 0)}
        if not wanted:
            return {}
        declared = self.parameters_and_state
        arrays = {a: p.fix_rows(self._draw_values(a, p)) for a, p in declared.items()}
        for address, initialiser in wanted.items():
            arrays[address] = self._fit(address, initialiser, arrays)
        return {address: arrays[address] for address in wanted}

    def _fit(self, address: str, initialiser: Initialiser, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the values of one parameter, fitted to data, in its precision; ``arrays`` are all present ones."""
        parameter = self.model.shapes.parameters[address]
        where = f"initialisers.{self.rule(address) or address}"
        if self.rows is None:
            raise SigmaConfigError(f"{where}: asks for rows of the training data, and there are none here. Train it.")
        if address.partition(".")[0] in {placed.name for placed in self.model.network.costs}:
            raise SigmaConfigError(
                f"{where}: cannot fit {address}, as its layer is a cost, which has no output. Match other parameters."
            )
        run = LayerRun.make(self.model, address, arrays, self.rows(initialiser.reads_rows))
        with introduce_errors(where, initialiser):
            values = np.asarray(initialiser.fit(address, parameter, arrays[address].astype(np.float64), run))
            fits = values.shape == tuple(parameter.shape) and values.dtype.kind in "fiu" and np.isfinite(values).all()
            expect(bool(fits), f"fit() must return finite numbers of shape {parameter.shape} for {address}", values)
        return parameter.fix_rows(values.astype(arrays[address].dtype))

    def _stream(self, address: str) -> int:
        return self.model.shapes.streams.number(f"initial.{address}")

    def _draw_values(self, address: str, parameter: Parameter) -> np.ndarray:
        chosen, dtype = self.initialiser(address, parameter), parameter.dtype or self.model.precision
        if address in self.kept:
            return self.kept[address].astype(dtype)
        if isinstance(chosen, int | float):
            return np.full(parameter.shape, chosen, dtype)
        initialiser: Initialiser = self.model.resolve("initialiser", chosen)
        draws = Draw(self.seed, self._stream(address))
        with introduce_errors(f"initialisers.{self.rule(address) or address}", initialiser):
            values = np.asarray(initialiser.values(address, parameter, draws))
            fits = values.shape == tuple(parameter.shape) and values.dtype.kind in "fiu"
            expect(fits, f"values() must return numbers of shape {parameter.shape} for {address}", values)
        return values.astype(dtype)


@frozen(eq=False)
class LayerRun:
    """The output of the layer that owns a parameter, as a function of the values of this parameter: in NumPy."""

    function: Callable[..., Sequence[Any]]
    arrays: Mapping[str, np.ndarray]  # by name, in the order of the arguments
    address: str

    @classmethod
    def make(
        cls, model: Model, address: str, arrays: Mapping[str, np.ndarray], rows: Mapping[str, np.ndarray]
    ) -> LayerRun:
        """Trace the network on rows, in evaluation and in float64, as far as the layer."""
        wide = {a: x.astype(np.float64) if x.dtype.kind == "f" else x for a, x in {**arrays, **rows}.items()}
        nodes = {a: symbol(x.shape, x.dtype.name, a) for a, x in wide.items()}
        live = {a: constant(setting.value, "float64") for a, setting in model.shapes.live.items()}
        given = {**{a: nodes[a] for a in arrays}, **live}
        trace = Trace(model.resolve, False, None, "float64", given, frozen=model.frozen)
        model.network.forward(trace, {name: nodes[name] for name in model.network.sections(costs=False)})
        graph = Graph(tuple(nodes.values()), (trace.values[address.rpartition(".")[0]],))
        return cls(interpret(graph, numpy_namespace()), wide, address)

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Return the output for these values: in float64, a row for each row of the data."""
        return np.array(self.function(*{**self.arrays, self.address: np.asarray(values, np.float64)}.values())[0])


def _check_same_names(
    where: str, what: str, then: Mapping[str, Sequence[Any]], now: Mapping[str, Sequence[Any]]
) -> None:
    """Raise SigmaDataError unless sections that have names in both have the same ones, in the same order.

    Names of the section "" are those of any section.
    """
    for section, names in now.items():
        there, here = [*map(str, then.get(section) or then.get("", ()))], [*map(str, names)]
        if there and here and there != here:
            raise SigmaDataError(
                f"{where}: the values were trained on the {what} {', '.join(there)} of section {section!r}; the data "
                f"have {', '.join(here)}. Give those, in their order, or match fewer parameters."
            )


def _readers(network: Network, held: Mapping[str, Any]) -> set[str]:
    """Return the first layers with parameters or state behind the inputs, whose entries belong to columns."""
    owners, reached = {address.partition(".")[0] for address in held}, {placed.name for placed in network.inputs}
    readers = set[str]()
    for placed in network.layers:
        if reached.intersection(placed.sources):
            (readers if placed.name in owners else reached).add(placed.name)
    return readers
