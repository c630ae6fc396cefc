"""Specializations: a function traced to a graph and compiled for one structure and pattern of arguments."""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.callee_monitor import without_gc
from jitkernels.compiler.capture.pytree.flatten import FOREIGN, leaves_of
from jitkernels.compiler.capture.structured.field_views import are_interleaved, overlaps_itself
from jitkernels.compiler.capture.trace_call import Trace, trace_call
from jitkernels.compiler.capture.trace_context import INITIAL_TAPE_CAPACITY, Binding, ValueGuard
from jitkernels.compiler.dispatch.fp_warnings import WarningReporter
from jitkernels.compiler.dispatch.python_call_stats import Timings
from jitkernels.compiler.ir import region_memory, regions
from jitkernels.compiler.ir.config import JitConfig
from jitkernels.compiler.ir.symbolic_dims import Guard, Scope
from jitkernels.compiler.lowering import backends, lower_graph
from jitkernels.compiler.lowering.compiled_program import CapacityExceededError
from jitkernels.core import signal_exceptions
from jitkernels.core.atomic_files import warn_once
from jitkernels.core.cached_property import unlocked_cached_property
from jitkernels.core.fork_locks import build_lock
from jitkernels.errors import BuildError, DerivativeError, GraphError, MemoryLimitError, WorkspaceError
from jitkernels.runtime.loading import build_ahead

MANY_ELEMENTS = 2**62
TAPE_GROWTH = 4
"""Growth factor of tapes that are too short."""
SECONDS_OF_PYTHON, SECONDS_OF_NUMPY, SECONDS_OF_ELEMENT = 40e-6, 1e-6, 0.5e-9
"""Time of a compiled call entered through Python; of a NumPy call, and its extra time per element."""
SECONDS_OF_RESULT = 1e-6
"""Time to build a result container (list, dict, object) in Python. Each view in it takes four times as long."""
FEW_GUARD_CHECKS, MAX_GUARD_CHECKS = 2, 64
"""Fallbacks under guards before later calls of the same types skip the guards: where another specialization has code
(which is tried first), and where none has."""
MANY_LEAVES = 16
"""Arrays and numbers of a call from which on reading them may take longer than computing."""
NEGLIGIBLE_OPERATIONS = frozenset({"input", "constant", "extent", "view", "reshape"})
"""Operations whose cost in NumPy is negligible."""


