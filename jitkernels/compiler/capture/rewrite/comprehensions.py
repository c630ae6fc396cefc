"""Outline comprehensions, and folds (``sum``, ``min``, ``max``, ``any``, ``all``, ``next``), as functions with loops.

``sum(f(x) for x in a if c)`` becomes a call of::

    def part(given):
        total = 0
        for x in given:
            if c:
                total = total + f(x)
        return total
"""

import ast
from collections.abc import Sequence

GIVEN, RESULT, VALUE, SOME, OTHER = (f"_jk_{name}" for name in ("given", "result", "value", "some", "other"))
FOLDS = {"sum": (1, 2), "min": (1, 1), "max": (1, 1), "any": (1, 1), "all": (1, 1), "next": (2, 2)}
"""Functions that fold a generator, with their minimum and maximum number of arguments."""
Inside = list[ast.stmt]


def _load(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _set(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def is_fold(node: ast.Call, name: str) -> bool:
    """Whether a call folds a generator, if its callee is the function of that name."""
    if node.keywords:
        return False
    least, most = FOLDS[name]
    inner = node.args[0] if node.args else None
    is_of_values = isinstance(inner, ast.GeneratorExp) or (isinstance(inner, ast.ListComp) and name != "next")
    return is_of_values and least <= len(node.args) <= most


def of_list(node: ast.ListComp, name: str, empty: ast.expr, finished: ast.expr) -> ast.FunctionDef:
    """The function of ``[...]``; `empty` constructs a list, `finished` finalizes it."""
    add = ast.Call(ast.Attribute(_load(RESULT), "append", ast.Load()), [node.elt], [])
    return _function(
        node,
        name,
        [_set(RESULT, empty)],
        [ast.copy_location(ast.Expr(add), node.elt)],
        [ast.Return(ast.Call(finished, [_load(RESULT)], []))],
    )


def of_fold(
    node: ast.ListComp | ast.GeneratorExp, name: str, fold: str, unset: ast.expr, extreme: ast.expr
) -> ast.FunctionDef:
    """The function of ``fold(...)``, which takes the second argument too; `extreme` picks the better of two values."""
    value = node.elt
    begin: Inside = []
    match fold:
        case "sum":
            begin = [_set(RESULT, _load(OTHER))]
            inside: Inside = [_set(RESULT, ast.BinOp(_load(RESULT), ast.Add(), value))]
            end: Inside = [ast.Return(_load(RESULT))]
        case "any":
            inside, end = ([ast.If(value, [ast.Return(ast.Constant(True))], [])], [ast.Return(ast.Constant(False))])
        case "all":
            refuse = ast.If(ast.UnaryOp(ast.Not(), value), [ast.Return(ast.Constant(False))], [])
            inside, end = [refuse], [ast.Return(ast.Constant(True))]
        case "next":
            inside, end = [ast.Return(value)], [ast.Return(_load(OTHER))]
        case _:
            better = ast.Call(extreme, [ast.Constant(fold), *map(_load, (VALUE, RESULT, SOME))], [])
            begin = [_set(RESULT, unset), _set(SOME, ast.Constant(False))]
            inside = [_set(VALUE, value), _set(RESULT, better), _set(SOME, ast.Constant(True))]
            text = ast.Constant(f"{fold}() arg is an empty sequence")
            raised = ast.Raise(ast.Call(_load("ValueError"), [text], []))
            end = [ast.If(ast.UnaryOp(ast.Not(), _load(SOME)), [raised], []), ast.Return(_load(RESULT))]
    return _function(node, name, begin, [ast.copy_location(statement, value) for statement in inside], end)


def _function(
    node: ast.ListComp | ast.GeneratorExp, name: str, begin: Inside, inside: Inside, end: Sequence[ast.stmt]
) -> ast.FunctionDef:
    for depth, generator in reversed([*enumerate(node.generators)]):
        for test in reversed(generator.ifs):
            inside = [ast.copy_location(ast.If(test, inside, []), test)]
        iterable = generator.iter if depth else _load(GIVEN)
        inside = [ast.copy_location(ast.For(generator.target, iterable, inside, []), generator.iter)]
    arguments = ast.arguments(
        posonlyargs=[], args=[ast.arg(GIVEN), ast.arg(OTHER)], kwonlyargs=[], kw_defaults=[], defaults=[ast.Constant(0)]
    )
    function = ast.FunctionDef(name, arguments, [*begin, *inside, *end], [])
    return ast.fix_missing_locations(ast.copy_location(function, node))
