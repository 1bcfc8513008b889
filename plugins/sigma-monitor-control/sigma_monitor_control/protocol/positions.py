"""Place rows on a plane: principal components, UMAP in a process of its own, and maps that do not turn."""

from __future__ import annotations

import subprocess
import sys
import threading
from importlib.util import find_spec
from io import BytesIO

import numpy as np
from attrs import define, field

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


@define(eq=False)
class UmapProcess:
    """A process that computes UMAP; it can be stopped from another thread, also before it begins."""

    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _is_stopped: bool = field(default=False, init=False)
    _gate: threading.Lock = field(factory=threading.Lock, init=False)

    def stop(self) -> None:
        """End the process; what waits for it raises SigmaStateError."""
        with self._gate:
            self._is_stopped = True
            if self._process is not None:
                self._process.kill()

    def run(self, given: bytes) -> bytes:
        """Return what the process makes of its input."""
        with self._gate:
            if self._is_stopped:
                raise SigmaStateError("map: UMAP was cancelled.")
            pipe = subprocess.PIPE
            self._process = process = subprocess.Popen(
                [sys.executable, "-P", "-m", EMBED], stdin=pipe, stdout=pipe, stderr=pipe
            )
        with process:
            try:
                done, errors = process.communicate(given, PATIENCE)
            except subprocess.TimeoutExpired as error:
                process.kill()
                raise SigmaStateError(f"map: UMAP takes more than {PATIENCE:.0f} s. Use fewer rows.") from error
        if self._is_stopped:
            raise SigmaStateError("map: UMAP was cancelled.")
        if process.returncode:
            last = errors.decode(errors="replace").strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
            raise SigmaStateError(f"map: UMAP failed: {last[0]:.200}. Use method 'pca', or other rows.")
        return done


def embed(
    values: np.ndarray, seed: int, earlier: np.ndarray | None = None, embedding: UmapProcess | None = None
) -> np.ndarray:
    """Return the positions of rows by UMAP, float64 ``(n, 2)``; it begins with earlier ones, or principal components.

    A process of its own computes them, at the lowest priority, which ``embedding`` can stop. (McInnes, Healy and
    Melville, UMAP: Uniform Manifold Approximation and Projection for Dimension Reduction, 2018.) Raises
    SigmaConfigError if umap-learn is not installed, SigmaStateError if it fails or is stopped.
    """
    check_umap()
    begin = project(values)[0] if earlier is None else earlier
    buffer = BytesIO()
    np.savez(buffer, values=values, begin=_scale(begin), seed=seed)
    done = (embedding or UmapProcess()).run(buffer.getvalue())
    positions: np.ndarray = np.load(BytesIO(done), allow_pickle=False)
    return positions.astype(np.float64)


def _scale(positions: np.ndarray) -> np.ndarray:
    """Return positions on the scale from -10 to 10 that UMAP begins with."""
    most = np.abs(positions).max(initial=0.0)
    return (positions * (10.0 / most if most > 0 else 1.0)).astype(np.float32)
