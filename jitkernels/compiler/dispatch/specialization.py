"""A function made into a graph for one kind of arguments, and how results follow from what that computes."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels import handlers
from jitkernels.disk import say_once
from jitkernels.errors import BuildError, DerivativeError, GraphError, MemoryLimitError, WorkspaceError
from jitkernels.frontends import outputs, programs
from jitkernels.frontends.alarms import Alarm
from jitkernels.frontends.arguments import FOREIGN, leaves_of, short_extents, strides_of
from jitkernels.frontends.flow import operators
from jitkernels.frontends.places import placed
from jitkernels.frontends.rebuilt import Rebuilder
from jitkernels.frontends.standin import BUILTINS, stand_in
from jitkernels.frontends.storage import Storage, View, c_strides
from jitkernels.frontends.traced import Traced
from jitkernels.frontends.tracer import FIRST_ROOM, Binding, Tracer, ValueGuard, is_ours, pop, push
from jitkernels.frontends.watching import Watch, uncollected
from jitkernels.frontends.whole import Whole
from jitkernels.graph import flows
from jitkernels.graph.config import JitConfig
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.extents import Guard, Scope
from jitkernels.graph.ir import Graph, Node
from jitkernels.graph.program import FullError
from jitkernels.graph.serving import served
from jitkernels.graph.unknown import unswallowed
from jitkernels.kept import kept_property
from jitkernels.locks import making
from jitkernels.native import later

MANY_ELEMENTS = 2**62
MORE_ROOM = 4
"""How much longer tapes are made that are too short."""
SECONDS_OF_PYTHON, SECONDS_OF_NUMPY, SECONDS_OF_ELEMENT = 40e-6, 1e-6, 0.5e-9
"""A call of compiled code by Python; a call of NumPy, and what it takes for each element more than compiled code."""
SECONDS_OF_RESULT = 1e-6
"""What Python makes of arrays: a list, a dict, an object. Each view in it takes four times as long."""
FREE = frozenset({"input", "constant", "extent", "view", "reshape"})
"""Operations that take NumPy no time to speak of."""


class Specialisation:
    """Code for one structure and pattern of arguments, with the guards under which it is right.

    `graph` is None where the plain function serves, for `reason`. `has_raised`: tracing did, as that may itself.
    """

    def __init__(self, tracer: Tracer) -> None:
        self.scope: Scope = tracer.scope
        self.room: Any = tracer.roomy[1] if tracer.roomy is not None else None
        self.guards: tuple[Guard, ...] = tuple(tracer.scope.guards.values())
        self.value_guards: tuple[ValueGuard, ...] = tuple(tracer.guards)
        self.bindings: tuple[Binding, ...] = tuple(tracer.bindings)
        self.constants: tuple[Any, ...] = tuple(tracer.constants)
        self.direct: dict[Any, Any] = {}
        self.notes: tuple[str, ...] = tuple(tracer.notes)
        self.is_quiet, self.partial = tracer.is_quiet, frozenset(tracer.partial)
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
    def plain_up_to(self) -> int:
        """The largest arrays for which the plain function takes less time than what Python does for compiled code.

        An estimate, not a measurement: the same arguments give the same bits each time.
        """
        if self.graph is None:
            return MANY_ELEMENTS
        if self.has_foreign or self.has_flows:
            return -1
        return self._elements(SECONDS_OF_PYTHON)

    @property
    def plain_at_once(self) -> int:
        """The largest arrays for which that takes less time than what Python does for results alone."""
        if self.graph is None or self.has_foreign:
            return -1
        if self._is_numpy:
            return MANY_ELEMENTS
        plan = self.plan
        if plan.is_tuple is not None or self.has_flows or plan.itself is not None or plan.recipe is not None:
            return -1
        return self._elements(SECONDS_OF_RESULT * (1 + 4 * self.plan.views))

    def _elements(self, seconds: float) -> int:
        """How many elements NumPy is done with in a time that compiled code takes beside computing."""
        return int((seconds / max(self._operations_of_numpy, 1) - SECONDS_OF_NUMPY) / SECONDS_OF_ELEMENT)

    @kept_property
    def _is_numpy(self) -> bool:
        """Whether NumPy is called, and what else there is are views, and elements that are picked."""
        assert self.graph is not None, "traced"
        others = [node for node in self.graph if node.operation not in FREE]
        return any(node.operation == "call" for node in others) and all(
            node.operation in ("call", "item") or (node.operation in ("gather", "cast") and not node.ndim)
            for node in others
        )

    @kept_property
    def _operations_of_numpy(self) -> int:
        assert self.graph is not None, "traced"
        return sum(node.operation not in FREE for node in self.graph)

    @property
    def may_raise(self) -> bool:
        """Whether NumPy may refuse something when arguments are already written in part."""
        if self._may_raise is None:
            raising = ("call", "gather", "scatter", "kernel")
            self._may_raise = (
                bool(self.written)
                and self.graph is not None
                and (
                    bool(self.graph.checks)
                    or any(node.operation in raising for node in self.graph)
                    or any(flows.is_flow(node) and flows.may_refuse(node) for node in self.graph)
                )
            )
        return self._may_raise

    def note_failure(self, error: Exception) -> None:
        """Remember, and say, what the compiler could not do; NumPy did it."""
        text = f"a function is left to NumPy, as its code cannot be made: {type(error).__name__}: {error}"
        say_once(f"code {type(error).__name__}", text)
        self.notes += (f"the compiler failed ({type(error).__name__}: {error}): NumPy computes",)

    def brings_parts(self) -> bool:
        """Build what compiled code asked for when it was called; whether it did."""
        try:
            return later.bring_wanted()
        except BuildError as error:
            self.note_failure(error)
            return False

    def values(self, leaves: Sequence[Any]) -> dict[str, int] | None:
        """The symbols for some arguments; None where a guard does not hold."""
        for guard in self.value_guards:
            if not guard.holds(leaves):
                return None
        found: dict[str, int] = {}
        for symbol, leaf, kind, dimension in self.bindings:
            value = leaves[leaf] if leaf < len(leaves) else self.constants[leaf - len(leaves)]
            if kind == "extent":
                found[symbol] = value.shape[dimension]
            elif kind == "stride":
                found[symbol] = value.strides[dimension] // value.itemsize
            else:
                found[symbol] = int(value) if kind == "value" else -int(value)
        if not all(guard.holds(found) for guard in self.guards):
            return None
        return found if self.program is None or self.program.fits(found) else None

    def run(self, leaves: Sequence[Any], values: dict[str, int]) -> list[Any]:
        """The results of compiled code; where tapes are too short for its loops they are made longer, once for all."""
        given = [*leaves, *self.constants]
        if self.room is None:
            return self.program.run(given, values)  # type: ignore[no-any-return]
        before = [leaves[i].copy() for i in self.written]
        while True:
            length = self.room.size
            try:
                return self.program.run(given, values)  # type: ignore[no-any-return]
            except FullError:
                for i, array in zip(self.written, before, strict=True):
                    leaves[i][...] = array
                self._grow(length)
                values.update(self.values(leaves) or {})
            except MemoryLimitError:
                raise
            except MemoryError:
                raise self._too_long(length) from None

    def _grow(self, length: int) -> None:
        """Make tapes longer that were of a length. Raises WorkspaceError where there is no memory for that."""
        with making:
            if self.room.size == length:
                try:
                    self.room.resize(length * MORE_ROOM, refcheck=False)
                except MemoryError:
                    raise self._too_long(length) from None

    def _too_long(self, length: int) -> WorkspaceError:
        """What is raised for more rounds than there is memory for; later calls begin with short tapes again."""
        self.room.resize(FIRST_ROOM, refcheck=False)
        return WorkspaceError(
            f"a derivative of a loop of more than {length // MORE_ROOM} rounds: expected memory for what each needs"
        )

    def tell(self, kinds: set[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Warn of what NumPy would, where kinds of floating-point errors were found."""
        if kinds and self.alarm is not None:
            self.alarm.hear(tuple(sorted(kinds)), args, kwargs, None)

    def may_write(self, leaves: Sequence[Any]) -> bool:
        """Whether arguments that are written can be, and share no memory with others."""
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
    for step, extent in sorted(
        (abs(step), extent) for step, extent in zip(array.strides, array.shape, strict=True)
    ):
        if extent > 1:
            if step < reach + array.itemsize:
                return True
            reach += step * (extent - 1)
    return False


