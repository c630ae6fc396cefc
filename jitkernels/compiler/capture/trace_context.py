"""Trace context (`Tracer`): inputs, guards, and runtime state of one trace, with the values of the traced call."""

import contextlib
import functools
import itertools
import linecache
import os
import re
import sys
import threading
from collections.abc import Iterable
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from jitkernels.compiler.capture.constant_failures import ConstantFailures
from jitkernels.compiler.capture.functionalization import Storage
from jitkernels.compiler.capture.rewrite.rewrite_function import rewrite_blocker
from jitkernels.compiler.capture.static_arrays import cache_aligned, packed_array, shared_copy
from jitkernels.compiler.ir import builder, interpreter
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.graph import Node, serial, sorted_nodes
from jitkernels.compiler.ir.symbolic_dims import Extent, Number, Scope, is_loop_variant, same
from jitkernels.compiler.ir.unsupported import ConcretizationError, UnknownSizeError
from jitkernels.core import source_hash
from jitkernels.core.aligned_memory import is_aligned
from jitkernels.dispatch.operators import traces
from jitkernels.microkernels.prepacked.panels import packed_columns, panel_width

INITIAL_TAPE_CAPACITY = 64
"""Initial capacity, in iterations, of tapes of loops whose trip counts are unknown."""
MAX_TRACE_NODES = 20_000
"""Upper limit of nodes in a trace: LLVM takes a millisecond or so for each."""
MIN_UNCOPIED_BYTES = 1 << 22
"""Transposed static matrices of at least this size are read in place: a product is as fast as memory in both orders."""
MAX_DISCARDED_NODES = 100_000
"""Upper limit of nodes of bodies of loops that are traced again, which cost time of tracing alone."""
INT64 = range(-(2**63), 2**63)
PACKAGE = str(source_hash.PACKAGE) + os.sep
PROGRAMS = (f"{PACKAGE}benchmarks{os.sep}",)
"""Modules of the package that count as user code."""
NUMPY = os.path.dirname(os.path.abspath(np.__file__)) + os.sep  # noqa: PTH100, PTH120


class ValueGuard(NamedTuple):
    """A guard on a number argument: ``truth == (leaf <operation> bound)``; ``is`` compares bits."""

    leaf: int
    operation: str
    bound: Any
    truth: bool

    def holds(self, value: Any) -> bool:
        """Whether the guard holds for the value of its leaf."""
        match self.operation:
            case "<":
                result = value < self.bound
            case "<=":
                result = value <= self.bound
            case "==":
                result = value == self.bound
            case _:
                result = same_number(value, self.bound)
        return bool(result) == self.truth


