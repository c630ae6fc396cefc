"""Hoist the operands of a statement that Python runs in front of it, so that they are part of the run before it.

``out.append(np.exp(x).sum() * 2)`` becomes ``value = np.exp(x).sum() * 2; out.append(value)``. Operands are evaluated
in the order of the statement. Calls of functions that a trace cannot enter are no operands, but theirs are.
"""

import ast
import builtins
import types
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from jitkernels.compiler.capture.free_variables import is_library
from jitkernels.compiler.capture.graph_breaks.break_sites import HOISTED, BreakSites
from jitkernels.compiler.capture.graph_breaks.statements import (
    MIN_WEIGHT,
    ORIGIN,
    Origin,
    copied,
    inner_statements,
    statements_in,
    weight_of,
)
from jitkernels.compiler.capture.rewrite.aliases import value_of
from jitkernels.compiler.capture.rewrite.ast_builder import load
from jitkernels.compiler.capture.rewrite.definite_assignment import locals_of

HOISTED_VALUE = "_jk_value_"
"""Prefix of the variables that hold operands."""
METHODS = frozenset(dir(np.ndarray)) - {
    "tolist",
    "tobytes",
    "tofile",
    "dump",
    "dumps",
    "getfield",
    "setflags",
    "resize",
}
"""Methods of arrays that a trace may compute."""
Slot = tuple[ast.AST, str, int | None]
"""Where an operand is: a node, a field of it, and an index where that is a list."""


def numbered(tree: ast.FunctionDef) -> ast.FunctionDef:
    """A copy of a function whose statements have an `Origin`."""
    result = copied(tree)
    for i, node in enumerate(inner_statements(result.body)):
        setattr(node, ORIGIN, i)
    return result


class OperandHoister:
    """Hoists in a tree that is `numbered`. Python runs the statements of `sites`, and those that are `kept`.

    `values`: the globals and free variables of the function.
    """

    def __init__(
        self, tree: ast.FunctionDef, sites: BreakSites, kept: AbstractSet[Origin], values: Mapping[str, Any]
    ) -> None:
        self.sites, self.kept, self.values = sites, frozenset(kept), values
        self.locals = locals_of(tree)
        self.count = 0
        tree.body = self.block(tree.body)

    def is_kept(self, node: ast.stmt) -> bool:
        """Whether Python runs a statement, or the head of one."""
        return getattr(node, ORIGIN) in self.kept or self.sites.hits(node)

    def block(self, nodes: Sequence[ast.stmt]) -> list[ast.stmt]:
        output: list[ast.stmt] = []
        for node in nodes:
            output += self._hoisted(node)
            for field in ("body", "orelse", "finalbody"):
                inside = getattr(node, field, None)
                if inside and not isinstance(node, ast.FunctionDef | ast.ClassDef):
                    setattr(node, field, self.block(inside))
            for handler in getattr(node, "handlers", ()):
                handler.body = self.block(handler.body)
            output.append(node)
        return output

    def _hoisted(self, node: ast.stmt) -> list[ast.stmt]:
        """The assignments of operands of a statement, which then reads their variables."""
        if self.is_kept(node):
            return self._in_front_of(node, operands(node))
        if isinstance(node, ast.If) and any(map(self.is_kept, statements_in(node))):
            return self._in_front_of(node, [(node, "test", None)])
        return []

    def _in_front_of(self, node: ast.stmt, slots: Sequence[Slot]) -> list[ast.stmt]:
        slots = [*self._until_unknown(slots)]
        heavy = [i for i, slot in enumerate(slots) if weight_of([value_at(slot)]) >= MIN_WEIGHT]
        output: list[ast.stmt] = []
        for slot in slots[: heavy[-1] + 1] if heavy else ():
            value = value_at(slot)
            if isinstance(value, ast.Constant) or (isinstance(value, ast.Name) and value.id in self.locals):
                continue
            while (name := f"{HOISTED_VALUE}{self.count}") in self.locals:  # of the function that this is a part of
                self.count += 1
            self.count += 1
            assignment = ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], value), value)
            setattr(assignment, HOISTED, True)
            setattr(assignment, ORIGIN, (getattr(node, ORIGIN), self.count))
            output.append(ast.fix_missing_locations(assignment))
            _put(slot, ast.copy_location(load(name), value))
        return output

    def _until_unknown(self, slots: Sequence[Slot]) -> Iterator[Slot]:
        """The operands up to the first one that calls what a trace cannot enter, of which the operands follow."""
        for slot in slots:
            value = value_at(slot)
            if all(map(self._is_known, ast.walk(value))):
                yield slot
                continue
            yield from self._until_unknown(_of(value))
            return

    def _is_known(self, node: ast.AST) -> bool:
        """Whether a node of an expression may be evaluated before the statement, in compiled code."""
        match node:
            case ast.Call(func=ast.Name() | ast.Attribute() as function):
                chain = _chain(function)
                if chain and chain[0] not in self.locals:
                    return _is_traceable(value_of(chain, self.values) or getattr(builtins, chain[0], None))
                return isinstance(function, ast.Attribute) and function.attr in METHODS
            case ast.Call() | ast.NamedExpr() | ast.Await() | ast.Yield() | ast.Lambda() | ast.Starred():
                return False
            case ast.GeneratorExp() | ast.JoinedStr() | ast.Dict() | ast.Set() | ast.DictComp() | ast.SetComp():
                return False
        return True


