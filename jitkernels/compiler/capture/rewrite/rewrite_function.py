"""The code of a function with its control flow rewritten, once for each code object."""

import ast
import copy
import dis
import functools
import linecache
import types
from collections.abc import Iterable

from jitkernels.errors import BuildError
from jitkernels.frontends.rewriting.calls import FLOW, PART, Calls, of_flow
from jitkernels.frontends.rewriting.jumps import without_jumps
from jitkernels.frontends.rewriting.liveness import note_states
from jitkernels.frontends.rewriting.simpler import Simpler
from jitkernels.frontends.rewriting.unbound import guard
from jitkernels.native.parsing import unproven

REFUSED = (
    ast.TryStar, ast.Match, ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Global,
    ast.Nonlocal, ast.NamedExpr, ast.ClassDef, ast.AsyncFunctionDef,
)  # fmt: skip
"""What is left as it is, with all of its function: it is traced as it runs."""


def rewritten(code: types.CodeType) -> types.CodeType | None:
    """The code for a trace; None for what has no loops and branches, or cannot be read or rewritten."""
    return _rewritten(code, code.co_filename)[0]


def why_not(code: types.CodeType) -> str:
    """What keeps the loops and branches of a function from being rewritten, where it is; nothing where they are."""
    return "" if code.co_name.startswith(PART) else _rewritten(code, code.co_filename)[1]


@functools.lru_cache(maxsize=1024)
def _rewritten(code: types.CodeType, file: str) -> tuple[types.CodeType | None, str]:
    """The code, or why there is none. Equal code may be in two files."""
    if not _jumps(code):
        return None, ""
    if "__class__" in code.co_freevars or FLOW in (*code.co_names, *code.co_varnames):
        return None, ""
    head = f"loops and branches of {code.co_name} are run as they are traced"
    try:
        tree, lines_before = unproven(code)
        ast.increment_lineno(tree, lines_before)
        if not _is_text_of(tree, code):
            return None, f"{head}: its text is not what Python runs ({file}:{code.co_firstlineno})"
        Simpler().visit(tree)
        refused = next((one for one in ast.walk(tree) if _is_refused(one)), None)
        if isinstance(refused, ast.stmt | ast.expr):
            word = ":=" if isinstance(refused, ast.NamedExpr) else ast.unparse(refused).split()[0].rstrip(":")
            return (
                None,
                f"{head}, because of `{word}`: move it into another function ({file}:{refused.lineno})",
            )
        guard(tree, ast.Name(FLOW, ast.Load()))
        without_jumps(tree, of_flow("UNSET"))
        note_states(tree.body)
        Calls().function(tree)
    except (BuildError, RecursionError) as error:
        return None, f"{head}: {error}"
    return _compiled(_bare(tree), code), ""


def _is_refused(node: ast.AST) -> bool:
    match node:
        case ast.Delete(targets=targets):
            return not all(isinstance(one, ast.Name) for one in targets)
        case ast.Try(finalbody=last):  # jumps there end exceptions, too
            inside = [inner for one in last for inner in ast.walk(one)]
            return any(isinstance(one, ast.Return | ast.Break | ast.Continue) for one in inside)
    return isinstance(node, REFUSED)


def _jumps(code: types.CodeType) -> bool:
    """Whether there are loops or branches in a function or what is written in it."""
    return any(
        "JUMP" in step.opname or step.opname == "FOR_ITER" for step in dis.get_instructions(code)
    ) or any(map(_jumps, (one for one in code.co_consts if isinstance(one, types.CodeType))))


def _bare(tree: ast.FunctionDef) -> ast.FunctionDef:
    """A function without what is evaluated when it is defined; it has as many defaults."""
    bare = copy.copy(tree)
    bare.args = copy.deepcopy(tree.args)
    bare.decorator_list, bare.returns = [], None
    for argument in ast.walk(bare.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    bare.args.defaults = [ast.Constant(None) for _ in bare.args.defaults]
    bare.args.kw_defaults = [one and ast.Constant(None) for one in bare.args.kw_defaults]
    return bare


def _compiled(tree: ast.FunctionDef, code: types.CodeType, *imported: str) -> types.CodeType:
    """The code of a function in place of another one, with the same variables from around; some names are imported."""
    names = [ast.arg(name) for name in code.co_freevars]
    arguments = ast.arguments(posonlyargs=[], args=names, kwonlyargs=[], kw_defaults=[], defaults=[])
    around = ast.copy_location(ast.FunctionDef("around", arguments, [tree], []), tree)
    body: list[ast.stmt] = [*(ast.Import([ast.alias(name)]) for name in imported), around]
    module = ast.fix_missing_locations(ast.Module(body, []))
    made = compile(module, code.co_filename, "exec", dont_inherit=True)
    return _inside(_inside(made, "around"), code.co_name)


def _inside(code: types.CodeType, name: str) -> types.CodeType:
    return next(one for one in code.co_consts if isinstance(one, types.CodeType) and one.co_name == name)


def _is_text_of(tree: ast.FunctionDef, code: types.CodeType) -> bool:
    """Whether Python makes the same of a text as what it runs: the file may have changed since then."""
    plain = _bare(tree)

    def is_with(names: Iterable[str]) -> bool:
        """Whether it is the same where these are imported: methods of such are called by other instructions."""
        return _are_alike(_compiled(plain, code, *names), code)

    # To read the whole file takes longer than all else.
    return (
        is_with(())
        or is_with(_imported("".join(linecache.getlines(code.co_filename))))
        or is_with(code.co_names)
    )


@functools.lru_cache(maxsize=64)
def _imported(text: str) -> tuple[str, ...]:
    """The names that a file imports, outside of functions."""
    found: dict[str, None] = {}
    try:
        waiting: list[ast.AST] = [ast.parse(text)]
    except SyntaxError:
        return ()
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.Import | ast.ImportFrom):
            found.update({(alias.asname or alias.name).partition(".")[0]: None for alias in one.names})
        if not isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            waiting += ast.iter_child_nodes(one)
    found.pop("*", None)
    return tuple(found)


def _are_alike(one: types.CodeType, other: types.CodeType) -> bool:
    """Whether two codes do the same, wherever they stand."""
    if (one.co_code, one.co_names, one.co_varnames) != (other.co_code, other.co_names, other.co_varnames):
        return False
    return len(one.co_consts) == len(other.co_consts) and all(
        _are_alike(a, b)
        if isinstance(a, types.CodeType) and isinstance(b, types.CodeType)
        else repr(a) == repr(b)
        for a, b in zip(one.co_consts, other.co_consts, strict=True)
    )
