"""Loop-carried and branch-modified variables (`State`), and the kinds (types) that they have across iterations.

Numbers are loop-carried; a Python number becomes a NumPy scalar where iterations make one of it, an int becomes a
float. Everything else must be the same object after an iteration.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh
from jitkernels.compiler.capture.ints import int_cast_checks
from jitkernels.compiler.capture.numpy.ufuncs import cast_to, common
from jitkernels.compiler.capture.source_locations import line_of
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import Tracer, current, user_frame
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.elementwise_ops import is_known
from jitkernels.compiler.ir.graph import Node

PYTHON_NUMBERS = (bool, int, float, complex)
Kind = Any
"""What a variable holds: int, float or bool, the dtype name of a NumPy scalar, `Unset`, or None for anything else."""


class Unset:
    """The value of an unbound variable. Every use raises UnsupportedError, as Python would raise."""

    def __getattr__(self, name: str) -> Any:
        frame = user_frame()
        names = [variable for variable, value in frame.f_locals.items() if value is UNSET] if frame else []
        text = " or ".join(map(repr, names)) or "a variable"
        raise UnsupportedError(f"{text} may have no value: give it one before")

    def __bool__(self) -> Any:
        return self.__getattr__("")

    __iter__ = __len__ = __index__ = __int__ = __float__ = __bool__


UNSET = Unset()
KEEP = "keep one dtype and shape throughout"
"""Advice for arrays that loops and branches choose between."""


class State:
    """Names of variables, with functions to read and set their values. `line`: the source line of the loop or branch.

    Reads of `guarded` variables are checked wherever these may be unbound (`rewrite.unbound_guards`). `entries`: the
    containers and keys of the last variables, if these are entries of lists or dicts.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        read: Callable[[], tuple[Any, ...]],
        put: Callable[[tuple[Any, ...]], None],
        line: int,
        guarded: Iterable[str] = (),
    ) -> None:
        self.names, self.read, self.put, self.line = names, read, put, line
        self.guarded = frozenset(guarded)
        self.entries: tuple[tuple[Any, Any], ...] = ()

    def with_entries(self, container: Any, keys: Sequence[Any]) -> "State":
        """The state extended by entries of a list or dict that the loop or branch changes as well."""
        own = len(self.names)

        def read() -> tuple[Any, ...]:
            return (*self.read(), *(container[key] for key in keys))

        def put(values: tuple[Any, ...]) -> None:
            self.put(values[:own])
            for key, value in zip(keys, values[own:], strict=True):
                container[key] = value

        entry_names = tuple(f"{type(container).__name__}[{key!r}]" for key in keys)
        extended = State((*self.names, *entry_names), read, put, self.line, self.guarded)
        extended.entries = (*self.entries, *((container, key) for key in keys))
        return extended

    def may_join(self, index: int) -> bool:
        """Whether a variable may have any value on paths that leave it unbound: nothing reads it there."""
        return self.names[index] in self.guarded or not is_user_variable(self.names[index])


class Variable(State):
    """The state of one temporary of ours. Its `value` is UNSET at first."""

    def __init__(self, name: str, value: Any = UNSET) -> None:
        self.value = value
        super().__init__((name,), lambda: (self.value,), lambda values: self.set(*values), 0)

    def set(self, value: Any) -> None:
        self.value = value


def kind_of(value: Any) -> Kind:
    if value is UNSET:
        return Unset
    if type(value) is Traced:
        if value.ndim or not (value.is_scalar or value.is_weak):
            return None
        return value.python or value.node.dtype
    if type(value) is SymInt:
        return int
    if type(value) in PYTHON_NUMBERS:
        return type(value) if type(value) is not int or abs(value) < 2**62 else None
    if isinstance(value, np.generic) and is_known(value.dtype):
        return value.dtype.name
    return None


def is_number(kind: Kind) -> bool:
    """Whether the kind is that of a number, whose value is loop-carried."""
    return isinstance(kind, type | str) and kind is not Unset


def describe_variable(name: str) -> str:
    """A variable, or a temporary that the rewriter has added, in words."""
    if is_user_variable(name):
        return repr(name)
    return "the result" if name.startswith("_jk_value") else "the value of an expression"


def is_user_variable(name: str) -> bool:
    """Whether a variable is one of the user's function, not a temporary of the rewriter."""
    return not name.startswith("_jk_")


def join_kinds(name: str, first: Kind, other: Kind, line: int = 0) -> Kind:
    """The common kind of two, in a loop or branch at a line. Raises UnsupportedError where there is none."""
    if first == other or other is Unset:
        return first
    if first is Unset:
        return other
    tracer = current()
    if tracer is not None:
        tracer.joined_kinds.append((first, other))
    if first is not None and other is not None:
        if first in PYTHON_NUMBERS and other in PYTHON_NUMBERS and bool not in (first, other):
            return common(first, other)
        if (first in PYTHON_NUMBERS) != (other in PYTHON_NUMBERS):
            python, dtype = (first, other) if first in PYTHON_NUMBERS else (other, first)
            widened = common(python, dtype)
            if widened == dtype and (python is not bool or dtype == "bool"):
                return dtype
        promoted = _promoted(first, other)
        if promoted:
            return promoted
    raise UnsupportedError(
        f"{describe_variable(name)} is {_describe_kind(first)} on one path and {_describe_kind(other)} on another: "
        "expected one type",
        line_of(name, line) if line else 0,
    )


def _promoted(first: Kind, other: Kind) -> str:
    """The dtype of a number that has another type on each path, as numba promotes it; "" where there is none.

    Integers keep their values, and so do floats: what differs from NumPy is the dtype of results on one of the paths.
    Code checks that a float represents the integers of the other path.
    """
    first, other = ("float64" if kind is float else kind for kind in (first, other))
    if first in PYTHON_NUMBERS or other in PYTHON_NUMBERS or "uint64" in (first, other):
        return ""
    kinds = {np.dtype(first).kind, np.dtype(other).kind}
    return str(np.promote_types(first, other)) if kinds <= {"i", "u", "f"} else ""


def _describe_kind(kind: Kind) -> str:
    return "no number" if kind is None else "a Python " + kind.__name__ if isinstance(kind, type) else str(kind)


def dtype_of(kind: Kind) -> str:
    """The dtype of the numbers of a kind."""
    return {int: "int64", float: "float64", complex: "complex128", bool: "bool"}.get(kind) or str(kind)


def node_of(tracer: Tracer, value: Any, kind: Kind) -> Node:
    """A value as a node of the dtype of a kind; zero for an unbound variable."""
    if value is UNSET:
        return builder.constant(0, dtype_of(kind))
    int_cast_checks.check_joined(tracer, value, dtype_of(kind))
    return cast_to(tracer, value, dtype_of(kind))


def may_be_unbound(tracer: Tracer, value: Any) -> bool:
    """Whether a variable may be unbound: it is, or its parameter in an iteration may stand for no value."""
    return value is UNSET or (type(value) is Traced and value.node in tracer.unset)


def as_number(tracer: Tracer, node: Node, kind: Kind) -> Traced:
    """A 0-d node as a number of a kind."""
    result = fresh(tracer, node, is_scalar=True)
    result.is_weak = kind in PYTHON_NUMBERS
    return result
