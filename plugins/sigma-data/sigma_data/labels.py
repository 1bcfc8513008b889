"""Classes by name or number, as the indices that a cost wants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from attrs import evolve, frozen

from sigma_kernel import SigmaDataError

Row = Callable[[int], str]  # what a row is called in an error
SHOWN = 8  # classes named in an error


@frozen(eq=False, slots=False)
class Codes:
    """Words or whole numbers, one a row, and the classes that they come to, which are looked for when first wanted."""

    values: np.ndarray
    where: str
    row: Row

    @cached_property
    def found(self) -> tuple[np.ndarray, tuple[str, ...]]:
        """Return the class of each row as an index, and the names of the classes."""
        return indices(self.values, self.where, self.row)


@frozen(eq=False)
class Labels:
    """Codes that are classes to whoever takes classes.

    To all others they are ``numbers``; without these, they are no numbers at all.  ``names`` are those of the classes
    once these are settled, in the order of their ``indices``.
    """

    codes: Codes
    numbers: np.ndarray | None = None
    indices: np.ndarray | None = None
    names: tuple[str, ...] = ()

    @classmethod
    def settled(cls, codes: Codes, numbers: bool = False) -> Labels:
        """Return labels that are classes from the start; their indices may stand for ``numbers``, too."""
        found, names = codes.found
        return cls(codes, found if numbers else None, found, names)

    @property
    def shown(self) -> np.ndarray:
        """Return the classes' indices, where these are settled, else the numbers."""
        found = self.numbers if self.indices is None else self.indices
        assert found is not None
        return found

    def encoded(self, section: str, classes: int | None, names: Sequence[str] = ()) -> Labels:
        """Return the labels with their classes settled, or as numbers where ``classes`` is None.

        ``classes`` are so many, if not 0; whole numbers from 0 to one less than that keep their values as indices.
        ``names`` are the classes of the training split.
        """
        if classes is None:
            if self.numbers is None:
                raise SigmaDataError(
                    f"data: section {section!r} holds words, such as {str(self.codes.values[0])!r}; what reads it "
                    "takes numbers. Targets need a cost of classes, such as softmax_cross_entropy; for inputs, write "
                    "words as numbers, or add the preprocessor one_hot."
                )
            return evolve(self, indices=None, names=())
        found, own = self.codes.found
        order = tuple(names) or _fitting(section, own, classes)
        places = {name: i for i, name in enumerate(order)}
        if unknown := next((name for name in own if name not in places), None):
            raise SigmaDataError(
                f"data: section {section!r} holds the class {unknown!r}, which the training split does not have: "
                f"{listed(order)}. Correct it, or cut both from one data set."
            )
        return evolve(self, indices=np.array([places[name] for name in own], np.int32)[found], names=order)


def as_words(array: np.ndarray) -> np.ndarray | None:
    """Return an array of words as such, also of objects that are all words; None for anything else."""
    if array.dtype.kind in "TU":
        return array
    if array.dtype.kind != "O" or not all(isinstance(word, str) for word in array.flat):
        return None
    return array.astype(np.dtypes.StringDType())


def _fitting(section: str, own: tuple[str, ...], classes: int) -> tuple[str, ...]:
    """Return the names of so many classes, of which some occur."""
    numbered = tuple(map(str, range(classes)))
    if {*own} <= {*numbered}:
        return numbered
    if classes not in (0, len(own)):
        raise SigmaDataError(
            f"data: section {section!r} holds {len(own)} classes: {listed(own)}; the network tells {classes} apart. "
            f"Make both equal: Output({len(own)}) with SoftmaxCrossEntropy() takes these."
        )
    return own


def listed(names: Sequence[str]) -> str:
    """Return the first names, as an error has them."""
    return ", ".join(map(repr, names[:SHOWN])) + (", ..." if len(names) > SHOWN else "")


def indices(values: np.ndarray, where: str, row: Row = "row {}".format) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the class of each row as an int32 index, and the names of the classes in the order of the indices.

    ``values`` are names, or whole numbers; classes are in alphabetical, or in numerical order.  ``row`` says what a row
    is called in an error.
    """
    if values.ndim != 1:
        raise SigmaDataError(f"{where}: classes have shape {values.shape[1:]} a row. There must be one value.")
    words = values.dtype.kind in "TUS"
    names = [name.strip() for name in values.tolist()] if words else _whole(values, where, row)
    if "" in names:
        raise SigmaDataError(f"{where}: {row(names.index(''))} has no class. Fill it in, or drop the row.")
    order = {name: i for i, name in enumerate(sorted(set(names), key=_rank))}
    return np.array([order[name] for name in names], np.int32), tuple(order)


def _whole(values: np.ndarray, where: str, row: Row) -> list[str]:
    wrong = np.flatnonzero(~np.isfinite(values) | (values != np.rint(values)))
    if len(wrong):
        raise SigmaDataError(
            f"{where}: {row(wrong[0])} holds {values[wrong[0]]}, which is no class. Use whole numbers or names."
        )
    if values.dtype.kind == "f":
        _apart(values, where, row)
    return [str(int(value)) for value in values.tolist()]


def _apart(values: np.ndarray, where: str, row: Row) -> None:
    """Refuse whole numbers that floats of this type do not tell from their neighbours."""
    limit = 2.0 ** (np.finfo(values.dtype).nmant + 1)
    merged = np.flatnonzero(np.abs(values) >= limit)
    if len(merged):
        raise SigmaDataError(
            f"{where}: {row(merged[0])} holds {values[merged[0]]:.0f}, and {values.dtype} does not tell whole numbers "
            f"beyond {limit:.0f} apart: classes would merge. Read them as integers of 64 bits, or as words."
        )


def _rank(name: str) -> tuple[bool, int, str]:
    number = name.lstrip("-").isdecimal() and name.isascii()
    return (not number, int(name) if number else 0, name)
