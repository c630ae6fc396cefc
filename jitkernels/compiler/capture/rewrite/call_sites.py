"""Rewrite call sites so that callees are resolved by object identity, not by name."""

import ast
from typing import TypeGuard

import numpy as np

from jitkernels.compiler.capture.rewrite.ast_builder import FLOW, PART, call_hook

RESOLVE = "resolve_callee"
"""The hook that resolves a callee, see `jitkernels.compiler.capture.control_flow.callee_resolution`."""
METHODS = frozenset(name for kind in (np.ndarray, list, tuple, dict, set, str) for name in dir(kind) if name[0] != "_")
"""Attribute names that are methods of arrays and containers."""


class IterableRewriter(ast.NodeTransformer):
    """Resolves the calls in a loop's iterable, and among their arguments, to functions that return loop iterables."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        function = node.func
        if isinstance(function, ast.Call) and _is_hook(function.func) and function.func.attr == RESOLVE:
            (function,) = function.args
        if _is_hook(function) or (isinstance(function, ast.Name) and function.id.startswith(PART)):
            return node
        arguments = [self.visit(argument) if isinstance(argument, ast.Call) else argument for argument in node.args]
        return ast.copy_location(ast.Call(call_hook("resolve_iterable", function), arguments, node.keywords), node)


def _is_hook(node: ast.expr) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == FLOW


def may_be_builtin(node: ast.expr) -> bool:
    """Whether a callee may be a Python builtin, under whatever name."""
    if isinstance(node, ast.Attribute):
        return node.attr not in METHODS and not _is_hook(node)
    return isinstance(node, ast.Subscript | ast.Name | ast.IfExp)
