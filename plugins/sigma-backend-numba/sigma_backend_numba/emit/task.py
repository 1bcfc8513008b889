"""The text of one task: a function of pointers, of numbers, and of a range of the axis that is cut into chunks.

Names are numbered in the order of use, so that equal tasks have equal text and are compiled once.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from attrs import define, evolve, field, frozen

from sigma_backend_numba.compiler.units import OPEN
from sigma_backend_numba.emit.costs import PIECE
from sigma_backend_numba.lower.canonical import CHUNKS
from sigma_backend_numba.plan.groups import Group
from sigma_backend_numba.plan.schedule import GroupSchedule
from sigma_backend_numba.scalars import SHORT
from sigma_kernel.graph import BYTES, Node


@frozen
class Pointer:
    """One argument of a task: an input, an output, a value in the arena, scratch, the rows, or the fault location.

    A ``local`` pointer moves back by ``step`` bytes per sample, because its memory holds one sample only.  ``offset``
    is the number of elements before the first one that the task reads or writes.
    """

    kind: str
    number: int
    dtype: str
    step: int = 0
    offset: int = 0

    @property
    def beginning(self) -> Pointer:
        """Return the pointer to the beginning of the storage."""
        return evolve(self, offset=0) if self.offset else self

    def write_pointer(self, name: str) -> str:
        """Return the argument as text, given the name of the storage."""
        return f"at({name}, {self.offset})" if self.offset else name


@frozen
class NumberArgument:
    """One argument of a task: a number, such as that of the rows, that its code does not depend on."""

    value: float
    dtype: str


Argument = Pointer | NumberArgument


@define(eq=False)
class Task:
    """One group as text, in ``chunks`` of ``extent``.  Costs are in nanoseconds, ``scratch`` is in bytes."""

    schedule: GroupSchedule
    group: Group
    arguments: dict[Argument, str] = field(factory=dict, init=False)
    lines: list[str] = field(factory=list, init=False)
    chunks: int = field(default=1, init=False)
    parts: int = field(default=0, init=False)  # chunks with a partial sum each; 0: any number of chunks
    extent: int = field(default=1, init=False)
    cost: float = field(default=0.0, init=False)
    scratch: int = field(default=0, init=False)
    name: str = field(default="", init=False)
    _is_end_open: bool = field(default=False, init=False)
    calls: dict[str, None] = field(factory=dict, init=False)  # other functions that the text calls, in order
    _variables: int = field(default=0, init=False)
    _bases: dict[Node, int] = field(factory=dict, init=False)  # offset of the part of a value that a pointer refers to

    # -- arguments -----------------------------------------------------------------------------------------------------
    def argument(self, kind: str, number: int, dtype: str) -> str:
        """Return the name of an argument."""
        return self._argument_name(Pointer(kind, number, dtype))

    def _argument_name(self, pointer: Pointer) -> str:
        return self.arguments.setdefault(pointer, f"a{len(self.arguments)}")

    def number(self, value: float, dtype: str = "int64") -> str:
        """Return the name of a number that is an argument, so that tasks which differ in it only have equal text.

        LLVM does not know it: so it is no bound of an innermost loop, whose vectors depend on it.
        """
        return self.arguments.setdefault(NumberArgument(value, dtype), f"{OPEN}{len(self.arguments)}")

    def storage(self, node: Node) -> str:
        """Return the pointer to a value in memory: an input, an output, or part of the arena."""
        return self._argument_name(self.place_of(node))

    def part(self, node: Node, offset: int) -> tuple[str, int]:
        """Return a pointer into a value, and the distance in elements from it to ``offset``.

        The first offset becomes the pointer's: tasks that differ only in the part that they read have equal text.
        """
        if not offset:
            return self.storage(node), 0
        base = self._bases.setdefault(node, offset)
        return self._argument_name(evolve(self.place_of(node), offset=base)), offset - base

    def place_of(self, node: Node) -> Pointer:
        """Return the pointer to the storage of a value."""
        form, dtype = self.schedule.form, node.dtype
        if node in self.schedule.within:
            whole, place = self.schedule.within[node]
            return evolve(self.place_of(whole), offset=place)
        if node in form.places:
            return Pointer("input", form.places[node], dtype)
        if node in self.schedule.updates:
            return Pointer("input", self.schedule.updates[node], dtype)
        if node in self.schedule.delivered:
            return Pointer("output", self.schedule.delivered[node], dtype)
        if node in self.schedule.locals:
            return Pointer("local", self.schedule.locals[node], dtype, prod(node.shape[1:]) * BYTES[dtype])
        return Pointer("arena", self.schedule.offsets[node], dtype)

    def room(self, elements: int, dtype: str = "float32") -> str:
        """Return a pointer to new scratch memory of this thread."""
        start = self.scratch
        self.scratch += -(-elements * BYTES[dtype] // 64) * 64 + 64
        return self.argument("scratch", start, dtype)

    def variable(self) -> str:
        """Return a new name."""
        self._variables += 1
        return f"x{self._variables}"

    @property
    def pointers(self) -> list[Pointer]:
        """Return the pointers among the arguments."""
        return [x for x in self.arguments if isinstance(x, Pointer)]

    def leave_end_open(self) -> None:
        """Compile the task for any number of rounds of the loop that is cut into chunks."""
        self._is_end_open = True

    # -- cutting and text ----------------------------------------------------------------------------------------------
    def share(self, cost: float, extent: int, least: int = 1) -> None:
        """Cut the task into chunks according to its own cost."""
        self.cut(int(cost // PIECE), cost, extent, least)

    def cut(self, pieces: int, cost: float, extent: int, least: int = 1) -> None:
        """Cut the task into this many chunks, or as many as are allowed."""
        self.cost, self.extent = cost, extent
        self.chunks = max(1, min(CHUNKS, pieces, extent // least))

    def join(self) -> None:
        """Undo the cut: one thread runs the task."""
        self.chunks = self.parts or 1

    def take_over(self, other: Task) -> None:
        """Take over the name of a task of equal text, and all that was found out when it was written."""
        self.name, self.cost, self.scratch = other.name, other.cost, other.scratch
        self.chunks, self.parts, self.extent = other.chunks, other.parts, other.extent

    def text(self) -> str:
        """Return the parameters and the body."""
        end, lines = (f"{OPEN}s", [f"hi = {OPEN}s"]) if self._is_end_open else ("hi", [])
        names = ", ".join([*self.arguments.values(), "lo", end, "ch"])
        return "\n    ".join([f"({names}):", *lines, *(self.lines or ["pass"])]) + "\n"

    def call(self, resolve: Callable[[Argument], str], lo: str, hi: str, chunk: str) -> str:
        """Return the call of the task."""
        return f"{self.name}({', '.join([*map(resolve, self.arguments), lo, hi, chunk])})"

    def write_chunks(self, resolve: Callable[[Argument], str]) -> list[str]:
        """Return lines that run all chunks in order."""
        if self.chunks == 1:
            return [self.call(resolve, "0", str(self.extent), "0")]
        return [f"for ch in range({self.chunks}):", "    " + self.piece(resolve)]

    def piece(self, resolve: Callable[[Argument], str]) -> str:
        """Return the call for chunk ``ch``."""
        lo, hi = (f"{number} * {self.extent} // {self.chunks}" for number in ("ch", "(ch + 1)"))
        return self.call(resolve, lo, hi, "ch")


@frozen(eq=False)
class Block:
    """Tasks that alternate sample by sample, or a single task."""

    tasks: list[Task]
    samples: int

    @property
    def chunks(self) -> int:
        """Return the number of pieces that may run in parallel."""
        return max(task.parts for task in self.tasks) or max(task.chunks for task in self.tasks)

    @property
    def cost(self) -> float:
        """Return the approximate cost on one thread, in nanoseconds."""
        return sum(task.cost for task in self.tasks)

    def write_chunks(self, resolve: Callable[[Argument], str]) -> list[str]:
        """Return lines that run all chunks in order."""
        if len(self.tasks) == 1:
            return self.tasks[0].write_chunks(resolve)
        return [f"for ch in range({self.chunks}):", *indent(self.piece(resolve))]

    def piece(self, resolve: Callable[[Argument], str]) -> list[str]:
        """Return lines for chunk ``ch``."""
        if len(self.tasks) == 1:
            return [self.tasks[0].piece(resolve)]
        lines = [f"for n in range(ch * {self.samples} // {self.chunks}, (ch + 1) * {self.samples} // {self.chunks}):"]
        for task in self.tasks:
            each = task.extent // self.samples
            lines.append("    " + task.call(resolve, f"n * {each}", f"(n + 1) * {each}", "ch"))
        return lines


def size(node: Node) -> int:
    """Return the number of elements."""
    return prod(node.shape)


def short(node: Node) -> str:
    """Return the name of a node's dtype in generated code."""
    return SHORT[node.dtype]


def indent(lines: list[str], depth: int = 1) -> list[str]:
    """Indent lines by one level."""
    return ["    " * depth + line for line in lines]
