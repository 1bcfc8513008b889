"""A conformance suite for encoders of columns, to inherit in a plugin's tests (needs pyarrow).

::

    class TestMyEncoder(EncoderSuite):
        def make(self) -> Encoder:
            return MyEncoder()

        def column(self) -> pa.Array:
            return pa.array(["a", "b", None, "a"])

        def unseen(self) -> pa.Array:
            return pa.array(["c"])
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import frozen

from sigma_kernel.contracts import Encoder
from sigma_kernel.errors import SigmaDataError
from sigma_testing.determinism import DeterministicSuite

KINDS = {"number", "boolean", "category", "date", "text", "identifier", "constant"}


@frozen
class _Batches(Iterable[Any]):
    """Batches that can be iterated over again, but have neither a length nor an index."""

    batches: Sequence[Any]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.batches)


def _attempt(method: Callable[..., Any], *given: Any) -> tuple[Any, int | None]:
    """Return what a method returns, or the row that it refuses: -1 if it does not say which."""
    try:
        return method(*given), None
    except SigmaDataError as error:
        return None, -1 if error.row is None else error.row


class EncoderSuite(DeterministicSuite):
    """Conformance tests of an encoder: inherit, and override :meth:`make`, :meth:`column` and :meth:`unseen`."""

    @abstractmethod
    def make(self) -> Encoder:
        """Return the encoder under test."""

    @abstractmethod
    def column(self) -> Any:
        """Return training rows, an Arrow array of at least four; some are null if the encoder can be fitted on that."""

    @abstractmethod
    def unseen(self) -> Any:
        """Return other values than those of the column, an Arrow array of the same type."""

    def targets(self) -> np.ndarray | None:
        """Return the targets of the training rows, for an encoder that learns from them."""
        return None

    def fit(self, *cuts: int) -> dict[str, Any]:
        """Return the state that a new encoder learns from the column, cut into batches before some rows."""
        column, targets = self.column(), self.targets()
        ends = [*pairwise((0, *cuts, len(column)))]
        given = None if targets is None else _Batches([targets[begin:end] for begin, end in ends])
        return self.make().fit(_Batches([column[begin:end] for begin, end in ends]), given)

    def use(self) -> None:
        """Make it, and use it once."""
        self.make().apply(self.column(), self.fit())

    def results(self) -> Mapping[str, Any]:
        """Return the fitted state, and the names and the values of the encoded rows."""
        encoder, state = self.make(), self.fit()
        return {"state": state, "names": encoder.names("a", state), "values": encoder.apply(self.column(), state)}

    def test_it_declares_the_kinds_of_columns_that_it_takes(self) -> None:
        """Set `kinds` to a tuple of names, and `section` to a name."""
        encoder = self.make()
        assert isinstance(encoder.section, str)
        assert isinstance(encoder.kinds, tuple)
        assert {*encoder.kinds} <= KINDS, f"kinds are {', '.join(sorted(KINDS))}"
        assert encoder.kinds

    def test_a_value_becomes_as_many_finite_numbers_as_there_are_names(self) -> None:
        """Return an array of shape (rows, width) from apply(), float64 or int32, and `width` unique names."""
        encoder, column, state = self.make(), self.column(), self.fit()
        encoded, names = encoder.apply(column, state), encoder.names("a", state)
        assert encoded.dtype in (np.float64, np.int32)
        assert isinstance(names, tuple)
        assert all(isinstance(name, str) for name in names)
        assert len({*names}) == len(names), "names must be unique"
        assert encoded.shape == (len(column), len(names))
        assert np.isfinite(encoded).all()

    def test_the_state_is_saved_as_json_and_is_all_that_another_encoder_needs(self) -> None:
        """Return plain JSON values from fit(), and keep nothing on the encoder."""
        encoder, column = self.make(), self.column()
        targets = self.targets()
        state = encoder.fit([column], None if targets is None else [targets])
        saved = json.loads(json.dumps(state, allow_nan=False))
        assert saved == state
        assert np.array_equal(self.make().apply(column, saved), encoder.apply(column, state))
        assert self.make().names("a", saved) == encoder.names("a", state)

    def test_the_state_does_not_depend_on_the_layout_of_batches(self) -> None:
        """Merge what batches contribute so that their sizes have no influence on any bit."""
        whole = json.dumps(self.fit(), sort_keys=True)
        for cuts in ((1, 3), (0, 2, 2), range(1, len(self.column()))):
            assert json.dumps(self.fit(*cuts), sort_keys=True) == whole

    def test_fitting_again_forgets_what_was_fitted_before(self) -> None:
        """Keep nothing on the encoder."""
        encoder, column, targets = self.make(), self.column(), self.targets()
        for batch in (slice(None, None, -1), slice(None)):
            rows = np.arange(len(column))[batch]
            state = encoder.fit([column.take(pa.array(rows))], None if targets is None else [targets[rows]])
        assert state == self.fit()

    def test_each_row_is_encoded_alone(self) -> None:
        """Take statistics from the state, not from the rows to apply to; heed the offset of a slice."""
        encoder, column, state = self.make(), self.column(), self.fit()
        rows = np.arange(len(column))
        apart = [encoder.apply(column[row : row + 1], state) for row in rows]
        assert np.array_equal(np.concatenate(apart), encoder.apply(column, state))
        training = [encoder.apply_training(column[row : row + 1], state, rows[row : row + 1]) for row in rows]
        whole = encoder.apply_training(column, state, rows)
        assert np.array_equal(np.concatenate(training), whole)
        assert (whole.shape, whole.dtype) == (encoder.apply(column, state).shape, apart[0].dtype)
        assert np.isfinite(whole).all()

    def test_a_batch_without_rows_has_the_same_width(self) -> None:
        """Return an array of shape (0, width) for an empty batch."""
        encoder, column, state = self.make(), self.column(), self.fit()
        some, none = encoder.apply(column[:1], state), encoder.apply(column[:0], state)
        assert (none.shape, none.dtype) == ((0, some.shape[1]), some.dtype)

    def test_a_value_without_precedent_is_encoded_or_refused_by_row(self) -> None:
        """Raise SigmaDataError with the row, unless unseen values and null have numbers."""
        column, state = self.column(), self.fit()
        for values in (self.unseen(), pa.nulls(1, column.type)):
            given = pa.concat_arrays([column[:1], column[1:2], values])
            encoded, refused = _attempt(self.make().apply, given, state)
            assert refused in (None, 2), "name the first row that cannot be encoded"
            assert refused or (len(encoded) == len(given) and np.isfinite(encoded).all())

    def test_a_missing_training_value_is_used_or_refused_by_row(self) -> None:
        """Raise SigmaDataError with the row, counted over all batches, unless null is allowed."""
        column, targets = self.column(), self.targets()
        batches = [column, pa.nulls(2, column.type)]
        given = None if targets is None else [targets, targets[:2]]
        state, refused = _attempt(self.make().fit, batches, given)
        assert refused in (None, len(column)), "count the rows of the batches before"
        assert refused or np.isfinite(self.make().apply(column, state)).all()

    def test_applying_changes_no_state(self) -> None:
        """Learn in fit() alone."""
        encoder, column, state = self.make(), self.column(), self.fit()
        before, first = json.dumps(state), encoder.apply(column[:2], state)
        encoder.apply(column, state)
        encoder.apply_training(column, state, np.arange(len(column)))
        assert json.dumps(state) == before
        assert np.array_equal(encoder.apply(column[:2], state), first)
