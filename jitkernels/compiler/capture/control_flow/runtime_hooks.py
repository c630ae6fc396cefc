"""Runtime hooks of rewritten functions: Python's control flow where tracing decides it, else loops and branches."""

import builtins
import operator
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.callee_monitor import without_monitor
from jitkernels.compiler.capture.control_flow import loop_state, unroll_at_trace
from jitkernels.compiler.capture.control_flow.assumed_branch import assumed_side, described
from jitkernels.compiler.capture.control_flow.branch_phi import BranchMismatchError
from jitkernels.compiler.capture.control_flow.callee_resolution import resolve_callee, resolve_iterable
from jitkernels.compiler.capture.control_flow.carried_trees import FormError
from jitkernels.compiler.capture.control_flow.growing_list import (
    EmptyListError,
    GrowableList,
    ListGrowsError,
    is_array_backed,
)
from jitkernels.compiler.capture.control_flow.iterables import LoopIterable, loop_iterable
from jitkernels.compiler.capture.control_flow.loop_state import UNSET, State, as_number
from jitkernels.compiler.capture.control_flow.membership import is_member
from jitkernels.compiler.capture.control_flow.region_transaction import ContainerChangedError
from jitkernels.compiler.capture.control_flow.tagged_union import TaggedUnion
from jitkernels.compiler.capture.control_flow.trace_branch import as_bool, is_decided, select_value, trace_if, truth
from jitkernels.compiler.capture.control_flow.trace_loop import Loop
from jitkernels.compiler.capture.control_flow.tuple_comparisons import compare_tuples
from jitkernels.compiler.capture.control_flow.unbound_checks import check_bound, check_caught, check_free_bound
from jitkernels.compiler.capture.ints.int64_arithmetic import min_or_max
from jitkernels.compiler.capture.numpy_namespace_proxy import CALLED, original
from jitkernels.compiler.capture.override_registry import serves
from jitkernels.compiler.capture.python_numbers.compensated_sum import sum_end, sum_step  # noqa: F401  # hooks
from jitkernels.compiler.capture.source_locations import placed
from jitkernels.compiler.capture.trace_context import Tracer, current
from jitkernels.compiler.ir import pytree
from jitkernels.compiler.ir.builder import UnsupportedError, elementwise
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.unsupported import ConcretizationError, UnknownSizeError

__all__ = [
    "UNSET",
    "State",
    "and_",
    "and_test",
    "check_bound",
    "check_caught",
    "check_free_bound",
    "compare",
    "compare_chain",
    "extreme",
    "finish_list",
    "fold",
    "for_",
    "if_",
    "in_",
    "is_",
    "new_list",
    "not_",
    "or_",
    "or_test",
    "resolve_callee",
    "resolve_iterable",
    "return_value",
    "select",
    "while_",
]  # fmt: skip
ALWAYS_UNROLLED_ITERATIONS, FEW_ITERATIONS, MAX_UNROLLED_ITERATIONS = 8, 32, 4096
"""Trip counts up to which a loop is always unrolled while tracing, is unrolled where its text fixes the trip count and
sizes depend on the iteration, and is unrolled at most."""

# Loops and branches


@serves("for")
def for_(values: Any, test: Callable[[], Any] | None, body: Callable[[Any], Any], state: State) -> None:
    """``for value in values: body(value)``, while the test holds."""
    tracer, iterable = current(), loop_iterable(values)
    if tracer is None:
        _run(tracer, values, test, body, state)
        return
    operands = [values] if iterable is None else iterable.arrays
    tracer.loop_operands += operands
    try:
        _for(tracer, values, iterable, test, body, state)
    finally:
        del tracer.loop_operands[len(tracer.loop_operands) - len(operands) :]