def _is_traceable(value: Any) -> bool:
    """Whether a trace can enter calls of a function, as far as its type says."""
    if isinstance(value, types.FunctionType):
        return not is_library(value) or value.__module__.partition(".")[0] == "numpy"
    if hasattr(type(value), "__jitkernels_traced__") or isinstance(value, np.ufunc | type(np.sum)):
        return True
    return value in (abs, float, int, bool, len, min, max, sum, round, range) or getattr(value, "__module__", "") in (
        "math",
        "cmath",
    )


def _chain(node: ast.expr) -> tuple[str, ...]:
    """The names of a dotted name; none of another expression."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    return (node.id, *names) if isinstance(node, ast.Name) else ()


def operands(node: ast.stmt) -> list[Slot]:
    """The operands of a statement's expression in the order of their evaluation."""
    match node:
        case ast.Expr() | ast.Assign() | ast.Return() | ast.AnnAssign() if node.value is not None:
            return _of(node.value)
        case ast.If():
            return _of(node.test)
        case ast.For():
            return _of(node.iter)
    return []


def _of(value: ast.expr) -> list[Slot]:
    match value:
        case ast.Call(func=function):
            if any(isinstance(argument, ast.Starred) for argument in value.args):
                return []
            is_method = isinstance(function, ast.Attribute) and not _chain(function)
            own: list[Slot] = [(function, "value", None)] if is_method else []
            arguments: list[Any] = [(value, "args", i) for i in range(len(value.args))]
            return [*own, *arguments, *((keyword, "value", None) for keyword in value.keywords if keyword.arg)]
        case ast.BinOp():
            return [(value, "left", None), (value, "right", None)]
        case ast.Compare(ops=[_]):
            return [(value, "left", None), (value, "comparators", 0)]
        case ast.Subscript() | ast.Attribute():
            return [(value, "value", None)]
        case ast.Tuple() | ast.List():
            return [(value, "elts", i) for i in range(len(value.elts))]
        case ast.JoinedStr():
            return [(part, "value", None) for part in value.values if isinstance(part, ast.FormattedValue)]
        case ast.BoolOp():
            return [(value, "values", 0)]
        case ast.IfExp():
            return [(value, "test", None)]
    return []


def value_at(slot: Slot) -> Any:
    """The operand in a slot."""
    node, field, index = slot
    value = getattr(node, field)
    return value if index is None else value[index]


def _put(slot: Slot, value: ast.expr) -> None:
    node, field, index = slot
    if index is None:
        setattr(node, field, value)
    else:
        getattr(node, field)[index] = value
