"""Split a data set into disjoint parts: at random, by blocks or stratified; and into folds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Literal, get_args

import numpy as np
from attrs import field, frozen

from sigma_data.shuffling import SPLIT, permute_rows
from sigma_data.stratifying import divide_labels
from sigma_data.subset import Subset
from sigma_kernel import Dataset, SigmaConfigError, SigmaDataError
from sigma_kernel.settings import ge

By = Literal["record", "block", "stratified"]
KINDS: tuple[By, ...] = get_args(By)
ROUNDING = 1e-9  # tolerance for the sum of shares such as 0.7, 0.2 and 0.1
FOLDED = "training", "validation"  # the parts whose rows are divided into folds


@frozen
class Folding:
    """One of several folds: ``validation`` is the part ``number`` of ``of`` equal parts, ``training`` all others.

    Args:
        number: Which part is for validation, from 0 on.
        of: How many parts there are, at least 2.
    """

    number: int = field(validator=ge(0))
    of: int = field(validator=ge(2))

    def __attrs_post_init__(self) -> None:
        """Raise SigmaConfigError for a part that there is not."""
        if self.number >= self.of:
            raise SigmaConfigError(f"fold: there is no fold {self.number} of {self.of}. They are 0 to {self.of - 1}.")

    @property
    def shares(self) -> dict[str, float]:
        """Return the share of each part, by its number as text."""
        return {str(number): 1 / self.of for number in range(self.of)}


def split(
    dataset: Dataset,
    shares: Mapping[str, float],
    by: By = "record",
    seed: int = 0,
    section: str = "targets",
    groups: Sequence[Hashable] | None = None,
    fold: Folding | None = None,
) -> dict[str, Subset]:
    """Return disjoint parts of a data set by name, each with its share of the rows to within one row.

    ``record`` draws rows at random; ``block`` takes consecutive rows in the order of the names (for time series);
    ``stratified`` gives every part its share of every class of ``section``, to within one row.  Where the shares
    allow it, every part has a row of each class of two rows or more; else the seed decides which has none.  Where
    ``section`` has several labels a row, 0 or 1 for each, every part has about its share of each label.  If shares
    sum to less than 1, rows are left out.  Raises SigmaConfigError for invalid shares, and for shares that leave a part
    empty.

    ``groups`` name the group of each row, such as the person who was measured.  The rows of a group stay together, and
    parts get their shares of the groups.  Groups are in the order of their first rows; ``stratified`` needs groups of
    one class each, and raises SigmaDataError for others.

    With a ``fold``, the rows of ``training`` and ``validation`` together are divided in the same way into equal parts,
    and validation is one of them: over all folds, it has each row once.  Other parts are the same in every fold.
    Raises SigmaConfigError if there are more folds than rows or groups.
    """
    check(shares)
    units = None if groups is None else _number_groups(groups, len(dataset))
    if fold is not None and shares.keys() <= {*FOLDED} and sum(shares.values()) >= 1 - ROUNDING:
        parts = {"training": np.arange(len(dataset))}
    else:
        parts = _divide(dataset, shares, by, seed, section, groups, units)
    if fold is not None:
        pool = np.sort(np.concatenate([parts[name] for name in FOLDED if name in parts]))
        inside = None if groups is None else [groups[row] for row in pool]
        pieces = _divide_folds(Subset(dataset, pool), fold, by, seed, section, inside)
        rest = np.sort(np.concatenate([piece for name, piece in pieces.items() if name != str(fold.number)]))
        folded = {"training": pool[rest], "validation": pool[pieces[str(fold.number)]]}
        parts = {name: folded[name] if name in folded else parts[name] for name in fold_names(shares)}
    return {name: Subset(dataset, part, groups) for name, part in parts.items()}


def fold_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the parts of a fold, those of a split and ``validation``."""
    return tuple(dict.fromkeys([*names, *FOLDED]))


