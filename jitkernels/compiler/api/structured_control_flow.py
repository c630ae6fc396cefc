"""Loops and branches as functions, as JAX has them: `fori_loop`, `while_loop`, `scan`, `cond`, `switch`.

In compiled functions they become the same loops and branches as `for`, `while` and `if` do. Elsewhere they are plain
Python. What goes from round to round is a number, an array, or tuples, lists and dicts of these, in the same structure
after each round.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitkernels.errors import ArgumentError
from jitkernels.frontends.flow import operators
from jitkernels.frontends.flow.branches import is_decided
from jitkernels.frontends.flow.state import UNSET, State
from jitkernels.frontends.flow.tracing import Attempt
from jitkernels.frontends.traced import Traced, fresh, traced
from jitkernels.frontends.tracer import Tracer, current
from jitkernels.frontends.whole import as_extent, as_whole
from jitkernels.graph import construct


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """``for i in range(lower, upper): value = body_fun(i, value)``, from ``value = init_val`` on; the last value."""
    values = _Values("fori_loop", init_val)
    operators.for_(
        operators.range_(range, lower, upper),
        None,
        lambda i: values.take(body_fun(i, values.whole())),
        values.state(),
    )
    return values.whole()


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """``while cond_fun(value): value = body_fun(value)``, from ``value = init_val`` on; the last value."""
    values = _Values("while_loop", init_val)
    operators.while_(
        lambda: cond_fun(values.whole()), lambda: values.take(body_fun(values.whole())), values.state()
    )
    return values.whole()


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any = None, length: Any = None
) -> tuple[Any, Any]:
    """``carry, y = f(carry, x)`` for each x of `xs` along its first axis; the last carry, and all y, stacked."""
    leaves, make = _taken_apart(xs)
    if length is None and not leaves:
        raise ArgumentError("scan: expected xs or a length, got neither")
    count = _length(leaves[0]) if length is None else length
    if any(_length(one) != count for one in leaves):
        raise ArgumentError("scan: expected arrays of as many elements as there are rounds in xs")

    def given(i: Any) -> Any:
        return make([one[i] for one in leaves])

    tracer = current()
    if tracer is None:
        found = []
        for i in range(count):
            init, y = f(init, given(i))
            found.append(y)
        parts = [_taken_apart(y) for y in found]
        columns = zip(*(part for part, _ in parts), strict=True)
        return init, parts[0][1]([np.stack(column) for column in columns]) if parts else None
    values = _Values("scan", init)
    like, make_y = _looked_at(tracer, lambda: f(values.whole(), given(0))[1])
    stacked = [_zeros(tracer, (as_extent(count), *one.extents), one) for one in like]

    def body(i: Any) -> None:
        carry, y = f(values.whole(), given(i))
        values.take(carry)
        for array, one in zip(stacked, _taken_apart(y)[0], strict=True):
            array[i] = one

    operators.for_(operators.range_(range, 0, count), None, body, values.state())
    return values.whole(), make_y(stacked)


def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """``true_fun(*operands) if pred else false_fun(*operands)``."""
    tracer = current()
    if tracer is None or is_decided(pred):
        return (true_fun if pred else false_fun)(*operands)
    like, make = _looked_at(tracer, lambda: true_fun(*operands))
    values = _Values("cond", [_zeros(tracer, one.extents, one) if one.ndim else UNSET for one in like])

    def side(function: Callable[..., Any]) -> None:
        found, _ = _taken_apart(function(*operands))
        if len(found) != len(like):
            raise ArgumentError(f"cond: expected {len(like)} values of both functions, got {len(found)}")
        for i, (one, other) in enumerate(zip(found, like, strict=True)):
            if not other.ndim:
                values.leaves[i] = one
            elif (
                getattr(one, "ndim", 0) != other.ndim or one.shape != other.shape or one.dtype != other.dtype
            ):
                raise ArgumentError("cond: expected arrays of one shape and dtype of both functions")
            else:
                values.leaves[i][...] = one

    operators.if_(pred, lambda: side(true_fun), lambda: side(false_fun), values.state())
    return make(values.leaves)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """``branches[index](*operands)``; an index beside them is taken for the first or last one."""
    if not branches:
        raise ArgumentError("switch: expected at least one function in branches, got none")
    first, *rest = branches
    if not rest:
        return first(*operands)
    return cond(index <= 0, first, lambda *given: switch(index - 1, rest, *given), *operands)


class _Values:
    """What is carried: its numbers and arrays, and how they are put together."""

    def __init__(self, name: str, whole: Any) -> None:
        self.name = name
        leaves, self._make = _taken_apart(whole)
        self.leaves = [one.copy() if type(one) is Traced and one.ndim else one for one in leaves]

    def whole(self) -> Any:
        return self._make(list(self.leaves))

    def take(self, whole: Any) -> None:
        """The values of the next round."""
        leaves, _ = _taken_apart(whole)
        if len(leaves) != len(self.leaves):
            raise ArgumentError(
                f"{self.name}: expected {len(self.leaves)} values after a round, as before, got {len(leaves)}"
            )
        self.leaves[:] = leaves

    def state(self) -> State:
        names = tuple(f"value {i}" for i in range(len(self.leaves)))

        def put(values: tuple[Any, ...]) -> None:
            self.leaves[:] = values

        return State(names, lambda: tuple(self.leaves), put, 0)


def _looked_at(tracer: Tracer, function: Callable[[], Any]) -> tuple[list[Any], Callable[[Any], Any]]:
    """What a function gives, which is not part of the trace: what its numbers and arrays are like."""
    with Attempt(tracer):
        leaves, make = _taken_apart(function())
    return [traced(tracer, one) for one in leaves], make


def _zeros(tracer: Tracer, shape: Sequence[Any], like: Traced) -> Traced:
    return fresh(tracer, construct.broadcast_to(construct.constant(0, like.node.dtype), shape))


def _length(array: Any) -> Any:
    return as_whole(array.tracer, array.extents[0]) if type(array) is Traced else len(array)


def _taken_apart(whole: Any) -> tuple[list[Any], Callable[[Any], Any]]:
    """The numbers and arrays of nested tuples, lists and dicts, and what puts as many together again."""
    if whole is None:
        return [], lambda _: None
    if type(whole) is dict:
        keys, (leaves, make) = list(whole), _taken_apart(list(whole.values()))
        return leaves, lambda given: dict(zip(keys, make(given), strict=True))
    if not isinstance(whole, tuple | list):
        return [whole], lambda given: given[0]
    parts = [_taken_apart(one) for one in whole]
    kind = type(whole)

    def made(given: Any) -> Any:
        found, start = [], 0
        for leaves, make in parts:
            found.append(make(given[start : start + len(leaves)]))
            start += len(leaves)
        return kind(*found) if hasattr(kind, "_fields") else kind(found)

    return [leaf for leaves, _ in parts for leaf in leaves], made
