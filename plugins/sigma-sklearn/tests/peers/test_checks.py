"""scikit-learn's own checks of estimators, and what its pipelines, searches and data frames do with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sigma_sklearn import SigmaClassifier, SigmaRegressor

X, Y = load_iris(return_X_y=True)


@parametrize_with_checks([SigmaClassifier(backend="numpy"), SigmaRegressor(backend="numpy")])
def test_an_estimator_passes_the_checks_of_scikit_learn(
    estimator: Any, check: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # without it, a check is skipped
    check(estimator)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_a_pipeline_is_cross_validated(backend: str) -> None:
    model = make_pipeline(StandardScaler(), SigmaClassifier(random_state=0, backend=backend))
    assert cross_val_score(model, X, Y, cv=3).mean() > 0.9


def test_a_search_finds_the_settings_that_learn() -> None:
    model = make_pipeline(StandardScaler(), SigmaClassifier(epochs=30, random_state=0, backend="numpy"))
    grid = {"sigmaclassifier__learning_rate": [0.0, 0.05], "sigmaclassifier__network": ["", "dense(8)"]}
    search = GridSearchCV(model, grid, cv=3).fit(X, Y)
    assert search.best_params_["sigmaclassifier__learning_rate"] == 0.05
    assert search.best_score_ > 0.9
    worse = search.cv_results_["param_sigmaclassifier__learning_rate"] == 0.0
    assert search.cv_results_["mean_test_score"][worse].max() < search.best_score_


@pytest.mark.parametrize("library", [pd, pl])
def test_a_frame_gives_the_bits_of_its_array_and_its_names(library: Any) -> None:
    names = ["a", "b", "c", "d"]
    frame = library.DataFrame(dict(zip(names, X.T, strict=True)))
    model = SigmaClassifier(epochs=3, random_state=0, backend="numpy").fit(frame, library.Series(Y))
    plain = SigmaClassifier(epochs=3, random_state=0, backend="numpy").fit(X, Y)
    assert model.feature_names_in_.tolist() == names
    assert np.array_equal(model.predict_proba(frame), plain.predict_proba(X))
    with pytest.raises(ValueError, match="The feature names should match"):
        model.predict(frame[["b", "a", "c", "d"]])