def _divide_folds(
    pool: Dataset, fold: Folding, by: By, seed: int, section: str, groups: Sequence[Hashable] | None
) -> dict[str, np.ndarray]:
    """Return the rows of each fold; raise SigmaConfigError if there are more folds than rows or groups."""
    units = None if groups is None else _number_groups(groups, len(pool))
    count, what = _count_units(units, len(pool))
    if fold.of > count:
        raise SigmaConfigError(f"fold: {fold.of} folds need as many {what}, and there are {count}. Use fewer folds.")
    return _divide(pool, fold.shares, by, seed, section, groups, units)


def _count_units(units: np.ndarray | None, rows: int) -> tuple[int, str]:
    """Return the number of what is divided, and its name."""
    return (rows, "rows") if units is None else (int(units.max()) + 1, "groups")


def _divide(
    dataset: Dataset,
    shares: Mapping[str, float],
    by: By,
    seed: int,
    section: str,
    groups: Sequence[Hashable] | None,
    units: np.ndarray | None,
) -> dict[str, np.ndarray]:
    """Return the rows of each part, in their order; raise SigmaConfigError for a part without any."""
    count, what = _count_units(units, len(dataset))
    if by == "block":
        parts = cut(np.arange(count), allot(count, shares))
    elif by == "record":
        counts = allot(count, shares)
        several = sum(map(bool, counts.values())) > 1
        parts = cut(permute_rows(seed, SPLIT, count) if several else np.arange(count), counts)
    elif by == "stratified":
        classes = _classes(dataset, section)
        classes = classes if units is None or groups is None else _of_groups(classes, units, groups)
        if classes.ndim == 1:
            parts = _divide_classes(classes, shares, seed)
        else:
            parts = divide_labels(classes, allot(count, shares), permute_rows(seed, SPLIT, count))
    else:
        raise SigmaConfigError(f"split: unknown method {by!r}. Use one of {', '.join(KINDS)}.")
    for name, part in parts.items():
        if not len(part):
            raise SigmaConfigError(
                f"split: {name!r} gets none of {count} {what} for a share of {shares[name]}. Give it more."
            )
    return {name: _rows(part, units) for name, part in parts.items()}


def _number_groups(groups: Sequence[Hashable], rows: int) -> np.ndarray:
    """Return the number of the group of each row; groups are numbered in the order of their first rows."""
    if len(groups) != rows:
        raise SigmaDataError(f"split: there are {len(groups)} groups for {rows} rows. Name the group of each row.")
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(group, len(numbers)) for group in groups])


def _of_groups(classes: np.ndarray, units: np.ndarray, groups: Sequence[Hashable]) -> np.ndarray:
    """Return the class of each group; SigmaDataError for the first group with rows of several."""
    labels = np.empty((int(units.max()) + 1, *classes.shape[1:]), classes.dtype)
    labels[units] = classes
    mixed = (labels[units] != classes).reshape(len(classes), -1).any(axis=1)
    if mixed.any():
        raise SigmaDataError(
            f"split: group {groups[int(mixed.argmax())]!r} has rows of several classes, and cannot be stratified. "
            "Split by record."
        )
    return labels


def _rows(part: np.ndarray, units: np.ndarray | None) -> np.ndarray:
    """Return the rows of a part in their order; it holds rows, or numbers of groups."""
    chosen = np.zeros(1 + int((part if units is None else units).max()), bool)  # faster than to sort
    chosen[part] = True
    return np.flatnonzero(chosen if units is None else chosen[units])


def check(shares: Mapping[str, float]) -> None:
    """Raise SigmaConfigError for invalid shares."""
    if not shares:
        raise SigmaConfigError("split: there are no parts. Name some, such as { training = 0.8, validation = 0.2 }.")
    for name, share in shares.items():
        if not 0.0 < share <= 1.0:  # NaN too
            raise SigmaConfigError(f"split: {name!r} has a share of {share}. It must be more than 0 and at most 1.")
    if (whole := sum(shares.values())) > 1.0 + ROUNDING:
        raise SigmaConfigError(f"split: the shares add up to {whole:g}. They may make 1, or less to leave rows out.")


