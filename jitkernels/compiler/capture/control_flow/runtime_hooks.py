"""Runtime hooks of rewritten functions: Python's control flow where tracing decides it, else loops and branches."""

import builtins
import operator
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.callee_monitor import without_monitor
from jitkernels.compiler.capture.control_flow.branch_phi import BranchMismatchError
from jitkernels.compiler.capture.control_flow.callee_resolution import called, iterable
from jitkernels.compiler.capture.control_flow.carried_trees import FormError
from jitkernels.compiler.capture.control_flow.growing_list import (
    EmptyError,
    GrowableList,
    ListGrowsError,
    finished,
    is_array_backed,
)
from jitkernels.compiler.capture.control_flow.iterables import LoopIterable, along
from jitkernels.compiler.capture.control_flow.loop_state import (
    UNSET,
    State,
    as_number,
    dtype_of,
    join_kinds,
    kind_of,
    node_of,
)
from jitkernels.compiler.capture.control_flow.region_transaction import ChangesError
from jitkernels.compiler.capture.control_flow.tagged_union import TaggedUnion
from jitkernels.compiler.capture.control_flow.trace_branch import as_bool, choose, is_decided, truth, value_of
from jitkernels.compiler.capture.control_flow.trace_loop import Loop
from jitkernels.compiler.capture.control_flow.unbound_checks import bound, bound_around, caught
from jitkernels.compiler.capture.control_flow.unroll_at_trace import MAX_UNROLLED_NODES, bounded_unroll, unrolled
from jitkernels.compiler.capture.ints import minmax_builtins as _numbers  # noqa: F401  # the table of what traced functions call
from jitkernels.compiler.capture.ints import zero_trip_guard
from jitkernels.compiler.capture.ints.int64_arithmetic import min_or_max
from jitkernels.compiler.capture.numpy_namespace_proxy import CALLED
from jitkernels.compiler.capture.source_locations import place_of, placed
from jitkernels.compiler.capture.trace_context import Tracer, current
from jitkernels.compiler.ir.builder import UnknownError, elementwise
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.unsupported import ConcretizationError, UnknownSizeError

__all__ = [
    "UNSET", "State", "and_", "both", "bound", "bound_around", "called", "caught", "chain", "chosen",
    "either", "extreme", "finished", "folded", "for_", "given_back", "if_", "is_", "iterable", "listed",
    "not_", "or_", "while_",
]  # fmt: skip
ALWAYS_UNROLLED_ITERATIONS, MAX_UNROLLED_ITERATIONS = 8, 4096
"""Trip counts up to which a loop is always unrolled while tracing, and is unrolled at most."""
CURE = (
    "expected numbers, or arrays of one dtype and shape, where the condition is known only when the compiled code "
    "runs. Write `np.where(condition, a, b)` for a choice between elements, or take the branch outside of the "
    "compiled function"
)
"""Advice for branches whose sides do not match."""


def for_(values: Any, test: Callable[[], Any] | None, body: Callable[[Any], Any], state: State) -> None:
    """``for value in values: body(value)``, while the test holds."""
    tracer, iterable_values = current(), along(values)
    if tracer is None:
        _run(tracer, values, test, body, state)
        return
    operands = [values] if iterable_values is None else iterable_values.arrays
    tracer.loop_operands += operands
    try:
        _for(tracer, values, iterable_values, test, body, state)
    finally:
        del tracer.loop_operands[len(tracer.loop_operands) - len(operands) :]


def _for(tracer: Tracer, values: Any, loop_iterable: LoopIterable | None, test: Any, body: Any, state: State) -> None:
    """The same within a trace."""
    if loop_iterable is None:
        reason = UnknownError("a loop is unrolled and has too many iterations: iterate over a range or an array")
        _run(tracer, bounded_unroll(values, reason, 2 * MAX_UNROLLED_NODES), test, body, state)
        return
    trip_count = loop_iterable.count.trip_count
    if trip_count is not None and trip_count <= ALWAYS_UNROLLED_ITERATIONS:
        _run(tracer, loop_iterable, test, body, state)
        return
    try:
        _trace_until_stable(
            tracer,
            state,
            lambda state, begins: Loop(
                tracer, state, loop_iterable.count, test, begins(lambda i: body(loop_iterable.at(i)))
            ),
        )
    except ListGrowsError:
        raise
    except (Exception, UnknownError) as error:
        if zero_trip_guard.is_missing(loop_iterable.count):
            return
        if not isinstance(error, UnknownError):
            raise
        concrete_range, reason = loop_iterable.count.concrete_range, placed(error, state.line)
        if concrete_range is None or tracer.depth and trip_count is None:
            raise
        if len(concrete_range) > (
            ALWAYS_UNROLLED_ITERATIONS if isinstance(error, UnknownSizeError) else MAX_UNROLLED_ITERATIONS
        ):
            raise reason from None
        tracer.note(f"a loop is unrolled: {reason}")
        try:
            _run(tracer, bounded_unroll(loop_iterable, reason), test, body, state)
        except ConcretizationError:
            raise reason from None