class Specialization:
    """Code for one structure and pattern of arguments, with the guards under which it is right.

    `graph` is None where calls fall back to the plain function, for `reason`. `has_raised`: tracing raised an
    exception, which the plain function may raise too; `line`: where it ended, or 0. `entry_reason`: why calls enter
    through Python.
    """

    def __init__(self, trace: Trace) -> None:
        tracer, graph = trace.tracer, trace.graph
        self.scope: Scope = tracer.scope
        self._tape: Any = tracer.tape_capacity[1] if tracer.tape_capacity is not None else None
        self.guards: tuple[Guard, ...] = tuple(tracer.scope.guards.values())
        self.value_guards: tuple[ValueGuard, ...] = tuple(tracer.guards)
        self.bindings: tuple[Binding, ...] = tuple(tracer.bindings)
        self.constants: tuple[Any, ...] = tuple(tracer.constants)
        self.links: dict[Any, Any] = {}
        self.trials: dict[Any, Any] = {}
        self.entry_reason = ""
        self.timings: dict[int, Timings] = {}
        self.notes: tuple[str, ...] = tuple(tracer.notes)
        self.is_quiet, self.partial = tracer.is_quiet, frozenset(tracer.partial)
        self.failures = tuple(tracer.failures.found)
        self.graph, self.reason, self.has_raised, self.line = graph, trace.reason, trace.has_raised, trace.line
        self.plan: Any = trace.plan
        self.program: Any = None
        self.written = () if graph is None else tuple(target.options["index"] for target, _ in graph.writes)
        self.seconds = 0.0
        self.has_foreign, self.has_flows = False, tracer.has_flows
        self.reporter: WarningReporter | None = None
        self.calls = 0
        self._may_raise: bool | None = None

    @property
    def has_tapes(self) -> bool:
        """Whether the code keeps values in arrays that calls lengthen."""
        return self._tape is not None

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

    def always_falls_back(self, others: Iterable[Sequence["Specialization"]]) -> bool:
        """Whether calls that no code of `others` accepts may fall back without a check of the guards.

        Later specializations may get code: a size that cannot be compiled must not keep other sizes from it.
        """
        self.calls += 1
        has_code = any(specialization.graph is not None for candidates in others for specialization in candidates)
        checks = FEW_GUARD_CHECKS if has_code else MAX_GUARD_CHECKS
        return not (self.guards or self.value_guards) or self.calls > checks

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
        """The number of elements that NumPy processes within `seconds` of overhead of compiled code.

        -1 where a constant, such as the weights of a layer, has more of them.
        """
        most = int((seconds / max(self._operations_of_numpy, 1) - SECONDS_OF_NUMPY) / SECONDS_OF_ELEMENT)
        return most if most >= self._elements_of_constants else -1

    @unlocked_cached_property
    def may_be_unprofitable(self) -> bool:
        """Whether the plain function may take less time than the code.

        That is so where NumPy computes a part, where Python builds a result of many arrays and numbers, and where there
        are many arguments to read, of which the function may use few.
        """
        if self.graph is None or self.has_foreign or self.plan is None:
            return False
        plan = self.plan
        builds_in_python = plan.is_tuple is None and plan.itself is None and plan.recipe is None
        has_calls = any(node.operation == "call" for node in regions.walk_nodes(self.graph))
        most = max(len(self.graph.inputs), len(self.graph.outputs) if builds_in_python else 0)
        return has_calls or most > MANY_LEAVES

    @unlocked_cached_property
    def _elements_of_constants(self) -> int:
        """The elements of the largest constant."""
        assert self.graph is not None, "traced"
        shapes = [node.shape for node in self.graph if node.operation == "constant"]
        shapes += [array.shape for array in self.constants]
        return max((math.prod(map(int, shape)) for shape in shapes), default=0)

    @unlocked_cached_property
    def _is_numpy(self) -> bool:
        """Whether the graph consists of NumPy calls, views and single-element reads alone."""
        assert self.graph is not None, "traced"
        others = [node for node in self.graph if node.operation not in NEGLIGIBLE_OPERATIONS]
        return any(node.operation == "call" for node in others) and all(
            node.operation in ("call", "item") or (node.operation in ("gather", "cast") and not node.ndim)
            for node in others
        )

    @unlocked_cached_property
    def _operations_of_numpy(self) -> int:
        assert self.graph is not None, "traced"
        return sum(node.operation not in NEGLIGIBLE_OPERATIONS for node in self.graph)

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

    def fall_back(self, error: Exception) -> None:
        """Let NumPy compute the graph after a failure of the compiler; the plain function, where that has loops."""
        if not isinstance(error, GraphError) or not self.has_flows:
            self.note_failure(error)
        self.program = backends.Interpreted(self.graph) if self.graph is not None else None
        if self.has_flows:  # Python beats interpreting a graph iteration by iteration
            self.graph, self.plan, self.reason = None, None, str(error)

    def note_failure(self, error: Exception) -> None:
        """Record and report a failure of the compiler after which the call falls back to NumPy."""
        text = f"a function falls back to NumPy, as it cannot be compiled: {type(error).__name__}: {error}"
        warn_once(f"code {type(error).__name__}", text)
        self.notes += (f"the compiler failed ({type(error).__name__}: {error}): NumPy computes",)

    def link_requested_symbols(self) -> bool:
        """Build and link symbols that a call of the code requested; whether there were any."""
        try:
            return build_ahead.build_requested()
        except BuildError as error:
            self.note_failure(error)
            return False

    def symbols_of(self, leaves: Sequence[Any]) -> dict[str, int] | None:
        """The values of the symbols for `leaves`; None where a guard fails."""
        for guard in self.value_guards:
            if not guard.holds(leaves[guard.leaf]):
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

    def run(self, leaves: Sequence[Any], symbols: dict[str, int]) -> list[Any]:
        """Run the compiled code. Tapes that are too short for its loops grow, for later calls too."""
        inputs = [*leaves, *self.constants]
        if self._tape is None:
            return self.program.run(inputs, symbols)  # type: ignore[no-any-return]
        before = [leaves[i].copy() for i in self.written]
        while True:
            length = self._tape.size
            try:
                return self.program.run(inputs, symbols)  # type: ignore[no-any-return]
            except CapacityExceededError:
                for i, array in zip(self.written, before, strict=True):
                    leaves[i][...] = array
                self._grow(length)
                known = self.symbols_of(leaves)
                if known is None:
                    raise IndexError("code for short tapes alone") from None
                symbols.update(known)
            except MemoryLimitError:
                raise
            except MemoryError:
                raise self._too_long(length) from None

    def _grow(self, length: int) -> None:
        """Grow tapes of `length`, unless another thread has. Raises WorkspaceError if memory is short."""
        with build_lock:
            if self._tape.size == length:
                try:
                    self._tape.resize(length * TAPE_GROWTH, refcheck=False)
                except MemoryError:
                    raise self._too_long(length) from None

    def _too_long(self, length: int) -> WorkspaceError:
        """The error for a trip count whose tapes do not fit in memory; later calls start with short tapes again."""
        self._tape.resize(INITIAL_TAPE_CAPACITY, refcheck=False)
        return WorkspaceError(
            f"a derivative of a loop of more than {length // TAPE_GROWTH} iterations: expected memory for its tapes"
        )

    def report_fp_errors(self, kinds: set[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Issue the warnings that NumPy would, for the kinds of floating-point errors that a call raised."""
        if self.reporter is not None and (reported := self.reporter.kinds(kinds)):
            self.reporter.report(reported, args, kwargs, None)

    def may_write(self, leaves: Sequence[Any]) -> bool:
        """Whether the written arguments are writeable and do not alias other arguments."""
        for i in self.written:
            target = leaves[i]
            if not target.flags.writeable or overlaps_itself(target, target.itemsize):
                return False
            for j, other in enumerate(leaves):
                if i == j or type(other) is not np.ndarray or not np.may_share_memory(target, other):
                    continue
                if not are_interleaved(target, other):
                    return False
        return True


@without_gc()
def specialize(
    structure: Any, leaves: Sequence[Any], config: JitConfig, variant: Mapping[str, Any] | None = None,
    *, may_assume: bool = False,
) -> Specialization:  # fmt: skip
    """Trace and compile a call; without code such calls fall back to NumPy. Raises DerivativeError, MemoryLimitError.

    `variant`: the compilation variant; the best measured one if None. `may_assume`: see `trace_call`.
    """
    began = time.perf_counter()
    options = {"exact": config.exact_sizes, "winograd": config.winograd, "may_assume": may_assume}
    trace = trace_call(structure, leaves, **options)
    if trace.graph is None and trace.tracer.needs_copies:
        trace = trace_call(structure, leaves, **options, copies_dynamic=True)
    specialization, graph, scope = Specialization(trace), trace.graph, trace.tracer.scope
    if graph is not None:
        try:
            choice = backends.choose_variant(graph, scope, config, variant)
            if choice is not None and choice.config.exact_sizes > config.exact_sizes:
                return specialize(structure, leaves, choice.config, choice.variant, may_assume=may_assume)
            if not config.is_compiled:
                specialization.program = backends.Interpreted(graph)
            elif choice is None:
                specialization.program = lower_graph.compile_graph(graph, scope, config, backends.measured_schedule)
            else:
                specialization.program = lower_graph.compile_graph(graph, scope, choice.config, choice)
                specialization.notes += (choice.description,) if choice.description else ()
            specialization.guards = tuple(scope.guards.values())  # lowering adds guards
        except (MemoryLimitError, DerivativeError):
            raise
        except Exception as error:  # an error of the compiler must not become the caller's
            if signal_exceptions.raised_by_signal_handler(error):
                raise
            specialization.fall_back(error)
    specialization.seconds = time.perf_counter() - began
    specialization.has_foreign = FOREIGN in leaves_of(structure[1:])
    return specialization
