"""Pictures turned and scaled: bilinear interpolation between pixels."""

from __future__ import annotations

import numpy as np

from sigma_data.varying import as_type


def resample(pictures: np.ndarray, maps: np.ndarray, fill: float) -> np.ndarray:
    """Return pictures (rows, ..., height, width), whose pixel at p shows what was at ``maps @ p``, in the same type.

    ``maps`` has a matrix for each row, of shape (rows, 2, 2); points are (y, x) in pixels from the middle of the
    picture. Between pixels, and between those at the border and ``fill`` outside, the values are bilinear.
    """
    rows, (height, width) = len(pictures), pictures.shape[-2:]
    middle = np.array([(height - 1) / 2, (width - 1) / 2])
    grid = np.mgrid[:height, :width].reshape(2, -1).T - middle  # (pixels, 2)
    places = np.einsum("nij,pj->npi", maps, grid) + middle
    corners = np.floor(places).astype(np.int64)
    shares = places - corners
    framed = np.full((rows, height + 2, width + 2, pictures[0].size // (height * width)), fill, np.float64)
    framed[:, 1:-1, 1:-1] = pictures.reshape(rows, -1, height, width).transpose(0, 2, 3, 1)
    flat, result = framed.reshape(-1, framed.shape[-1]), np.zeros((rows, height * width, framed.shape[-1]))
    starts = np.arange(rows)[:, None] * (height + 2)
    for down, right in ((0, 0), (0, 1), (1, 0), (1, 1)):
        y, x = (
            np.clip(corners[..., axis] + step + 1, 0, size + 1)
            for axis, step, size in ((0, down, height), (1, right, width))
        )
        share = abs(1 - down - shares[..., 0]) * abs(1 - right - shares[..., 1])
        result += flat.take((starts + y) * (width + 2) + x, axis=0) * share[..., None]
    return as_type(result.transpose(0, 2, 1).reshape(pictures.shape), pictures.dtype)