def _for(tracer: Tracer, values: Any, iterable: LoopIterable | None, test: Any, body: Any, state: State) -> None:
    """The same within a trace."""
    if iterable is None:
        reason = UnsupportedError("a loop is unrolled and has too many iterations: iterate over a range or an array")
        unrolled = unroll_at_trace.bounded(values, reason, 2 * unroll_at_trace.MAX_UNROLLED_NODES)
        _run(tracer, unrolled, test, body, state)
        return
    loop_range = iterable.range
    trip_count = loop_range.trip_count
    if trip_count is not None and trip_count <= ALWAYS_UNROLLED_ITERATIONS:
        _run(tracer, iterable, test, body, state)
        return

    def trace(state: State, begin_lists: Callable[[], None]) -> None:
        def run_body(i: Any) -> None:
            begin_lists()
            body(iterable.at(i))

        Loop(tracer, state, loop_range, test, run_body).trace()

    try:
        _trace_until_stable(tracer, state, trace)
    except ListGrowsError:
        raise
    except (Exception, UnsupportedError) as error:
        if loop_range.is_empty():
            return
        if not isinstance(error, UnsupportedError):
            raise
        concrete_range, reason = loop_range.concrete_range, placed(error, state.line)
        if concrete_range is None or iterable.is_ours or (tracer.depth and trip_count is None):
            raise
        limit = MAX_UNROLLED_ITERATIONS
        if isinstance(error, UnknownSizeError):
            limit = ALWAYS_UNROLLED_ITERATIONS if trip_count is None else FEW_ITERATIONS
        if len(concrete_range) > limit:
            raise reason from None
        tracer.note(f"a loop is unrolled: {reason}")
        try:
            _run(tracer, unroll_at_trace.bounded(iterable, reason), test, body, state)
        except ConcretizationError:
            raise reason from None


@without_monitor
def _trace_until_stable(tracer: Tracer, state: State, trace: Callable[[State, Callable[[], None]], None]) -> None:
    """Trace a loop or branch; trace it again where lists turn out to grow in it or entries of containers to change.

    `trace` takes the state, and a function to call at the begin of an iteration.
    """
    lists: list[GrowableList] = []

    def begin_lists() -> None:
        for growing in lists:
            if growing.rows is not None:
                growing.rows.begin()

    try:
        while True:
            try:
                trace(state, begin_lists)
                break
            except ContainerChangedError as error:
                state = state.with_entries(error.container, error.keys)
            except FormError as error:
                state = error.state
            except ListGrowsError as error:
                if tracer.depth != error.grown.depth:
                    raise
                error.grown.allocate(tracer, error.elements)
                lists += [error.grown] if all(growing is not error.grown for growing in lists) else []
        for growing in lists:
            if growing.rows is not None:
                growing.rows.end()
    except BaseException:
        for growing in lists:
            growing.restore()
        raise


def _run(tracer: Tracer | None, values: Any, test: Any, body: Any, state: State) -> None:
    """Run the loop as Python does: the trace knows each iteration."""
    if test is not None:
        unroll_at_trace.unroll(tracer, iter(values), test, body, state)
        return
    for value in values:
        body(value)


@serves("while")
def while_(test: Callable[[], Any], body: Callable[[], Any], state: State) -> None:
    """``while test(): body()``."""
    tracer = current()
    if tracer is None:
        while test():
            body()
        return

    def trace(state: State, begin_lists: Callable[[], None]) -> None:
        def run_body() -> None:
            begin_lists()
            body()

        Loop(tracer, state, None, test, run_body).trace()

    try:
        _trace_until_stable(tracer, state, trace)
    except ListGrowsError:
        raise
    except UnsupportedError as error:
        # Later iterations of an enclosing loop append elements, or this loop does not run.
        if isinstance(error, EmptyListError):
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
        _trace_until_stable(tracer, state, lambda state, _: trace_if(tracer, test, yes, no, state))
    except ListGrowsError:
        raise
    except UnsupportedError as error:
        side = assumed_side(tracer, test, error)
        if side is None:
            raise described(tracer, test, error, state.line) from None
        (yes if side else no)()


# Operators


