"""Write a whole program: its tasks, and the burst that runs them step by step on any number of threads.

A burst takes a table of addresses: inputs, outputs, the elements by which each input advances on a step, then rows, how
many rows a block has, arena, ticket, finished pieces, faults, scratch and places.  Places are numbers from which the
parts of a long burst learn where the values of their tasks lie.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from operator import methodcaller
from typing import Any, TypedDict

import numpy as np
from attrs import define, evolve, field, frozen

from sigma_backend_numba.emit import costs
from sigma_backend_numba.emit.functions import Library, write_all
from sigma_backend_numba.emit.task import Argument, Block, NumberArgument, Pointer, Task, indent, size
from sigma_backend_numba.lower.canonical import STEER, Form, Wiring
from sigma_backend_numba.lower.kernels import Kernel, used
from sigma_backend_numba.scalars import FLOATING, SHORT, literal
from sigma_kernel.graph import Graph

ROUGHLY = "# roughly"  # the first line of programs whose exponentials, logarithms and tangents may be approximations
SPECIAL = ("rows", "count", "arena", "ticket", "ended", "fault", "scratch", "places")
# Tasks that one function calls: LLVM's compile time grows faster than the function.  A number with many divisors, so
# that functions which call the tasks of equal layers are equal.
LEG = 60
NO_ROW = 2  # the fault of a minibatch that names a row outside its block


class Needs(TypedDict, total=False):
    """What the caller of a program must prepare: bytes of memory, places, and the largest useful number of threads.

    Empty for a program of no graph, whose caller fills its table.
    """

    arena: int
    scratch: int
    threads: int
    places: list[int]


@frozen(eq=False)
class Job:
    """Everything that identifies a program: a graph of primitives, and what else its code depends on.

    ``batch`` is the number of rows of a minibatch; ``watched`` is the output that must stay finite; ``constants`` are
    the arrays that the last inputs hold.
    """

    graph: Graph
    frame: Wiring
    batch: int = 0
    watched: int | None = None
    approximate: bool = False
    constants: Sequence[np.ndarray] = ()

    def __str__(self) -> str:
        """Return a text that is equal only for equal jobs; names of inputs have no influence."""
        around = [self.frame.kinds, self.frame.targets, self.batch, self.watched, self.approximate]
        return json.dumps([_graph_key(self.graph), around], default=methodcaller("item"))  # numbers of numpy

    def kernels(self) -> dict[str, Kernel]:
        """Return the external functions that the program calls, by symbol."""
        return used(self.graph)

    def write_program(self) -> tuple[Needs, str]:
        """Return the requirements of the program and its text."""
        program = source(self)
        return {
            "arena": program.arena_bytes,
            "scratch": program.scratch_bytes,
            "threads": program.threads,
            "places": program.places,
        }, program.text


def _graph_key(graph: Graph) -> list[Any]:
    """Return a graph as lists, numbers and texts; TypeError for an attribute of another type."""
    places = graph.places()
    rows = [
        [n.op, [places[x] for x in n.inputs], [] if n.op == "input" else _attribute_pairs(n.attrs), n.shape, n.dtype]
        for n in places
    ]
    return [rows, *([places[node] for node in ends] for ends in (graph.inputs, graph.outputs))]


def _attribute_pairs(attrs: Mapping[str, Any]) -> list[Any]:
    return [[name, _graph_key(x) if isinstance(x, Graph) else x] for name, x in sorted(attrs.items())]


@frozen(eq=False)
class ProgramSource:
    """The text of a program and what its caller must prepare: bytes, and the largest useful number of threads."""

    graph: Graph
    frame: Wiring
    text: str
    arena_bytes: int
    scratch_bytes: int
    threads: int
    tasks: int
    places: list[int] = field(factory=list)

    def place(self, special: str) -> int:
        """Return the index of a special entry in the table."""
        return 2 * len(self.graph.inputs) + len(self.graph.outputs) + SPECIAL.index(special)

    def moving(self, pointer: Pointer) -> int:
        """Return the index of the elements by which an input advances."""
        return len(self.graph.inputs) + len(self.graph.outputs) + pointer.number

    @property
    def length(self) -> int:
        """Return the number of entries in the table."""
        return self.place(SPECIAL[-1]) + 1


def source(job: Job) -> ProgramSource:
    """Return the program of a job."""
    form, library = Form(job.graph, job.frame), Library()
    stages = write_all(form, library)
    threads = _threads(stages)
    tasks = _list_tasks(stages)
    for task in tasks if threads == 1 else ():
        task.join()
    scratch = max((task.scratch for task in tasks), default=0) + 256
    arena, local = (tasks[0].schedule.arena_bytes, tasks[0].schedule.local_bytes) if tasks else (0, 0)
    unfinished = ProgramSource(job.graph, job.frame, "", arena, scratch + local, threads, len(tasks))
    burst = _Burst(unfinished, job.batch, f"local = scratch + {scratch}")
    functions = burst.texts(stages, job.watched)
    text = "\n\n".join([*([ROUGHLY] if job.approximate else []), *library.text(), *functions]) + "\n"
    return evolve(unfinished, text=text, places=burst.places)


def _list_tasks(stages: list[list[Block]]) -> list[Task]:
    """Return the tasks of these stages."""
    return [task for stage in stages for block in stage for task in block.tasks]


def _threads(stages: list[list[Block]]) -> int:
    """Return the number of useful threads: one, if two would hardly be faster."""
    alone = sum(block.cost for stage in stages for block in stage)
    both = sum(_time_of_two_threads(stage) for stage in stages if stage)
    return max((_pieces(stage) for stage in stages), default=1) if both < costs.LESS * alone else 1


def _time_of_two_threads(stage: list[Block]) -> float:
    """Return the time that two threads take for a stage, in nanoseconds."""
    total, longest = sum(block.cost for block in stage), max(block.cost / block.chunks for block in stage)
    return max(total / 2, longest) + (costs.STAGE if _pieces(stage) > 1 else 0)


def _pieces(stage: list[Block]) -> int:
    return sum(block.chunks for block in stage)


Resolve = Callable[[Argument], str]  # returns an argument of a task as text


@define
class _Burst:
    """The text of a burst.

    A burst that calls many tasks is split into legs, each its own function; so is a stage whose pieces call many.  Legs
    find in ``places`` where values lie, so that those of equal layers have equal text and are compiled once.
    """

    program: ProgramSource
    batch: int
    local: str
    places: list[int] = field(factory=list, init=False)
    _functions: dict[str, str] = field(factory=dict, init=False)  # names by text

    def texts(self, stages: list[list[Block]], watched: int | None) -> list[str]:
        """Return the functions; the last one is the burst."""
        program, legs = self.program, _legs(stages, self.program.threads > 1)
        output = None if watched is None else Pointer("output", watched, program.graph.outputs[watched].dtype)
        every = {pointer for task in _list_tasks(stages) for pointer in task.pointers}
        body = self._stages(legs[0], _name) if len(legs) == 1 else self._calls(legs)
        own = _read(legs[0], body) if len(legs) == 1 else {}
        own |= {p: _name(p) for p in every if p.kind == "rows"} | ({} if output is None else {output: _name(output)})
        lines = [
            *self._prologue(own),
            *(_write_row_checks(program, self.batch) if any(p.kind == "rows" for p in own) else []),
            "stage = i8(0)", "done = i8(0)", "word = flush()", "for step in range(n):",
        ]  # fmt: skip
        body += ["done = step + 1", *_watch(program, watched)]
        moves = {name: self.move(pointer) for pointer, name in own.items()}
        body += [f"{name} = at({name}, {by})" for name, by in moves.items() if by]
        burst = ["def burst(table, n, t, T):", *lines, *indent(body), "restore(word)", "return done"]
        functions = [f"def {name}{text}" for text, name in self._functions.items()]
        return [*functions, "\n    ".join(burst)]

    def _calls(self, legs: list[list[list[Block]]]) -> list[str]:
        """Return the lines of a burst that call its legs."""
        calls = [
            (self._write_function("stage", leg, self._stages), f"stage += {len(_merge_stages(leg))}") for leg in legs
        ]
        return [line for call in calls for line in (call if self.program.threads > 1 else call[:1])]

    def _write_function(
        self, number: str, blocks: list[list[Block]], write: Callable[[list[list[Block]], Resolve], list[str]]
    ) -> str:
        """Write blocks as a function of a number, unless an equal one is written, and return its call."""
        arguments, variable = _LegArguments(self), number.split()[0]
        body = write(blocks, arguments.resolve)
        first = len(self.places)
        self.places += arguments.places
        places = f"places = at(as_i8(tab[{self.program.place('places')}]), first)"
        text = "\n    ".join([f"(table, step, {variable}, t, first):", *self._prologue({}), places, *body])
        name = self._functions.setdefault(text, f"leg{len(self._functions)}")
        return f"{name}(table, step, {number}, t, {first})"

    def _stages(self, stages: list[list[Block]], resolve: Resolve) -> list[str]:
        """Return the calls; with several threads, they claim the pieces of each stage."""
        if self.program.threads == 1:
            return [line for stage in stages for block in stage for line in block.write_chunks(resolve)]
        return [line for parts in _merge_stages(stages) for line in self._write_claims(parts, resolve)]

    def _write_claims(self, parts: list[list[Block]], resolve: Resolve) -> list[str]:
        """Return the loop in which a thread claims pieces of a stage until all are claimed and done."""
        lines, first, legs = [], 0, _legs(parts, threaded=True)
        for leg in legs:
            last = first + sum(part[0].chunks for part in leg)
            if len(legs) == 1:
                lines += _pieces_of(leg, resolve)
            else:
                call = self._write_function(f"unit - {first}", leg, _pieces_of)
                lines += [f"{'elif' if first else 'if'} unit < {last}:", *indent([call])]
            first = last
        start = [f"unit = claim(ticket, stage, {first})", "if unit < 0:", "    break"]
        return ["while True:", *indent([*start, *lines, f"finish(ticket, ended, stage, {first})"]), "stage += 1"]

    def _prologue(self, own: Mapping[Pointer, str]) -> list[str]:
        """Return lines that unpack the table of addresses."""
        program = self.program
        return [
            "tab = as_i8(table)",
            f"arena = tab[{program.place('arena')}]",
            f"scratch = tab[{program.place('scratch')}] + t * {program.scratch_bytes}",
            self.local,
            *(f"{name} = as_i8(tab[{program.place(name)}])" for name in ("ticket", "ended")),
            f"fault = as_i8(tab[{program.place('fault')}])",
            *(f"{name} = as_{SHORT[p.dtype]}(tab[{_entry(program, p)}])" for p, name in own.items()),
        ]

    def move(self, pointer: Pointer) -> str:
        """Return the number of elements by which a pointer moves per step, or an empty text."""
        program = self.program
        if pointer.kind == "rows":
            return str(self.batch)
        if pointer.kind == "output":
            return str(size(program.graph.outputs[pointer.number]))
        if program.frame.kinds[pointer.number] == STEER:
            return f"tab[{program.moving(pointer)}]"
        return ""


@define(eq=False)
class _LegArguments:
    """The arguments of the tasks that a leg calls, which read from ``places`` what equal legs do not share."""

    burst: _Burst
    places: list[int] = field(factory=list, init=False)

    def resolve(self, argument: Argument) -> str:
        """Return an argument as text."""
        if isinstance(argument, NumberArgument) or argument.kind in ("local", "fault"):
            return _name(argument)
        if argument.kind in ("arena", "scratch"):
            name = f"as_{SHORT[argument.dtype]}({argument.kind} + {self._place(argument.number)})"
        else:
            name = self._entry(argument.beginning)
        return f"at({name}, {self._place(argument.offset)})" if argument.offset else name

    def _entry(self, pointer: Pointer) -> str:
        """Return the pointer that the table holds, moved to the present step."""
        program = self.burst.program
        name = f"as_{SHORT[pointer.dtype]}(tab[{self._place(_entry(program, pointer))}])"
        if pointer.kind == "input" and program.frame.kinds[pointer.number] == STEER:
            return f"at({name}, step * tab[{self._place(program.moving(pointer))}])"
        by = self.burst.move(pointer)
        return f"at({name}, step * {by})" if by else name

    def _place(self, number: int) -> str:
        self.places.append(number)
        return f"places[{len(self.places) - 1}]"


def _read(stages: list[list[Block]], lines: list[str]) -> dict[Pointer, str]:
    """Return the arguments of these stages that come from the table, with their names, if ``lines`` mention them."""
    mentioned = set(re.findall(r"\w++", "\n".join(lines)))
    every = dict.fromkeys(
        p.beginning for task in _list_tasks(stages) for p in task.pointers if p.kind in ("input", "output", "rows")
    )
    return {p: name for p in every if (name := _name(p)) in mentioned}


def _legs(stages: list[list[Block]], threaded: bool) -> list[list[list[Block]]]:
    """Split the stages into parts that call few tasks each; a stage that threads share is not split."""
    legs: list[list[list[Block]]] = [[]]
    calls = 0
    for stage in filter(None, stages):
        for part in [stage] if threaded else [[block] for block in stage]:
            count = sum(len(block.tasks) for block in part)
            if legs[-1] and calls + count > LEG:
                legs.append([])
                calls = 0
            legs[-1].append(part)
            calls += count
    return legs


def _write_row_checks(program: ProgramSource, batch: int) -> list[str]:
    """Return lines in which every thread looks whether a block has all rows of a burst; else it is over at once."""
    return [
        "worst = u4(0)", f"for q in range(n * {batch}):", "    worst = max(worst, u4(rows[q]))",
        f"if i8(worst) >= tab[{program.place('count')}]:", f"    fault[0] = i8({NO_ROW})", "    n = i8(0)",
    ]  # fmt: skip


def _name(pointer: Argument) -> str:
    """Return the argument that a task gets for a pointer or a number."""
    if isinstance(pointer, NumberArgument):
        return literal(pointer.value, pointer.dtype)
    name = pointer.kind if pointer.kind in ("rows", "fault") else f"{pointer.kind}{pointer.number}"
    if pointer.kind == "local":
        name = f"as_{SHORT[pointer.dtype]}(local + {pointer.number} - n * {pointer.step})"
    if pointer.kind in ("arena", "scratch"):
        name = f"as_{SHORT[pointer.dtype]}({pointer.kind} + {pointer.number})"
    return pointer.write_pointer(name)


def _entry(program: ProgramSource, pointer: Pointer) -> int:
    if pointer.kind == "rows":
        return program.place("rows")
    return pointer.number + (len(program.graph.inputs) if pointer.kind == "output" else 0)


def _merge_stages(stages: list[list[Block]]) -> list[list[list[Block]]]:
    """Merge stages that a second thread cannot help with; return a list of the work units of each stage."""
    merges: list[list[list[Block]]] = []
    for stage in filter(None, stages):
        alone = len(stage) == 1 and stage[0].chunks == 1
        if alone and merges and len(merges[-1]) == 1 and merges[-1][0][0].chunks == 1:
            merges[-1][0] += stage
        else:
            merges.append([[block] for block in sorted(stage, key=lambda block: block.chunks)])
    return merges


def _pieces_of(parts: list[list[Block]], resolve: Resolve) -> list[str]:
    """Return lines that run the piece ``unit``."""
    lines, first = list[str](), 0
    for part in parts:
        count, word = part[0].chunks, "elif" if lines else "if"
        lines.append(f"{word} unit < {first + count}:")
        if count > 1:
            lines += indent([f"ch = unit - {first}", *part[0].piece(resolve)])
        else:
            lines += indent([line for block in part for line in block.write_chunks(resolve)])
        first += count
    return lines


def _watch(program: ProgramSource, watched: int | None) -> list[str]:
    """Return lines that end the burst after a number that is not finite."""
    if watched is None or program.graph.outputs[watched].dtype not in FLOATING:
        return []
    lines = ["finite = True", f"for q in range({size(program.graph.outputs[watched])}):"]
    lines.append(f"    finite = finite and abs(output{watched}[q]) < inf")
    return [*lines, "if not finite:", "    break"]
