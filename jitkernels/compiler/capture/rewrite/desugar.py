"""Desugar statements: ``match`` of numbers becomes ``if``, ``:=`` an assignment statement of its own.

Statements without such a form stay unchanged, which excludes the whole function from the rewrite.
"""

import ast
import copy
from collections.abc import Sequence
from typing import Any

SUBJECT = "_jk_subject"
PURE = ast.Name | ast.Constant | ast.Attribute | ast.Load | ast.operator | ast.unaryop | ast.cmpop
"""Nodes that may be evaluated after an assignment that follows them, unless they name its target."""


class Desugar(ast.NodeTransformer):
    """Rewrites the statements of a function, and of nested functions."""

    def __init__(self) -> None:
        self.count = 0

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """Drop annotations of variables: `nonlocal` variables cannot have them."""
        if not isinstance(node.target, ast.Name):
            return self.generic_visit(node)
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return self.visit(ast.copy_location(ast.Assign([node.target], node.value), node))

    def visit_Match(self, node: ast.Match) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        self.count += 1
        name = f"{SUBJECT}{self.count}"
        patterns = [case.pattern for case in node.cases]
        subject = node.subject
        if isinstance(subject, ast.Tuple) and not any(isinstance(statement, ast.Starred) for statement in subject.elts):
            parts = [f"{name}_{i}" for i in range(len(subject.elts))]
        else:
            parts = []
        if not all(_is_simple(pattern, len(parts)) for pattern in patterns):
            return node
        values = subject.elts if parts and isinstance(subject, ast.Tuple) else [subject]
        first: list[ast.stmt] = [
            ast.Assign([ast.Name(part, ast.Store())], value)
            for part, value in zip(parts or [name], values, strict=True)
        ]
        return [ast.copy_location(statement, node) for statement in [*first, *_choice(node.cases, parts or [name])]]

    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        if node.orelse or not _assigns(node.test):
            return node
        first: list[ast.stmt] = []
        for condition in _conjunction(node.test):
            hoisted = _hoist_assignments(condition)
            if hoisted is None:
                return node
            assigned, test = hoisted
            stop = ast.If(ast.UnaryOp(ast.Not(), test), [ast.Break()], [])
            first += [*assigned, ast.copy_location(stop, node.test)]
        return ast.copy_location(ast.While(ast.Constant(True), [*first, *node.body], []), node)

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if not _assigns(node.test):
            return node
        parts = [_hoist_assignments(condition) for condition in _conjunction(node.test)]
        if any(condition is None for condition in parts) or (len(parts) > 1 and node.orelse):
            return node
        body = node.body
        for number, hoisted in enumerate(reversed(parts)):
            assert hoisted is not None, "checked above"
            assigned, test = hoisted
            inner = ast.If(test, body, [] if number else node.orelse)
            body = [*assigned, ast.copy_location(inner, node)]
        return body

    def visit(self, node: ast.AST) -> Any:
        """The statement, or several in its place."""
        return self._statement(node) if isinstance(node, ast.Assign | ast.Expr | ast.Return) else super().visit(node)

    def _statement(self, node: ast.stmt) -> ast.AST | list[ast.stmt]:
        """Hoist the assignment expressions of a statement with one expression."""
        self.generic_visit(node)
        value: ast.expr | None = getattr(node, "value", None)
        hoisted = _hoist_assignments(value) if value is not None and _assigns(value) else None
        if hoisted is None:
            return node
        node.value = hoisted[1]  # type: ignore[attr-defined]
        return [*hoisted[0], node]


def _assigns(node: ast.expr) -> bool:
    return any(isinstance(part, ast.NamedExpr) for part in ast.walk(node))


