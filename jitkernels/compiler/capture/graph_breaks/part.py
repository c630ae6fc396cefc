"""Parts of a divided function: their definitions, and the statements that call them."""

import ast
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from jitkernels.compiler.capture.graph_breaks.live_variables import read_in
from jitkernels.compiler.capture.graph_breaks.statements import Key, copied, has_loop, key_of, leaves, weight_of
from jitkernels.compiler.capture.rewrite.ast_builder import assign, function, load, loads, stores

CALLED, RESULT, UNBOUND = "_jk_call_", "_jk_result", "_jk_unbound"
"""Names in divided functions: prefix of their parts; results of a part that may leave variables unbound; such one."""
LEAVES, LEFT_WITH = "_jk_leaves", "_jk_left_with"
"""Variables of divided functions: whether a part ends the function, and with which result."""


class Part(NamedTuple):
    """A run of statements as a function.

    `traced` and `plain`: its definitions for the trace and for Python, which differ where one of the `outputs` may stay
    unbound. `loop`: the line of the loop around it that stays Python, or 0. `leaves`: whether it may end the function.
    """

    key: Key
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    traced: ast.FunctionDef
    plain: ast.FunctionDef
    loop: int
    leaves: bool = False

    @property
    def identity(self) -> Any:
        """What its code depends on."""
        return self.key, self.inputs, self.outputs, ast.dump(self.traced)

    @property
    def lines(self) -> tuple[int, int]:
        """The first and last line."""
        return self.key[0], self.key[2]

    @property
    def weight(self) -> int:
        """An estimate of its operations, see `weight_of`."""
        return weight_of(self.traced.body)

    @property
    def has_loops(self) -> bool:
        """Whether Python would run loops in it."""
        return has_loop([self.traced])


class Interface(NamedTuple):
    """The variables that cross the borders of a run: `outputs` of it may stay unbound if they are in `maybe`.

    `loop`: the line of the loop around it that stays Python, or 0. `is_tail`: the function ends with the run.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    maybe: tuple[str, ...]
    loop: int
    is_tail: bool


def part_of(name: str, nodes: Sequence[ast.stmt], across: Interface, imports: Mapping[str, ast.stmt]) -> Part:
    """The part of a function `name` that a run of statements becomes; `imports`: modules that it imports first."""
    outputs = across.outputs
    may_leave = not across.is_tail and any(map(leaves, nodes))
    result = loads(outputs) if len(outputs) != 1 else load(outputs[0])
    if may_leave:
        result = ast.Tuple([ast.Constant(False), ast.Constant(None), *loads(outputs).elts], ast.Load())
    end: list[ast.stmt] = [ast.Return(result)] if outputs or may_leave else []
    checks: list[ast.stmt] = [_replace_unbound(name) for name in across.maybe]
    head = [copied(statement) for name, statement in imports.items() if name in read_in(nodes)]

    def defined(last: list[ast.stmt]) -> ast.FunctionDef:
        body = [copied(node) for node in nodes]
        body = [FlaggedReturns(len(outputs)).visit(node) for node in body] if may_leave else body
        located = [ast.copy_location(one, nodes[-1]) for one in last]
        made = ast.copy_location(function(name, across.inputs, [*head, *body, *located]), nodes[0])
        return ast.fix_missing_locations(made)

    key, traced = key_of(nodes), defined(end)
    plain = defined([*checks, *end]) if checks else traced
    return Part(key, CALLED + "_".join(map(str, key)), across.inputs, outputs, traced, plain, across.loop, may_leave)


def call_of(part: Part, across: Interface) -> list[ast.stmt]:
    """The statements that call a part and assign its results."""
    call: ast.expr = ast.Call(load(part.name), [load(name) for name in part.inputs], [])
    if across.is_tail:
        return [ast.Return(call)]
    flags = [LEAVES, LEFT_WITH] if part.leaves else []
    names = {name: f"{RESULT}_{name}" if name in across.maybe else name for name in part.outputs}
    targets = [*flags, *names.values()]
    if not targets:
        return [ast.Expr(call)]
    output: list[ast.stmt] = [
        ast.Assign([stores(targets) if len(targets) > 1 else ast.Name(targets[0], ast.Store())], call)
    ]
    if part.leaves:
        output.append(ast.If(load(LEAVES), [ast.Return(load(LEFT_WITH))], []))
    for name in across.maybe:
        is_bound = ast.Compare(load(names[name]), [ast.IsNot()], [load(UNBOUND)])
        output.append(ast.If(is_bound, [assign(name, load(names[name]))], []))
    return output


class FlaggedReturns(ast.NodeTransformer):
    """Makes a part that may end the function tell so: it returns a flag and the result before its outputs."""

    def __init__(self, outputs: int) -> None:
        self.outputs = outputs

    def visit_Return(self, node: ast.Return) -> ast.AST:
        rest: list[ast.expr] = [ast.Constant(None)] * self.outputs
        flagged = ast.Tuple([ast.Constant(True), node.value or ast.Constant(None), *rest], ast.Load())
        return ast.copy_location(ast.Return(flagged), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node


def if_bound(names: Sequence[str], call: list[ast.stmt], plain: list[ast.stmt]) -> list[ast.stmt]:
    """Call a part if all variables that it takes are bound; else run its statements, which may not read them."""
    flag = f"{RESULT}_is_bound"
    unbound = ast.ExceptHandler(load("NameError"), None, [assign(flag, False)])
    test = ast.Try([ast.Expr(loads(names)), assign(flag, True)], [unbound], [], [])
    return [test, ast.If(load(flag), call, plain)]


def _replace_unbound(name: str) -> ast.stmt:
    """``try: name; except NameError: name = unbound``: what a part returns for a variable that it has not assigned."""
    handler = ast.ExceptHandler(load("NameError"), None, [assign(name, load(UNBOUND))])
    return ast.Try([ast.Expr(load(name))], [handler], [], [])
