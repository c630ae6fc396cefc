"""Rewrite the control flow of a function into calls of runtime hooks, once per code object."""

import ast
import copy
import dis
import functools
import itertools
import linecache
import types
from collections.abc import Iterable, Iterator, Sequence

from jitkernels.codegen.function_ast import parse_unverified
from jitkernels.compiler.capture.bytecode_calls import calls_variables
from jitkernels.compiler.capture.rewrite.aliases import Aliases, local_aliases
from jitkernels.compiler.capture.rewrite.ast_builder import FLOW, PART, function
from jitkernels.compiler.capture.rewrite.desugar import Desugar
from jitkernels.compiler.capture.rewrite.eliminate_jumps import eliminate_jumps
from jitkernels.compiler.capture.rewrite.liveness import note_states
from jitkernels.compiler.capture.rewrite.outline_bodies import StatementRewriter
from jitkernels.compiler.capture.rewrite.unbound_guards import UnboundGuards
from jitkernels.core.cached_property import cached_per_code
from jitkernels.errors import BuildError

UNSUPPORTED_STATEMENTS = (
    ast.TryStar, ast.Match, ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Global,
    ast.Nonlocal, ast.NamedExpr, ast.ClassDef, ast.AsyncFunctionDef,
)  # fmt: skip
"""Statements that prevent the rewrite of their function, which is then traced as it runs."""


def rewrite_code(code: types.CodeType, aliases: Aliases = (), *, resolves: bool = False) -> types.CodeType | None:
    """The code for a trace; None where there is nothing to rewrite, or the source cannot be read or rewritten.

    `aliases`: names of the function with the Python builtins that they refer to, see `StatementRewriter`. `resolves`:
    whether callees need resolution, even without control flow.
    """
    if not (has_control_flow(code) or _has_tests(code) or resolves or calls_variables(code)):
        return None
    return _rewrite(code, aliases)[0]


def rewrite_blocker(code: types.CodeType) -> str:
    """Why the loops and branches of a function are not rewritten; empty where they are."""
    if code.co_name.startswith(PART) or not has_control_flow(code):
        return ""
    return _rewrite(code, ())[1]


@cached_per_code
def _rewrite(code: types.CodeType, aliases: Aliases) -> tuple[types.CodeType | None, str]:
    """The code, or the reason why there is none."""
    if "__class__" in code.co_freevars or FLOW in (*code.co_names, *code.co_varnames):
        return None, ""
    head = f"loops and branches of {code.co_name} are run as they are traced"
    try:
        tree = source_tree(code)
        if not is_source_of(tree, code):
            where = f"{code.co_filename}:{code.co_firstlineno}"
            return None, f"{head}: its source is not the code that Python runs ({where})"
        Desugar().visit(tree)
        statement = next((node for node in ast.walk(tree) if _is_unsupported(node)), None)
        if isinstance(statement, ast.stmt | ast.expr):
            where = f"{code.co_filename}:{statement.lineno}"
            word = ":=" if isinstance(statement, ast.NamedExpr) else ast.unparse(statement).split()[0].rstrip(":")
            return None, f"{head}, because of `{word}`: move it into another function ({where})"
        UnboundGuards().function(tree)
        eliminate_jumps(tree)
        note_states(tree.body)
        known = dict(aliases)
        StatementRewriter(known | local_aliases(tree, known)).function(tree)
    except (BuildError, RecursionError) as error:
        return None, f"{head}: {error}"
    return _compile(bare(tree), code), ""


def source_tree(code: types.CodeType) -> ast.FunctionDef:
    """The AST of a function with the lines of its file. Raises BuildError where it cannot be read."""
    tree, lines_before = parse_unverified(code)
    ast.increment_lineno(tree, lines_before)
    return tree


def _is_unsupported(node: ast.AST) -> bool:
    match node:
        case ast.Delete(targets=targets):
            return not all(isinstance(target, ast.Name) for target in targets)
        case ast.Try(finalbody=last):  # jumps in `finally` also discard exceptions
            inside = [inner for target in last for inner in ast.walk(target)]
            return any(isinstance(target, ast.Return | ast.Break | ast.Continue) for target in inside)
    return isinstance(node, UNSUPPORTED_STATEMENTS)


@cached_per_code
def has_control_flow(code: types.CodeType) -> bool:
    """Whether a function, or one inside it, has loops or branches."""
    return any("JUMP" in name or name == "FOR_ITER" for name in _operations(code))


