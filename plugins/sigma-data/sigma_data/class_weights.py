"""Weights of training rows by their classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from attrs import frozen

from sigma_data.derived import Derived
from sigma_kernel import Dataset, Label, SigmaDataError
from sigma_kernel.errors import suggest_name
from sigma_kernel.graph import Spec
from sigma_kernel.settings import is_finite, must

TARGETS, WEIGHTS = "targets", "weights"  # sections
BALANCED = "balanced"

Rule = str | Mapping[str, float]


def _is_rule(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return value is None or value == BALANCED
    return bool(value) and all(is_finite(weight) and weight >= 0 for weight in value.values())


RULE = must(_is_rule, "'balanced', or a weight of at least 0 by class name, such as { rare = 2.0 }")


@frozen(eq=False)
class ClassTable:
    """The weight of each value that targets have, by column: those of classes, or of 0 and 1 for several labels."""

    values: Sequence[np.ndarray]  # in order
    weights: Sequence[np.ndarray]

    @classmethod
    def balance(cls, codes: np.ndarray) -> ClassTable:
        """Return the weights n / (k n_c) of k values of which n_c of n rows have one, for each column of codes.

        This is the ``"balanced"`` of scikit-learn's ``compute_class_weight``; King and Zeng, Logistic Regression in
        Rare Events Data, Political Analysis 9 (2), 2001.  If each row has a single 1, columns are those of classes.
        """
        if codes.shape[1] > 1 and (codes.sum(axis=1) == 1).all():
            counts = codes.sum(axis=0)
            weights = np.divide(
                len(codes), np.count_nonzero(counts) * counts, where=counts > 0, out=np.ones(len(counts))
            )
            return cls([np.array([0, 1])] * len(counts), [np.array([1.0, weight]) for weight in weights])
        pairs = [np.unique(column, return_counts=True) for column in codes.T]
        return cls([values for values, _ in pairs], [len(codes) / (len(n) * n) for _, n in pairs])

    def look_up(self, codes: np.ndarray) -> np.ndarray:
        """Return the weight of each row, the product of those of its columns; 1 for values that are not listed."""
        weights = np.ones(len(codes))
        for column, values, each in zip(codes.T, self.values, self.weights, strict=True):
            places = np.minimum(np.searchsorted(values, column), len(values) - 1)
            weights *= np.where(values[places] == column, each[places], 1.0)
        return weights


class ClassWeighted(Derived):
    """A data set with weights of its rows by their classes: ``balanced``, or by name; all are 1 without a rule.

    ``names`` are those of the classes by index, if the data set does not know them.  Weights are factors of those that
    it has.  Several labels of a row, columns of 0 and 1, count as scikit-learn's
    ``compute_sample_weight`` counts them: the weight is the product of those of all columns.  Rows that all have a
    single 1 are one-hot: the weight is that of the class.
    """

    def __init__(self, dataset: Dataset, rule: Rule | None, names: Sequence[Label] = ()) -> None:
        super().__init__(dataset)
        self._rule, self._names = rule, names

    def __repr__(self) -> str:
        return f"ClassWeighted({self.dataset!r}, {self._rule!r})"

    def with_dataset(self, dataset: Dataset) -> ClassWeighted:
        """Return another data set with weights by the same rule."""
        return ClassWeighted(dataset, self._rule, self._names)

    @property
    def sections(self) -> Mapping[str, Spec]:
        """Return each section's shape and dtype for one sample."""
        return {**self.dataset.sections, WEIGHTS: Spec((), "float32")}

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        """Return the sections of a block."""
        sections = self.dataset.block(block)
        count = len(next(iter(sections.values())))
        own = np.ones(count) if self._rule is None else self._table.look_up(self._codes(sections))
        given = np.asarray(sections.get(WEIGHTS, 1.0), np.float64)
        return {**sections, WEIGHTS: (own * given.reshape(-1)).astype(np.float32)}

    def column(self, section: str) -> np.ndarray | None:
        """Return all rows of a section of the data set; None for weights, which are computed by block."""
        return None if section == WEIGHTS else super().column(section)

    @cached_property
    def _table(self) -> ClassTable:
        """Return the weights of classes, computed from all rows."""
        if isinstance(self._rule, Mapping):
            return self._name_weights(self._rule)
        return ClassTable.balance(self._all_codes())

    def _all_codes(self) -> np.ndarray:
        """Return the classes of all rows; pictures beside them are not read."""
        if (targets := self.column(TARGETS)) is not None:
            return self._codes({TARGETS: targets})
        return np.concatenate([self._codes(self.dataset.block(block)) for block in range(self.dataset.blocks)])

    def _name_weights(self, rule: Mapping[str, float]) -> ClassTable:
        """Return weights by class name, or by index if classes have no names; of a label, that of the rows with it."""
        labels, several = self._labels, self._has_labels
        places = {str(label): i for i, label in enumerate(labels)}
        if unknown := next((name for name in rule if name not in places), None):
            raise SigmaDataError(
                f"class_weights: there is no class {unknown!r}.{suggest_name(unknown, places)} "
                f"{', '.join([*places][:8])}{', ...' if len(places) > 8 else ''}."
            )
        weights = np.ones(len(labels))
        weights[[places[name] for name in rule]] = [*rule.values()]
        if several:
            return ClassTable([np.array([0, 1])] * len(labels), [np.array([1.0, weight]) for weight in weights])
        return ClassTable([np.arange(len(labels))], [weights])

    @property
    def _has_labels(self) -> bool:
        """Return whether a row has a column for each label, of which it may have several."""
        return len(self.dataset.sections[TARGETS].shape) == 1 and self.dataset.sections[TARGETS].shape[0] > 1

    @property
    def _labels(self) -> Sequence[Any]:
        """Return the names of classes or labels; their indices if they have none."""
        if names := self.dataset.class_names(TARGETS) or self._names:
            return names
        if self._has_labels:
            names = getattr(self.dataset, "learned", {}).get("targets", {}).get(TARGETS, ())
            width = self.dataset.sections[TARGETS].shape[0]
            return names if len(names) == width else range(width)
        return range(1 + int(self._all_codes().max()))

    def _codes(self, sections: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the class of each row, or its labels, one column each; SigmaDataError for other targets."""
        if TARGETS not in sections:
            raise SigmaDataError(f"class_weights: there is no section {TARGETS!r}, only {', '.join(sections)}.")
        targets = np.asarray(sections[TARGETS])
        codes = targets.reshape(len(targets), -1)
        whole = np.rint(np.nan_to_num(codes)).astype(np.int64)
        if targets.ndim > 2 or (whole != codes).any() or (codes.shape[1] > 1 and not np.isin(whole, (0, 1)).all()):
            raise SigmaDataError(
                f"class_weights: section {TARGETS!r} holds numbers, not classes. Leave class_weights out, or set "
                "targets = 'classes'."
            )
        return np.asarray(whole)


def weigh_splits(splits: Mapping[str, Dataset], rule: Rule | None, names: Sequence[Label]) -> Mapping[str, Dataset]:
    """Return splits with weights by class for training; those of the others are as they were, or 1."""
    if rule is None:
        return splits
    return {name: ClassWeighted(rows, rule if name == "training" else None, names) for name, rows in splits.items()}
