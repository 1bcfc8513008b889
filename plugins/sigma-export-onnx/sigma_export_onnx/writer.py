"""Nodes, constants and names of an ONNX graph while it is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from attrs import define, field
from onnx import StringStringEntryProto, TensorProto, helper, numpy_helper

from sigma_export_onnx.sizes import AnyNode, Multiple, Side, Sides

TYPES = {
    "bool": TensorProto.BOOL, "float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16,
    "float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "int32": TensorProto.INT32,
    "int64": TensorProto.INT64, "uint32": TensorProto.UINT32, "int8": TensorProto.INT8, "uint8": TensorProto.UINT8,
    "int16": TensorProto.INT16, "uint16": TensorProto.UINT16, "uint64": TensorProto.UINT64,
}  # fmt: skip
SMALL = 64  # bytes of constants that are shared
FEW = 1024  # bytes of a tensor that stays in the model itself
COUNT = "rows"  # the number of rows, as a vector of one entry


@define(eq=False)
class SharedNames:
    """The state shared by a graph and the bodies of its loops: constants, sizes and names."""

    counted: str  # the input whose first side is the number of rows
    taken: set[str]
    arrays: dict[str, np.ndarray] = field(factory=dict)
    heads: list[Any] = field(factory=list)  # nodes that compute sizes; they come first
    known: dict[Any, str] = field(factory=dict)

    def name(self, like: str) -> str:
        """Return a name that is not taken yet."""
        name, number = like, 1
        while name in self.taken:
            number += 1
            name = f"{like}_{number}"
        self.taken.add(name)
        return name


@define(eq=False)
class GraphWriter:
    """Write the nodes of one graph, or of the body of a loop."""

    shared: SharedNames
    origin: str = ""
    nodes: list[Any] = field(factory=list)

    def add(self, kind: str, *inputs: str, name: str = "", **attrs: Any) -> str:
        """Add a node of ONNX; return the name of its first output."""
        return self.add_node(kind, inputs, [name or self.name(kind)], **attrs)[0]

    def add_node(self, kind: str, inputs: Sequence[str], outputs: Sequence[str], **attrs: Any) -> Sequence[str]:
        """Add a node of ONNX with these outputs."""
        self.nodes.append(helper.make_node(kind, [*inputs], [*outputs], outputs[0], **attrs))
        return outputs

    def name(self, what: str) -> str:
        """Return a new name below that of the layer."""
        return self.shared.name(f"{self.origin or 'network'}/{what}")

    # -- constants -----------------------------------------------------------------------------------------------------
    def array(self, values: Any, dtype: str = "int64") -> str:
        """Return the name of a constant; small ones are shared."""
        array = np.asarray(values, dtype)
        key = (array.shape, dtype, array.tobytes()) if array.nbytes <= SMALL else None
        if key in self.shared.known:
            return self.shared.known[key]
        name = self.shared.name(_constant_name(array)) if key else self.name("array")
        self.shared.arrays[name] = array
        if key is not None:
            self.shared.known[key] = name
        return name

    def number(self, value: float, like: AnyNode) -> str:
        """Return the name of a scalar of the type of a value."""
        return self.array(value, like.dtype)

    # -- sizes ---------------------------------------------------------------------------------------------------------
    def vector(self, sides: Sides) -> str:
        """Return the name of sizes as a vector of int64."""
        if all(isinstance(side, int) for side in sides):
            return self.array(np.array(sides, np.int64))
        if sides not in self.shared.known:
            parts = [self._size(side) for side in sides]
            self.shared.known[sides] = parts[0] if len(parts) == 1 else self._head("Concat", *parts, axis=0)
        return self.shared.known[sides]

    def _size(self, side: Side) -> str:
        if isinstance(side, int):
            return self.array([side])
        if side not in self.shared.known:
            if side.times == 1:
                self.shared.known[side] = self._head("Shape", self.shared.counted, start=0, end=1)
            else:
                self.shared.known[side] = self._head("Mul", self._size(Multiple()), self.array([side.times]))
        return self.shared.known[side]

    def _head(self, kind: str, *inputs: str, **attrs: Any) -> str:
        name = self.shared.name(COUNT)
        self.shared.heads.append(helper.make_node(kind, [*inputs], [name], name, **attrs))
        return name

    # -- often used ----------------------------------------------------------------------------------------------------
    def reshape(self, x: str, shape: Sides) -> str:
        """Return a value in another shape."""
        fixed = [side for side in shape if isinstance(side, int)]
        if len(fixed) + 1 == len(shape) and 0 not in fixed:
            return self.add("Reshape", x, self.array([side if isinstance(side, int) else -1 for side in shape]))
        return self.add("Reshape", x, self.vector(shape), allowzero=1)

    def cast(self, x: str, dtype: str) -> str:
        """Return a value in another type."""
        return self.add("Cast", x, to=TYPES[dtype])


def _constant_name(array: np.ndarray) -> str:
    """Return a descriptive name of a small constant."""
    return f"constant/{array.dtype.name}{'x'.join(map(str, array.shape))}"


def declare_value(name: str, shape: Sides, dtype: str) -> Any:
    """Return the description of an input or an output."""
    sides = [
        side if isinstance(side, int) else "batch" if side.times == 1 else f"{side.times} * batch" for side in shape
    ]
    return helper.make_tensor_value_info(name, TYPES[dtype], sides)


def tensors(arrays: Mapping[str, np.ndarray], beside: BinaryIO | None = None) -> Iterator[Any]:
    """Yield arrays as initialisers; with a file ``beside`` the model, the numbers of large ones are written to it."""
    for name, array in arrays.items():
        values = np.ascontiguousarray(array)
        if beside is None or array.nbytes < FEW:
            yield numpy_helper.from_array(values, name)
        else:
            location = {"location": Path(beside.name).name, "offset": beside.tell(), "length": array.nbytes}
            beside.write(values.astype(values.dtype.newbyteorder("<"), copy=False).data)
            tensor = TensorProto(name=name, data_type=TYPES[array.dtype.name], dims=array.shape)
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.extend(StringStringEntryProto(key=key, value=str(x)) for key, x in location.items())
            yield tensor