@cached_per_code
def _has_tests(code: types.CodeType) -> bool:
    """Whether it tests identity or membership, which Python decides by the proxies of a trace."""
    return any(name in ("IS_OP", "CONTAINS_OP") for name in _operations(code))


@cached_per_code
def compares_identities(code: types.CodeType) -> bool:
    """Whether it tests identity or membership with something else than a constant on the right."""
    steps = [*dis.get_instructions(code)]
    return any(
        step.opname in ("IS_OP", "CONTAINS_OP") and before.opname != "LOAD_CONST"
        for before, step in itertools.pairwise(steps)
    ) or any(compares_identities(inner) for inner in code.co_consts if isinstance(inner, types.CodeType))


def _operations(code: types.CodeType) -> Iterator[str]:
    """The names of the instructions of a function, and of those inside it."""
    yield from (step.opname for step in dis.get_instructions(code))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _operations(constant)


def bare(tree: ast.FunctionDef) -> ast.FunctionDef:
    """The function without decorators, annotations and default values, but with as many defaults."""
    bare = copy.copy(tree)
    bare.args = copy.deepcopy(tree.args)
    bare.decorator_list, bare.returns = [], None
    for argument in ast.walk(bare.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    bare.args.defaults = [ast.Constant(None) for _ in bare.args.defaults]
    bare.args.kw_defaults = [default and ast.Constant(None) for default in bare.args.kw_defaults]
    return bare


def _compile(tree: ast.FunctionDef, code: types.CodeType, *imported: str) -> types.CodeType:
    """Compile a function with the free variables of `code`; the names `imported` become imports of the module."""
    body: list[ast.stmt] = [*(ast.Import([ast.alias(name)]) for name in imported), around(tree, code.co_freevars)]
    module = ast.fix_missing_locations(ast.Module(body, []))
    code_of_module = compile(module, code.co_filename, "exec", dont_inherit=True)
    return inside(inside(code_of_module, "around"), code.co_name)


def around(tree: ast.FunctionDef, free: Sequence[str]) -> ast.FunctionDef:
    """A function that defines another one, whose free variables are its parameters."""
    itself: list[ast.stmt] = [] if tree.name in free else [ast.Global([tree.name])]  # as where modules define it
    return ast.copy_location(function("around", free, [*itself, tree]), tree)


def inside(code: types.CodeType, name: str) -> types.CodeType:
    """The code object of a name among the constants of another one."""
    return next(
        constant for constant in code.co_consts if isinstance(constant, types.CodeType) and constant.co_name == name
    )


def is_source_of(tree: ast.FunctionDef, code: types.CodeType) -> bool:
    """Whether the source compiles to the running code: the file may have changed since."""
    plain = bare(tree)

    def is_with(names: Iterable[str]) -> bool:
        """Whether it is the same if these names are imported: Python calls methods of modules differently."""
        return _is_same_code(_compile(plain, code, *names), code)

    # Try the cheap cases first: parsing the whole file takes longest.
    return (
        is_with(()) or is_with(_imported_names("".join(linecache.getlines(code.co_filename)))) or is_with(code.co_names)
    )


@functools.lru_cache(maxsize=64)
def _imported_names(text: str) -> tuple[str, ...]:
    """The names that a file imports at module level."""
    names: dict[str, None] = {}
    try:
        worklist: list[ast.AST] = [ast.parse(text)]
    except SyntaxError:
        return ()
    while worklist:
        node = worklist.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            names.update({(alias.asname or alias.name).partition(".")[0]: None for alias in node.names})
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            worklist += ast.iter_child_nodes(node)
    names.pop("*", None)
    return tuple(names)


def _is_same_code(code: types.CodeType, other: types.CodeType) -> bool:
    """Whether two code objects do the same, wherever they are defined."""
    if (code.co_code, code.co_names, code.co_varnames) != (other.co_code, other.co_names, other.co_varnames):
        return False
    return len(code.co_consts) == len(other.co_consts) and all(map(_is_same_constant, code.co_consts, other.co_consts))


def _is_same_constant(value: object, other: object) -> bool:
    """Whether two constants are the same.

    Equal sets may list colliding elements in different orders: code of a .pyc file has them as they were saved.
    """
    if isinstance(value, types.CodeType) and isinstance(other, types.CodeType):
        return _is_same_code(value, other)
    if isinstance(value, tuple) and isinstance(other, tuple):
        return len(value) == len(other) and all(map(_is_same_constant, value, other))
    if isinstance(value, frozenset) and isinstance(other, frozenset):
        return {*map(repr, value)} == {*map(repr, other)}
    return repr(value) == repr(other)
