"""One trace: its inputs, what its code will be valid for, and the values of the call that is traced."""

import functools
import itertools
import linecache
import os
import re
import sys
import threading
from collections.abc import Iterable, Sequence
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from jitkernels.frontends.frozen import in_lines, shared_copy
from jitkernels.frontends.rewriting.code import why_not
from jitkernels.frontends.storage import c_strides
from jitkernels.functions import traces
from jitkernels.graph import construct, interpreter
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.extents import Extent, Number, Scope, is_moving, same
from jitkernels.graph.ir import Node, serial, sorted_nodes
from jitkernels.graph.unknown import AskedError

FIRST_ROOM = 64
"""Rounds of loops of unknown length that are written down at first."""
MOST_OPERATIONS = 20_000
"""Nodes that a function may have in a trace: LLVM takes a millisecond or so for each."""
INT64 = range(-(2**63), 2**63)
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # noqa: PTH100, PTH120
PROGRAMS = tuple(f"{PACKAGE}{folder}{os.sep}" for folder in ("benchmark", "contest"))
"""What is ours as well, but written as users write."""
NUMPY = os.path.dirname(os.path.abspath(np.__file__)) + os.sep  # noqa: PTH100, PTH120


class ValueGuard(NamedTuple):
    """What a number among the arguments must be: ``truth == (leaf <operation> bound)``; ``is`` compares bits."""

    leaf: int
    operation: str
    bound: Any
    truth: bool

    def holds(self, leaves: Sequence[Any]) -> bool:
        value = leaves[self.leaf]
        match self.operation:
            case "<":
                found = value < self.bound
            case "<=":
                found = value <= self.bound
            case "==":
                found = value == self.bound
            case _:
                found = same_number(value, self.bound)
        return bool(found) == self.truth


