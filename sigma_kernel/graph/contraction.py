"""Sums of products in Einstein's notation, as transposes, sums and matrix products.

A term is a list of labels, one for each axis: letters, and numbers for the axes of an ellipsis, from the right.
"""

from __future__ import annotations

import math
import string
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import ops

Label = str | int
LETTERS = string.ascii_letters


@frozen(eq=False)
class Factor:
    """An array with a label for each axis, none of them twice."""

    array: Any
    labels: tuple[Label, ...]

    def arrange(self, labels: Sequence[Label]) -> Any:
        """Return the array with its axes in another order."""
        order = [self.labels.index(label) for label in labels]
        return self.array if order == sorted(order) else ops.permute(self.array, axes=order)

    def sum_to(self, labels: Collection[Label]) -> Factor:
        """Return the factor without the axes that are not among the labels."""
        gone = tuple(i for i, label in enumerate(self.labels) if label not in labels)
        left = tuple(label for label in self.labels if label in labels)
        return Factor(_drop_axes(ops.sum(self.array, axis=gone), gone), left) if gone else self

    def side(self, label: Label) -> int:
        """Return the side of the axis with a label."""
        side: int = self.array.shape[self.labels.index(label)]
        return side


def contract(subscripts: str, *operands: Any) -> Any:
    """Return the sum of products that the subscripts describe; see :func:`sigma_kernel.functions.einsum`."""
    terms, result = _parse(subscripts, operands)
    sides = _find_sides(subscripts, terms, operands)
    _require(all(label in sides for label in result), subscripts, "the result has a label that no operand has")
    _require(len({*result}) == len(result), subscripts, "a label of the result occurs twice")
    factors = [_factor(x, term, sides) for x, term in zip(operands, terms, strict=True)]
    for group in _find_path(factors, result):
        chosen = [factors[i] for i in group]
        factors = [x for i, x in enumerate(factors) if i not in group]
        later = {*result, *(label for x in factors for label in x.labels)}
        while len(chosen) > 1:
            rest = later.union(*(x.labels for x in chosen[2:]))
            chosen = [_multiply(chosen[0].sum_to(rest | {*chosen[1].labels}), chosen[1], rest), *chosen[2:]]
        factors.append(chosen[0])
    return _spread(factors[0].sum_to(result), result, sides)


def _require(right: bool, subscripts: str, otherwise: str) -> None:
    if not right:
        raise SigmaGraphError(f"einsum({subscripts!r}): {otherwise}.")


# -- subscripts --------------------------------------------------------------------------------------------------------
def _parse(subscripts: str, operands: Sequence[Any]) -> tuple[list[list[Label]], list[Label]]:
    """Return the labels of the operands and of the result, which has those that occur once if it is not given."""
    _require(isinstance(subscripts, str), subscripts, "the subscripts are a text, such as 'ij,jk->ik'")
    given, arrow, result = subscripts.replace(" ", "").partition("->")
    texts = given.split(",")
    _require(len(texts) == len(operands), subscripts, f"it has {len(texts)} terms for {len(operands)} operands")
    for text in (*texts, result):
        odd = [x for x in text.replace("...", "", 1) if x not in LETTERS]
        _require(not odd, subscripts, f"{''.join(odd)!r} is neither a letter, nor one ellipsis in a term")
    terms = [_label_axes(subscripts, text, len(x.shape)) for text, x in zip(texts, operands, strict=True)]
    spread = sorted({label for term in terms for label in term if isinstance(label, int)})
    if arrow:
        before, dots, after = result.partition("...")
        return terms, [*before, *(spread if dots else []), *after]
    counts = Counter("".join(texts).replace(".", ""))
    return terms, [*spread, *sorted(letter for letter, count in counts.items() if count == 1)]


def _label_axes(subscripts: str, text: str, rank: int) -> list[Label]:
    before, dots, after = text.partition("...")
    more = rank - len(before) - len(after)
    fits = more >= 0 if dots else more == 0
    _require(fits, subscripts, f"the term {text!r} does not fit an operand with {rank} axes")
    return [*before, *range(-more, 0), *after]


