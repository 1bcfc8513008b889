"""The memory of attention: keys, values and their masks, also of earlier pieces of a sequence."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node

Remembered = tuple[Node, Node, Node | None, dict[str, Node]]


@frozen(eq=False)
class Attended:
    """The sequence that attention attends to, and which of its entries count.

    ``lengths``, ``(batch,)``, ``present``, ``(batch, keys)`` and bool, and ``pairs``, ``(batch, time, keys)`` and bool,
    are None if all of them do.
    """

    sequence: Node
    lengths: Node | None
    present: Node | None
    pairs: Node | None
    causal: bool
    own: bool

    def extend_memory(self, context: Context, k: Node, v: Node) -> Remembered:
        """Return keys, values and their mask, joined with those of earlier pieces, and the updated cache."""
        there = context.continuation
        if there is None or not self.own:
            return k, v, self._mask(self.present, k.shape[-2]), {}
        if not self.causal:
            raise SigmaNetworkError("attention: continues a sequence only if it is causal, as others look ahead.")
        memory = {"keys": update_cache(context, "keys", k, 2), "values": update_cache(context, "values", v, 2)}
        if self.present is not None:
            memory["present"] = update_cache(context, "present", self.present, 1)
        rows = f.iota((k.shape[-2], 1), axis=0) + there.position
        seen = f.reshape(rows >= f.iota((there.length,)), (1, 1, k.shape[-2], there.length))
        mask = self._mask(memory.get("present"), there.length)
        return memory["keys"], memory["values"], seen if mask is None else f.logical_and(mask, seen), memory

    def _mask(self, present: Node | None, count: int) -> Node | None:
        """Return the mask ``(batch, 1, 1, keys)``, or ``(batch, 1, time, keys)``."""
        if self.lengths is not None:
            within = f.reshape(self.lengths, (-1, 1)) > f.iota((count,), dtype=self.lengths.dtype)
            present = within if present is None else f.logical_and(present, within)
        mask = None if present is None else f.reshape(present, (present.shape[0], 1, 1, count))
        if self.pairs is None:
            return mask
        pairs = f.expand(self.pairs, 1)
        return pairs if mask is None else f.logical_and(pairs, mask)


def keys_of(where: str, x: Node, others: Sequence[Node], causal: bool, length: int) -> Attended:
    """Sort the further inputs of attention by their shapes; raises SigmaNetworkError for those that do not fit.

    ``length`` is that of whole sequences.
    """
    sequence, lengths, present, pairs = x, None, None, None
    for other in others:
        if causal and pairs is None and other.shape[1:] == (x.shape[1], length):
            pairs = f.not_equal(other, 0)
        elif len(other.shape) == 3 and sequence is x:
            sequence = other
        elif lengths is None and (len(other.shape) == 1 or (other.shape[1:] == (1,) and x.shape[1] != 1)):
            lengths = f.reshape(other, other.shape[:1])
        elif len(other.shape) == 2 and present is None:
            present = other if other.dtype == "bool" else f.not_equal(other, 0)
        else:
            shapes = ", ".join(str(array.shape[1:]) for array in (x, *others))
            raise SigmaNetworkError(
                f"{where}({shapes}): further inputs are a sequence (keys, features), a mask (keys,), or a number of "
                "keys (), each at most once."
            )
    if causal and sequence is not x:
        raise SigmaNetworkError(f"{where}: is causal only within a sequence. Leave causal out to attend to another.")
    if present is not None and present.shape[1] != sequence.shape[1]:
        raise SigmaNetworkError(
            f"{where}: a mask for {present.shape[1]} keys does not fit {sequence.shape[1]}. Give one entry for each."
        )
    return Attended(sequence, lengths, present, pairs, causal, sequence is x)


def update_cache(context: Context, name: str, new: Node, axis: int) -> Node:
    """Return the cache with new entries written at their positions."""
    there = context.continuation
    assert there is not None
    count = new.shape[axis]
    old = context.recall(name, (*new.shape[:axis], there.length, *new.shape[axis + 1 :]), new.dtype)
    places = f.iota((there.length,)) - there.position
    inside = f.logical_and(places >= 0, f.less(places, count))
    moved = f.take(new, f.clip(places, 0, count - 1), axis=axis)
    return f.where(f.reshape(inside, (there.length, *(1,) * (len(new.shape) - axis - 1))), moved, old)