def same_number(one: Any, other: Any) -> bool:
    """Whether two numbers are the same to every function: zeros have signs, NaN is itself."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float | np.floating):
        return bool(
            (one == other and np.signbit(one) == np.signbit(other)) or (one != one and other != other)
        )
    return bool(one == other)


class Binding(NamedTuple):
    """Where the value of a symbol comes from.

    ``extent`` and ``stride`` (in elements) of an array's dimension, the ``value`` of an int argument, or ``negated``.
    """

    symbol: str
    leaf: int
    kind: str
    dimension: int = 0


class Tracer:
    """What one trace knows. `leaves` are the arrays and numbers of the call, and then arrays that became constants.

    `picks` are what picks elements by numbers, or places them: NumPy refuses those beside an array, used or not.
    `along` is what Python's loops and those of the code are going along.
    `checks` are numbers that are true where the function raises instead.
    `partial` are operations that are done for all elements, and in NumPy for those that a mask chooses. `depth` is the
    number of loops and branches around, `begun` a serial number between the nodes of the innermost one and older ones,
    `loops` those that are loops, `ranges`, `moves` and `implied` are what is known of ints
    in them, and `risky` are results of those that may refuse. `around`, `found` and `traced` are the loops that are
    being traced, what was found of loops, and how many rounds were traced. `differentiates`: in how many derivatives'
    functions the trace is. `roomy` is how long tapes of loops of unknown length are, and an array of that length.
    """

    def __init__(self, leaves: Sequence[Any]) -> None:
        self.scope = Scope()
        self.leaves = list(leaves)
        self.inputs: list[Node] = []
        self.guards: dict[ValueGuard, None] = {}
        self.bindings: list[Binding] = []
        self.constants: list[Any] = []
        self._frozen: dict[Any, tuple[Any, bytes, Node]] = {}
        self.made: dict[int, tuple[Any, Any]] = {}
        self.notes: dict[str, None] = {}
        self.picks: list[Node] = []
        self.checks: list[Node] = []
        self.partial: set[str] = set()
        self.is_open, self.is_quiet = True, False
        self.depth, self.begun, self.has_flows = 0, 0, False
        self.loops: list[Any] = []
        self.along: list[Any] = []
        self.risky: list[Node] = []
        self.ranges: dict[int, Any] = {}
        self.moves: dict[int, Any] = {}
        self.limits: dict[int, Any] = {}
        self.named = self.traced = 0
        self.around: list[Any] = []
        self.found: dict[Any, Any] = {}
        self.implied: dict[int, Any] = {}
        self.unset: dict[int, Node] = {}
        self.differentiates = 0
        self.roomy: Any = None
        self.places: dict[int, tuple[Node, str]] = {}
        self._values: dict[int, Any] = {}
        self._begun = serial()

    def refuse_endless(self, node: Node) -> None:
        """Raise UnknownError for an operation that comes after too many others: nobody would wait for their code."""
        if node.serial - self._begun > MOST_OPERATIONS:
            raise UnknownError(
                f"more than {MOST_OPERATIONS:,} operations, one after another, as of a loop in a function whose text "
                "is in no file"
            )

    def placed(self, node: Node) -> Node:
        """The node; where the function asks for it is remembered, for what messages tell."""
        frame = user_frame()
        if frame is not None:
            self.places[id(node)] = node, f"{frame.f_code.co_filename}:{frame.f_lineno}"
        return node

    def guard(self, leaf: int, operation: str, bound: Any, truth: bool = True) -> None:
        self.guards.setdefault(ValueGuard(leaf, operation, bound, truth))

    def note(self, text: str) -> None:
        """Something that `explain` tells."""
        self.notes.setdefault(text)

    def computes_in_part(self, found: Iterable[Node], given: Iterable[Node]) -> None:
        """Remember the operations between nodes as some that NumPy does for chosen elements alone."""
        before, waiting = {id(node) for node in given}, list(found)
        while waiting:
            node = waiting.pop()
            if id(node) not in before:
                self.partial.add(node.operation)
                waiting.extend(node.inputs)

    def constant_array(self, array: Any) -> Node:
        """A concrete array as one more input, of a shape that is part of the code."""
        return self._constant(in_lines(array))

    def _constant(self, copy: Any) -> Node:
        node = Node(
            "input",
            (),
            copy.dtype.name,
            copy.shape,
            {"index": len(self.inputs), "strides": c_strides(copy.shape), "in_lines": True},
        )
        self.inputs.append(node)
        self.leaves.append(copy)
        self.constants.append(copy)
        return node

    def room(self) -> Extent:
        """The length of tapes of loops of unknown length: that of an array, which grows where it is too little."""
        if self.roomy is None:
            length = self.scope.symbol(f"n{len(self.leaves)}r", FIRST_ROOM)
            self.bindings.append(Binding(str(length), len(self.leaves), "extent", 0))
            options = {"index": len(self.inputs), "strides": (1,)}
            self.inputs.append(Node("input", (), "bool", (length,), options))
            self.leaves.append(np.zeros(FIRST_ROOM, bool))
            self.constants.append(self.leaves[-1])
            self.roomy = length, self.leaves[-1]
        return self.roomy[0]  # type: ignore[no-any-return]

    def frozen_array(self, array: Any) -> Node:
        """A static array, or what follows from some: one constant, however often the function names it."""
        key, content = (array.ctypes.data, array.shape, array.strides, array.dtype), array.tobytes()
        if (
            key not in self._frozen or self._frozen[key][1] != content
        ):  # what was made may be changed in place
            self._frozen[key] = array, content, self._constant(shared_copy(array))
        return self._frozen[key][2]

    def value(self, node: Node) -> Any:
        """What a node is in the call that is traced."""
        for one in self.inputs:
            self._values.setdefault(id(one), (one, np.asarray(self.leaves[one.options["index"]])))
        for one in sorted_nodes([node]):
            if one.operation == "parameter":
                raise UnknownError("a value is asked for that differs from round to round")
            if id(one) not in self._values:
                given = [self._values[id(other)][1] for other in one.inputs]
                with np.errstate(all="ignore"):
                    found = interpreter.of_node(one, given, self._extent)
                self._values[id(one)] = one, found if isinstance(found, tuple) else np.asarray(found)
        return self._values[id(node)][1]

    def _extent(self, extent: Number) -> int:
        if is_moving(extent):
            raise UnknownError("a value is asked for that differs from round to round")
        return extent.value if isinstance(extent, Extent) else int(extent)

    def number(self, node: Node, what: Any) -> Any:
        """The value of a 0-d node as a NumPy scalar; from now on the code is for this one alone.

        Only of what follows from numbers among the arguments. Raises AskedError for what follows from arrays.
        """
        found = [one for one in sorted_nodes([node]) if one.operation in ("input", "extent", "call")]
        if not self.is_known(node):
            refuse(what)
        for one in found:
            if one.operation == "extent":
                int(one.options["extent"])
            else:
                leaf = one.options["index"]
                self.guard(leaf, "is", self.leaves[leaf])
        return self.value(node)[()]

    def is_known(self, node: Node) -> bool:
        """Whether a 0-d node follows from numbers among the arguments alone."""
        return not any(
            one.operation in ("call", "parameter", "item", "gather")
            or (one.operation == "input" and self.is_array(one))
            for one in sorted_nodes([node])
        )

    def is_array(self, node: Node) -> bool:
        return isinstance(self.leaves[node.options["index"]], np.ndarray)


class _Current(threading.local):
    tracers: tuple[Tracer, ...] = ()


_current = _Current()


def current() -> Tracer | None:
    """The trace that this thread is at, if any."""
    return _current.tracers[-1] if _current.tracers else None


def push(tracer: Tracer) -> None:
    _current.tracers = (*_current.tracers, tracer)
    traces.open += 1


def pop() -> None:
    _current.tracers[-1].is_open = False
    _current.tracers = _current.tracers[:-1]
    traces.open -= 1


def refuse(what: Any) -> None:
    """Raise AskedError that says where the user's function asked for a value; UnknownError where NumPy did."""
    frame = user_frame()
    if frame is None or frame.f_code.co_filename.startswith(NUMPY):
        raise UnknownError("NumPy's own code asks for a value")
    if getattr(what, "ndim", 0) and not all(same(one, 1) for one in what.extents):
        raise UnknownError("the truth of an array with more than one element is ambiguous")
    if why_not(frame.f_code):
        raise UnknownError(why_not(frame.f_code), is_placed=True)
    expression = _expression(frame)
    names = [
        name for name, value in frame.f_locals.items() if value is what or _is_in(name, value, expression)
    ]
    variable = f"variable {' and '.join(map(repr, names))}" if names else "the value of an expression"
    shown = f", in `{expression}`" if expression else ""
    raise AskedError(
        f"{frame.f_code.co_filename}:{frame.f_lineno}: {variable} is known only when the compiled code runs, and "
        f"Python asks for its value now{shown}: expected control flow that depends on shapes, ints, static arguments "
        f"and the like. Write `np.where(condition, a, b)` for a choice between elements, take the branch outside of "
        f"the compiled function, or name the argument in `static_argnames`",
        is_placed=True,
    )


