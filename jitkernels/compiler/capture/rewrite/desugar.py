"""Statements in terms of simpler ones: ``match`` of numbers is ``if``, ``:=`` an assignment of its own.

What cannot be said so is left as it is, and with it the whole function.
"""

import ast
import copy
from collections.abc import Sequence
from typing import Any

SUBJECT = "_jk_subject"
PURE = ast.Name | ast.Constant | ast.Attribute | ast.Load | ast.operator | ast.unaryop | ast.cmpop
"""What may be computed after an assignment that stands behind it, if it does not name what is assigned."""


class Simpler(ast.NodeTransformer):
    """Rewrites the statements of a function, and of functions in it."""

    def __init__(self) -> None:
        self.count = 0

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """Types of variables say nothing, and functions that share a variable could not have it with one."""
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
        if isinstance(subject, ast.Tuple) and not any(isinstance(one, ast.Starred) for one in subject.elts):
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
        return [ast.copy_location(one, node) for one in [*first, *_choice(node.cases, parts or [name])]]

    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        if node.orelse or not _assigns(node.test):
            return node
        first: list[ast.stmt] = []
        for one in _conjunction(node.test):
            made = _apart(one)
            if made is None:
                return node
            assigned, test = made
            stop = ast.If(ast.UnaryOp(ast.Not(), test), [ast.Break()], [])
            first += [*assigned, ast.copy_location(stop, node.test)]
        return ast.copy_location(ast.While(ast.Constant(True), [*first, *node.body], []), node)

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if not _assigns(node.test):
            return node
        parts = [_apart(one) for one in _conjunction(node.test)]
        if any(one is None for one in parts) or (len(parts) > 1 and node.orelse):
            return node
        body = node.body
        for number, made in enumerate(reversed(parts)):
            assert made is not None, "looked at above"
            assigned, test = made
            inner = ast.If(test, body, [] if number else node.orelse)
            body = [*assigned, ast.copy_location(inner, node)]
        return body

    def visit(self, node: ast.AST) -> Any:
        """The statement, or several in its place."""
        return (
            self._statement(node)
            if isinstance(node, ast.Assign | ast.Expr | ast.Return)
            else super().visit(node)
        )

    def _statement(self, node: ast.stmt) -> ast.AST | list[ast.stmt]:
        """A statement with one expression, which is computed first."""
        self.generic_visit(node)
        value: ast.expr | None = getattr(node, "value", None)
        made = _apart(value) if value is not None and _assigns(value) else None
        if made is None:
            return node
        node.value = made[1]  # type: ignore[attr-defined]
        return [*made[0], node]


def _assigns(node: ast.expr) -> bool:
    return any(isinstance(one, ast.NamedExpr) for one in ast.walk(node))


def _conjunction(test: ast.expr) -> list[ast.expr]:
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def _apart(node: ast.expr) -> tuple[list[ast.stmt], ast.expr] | None:
    """The assignments of an expression, to be done before it, and what is left of it; None where order matters."""
    found: list[ast.stmt] = []
    before: list[ast.AST] = []

    def visited(one: ast.AST) -> bool:
        """Go on in the order in which Python computes; whether that went well."""
        if isinstance(one, ast.NamedExpr):
            if not all(isinstance(other, PURE) for other in before):
                return False
            if any(isinstance(other, ast.Name) and other.id == one.target.id for other in before):
                return False
            if _assigns(one.value):
                return False
            found.append(
                ast.copy_location(ast.Assign([ast.Name(one.target.id, ast.Store())], one.value), one)
            )
            return True
        hidden = ast.Lambda | ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp | ast.IfExp
        if isinstance(one, hidden | ast.BoolOp) or (isinstance(one, ast.Compare) and len(one.ops) > 1):
            before.append(one)
            return not any(isinstance(other, ast.NamedExpr) for other in ast.walk(one))
        if not all(map(visited, ast.iter_child_nodes(one))):
            return False
        before.append(one)
        return True

    # What was computed is in `before`, operators of it too, which do nothing that an assignment could change.
    inner = visited(node)
    return (found, _Named().visit(copy.deepcopy(node))) if inner else None


class _Named(ast.NodeTransformer):
    """Has names in the place of assignments."""

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        return ast.copy_location(ast.Name(node.target.id, ast.Load()), node)


def _is_simple(pattern: ast.pattern, parts: int) -> bool:
    match pattern:
        case ast.MatchValue() | ast.MatchSingleton():
            return not parts
        case ast.MatchOr(patterns=inner):
            return not any(isinstance(one, ast.MatchAs) for one in inner) and all(
                _is_simple(one, parts) for one in inner
            )
        case ast.MatchAs(pattern=None, name=name):
            return not parts or name is None
        case ast.MatchAs(pattern=inner) if inner is not None:
            return not parts and _is_simple(inner, parts)
        case ast.MatchSequence(patterns=inner):
            return len(inner) == parts and all(_is_simple(one, 0) for one in inner)
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
    body = [ast.copy_location(one, case.body[0]) for one in bound] + body
    return body if test is None else [ast.copy_location(ast.If(test, body, rest), case.body[0])]


def _test(pattern: ast.pattern, names: Sequence[str], bound: list[ast.stmt]) -> ast.expr | None:
    """The condition of a pattern, None where there is none; what it assigns is added."""
    found: ast.expr | None = None
    match pattern:
        case ast.MatchValue(value=value):
            found = ast.Compare(ast.Name(names[0], ast.Load()), [ast.Eq()], [value])
        case ast.MatchSingleton(value=single):
            found = ast.Compare(ast.Name(names[0], ast.Load()), [ast.Is()], [ast.Constant(single)])
        case ast.MatchOr(patterns=inner):
            tests = [_test(one, names, bound) for one in inner]
            found = ast.BoolOp(ast.Or(), [one or ast.Constant(True) for one in tests])
        case ast.MatchAs(pattern=inside, name=name):
            found = _test(inside, names, bound) if inside is not None else None
            if name is not None:
                bound.append(ast.Assign([ast.Name(name, ast.Store())], ast.Name(names[0], ast.Load())))
        case ast.MatchSequence(patterns=inner):
            several = [_test(one, [name], bound) for one, name in zip(inner, names, strict=True)]
            asked = [one for one in several if one is not None]
            found = ast.BoolOp(ast.And(), asked) if len(asked) > 1 else asked[0] if asked else None
    return found if found is None else ast.copy_location(found, pattern)
