"""Bounds and deviations equal those that torch.nn.init computes for the same shapes."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sigma_initialisers import (  # noqa: E402
    Gaussian,
    GlorotNormal,
    GlorotUniform,
    HeNormal,
    HeUniform,
    Identity,
    LecunNormal,
    LecunUniform,
    Orthogonal,
    Sparse,
    TruncatedNormal,
    Uniform,
)  # fmt: skip
from sigma_initialisers.gains import GAINS  # noqa: E402
from sigma_kernel.contracts import Parameter  # noqa: E402
from sigma_testing import draw  # noqa: E402

init = torch.nn.init
SHAPES = {
    "dense": ((90, 700), Parameter((700, 90))),  # torch's shapes are (out, in)
    "convolution": ((48, 32, 5, 5), Parameter((48, 32, 5, 5), fan_in=800, fan_out=1200)),
}
PAIRS = {
    "gaussian": (Gaussian(0.3, 0.1), lambda t: init.normal_(t, 0.1, 0.3)),
    "truncated_normal": (TruncatedNormal(0.3, 0.1), lambda t: init.trunc_normal_(t, 0.1, 0.3, -0.5, 0.7)),
    "uniform": (Uniform(-0.2, 0.7), lambda t: init.uniform_(t, -0.2, 0.7)),
    "glorot_uniform": (GlorotUniform(), init.xavier_uniform_),
    "glorot_uniform tanh": (GlorotUniform("tanh"), lambda t: init.xavier_uniform_(t, init.calculate_gain("tanh"))),
    "glorot_normal": (GlorotNormal(), init.xavier_normal_),
    "he_uniform": (HeUniform(), init.kaiming_uniform_),
    "he_uniform out": (HeUniform(fan="out"), lambda t: init.kaiming_uniform_(t, mode="fan_out")),
    "he_normal": (HeNormal(), init.kaiming_normal_),
    "lecun_uniform": (LecunUniform(), lambda t: init.kaiming_uniform_(t, nonlinearity="linear")),
    "lecun_normal": (LecunNormal(), lambda t: init.kaiming_normal_(t, nonlinearity="linear")),
    "he_normal linear": (HeNormal("linear"), lambda t: init.kaiming_normal_(t, nonlinearity="linear")),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", PAIRS)
def test_initialisers_have_the_distributions_of_torch(name, shape):
    """Two samples agree in mean, deviation and the largest distance between their distribution functions."""
    (sides, parameter), (initialiser, fill) = SHAPES[shape], PAIRS[name]
    tensor = torch.empty(sides, dtype=torch.float64)
    torch.manual_seed(0)
    theirs, ours = np.sort(fill(tensor).numpy().ravel()), np.sort(draw(initialiser, parameter, seed=1).ravel())
    n, deviation = ours.size, theirs.std()
    assert abs(ours.mean() - theirs.mean()) < 4 * deviation * sqrt(2 / n)
    assert abs(ours.std() / deviation - 1) < 4 / sqrt(n)
    places = np.concatenate([ours, theirs])
    ranks = [np.searchsorted(sample, places, side="right") / n for sample in (ours, theirs)]
    assert np.abs(ranks[0] - ranks[1]).max() < 1.95 * sqrt(2 / n)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["uniform", "glorot_uniform", "glorot_uniform tanh", "he_uniform", "lecun_uniform"])
def test_initialisers_have_the_bounds_of_torch(name, shape):
    (sides, parameter), (initialiser, fill) = SHAPES[shape], PAIRS[name]
    tensor = torch.empty(sides, dtype=torch.float64)
    torch.manual_seed(0)
    theirs, ours = fill(tensor).numpy(), draw(initialiser, parameter, seed=1)
    width = theirs.max() - theirs.min()
    assert abs(ours.min() - theirs.min()) < 1e-3 * width
    assert abs(ours.max() - theirs.max()) < 1e-3 * width


@pytest.mark.parametrize("name", GAINS)
def test_gains_equal_torchs(name):
    assert GAINS[name] == pytest.approx(init.calculate_gain(name), rel=1e-15)


@pytest.mark.parametrize("shape", [(9, 9), (20, 6), (6, 20), (5, 3, 3, 3)])
def test_orthogonal_matrices_equal_torchs_for_the_same_normal_numbers(shape, monkeypatch):
    """PyTorch's method on our normal numbers: the signs of its QR decomposition are normalised in the same way."""
    parameter = Parameter(shape)
    ours = draw(Orthogonal("relu"), parameter, seed=3)
    rows, columns = shape[0], int(np.prod(shape[1:]))
    normal = draw(Gaussian(1.0), Parameter((max(rows, columns), min(rows, columns))), seed=3)
    given = torch.from_numpy(normal if rows >= columns else np.ascontiguousarray(normal.T))
    monkeypatch.setattr(torch.Tensor, "normal_", lambda self, *args, **kwargs: self.copy_(given))
    theirs = init.orthogonal_(torch.empty(shape, dtype=torch.float64), init.calculate_gain("relu"))
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", [(9, 9), (20, 6), (6, 20), (5, 3, 3, 3), (2, 4, 5), (4, 4, 3, 1, 5)])
def test_identities_equal_torchs(shape):
    fill = init.eye_ if len(shape) == 2 else init.dirac_
    np.testing.assert_array_equal(draw(Identity(), Parameter(shape)), fill(torch.empty(shape)).numpy())
    if len(shape) > 2 and shape[0] % 2 == 0:
        theirs = init.dirac_(torch.empty(shape), groups=2).numpy()
        np.testing.assert_array_equal(draw(Identity(groups=2), Parameter(shape)), theirs)


@pytest.mark.parametrize("sparsity", [0.1, 0.55])
def test_sparse_columns_have_as_many_zeros_as_torchs(sparsity):
    theirs = init.sparse_(torch.empty(41, 30), sparsity, std=0.2).numpy()
    ours = draw(Sparse(sparsity, 0.2), Parameter((41, 30)))
    np.testing.assert_array_equal((ours == 0).sum(0), (theirs == 0).sum(0))
    assert abs(ours[ours != 0].std() / theirs[theirs != 0].std() - 1) < 0.2
