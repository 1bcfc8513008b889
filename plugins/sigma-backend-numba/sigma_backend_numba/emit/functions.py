"""Write the tasks of a program with the writer for their kind; equal texts become one function."""

from __future__ import annotations

from typing import Any

from attrs import define, field

from sigma_backend_numba.emit import attention, convolutions, loops, matmul, packed_products, paired_planes, single_ops
from sigma_backend_numba.emit.equal_tasks import Pattern, TaskDescription, make_pattern
from sigma_backend_numba.emit.scans import Scan, body_form
from sigma_backend_numba.emit.task import Block, Task
from sigma_backend_numba.lower.canonical import Form
from sigma_backend_numba.plan.fusion import Grouping
from sigma_backend_numba.plan.groups import Group
from sigma_backend_numba.plan.sample_regions import Region
from sigma_backend_numba.plan.schedule import GroupSchedule

WRITERS = {
    **single_ops.WRITERS,
    **convolutions.WRITERS,
    **attention.WRITERS,
    **paired_planes.WRITERS,
    "packed": packed_products.write_packed_product,
}


@define(eq=False)
class Library:
    """The functions of one program: names by text, callees before their callers."""

    names: dict[str, str] = field(factory=dict)
    patterns: dict[Any, Pattern] = field(factory=dict)  # tasks that were written, by what their texts depend on

    def name(self, text: str) -> str:
        """Return the name of the function with this text; add the function if it is new."""
        return self.names.setdefault(text, f"task{len(self.names)}")

    def text(self) -> list[str]:
        """Return the source of all functions."""
        return [f"def {name}{text}" for text, name in self.names.items()]


def write_all(form: Form, library: Library, by_sample: bool = True) -> list[list[Block]]:
    """Return the blocks of a form, stage by stage."""
    schedule = GroupSchedule(form, Grouping(form), by_sample)
    return [
        [block for region in stage if not _is_part(region.groups[0]) for block in _blocks(schedule, region, library)]
        for stage in schedule.stages
    ]


def _blocks(schedule: GroupSchedule, region: Region, library: Library) -> list[Block]:
    """Return the code of a region: one block, or several independent ones where many values are joined."""
    group, *others = region.groups
    if group.core is not None and group.op == "concat":
        parts = range(0, len(group.core.inputs), single_ops.JOINED)
        return [Block([_write_task(schedule, group, library, first)], 1) for first in parts]
    return [Block([_write_task(schedule, each, library) for each in (group, *others)], region.samples)]


def _is_part(group: Group) -> bool:
    """Return whether a group is a result of a scan, which the scan itself writes."""
    return group.op == "part"


def _write_task(schedule: GroupSchedule, group: Group, library: Library, first: int = 0) -> Task:
    """Return the code of a group; a text that another task has, but for the places of its values, is written once."""
    task = Task(schedule, group)
    description = TaskDescription(task)
    key = description.key()
    if key in library.patterns:
        library.patterns[key].fill(task, description)
        return task
    _write_text(task, library, first)
    task.name = library.name(task.text())
    if key is not None and (pattern := make_pattern(task, description)):
        library.patterns[key] = pattern
    return task


def _write_text(task: Task, library: Library, first: int) -> None:
    """Write the lines of a task with the writer for its kind."""
    group = task.group
    if group.kind == "loop":
        loops.loop(task)
    elif group.kind == "fold":
        loops.fold(task)
    elif group.kind == "product" and group.op in ("matmul", "mixed"):
        matmul.MatrixProduct(task, single_ops.core(task)).write()
    elif group.op == "scan":
        scan = single_ops.core(task)
        Scan(task, scan, write_all(body_form(scan), library, by_sample=False)).write()
    elif group.op == "concat":
        single_ops.concat(task, single_ops.core(task), first)
    else:
        WRITERS[group.op](task, single_ops.core(task))