def select(test: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """``yes() if test else no()``."""
    tracer = current()
    if tracer is None or is_decided(test):
        return yes() if test else no()
    try:
        return select_value(tracer, test, yes, no)
    except UnsupportedError as error:
        side = assumed_side(tracer, test, error)
        if side is None:
            raise
        return yes() if side else no()


def and_test(first: Any, compute_second: Callable[[], Any]) -> Any:
    """``first and second()`` where only its truth matters."""
    tracer = current()
    if tracer is None or is_decided(first):
        return compute_second() if first else False
    operands = [first]

    def second() -> Any:
        operands.append(as_bool(tracer, compute_second()))
        return operands[-1]

    result = select_value(tracer, first, second, lambda: False)
    if type(result) is Traced:  # if the result is true, both operands are
        tracer.implied_conditions[result.node] = [value.node for value in operands if type(value) is Traced]
    return result


def or_test(first: Any, compute_second: Callable[[], Any]) -> Any:
    """``first or second()`` where only its truth matters."""
    tracer = current()
    if tracer is None or is_decided(first):
        return True if first else compute_second()
    return select_value(tracer, first, lambda: True, lambda: as_bool(tracer, compute_second()))


def and_(first: Any, compute_second: Callable[[], Any]) -> Any:
    """``first and second()``."""
    return select(first, compute_second, lambda: first)


def or_(first: Any, compute_second: Callable[[], Any]) -> Any:
    """``first or second()``."""
    return select(first, lambda: first, compute_second)


def not_(value: Any) -> Any:
    """``not value``."""
    tracer = current()
    if tracer is None or is_decided(value):
        return not value
    return as_number(tracer, elementwise("logical_not", as_bool(tracer, value).node), bool)


def is_(left: Any, right: Any) -> Any:
    """``left is right``."""
    for value, constant in ((left, right), (right, left)):
        if type(value) is TaggedUnion and (constant is None or type(constant) is str):
            return value.is_constant(constant)
    leaves = [value.view.storage.leaf for value in (left, right) if type(value) is Traced and not value.is_scalar]
    if left is not right and len(leaves) == 2 and None not in leaves:
        raise UnsupportedError("an identity test of two array arguments")
    tracer = current()
    if left is not right and tracer is not None and {id(left), id(right)} <= tracer.copied_arguments.keys():
        raise UnsupportedError(f"an identity test of two arguments of type {type(left).__name__}")
    return original(left) is original(right)


def in_(value: Any, container: Any) -> Any:
    """``value in container``."""
    tracer = current()
    if tracer is None:
        return value in container
    result = is_member(tracer, value, container)
    return value in container if result is NotImplemented else result


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge, "Eq": operator.eq,
    "NotEq": operator.ne, "Is": is_, "IsNot": lambda left, right: not_(is_(left, right)),
    "In": in_, "NotIn": lambda left, right: not_(in_(left, right)),
}  # fmt: skip
CONTAINMENTS = ("Is", "IsNot", "In", "NotIn")


def compare(name: str, left: Any, right: Any) -> Any:
    """``left < right`` and the like, by the class name of the operator."""
    tracer, operation = current(), COMPARISONS[name]
    if tracer is not None and type(left) is type(right) is tuple and name not in CONTAINMENTS:
        result = compare_tuples(tracer, name, operation, left, right)
        return operation(left, right) if result is NotImplemented else result
    return operation(left, right)


def compare_chain(
    join: Callable[[Any, Callable[[], Any]], Any], left: Any, first: tuple[str, Callable[[], Any]], *remaining: Any
) -> Any:
    """``left < first < ...``: operators with thunks of their right operands; `join` is `and_` or `and_test`."""
    operator_name, compute_right = first
    right = compute_right()
    result = compare(operator_name, left, right)
    return join(result, lambda: compare_chain(join, right, *remaining)) if remaining else result


# Comprehensions, lists and results


def fold(function: Any, plain: Callable[[], Any], *folds: tuple[str, Callable[[], Any]]) -> Any:
    """``function(...)`` of a generator: by a loop if `function` is Python's function of one of these names."""
    for name, compile_fold in folds:
        builtin = getattr(builtins, name)
        if function is builtin or function is CALLED.get(builtin):
            return compile_fold()
    return plain()


def extreme(name: str, value: Any, best: Any, has_best: Any) -> Any:
    """The better of a value and the previous best, if `has_best`. `name`: max or min."""
    if best is UNSET:
        return value
    tracer = current()
    is_better = operator.gt if name == "max" else operator.lt
    if tracer is None or (is_decided(has_best) and not has_best):
        return value if not has_best or is_better(value, best) else best
    if is_decided(has_best):
        return min_or_max(tracer, (best, value), is_better)
    kind = loop_state.join_kinds("an extreme", loop_state.kind_of(value), loop_state.kind_of(best))
    takes_value = elementwise("logical_or", as_bool(tracer, not_(has_best)).node, truth(tracer, is_better(value, best)))
    nodes = [loop_state.node_of(tracer, operand, kind) for operand in (value, best)]
    return as_number(tracer, Node("where", (takes_value, *nodes), loop_state.dtype_of(kind), ()), kind)


def new_list(*values: Any) -> list[Any]:
    """``[...]``, which may grow."""
    return [*values] if current() is None else GrowableList(values)


def finish_list(values: GrowableList) -> list[Any]:
    """The result of a list comprehension."""
    return values if is_array_backed(values) else list(values)


def return_value(value: Any) -> Any:
    """A returned value: lists in it become snapshots."""

    def snapshot(leaf: Any) -> Any:
        return leaf.dynamic.snapshot() if type(leaf) is GrowableList and leaf.dynamic is not None else leaf

    return pytree.tree_map(snapshot, value, keeps_identity=True)
