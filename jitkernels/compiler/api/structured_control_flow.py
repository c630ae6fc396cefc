"""Structured control flow with the API of JAX: `fori_loop`, `while_loop`, `scan`, `cond`, `switch`.

In compiled functions they become the same loops and branches as `for`, `while` and `if`; elsewhere they are plain
Python. The loop-carried value is a number, an array, or a pytree (tuples, lists, dicts) of these, with the same
structure after each iteration.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh, traced
from jitkernels.compiler.capture.control_flow import runtime_hooks
from jitkernels.compiler.capture.control_flow.iterables import range_
from jitkernels.compiler.capture.control_flow.loop_state import UNSET, State
from jitkernels.compiler.capture.control_flow.region_transaction import RegionTransaction
from jitkernels.compiler.capture.control_flow.trace_branch import is_decided
from jitkernels.compiler.capture.symint import as_extent, as_symint
from jitkernels.compiler.capture.trace_context import Tracer, current
from jitkernels.compiler.ir import builder, pytree
from jitkernels.errors import ArgumentError


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """``for i in range(lower, upper): value = body_fun(i, value)``, from ``value = init_val`` on; the last value."""
    values = _Values("fori_loop", init_val)
    runtime_hooks.for_(range_(lower, upper), None, lambda i: values.take(body_fun(i, values.whole())), values.state())
    return values.whole()


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """``while cond_fun(value): value = body_fun(value)``, from ``value = init_val`` on; the last value."""
    values = _Values("while_loop", init_val)
    runtime_hooks.while_(
        lambda: cond_fun(values.whole()), lambda: values.take(body_fun(values.whole())), values.state()
    )
    return values.whole()


def scan(f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any = None, length: Any = None) -> tuple[Any, Any]:
    """``carry, y = f(carry, x)`` for each x of `xs` along its first axis; the last carry, and all y, stacked."""
    leaves, make = _flatten(xs)
    if length is None and not leaves:
        raise ArgumentError("scan: expected xs or a length, got neither")
    count = _length(leaves[0]) if length is None else length
    if any(_length(one) != count for one in leaves):
        raise ArgumentError("scan: expected arrays of the same length in xs, equal to the trip count")

    def element_of(i: Any) -> Any:
        return make([one[i] for one in leaves])

    tracer = current()
    if tracer is None:
        collected = []
        for i in range(count):
            init, y = f(init, element_of(i))
            collected.append(y)
        parts = [_flatten(y) for y in collected]
        columns = zip(*(part for part, _ in parts), strict=True)
        return init, parts[0][1]([np.stack(column) for column in columns]) if parts else None
    values = _Values("scan", init)
    like, make_y = _abstract_results(tracer, lambda: f(values.whole(), element_of(0))[1])
    stacked = [_zeros(tracer, (as_extent(count), *one.extents), one) for one in like]

    def body(i: Any) -> None:
        carry, y = f(values.whole(), element_of(i))
        values.take(carry)
        for array, one in zip(stacked, _flatten(y)[0], strict=True):
            array[i] = one

    runtime_hooks.for_(range_(0, count), None, body, values.state())
    return values.whole(), make_y(stacked)


def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """``true_fun(*operands) if pred else false_fun(*operands)``."""
    tracer = current()
    if tracer is None or is_decided(pred):
        return (true_fun if pred else false_fun)(*operands)
    like, make = _abstract_results(tracer, lambda: true_fun(*operands))
    values = _Values("cond", [_zeros(tracer, one.extents, one) if one.ndim else UNSET for one in like])

    def side(function: Callable[..., Any]) -> None:
        found, _ = _flatten(function(*operands))
        if len(found) != len(like):
            raise ArgumentError(f"cond: expected {len(like)} values of both functions, got {len(found)}")
        for i, (one, other) in enumerate(zip(found, like, strict=True)):
            if not other.ndim:
                values.leaves[i] = one
            elif getattr(one, "ndim", 0) != other.ndim or one.shape != other.shape or one.dtype != other.dtype:
                raise ArgumentError("cond: expected arrays of one shape and dtype of both functions")
            else:
                values.leaves[i][...] = one

    runtime_hooks.if_(pred, lambda: side(true_fun), lambda: side(false_fun), values.state())
    return make(values.leaves)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """``branches[index](*operands)``; the index is clamped to the branches."""
    if not branches:
        raise ArgumentError("switch: expected at least one function in branches, got none")
    first, *rest = branches
    if not rest:
        return first(*operands)
    return cond(index <= 0, first, lambda *arguments: switch(index - 1, rest, *arguments), *operands)


class _Values:
    """A loop-carried pytree: its leaves, and the function that unflattens them."""

    def __init__(self, name: str, whole: Any) -> None:
        self.name = name
        leaves, self._make = _flatten(whole)
        self.leaves = [one.copy() if type(one) is Traced and one.ndim else one for one in leaves]

    def whole(self) -> Any:
        return self._make(list(self.leaves))

    def take(self, whole: Any) -> None:
        """Set the values for the next iteration."""
        leaves, _ = _flatten(whole)
        if len(leaves) != len(self.leaves):
            raise ArgumentError(
                f"{self.name}: expected {len(self.leaves)} loop-carried values after an iteration, got {len(leaves)}"
            )
        self.leaves[:] = leaves

    def state(self) -> State:
        names = tuple(f"value {i}" for i in range(len(self.leaves)))

        def put(values: tuple[Any, ...]) -> None:
            self.leaves[:] = values

        return State(names, lambda: tuple(self.leaves), put, 0)


def _abstract_results(tracer: Tracer, function: Callable[[], Any]) -> tuple[list[Any], Callable[[Any], Any]]:
    """Trace a function and discard its nodes: the leaves of its result as prototypes, and how to unflatten them."""
    with RegionTransaction(tracer):
        leaves, make = _flatten(function())
    return [traced(tracer, one) for one in leaves], make


def _zeros(tracer: Tracer, shape: Sequence[Any], like: Traced) -> Traced:
    return fresh(tracer, builder.broadcast_to(builder.constant(0, like.node.dtype), shape))


def _length(array: Any) -> Any:
    return as_symint(array.tracer, array.extents[0]) if type(array) is Traced else len(array)


def _flatten(whole: Any) -> tuple[list[Any], Callable[[Any], Any]]:
    """Flatten a pytree: its leaves but None, and the function that unflattens as many leaves."""

    def unflatten(values: Any) -> Any:
        remaining = iter(values)
        return pytree.tree_map(lambda leaf: None if leaf is None else next(remaining), whole)

    return [leaf for leaf in pytree.leaves(whole) if leaf is not None], unflatten
