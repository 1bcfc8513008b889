"""Translate a unit of a program to LLVM in one pass over its syntax tree: kinds are known when values are created.

A variable has the kind of its first value.  ``and`` and ``or`` evaluate both sides.  A driver is inlined into its
caller; a task is a unit of its own, none of whose pointers reaches what another one writes.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import define, field

from sigma_backend_numba.compiler import amx, dot_products, lanes, typed_values
from sigma_backend_numba.compiler.intrinsics import WORDS, external
from sigma_backend_numba.compiler.language import LanguageWord, Outside, Routine
from sigma_backend_numba.compiler.typed_values import Value, convert, ir, ir_type, number
from sigma_backend_numba.compiler.units import ProgramText, ProgramUnit

SIGNS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.BitAnd: "&",
    ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<",
    ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_KNOWN: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip
_MEANINGS = {**WORDS, **lanes.WORDS, **amx.WORDS, **dot_products.WORDS}
Several = Value | tuple[Value, ...] | None
KNOWN = 1 << 12  # numbers up to this are part of a unit that is called with them


@define(eq=False)
class Module:
    """The LLVM module of one unit, which declares the units that it calls."""

    source: ProgramText
    ir: Any = field(factory=lambda: ir.Module("sigma"), init=False)
    called: dict[ProgramUnit, Any] = field(factory=dict, init=False)

    def translate(self, unit: ProgramUnit) -> None:
        """Translate a unit, as a function with its symbol."""
        tree, names = self.source.definition(unit)
        result = typed_values.WIDE if unit == self.source.burst else ir.VoidType()
        function = self._declare(unit.symbol, unit.kinds, result)
        if unit.routine is not None and unit.routine.kind == "compact":
            function.attributes.add("optsize")
        self._fill(function, tree, names, unit.kinds, unit.numbers)

    def task(self, name: str, routine: Routine | None, operands: Sequence[Value]) -> Any:
        """Return the function of a task for operands of these kinds."""
        kinds = tuple(x.kind for x in operands)
        unit = self.source.unit(name, routine, kinds, tuple(map(_small_number, operands)))
        if unit not in self.called:
            self.called[unit] = self._declare(unit.symbol, kinds, ir.VoidType())
        return self.called[unit]

    def has(self, name: str) -> bool:
        """Return whether the text defines a function."""
        return name in self.source.trees

    def make_hint(self) -> Any:
        """Return what keeps LLVM from writing a loop out before it is one over vectors; it must name itself."""
        add = self.ir.add_metadata
        vectors = add(["llvm.loop.isvectorized", ir.Constant(ir.IntType(32), 1)])
        then = add(["llvm.loop.vectorize.followup_vectorized", vectors])
        loop = add([ir.Constant(typed_values.WIDE, len(self.ir.metadata))])
        loop.operands = loop, add(["llvm.loop.unroll.disable"]), then
        return loop

    def _declare(self, symbol: str, kinds: Sequence[str], result: Any) -> Any:
        function = ir.Function(self.ir, ir.FunctionType(result, list(map(ir_type, kinds))), symbol)
        function.attributes.add("nounwind")
        function.attributes.add("noinline")
        for x, kind in zip(function.args, kinds, strict=True):
            if kind.startswith("*"):
                x.add_attribute("noalias")
        return function

    def _fill(
        self, function: Any, tree: ast.FunctionDef, names: Mapping[str, Any], kinds: Sequence[str],
        numbers: Sequence[int | None],
    ) -> None:  # fmt: skip
        """Translate the body of a function, with the values of those arguments that are known."""
        b = ir.IRBuilder(function.append_basic_block("entry"))
        body = Body(self, b, names, {})
        for argument, x, kind, given in zip(tree.args.args, function.args, kinds, numbers, strict=True):
            body.assign(argument.arg, Value(kind, x) if given is None else number(given))
        returned = body.run(tree)
        b.ret(returned.ir) if isinstance(returned, Value) else b.ret_void()


def _small_number(operand: Value) -> int | None:
    """Return the number of a constant that a task is compiled for."""
    constant = operand.ir.constant if operand.kind == "i8" and isinstance(operand.ir, ir.Constant) else None
    return constant if constant is not None and 0 <= constant <= KNOWN else None


@define(eq=False)
class OpenLoop:
    """The blocks that ``continue`` and ``break`` jump to."""

    again: Any
    after: Any


@define(eq=False)
class Body:
    """The statements of one function, or of a driver inlined into its caller."""

    module: Module
    b: Any
    names: Mapping[str, Any]
    places: dict[str, Value]  # the location of each variable
    _loops: list[OpenLoop] = field(factory=list, init=False)
    _results: list[Value] = field(factory=list, init=False)
    _alone: bool = field(default=True, init=False)
    _end: Any = field(default=None, init=False)

    def run(self, tree: ast.FunctionDef) -> Several:
        """Translate all statements; return the value that the function returns."""
        self._end = self.b.append_basic_block("end")
        self._block(tree.body)
        if not self.b.block.is_terminated:
            self.b.branch(self._end)
        self.b.position_at_end(self._end)
        results = tuple(Value(place.kind, self.b.load(place.ir)) for place in self._results)
        return (results[0] if self._alone else results) if results else None

    def assign(self, name: str, value: Value) -> None:
        """Assign a value to a variable."""
        if name not in self.places:
            self.places[name] = self._room(value.kind)
        place = self.places[name]
        self.b.store(self._fitting(name, value, place.kind), place.ir)

    def _fitting(self, name: str, value: Value, kind: str) -> Any:
        if value.kind != kind and (kind[0] in "*fw" or value.kind[0] in "*fw"):
            raise AssertionError(f"{name} is {kind}, and cannot become {value.kind}")
        return value.ir if value.kind == kind else convert(self.b, value, kind).ir

    def _room(self, kind: str) -> Value:
        with self.b.goto_entry_block():
            return Value(kind, self.b.alloca(ir_type(kind)))

    # -- statements ----------------------------------------------------------------------------------------------------
    def _block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if self.b.block.is_terminated:
                return  # code after a break is unreachable
            getattr(self, f"_translate_{type(statement).__name__.lower()}")(statement)

    def _translate_pass(self, node: ast.Pass) -> None:
        """Write nothing."""

    def _translate_expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.value(node.value)

    def _translate_assign(self, node: ast.Assign) -> None:
        (target,) = node.targets
        self._store(target, self.value(node.value))

    def _translate_annassign(self, node: ast.AnnAssign) -> None:
        assert node.value is not None
        self._store(node.target, self.value(node.value))

    def _translate_augassign(self, node: ast.AugAssign) -> None:
        read = ast.copy_location(ast.BinOp(_current_value(node.target), node.op, node.value), node)
        self._store(node.target, self.value(read))

    def _store(self, target: ast.expr, value: Several) -> None:
        if isinstance(target, ast.Tuple):
            assert isinstance(value, tuple)
            for element, part in zip(target.elts, value, strict=True):
                self._store(element, part)
        elif isinstance(target, ast.Name):
            assert isinstance(value, Value)
            self.assign(target.id, value)
        else:
            assert isinstance(target, ast.Subscript)
            assert isinstance(value, Value)
            pointer = self.single_value(target.value)
            self.b.store(convert(self.b, value, pointer.kind[1:]).ir, self._place(pointer, target))

    def _place(self, pointer: Value, node: ast.Subscript) -> Any:
        index = convert(self.b, self.single_value(node.slice), "i8")
        return self.b.gep(pointer.ir, [index.ir], inbounds=True)

    def _translate_if(self, node: ast.If) -> None:
        after = self.b.append_basic_block("after")
        then, other = self.b.append_basic_block("then"), self.b.append_basic_block("else") if node.orelse else after
        self.b.cbranch(typed_values.truth(self.b, self.single_value(node.test)), then, other)
        for block, statements in ((then, node.body), (other, node.orelse)):
            if block is not after:
                self._translate_into(block, statements, after)
        self.b.position_at_end(after)

    def _translate_into(self, block: Any, statements: Sequence[ast.stmt], then: Any) -> None:
        """Translate statements into a block that continues at another."""
        self.b.position_at_end(block)
        self._block(statements)
        if not self.b.block.is_terminated:
            self.b.branch(then)

    def _translate_while(self, node: ast.While) -> None:
        head, body, after = (self.b.append_basic_block(name) for name in ("while", "body", "after"))
        self.b.branch(head)
        self.b.position_at_end(head)
        self.b.cbranch(typed_values.truth(self.b, self.single_value(node.test)), body, after)
        self._translate_loop(node.body, body, OpenLoop(head, after), head)

    def _translate_for(self, node: ast.For) -> None:
        assert isinstance(node.iter, ast.Call)
        assert isinstance(node.iter.func, ast.Name)
        assert isinstance(node.target, ast.Name)
        ends = [convert(self.b, self.single_value(x), "i8") for x in node.iter.args]
        start, stop = (number(0), ends[0]) if len(ends) == 1 else ends[:2]
        step = ends[2] if len(ends) > 2 else number(1)
        counter = self._room("i8")
        self.b.store(start.ir, counter.ir)
        head, body, again, after = (self.b.append_basic_block(name) for name in ("for", "body", "next", "after"))
        self.b.branch(head)
        self.b.position_at_end(head)
        count = self.b.load(counter.ir)
        self.b.cbranch(self.b.icmp_signed("<", count, stop.ir), body, after)
        self.b.position_at_end(body)
        self.assign(node.target.id, Value("i8", count))
        self._translate_loop(node.body, body, OpenLoop(again, after), again)
        self.b.position_at_end(again)
        self.b.store(self.b.add(count, step.ir, flags=("nsw",)), counter.ir)
        back = self.b.branch(head)
        if node.iter.func.id == "row":
            back.set_metadata("llvm.loop", self.module.make_hint())
        self.b.position_at_end(after)

    def _translate_loop(self, statements: Sequence[ast.stmt], body: Any, loop: OpenLoop, then: Any) -> None:
        self._loops.append(loop)
        self._translate_into(body, statements, then)
        self._loops.pop()
        self.b.position_at_end(loop.after)

    def _translate_break(self, node: ast.Break) -> None:
        self.b.branch(self._loops[-1].after)

    def _translate_continue(self, node: ast.Continue) -> None:
        self.b.branch(self._loops[-1].again)

    def _translate_return(self, node: ast.Return) -> None:
        value = None if node.value is None else self.value(node.value)
        self._alone = not isinstance(value, tuple)
        results = value if isinstance(value, tuple) else () if value is None else (value,)
        if not self._results:
            self._results = [self._room(x.kind) for x in results]
        for place, x in zip(self._results, results, strict=True):
            self.b.store(self._fitting("the result", x, place.kind), place.ir)
        self.b.branch(self._end)

    # -- expressions ---------------------------------------------------------------------------------------------------
    def single_value(self, node: ast.expr) -> Value:
        """Return the value of an expression, which must not be a tuple."""
        value = self.value(node)
        assert isinstance(value, Value), ast.dump(node)
        return value

    def value(self, node: ast.expr) -> Several:
        """Return the value of an expression."""
        match node:
            case ast.Constant(value=known):
                return number(known)
            case ast.Name(id=name):
                place = self.places.get(name)
                return number(self.names[name]) if place is None else Value(place.kind, self.b.load(place.ir))
            case ast.Tuple(elts=parts):
                return tuple(map(self.single_value, parts))
            case ast.Subscript():
                pointer = self.single_value(node.value)
                return Value(pointer.kind[1:], self.b.load(self._place(pointer, node)))
            case ast.Call():
                return self._call(node)
            case ast.IfExp(test=test, body=then, orelse=other):
                return typed_values.select_value(
                    self.b, self.single_value(test), self.single_value(then), self.single_value(other)
                )
            case _:
                return self._operation(node)

    def _operation(self, node: ast.expr) -> Value:
        match node:
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(SIGNS[type(op)], self.single_value(left), self.single_value(right))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return typed_values.compare(self.b, SIGNS[type(op)], self.single_value(left), self.single_value(right))
            case ast.BoolOp(op=op, values=values):
                sign = "&" if isinstance(op, ast.And) else "|"
                result, *rest = (Value("b1", typed_values.truth(self.b, self.single_value(x))) for x in values)
                for x in rest:
                    result = typed_values.arithmetic(self.b, sign, result, x)
                return result
            case ast.UnaryOp(op=ast.Not(), operand=x):
                return Value("b1", self.b.not_(typed_values.truth(self.b, self.single_value(x))))
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as known)):
                return number(-known)
            case ast.UnaryOp(op=ast.USub(), operand=x):
                return typed_values.negative(self.b, self.single_value(x))
        raise AssertionError(f"the language has no {ast.dump(node)}")

    def _binary(self, sign: str, x: Value, y: Value) -> Value:
        """Return the result of an operator; constants are folded."""
        constants = [v.ir.constant for v in (x, y) if v.kind == "i8" and isinstance(v.ir, ir.Constant)]
        if len(constants) == 2 and sign in _KNOWN:
            return number(_KNOWN[sign](*constants))
        return typed_values.arithmetic(self.b, sign, x, y)

    def _call(self, node: ast.Call) -> Several:
        assert isinstance(node.func, ast.Name), ast.dump(node)
        name = node.func.id
        operands = [self.single_value(x) for x in node.args]
        meaning = self.names.get(name)
        if isinstance(meaning, Routine) and meaning.kind == "driver":
            return self._inline(meaning, operands)
        if isinstance(meaning, Outside):
            return external(self.b, meaning, operands)
        if isinstance(meaning, Routine) or self.module.has(name):
            self.b.call(self.module.task(name, meaning, operands), [x.ir for x in operands])
            return None
        word = meaning.name if isinstance(meaning, LanguageWord) else name
        result: Several = _MEANINGS[word](self.b, *operands)
        return result

    def _inline(self, routine: Routine, operands: Sequence[Value]) -> Several:
        body = Body(self.module, self.b, routine.names, {})
        for argument, x in zip(routine.tree.args.args, operands, strict=True):
            body.assign(argument.arg, x)
        return body.run(routine.tree)


def _current_value(target: ast.expr) -> ast.expr:
    """Return the current value of the target of an augmented assignment."""
    if isinstance(target, ast.Name):
        return ast.Name(target.id, ast.Load())
    assert isinstance(target, ast.Subscript)
    return ast.Subscript(target.value, target.slice, ast.Load())