def allot(rows: int, shares: Mapping[str, float], owed: np.ndarray | float = 0.0) -> dict[str, int]:
    """Return the number of rows of each part: its share, rounded down or up.

    Rows left over by rounding down go to the largest remainders, after adding what earlier rounds ``owed``.
    """
    exact = rows * np.array([*shares.values(), max(0.0, 1.0 - sum(shares.values()))])  # the last: left out
    exact = np.where(np.abs(exact - np.rint(exact)) < ROUNDING * max(rows, 1), np.rint(exact), exact)
    whole = np.floor(exact).astype(int)
    wish = np.where(exact > whole, exact - whole + owed, -np.inf)  # exact shares stay exact
    left = rows - int(whole.sum())
    whole[np.argsort(-wish, kind="stable")[:left]] += 1
    return dict(zip([*shares, ""], whole.tolist(), strict=True))


def cut(rows: np.ndarray, counts: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Return consecutive pieces by name, without the one that is left over."""
    pieces = np.split(rows, np.cumsum(list(counts.values()))[:-1])
    return {name: piece for name, piece in zip(counts, pieces, strict=True) if name}


def _classes(dataset: Dataset, section: str) -> np.ndarray:
    dataset = dataset.encode(section, 0)
    spec = dataset.sections.get(section)
    if spec is not None and (len(spec.shape) == 1 or not (spec.shape or spec.dtype.startswith("float"))):
        values = np.concatenate([dataset.block(block)[section] for block in range(dataset.blocks)])
        if values.ndim == 1:
            return values
        if ((values == 0) | (values == 1)).all():
            return values.astype(bool)
    held = "is not there" if spec is None else f"holds {spec}"
    raise SigmaDataError(
        f"split: section {section!r} {held}; stratified needs one class index per row, or a 0 or 1 for each label. "
        "Split by record."
    )


def _divide_classes(classes: np.ndarray, shares: Mapping[str, float], seed: int) -> dict[str, np.ndarray]:
    order = permute_rows(seed, SPLIT, len(classes))
    parts: dict[str, list[np.ndarray]] = {name: [] for name in shares}
    fractions = np.array([*shares.values(), max(0.0, 1.0 - sum(shares.values()))])
    owed, sizes = np.zeros(len(fractions)), Counter(classes[order].tolist())  # in the order of the draw
    small = [label for label, size in sizes.items() if min(shares.values()) * size < 1 - ROUNDING]
    extra = _extra(sizes.values(), shares)
    for label in (*small, *sorted(sizes.keys() - {*small})):
        members = order[classes[order] == label]
        counts = allot(len(members), shares, owed + _bonus(len(members), fractions, extra))
        given = np.array(list(counts.values()))
        owed += len(members) * fractions - given
        extra -= given - _round_counts(len(members), fractions)
        for name, piece in cut(members, counts).items():
            parts[name].append(piece)
    return {name: np.concatenate(pieces) for name, pieces in parts.items()}


def _round_counts(rows: int, fractions: np.ndarray) -> np.ndarray:
    """Return the rows of each part, rounded down."""
    return np.floor(rows * fractions + ROUNDING * max(rows, 1)).astype(int)


def _extra(sizes: Collection[int], shares: Mapping[str, float]) -> np.ndarray:
    """Return how many rows each part gets in all beyond its shares of the classes rounded down."""
    fractions = np.array([*shares.values(), max(0.0, 1.0 - sum(shares.values()))])
    return np.array(list(allot(sum(sizes), shares).values())) - sum(_round_counts(size, fractions) for size in sizes)


def _bonus(rows: int, fractions: np.ndarray, extra: np.ndarray) -> np.ndarray:
    """Return what puts parts first that would have no row of a class of two rows or more, as far as shares allow."""
    bare = (_round_counts(rows, fractions) == 0) & (fractions > ROUNDING) & (extra > 0) & (rows > 1)
    bare[-1] = False  # what is left out
    return np.where(bare, float(rows) * len(fractions) + extra.sum(), 0.0)
