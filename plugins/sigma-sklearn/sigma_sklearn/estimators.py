"""The estimators: a classifier and a regressor of scikit-learn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.model_selection import train_test_split
from sklearn.utils.multiclass import _check_partial_fit_first_call, check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from sigma_kernel import SigmaConfigError
from sigma_sklearn import settings
from sigma_sklearn.network import Rows, TrainedNetwork, train_network
from sigma_training import NetworkTrainer

FULL, BATCH = 1000, 200  # rows that are one batch by default; rows of each batch, if there are more
FLOATS = (np.float64, np.float32)


class SigmaEstimator(BaseEstimator, ABC):  # type: ignore[misc]
    """The base of the classifier and the regressor.

    Args:
        network: Text of the layers between the input and the output layer, such as ``dense(64, activation='relu') +
            dropout(0.5)``; empty for a linear model.  A text that begins with ``input(...)``, or layers of Python, are
            a whole architecture, with its output layer and cost.
        cost: Name or text of the cost, such as ``huber(delta=2.0)``; None for the usual one.
        optimiser: Name, table or object of an optimiser.
        learning_rate: Learning rate of the optimiser; None for its own, or for 0.01 with ``"adam"``.
        epochs: Epochs that ``fit`` trains, at most.
        batch_size: Rows of a batch; None for all rows if there are at most 1,000, else 200.
        early_stopping: Hold rows out to validate on, stop once their loss improves no more, and restore the best.
        patience: Epochs without an improvement that end training, with ``early_stopping``.
        validation_fraction: Share of the rows to hold out, with ``early_stopping``.
        hooks: Hooks of Sigma by name, which work during ``fit`` and ``partial_fit``.
        random_state: Seed of the initial values, of the order of the rows and of all other random numbers.
        backend: Name, table or object of a backend; None for Sigma's default.
        precision: Type to compute with; None for that of ``X``, ``float32`` or ``float64``.
        verbose: Whether to show the progress.
    """

    _name: ClassVar[str]  # in errors
    _cost: ClassVar[str]
    _numbers: ClassVar[bool]  # whether targets are numbers, in any number of columns

    def __init__(
        self,
        network: Any = "dense(64, activation='relu')",
        *,
        cost: str | None = None,
        optimiser: Any = "adam",
        learning_rate: float | None = None,
        epochs: int = 200,
        batch_size: int | None = None,
        early_stopping: bool = False,
        patience: int = 10,
        validation_fraction: float = 0.1,
        hooks: Any = None,
        random_state: Any = None,
        backend: Any = None,
        precision: str | None = None,
        verbose: bool = False,
    ) -> None:
        self.network = network
        self.cost = cost
        self.optimiser = optimiser
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.batch_size = batch_size
        self.early_stopping = early_stopping
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.hooks = hooks
        self.random_state = random_state
        self.backend = backend
        self.precision = precision
        self.verbose = verbose

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")

    # -- defined by the two kinds --------------------------------------------------------------------------------------
    @abstractmethod
    def _targets(self, y: np.ndarray, learn: bool) -> np.ndarray:
        """Return checked targets as the network reads them; with ``learn``, they say how many outputs there are."""

    @abstractmethod
    def _outputs(self) -> int:
        """Return the number of outputs."""

    # -- training ------------------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        """Train a new network; return the estimator.

        ``X`` has one row a sample.  Each row counts as often as its weight says.  Raises ValueError for data that
        scikit-learn refuses, and a SigmaError for settings and networks that Sigma refuses.
        """
        self._train(self._rows(X, y, sample_weight, reset=True, learn=True), None)
        return self

    def _continue(self, X: Any, y: Any, sample_weight: Any, learn: bool) -> Self:  # noqa: N803
        """Train the network for one epoch, from its present state; a new one, if there is none."""
        before: TrainedNetwork | None = getattr(self, "network_", None)
        fresh = before is None
        self._train(self._rows(X, y, sample_weight, reset=fresh, learn=fresh and learn), before, epochs=1)
        return self

    def _rows(self, X: Any, y: Any, sample_weight: Any, reset: bool, learn: bool) -> Rows:  # noqa: N803
        """Return checked rows; those of weight 0 are left out, as if they were not there."""
        about = {"multi_output": self._numbers, "y_numeric": self._numbers}
        inputs, y = validate_data(self, X, y, reset=reset, dtype=FLOATS, order="C", **about)
        rows = {"inputs": inputs, "targets": self._targets(y, learn)}
        if sample_weight is None:
            return rows
        weights = _check_sample_weight(sample_weight, inputs, dtype=inputs.dtype, ensure_non_negative=True)
        return {name: values[weights > 0] for name, values in {**rows, "weights": weights}.items()}

    def _train(self, rows: Rows, before: TrainedNetwork | None, epochs: int | None = None) -> None:
        """Train on rows, and keep the network and its history; with ``epochs``, nothing is held out."""
        chosen = self._settings(rows, before)
        stops = self.early_stopping and epochs is None
        splits = self._split_rows(rows, chosen["seed"]) if stops else {"training": rows}
        count = len(splits["training"]["inputs"])
        network, history = train_network(
            self._name, chosen, splits, self.epochs if epochs is None else epochs, before, bool(self.verbose),
            batch_size=self._batch(count),
            hooks=settings.hooks(self.hooks, self.patience if stops else None),
        )  # fmt: skip
        self.network_, self.history_ = network, {name: np.array(values) for name, values in history.items()}
        self.n_iter_ = network.epochs

    def _batch(self, count: int) -> Any:
        """Return the rows of a batch: at most all of them. The trainer refuses a value that is not a number."""
        if self.batch_size is None:
            return count if count <= FULL else BATCH
        return min(self.batch_size, count) if isinstance(self.batch_size, Integral) else self.batch_size

    def _settings(self, rows: Rows, before: TrainedNetwork | None) -> dict[str, Any]:
        """Return the settings of the trainer; a network that is trained on keeps its seed and precision."""
        cost = self._cost if self.cost is None else self.cost
        first = {"seed": settings.seed(self.random_state), "precision": self.precision or str(rows["inputs"].dtype)}
        return {
            **(first if before is None else {name: before.settings[name] for name in first}),
            "backend": self.backend,
            "network": settings.architecture(self.network, rows["inputs"].shape[1], self._outputs(), cost),
            "optimiser": settings.optimiser(self.optimiser, self.learning_rate),
        }

    def _split_rows(self, rows: Rows, seed: int) -> dict[str, Rows]:
        """Return the rows to train and to validate on; of a classifier, each has its share of every class."""
        kept, held = train_test_split(
            np.arange(len(rows["inputs"])), test_size=self.validation_fraction, random_state=seed % 2**32,
            stratify=None if self._numbers else rows["targets"],
        )  # fmt: skip
        parts = {"training": np.sort(kept), "validation": np.sort(held)}
        return {part: {name: values[chosen] for name, values in rows.items()} for part, chosen in parts.items()}

    # -- afterwards ----------------------------------------------------------------------------------------------------
    def _network_outputs(self, X: Any) -> np.ndarray:  # noqa: N803
        check_is_fitted(self)
        return self.network_.predict(validate_data(self, X, reset=False, dtype=FLOATS, order="C"))

    @property
    def trainer_(self) -> NetworkTrainer:
        """Return a trainer of Sigma that holds the network, to save it or look at it; it has no data."""
        check_is_fitted(self)
        return self.network_.trainer


class SigmaClassifier(ClassifierMixin, SigmaEstimator):  # type: ignore[misc]
    """A network that classifies."""

    _name = "classifier"
    _cost = "softmax_cross_entropy"
    _numbers = False

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:  # noqa: N803
        """Train for one epoch on these rows, from the state that training has reached; return the estimator.

        The first call needs all ``classes``, unless ``fit`` came before.
        """
        _check_partial_fit_first_call(self, classes)
        return self._continue(X, y, sample_weight, learn=False)

    def _targets(self, y: np.ndarray, learn: bool) -> np.ndarray:
        check_classification_targets(y)
        if learn:
            self.classes_ = np.unique(y)
        if unknown := np.setdiff1d(y, self.classes_).tolist():
            raise ValueError(f"y has classes that training did not have: {unknown}. Call fit for other classes.")
        return np.searchsorted(self.classes_, y).astype(np.int32)

    def _outputs(self) -> int:
        return len(self.classes_)

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the most probable class of each sample; of equal ones, the first."""
        chosen = self.predict_proba(X).argmax(axis=1)
        classes: np.ndarray = self.classes_[chosen]
        return classes

    def predict_proba(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the probability of each class, in the order of ``classes_``.

        Raises SigmaConfigError for a network with another number of outputs.
        """
        outputs = self._network_outputs(X)
        if outputs.shape == (len(outputs), 1) and len(self.classes_) == 2:  # that of the second one
            outputs = np.concatenate([1 - outputs, outputs], axis=1)
        if outputs.shape[1:] != self.classes_.shape:
            count = len(self.classes_)
            raise SigmaConfigError(
                f"{self._name}: the network has outputs of shape {outputs.shape[1:]} for {count} classes. End it with "
                f"output({count}) + softmax_cross_entropy()."
            )
        return outputs

    def predict_log_proba(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            logarithms: np.ndarray = np.log(self.predict_proba(X))
        return logarithms


class SigmaRegressor(RegressorMixin, SigmaEstimator):  # type: ignore[misc]
    """A network that predicts numbers, one or several a sample."""

    _name = "regressor"
    _cost = "squared_difference"
    _numbers = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        """Train for one epoch on these rows, from the state that training has reached; return the estimator."""
        return self._continue(X, y, sample_weight, learn=True)

    def _targets(self, y: np.ndarray, learn: bool) -> np.ndarray:
        if learn:
            self.n_outputs_, self._flat = int(np.prod(y.shape[1:])), y.ndim == 1
        return np.reshape(y, (len(y), -1)).astype(np.float64)

    def _outputs(self) -> int:
        return self.n_outputs_

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the predicted numbers: one a sample, or a row of them, as in training."""
        outputs = self._network_outputs(X)
        return outputs[:, 0] if self._flat else outputs


for _one in (SigmaClassifier, SigmaRegressor):
    _one.__doc__ = f"{_one.__doc__}\n{(SigmaEstimator.__doc__ or '').partition(chr(10))[2]}"  # as ``help`` shows it