@without_monitor
def _trace_until_stable(tracer: Tracer, state: State, loop: Callable[[State, Any], "Loop | Choosing"]) -> None:
    """Trace a loop or branch; trace it again where lists turn out to grow in it or entries of containers to change."""
    lists: list[GrowableList] = []

    def with_begin(body: Callable[..., Any]) -> Callable[..., Any]:
        def begin_and_run(*arguments: Any) -> None:
            for growing in lists:
                growing.begin()
            body(*arguments)

        return begin_and_run

    try:
        while True:
            try:
                loop(state, with_begin).trace()
                break
            except ChangesError as error:
                state = state.with_entries(error.container, error.keys)
            except FormError as error:
                state = error.state
            except ListGrowsError as error:
                if tracer.depth != error.grown.depth:
                    raise
                error.grown.restore()
                error.grown.back(tracer, error)
                lists += [error.grown] if all(growing is not error.grown for growing in lists) else []
        for growing in lists:
            growing.end()
    except BaseException:
        for growing in lists:
            growing.restore()
        raise


def _run(tracer: Tracer | None, values: Any, test: Any, body: Any, state: State) -> None:
    """Run the loop as Python does: the trace knows each iteration."""
    if tracer is None or test is None:
        for value in values:
            if test is not None and not test():
                return
            body(value)
        return
    unrolled(tracer, iter(values), test, body, state)


def while_(test: Callable[[], Any], body: Callable[[], Any], state: State) -> None:
    """``while test(): body()``."""
    tracer = current()
    if tracer is None:
        while test():
            body()
        return
    try:
        _trace_until_stable(tracer, state, lambda now, begins: Loop(tracer, now, None, test, begins(body)))
    except ListGrowsError:
        raise
    except UnknownError as error:
        # Later iterations of an enclosing loop append elements, or this loop does not run.
        if isinstance(error, EmptyError):
            condition = test()
            if is_decided(condition) and not condition:
                return
        if tracer.depth:
            raise
        reason = placed(error, state.line)
        # Where tracing decides neither, the whole call falls back.
        with suppress(ConcretizationError, BranchMismatchError):
            for _ in range(MAX_UNROLLED_ITERATIONS):
                if not test():
                    return
                body()
        raise reason from None


def if_(test: Any, yes: Callable[[], Any], no: Callable[[], Any], state: State) -> None:
    """``if test: yes() else: no()``."""
    tracer = current()
    if tracer is None or is_decided(test):
        (yes if test else no)()
        return
    try:
        _trace_until_stable(tracer, state, lambda state, _: Choosing(tracer, test, yes, no, state))
    except ListGrowsError:
        raise
    except BranchMismatchError as error:
        if error.is_placed:
            raise
        raise BranchMismatchError(f"{place_of(error, state.line)}: {error}: {CURE}", is_placed=True) from None
    except UnknownError as error:
        if not tracer.depth:
            reason = placed(error, state.line)
            tracer.note(str(reason))
            try:
                bool(test)  # raises an error that names the source line
            except ConcretizationError as error_at_line:
                text = f"{error_at_line}. Why both sides cannot be compiled: {reason}"
                raise ConcretizationError(text, is_placed=True) from None
        raise


class Choosing(NamedTuple):
    """A branch, traced by the same driver as loops."""

    tracer: Tracer
    test: Any
    yes: Callable[[], Any]
    no: Callable[[], Any]
    state: State

    def trace(self) -> None:
        choose(*self)


