"""Write scans: the body's tasks inside a loop over the steps, for each chunk of the batch.

A stacked carry is stored in the stack: a step reads it from its own entry, and writes it to the next step's. Other
carries have two buffers, which alternate.
"""

from __future__ import annotations

from attrs import define, field

from sigma_backend_numba.emit.task import Argument, Block, NumberArgument, Task, indent, size
from sigma_backend_numba.lower.canonical import STATE, Form, Wiring
from sigma_backend_numba.lower.layout import source
from sigma_backend_numba.scalars import SHORT
from sigma_kernel.graph import BYTES, Node


def body_form(node: Node) -> Form:
    """Return the canonical form of a scan's body."""
    body = node.attrs["body"]
    return Form(body, Wiring((STATE,) * len(body.inputs), (None,) * len(body.outputs)))


@define(eq=False)
class Scan:
    """The text of one scan.  ``stages`` holds the tasks of its body, which computes one of ``chunks`` chunks."""

    task: Task
    node: Node
    stages: list[list[Block]]  # groups of the body
    parts: dict[int, list[str]] = field(factory=dict, init=False)  # number of each result -> its position
    chunks: int = field(init=False)
    carries: int = field(init=False)
    length: int = field(init=False)
    _operands: list[str] = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Read the attributes of the scan."""
        attrs = self.node.attrs
        self.chunks, self.carries, self.length = attrs.get("chunks", 1), attrs["carries"], attrs["length"]
        for part in self.task.schedule.form.parts.get(self.node, ()):
            self.parts.setdefault(part.attrs["index"], []).append(self.task.storage(part))
        self._operands = [self.task.storage(source(x)) for x in self.node.inputs]

    def write(self) -> None:
        """Write the loops over chunks and steps."""
        tasks = [task for stage in self.stages for block in stage for task in block.tasks]
        for task in tasks:
            task.join()
        schedule = tasks[0].schedule if tasks else None
        lines = self._memory(schedule.arena_bytes if schedule else 0, max((t.scratch for t in tasks), default=0))
        chunk = [line for i in range(self.carries) for line in self._write_first_carry(i)]
        chunk += [f"for step in range({self.length}):", *indent(self._step(tasks))]
        chunk += [line for i in range(self.carries) for line in self._write_last_carry(i)]
        self.task.lines += [*lines, "for k in range(lo, hi):", *indent(chunk)]
        cost = sum(task.cost for task in tasks) * self.length * self.chunks
        self.task.cut(self.chunks, cost, self.chunks)

    def _memory(self, arena: int, scratch: int) -> list[str]:
        """Return lines that define the body's arena and scratch."""
        rooms = (self.task.room(max(arena, 1), "bool"), self.task.room(max(scratch, 1), "bool"))
        return [f"{name} = address({room})" for name, room in zip(("arena", "scratch"), rooms, strict=True)]

    # -- carries -------------------------------------------------------------------------------------------------------
    def _stack(self, i: int) -> list[str]:
        """Return where a carry is stacked as it comes in, if there is a step."""
        return self.parts.get(len(self.node.attrs["body"].outputs) + i, []) if self.length else []

    def _write_first_carry(self, i: int) -> list[str]:
        """Return lines that provide the first value of a carry."""
        first, stack = self._chunk_entry(i, self._operands[i]), self._stack(i)
        if not stack:
            return [f"c{i} = {first}"]
        start = self._entry(stack[0], self.length - 1 if self.node.attrs["reverse"] else 0, self._output(i))
        return [f"c{i} = {start}", f"copied(c{i}, {first}, {_bytes(self._output(i))})"]

    def _write_last_carry(self, i: int) -> list[str]:
        """Return lines that copy the last value of a carry."""
        results = self.parts.get(i, [])
        return [f"copied({self._chunk_entry(i, to)}, c{i}, {_bytes(self._output(i))})" for to in results]

    def _next_entry(self, i: int) -> str:
        """Return where a step writes a carry: to the entry of the next step, or to the buffer that it does not read."""
        output, stack = self._output(i), self._stack(i)
        if not stack:
            return f"at({self.task.room(2 * size(output), output.dtype)}, step % 2 * {size(output)})"
        after = "max(t - 1, 0)" if self.node.attrs["reverse"] else f"min(t + 1, {self.length - 1})"
        spare = self.task.room(size(output), output.dtype)
        return f"sel(step < {self.length - 1}, {self._entry(stack[0], after, output)}, {spare})"

    # -- one step ------------------------------------------------------------------------------------------------------
    def _step(self, tasks: list[Task]) -> list[str]:
        """Return the lines of one step."""
        lines = [f"t = {self.length - 1} - step" if self.node.attrs["reverse"] else "t = step"]
        lines += [f"c{i} = {self._read(i)}" for i in range(self.carries, len(self._operands))]
        outputs = self.node.attrs["body"].outputs
        for i, output in enumerate(outputs):
            lines.append(f"n{i} = {self._next_entry(i) if i < self.carries else self._result(i, output)}")
        for i in range(self.carries):
            lines += self._copies(self._stack(i)[1:], f"c{i}", self._output(i))
        fault = self.task.argument("fault", 0, "int64")
        for task in tasks:
            lines += task.write_chunks(lambda argument: self._resolve(argument, fault))
        for i, output in enumerate(outputs[self.carries :], self.carries):
            lines += self._copies(self.parts.get(i, [])[1:], f"n{i}", output)
        return lines + [f"c{i} = n{i}" for i in range(self.carries)]

    def _read(self, i: int) -> str:
        """Return where the body reads a sequence or a constant."""
        name, inner, attrs = self._operands[i], self.node.attrs["body"].inputs[i], self.node.attrs
        splits = self.chunks > 1 and attrs["split"][i]
        if i >= self.carries + attrs["sequences"]:
            return f"at({name}, k * {size(inner)})" if splits else name
        return self._entry(name, "t", inner) if splits else f"at({name}, t * {size(inner)})"

    def _result(self, i: int, output: Node) -> str:
        """Return where the body writes an output: to its place in the stack, or nowhere."""
        stacks = self.parts.get(i)
        return self._entry(stacks[0], "t", output) if stacks else self.task.room(size(output), output.dtype)

    def _copies(self, stacks: list[str], value: str, like: Node) -> list[str]:
        """Return lines that copy a value to its place in further stacks."""
        return [f"copied({self._entry(to, 't', like)}, {value}, {_bytes(like)})" for to in stacks]

    def _resolve(self, argument: Argument, fault: str) -> str:
        """Return what a task of the body gets for an argument."""
        if isinstance(argument, NumberArgument):
            return self.task.number(argument.value, argument.dtype)
        names = {"input": f"c{argument.number}", "output": f"n{argument.number}", "fault": fault}
        whole = names.get(argument.kind) or f"as_{SHORT[argument.dtype]}({argument.kind} + {argument.number})"
        return argument.write_pointer(whole)

    # -- places --------------------------------------------------------------------------------------------------------
    def _output(self, i: int) -> Node:
        node: Node = self.node.attrs["body"].outputs[i]
        return node

    def _chunk_entry(self, i: int, name: str) -> str:
        """Return the place of this chunk of a carry's first or last value."""
        return f"at({name}, k * {size(self._output(i))})" if self.chunks > 1 else name

    def _entry(self, stack: str, t: str | int, like: Node) -> str:
        """Return the place of this chunk of an entry of a stack."""
        place = f"({t} * {self.chunks} + k)" if self.chunks > 1 else f"{t}"
        return f"at({stack}, {place} * {size(like)})"


def _bytes(node: Node) -> int:
    return size(node) * BYTES[node.dtype]
