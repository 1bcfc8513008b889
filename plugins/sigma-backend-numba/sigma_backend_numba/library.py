"""The functions of one program: each text once, in an order in which callers come after what they call."""

from __future__ import annotations

from attrs import define, field

from sigma_backend_numba import convolutions, cores, plain, products
from sigma_backend_numba.form import Form
from sigma_backend_numba.groups import Group, Grouping
from sigma_backend_numba.regions import Region
from sigma_backend_numba.schedule import Schedule
from sigma_backend_numba.task import Block, Task

WRITERS = {**plain.WRITERS, **convolutions.WRITERS}


@define(eq=False)
class Library:
    """Names by text."""

    names: dict[str, str] = field(factory=dict)

    def name(self, text: str) -> str:
        """Return the name of a function, a new one for a new text."""
        return self.names.setdefault(text, f"task{len(self.names)}")

    def text(self) -> list[str]:
        """Return all functions."""
        return [f"def {name}{text}" for text, name in self.names.items()]


def write_all(form: Form, library: Library, by_sample: bool = True) -> list[list[Block]]:
    """Return the blocks of a form, stage by stage."""
    schedule = Schedule(form, Grouping(form), by_sample)
    return [
        [_block(schedule, region, library) for region in stage if not _is_part(region.groups[0])]
        for stage in schedule.stages
    ]


def _block(schedule: Schedule, region: Region, library: Library) -> Block:
    tasks = [_written(schedule, group, library) for group in region.groups]
    return Block(tasks, region.samples)


def _is_part(group: Group) -> bool:
    """Say whether a group is a scan's result, which the scan itself writes."""
    return group.core is not None and group.core.op == "part"


def _written(schedule: Schedule, group: Group, library: Library) -> Task:
    from sigma_backend_numba.scans import Scan  # a scan writes the tasks of its body

    task = Task(schedule, group)
    if group.kind == "loop":
        cores.loop(task)
    elif group.kind == "fold":
        cores.fold(task)
    elif group.kind == "product" and plain.core(task).op == "matmul":
        products.Product(task, plain.core(task)).write()
    elif plain.core(task).op == "scan":
        Scan(task, plain.core(task), library).write()
    else:
        WRITERS[plain.core(task).op](task, plain.core(task))
    task.name = library.name(task.text())
    return task