def _find_sides(subscripts: str, terms: Sequence[Sequence[Label]], operands: Sequence[Any]) -> dict[Label, int]:
    """Return the side of each label; those of 1 broadcast."""
    sides: dict[Label, int] = {}
    for term, x in zip(terms, operands, strict=True):
        for label, side in zip(term, x.shape, strict=True):
            before = sides.get(label, 1)
            what = "an axis of the ellipsis" if isinstance(label, int) else repr(label)
            _require(1 in (before, side) or before == side, subscripts, f"{what} has the sides {before} and {side}")
            sides[label] = before if side == 1 else side
    return sides


# -- factors -----------------------------------------------------------------------------------------------------------
def _factor(x: Any, term: Sequence[Label], sides: dict[Label, int]) -> Factor:
    """Return an operand as a factor: without sides of 1 that broadcast, and with the diagonals of equal labels."""
    gone = tuple(i for i, label in enumerate(term) if x.shape[i] == 1 != sides[label])
    labels, x = [label for i, label in enumerate(term) if i not in gone], _drop_axes(x, gone)
    while len({*labels}) < len(labels):
        label = next(label for label in labels if labels.count(label) > 1)
        first, second = [i for i, other in enumerate(labels) if other == label][:2]
        rest = [i for i in range(len(labels)) if i not in (first, second)]
        x = _diagonal(ops.permute(x, axes=[*rest, first, second]))
        labels = [*(labels[i] for i in rest), label]
    return Factor(x, tuple(labels))


def _drop_axes(x: Any, axes: Collection[int]) -> Any:
    """Return an array without axes of side 1."""
    return ops.reshape(x, shape=tuple(s for i, s in enumerate(x.shape) if i not in axes)) if axes else x


def _diagonal(x: Any) -> Any:
    """Return the diagonals of the last two axes."""
    *lead, side, _ = x.shape
    return ops.narrow(ops.reshape(x, shape=(*lead, side * side)), len(lead), 0, side * side, side + 1)


def _find_path(factors: Sequence[Factor], result: Sequence[Label]) -> list[tuple[int, ...]]:
    """Return which factors to multiply, one group after another: the others move up, and the product is the last."""
    if len(factors) < 3:
        return [tuple(range(len(factors)))]
    labels = {label: LETTERS[i] for i, label in enumerate(dict.fromkeys(x for each in factors for x in each.labels))}
    texts = ["".join(labels[label] for label in x.labels) for x in factors]
    given = [np.broadcast_to(np.float32(0.0), x.array.shape) for x in factors]
    text = f"{','.join(texts)}->{''.join(labels[label] for label in result if label in labels)}"
    return [tuple(group) for group in np.einsum_path(text, *given, optimize="greedy")[0][1:]]


def _multiply(x: Factor, y: Factor, later: Collection[Label]) -> Factor:
    """Return a product, summed over the labels that nothing needs later."""
    y = y.sum_to({*later, *x.labels})
    both = [label for label in x.labels if label in y.labels]
    batch, inner = [i for i in both if i in later], [i for i in both if i not in later]
    rows, columns = ([i for i in z.labels if i not in both] for z in (x, y))
    left = _reshape(x.arrange([*batch, *rows, *inner]), batch, rows, inner, x)
    right = _reshape(y.arrange([*batch, *inner, *columns]), batch, inner, columns, y)
    product = ops.matmul(left, right) if inner else ops.mul(left, right)
    sides = [(x if label in x.labels else y).side(label) for label in (*batch, *rows, *columns)]
    return Factor(ops.reshape(product, shape=tuple(sides)), (*batch, *rows, *columns))


def _reshape(x: Any, batch: Sequence[Label], first: Sequence[Label], second: Sequence[Label], of: Factor) -> Any:
    """Return an array as matrices, one for each entry of the batch."""
    lead = tuple(map(of.side, batch))
    return ops.reshape(x, shape=(*lead, math.prod(map(of.side, first)), math.prod(map(of.side, second))))


def _spread(x: Factor, result: Iterable[Label], sides: dict[Label, int]) -> Any:
    """Return a factor with the axes of the result; those that all operands broadcast have side 1."""
    own = [label for label in result if label in x.labels]
    shape = tuple(x.side(label) if label in own else sides[label] for label in result)
    return ops.reshape(x.arrange(own), shape=shape)