def same_number(left: Any, right: Any) -> bool:
    """Whether two numbers are indistinguishable: signed zeros differ, NaN equals itself."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float | np.floating):
        return bool((left == right and np.signbit(left) == np.signbit(right)) or (left != left and right != right))
    if isinstance(left, complex | np.complexfloating):
        return same_number(left.real, right.real) and same_number(left.imag, right.imag)
    return bool(left == right)


class Binding(NamedTuple):
    """Where the value of a symbol comes from.

    ``extent`` and ``stride`` (in elements) of an array's dimension, the ``value`` of an int argument, or ``negated``.
    """

    symbol: str
    leaf: int
    kind: str
    dimension: int = 0


class Tracer:
    """State of one trace. `leaves`: the arrays and numbers of the call, followed by arrays that became constants.

    `picks`: gathers and scatters, whose indices NumPy checks whether or not the result is used. `loop_operands`:
    operands of the loops being traced. `checks`: conditions under which the function raises (runtime guards).
    `partial`: operations that are computed for all elements where NumPy applies a mask. `depth`: nesting depth of
    regions; `region_start`: serial number at which the innermost region starts; `loops`: the enclosing loops. `ranges`,
    `recurrences` and `implied_conditions` hold the integer analysis; `bailout_results`: results of regions that may
    bail out. `enclosing_loops`, `loop_signatures` and `traced_iterations`: enclosing loops, cached loop signatures, and
    the number of traced iterations. `accepts_arrays`: arrays that the traced code makes are constants of the code.
    `differentiates`: nesting depth of derivatives. `ints`: extents of int leaves. `random_state`: the global random
    generator, if the function uses it.
    `tape_capacity`: the tape capacity, and an array of that length. `winograd`: as in `JitConfig`. `copies_dynamic`:
    arrays of computed length get memory where they are made; `needs_copies`: tracing again so may help.
    `assumable_branches`: of how many branches the code may have the side that the traced call takes alone.
    `copied_arguments`: the containers and objects that stand for the caller's, by id. `strings`: those in the
    code and values of the call. `joined_kinds`: the different kinds that a number had on two paths, for each such pair.
    `inlined_references`: the schemas whose references are being traced. `call_order`: the token of the last native
    call; `addresses`: constant arrays of the addresses of native functions.
    """

    def __init__(self, *, winograd: bool = False, copies_dynamic: bool = False) -> None:
        self.scope, self.winograd = Scope(), winograd
        self.leaves: list[Any] = []
        self.inputs: list[Node] = []
        self.guards: dict[ValueGuard, None] = {}
        self.bindings: list[Binding] = []
        self.constants: list[Any] = []
        self._frozen: dict[Any, tuple[Any, bytes, Node]] = {}
        self.notes: dict[str, None] = {}
        self.picks: list[Node] = []
        self.checks: list[Node] = []
        self.partial: set[str] = set()
        self.is_open, self.is_quiet, self.accepts_arrays = True, False, False
        self.depth, self.region_start, self.has_flows = 0, 0, False
        self.loops: list[Any] = []
        self.inlined_references: list[type] = []
        self.copied_arguments: dict[int, Any] = {}
        self.strings: set[str] = set()
        self.joined_kinds: list[tuple[Any, Any]] = []
        self.loop_operands: list[Any] = []
        self.bailout_results: list[Node] = []
        self.ranges: dict[Node, Any] = {}
        self.recurrences: dict[Node, Any] = {}
        self.symbol_limits: dict[Node, Any] = {}
        self.symbol_count = self.traced_iterations = 0
        self.enclosing_loops: list[Any] = []
        self.loop_signatures: dict[Any, Any] = {}
        self.implied_conditions: dict[Node, list[Node]] = {}
        self.unset: set[Node] = set()
        self.differentiates = 0
        self.tape_capacity: Any = None
        self.copies_dynamic, self.needs_copies, self.assumable_branches = copies_dynamic, False, 0
        self.places: dict[Node, str] = {}
        self.failures = ConstantFailures(self, user_frame)
        self.ints: dict[int, Any] = {}
        self.random_state: Any = None
        self._values: dict[Node, Any] = {}
        self._begun, self._discarded = serial(), 0
        self.call_order = Storage(builder.constant(False, "bool"))
        self.addresses: dict[int, Node] = {}

    def limit_operations(self, node: Node) -> None:
        """Raise UnsupportedError once the trace has too many operations to compile in reasonable time."""
        if node.serial - self._begun - self._discarded > MAX_TRACE_NODES:
            raise UnsupportedError(
                f"more than {MAX_TRACE_NODES:,} operations in sequence, as of an unrolled loop in a function without a "
                "source file"
            )

    @property
    def operations(self) -> int:
        """The number of operations that count."""
        return serial() - self._begun - self._discarded

    def discard_operations(self, kept: int) -> None:
        """Count only so many operations: a loop's body is traced again from there."""
        self._discarded = min(self._discarded + self.operations - kept, MAX_DISCARDED_NODES)

    def placed(self, node: Node) -> Node:
        """Record the source location that creates a node, for messages; returns the node."""
        frame = user_frame()
        if frame is not None:
            self.places[node] = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        return node

    def guard(self, leaf: int, operation: str, bound: Any, truth: bool = True) -> None:
        self.guards.setdefault(ValueGuard(leaf, operation, bound, truth))

    def note(self, text: str) -> None:
        """Add a line to the output of `explain`."""
        self.notes.setdefault(text)

    def note_masked_operations(self, results: Iterable[Node], operands: Iterable[Node]) -> None:
        """Record the operations between nodes as ones that NumPy applies to the elements of a mask only."""
        excluded, worklist = set(operands), list(results)
        while worklist:
            node = worklist.pop()
            if node not in excluded:
                self.partial.add(node.operation)
                worklist.extend(node.inputs)

    def constant_array(self, array: Any) -> Node:
        """Add a concrete array as an input whose shape is part of the code."""
        return self._constant(cache_aligned(array))

    def packed_constant(self, array: Any) -> Node:
        """Add an array that the compiler made, aligned to cache lines, as an input whose shape is part of the code."""
        return self._constant(array)

    def _constant(self, copy: Any) -> Node:
        node = Node(
            "input",
            (),
            copy.dtype.name,
            copy.shape,
            {"index": len(self.inputs), "strides": builder.contiguous(copy.shape), "cache_aligned": True},
        )
        node.serial = self._begun  # loops and branches that need it capture it, as it is there before them
        self.inputs.append(node)
        self.leaves.append(copy)
        self.constants.append(copy)
        return node

    def truncate_inputs(self, count: int) -> None:
        """Keep so many inputs: the constants of what is not traced after all go, with all that refers to them."""
        removed = {*self.inputs[count:]}
        if not removed:
            return
        del self.constants[len(self.constants) - (len(self.leaves) - count) :], self.leaves[count:], self.inputs[count:]
        for binding in [binding for binding in self.bindings if binding.leaf >= count]:
            self.bindings.remove(binding)
            self.scope.values.pop(binding.symbol, None)
        self._frozen = {key: known for key, known in self._frozen.items() if known[2] not in removed}
        self.addresses = {address: node for address, node in self.addresses.items() if node not in removed}
        if self.tape_capacity is not None and not any(array is self.tape_capacity[1] for array in self.constants):
            self.tape_capacity = None

    def room(self) -> Extent:
        """The capacity of tapes of loops with unknown trip counts: the length of an input, which grows on overflow."""
        if self.tape_capacity is None:
            length = self.scope.symbol(f"n{len(self.leaves)}r", INITIAL_TAPE_CAPACITY)
            self.bindings.append(Binding(str(length), len(self.leaves), "extent", 0))
            options = {"index": len(self.inputs), "strides": (1,)}
            self.inputs.append(Node("input", (), "bool", (length,), options))
            self.inputs[-1].serial = self._begun  # as of other constants
            self.leaves.append(np.zeros(INITIAL_TAPE_CAPACITY, bool))
            self.constants.append(self.leaves[-1])
            self.tape_capacity = length, self.leaves[-1]
        return self.tape_capacity[0]  # type: ignore[no-any-return]

    def frozen_array(self, array: Any) -> Node:
        """A static array, or an array computed from some: one constant, however often the function uses it."""
        if self.accepts_arrays and array.nbytes >= MIN_UNCOPIED_BYTES and array.ndim == 2 and is_aligned(array.T):
            return builder.transpose(self.frozen_array(array.T))
        key = array.ctypes.data, array.shape, array.strides, array.dtype
        if self.accepts_arrays and is_aligned(array) and key not in self._frozen:
            self._frozen[key] = array, b"", self._constant(array.view(np.ndarray))
        content = b"" if self.accepts_arrays else array.tobytes()  # code that makes constants leaves them as they are
        if key not in self._frozen or self._frozen[key][1] != content:  # computed arrays may change in place
            self._frozen[key] = array, content, self._constant(shared_copy(array))
        return self._frozen[key][2]

    def panels(self, array: Any) -> Node:
        """The panels of a static matrix, in which products read it faster: one constant, as `frozen_array`."""
        key = "panels", array.ctypes.data, array.shape, array.strides, array.dtype
        content = b"" if self.accepts_arrays else array.tobytes()  # as in `frozen_array`
        if key not in self._frozen or self._frozen[key][1] != content:
            panels = packed_array(array, ("panels", panel_width(array.dtype.name)), packed_columns)
            self._frozen[key] = array, content, self.packed_constant(panels)
        return self._frozen[key][2]

    def value(self, node: Node, *, is_recorded: bool = False) -> Any:
        """The value of a node in the traced call; `is_recorded`: record NumPy's warnings while computing it."""
        for source in self.inputs:
            self._values.setdefault(source, np.asarray(self.leaves[source.options["index"]]))
        for source in sorted_nodes([node]):
            if source.operation == "parameter":
                raise UnknownSizeError("tracing needs a value that differs between iterations")
            if source not in self._values:
                operands = [self._values[other] for other in source.inputs]
                with contextlib.nullcontext() if is_recorded else np.errstate(all="ignore"):
                    result = interpreter.of_node(source, operands, self.extent_value)
                self._values[source] = result if isinstance(result, tuple) else np.asarray(result)
        return self._values[node]

    def extent_value(self, extent: Number) -> int:
        if is_loop_variant(extent):
            raise UnknownSizeError("tracing needs a value that differs between iterations")
        return extent.value if isinstance(extent, Extent) else int(extent)

    def number(self, node: Node, what: Any) -> Any:
        """Concretize a 0-d node to a NumPy scalar; a guard specializes the code to this value.

        Only for values that depend on number arguments. Raises ConcretizationError for values that depend on arrays.
        """
        sources = [source for source in sorted_nodes([node]) if source.operation in ("input", "extent", "call")]
        if not self.is_known(node):
            refuse(what)
        for source in sources:
            if source.operation == "extent":
                int(source.options["extent"])
            else:
                leaf = source.options["index"]
                self.guard(leaf, "is", self.leaves[leaf])
        return self.value(node, is_recorded=True)[()]

    def is_known(self, node: Node) -> bool:
        """Whether a 0-d node depends on number arguments only, and is the same in all iterations."""
        return not any(
            source.operation in ("call", "parameter", "item", "gather")
            or (source.operation == "input" and self.is_array(source))
            or (source.operation == "extent" and is_loop_variant(source.options["extent"]))
            for source in sorted_nodes([node])
        )

    def is_array(self, node: Node) -> bool:
        return isinstance(self.leaves[node.options["index"]], np.ndarray)


