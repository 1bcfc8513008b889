"""Extract sections from fixed-size records by byte offset."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from attrs import Attribute, field, frozen

from sigma_data.arrays import cast_values
from sigma_kernel import Extractor, SigmaDataError
from sigma_kernel.settings import ge, min_len


def _number(owner: Any, attribute: Attribute[Any], value: str) -> None:
    try:
        numeric = np.dtype(value).kind in "iuf"
    except TypeError:
        numeric = False
    if not numeric:
        raise SigmaDataError(f"{attribute.name}: {value!r} is not a numeric dtype. Use 'u1', '<i2', '>f4' ...")


@frozen
class Field:
    """An array in a record.

    Integers stay integers (int32) unless they are multiplied by a ``scale``.

    Args:
        offset: First byte in the record.
        dtype: Dtype in NumPy's notation, such as ``u1``.
        shape: Shape of the array.
        scale: Factor on integers; without one they stay integers.
    """

    offset: int = field(validator=ge(0))
    dtype: str = field(default="u1", validator=_number)
    shape: tuple[int, ...] = ()
    scale: float | None = None


@frozen
class Offsets(Extractor):
    """Split records of bytes into sections; SigmaDataError if a :class:`Field` ends after the record.

    A record of CIFAR-10 has a label in byte 0, followed by 3 x 32 x 32 pixels::

        Offsets({"targets": Field(0), "inputs": Field(1, shape=(3, 32, 32), scale=1 / 255)})

    Args:
        sections: Field of each section, by the section's name.
    """

    sections: Mapping[str, Field] = field(validator=min_len(1))

    def extract(self, records: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the sections of ``records["records"]``, an array of bytes of shape ``(rows, size)``."""
        if "records" not in records or records["records"].dtype != np.uint8:
            raise SigmaDataError("offsets: there are no records of bytes to split. Use the reader `bytes`.")
        return {name: _cut(name, section, records["records"]) for name, section in self.sections.items()}


def _cut(name: str, one: Field, records: np.ndarray) -> np.ndarray:
    dtype = np.dtype(one.dtype)
    end = one.offset + prod(one.shape) * dtype.itemsize
    if end > records.shape[1]:
        raise SigmaDataError(
            f"section {name!r}: ends with byte {end}; a record has {records.shape[1]}. Correct its offset."
        )
    raw: np.ndarray = np.ascontiguousarray(records[:, one.offset : end]).view(dtype).reshape(len(records), *one.shape)
    if one.scale is not None:
        return cast_values(raw * one.scale, np.float32, f"section {name!r}")
    wide = dtype.kind == "f" or dtype.itemsize == 8
    return cast_values(raw, dtype.newbyteorder("=") if wide else np.int32, f"section {name!r}")
