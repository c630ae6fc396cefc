"""The code of a function with its control flow rewritten, once for each code object."""

import ast
import copy
import dis
import functools
import types

from jitkernels.errors import BuildError
from jitkernels.frontends.rewriting.calls import FLOW, Calls, of_flow
from jitkernels.frontends.rewriting.jumps import without_jumps
from jitkernels.frontends.rewriting.liveness import NONE, before
from jitkernels.native.parsing import syntax_of

REFUSED = (
    ast.Try, ast.TryStar, ast.Match, ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Global,
    ast.Nonlocal, ast.NamedExpr, ast.ClassDef, ast.Delete, ast.AsyncFunctionDef,
)  # fmt: skip
"""What is left as it is, with all of its function: it is traced as it runs."""


@functools.lru_cache(maxsize=1024)
def rewritten(code: types.CodeType) -> types.CodeType | None:
    """The code for a trace; None for what has no loops and branches, or cannot be read or rewritten."""
    if not any("JUMP" in step.opname or step.opname == "FOR_ITER" for step in dis.get_instructions(code)):
        return None
    if "__class__" in code.co_freevars or FLOW in (*code.co_names, *code.co_varnames):
        return None
    try:
        found, lines_before = syntax_of(code)
        tree = copy.deepcopy(found)
        if any(isinstance(one, REFUSED) for one in ast.walk(tree)):
            return None
        without_jumps(tree, of_flow("UNSET"))
        before(tree.body, NONE)
        Calls().function(tree)
    except (BuildError, RecursionError):
        return None
    tree.decorator_list, tree.returns = [], None
    for argument in ast.walk(tree.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    tree.args.defaults = [ast.Constant(None) for _ in tree.args.defaults]
    tree.args.kw_defaults = [one and ast.Constant(None) for one in tree.args.kw_defaults]
    ast.increment_lineno(ast.fix_missing_locations(tree), lines_before)
    names = [ast.arg(name) for name in code.co_freevars]
    arguments = ast.arguments(posonlyargs=[], args=names, kwonlyargs=[], kw_defaults=[], defaults=[])
    around = ast.copy_location(ast.FunctionDef("around", arguments, [tree], []), tree)
    made = compile(
        ast.fix_missing_locations(ast.Module([around], [])), code.co_filename, "exec", dont_inherit=True
    )
    return _inside(_inside(made, "around"), code.co_name)


def _inside(code: types.CodeType, name: str) -> types.CodeType:
    return next(one for one in code.co_consts if isinstance(one, types.CodeType) and one.co_name == name)
