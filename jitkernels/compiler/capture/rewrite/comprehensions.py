"""Outline comprehensions, and folds (``sum``, ``min``, ``max``, ``any``, ``all``, ``next``), as functions with loops.

``sum(f(x) for x in a if c)`` becomes a call of::

    def part(_jk_iterable, _jk_second=0):
        _jk_result = _jk_second
        for x in _jk_iterable:
            if c:
                _jk_result = _jk_result + f(x)
        return _jk_result
"""

import ast
import sys
from typing import NamedTuple

from jitkernels.compiler.capture.rewrite import ast_builder
from jitkernels.compiler.capture.rewrite.ast_builder import FLOW

ITERABLE, SECOND_PARAMETER, ELEMENT = "_jk_iterable", "_jk_second", "_jk_element"
Comprehension = ast.ListComp | ast.GeneratorExp


class Fold(NamedTuple):
    """The source text of a fold: before the loop, for each `_jk_element`, after it; and its numbers of arguments."""

    begin: str
    body: str
    end: str
    min_arguments: int = 1
    max_arguments: int = 1


def _fold_to_bool(name: str) -> Fold:
    test, result = ("_jk_element", True) if name == "any" else ("not _jk_element", False)
    return Fold("", f"if {test}: return {result}", f"return {not result}")


def _fold_to_extreme(name: str) -> Fold:
    return Fold(
        f"_jk_result = {FLOW}.UNSET; _jk_some = False",
        f"_jk_value = _jk_element; _jk_result = {FLOW}.extreme('{name}', _jk_value, _jk_result, _jk_some); "
        "_jk_some = True",
        f"if not _jk_some: raise ValueError('{name}() arg is an empty sequence')\nreturn _jk_result",
    )


FOLDS = {
    "sum": Fold(
        "_jk_result = _jk_second; _jk_error = 0.0",
        f"_jk_result, _jk_error = {FLOW}.sum_step(_jk_result, _jk_error, _jk_element)",
        f"return {FLOW}.sum_end(_jk_result, _jk_error)",
        1,
        2,
    )
    if sys.version_info >= (3, 12)
    else Fold("_jk_result = _jk_second", "_jk_result = _jk_result + _jk_element", "return _jk_result", 1, 2),
    "min": _fold_to_extreme("min"),
    "max": _fold_to_extreme("max"),
    "any": _fold_to_bool("any"),
    "all": _fold_to_bool("all"),
    "next": Fold("", "return _jk_element", "return _jk_second", 2, 2),
}
"""Functions that fold a generator."""
LIST = Fold(
    f"_jk_result = {FLOW}.new_list()", "_jk_result.append(_jk_element)", f"return {FLOW}.finish_list(_jk_result)"
)


def is_fold(node: ast.Call, name: str) -> bool:
    """Whether a call folds a generator, if its callee is the function of that name."""
    inner = node.args[0] if node.args else None
    is_of_values = isinstance(inner, ast.GeneratorExp) or (isinstance(inner, ast.ListComp) and name != "next")
    return (
        not node.keywords and is_of_values and FOLDS[name].min_arguments <= len(node.args) <= FOLDS[name].max_arguments
    )


class _ElementInserter(ast.NodeTransformer):
    """Replaces `_jk_element` by an expression."""

    def __init__(self, element: ast.expr) -> None:
        self.element = element

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.element if node.id == ELEMENT else node


def outline(node: Comprehension, name: str, fold: Fold) -> ast.FunctionDef:
    """The function of a comprehension, which takes the iterable, and the second argument of the fold."""
    inside = [_ElementInserter(node.elt).visit(statement) for statement in _parse_at(fold.body, node.elt)]
    for depth, generator in reversed([*enumerate(node.generators)]):
        for test in reversed(generator.ifs):
            inside = [ast.copy_location(ast.If(test, inside, []), test)]
        iterable = generator.iter if depth else ast_builder.load(ITERABLE)
        inside = [ast.copy_location(ast.For(generator.target, iterable, inside, []), generator.iter)]
    body = [*_parse_at(fold.begin, node), *inside, *_parse_at(fold.end, node)]
    function = ast_builder.function(name, (ITERABLE, SECOND_PARAMETER), body, [ast.Constant(0)])
    return ast.fix_missing_locations(ast.copy_location(function, node))


def _parse_at(text: str, at: ast.AST) -> list[ast.stmt]:
    """Statements of a text, all of whose nodes are at the source location of another node."""
    statements = ast.parse(text).body
    for statement in statements:
        for inner in ast.walk(statement):
            if "lineno" in inner._attributes:
                ast.copy_location(inner, at)
    return statements
