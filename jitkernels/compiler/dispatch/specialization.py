"""Specializations: a function traced to a graph and compiled for one structure and pattern of arguments."""

import itertools
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.callee_monitor import Watch, without_gc
from jitkernels.compiler.capture.control_flow import runtime_hooks
from jitkernels.compiler.capture.control_flow.region_transaction import trace_entries
from jitkernels.compiler.capture.numpy_namespace_proxy import BUILTINS, stand_in
from jitkernels.compiler.capture.pytree import result_spec
from jitkernels.compiler.capture.pytree.flatten import FOREIGN, leaves_of
from jitkernels.compiler.capture.pytree.unflatten import Rebuilder
from jitkernels.compiler.capture.source_locations import placed
from jitkernels.compiler.capture.trace_context import (
    INITIAL_TAPE_CAPACITY,
    Binding,
    Tracer,
    ValueGuard,
    is_package_file,
    pop,
    push,
)
from jitkernels.compiler.dispatch.fp_warnings import Alarm
from jitkernels.compiler.dispatch.python_entries import Timings
from jitkernels.compiler.dispatch.traced_inputs import traced_inputs
from jitkernels.compiler.ir import region_memory
from jitkernels.compiler.ir.builder import UnknownError
from jitkernels.compiler.ir.config import JitConfig
from jitkernels.compiler.ir.graph import Graph
from jitkernels.compiler.ir.regions import merge_variants, walk_nodes
from jitkernels.compiler.ir.symbolic_dims import Guard, Scope, is_loop_variant, key_of_shape
from jitkernels.compiler.ir.unsupported import UnknownSizeError, reraise_caught_errors
from jitkernels.compiler.lowering import backends
from jitkernels.compiler.lowering.compiled_program import CapacityExceededError
from jitkernels.core import signal_exceptions
from jitkernels.core.atomic_files import warn_once
from jitkernels.core.cached_property import unlocked_cached_property
from jitkernels.core.fork_locks import making
from jitkernels.errors import BuildError, DerivativeError, GraphError, MemoryLimitError, WorkspaceError
from jitkernels.runtime.loading import lazy_link

MANY_ELEMENTS = 2**62
MORE_ROOM = 4
"""Growth factor of tapes that are too short."""
SECONDS_OF_PYTHON, SECONDS_OF_NUMPY, SECONDS_OF_ELEMENT = 40e-6, 1e-6, 0.5e-9
"""Time of a compiled call entered through Python; of a NumPy call, and its extra time per element."""
SECONDS_OF_RESULT = 1e-6
"""Time to build a result container (list, dict, object) in Python. Each view in it takes four times as long."""
FEW_LOOKS, MOST_LOOKS = 2, 64
"""Fallbacks under guards before later calls of the same types skip the guards: where another specialization has code
(which is tried first), and where none has."""
FREE = frozenset({"input", "constant", "extent", "view", "reshape"})
"""Operations whose cost in NumPy is negligible."""