def _conjunction(test: ast.expr) -> list[ast.expr]:
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def _hoist_assignments(node: ast.expr) -> tuple[list[ast.stmt], ast.expr] | None:
    """The assignments of an expression, to run before it, and the expression left; None if evaluation order matters."""
    assignments: list[ast.stmt] = []
    before: list[ast.AST] = []

    def visited(child: ast.AST) -> bool:
        """Visit in evaluation order; returns whether hoisting is safe so far."""
        if isinstance(child, ast.NamedExpr):
            if not all(isinstance(other, PURE) for other in before):
                return False
            if any(isinstance(other, ast.Name) and other.id == child.target.id for other in before):
                return False
            if _assigns(child.value):
                return False
            assignments.append(
                ast.copy_location(ast.Assign([ast.Name(child.target.id, ast.Store())], child.value), child)
            )
            return True
        hidden = ast.Lambda | ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp | ast.IfExp
        if isinstance(child, hidden | ast.BoolOp) or (isinstance(child, ast.Compare) and len(child.ops) > 1):
            before.append(child)
            return not any(isinstance(other, ast.NamedExpr) for other in ast.walk(child))
        if not all(map(visited, ast.iter_child_nodes(child))):
            return False
        before.append(child)
        return True

    # `before` has the evaluated nodes, including operators, which no assignment can affect.
    inner = visited(node)
    return (assignments, _Named().visit(copy.deepcopy(node))) if inner else None


class _Named(ast.NodeTransformer):
    """Replaces assignment expressions by the names that they assign."""

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        return ast.copy_location(ast.Name(node.target.id, ast.Load()), node)


def _is_simple(pattern: ast.pattern, parts: int) -> bool:
    match pattern:
        case ast.MatchValue() | ast.MatchSingleton():
            return not parts
        case ast.MatchOr(patterns=inner):
            return not any(isinstance(part, ast.MatchAs) for part in inner) and all(
                _is_simple(part, parts) for part in inner
            )
        case ast.MatchAs(pattern=None, name=name):
            return not parts or name is None
        case ast.MatchAs(pattern=inner) if inner is not None:
            return not parts and _is_simple(inner, parts)
        case ast.MatchSequence(patterns=inner):
            return len(inner) == parts and all(_is_simple(part, 0) for part in inner)
    return False


def _choice(cases: Sequence[ast.match_case], names: Sequence[str]) -> list[ast.stmt]:
    if not cases:
        return []
    case, *others = cases
    bound: list[ast.stmt] = []
    test = _test(case.pattern, names, bound)
    rest = _choice(others, names)
    if case.guard is not None and not bound:
        test, guard = (case.guard if test is None else ast.BoolOp(ast.And(), [test, case.guard])), None
    else:
        guard = case.guard
    body = case.body
    if guard is not None:
        body = [ast.copy_location(ast.If(guard, body, copy.deepcopy(rest)), guard)]
    body = [ast.copy_location(statement, case.body[0]) for statement in bound] + body
    return body if test is None else [ast.copy_location(ast.If(test, body, rest), case.body[0])]


def _test(pattern: ast.pattern, names: Sequence[str], bound: list[ast.stmt]) -> ast.expr | None:
    """The condition of a pattern, None for an irrefutable one; assignments of captures go to `bound`."""
    condition: ast.expr | None = None
    match pattern:
        case ast.MatchValue(value=value):
            condition = ast.Compare(ast.Name(names[0], ast.Load()), [ast.Eq()], [value])
        case ast.MatchSingleton(value=single):
            condition = ast.Compare(ast.Name(names[0], ast.Load()), [ast.Is()], [ast.Constant(single)])
        case ast.MatchOr(patterns=inner):
            tests = [_test(part, names, bound) for part in inner]
            condition = ast.BoolOp(ast.Or(), [part or ast.Constant(True) for part in tests])
        case ast.MatchAs(pattern=inside, name=name):
            condition = _test(inside, names, bound) if inside is not None else None
            if name is not None:
                bound.append(ast.Assign([ast.Name(name, ast.Store())], ast.Name(names[0], ast.Load())))
        case ast.MatchSequence(patterns=inner):
            several = [_test(part, [name], bound) for part, name in zip(inner, names, strict=True)]
            conditions = [part for part in several if part is not None]
            condition = (
                ast.BoolOp(ast.And(), conditions) if len(conditions) > 1 else conditions[0] if conditions else None
            )
    return condition if condition is None else ast.copy_location(condition, pattern)