class _Current(threading.local):
    tracers: tuple[Tracer, ...] = ()


_current = _Current()


def current() -> Tracer | None:
    """The innermost trace of this thread, if any."""
    return _current.tracers[-1] if _current.tracers else None


def push(tracer: Tracer) -> None:
    _current.tracers = (*_current.tracers, tracer)
    traces.open += 1


def pop() -> None:
    _current.tracers[-1].is_open = False
    _current.tracers = _current.tracers[:-1]
    traces.open -= 1


def refuse(what: Any) -> None:
    """Raise ConcretizationError naming the user's line; UnsupportedError where NumPy's code concretizes."""
    frame = user_frame()
    if frame is None or frame.f_code.co_filename.startswith(NUMPY):
        raise UnsupportedError("NumPy's own code needs the value of a traced array")
    if getattr(what, "ndim", 0) and not all(same(extent, 1) for extent in what.extents):
        raise UnsupportedError("the truth of an array with more than one element is ambiguous")
    if rewrite_blocker(frame.f_code):
        raise UnsupportedError(rewrite_blocker(frame.f_code), is_placed=True)
    expression = _expression(frame)
    names = [name for name, value in frame.f_locals.items() if value is what or _is_in(name, value, expression)]
    variable = f"variable {' and '.join(map(repr, names))}" if names else "the value of an expression"
    shown = f", in `{expression}`" if expression else ""
    raise ConcretizationError(
        f"{frame.f_code.co_filename}:{frame.f_lineno}: {variable} is known only when the compiled code runs, and "
        f"Python needs its value now{shown}: expected control flow that depends on shapes, ints, static arguments "
        f"and the like. Write `np.where(condition, a, b)` for a choice between elements, take the branch outside of "
        f"the compiled function, or name the argument in `static_argnames`",
        is_placed=True,
    )


