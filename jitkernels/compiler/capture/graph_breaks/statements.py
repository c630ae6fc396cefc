"""Statements of functions that are divided: their blocks and jumps, and whether code for them is worth a call."""

import ast
import builtins
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from jitkernels.compiler.capture.rewrite.definite_assignment import Names, stored_in

MIN_WEIGHT = 2
"""Operations from which on a run is worth a call: one operation alone gains nothing by code."""
STATEMENT_LOOP_WEIGHT, CALL_WEIGHT = 8, 2
MUTATORS = frozenset({
    "append", "extend", "insert", "pop", "remove", "clear", "update", "setdefault", "add", "discard", "reverse",
    "popleft", "appendleft",
})  # fmt: skip
"""Methods that change the length of a container: each length would need code of its own."""
BUILTINS = frozenset(vars(builtins))
"""Names whose calls are cheap in Python."""
Key = tuple[int, int, int, int]
"""Where a run of statements begins and ends: lines and columns."""
Origin = int | tuple[Any, int]
"""What tells a statement of the function from others; pairs for operands that are computed before it."""
ORIGIN = "jk_origin"
"""AST attribute of a statement: its `Origin`."""
Statement = TypeVar("Statement", bound=ast.AST)


def copied(node: Statement) -> Statement:
    """A copy of a tree without what analyses noted at its nodes."""
    fields = {name: _copied_value(value) for name, value in ast.iter_fields(node)}
    return ast.copy_location(type(node)(**fields), node)


def _copied_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_copied_value(inner) for inner in value]
    return copied(value) if isinstance(value, ast.AST) else value


def key_of(nodes: Sequence[ast.stmt]) -> Key:
    """Where a run begins and ends."""
    first, last = nodes[0], nodes[-1]
    return first.lineno, first.col_offset, last.end_lineno or last.lineno, last.end_col_offset or 0


def statements_in(node: ast.stmt) -> Iterator[ast.stmt]:
    """A statement and those in its blocks, but for those of nested functions."""
    yield node
    if isinstance(node, ast.If | ast.For | ast.While | ast.With | ast.Try):
        yield from inner_statements(node.body)
        yield from inner_statements(getattr(node, "orelse", ()))
        yield from inner_statements(getattr(node, "finalbody", ()))
        for handler in getattr(node, "handlers", ()):
            yield from inner_statements(handler.body)


def inner_statements(nodes: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements of a block, but for those of nested functions."""
    for node in nodes:
        yield from statements_in(node)


def leaves(node: ast.stmt) -> bool:
    """Whether a statement may end the function or an iteration of a loop around it."""
    return any(isinstance(inner, ast.Return) for inner in statements_in(node)) or jumps_out(node)


def jumps_out(node: ast.stmt) -> bool:
    """Whether a statement may break or continue a loop around it."""
    if isinstance(node, ast.Break | ast.Continue):
        return True
    if isinstance(node, ast.For | ast.While):
        return any(map(jumps_out, node.orelse))
    blocks = [*_blocks(node)]
    return any(jumps_out(inner) for block in blocks for inner in block)


def _blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    if isinstance(node, ast.If | ast.With | ast.Try):
        yield node.body
        yield getattr(node, "orelse", [])
        yield getattr(node, "finalbody", [])
        for handler in getattr(node, "handlers", ()):
            yield handler.body


def is_atomic(node: ast.stmt, protected: Names) -> bool:
    """Whether an exception in a statement leaves the protected variables as they were."""
    if not stored_in(node) & protected:
        return True
    match node:
        case ast.Assign(targets=[ast.Name()]) | ast.AnnAssign(target=ast.Name()) | ast.AugAssign(target=ast.Name()):
            return not any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(node))
        case ast.Assign(targets=[ast.Tuple(elts=elements)]):
            return all(isinstance(element, ast.Name) for element in elements)
    return False


def has_loop(nodes: Sequence[ast.AST]) -> bool:
    """Whether nodes contain a loop or a comprehension."""
    return any(isinstance(inner, ast.For | ast.While | ast.comprehension) for node in nodes for inner in ast.walk(node))


def weight_of(nodes: Sequence[ast.AST]) -> int:
    """An estimate of the operations of statements that code may speed up."""
    weight = 0
    for node in nodes:
        for inner in ast.walk(node):
            match inner:
                case ast.For() | ast.While() | ast.ListComp() | ast.GeneratorExp():
                    weight += STATEMENT_LOOP_WEIGHT
                case ast.Call(func=ast.Name(id=name)) if name in BUILTINS:
                    continue
                case ast.Call():
                    weight += CALL_WEIGHT
                case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.AugAssign() | ast.BoolOp() | ast.Slice():
                    weight += 1
    return weight


def resized(tree: ast.FunctionDef) -> Names:
    """Variables whose lengths change: each would need code of its own where it crosses a break."""
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) if attr in MUTATORS:
                names.add(name)
    return frozenset(names)


def declared_outside(tree: ast.FunctionDef) -> Names:
    """Names that the function declares global or nonlocal."""
    declared = (node for node in inner_statements(tree.body) if isinstance(node, ast.Global | ast.Nonlocal))
    return frozenset(name for node in declared for name in node.names)


def imports(tree: ast.FunctionDef) -> dict[str, ast.stmt]:
    """Modules that the function imports before all else that it does: parts import them again."""
    found: dict[str, ast.stmt] = {}
    for node in tree.body:
        match node:
            case ast.Expr(value=ast.Constant()):
                continue
            case ast.Import():
                found |= dict.fromkeys(stored_in(node), node)
            case _:
                break
    stores = [
        inner.id for inner in ast.walk(tree) if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load)
    ]
    return {name: node for name, node in found.items() if name not in stores}
