"""Where a function may read a variable that has no value: found by what surely assigns to it before.

Two answers: with loops that may have no round at all, and with those that have one at least.
"""

import ast
from collections.abc import Iterator, Sequence

DOUBT = "jk_doubt"
"""The attribute of a name that may have no value where it is read: `NO_ROUND` if a loop had none, or `NONE_SET`."""
NO_ROUND, NONE_SET = 1, 2
Names = frozenset[str]
State = Names | None
"""The variables that surely have a value; None behind what never ends."""


def locals_of(tree: ast.FunctionDef | ast.Lambda) -> Names:
    """The variables of a function."""
    given = {one.arg for one in ast.walk(tree.args) if isinstance(one, ast.arg)}
    return frozenset(given) | (stored_in(tree.body) if isinstance(tree, ast.FunctionDef) else frozenset())


def stored_in(nodes: ast.AST | Sequence[ast.AST]) -> Names:
    """The names that nodes assign to or delete, functions and comprehensions in them left out."""
    found: set[str] = set()
    waiting = [nodes] if isinstance(nodes, ast.AST) else [*nodes]
    while waiting:
        one = waiting.pop()
        match one:
            case ast.FunctionDef(name=name):
                found.add(name)
                continue
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                continue
            case ast.AnnAssign(value=None):
                continue
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                found.add(name)
            case ast.ExceptHandler(name=str() as name):
                found.add(name)
            case ast.alias():
                found.add((one.asname or one.name).partition(".")[0])
        waiting += ast.iter_child_nodes(one)
    return frozenset(found)


def deleted_in(nodes: Sequence[ast.AST]) -> Names:
    """The names that nodes delete."""
    return frozenset(
        name
        for node in nodes
        for one in ast.walk(node)
        for name in (
            (one.id,)
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Del)
            else (one.name,)
            if isinstance(one, ast.ExceptHandler) and one.name
            else ()
        )
    )


def joined(*states: State) -> State:
    """What surely has a value behind one of several ways."""
    known = [one for one in states if one is not None]
    return frozenset.intersection(*known) if known else None


def never_suppresses(node: ast.With) -> bool:
    """Whether an exception in a block surely leaves it, so that all of it ran where one goes on behind it."""
    for item in node.items:
        match item.context_expr:
            case ast.Call(func=ast.Name(id="errstate") | ast.Attribute(attr="errstate")):
                continue
        return False
    return True


class Assigned:
    """Notes doubts on the names that one function reads. `has_round`: loops have a round at least."""

    def __init__(self, tree: ast.FunctionDef, *, has_round: bool) -> None:
        self.names, self.has_round = locals_of(tree), has_round
        self.deleted = deleted_in(tree.body)
        self.loops: list[tuple[list[State], list[State]]] = []
        self.cleared: list[Names] = []
        self.block(tree.body, frozenset(one.arg for one in ast.walk(tree.args) if isinstance(one, ast.arg)))

    def doubt(self, node: ast.AST) -> None:
        """Note that a name may have no value."""
        setattr(node, DOUBT, NONE_SET if self.has_round else getattr(node, DOUBT, NO_ROUND))

    def reads(self, node: ast.AST | None, state: Names) -> None:
        """What is read by an expression, or later by a function."""
        for name, is_later in _free(node, frozenset(), is_later=False) if node is not None else ():
            if name.id in self.names and (name.id not in state or (is_later and name.id in self.deleted)):
                self.doubt(name)

    def block(self, nodes: Sequence[ast.stmt], state: State) -> State:
        """Go through statements."""
        for node in nodes:
            if state is None:
                return None
            state = self.statement(node, state)
        return state

    def statement(self, node: ast.stmt, state: Names) -> State:
        match node:
            case ast.If(test=test):
                self.reads(test, state)
                return joined(self.block(node.body, state), self.block(node.orelse, state))
            case ast.While() | ast.For():
                return self._loop(node, state)
            case ast.With(items=items):
                for item in items:
                    self.reads(item.context_expr, state)
                    state |= stored_in(item.optional_vars) if item.optional_vars else frozenset()
                end = self.block(node.body, state)
                return end if never_suppresses(node) else joined(end, state - deleted_in(node.body))
            case ast.Try():
                return self._try(node, state)
            case ast.Return() | ast.Raise():
                self.reads(node, state)
                return None
            case ast.Break() | ast.Continue():
                kept = state.difference(*self.cleared)
                self.loops[-1][isinstance(node, ast.Continue)].append(kept)
                return None
            case ast.Delete(targets=targets):
                for one in targets:
                    if isinstance(one, ast.Name) and one.id not in state:
                        self.doubt(one)
                    self.reads(one, state)
                return state - deleted_in([node])
            case ast.AugAssign(target=ast.Name(id=name) as target) if name not in state:
                self.doubt(target)
        self.reads(node, state)
        return state | stored_in(node)

    def _loop(self, node: ast.While | ast.For, entry: Names) -> State:
        """Rounds are gone through until nothing is deleted that one was thought to begin with."""
        self.reads(node.iter if isinstance(node, ast.For) else None, entry)
        head = entry
        while True:
            self.loops.append(([], []))
            begin = head
            if isinstance(node, ast.For):
                self.reads(node.target, head)
                begin = head | stored_in(node.target)
            else:
                self.reads(node.test, head)
            end = self.block(node.body, begin)
            breaks, nexts = self.loops.pop()
            end = joined(end, *nexts)
            following = joined(entry, end)
            assert following is not None, "the loop is reached"
            if following == head:
                break
            head = following
        match node:
            case ast.While(test=ast.Constant(value=value)) if value:
                return joined(*breaks)
        normal: State = end if self.has_round and end is not None else head
        return joined(self.block(node.orelse, normal), *breaks)

    def _try(self, node: ast.Try, entry: Names) -> State:
        in_body = entry - deleted_in(node.body)
        anywhere = entry - deleted_in([node])
        self.cleared.append(deleted_in([*node.handlers, *node.finalbody]))
        ends = [self.block([*node.body, *node.orelse], entry)]
        for one in node.handlers:
            self.reads(one.type, in_body)
            own = frozenset({one.name} if one.name else ())
            end = self.block(one.body, in_body | own)
            ends.append(end if end is None else end - own)
        self.cleared.pop()
        end = joined(*ends)
        if node.finalbody:
            self.block(node.finalbody, anywhere)
            return self.block(node.finalbody, end) if end is not None else None
        return end


def _free(node: ast.AST, own: Names, *, is_later: bool) -> Iterator[tuple[ast.Name, bool]]:
    """The names that a part of a function reads, but for its own ones, and whether functions in it read them later."""
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            if name not in own:
                yield node, is_later
            return
        case ast.FunctionDef() | ast.Lambda():
            given = [*node.args.defaults, *node.args.kw_defaults]
            for default in (one for one in given if one is not None):
                yield from _free(default, own, is_later=is_later)
            inner = own | locals_of(node)
            for one in node.body if isinstance(node, ast.FunctionDef) else [node.body]:
                yield from _free(one, inner, is_later=True)
            return
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            own = own.union(*(stored_in(one.target) for one in node.generators))
    for child in ast.iter_child_nodes(node):
        yield from _free(child, own, is_later=is_later)
