"""Write scans: the body's tasks inside a loop, with two alternating sets of buffers for the carries."""

from __future__ import annotations

from attrs import define, field

from sigma_backend_numba.emit.task import Block, Pointer, Task, indented, size
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
    """The text of one scan.  ``stages`` holds the tasks of its body."""

    task: Task
    node: Node
    stages: list[list[Block]]  # groups of the body
    parts: dict[int, list[str]] = field(factory=dict, init=False)  # number of each result -> its position

    def write(self) -> None:
        """Write the loop of the scan."""
        body, carries = self.node.attrs["body"], self.node.attrs["carries"]
        for part in self.task.schedule.form.parts.get(self.node, ()):
            self.parts.setdefault(part.attrs["index"], []).append(self.task.storage(part))
        tasks = [task for stage in self.stages for block in stage for task in block.tasks]
        for task in tasks:
            task.join()
        schedule = tasks[0].schedule if tasks else None
        lines = self._memory(schedule.arena_bytes if schedule else 0, max((t.scratch for t in tasks), default=0))
        lines += [f"c{i} = {name}" for i, name in enumerate(self._operands()[:carries])]
        lines += [f"for step in range({self.node.attrs['length']}):", *indented(self._step(tasks, carries))]
        for i in range(carries):
            lines += [f"copied({to}, c{i}, {_bytes(body.outputs[i])})" for to in self.parts.get(i, ())]
        self.task.lines += lines

    def _operands(self) -> list[str]:
        return [self.task.storage(source(x)) for x in self.node.inputs]

    def _memory(self, arena: int, scratch: int) -> list[str]:
        """Return lines that define the body's arena and scratch."""
        rooms = (self.task.room(max(arena, 1), "bool"), self.task.room(max(scratch, 1), "bool"))
        return [f"{name} = address({room})" for name, room in zip(("arena", "scratch"), rooms, strict=True)]

    def _step(self, tasks: list[Task], carries: int) -> list[str]:
        """Return the lines of one step."""
        attrs, operands = self.node.attrs, self._operands()
        graph = attrs["body"]
        lines = [f"t = {attrs['length'] - 1} - step" if attrs["reverse"] else "t = step"]
        for i, name in enumerate(operands[carries:], carries):
            moves = i < carries + attrs["sequences"]
            lines.append(f"c{i} = at({name}, t * {size(graph.inputs[i])})" if moves else f"c{i} = {name}")
        for i, output in enumerate(graph.outputs):
            lines.append(f"n{i} = {self._result(i, output, carries)}")
            for incoming in self.parts.get(len(graph.outputs) + i, ()) if i < carries else ():
                lines.append(f"copied(at({incoming}, t * {size(output)}), c{i}, {_bytes(output)})")
        fault = self.task.argument("fault", 0, "int64")
        for task in tasks:
            lines += task.whole(lambda pointer: _resolved(pointer, fault))
        for i, output in enumerate(graph.outputs):
            stacks = self.parts.get(i, ())
            rest = () if i < carries else stacks[1:]
            lines += [f"copied(at({to}, t * {size(output)}), n{i}, {_bytes(output)})" for to in rest]
        return lines + [f"c{i} = n{i}" for i in range(carries)]

    def _result(self, i: int, output: Node, carries: int) -> str:
        """Return where the body writes a result: to a carry's current buffer, to its place in the stack, or nowhere."""
        if i < carries:
            return f"at({self.task.room(2 * size(output), output.dtype)}, step % 2 * {size(output)})"
        if i in self.parts:
            return f"at({self.parts[i][0]}, t * {size(output)})"
        return self.task.room(size(output), output.dtype)


def _bytes(node: Node) -> int:
    return size(node) * BYTES[node.dtype]


def _resolved(pointer: Pointer, fault: str) -> str:
    """Return the argument that a task of the body gets for a pointer."""
    names = {"input": f"c{pointer.number}", "output": f"n{pointer.number}", "fault": fault}
    whole = names.get(pointer.kind) or f"as_{SHORT[pointer.dtype]}({pointer.kind} + {pointer.number})"
    return pointer.moved(whole)