def chosen(test: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """``yes() if test else no()``."""
    tracer = current()
    if tracer is None or is_decided(test):
        return yes() if test else no()
    return value_of(tracer, test, yes, no)


def both(first: Any, compute_second: Callable[[], Any]) -> Any:
    """``one and other()`` where only its truth matters."""
    tracer = current()
    if tracer is None or is_decided(first):
        return compute_second() if first else False
    seconds: list[Any] = []

    def second() -> Any:
        seconds.append(as_bool(tracer, compute_second()))
        return seconds[0]

    result = value_of(tracer, first, second, lambda: False)
    if type(result) is Traced:  # if the result is true, both operands are
        nodes = [value.node for value in (first, *seconds) if type(value) is Traced]
        tracer.implied_conditions[id(result.node)] = result.node, nodes
    return result


def either(first: Any, compute_second: Callable[[], Any]) -> Any:
    """``one or other()`` where only its truth matters."""
    tracer = current()
    if tracer is None or is_decided(first):
        return True if first else compute_second()
    return value_of(tracer, first, lambda: True, lambda: as_bool(tracer, compute_second()))


def and_(first: Any, compute_second: Callable[[], Any]) -> Any:
    """``one and other()``."""
    tracer = current()
    if tracer is None or is_decided(first):
        return first and compute_second()
    return value_of(tracer, first, compute_second, lambda: first)


def or_(first: Any, compute_second: Callable[[], Any]) -> Any:
    """``one or other()``."""
    tracer = current()
    if tracer is None or is_decided(first):
        return first or compute_second()
    return value_of(tracer, first, lambda: first, compute_second)


def is_(left: Any, right: Any) -> Any:
    """``one is other``."""
    for value, constant in ((left, right), (right, left)):
        if type(value) is TaggedUnion and (constant is None or type(constant) is str):
            return value.is_one(constant)
    leaves = [value.view.storage.leaf for value in (left, right) if type(value) is Traced and not value.is_scalar]
    if left is not right and len(leaves) == 2 and None not in leaves:
        raise UnknownError("an identity test of two array arguments")
    return left is right


SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge, "Eq": operator.eq,
    "NotEq": operator.ne, "Is": is_, "IsNot": lambda left, right: not_(is_(left, right)),
    "In": lambda left, right: left in right, "NotIn": lambda left, right: left not in right,
}  # fmt: skip


def chain(
    join: Callable[[Any, Callable[[], Any]], Any], left: Any, first: tuple[str, Callable[[], Any]], *remaining: Any
) -> Any:
    """``left < first < ...``: operators with thunks of their right operands; `join` is `and_` or `both`."""
    operator_name, compute_right = first
    right = compute_right()
    result = SIGNS[operator_name](left, right)
    return join(result, lambda: chain(join, right, *remaining)) if remaining else result


def folded(function: Any, plain: Callable[[], Any], *folds: tuple[str, Callable[[], Any]]) -> Any:
    """``function(...)`` of a generator: by a loop if `function` is Python's function of one of these names."""
    for name, compile_fold in folds:
        builtin = getattr(builtins, name)
        if function is builtin or function is CALLED.get(builtin):
            return compile_fold()
    return plain()


def extreme(fold: str, value: Any, best: Any, has_best: Any) -> Any:
    """The better of a value and the previous best, if `has_best`."""
    if best is UNSET:
        return value
    tracer = current()
    sign = operator.gt if fold == "max" else operator.lt
    if tracer is None or (is_decided(has_best) and not has_best):
        return value if not has_best or sign(value, best) else best
    if is_decided(has_best):
        return min_or_max(tracer, (best, value), sign)
    kind = join_kinds("an extreme", kind_of(value), kind_of(best))
    better = elementwise("logical_or", as_bool(tracer, not_(has_best)).node, truth(tracer, sign(value, best)))
    nodes = [node_of(tracer, operand, kind) for operand in (value, best)]
    return as_number(tracer, Node("where", (better, *nodes), dtype_of(kind), ()), kind)


def given_back(value: Any) -> Any:
    """A returned value: lists in it become snapshots."""
    if type(value) is GrowableList and value.counted is not None:
        return value.counted.finished()
    if type(value) in (tuple, list):
        elements = [given_back(element) for element in value]
        return value if all(a is b for a, b in zip(elements, value, strict=True)) else type(value)(elements)
    if type(value) is dict:
        entries = {name: given_back(element) for name, element in value.items()}
        return value if all(entries[name] is value[name] for name in value) else entries
    return value


def listed(*values: Any) -> list[Any]:
    """``[...]``, which may grow."""
    return [*values] if current() is None else GrowableList(values)


def not_(value: Any) -> Any:
    """``not value``."""
    tracer = current()
    if tracer is None or is_decided(value):
        return not value
    return as_number(tracer, elementwise("logical_not", as_bool(tracer, value).node), bool)


def _sum(values: Any, start: Any = 0) -> Any:
    """``sum`` of a list that has grown in a loop, by another loop."""
    if not is_array_backed(values):
        return builtins.sum(values, start)
    if values.kind is None:
        return np.sum(values.whole(), axis=0) + start
    total = [start]

    def put(new_values: tuple[Any, ...]) -> None:
        total[0] = new_values[0]

    def add(element: Any) -> None:
        total[0] = total[0] + element

    for_(values, None, add, State(("_jk_total",), lambda: (total[0],), put, 0))
    return total[0]


CALLED[builtins.sum] = _sum