def _expression(frame: FrameType) -> str:
    """The text of what a frame is at, where its file can be read."""
    positions = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), None)
    first, last, start, end = positions or (None, None, None, None)
    if first is None:
        return ""
    line = linecache.getline(frame.f_code.co_filename, first).rstrip("\n")
    if first != last or start is None or end is None:
        return line.strip()
    return line.encode()[start:end].decode(errors="replace")


def _is_in(name: str, value: Any, expression: str) -> bool:
    """Whether a local variable is an array of the trace and stands in an expression."""
    is_traced = type(value).__module__.startswith("jitkernels.frontends")
    return is_traced and re.search(rf"\b{re.escape(name)}\b", expression) is not None


@functools.cache
def is_ours(file: str) -> bool:
    """Whether code of a file belongs to the package, other than what stands for that of users."""
    return file.startswith(PACKAGE) and not file.startswith(PROGRAMS)


def user_frame() -> FrameType | None:
    """The nearest frame outside of this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def no_operand(value: Any) -> UnknownError:
    """What is raised for an operand that no code is made for; a variable that has no value yet raises another error."""
    getattr(value, "__array__", None)
    return UnknownError(f"an operand of type {type(value).__name__}")


def constant(value: Any) -> Node:
    """A NumPy scalar as a node of its dtype."""
    return construct.constant(value.item(), value.dtype.name)
