"""The code of a divided function and of its parts, with the lines of the user's file."""

import ast
import copy
import types
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from jitkernels.codegen.function_ast import note_tree, tree_noted
from jitkernels.compiler.capture.graph_breaks.break_sites import BreakSites, own_lines, why_not
from jitkernels.compiler.capture.graph_breaks.hoist_operands import OperandHoister, numbered
from jitkernels.compiler.capture.graph_breaks.part import UNBOUND, Part
from jitkernels.compiler.capture.graph_breaks.partition import Partition
from jitkernels.compiler.capture.graph_breaks.statements import Key, Origin
from jitkernels.compiler.capture.rewrite.ast_builder import loads
from jitkernels.compiler.capture.rewrite.rewrite_function import around, bare, is_source_of, source_tree
from jitkernels.errors import BuildError

UNBOUND_VALUE = type("Unbound", (), {"__slots__": (), "__repr__": lambda _: "<unbound>"})()
"""What a part returns for a variable that it has not assigned."""


class DividedFunction(NamedTuple):
    """A function divided at break sites: its definition, its parts, and the lines that Python runs."""

    tree: ast.FunctionDef
    parts: tuple[Part, ...]
    broken: Mapping[int, int]


def divide(plain: types.FunctionType, sites: BreakSites, inlined: AbstractSet[Key]) -> DividedFunction:
    """Divide a function. Raises BuildError where its source is unknown, or it cannot be divided."""
    code = plain.__code__
    cells = zip(code.co_freevars, plain.__closure__ or (), strict=True)
    values = {**plain.__globals__, **{name: cell.cell_contents for name, cell in cells if is_set(cell)}}
    tree = source_tree(code)
    if tree_noted(code) is None and not is_source_of(tree, code):
        raise BuildError("its source is not the code that Python runs")
    if why_not(tree):
        raise BuildError(why_not(tree))
    sites = sites._replace(names=sites.names | ({UNBOUND} & {*code.co_freevars}))
    kept: set[Origin] = set()
    while True:
        hoisted = numbered(tree)
        OperandHoister(hoisted, sites, kept, values)
        partition = Partition(hoisted, sites, inlined, kept)
        if partition.kept == kept:
            break
        kept = partition.kept
    divided = bare(hoisted)
    divided.body = partition.body
    return DividedFunction(ast.fix_missing_locations(divided), tuple(partition.parts), partition.broken)


def is_set(cell: types.CellType) -> bool:
    return cell != types.CellType()


def _code_of(tree: ast.FunctionDef, code: types.CodeType, names: Sequence[str]) -> types.CodeType:
    """Compile a function with free variables: those of `code`, and `names`."""
    outer = around(tree, [*dict.fromkeys((*code.co_freevars, *names))])
    module = ast.fix_missing_locations(ast.Module([outer], []))
    inside = compile(module, code.co_filename, "exec", dont_inherit=True)
    for name in ("around", tree.name):
        inside = next(one for one in inside.co_consts if isinstance(one, types.CodeType) and one.co_name == name)
    return inside.replace(co_qualname=code.co_qualname)


def function_of(
    tree: ast.FunctionDef, like: types.FunctionType, cells: Mapping[str, types.CellType]
) -> types.FunctionType:
    """A function with the globals and free variables of another one, and some more in `cells`."""
    made = _code_of(tree, like.__code__, tuple(cells))
    note_tree(made, tree)
    known = {**cells, **dict(zip(like.__code__.co_freevars, like.__closure__ or (), strict=True))}
    closure = tuple(known[name] for name in made.co_freevars)
    result = types.FunctionType(made, like.__globals__, like.__name__, None, closure)
    result.__qualname__, result.__module__ = like.__qualname__, like.__module__
    return result


def closed_function_of(
    tree: ast.FunctionDef, like: types.FunctionType, cells: Mapping[str, types.CellType]
) -> types.FunctionType:
    """The same with all of these free variables, used or not: its code can be replaced by that of another such one."""
    closed = copy.copy(tree)
    mentioned = ast.Expr(loads((*cells, *like.__code__.co_freevars)))
    closed.body = [*tree.body, ast.copy_location(ast.If(ast.Constant(False), [mentioned], []), tree.body[-1])]
    return function_of(closed, like, cells)


def lines_of_code(code: types.CodeType) -> AbstractSet[int]:
    """The lines of a function."""
    last = max([code.co_firstlineno, *own_lines(code)])
    return frozenset(range(code.co_firstlineno, last + 1))