@uncollected()
def made(
    function: Any,
    structure: Any,
    leaves: list[Any],
    config: JitConfig,
    variant: Mapping[str, Any] | None = None,
) -> Specialisation:
    """Trace a function. Where there is no code for it the plain function serves. Raises DerivativeError.

    `variant`: how it is compiled; that which measured best if None.
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
        if handlers.end_calls(error):
            raise
        specialisation = Specialisation(tracer)
        specialisation.has_raised = True
        specialisation.reason = f"tracing raised {type(error).__name__}: {placed(error)}"
    else:
        specialisation = Specialisation(tracer)
        specialisation.graph, specialisation.plan = graph, plan
        specialisation.operations = sum(
            node.operation not in ("input", "constant", "extent") for node in graph
        )
        specialisation.written = tuple(target.options["index"] for target, _ in graph.writes)
        try:
            how = programs.picked(graph, tracer.scope, config, variant)
            if how is not None and how.config.exact_sizes > config.exact_sizes:
                exact = how.config, how.variant
            else:
                specialisation.program = programs.compiled(graph, tracer.scope, config, how)
            if how is not None and how.told:
                specialisation.notes += (how.told,)
            specialisation.guards = tuple(tracer.scope.guards.values())  # of what code was made for, too
        except MemoryLimitError:
            raise
        except Exception as error:  # a mistake of the compiler must not be one of the results
            if handlers.have_raised(error):
                raise
            if not isinstance(error, GraphError) or not tracer.has_flows:
                specialisation.note_failure(error)
            specialisation.program = programs.Interpreted(graph)
            if tracer.has_flows:  # round by round Python is the quicker one
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
    given = _inputs(tracer, exact=exact)
    remaining = iter(given)
    rebuilder = Rebuilder(lambda _: next(remaining), stand_in, BUILTINS, operators)
    function, positional, keywords = (rebuilder.rebuild(one) for one in structure)
    with Watch(rebuilder.tables) as watch, unswallowed(is_ours):
        found = function(*positional, **keywords)
    rebuilder.check(getattr(function, "__code__", None), positional, keywords)
    if watch.refused:
        raise UnknownError(watch.refused)
    graph, plan = outputs.planned(tracer, found, given)
    return served(graph) if tracer.has_flows else graph, plan


def _inputs(tracer: Tracer, *, exact: bool) -> list[Any]:
    """What stands for each leaf; if `exact`, extents are numbers, and code is for these alone."""
    symbols: dict[int, Any] = {one: one for one in short_extents(tracer.leaves)}
    given: list[Any] = []
    for i, leaf in enumerate(tracer.leaves):
        if type(leaf) is not np.ndarray:
            kind = np.asarray(leaf).dtype.name
            node = Node("input", (), kind, (), {"index": i, "strides": ()})
            tracer.inputs.append(node)
            if type(leaf) is int:
                given.append(Whole(tracer, leaf=i))
            else:
                weak = type(leaf) is float
                given.append(Traced(tracer, View(Storage(node), ()), is_scalar=True, is_weak=weak))
            continue
        shape = [_extent(tracer, symbols, i, d) for d in range(leaf.ndim)]
        shape = [*map(int, shape)] if exact else shape
        is_c = leaf.flags.c_contiguous
        strides = c_strides(shape) if is_c else _strides(tracer, i, leaf, shape)
        node = Node("input", (), leaf.dtype.name, shape, {"index": i, "strides": strides})
        tracer.inputs.append(node)
        storage = Storage(node, i, is_c=True if is_c else None)
        storage.strides, storage.is_frozen = strides, not leaf.flags.writeable
        given.append(Traced(tracer, View(storage, shape)))
    if exact:  # the guards stay, but nothing is computed from these any more
        for binding in tracer.bindings:
            tracer.scope.values.pop(binding.symbol if binding.kind == "extent" else "", None)
    return given


def _extent(tracer: Tracer, symbols: dict[int, Any], leaf: int, dimension: int) -> Any:
    value = tracer.leaves[leaf].shape[dimension]
    if value < 2:
        return value
    if value not in symbols:
        name = f"n{len(symbols)}"
        symbols[value] = tracer.scope.symbol(name, value)
        tracer.bindings.append(Binding(name, leaf, "extent", dimension))
    return symbols[value]


def _strides(tracer: Tracer, leaf: int, array: Any, shape: Sequence[Any]) -> tuple[Any, ...]:
    if array.flags.f_contiguous:
        columns = c_strides(shape[::-1])[::-1]
        return tuple(0 if extent == 1 else step for extent, step in zip(array.shape, columns, strict=True))
    result: list[Any] = []
    for dimension, pattern in enumerate(strides_of(array)):
        if pattern is not None:
            result.append(pattern)
            continue
        name = f"s{leaf}_{dimension}"
        result.append(tracer.scope.symbol(name, array.strides[dimension] // array.itemsize))
        tracer.bindings.append(Binding(name, leaf, "stride", dimension))
    return tuple(result)
