"""Kernels as CUDA C++: the frame of a kernel, and the text of fused loops."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable, Sequence

from attrs import define, field, frozen

from sigma_backend_cupy.graphs.fusion import KernelFrame, Loop
from sigma_backend_cupy.graphs.scalars import CTYPES, literal, lowest
from sigma_backend_cupy.text.elements import ArrayPointer, ElementText, Signature
from sigma_kernel.graph import Node

THREADS = 256
LANES = 32  # threads that read neighbours at once


@frozen
class Kernel:
    """A kernel: its text and name, the size of its launch, and the arrays that it takes after the control words.

    ``own`` are the nodes that it reads only at the element that it writes, so that it may overwrite them.
    """

    name: str
    text: str
    blocks: int
    threads: int
    parameters: tuple[ArrayPointer, ...]
    own: frozenset[Node] = frozenset()


def build_kernel(
    body: Iterable[str], blocks: int, threads: int, parameters: Sequence[ArrayPointer], own: Iterable[Node] = ()
) -> Kernel:
    """Return a kernel with this body, named by its text."""
    types = [f"{parameter.text} {parameter.name}" for parameter in parameters]
    head = f"({', '.join(['const int* control', *types])})"
    inner = "\n".join(indent(["SIGMA_ENTER(control);", *body]))
    name = "k" + hashlib.sha256(f"{head}{blocks}{threads}{inner}".encode()).hexdigest()[:16]
    text = f"SIGMA_KERNEL({name}, {threads}){head}\n{{\n{inner}\n}}\n"
    return Kernel(name, text, blocks, threads, tuple(parameters), frozenset(own))


def indent(lines: Iterable[str]) -> Iterable[str]:
    """Yield lines with the indentation of their braces."""
    depth = 1
    for line in lines:
        closing = len(line) - len(line.lstrip("}"))
        yield "    " * (depth - closing) + line
        depth += line.count("{") - line.count("}")


def loop_kernel(loop: Loop, stored: Collection[Node]) -> Kernel:
    """Return the kernel of fused loops, which writes the nodes that are ``stored``."""
    signature = Signature(loop, stored)
    if loop.frame.form is None:
        return _elementwise(loop, signature)
    return _Rows(loop, signature).kernel()


def _elementwise(loop: Loop, signature: Signature) -> Kernel:
    elements = ElementText(loop, signature, 0)
    frame = elements.frame
    for node, point in zip(loop.members, [frame.whole] * len(loop.members), strict=True):
        elements.value(node, point)
    writes = [
        f"{signature.pointer_to(x)}[{frame.whole}] = {elements.value(x, frame.whole)};" for x in loop.members
        if x in signature.stored
    ]  # fmt: skip
    kind, threads = frame.points.kind, min(THREADS, _power(frame.elements))
    body = [
        f"SIGMA_EACH({threads}) {{",
        f"const {kind} e = ({kind})SIGMA_BLOCK * {threads} + t;",
        f"if (e < {frame.elements}) {{",
        *frame.points.lines[0],
        *writes,
        "}",
        "}",
    ]
    blocks = -(-frame.elements // threads)
    return build_kernel(body, blocks, threads, signature.parameters, signature.private(frame.whole))


@define(eq=False)
class _Rows:
    """Text of a kernel that reduces rows: ``across`` rows per block, each by ``lanes`` threads, in phases."""

    loop: Loop
    signature: Signature
    across: int = field(init=False)
    lanes: int = field(init=False)
    inner: bool = field(init=False)  # whether neighbours in memory are of the same row

    def __attrs_post_init__(self) -> None:
        """Choose how threads share the rows."""
        frame = self.loop.frame
        assert frame.form is not None
        self.inner = frame.form[-1][1]
        if self.inner:
            self.lanes = min(THREADS, _power(max(frame.length // 4, min(frame.length, LANES))))
            self.across = min(THREADS // self.lanes, _power(frame.rows))
        else:
            self.across = min(LANES, _power(frame.rows))
            self.lanes = min(THREADS // self.across, _power(max(frame.length // 4, 1)))

    def kernel(self) -> Kernel:
        """Return the kernel."""
        loop, threads = self.loop, self.across * self.lanes
        shared = [line for k, x in enumerate(self._reductions()) for line in _declare_shared(k, x, threads)]
        body = [line for phase in range(self._phases()) for line in self._phase(phase, threads)]
        blocks = -(-loop.frame.rows // self.across)
        return build_kernel([*shared, *body], blocks, threads, self.signature.parameters)

    def _reductions(self, phase: int | None = None) -> list[Node]:
        phases = self.loop.phases
        every = [x for x in self.loop.members if x.op in ("sum", "max", "argmax")]
        return [x for x in every if phase is None or phases[x] == phase]

    def _phases(self) -> int:
        phases, stored = self.loop.phases, self.signature.stored
        reductions = {*self._reductions()}
        written = (phases[x] + (x in reductions) for x in self.loop.members if x in stored)
        return 1 + max(*written, *(phases[x] for x in reductions), 0)

    def _phase(self, phase: int, threads: int) -> list[str]:
        """Return the text of a phase: a loop over each row, and the tree that combines what threads found."""
        places = {x: f"row{k}" for k, x in enumerate(self._reductions())}
        base = f"x * {self.lanes}" if self.inner else "x"
        elements = ElementText(self.loop, self.signature, phase, {x: f"{name}[{base}]" for x, name in places.items()})
        frame, now = elements.frame, self._reductions(phase)
        elements.prepare([*now, *self._output_nodes(phase)])
        for k, x in enumerate(now):
            frame.points.lines[1].extend(_accumulate(x, f"a{k}", elements.value(x.inputs[0], frame.whole), frame))
        stores = self._stores(phase, elements)
        head, kind = self._head(), frame.points.kind
        inside = [*frame.points.lines[0], *self._loop(frame, kind), *stores]
        starts = [line for k, x in enumerate(now) for line in _start(x, f"a{k}")]
        ends = [line for k, x in enumerate(now) for line in _keep(x, places[x], f"a{k}")]
        guarded = [f"if (o < {frame.rows}) {{", *inside, "}"]
        body = [f"SIGMA_THREADS({threads}) {{", *head, *starts, *guarded, *ends, "}"]
        return [*body, *self._tree([(x, places[x]) for x in now], threads)]

    def _head(self) -> list[str]:
        kind = self.loop.frame.points.kind
        thread = (f"t / {self.lanes}", f"t % {self.lanes}")
        x, y = thread if self.inner else (f"t % {self.across}", f"t / {self.across}")
        return [
            f"const {kind} x = {x}, y = {y}, o = ({kind})SIGMA_BLOCK * {self.across} + x;",
        ]

    def _loop(self, frame: KernelFrame, kind: str) -> list[str]:
        if all(line.startswith(f"const {kind} i") for line in frame.points.lines[1]):
            return []
        head = f"for ({kind} r = y; r < {frame.length}; r += {self.lanes}) {{"
        return [head, *frame.points.lines[1], "}"]

    def _output_nodes(self, phase: int) -> list[Node]:
        """Return the nodes that a phase writes: results of reductions one phase later."""
        phases, reductions = self.loop.phases, {*self._reductions()}
        return [
            x for x in self.loop.members
            if x in self.signature.stored and phases[x] + (x in reductions) == phase
        ]  # fmt: skip

    def _stores(self, phase: int, elements: ElementText) -> list[str]:
        """Write elements within the loop, and return the statements that write results of rows."""
        frame, rows = elements.frame, []
        for x in self._output_nodes(phase):
            if math.prod(x.shape) == frame.elements:
                value = elements.value(x, frame.whole)
                frame.points.lines[1].append(f"{self.signature.pointer_to(x)}[{frame.whole}] = {value};")
            else:
                rows.append(f"{self.signature.pointer_to(x)}[{frame.row}] = {elements.value(x, frame.row)};")
        return ["if (y == 0) {", *rows, "}"] if rows else []

    def _tree(self, found: Sequence[tuple[Node, str]], threads: int) -> list[str]:
        if not found or self.lanes == 1:
            return []
        y, other = ("t % " + str(self.lanes), "t + step") if self.inner else (f"t / {self.across}", "")
        other = other or f"t + step * {self.across}"
        return [
            f"for (int step = {self.lanes // 2}; step > 0; step /= 2) {{",
            f"SIGMA_THREADS({threads}) {{",
            f"if ({y} < step) {{",
            *(line for x, name in found for line in _combine(x, name, other)),
            "}",
            "}",
            "}",
        ]


# -- reductions --------------------------------------------------------------------------------------------------------
def _power(count: int) -> int:
    """Return the least power of two that is at least ``count``."""
    return 1 << max(count - 1, 0).bit_length()


def _neutral(node: Node) -> str:
    x = node.inputs[0]
    return literal(0, x.dtype) if node.op == "sum" else lowest(x.dtype)


def _declare_shared(k: int, node: Node, threads: int) -> list[str]:
    lines = [f"SIGMA_SHARED {CTYPES[node.dtype]} row{k}[{threads}];"]
    best = f"SIGMA_SHARED {CTYPES[node.inputs[0].dtype]} best_row{k}[{threads}];"
    return [*lines, best] if node.op == "argmax" else lines


def _start(node: Node, name: str) -> list[str]:
    kind = CTYPES[node.inputs[0].dtype]
    if node.op == "argmax":
        return [f"{kind} best_{name} = {_neutral(node)};", f"int {name} = 2147483647;"]
    return [f"{kind} {name} = {_neutral(node)};"]


def _fold_pair(node: Node, x: str, y: str) -> str:
    if node.op == "max":
        return f"sg_maximum({x}, {y})"
    return f"sg_add({x}, {y})" if node.dtype in ("int32", "int64") else f"{x} + {y}"


def _accumulate(node: Node, name: str, value: str, frame: KernelFrame) -> list[str]:
    if node.op != "argmax":
        return [f"{name} = {_fold_pair(node, name, value)};"]
    return [f"if (sg_beats({value}, (int)r, best_{name}, {name})) {{", f"best_{name} = {value};", f"{name} = r;", "}"]


def _keep(node: Node, place: str, name: str) -> list[str]:
    lines = [f"{place}[t] = {name};"]
    return [*lines, f"best_{place}[t] = best_{name};"] if node.op == "argmax" else lines


def _combine(node: Node, place: str, other: str) -> list[str]:
    if node.op != "argmax":
        return [f"{place}[t] = {_fold_pair(node, f'{place}[t]', f'{place}[{other}]')};"]
    values = f"best_{place}[{other}], {place}[{other}], best_{place}[t], {place}[t]"
    both = [f"best_{place}[t] = best_{place}[{other}];", f"{place}[t] = {place}[{other}];"]
    return [f"if (sg_beats({values})) {{", *both, "}"]
