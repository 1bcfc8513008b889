"""Principal components are those of scikit-learn's PCA up to their signs; UMAP's positions are umap-learn's."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_monitor_control.protocol.positions import project


@pytest.mark.parametrize("shape", [(200, 5), (30, 400), (50, 50), (7, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_positions_and_shares_are_sklearns_up_to_signs(shape: tuple[int, int], dtype: str) -> None:
    decomposition = pytest.importorskip("sklearn.decomposition")
    draw = np.random.default_rng(sum(shape))
    values = (draw.normal(size=shape) * np.linspace(1, 3, shape[1]) + 5).astype(dtype)
    theirs = decomposition.PCA(n_components=2, svd_solver="full")
    wanted = theirs.fit_transform(values.astype(np.float64))
    positions, shares = project(values)
    signs = np.sign((positions * wanted).sum(axis=0))
    np.testing.assert_allclose(positions * signs, wanted, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(shares, theirs.explained_variance_ratio_, rtol=1e-5)