class Specialisation:
    """Code for one structure and pattern of arguments, with the guards under which it is right.

    `graph` is None where calls fall back to the plain function, for `reason`. `has_raised`: tracing raised an
    exception, which the plain function may raise too. `entry_reason`: why calls enter through Python.
    """

    def __init__(self, tracer: Tracer) -> None:
        self.scope: Scope = tracer.scope
        self.room: Any = tracer.tape_capacity[1] if tracer.tape_capacity is not None else None
        self.guards: tuple[Guard, ...] = tuple(tracer.scope.guards.values())
        self.value_guards: tuple[ValueGuard, ...] = tuple(tracer.guards)
        self.bindings: tuple[Binding, ...] = tuple(tracer.bindings)
        self.constants: tuple[Any, ...] = tuple(tracer.constants)
        self.direct: dict[Any, Any] = {}
        self.entry_reason = ""
        self.timings: dict[int, Timings] = {}
        self.notes: tuple[str, ...] = tuple(tracer.notes)
        self.is_quiet, self.partial = tracer.is_quiet, frozenset(tracer.partial)
        self.failures = tuple(tracer.failures.found)
        self.graph: Graph | None = None
        self.reason = ""
        self.plan: Any = None
        self.program: Any = None
        self.written: tuple[int, ...] = ()
        self.seconds = 0.0
        self.has_foreign, self.has_flows = False, tracer.has_flows
        self.has_raised = False
        self.alarm: Alarm | None = None
        self.calls = self.operations = 0
        self._may_raise: bool | None = None

    @property
    def max_plain_elements(self) -> int:
        """The largest arrays, in elements, for which the plain function beats compiled code entered through Python.

        An estimate, not a measurement: the same arguments give the same bits each time.
        """
        if self.graph is None:
            return MANY_ELEMENTS
        if self.has_foreign or self.has_flows:
            return -1
        return self._elements(SECONDS_OF_PYTHON)

    def always_falls_back(self, others: Iterable[Sequence["Specialisation"]]) -> bool:
        """Whether calls that no code of `others` accepts may fall back without a check of the guards.

        Later specializations may get code: a size that cannot be compiled must not keep other sizes from it.
        """
        self.calls += 1
        looks = (
            FEW_LOOKS
            if any(specialisation.graph is not None for candidates in others for specialisation in candidates)
            else MOST_LOOKS
        )
        return not (self.guards or self.value_guards) or self.calls > looks

    @property
    def max_plain_elements_at_once(self) -> int:
        """The largest arrays, in elements, for which the plain function takes less time than building the results."""
        if self.graph is None or self.has_foreign:
            return -1
        if self._is_numpy:
            return MANY_ELEMENTS
        plan = self.plan
        if plan.is_tuple is not None or self.has_flows or plan.itself is not None or plan.recipe is not None:
            return -1
        return self._elements(SECONDS_OF_RESULT * (1 + 4 * self.plan.views))

    def _elements(self, seconds: float) -> int:
        """The number of elements that NumPy processes within `seconds` of overhead of compiled code."""
        return int((seconds / max(self._operations_of_numpy, 1) - SECONDS_OF_NUMPY) / SECONDS_OF_ELEMENT)

    @unlocked_cached_property
    def _is_numpy(self) -> bool:
        """Whether the graph consists of NumPy calls, views and single-element reads alone."""
        assert self.graph is not None, "traced"
        others = [node for node in self.graph if node.operation not in FREE]
        return any(node.operation == "call" for node in others) and all(
            node.operation in ("call", "item") or (node.operation in ("gather", "cast") and not node.ndim)
            for node in others
        )

    @unlocked_cached_property
    def _operations_of_numpy(self) -> int:
        assert self.graph is not None, "traced"
        return sum(node.operation not in FREE for node in self.graph)

    @property
    def may_raise(self) -> bool:
        """Whether the code may raise or bail out after it has written part of the arguments."""
        if self._may_raise is None:
            raising = ("call", "gather", "scatter", "kernel")
            self._may_raise = (
                bool(self.written)
                and self.graph is not None
                and (
                    bool(self.graph.checks)
                    or any(node.operation in raising for node in self.graph)
                    or any(
                        region_memory.is_control_flow(node) and region_memory.may_bail_out(node) for node in self.graph
                    )
                )
            )
        return self._may_raise

    def note_failure(self, error: Exception) -> None:
        """Record and report a failure of the compiler after which the call falls back to NumPy."""
        text = f"a function is left to NumPy, as its code cannot be made: {type(error).__name__}: {error}"
        warn_once(f"code {type(error).__name__}", text)
        self.notes += (f"the compiler failed ({type(error).__name__}: {error}): NumPy computes",)

    def link_requested_symbols(self) -> bool:
        """Build and link symbols that a call of the code requested; whether there were any."""
        try:
            return lazy_link.bring_wanted()
        except BuildError as error:
            self.note_failure(error)
            return False

    def values(self, leaves: Sequence[Any]) -> dict[str, int] | None:
        """The values of the symbols for `leaves`; None where a guard fails."""
        for guard in self.value_guards:
            if not guard.holds(leaves):
                return None
        symbols: dict[str, int] = {}
        for symbol, leaf, kind, dimension in self.bindings:
            value = leaves[leaf] if leaf < len(leaves) else self.constants[leaf - len(leaves)]
            if kind == "extent":
                symbols[symbol] = value.shape[dimension]
            elif kind == "stride":
                symbols[symbol] = value.strides[dimension] // value.itemsize
            else:
                symbols[symbol] = int(value) if kind == "value" else -int(value)
        if not all(guard.holds(symbols) for guard in self.guards):
            return None
        return symbols if self.program is None or self.program.fits(symbols) else None

    def run(self, leaves: Sequence[Any], values: dict[str, int]) -> list[Any]:
        """Run the compiled code. Tapes that are too short for its loops grow, for later calls too."""
        inputs = [*leaves, *self.constants]
        if self.room is None:
            return self.program.run(inputs, values)  # type: ignore[no-any-return]
        before = [leaves[i].copy() for i in self.written]
        while True:
            length = self.room.size
            try:
                return self.program.run(inputs, values)  # type: ignore[no-any-return]
            except CapacityExceededError:
                for i, array in zip(self.written, before, strict=True):
                    leaves[i][...] = array
                self._grow(length)
                values.update(self.values(leaves) or {})
            except MemoryLimitError:
                raise
            except MemoryError:
                raise self._too_long(length) from None

    def _grow(self, length: int) -> None:
        """Grow tapes of `length`, unless another thread has. Raises WorkspaceError if memory is short."""
        with making:
            if self.room.size == length:
                try:
                    self.room.resize(length * MORE_ROOM, refcheck=False)
                except MemoryError:
                    raise self._too_long(length) from None

    def _too_long(self, length: int) -> WorkspaceError:
        """The error for a trip count whose tapes do not fit in memory; later calls start with short tapes again."""
        self.room.resize(INITIAL_TAPE_CAPACITY, refcheck=False)
        return WorkspaceError(
            f"a derivative of a loop of more than {length // MORE_ROOM} iterations: expected memory for its tapes"
        )

    def tell(self, kinds: set[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Issue the warnings that NumPy would, for the kinds of floating-point errors that a call raised."""
        reported = () if self.alarm is None else self.alarm.kinds(kinds)
        if self.alarm is not None and reported:
            self.alarm.hear(reported, args, kwargs, None)

    def may_write(self, leaves: Sequence[Any]) -> bool:
        """Whether the written arguments are writeable and do not alias other arguments."""
        for i in self.written:
            target = leaves[i]
            if not target.flags.writeable or _overlaps_itself(target):
                return False
            for j, other in enumerate(leaves):
                if i != j and type(other) is np.ndarray and np.may_share_memory(target, other):
                    return False
        return True


def _overlaps_itself(array: Any) -> bool:
    reach = 0
    for step, extent in sorted((abs(step), extent) for step, extent in zip(array.strides, array.shape, strict=True)):
        if extent > 1:
            if step < reach + array.itemsize:
                return True
            reach += step * (extent - 1)
    return False


@without_gc()
def made(
    function: Any, structure: Any, leaves: list[Any], config: JitConfig, variant: Mapping[str, Any] | None = None
) -> Specialisation:
    """Trace and compile a function; without code its calls fall back to NumPy. Raises DerivativeError.

    `variant`: the compilation variant; the best measured one if None.
    """
    began = time.perf_counter()
    exact = None
    tracer = Tracer(leaves)
    push(tracer)
    try:
        graph, plan = _traced(tracer, structure, exact=config.exact_sizes)
    except DerivativeError:
        raise
    except UnknownError as error:
        specialisation = Specialisation(tracer)
        specialisation.reason = str(placed(error))
    except BaseException as error:  # the plain function raises it again, or does what tracing could not
        if signal_exceptions.end_calls(error):
            raise
        specialisation = Specialisation(tracer)
        specialisation.has_raised = True
        specialisation.reason = f"tracing raised {type(error).__name__}: {placed(error)}"
    else:
        specialisation = Specialisation(tracer)
        specialisation.graph, specialisation.plan = graph, plan
        specialisation.operations = sum(node.operation not in ("input", "constant", "extent") for node in graph)
        specialisation.written = tuple(target.options["index"] for target, _ in graph.writes)
        try:
            how = backends.choose_variant(graph, tracer.scope, config, variant)
            if how is not None and how.config.exact_sizes > config.exact_sizes:
                exact = how.config, how.variant
            else:
                specialisation.program = backends.compile_graph(graph, tracer.scope, config, how)
            if how is not None and how.description:
                specialisation.notes += (how.description,)
            specialisation.guards = tuple(tracer.scope.guards.values())  # lowering adds guards
        except MemoryLimitError:
            raise
        except Exception as error:  # an error of the compiler must not become the caller's
            if signal_exceptions.raised_by_signal_handler(error):
                raise
            if not isinstance(error, GraphError) or not tracer.has_flows:
                specialisation.note_failure(error)
            specialisation.program = backends.Interpreted(graph)
            if tracer.has_flows:  # Python beats interpreting a graph iteration by iteration
                specialisation.graph, specialisation.plan = None, None
                specialisation.reason = str(error)
    finally:
        pop()
    if exact is not None:
        return made(function, structure, leaves, *exact)
    specialisation.seconds = time.perf_counter() - began
    specialisation.has_foreign = FOREIGN in leaves_of(structure[1:])
    return specialisation


def _traced(tracer: Tracer, structure: Any, *, exact: bool) -> tuple[Graph, Any]:
    inputs = traced_inputs(tracer, exact=exact)
    remaining = iter(inputs)
    rebuilder = Rebuilder(lambda _: next(remaining), stand_in, BUILTINS, runtime_hooks)
    function, positional, keywords = (rebuilder.rebuild(part) for part in structure)
    with Watch(rebuilder.tables) as watch, reraise_caught_errors(is_package_file), tracer.failures.listening():
        result = function(*positional, **keywords)
    rebuilder.check(getattr(function, "__code__", None), positional, keywords)
    if watch.refused:
        raise UnknownError(watch.refused)
    graph, plan = result_spec.plan_result(tracer, result, inputs)
    _refuse_negative(graph)
    return merge_variants(graph) if tracer.has_flows else graph, plan


trace_entries.add(_traced.__code__)


def _refuse_negative(graph: Graph) -> None:
    """Raise UnknownSizeError for negative extents, which NumPy rejects or treats as empty.

    Where the sign depends on the call, the comparison becomes a guard.
    """
    shapes = {key_of_shape(node.shape): node.shape for node in walk_nodes(graph)}
    for extent in itertools.chain.from_iterable(shapes.values()):
        if not is_loop_variant(extent) and extent < 0:
            raise UnknownSizeError(f"an array of a negative extent: {extent}")