def _expression(frame: FrameType) -> str:
    """The source text that a frame evaluates, where its file can be read."""
    positions = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), None)
    first, last, start, end = positions or (None, None, None, None)
    if first is None:
        return ""
    line = linecache.getline(frame.f_code.co_filename, first).rstrip("\n")
    if first != last or start is None or end is None:
        return line.strip()
    return line.encode()[start:end].decode(errors="replace")


def _is_in(name: str, value: Any, expression: str) -> bool:
    """Whether a local variable is a traced array and occurs in an expression."""
    is_traced = type(value).__module__.startswith("jitkernels.compiler.")
    return is_traced and re.search(rf"\b{re.escape(name)}\b", expression) is not None


@functools.cache
def is_package_file(file: str) -> bool:
    """Whether a file belongs to the package and does not count as user code."""
    return file.startswith(PACKAGE) and not file.startswith(PROGRAMS)


def user_frame() -> FrameType | None:
    """The nearest frame of user code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_package_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def unsupported_operand(value: Any) -> UnsupportedError:
    """The error for an operand type that tracing does not support; an unbound variable raises its own error instead."""
    getattr(value, "__array__", None)
    return UnsupportedError(f"an operand of type {type(value).__name__}")


def constant(value: Any) -> Node:
    """A NumPy scalar as a node of its dtype."""
    return builder.constant(value.item(), value.dtype.name)
