"""Class labels, which are words, numbers or booleans, and their encoding as class indices."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from attrs import evolve, frozen

from sigma_kernel import Label, SigmaDataError

Row = Callable[[int], str]  # the name of a row in an error message
T = TypeVar("T", bound=Label)
SHOWN = 8  # classes named in an error
EXACT = 2**53  # integers beyond it are not apart as floats


@frozen(eq=False, slots=False)
class Codes:
    """Words, integers or booleans, one per row, and their classes, computed on first use.

    The classes are in this ``order`` if there is one: that of an ordered categorical type.
    """

    values: np.ndarray
    where: str
    row: Row = "row {}".format
    order: Sequence[Any] = ()

    @cached_property
    def indices_and_names(self) -> tuple[np.ndarray, tuple[Label, ...]]:
        """Return the class of each row as an index, and the labels of the classes."""
        if self.values.dtype.kind == "b":
            return self.values.astype(np.int32), (False, True)
        return indices(self.values, self.where, self.row, self.order)


@frozen(eq=False)
class Labels:
    """Targets that become class indices for a classification cost, and numbers for any other.

    Without ``numbers`` they can only be classes.  Once the classes are settled, ``names`` are their labels, of the
    type in the data, in the order of their ``indices``.
    """

    codes: Codes
    numbers: np.ndarray | None = None
    indices: np.ndarray | None = None
    names: tuple[Label, ...] = ()

    @classmethod
    def from_codes(cls, codes: Codes, numbers: bool = False) -> Labels:
        """Return labels that are settled as classes; with ``numbers``, their indices may also be used as numbers."""
        positions, names = codes.indices_and_names
        return cls(codes, positions if numbers else None, positions, names)

    @property
    def array(self) -> np.ndarray:
        """Return the class indices if they are settled, else the numbers."""
        array = self.numbers if self.indices is None else self.indices
        assert array is not None
        return array

    def encode(self, section: str, classes: int | None, names: Sequence[Label] = ()) -> Labels:
        """Return the labels with their classes settled, or as numbers if ``classes`` is None.

        ``classes`` is the number of classes, 0 if unknown; integers below it keep their values as indices.  ``names``
        are the classes of the training split.
        """
        if classes is None:
            if self.numbers is None:
                raise SigmaDataError(
                    f"data: section {section!r} holds words, such as {str(self.codes.values[0])!r}, where numbers are "
                    "expected. For targets, use a classification cost such as softmax_cross_entropy; for inputs, write "
                    "words as numbers, or add the preprocessor one_hot."
                )
            check_exact(self.codes.values, self.codes.where, self.codes.row, "Give such numbers as floats.")
            return evolve(self, indices=None, names=())
        positions, own = self.codes.indices_and_names
        order = tuple(names) or _fitting(section, own, classes)
        places = {name: i for i, name in enumerate(order)}
        if unknown := next((name for name in own if name not in places), None):
            raise SigmaDataError(
                f"data: section {section!r} holds the class {unknown!r}, which the training split does not have: "
                f"{list_first(order)}. Correct it, or cut both from one data set."
            )
        return evolve(self, indices=np.array([places[name] for name in own], np.int32)[positions], names=order)


def as_words(array: np.ndarray) -> np.ndarray | None:
    """Return an array of strings, or of objects that are all strings, as strings; None for anything else."""
    if array.dtype.kind in "TU":
        return array
    if array.dtype.kind != "O" or not all(isinstance(word, str) for word in array.flat):
        return None
    return array.astype(np.dtypes.StringDType())


def _fitting(section: str, own: tuple[Label, ...], classes: int) -> tuple[Label, ...]:
    """Return the labels of ``classes`` classes, of which ``own`` occur."""
    kind: type[Label] = type(own[0])
    numbered = () if kind is bool else tuple(kind(i) for i in range(classes))
    if {*own} <= {*numbered}:
        return numbered
    if classes not in (0, len(own)):
        raise SigmaDataError(
            f"data: section {section!r} holds {len(own)} classes: {list_first(own)}; the network has {classes}. "
            f"Make both equal: Output({len(own)}) with SoftmaxCrossEntropy() takes these."
        )
    return own


def list_first(names: Sequence[Label]) -> str:
    """Return the first names or labels, for an error message."""
    return ", ".join(map(repr, names[:SHOWN])) + (", ..." if len(names) > SHOWN else "")


def indices(
    values: np.ndarray, where: str, row: Row = "row {}".format, order: Sequence[Any] = ()
) -> tuple[np.ndarray, tuple[Label, ...]]:
    """Return the class of each row as an int32 index, and the labels of the classes in the order of the indices.

    ``values`` are names, in alphabetical order, or whole numbers, in numerical order, unless another ``order`` is
    given; the labels have their type.  ``row`` formats the number of a row for error messages.
    """
    if values.ndim != 1:
        raise SigmaDataError(f"{where}: classes have shape {values.shape[1:]} per row. There must be one value.")
    names = _words(values, where, row) if values.dtype.kind in "TUS" else _to_whole_labels(values, where, row)
    there = {*names}
    classes = tuple(label for label in order if label in there) if there <= {*order} else in_order(names)
    places = {name: i for i, name in enumerate(classes)}
    return np.array([places[name] for name in names], np.int32), classes


def _words(values: np.ndarray, where: str, row: Row) -> list[Label]:
    check_blanks(values, where, row)
    names = [name.strip() for name in values.tolist()]
    if "" in names:
        raise SigmaDataError(f"{where}: {row(names.index(''))} has no class. Fill it in, or drop the row.")
    return names


def check_blanks(words: np.ndarray, where: str, row: Row = "row {}".format) -> None:
    """Raise SigmaDataError for two words that differ only by blanks around them, which all words may have alike."""
    first: dict[str, int] = {}
    for i, word in enumerate(words.tolist()):
        first.setdefault(word, i)
    spellings: dict[str, str] = {}
    for word in first:
        if word.strip() and (other := spellings.setdefault(word.strip(), word)) != word:
            raise SigmaDataError(
                f"{where}: {other!r} in {row(first[other])} and {word!r} in {row(first[word])} differ only by blanks. "
                "Make them alike, in pandas by column.str.strip()."
            )


def check_exact(values: np.ndarray, where: str, row: Row, remedy: str) -> None:
    """Raise SigmaDataError for the first integer that float64 cannot tell from its neighbours."""
    if values.dtype.kind in "iu" and (merged := np.flatnonzero((values > EXACT) | (values < -EXACT))).size:
        number = values[merged[0]]
        raise SigmaDataError(
            f"{where}: {row(merged[0])} holds {number}, and floats cannot tell integers beyond 2**53 apart. {remedy}"
        )


def in_order(names: Iterable[T]) -> tuple[T, ...]:
    """Return the distinct labels: integers in numerical order, then others in alphabetical order."""
    return tuple(sorted(set(names), key=_rank))


def _to_whole_labels(values: np.ndarray, where: str, row: Row) -> list[Label]:
    wrong = np.flatnonzero(~np.isfinite(values) | (values != np.rint(values)))
    if len(wrong):
        raise SigmaDataError(
            f"{where}: {row(wrong[0])} holds {values[wrong[0]]}, which is not a class. Use integers or names."
        )
    if values.dtype.kind == "f":
        _check_distinct(values, where, row)
    return values.tolist() if values.dtype.kind != "f" else [value + 0.0 for value in values.tolist()]  # no -0.0


def _check_distinct(values: np.ndarray, where: str, row: Row) -> None:
    """Raise SigmaDataError for integers that this float type cannot distinguish from their neighbours."""
    limit = 2.0 ** (np.finfo(values.dtype).nmant + 1)
    merged = np.flatnonzero(np.abs(values) >= limit)
    if len(merged):
        raise SigmaDataError(
            f"{where}: {row(merged[0])} holds {values[merged[0]]:.0f}, and {values.dtype} cannot distinguish "
            f"integers beyond {limit:.0f}: classes would merge. Read them as 64-bit integers, or as words."
        )


def _rank(label: Label) -> tuple[bool, float, str]:
    if not isinstance(label, str):
        return (False, label, "")
    number = re.fullmatch("-?[0-9]{1,4000}", label) is not None  # int() takes a few digits more
    return (not number, int(label) if number else 0, label)
