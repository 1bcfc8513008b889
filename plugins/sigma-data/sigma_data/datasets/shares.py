"""Parts of another data set."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from numbers import Real
from typing import Any

from attrs import define, field

from sigma_data.datasets.splits import Divided, Loaded, shares
from sigma_data.hashing import KEY, kept_parts_of, parts_of
from sigma_data.stream import Stream
from sigma_kernel import Dataset, Label, SigmaConfigError


def _with_validation(value: Any) -> Any:
    """Return the shares of both splits for that of validation."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        remedy = "For no validation rows, leave validation_split out."
        raise SigmaConfigError(
            f"validation_split: must be more than 0 and less than 1, such as 0.2 (got {value!r}). {remedy}"
        )
    return {"training": 1 - float(value), "validation": float(value)}


def _single_dataset(value: Any) -> Any:
    """Return a data set that can be divided; of splits, the only one."""
    if not isinstance(value, Mapping) or isinstance(value, Divided):
        return value
    if others := [name for name in value if name != "training"]:
        raise SigmaConfigError(f"divided: the data has splits already: {', '.join(others)}. Name it by itself.")
    return value["training"]


@define(eq=False)
class Shares(Divided):
    """Disjoint parts of another data set; one that has a ``split`` of its own is divided anew.

    Args:
        dataset: The other data set; raises SigmaConfigError if its splits are given, as those of ``mnist``.
        split: Share of the rows of each split, by its name; or a number, the share of the split ``validation``.
    """

    dataset: Dataset = field(converter=_single_dataset)
    split: Mapping[str, float] = field(
        factory=lambda: _with_validation(0.2), converter=_with_validation, validator=shares, kw_only=True,
        metadata={"accepts": Mapping[str, float] | float},
    )  # fmt: skip

    def all_rows(self) -> tuple[Dataset, tuple[Label, ...]]:
        """Return the other data set."""
        return self.dataset.all_rows() if isinstance(self.dataset, Divided) else (self.dataset, ())

    def groups(self) -> Sequence[Hashable] | None:
        """Return the groups of the other data set."""
        find_groups: Callable[[], Sequence[Hashable] | None] | None = getattr(self.dataset, "groups", None)
        return None if find_groups is None else find_groups()

    def load(self) -> Loaded:
        """Return the splits; rows of streams, and those with keys, are divided by what they are, not by their place."""
        anew = self.dataset if isinstance(self.dataset, Stream) and self.dataset.drawn_anew else None
        if anew is not None and self.split_by != "record":
            raise SigmaConfigError(
                f"split: {self.split_by!r} needs rows in a fixed order, and these are read anew for every epoch. Use "
                "'record', or Stream(..., keep='blocks')."
            )
        if self.split_by != "record" or not self._known_by_content():
            return super().load()
        if anew is not None:
            return parts_of(anew, self.split, self.seed, self.fold), ()
        return kept_parts_of(self.dataset, self.split, self.seed, self.fold), ()

    def _known_by_content(self) -> bool:
        return isinstance(self.dataset, Dataset) and (isinstance(self.dataset, Stream) or KEY in self.dataset.sections)
