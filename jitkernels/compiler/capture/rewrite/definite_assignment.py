"""Definite assignment analysis: where a function may read an unbound variable.

It runs twice: with loops that may run zero iterations, and with loops that run at least one.
"""

import ast
from collections.abc import Iterator, Sequence

from jitkernels.compiler.capture.rewrite.ast_builder import parameters_of

MAYBE_UNBOUND = "jk_maybe_unbound"
"""AST attribute of a name that may be unbound where it is read: `SOME_PATH`, or `ZERO_TRIP` (after an empty loop)."""
ZERO_TRIP, SOME_PATH = 1, 2
Names = frozenset[str]
State = Names | None
"""The definitely assigned variables; None in unreachable code."""


def locals_of(tree: ast.FunctionDef | ast.Lambda) -> Names:
    """The local variables of a function."""
    return parameters_of(tree) | (stored_in(tree.body) if isinstance(tree, ast.FunctionDef) else frozenset())


def stored_in(nodes: ast.AST | Sequence[ast.AST]) -> Names:
    """The names that nodes assign or delete, nested functions and comprehensions left out."""
    names: set[str] = set()
    worklist = [nodes] if isinstance(nodes, ast.AST) else [*nodes]
    while worklist:
        node = worklist.pop()
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
                continue
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                continue
            case ast.AnnAssign(value=None):
                continue
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                names.add(name)
            case ast.ExceptHandler(name=str() as name):
                names.add(name)
            case ast.alias():
                names.add((node.asname or node.name).partition(".")[0])
        worklist += ast.iter_child_nodes(node)
    return frozenset(names)


def deleted_in(nodes: Sequence[ast.AST]) -> Names:
    """The names that nodes delete."""
    names: set[str] = set()
    for child in (child for node in nodes for child in ast.walk(node)):
        match child:
            case ast.Name(id=name, ctx=ast.Del()) | ast.ExceptHandler(name=str() as name):
                names.add(name)
    return frozenset(names)


def join(*states: State) -> State:
    """The definitely assigned variables where control paths join."""
    known = [state for state in states if state is not None]
    return frozenset.intersection(*known) if known else None


def never_suppresses(node: ast.With) -> bool:
    """Whether the context managers never suppress exceptions: code after the block runs only if all of it ran."""
    for item in node.items:
        match item.context_expr:
            case ast.Call(func=ast.Name(id="errstate") | ast.Attribute(attr="errstate")):
                continue
        return False
    return True


class AssignmentChecker:
    """Annotates the names that one function reads while maybe unbound.

    `assumes_nonzero_trips`: assume that loops run at least once.
    """

    def __init__(self, tree: ast.FunctionDef, *, assumes_nonzero_trips: bool) -> None:
        self.names, self.assumes_nonzero_trips = locals_of(tree), assumes_nonzero_trips
        self.deleted = deleted_in(tree.body)
        self.loops: list[tuple[list[State], list[State]]] = []
        self.cleared: list[Names] = []
        self.block(tree.body, parameters_of(tree))

    def mark_maybe_unbound(self, node: ast.AST) -> None:
        """Record that a name may be unbound."""
        setattr(
            node, MAYBE_UNBOUND, SOME_PATH if self.assumes_nonzero_trips else getattr(node, MAYBE_UNBOUND, ZERO_TRIP)
        )

    def check_reads(self, node: ast.AST | None, state: Names) -> None:
        """Check the reads of an expression, or of a nested function that runs later."""
        for name, is_later in _free(node, frozenset(), is_later=False) if node is not None else ():
            if name.id in self.names and (name.id not in state or (is_later and name.id in self.deleted)):
                self.mark_maybe_unbound(name)

    def block(self, nodes: Sequence[ast.stmt], state: State) -> State:
        """Analyse statements in order."""
        for node in nodes:
            if state is None:
                return None
            state = self.statement(node, state)
        return state

    def statement(self, node: ast.stmt, state: Names) -> State:
        match node:
            case ast.If(test=test):
                self.check_reads(test, state)
                return join(self.block(node.body, state), self.block(node.orelse, state))
            case ast.While() | ast.For():
                return self._loop(node, state)
            case ast.With(items=items):
                for item in items:
                    self.check_reads(item.context_expr, state)
                    state |= stored_in(item.optional_vars) if item.optional_vars else frozenset()
                end = self.block(node.body, state)
                return end if never_suppresses(node) else join(end, state - deleted_in(node.body))
            case ast.Try():
                return self._try(node, state)
            case ast.Return() | ast.Raise():
                self.check_reads(node, state)
                return None
            case ast.Break() | ast.Continue():
                remaining = state.difference(*self.cleared)
                self.loops[-1][isinstance(node, ast.Continue)].append(remaining)
                return None
            case ast.Delete(targets=targets):
                for deleted in targets:
                    if isinstance(deleted, ast.Name) and deleted.id not in state:
                        self.mark_maybe_unbound(deleted)
                    self.check_reads(deleted, state)
                return state - deleted_in([node])
            case ast.AugAssign(target=ast.Name(id=name) as target) if name not in state:
                self.mark_maybe_unbound(target)
        self.check_reads(node, state)
        return state | stored_in(node)

    def _loop(self, node: ast.While | ast.For, entry: Names) -> State:
        """Iterate to a fixpoint: an iteration may delete variables that its beginning assumed to be assigned."""
        self.check_reads(node.iter if isinstance(node, ast.For) else None, entry)
        head = entry
        while True:
            self.loops.append(([], []))
            begin = head
            if isinstance(node, ast.For):
                self.check_reads(node.target, head)
                begin = head | stored_in(node.target)
            else:
                self.check_reads(node.test, head)
            end = self.block(node.body, begin)
            breaks, nexts = self.loops.pop()
            end = join(end, *nexts)
            following = join(entry, end)
            assert following is not None, "the loop is reached"
            if following == head:
                break
            head = following
        match node:
            case ast.While(test=ast.Constant(value=value)) if value:
                return join(*breaks)
        normal: State = end if self.assumes_nonzero_trips and end is not None else head
        return join(self.block(node.orelse, normal), *breaks)

    def _try(self, node: ast.Try, entry: Names) -> State:
        in_body = entry - deleted_in(node.body)
        anywhere = entry - deleted_in([node])
        self.cleared.append(deleted_in([*node.handlers, *node.finalbody]))
        ends = [self.block([*node.body, *node.orelse], entry)]
        for handler in node.handlers:
            self.check_reads(handler.type, in_body)
            own = frozenset({handler.name} if handler.name else ())
            end = self.block(handler.body, in_body | own)
            ends.append(end if end is None else end - own)
        self.cleared.pop()
        end = join(*ends)
        if node.finalbody:
            self.block(node.finalbody, anywhere)
            return self.block(node.finalbody, end) if end is not None else None
        return end


def _free(node: ast.AST, own: Names, *, is_later: bool) -> Iterator[tuple[ast.Name, bool]]:
    """The names that a node reads, except its own variables, and whether a nested function reads them later."""
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            if name not in own:
                yield node, is_later
            return
        case ast.FunctionDef() | ast.Lambda():
            defaults = [*node.args.defaults, *node.args.kw_defaults]
            for default in (part for part in defaults if part is not None):
                yield from _free(default, own, is_later=is_later)
            inner = own | locals_of(node)
            for part in node.body if isinstance(node, ast.FunctionDef) else [node.body]:
                yield from _free(part, inner, is_later=True)
            return
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            own = own.union(*(stored_in(part.target) for part in node.generators))
    for child in ast.iter_child_nodes(node):
        yield from _free(child, own, is_later=is_later)
