"""The base of recurrent layers: walks over time in one direction or both, and sequences of different lengths."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Literal

from attrs import define, field
from attrs.validators import optional

from sigma_kernel import functions as f
from sigma_kernel.contracts import Architecture, Context, Layer, Outputs, Parameter
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node, Spec
from sigma_kernel.settings import in_, instance_of, must
from sigma_layers.settings import ACTIVATION, activation, count, flag, is_count

Function = Callable[[Node], Node]
Cell = Callable[..., tuple[Sequence[Node], Sequence[Node]]]  # of one step: new state, and values to keep
DIRECTIONS = {"forward": ("",), "reverse": ("",), "bidirectional": ("", "reverse.")}  # with the heads of parameters


@define(eq=False)
class Recurrent(Layer):
    """The base of recurrent layers: a cell computes one step of a sequence from its previous state.

    The products of the inputs of all steps, ``x @ weights + biases``, are computed at once, before the loop.

    Args:
        units: Number of outputs of each step.
        activation: Activation function of new values: its name, or a function of a node.
        sequence: Whether the outputs of all steps are returned, instead of that of the last one.
        direction: Order of the steps: ``"forward"``, ``"reverse"`` for the last one first, or ``"bidirectional"`` for
            both, with separate parameters and concatenated outputs.
        lengths: Layer whose value is the number of steps of each sequence, if they differ: the steps after it are
            padding. A number above the number of steps counts as all, one below 0 as none. A value for each step is a
            mask, which is 0 at padding.
        carried: Rows of a batch whose last state is the first one of the same row in the next batch of the epoch, in
            training; 0 for none.  No gradient flows back to the batch before: truncated back-propagation through time.
            It needs an iterator that keeps the order of the data, ``"sequential"``.
    """

    units: int = field(validator=count)
    activation: str | Function = field(default="tanh", validator=activation, metadata=ACTIVATION)
    sequence: bool = field(default=False, validator=flag, kw_only=True)
    direction: Literal["forward", "reverse", "bidirectional"] = field(
        default="forward", validator=in_(tuple(DIRECTIONS)), kw_only=True
    )
    lengths: Architecture | None = field(
        default=None, validator=optional(instance_of(Architecture, "a layer")), kw_only=True
    )
    carried: int = field(
        default=0,
        validator=must(lambda x: x == 0 or is_count(x), "a whole number of at least 0", SigmaNetworkError),
        kw_only=True,
    )

    gates: ClassVar[int] = 1  # blocks of units that a product gives
    states: ClassVar[tuple[str, ...]] = ("hidden",)  # the state passed to the next step; the first is its output

    @property
    def branches(self) -> tuple[Architecture, ...]:
        """Return the layer of lengths, if there is one: it is the second input."""
        return () if self.lengths is None else (self.lengths,)

    def parameters(self, x: Spec, lengths: Spec | None = None) -> dict[str, Parameter]:
        """Return the parameters of each direction; raises SigmaNetworkError unless a sample is a sequence."""
        self._check(x, lengths)
        heads = DIRECTIONS[self.direction]
        return {
            head + name: parameter for head in heads for name, parameter in self.cell_parameters(x.shape[1]).items()
        }

    def cell_parameters(self, features: int) -> dict[str, Parameter]:
        """Return the parameters of one direction."""
        wide = self.gates * self.units
        return {
            "weights": Parameter((features, wide), "glorot_uniform"),
            "recurrent": Parameter((self.units, wide), "orthogonal"),
            "biases": Parameter((wide,)),
        }

    def state(self, x: Spec, lengths: Spec | None = None) -> dict[str, Parameter]:
        """Return the state carried to the next batch, and the shard's part of the batch."""
        if self.carried and self.direction != "forward":
            raise SigmaNetworkError(
                f"{type(self).__name__}: state is carried forward only (got direction {self.direction!r}). "
                "Leave out carried, or use the forward direction."
            )
        widths = {**dict.fromkeys(self.states, self.units), "part": 1} if self.carried else {}
        return {name: Parameter((self.carried, width), each_epoch=True, per_row=True) for name, width in widths.items()}

    @abstractmethod
    def cell(self, context: Context, p: Mapping[str, Node]) -> Cell:
        """Return the function of one step: of ``x @ weights + biases`` and the state, it makes the new state.

        It also returns the values from which gradients are computed: kept, they are not computed again on the way back.
        """

    def forward(self, context: Context, x: Node, lengths: Node | None = None) -> Node | Outputs:
        """Return the outputs of all steps, 0 at padding, or those of the last one, and the state to be carried."""
        steps = f.swap_axes(x, 0, 1)
        mask = [] if lengths is None else [_mask(context, x, lengths)]
        steps = f.where(mask[0], steps, 0.0) if mask else steps  # padding may be anything, NaN included
        carries = self.carried > 0 and context.training and not context.declares
        first = self._read_carried(context, x.shape[0]) if carries else self._initial_state(context, x)
        ways = [self._walk(context, head, steps, mask, first) for head in DIRECTIONS[self.direction]]
        result = f.concat(*(outputs if self.sequence else state[0] for state, outputs in ways))
        if self.sequence:
            result = f.swap_axes(f.where(mask[0], result, 0.0) if mask else result, 0, 1)
        kept = self._carry_state(context, ways[0][0]) if carries else {}
        return Outputs(result, kept, memory=dict(zip(self.states, ways[0][0], strict=True)))

    def _initial_state(self, context: Context, x: Node) -> list[Node]:
        """Return zeros, or the state after what came before in a sequence that is continued."""
        shape = x.shape[0], self.units
        if context.continuation is None:
            return [f.zeros(shape, x.dtype)] * len(self.states)
        if self.direction != "forward":
            raise SigmaNetworkError(f"{type(self).__name__}: continues a sequence only in the forward direction.")
        return [context.recall(name, shape) for name in self.states]

    # -- from batch to batch -------------------------------------------------------------------------------------------
    def _read_carried(self, context: Context, batch: int) -> list[Node]:
        """Return the state after the batch before, of the rows of this one."""
        if batch > self.carried:
            raise SigmaNetworkError(
                f"carried = {self.carried} is the number of rows of a batch, and this one has {batch}. "
                f"Write carried = {batch}, or set the batch size."
            )
        kept, part = [context.state[name] for name in self.states], context.state["part"]
        kept = [carry / f.where(part > 0.0, part, 1.0) for carry in kept]
        return kept if self._has_all_rows(context, batch) else [f.take(carry, _rows(context, batch)) for carry in kept]

    def _carry_state(self, context: Context, last: Sequence[Node]) -> dict[str, Node]:
        """Return the state to be carried; in a shard of a batch, rows of other shards are 0.

        The state of a whole batch is the mean over its shards, weighted by their rows: a part of what each row had.
        """
        batch = last[0].shape[0]
        new = dict(zip((*self.states, "part"), (*last, f.ones((batch, 1), last[0].dtype)), strict=True))
        if self._has_all_rows(context, batch):
            return new
        rows = _rows(context, batch)
        return {name: f.scatter_add(f.zeros((self.carried, *x.shape[1:]), x.dtype), rows, x) for name, x in new.items()}

    def _has_all_rows(self, context: Context, batch: int) -> bool:
        """Return whether a batch has all rows that are carried, and is no shard."""
        return batch == self.carried and (context.key is None or context.key.row.op == "constant")

    # -- one direction -------------------------------------------------------------------------------------------------
    def _walk(
        self, context: Context, head: str, steps: Node, mask: Sequence[Node], first: Sequence[Node]
    ) -> tuple[tuple[Node, ...], Node]:
        """Return the last state and the outputs of all steps, in the direction whose parameters begin with a head."""
        p = {name.removeprefix(head): node for name, node in context.parameters.items() if name.startswith(head)}
        time, batch, features = steps.shape
        sums = f.reshape(steps, (time * batch, features)) @ p["weights"] + p["biases"]
        cell = self.cell(context, p)

        def step(*given: Node) -> tuple[Sequence[Node], Sequence[Node]]:
            before, (now, *real) = given[: len(self.states)], given[len(self.states) :]
            new, kept = cell(now, *before)
            new = [f.where(real[0], x, old) for x, old in zip(new, before, strict=True)] if real else new
            return new, [new[0], *kept]

        sequences = [f.reshape(sums, (time, batch, sums.shape[1])), *mask]
        reverse = bool(head) or self.direction == "reverse"
        state, (outputs, *_) = f.scan(step, first, sequences, reverse=reverse)
        return state, outputs

    def _check(self, x: Spec, lengths: Spec | None) -> None:
        """Raise SigmaNetworkError unless a sample is a sequence, with one length or a mask."""
        where = f"{type(self).__name__}({x.shape})"
        if len(x.shape) != 2:
            remedy = f"Reshape({x.shape[0]}, 1)" if len(x.shape) == 1 else "Reshape(time, features)"
            raise SigmaNetworkError(f"{where}: a sample must be a sequence, (time, features). Put {remedy} before it.")
        if lengths is not None and lengths.shape not in ((), (1,), (x.shape[0],)):
            raise SigmaNetworkError(
                f"{where}: lengths have shape {lengths.shape}; expected one number for each sequence, or a mask "
                f"({x.shape[0]},). Link an Input(section=...) with such values to it."
            )


def _mask(context: Context, x: Node, lengths: Node) -> Node:
    """Return bool ``(time, batch, 1)``: whether a step is no padding, given lengths or a mask."""
    batch, time = x.shape[:2]
    if lengths.shape == (batch, time):
        real = f.cast(lengths, "bool")
    else:
        begin = 0 if context.continuation is None else context.continuation.position
        real = f.reshape(f.cast(lengths, "int32"), (batch, 1)) > f.iota((1, time)) + begin
    return f.expand(f.swap_axes(real, 0, 1), -1)


def _rows(context: Context, batch: int) -> Node:
    """Return the places of the rows of a batch, or of a shard, in the whole batch."""
    rows = f.iota((batch,))
    return rows + f.cast(context.key.row, "int32") if context.key else rows


def gate(default: str = "sigmoid") -> str | Function:
    """Return the field of the activation function of gates."""
    attribute: str | Function = field(default=default, validator=activation, metadata=ACTIVATION, kw_only=True)
    return attribute
