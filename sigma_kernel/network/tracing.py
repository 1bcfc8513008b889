"""Tracing: run layers on nodes, and collect the parameters, layer state and live settings that they need.

A trace runs one layer after another. Values that are not given are represented by symbols.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import attrs
import numpy as np
from attrs import Factory, evolve, field, frozen

from sigma_kernel import functions as f
from sigma_kernel.errors import (
    SigmaAddressError,
    SigmaComponentError,
    SigmaConfigError,
    SigmaError,
    SigmaNetworkError,
    SigmaStateError,
    expect,
    introduce_errors,
    suggest_name,
)
from sigma_kernel.graph.node import Node, Spec, originating, symbol, topological_order
from sigma_kernel.graph.ops import Body, Looped
from sigma_kernel.graph.random import Key, Streams
from sigma_kernel.graph.regions import RecomputedRegion
from sigma_kernel.graph.reprs import brief
from sigma_kernel.network.architecture import Architecture, Chain, Placed, place
from sigma_kernel.registry.registry import Kind
from sigma_kernel.settings import is_finite, read_docs

Nodes = Mapping[str, Node]  # by name or address
Resolve = Callable[..., Any]  # a component by its kind or contract, its setting, and its place
WEIGHTS = "weights"  # section of sample weights that a cost reads if the data has it


# -- settings ----------------------------------------------------------------------------------------------------------
LOG = ":log"  # end of the name of a live value's logarithm


@frozen
class LiveSetting(Kind):
    """A setting that is an input of the step: its name, range and initial value."""

    name: str = ""
    value: float = 0.0

    @property
    def is_decay(self) -> bool:
        """Return whether it is from 0 to below 1, as the decay rate of an average is."""
        return self.below == 1.0 and min(x for x in (self.low, self.above, 1.0) if x is not None) == 0.0

    def check(self, address: str, value: Any, error: type[SigmaError] = SigmaAddressError) -> float:
        """Return the value as a float; raises an error unless it is a finite number in the range."""
        if not is_finite(value):
            raise error(f"{address}: must be a finite number (got {value!r}).")
        if not self.holds(value):
            raise error(f"{address}: must be {self} (got {float(value)!r}).")
        return float(value)


_in_use: WeakValueDictionary[str, Any] = WeakValueDictionary()  # by address


def fix(component: Any, address: str) -> None:
    """Refuse assignments to live settings of a component from now on: they would have no effect."""
    _in_use[f"{address} {id(component)}"] = component


def _check_assignment(component: Any, given: attrs.Attribute[Any], value: Any) -> Any:
    for key in [key for key, owner in _in_use.items() if owner is component]:
        raise SigmaStateError(
            f"{type(component).__name__}.{given.name}: is fixed, as a trainer was prepared with it (got {value!r}). "
            f"Set it by its address: environment.set({key.partition(' ')[0] + '.' + given.name!r}, {value!r})."
        )
    return value


def live(
    default: float, *, low: float | None = None, high: float | None = None,
    below: float | None = None, above: float | None = None, kw_only: bool = False,
) -> Any:  # fmt: skip
    """Return an attrs field for a number that can be changed during a run.

    It must satisfy ``low <= value <= high`` and ``above < value < below``; otherwise the component raises
    SigmaConfigError, and setting the value by its address raises SigmaAddressError. The component's docstring describes
    it, below ``Args:``.
    """
    setting = LiveSetting(low=low, high=high, below=below, above=above, value=default)

    def check(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        setting.check(f"{type(instance).__name__}.{attribute.name}", value, SigmaConfigError)

    own: dict[str, Any] = {"kw_only": True} if kw_only else {}  # False would override the class
    changed = attrs.setters.pipe(_check_assignment, attrs.setters.validate)
    return field(default=default, validator=check, on_setattr=changed, metadata={"live": setting}, **own)


def live_settings(component: Any) -> dict[str, LiveSetting]:
    """Return the live settings of an attrs object by name, with their current values."""
    cls: Any = type(component)
    attributes, docs = [f for f in attrs.fields(cls) if "live" in f.metadata], read_docs(cls)
    values = {f.name: {"value": float(getattr(component, f.name)), "doc": docs.get(f.name, "")} for f in attributes}
    return {f.name: evolve(f.metadata["live"], name=f.name, **values[f.name]) for f in attributes}


@frozen
class Parameter:
    """The declaration of a parameter or of layer state: its shape and its initial values.

    ``initialiser`` is a number (for all elements), the name of a component, a table ``{"type": ..., ...}`` or an
    Initialiser. The fans default to the sizes of the last two axes, or of the only one; ``dtype`` to the precision of
    the network.

    ``fixed_rows`` maps indices of rows along axis 0 of a parameter to their constant: ``{0: 0.0}``. No initialiser,
    optimiser, modifier or command changes them. Layer state with ``each_epoch`` begins every epoch with its initial
    value, which is a number. State ``per_row`` belongs to the rows of a batch, and continues in the rows of the next
    batch: it needs an iterator that keeps the order of the data.
    """

    shape: tuple[int, ...] = field(converter=tuple[int, ...])
    initialiser: Any = 0.0
    fan_in: int = Factory(lambda parameter: parameter.shape[-2:][0] if parameter.shape else 1, takes_self=True)
    fan_out: int = Factory(lambda parameter: parameter.shape[-1] if parameter.shape else 1, takes_self=True)
    dtype: str | None = None
    each_epoch: bool = field(default=False, kw_only=True)
    per_row: bool = field(default=False, kw_only=True)
    fixed_rows: Mapping[int, float] = field(factory=dict, kw_only=True)

    __repr__ = brief

    def fix_rows(self, values: np.ndarray) -> np.ndarray:
        """Return values of the parameter with its fixed rows."""
        values = np.array(values) if self.fixed_rows else values
        for row, number in self.fixed_rows.items():
            values[row] = number
        return values

    @fixed_rows.validator
    def _(self, _: Any, value: Mapping[int, float]) -> None:
        for row, number in value.items():
            if not (self.shape and isinstance(row, int) and 0 <= row < self.shape[0] and is_finite(number)):
                raise SigmaNetworkError(
                    "Parameter.fixed_rows: must hold finite numbers by index of a row "
                    f"of {self.shape} (got {row!r}: {number!r})."
                )

    @each_epoch.validator
    def _(self, _: Any, value: bool) -> None:
        if value and not is_finite(self.initialiser):
            raise SigmaNetworkError(
                f"Parameter.each_epoch: needs a number as the initial value (got {self.initialiser!r})."
            )


# -- inputs and outputs of layers --------------------------------------------------------------------------------------
@frozen
class Outputs:
    """The result of a layer that returns more than its value, by name.

    ``state`` is its new state, ``memory`` the values to recall for the next piece of a sequence; ``others`` are further
    outputs, ``(batch, ...)``, which the layer ``pick`` reads.
    """

    value: Node
    state: Nodes = field(factory=dict)
    others: Nodes = field(factory=dict)
    memory: Nodes = field(factory=dict)

    __repr__ = brief


@frozen(eq=False)
class Totals:
    """The result of a cost whose rows have unequal weights: the weighted sum over the rows, and the sum of the weights.

    Both are scalars. Totals of the shards of a batch add up to those of the batch, so the mean does not depend on the
    shards. Weights are non-negative, and no gradient flows through them.
    """

    total: Node
    weight: Node

    def mean(self, weight: Node | None = None) -> Node:
        """Return the total divided by the weight, or by that of a whole batch; 0 if all weights are 0."""
        over = f.stop(self.weight if weight is None else weight)
        return self.total / f.where(f.equal(over, 0.0), 1.0, over)


@frozen(eq=False)
class Continuation:
    """A piece of longer sequences, such as the next token, traced with what layers recall of the pieces before it.

    ``position``, int32, counts the entries before it, and ``length`` is that of whole sequences. Memory is by address:
    ``before`` are symbols, zero at the start, and ``after`` their next values.
    """

    position: Node
    length: int
    before: dict[str, Node] = field(factory=dict)
    after: dict[str, Node] = field(factory=dict)

    __repr__ = brief


@frozen(eq=False)
class Context:
    """The context of a layer's forward pass: its values by name, the mode, and a key for random numbers.

    ``live`` holds its live settings as scalars; ``precision`` is the dtype of the network's numbers. ``run_name``
    distinguishes the runs of a layer.
    """

    address: str
    run_name: str
    parameters: Nodes
    state: Nodes
    live: Nodes
    training: bool
    precision: str
    _key: Key | None
    _trace: Trace

    __repr__ = brief

    @property
    def key(self) -> Key | None:
        """Return the key for random numbers, None if nothing may be random; in a :meth:`scan`, that of the step."""
        return self._trace.at_step(self._key)

    def resolve(self, kind: str, chosen: Any) -> Any:
        """Return the component for a name or a table, such as an activation; objects are returned unchanged."""
        return self._trace.resolve(kind, chosen) if isinstance(chosen, str | Mapping) else chosen

    @property
    def declares(self) -> bool:
        """Return whether shapes are inferred, with any number of rows: the batch of a step is not known yet."""
        return self._trace.given is None

    @property
    def continuation(self) -> Continuation | None:
        """Return where in longer sequences its inputs begin; None for whole sequences."""
        return self._trace.continuation

    def recall(self, name: str, shape: Sequence[int], dtype: str | None = None) -> Node:
        """Return its ``memory`` of the previous piece, zeros ``(batch, ...)`` for the first."""
        assert self.continuation is not None, "only a continued sequence has a previous piece"
        address = f"{self.run_name}.{name}"
        return self.continuation.before.setdefault(address, symbol(shape, dtype or self.precision, address))

    def choose(self, x: Node, count: int) -> Node:
        """Return indices of one of ``count`` things; data that holds others is refused before it gets here."""
        source = x
        while source.op in ("cast", "reshape", "slice"):
            source = source.inputs[0]
        indices, section = self._trace.shapes.indices, str(source.attrs.get("name", ""))
        indices[section] = min(count, indices.get(section, count))
        return x

    def run(self, name: str, owned: Architecture, *inputs: Node) -> Node:
        """Run a layer or a chain that this layer owns; its addresses are ``<this layer>.<name>...``.

        Without a name, those of the layers in the chain follow at once.
        """
        return self._trace.run_owned(self.address, name, owned, inputs)

    def scan(
        self, body: Body, carry: Sequence[Node], sequences: Sequence[Node],
        reverse: bool = False, length: int | None = None,
    ) -> Looped:  # fmt: skip
        """Loop like :func:`sigma_kernel.functions.scan`, with a body that may run owned layers and draw numbers.

        ``body(*carry, *one entry of each sequence)`` returns the new carries and the outputs of a step. Parameters and
        live settings of the layers that it runs are constants of the loop; their state goes from step to step, and the
        last one is kept. Each step draws other random numbers.
        """
        return self._trace.scan(body, carry, sequences, reverse, length)


@frozen
class Shapes:
    """The requirements of a network by address, inferred by one trace."""

    parameters: dict[str, Parameter] = field(factory=dict)
    state: dict[str, Parameter] = field(factory=dict)
    live: dict[str, LiveSetting] = field(factory=dict)
    outputs: dict[str, Spec] = field(factory=dict)  # of one sample, by layer
    predictions: dict[str, Spec] = field(factory=dict)  # of one sample, by output
    indices: dict[str, int] = field(factory=dict)  # the number of things that the entries of a section choose from
    streams: Streams = field(factory=Streams)

    __repr__ = brief

    @property
    def judged_specs(self) -> dict[str, Spec]:
        """Return the specs of what targets are compared with, by layer: the predictions of outputs."""
        return {**self.outputs, **self.predictions}


# -- one trace ---------------------------------------------------------------------------------------------------------
@frozen(eq=False, repr=False)
class Trace:
    """Run layers on nodes and collect their requirements in ``shapes``; symbols stand for values not ``given``.

    A layer whose parameters are all ``frozen``, or the statistics that it keeps, computes with these statistics as in
    evaluation, and leaves them as they are.
    """

    resolve: Resolve
    training: bool
    key: Key | None
    precision: str
    given: Nodes | None = None
    continuation: Continuation | None = None
    frozen: frozenset[str] = frozenset()
    shapes: Shapes = field(factory=Shapes)
    values: dict[str, Node] = field(factory=dict)  # of all layers, with those that others own, and of further outputs
    state: dict[str, Node] = field(factory=dict)  # new state
    totals: dict[str, Totals] = field(factory=dict)  # of costs whose rows have unequal weights
    regions: list[RecomputedRegion] = field(factory=list)  # of layers that are computed again in the backward pass
    _symbols: dict[str, Node] = field(factory=dict)
    _shared: dict[str, str] = field(factory=dict)  # the address that each shared parameter stands for
    _runs: Counter[str] = field(factory=Counter)
    _loops: list[Node] = field(factory=list)  # the number of the step, of each loop whose body is traced

    def run(self, address: str, name: str, layer: Any, inputs: Sequence[Node], **named: Node) -> Node:
        """Return a layer's value; errors inside are raised with the layer's name."""
        with introduce_errors(f"layer {name}", layer), originating(address):
            try:
                context = self._context(address, layer, inputs)
                result = layer.forward(context, *inputs, **named)
                self.values[address] = self._value(context, result, inputs)
                if layer.recompute:
                    others = result.others.values() if isinstance(result, Outputs) else ()
                    self._note_region(
                        RecomputedRegion(address, (*inputs, *named.values()), (self.values[address], *others))
                    )
                return self.values[address]
            except SigmaComponentError:
                raise
            except SigmaError as error:
                raise SigmaNetworkError(f"{name}: {error}") from error

    def predict(self, address: str, cost: Any, output: Node) -> Node:
        """Return the prediction of a cost for an output, with the values at its address; its targets may be unknown.

        If so, and shapes are inferred, a cost that predicts itself declares its values here, given the output alone.
        """
        if self.given is None and address not in self.values and cost._predicts:
            with introduce_errors(f"layer {address}", cost):
                self._context(address, cost, [output])
        given, head = self._symbols if self.given is None else self.given, f"{address}."
        own = {name.removeprefix(head): node for name, node in given.items() if name.startswith(head)}
        own |= {name: given[lender] for name, lender in cost.share.items()}
        live = {name: own[name] for name in live_settings(cost) if name in own}
        with introduce_errors(f"layer {address}", cost):
            context = Context(address, address, own, own, live, False, self.precision, None, self)
            prediction: Node = cost.predict(context, output)
            expect(isinstance(prediction, Node), "its prediction must be a node", prediction)
        return prediction

    def _note_region(self, region: RecomputedRegion) -> None:
        """Record a run of a layer that is recomputed, in place of runs of layers that it owns."""
        own = region.origin
        self.regions[:] = [*(x for x in self.regions if x.origin == own or not region.holds(x.origin)), region]

    def run_owned(self, owner: str, name: str, owned: Architecture, inputs: Sequence[Node]) -> Node:
        """Return the value of a layer or a chain that another layer owns, for given inputs."""
        if name and not isinstance(owned, Chain) and not getattr(owned, "branches", ()):
            return self.run(f"{owner}.{name}", name, owned, inputs)
        prefix, value = f"{name}." if name else "", inputs[0]
        for placed in place([owned]):
            label = f"{prefix}{placed.name}"
            if placed.layer.role in ("input", "cost"):
                advice = "Link an input to the layer around it, as in 'mask -> blocks'; leave costs outside."
                raise SigmaNetworkError(f"{label}: a layer cannot own input or cost layers. {advice}")
            value = self.run(f"{owner}.{label}", label, placed.layer, self.read(placed, f"{owner}.{prefix}") or inputs)
        return value

    def read(self, placed: Placed, prefix: str = "") -> list[Node]:
        """Return a layer's inputs from its sources, which have run: their values, or another of their outputs."""
        inputs, wanted = [f"{prefix}{source}" for source in placed.sources], placed.layer.reads
        if wanted:
            addresses = [name for name in self.values if name.startswith(f"{inputs[0]}.")]
            if f"{inputs[0]}.{wanted}" not in addresses:
                names = [name.removeprefix(f"{inputs[0]}.") for name in addresses]
                raise SigmaNetworkError(
                    f"{placed.name}: {inputs[0]} has no output {wanted!r}.{suggest_name(wanted, names, 'It has')}"
                )
            inputs = [f"{inputs[0]}.{wanted}"]
        return [self.values[address] for address in inputs]

    # -- loops ---------------------------------------------------------------------------------------------------------
    def scan(
        self, body: Body, carry: Sequence[Node], sequences: Sequence[Node], reverse: bool, length: int | None
    ) -> Looped:
        """Loop; traced once more if layers in the body have state, which is then carried."""
        state, runs = dict(self.state), dict(self._runs)

        def loop(kept: Sequence[str]) -> Looped:
            first = [self._state_node(address, self.shapes.state[address]) for address in kept]
            numbers = self._numbers(sequences, length) if self.key else []
            step = partial(self._step, body, kept, len(carry))
            return f.scan(step, [*carry, *first], [*sequences, *numbers], (), reverse, length)

        ends, outputs = loop(())
        if changed := [address for address, node in self.state.items() if node is not state.get(address)]:
            for current, before in ((self.state, state), (self._runs, runs)):
                current.clear()
                current.update(before)  # type: ignore[arg-type]
            ends, outputs = loop(changed)
            self.state.update(zip(changed, ends[len(carry) :], strict=True))
        return ends[: len(carry)], outputs

    def _numbers(self, sequences: Sequence[Node], length: int | None) -> list[Node]:
        """Return the numbers of a loop's steps; in an inner loop they continue from one outer step to the next."""
        count = sequences[0].shape[0] if length is None and sequences else length
        if count is None:
            return []  # which f.scan refuses
        numbers = f.iota((count,), dtype="uint32")
        return [self._loops[-1] * count + numbers if self._loops else numbers]

    def _step(self, body: Body, kept: Sequence[str], carries: int, *operands: Node) -> Any:
        """Run the body of a loop; the state of layers is behind its own carries, the number of the step is last."""
        own, state, rest = operands[:carries], operands[carries:][: len(kept)], operands[carries + len(kept) :]
        self.state.update(zip(kept, state, strict=True))
        if self.key is None:
            result = body(*own, *rest)
        else:
            self._loops.append(rest[-1])
            result = body(*own, *rest[:-1])
            self._loops.pop()
        return ([*result[0], *(self.state[address] for address in kept)], result[1]) if kept else result

    def at_step(self, key: Key | None) -> Key | None:
        """Return the key of the step that is traced, if any."""
        return key.for_scan(self._loops[-1]) if key and self._loops else key

    def setting(self, address: str, setting: LiveSetting) -> Node:
        """Return a live setting as a scalar."""
        self.shapes.live[address] = setting
        return self._node(address, ())

    def _context(self, address: str, layer: Any, inputs: Sequence[Node]) -> Context:
        specs = [Spec(x.shape[1:], x.dtype) for x in inputs]
        parameters, state = (_declare(layer, what, specs) for what in ("parameters", "state"))
        for name in layer.share:
            if name not in parameters:
                raise SigmaNetworkError(f"share: there is no parameter {name!r}.{suggest_name(name, parameters)}")
        live = live_settings(layer)
        for name, times in Counter((*parameters, *state, *live)).items():
            if times > 1:
                raise SigmaNetworkError(f"{address}.{name} is the name of {times} parameters, states or settings.")
        own = {n: self._parameter(f"{address}.{n}", p, layer.share.get(n)) for n, p in parameters.items()}
        kept = {name: self._state_node(f"{address}.{name}", p) for name, p in state.items()}
        scalars = {name: self.setting(f"{address}.{name}", setting) for name, setting in live.items()}
        run = f"{address}({again})" if (again := self._runs[address]) else address
        self._runs[address] += 1
        key = self.key.for_layer(run) if self.key else None  # repeated runs draw different numbers
        training = self.training and not self._rests(address, parameters, state)
        return Context(address, run, own, kept, scalars, training, self.precision, key, self)

    def _rests(self, address: str, parameters: Mapping[str, Parameter], state: Mapping[str, Parameter]) -> bool:
        """Return whether a layer has statistics, and these or all of its parameters are frozen."""
        if not state or any(parameter.each_epoch for parameter in state.values()):
            return False
        groups = ({f"{address}.{name}" for name in group} for group in (parameters, state) if group)
        return any(group <= self.frozen for group in groups)

    def _parameter(self, address: str, parameter: Parameter, lender: str | None) -> Node:
        if lender is None:
            self.shapes.parameters.setdefault(address, parameter)
        else:
            self._shared[address] = lender
        node = self._node(lender or address, parameter.shape, parameter.dtype)
        if self.given is None and node.shape != parameter.shape:
            if other := lender or next((user for user, owner in self._shared.items() if owner == address), None):
                differ = f"{address} has shape {parameter.shape}, {other} has {node.shape}"
                raise SigmaNetworkError(f"share: {differ}. Share only parameters of equal shapes.")
            used = f"{address}: is used with shapes {node.shape} and {parameter.shape}"
            raise SigmaNetworkError(f"{used}. Use two names, or a chain that keeps the shape of its input.")
        return node

    def _state_node(self, address: str, parameter: Parameter) -> Node:
        self.shapes.state[address] = parameter
        left = self.state.get(address)  # by an earlier run, if its owner runs it twice
        return self._node(address, parameter.shape, parameter.dtype) if left is None else left

    def _node(self, address: str, shape: Sequence[int], dtype: str | None = None) -> Node:
        if self.given is None:
            return self._symbols.setdefault(address, symbol(shape, dtype or self.precision, address))
        if address not in self.given:
            raise SigmaNetworkError(f"no value for {address}. Network.declare returns the required ones.")
        return self.given[address]

    def _value(self, context: Context, result: Any, inputs: Sequence[Node]) -> Node:
        """Return the value of a layer's result; keep its other outputs, its new state, and the totals of a cost."""
        output, address = result if isinstance(result, Outputs) else Outputs(result), context.address
        value, state = output.value, output.state
        for name, node in (*output.others.items(), *output.memory.items()):
            expect(isinstance(node, Node), f"its output {name!r} must be a node", node)
        for name, node in output.others.items() if inputs else ():
            same = node.shape[:1] == inputs[0].shape[:1]
            expect(same, f"its output {name!r} must have a row for each row of its input, {inputs[0].shape}", node)
        self.values.update({f"{address}.{name}": node for name, node in output.others.items()})
        if self.continuation is not None:
            self.continuation.after.update({f"{context.run_name}.{name}": node for name, node in output.memory.items()})
        if isinstance(value, Totals):
            self.totals[address], value = value, value.mean()
        expect(isinstance(value, Node), "forward() must return a node, or Outputs(node, state)", value)
        for name, node in state.items():
            parameter = self.shapes.state.get(f"{address}.{name}")
            expect(parameter is not None, f"it returned state {name!r}, which it does not declare in state()", node)
            spec = parameter and Spec(parameter.shape, parameter.dtype or self.precision)
            expect(getattr(node, "spec", None) == spec, f"it must return state {name!r} as {spec}, as declared", node)
            self.state[f"{address}.{name}"] = node
        return value

    def check_loops(self, values: Nodes, inputs: Iterable[Node]) -> None:
        """Raise SigmaNetworkError if a value, by its layer, uses a node of the body of a loop, outside of it."""
        border = {*inputs, *self._symbols.values()}
        for address, node in {**values, **self.state}.items():
            if any(x.op == "input" and x not in border for x in topological_order([node], border=border)):
                raise SigmaNetworkError(
                    f"{address}: uses a node of the body of a scan outside of it. Return it from the body, among its "
                    "outputs; layers with state run in the body of context.scan."
                )
            border.add(node)

    def check_shares(self) -> None:
        """Raise SigmaNetworkError unless each shared parameter belongs to another layer."""
        own = self.shapes.parameters
        for address, lender in self._shared.items():
            if lender in self._shared:
                raise SigmaNetworkError(f"{address}: share: {lender} is itself shared. Use {self._shared[lender]!r}.")
            if lender not in own:
                raise SigmaNetworkError(
                    f"{address}: share: there is no parameter {lender!r}.{suggest_name(lender, own)}"
                )


def _declare(layer: Any, what: str, specs: Sequence[Spec]) -> Mapping[str, Parameter]:
    """Return the parameters or the state that a layer declares; raises SigmaComponentError if they are invalid."""
    parameters = getattr(layer, what)(*specs)
    right = isinstance(parameters, Mapping) and all(isinstance(x, Parameter) for x in parameters.values())
    expect(right, f"{what}() must return {{name: Parameter(shape, initialiser)}}", parameters)
    return parameters  # type: ignore[no-any-return]
