"""Place rows on a plane: principal components, UMAP in a process of its own, and maps that do not turn."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from io import BytesIO

import numpy as np

from sigma_kernel.errors import SigmaConfigError, SigmaStateError

EMBED = "sigma_monitor_control.protocol.embedding"  # the module of the process
PRECISE = 32 << 20  # bytes of values up to which sums are in float64
PATIENCE = 300.0  # seconds that UMAP may take
METHODS = ("pca", "umap")
MOST = 2000  # rows whose components are computed, if there are more rows and columns


def project(values: np.ndarray) -> tuple[np.ndarray, list[float]]:
    """Return the first two principal components of rows, float64 ``(n, 2)``, and the share of the variance of each.

    The eigenvectors are those of the smaller of the two matrices of products: of columns, or of rows. As in
    scikit-learn's ``PCA``, up to the signs. A component that does not exist, such as the second of one column, is 0.
    If both matrices would be larger than ``MOST``, the components are those of so many evenly chosen rows.
    (Pearson, On Lines and Planes of Closest Fit to Systems of Points in Space, 1901.)
    """
    centred = values - values.mean(axis=0)
    centred = centred.astype(np.float64) if centred.nbytes <= PRECISE else centred
    rows, columns = centred.shape
    if min(rows, columns) > MOST:
        return _project_by_some(centred)
    products = (centred @ centred.T if rows < columns else centred.T @ centred).astype(np.float64)
    weights, vectors = np.linalg.eigh(products)  # in rising order
    weights, vectors = np.maximum(weights[:-3:-1], 0.0), vectors[:, :-3:-1]
    placed = vectors * np.sqrt(weights) if rows < columns else centred @ vectors
    positions, total = np.zeros((rows, 2)), float(np.trace(products)) or 1.0
    positions[:, : placed.shape[1]] = placed
    return positions, [*(weights / total).tolist(), 0.0, 0.0][:2]


def _project_by_some(centred: np.ndarray) -> tuple[np.ndarray, list[float]]:
    """Return what :func:`project` returns, by the components of evenly chosen rows."""
    some = centred[np.linspace(0, len(centred) - 1, MOST).astype(int)]
    some = some - some.mean(axis=0)
    products = (some @ some.T).astype(np.float64)
    weights, vectors = np.linalg.eigh(products)
    weights, vectors = np.maximum(weights[:-3:-1], 0.0), vectors[:, :-3:-1]
    scales = np.divide(1.0, np.sqrt(weights), out=np.zeros(2), where=weights > 0)
    axes = some.T @ (vectors * scales).astype(some.dtype)
    total = float(np.trace(products)) or 1.0
    return (centred @ axes).astype(np.float64), (weights / total).tolist()


def align(positions: np.ndarray, earlier: np.ndarray) -> np.ndarray:
    """Return positions, centred, turned and mirrored so that they are nearest to earlier ones of the same rows.

    Scales stay. (The orthogonal Procrustes problem: Schönemann, A Generalized Solution of the Orthogonal Procrustes
    Problem, 1966.)
    """
    centred = positions - positions.mean(axis=0)
    left, _, right = np.linalg.svd(centred.T @ (earlier - earlier.mean(axis=0)))
    turned: np.ndarray = centred @ (left @ right)
    return turned


def check_umap() -> None:
    """Raise SigmaConfigError if umap-learn is not installed."""
    if find_spec("umap") is None:
        raise SigmaConfigError(
            "map: UMAP needs umap-learn, which is not installed where this run trains. Install it: python -m pip "
            "install 'sigma-monitor-control[umap]'. Or use method 'pca'."
        )


def embed(values: np.ndarray, seed: int, earlier: np.ndarray | None = None) -> np.ndarray:
    """Return the positions of rows by UMAP, float64 ``(n, 2)``; it begins with earlier ones, or principal components.

    A process of its own computes them, at the lowest priority. (McInnes, Healy and Melville, UMAP: Uniform Manifold
    Approximation and Projection for Dimension Reduction, 2018.) Raises SigmaConfigError if umap-learn is not
    installed, SigmaStateError if it fails.
    """
    check_umap()
    begin = project(values)[0] if earlier is None else earlier
    buffer = BytesIO()
    np.savez(buffer, values=values, begin=_scale(begin), seed=seed)
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", EMBED],
            input=buffer.getvalue(),
            capture_output=True,
            timeout=PATIENCE,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        last = error.stderr.decode(errors="replace").strip().splitlines()[-1:] or [f"exit code {error.returncode}"]
        raise SigmaStateError(f"map: UMAP failed: {last[0]:.200}. Use method 'pca', or other rows.") from error
    except subprocess.TimeoutExpired as error:
        raise SigmaStateError(f"map: UMAP takes more than {PATIENCE:.0f} s. Use fewer rows.") from error
    positions: np.ndarray = np.load(BytesIO(done.stdout), allow_pickle=False)
    return positions.astype(np.float64)


def _scale(positions: np.ndarray) -> np.ndarray:
    """Return positions on the scale from -10 to 10 that UMAP begins with."""
    most = np.abs(positions).max(initial=0.0)
    return (positions * (10.0 / most if most > 0 else 1.0)).astype(np.float32)
