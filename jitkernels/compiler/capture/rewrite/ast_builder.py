"""Build the syntax trees of rewritten functions."""

import ast
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

FLOW, PART = "_jk_flow", "_jk_part"
"""The name of the module of the runtime hooks in rewritten functions; the prefix of the names of outlined functions."""
Statement = TypeVar("Statement", bound=ast.AST)


def load(name: str) -> ast.expr:
    """``name``."""
    return ast.Name(name, ast.Load())


def assign(name: str, value: ast.expr | bool | None) -> ast.stmt:
    """``name = value``."""
    return ast.Assign([ast.Name(name, ast.Store())], value if isinstance(value, ast.expr) else ast.Constant(value))


def hook(name: str) -> ast.expr:
    """A runtime hook: ``flow.name``."""
    return ast.Attribute(load(FLOW), name, ast.Load())


def call_hook(name: str, *arguments: ast.expr) -> ast.expr:
    """``flow.name(*arguments)``."""
    return ast.Call(hook(name), list(arguments), [])


def negate(test: ast.expr) -> ast.expr:
    """``not test``."""
    return ast.UnaryOp(ast.Not(), test)


def loads(names: Iterable[str]) -> ast.Tuple:
    """``(*names,)``."""
    return ast.Tuple([load(name) for name in names], ast.Load())


def stores(names: Iterable[str]) -> ast.Tuple:
    """``(*names,)`` as the target of an assignment."""
    return ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())


def constants(values: Iterable[str]) -> ast.Tuple:
    """A tuple of constants."""
    return ast.Tuple([ast.Constant(value) for value in values], ast.Load())


def _parameters(names: Iterable[str], defaults: Sequence[ast.expr] = ()) -> ast.arguments:
    arguments = [ast.arg(name) for name in names]
    return ast.arguments(posonlyargs=[], args=arguments, kwonlyargs=[], kw_defaults=[], defaults=[*defaults])


def thunk(node: ast.expr) -> ast.expr:
    """``lambda: node``."""
    return ast.Lambda(_parameters(()), node)


def function(
    name: str, parameters: Iterable[str], body: list[ast.stmt], defaults: Sequence[ast.expr] = ()
) -> ast.FunctionDef:
    """``def name(*parameters): body``."""
    definition: Any = ast.FunctionDef  # Python 3.12 has one more field, which is optional
    made: ast.FunctionDef = definition(name, _parameters(parameters, defaults), body or [ast.Pass()], [])
    return made


def parameters_of(tree: ast.FunctionDef | ast.Lambda) -> frozenset[str]:
    """The names of a function's parameters."""
    return frozenset(parameter.arg for parameter in ast.walk(tree.args) if isinstance(parameter, ast.arg))


def located(statements: Iterable[Statement], at: ast.AST) -> list[Statement]:
    """Statements at the source location of another node."""
    return [ast.copy_location(statement, at) for statement in statements]
