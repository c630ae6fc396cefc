"""What rewritten functions call: Python's own control flow where the trace knows enough, else loops and branches."""

import builtins
import operator
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from jitkernels.frontends.flow import first_round
from jitkernels.frontends.flow import numbers as _numbers  # noqa: F401  # the table of what traced functions call
from jitkernels.frontends.flow.along import Along, along, enumerate_, product_, range_, reversed_, zip_
from jitkernels.frontends.flow.alternatives import Chosen
from jitkernels.frontends.flow.branches import as_bool, choose, is_decided, truth, value_of
from jitkernels.frontends.flow.growing import EmptyError, GrowsError, Listed, finished, is_grown
from jitkernels.frontends.flow.ints import least
from jitkernels.frontends.flow.loops import Loop
from jitkernels.frontends.flow.sides import SidesError
from jitkernels.frontends.flow.state import UNSET, State, dtype_of, joined, kind_of, node_of, number
from jitkernels.frontends.flow.structures import FormError
from jitkernels.frontends.flow.tracing import ChangesError
from jitkernels.frontends.flow.unbound import bound, bound_around, caught
from jitkernels.frontends.flow.unrolling import MOST_WRITTEN, unrolled, within_patience
from jitkernels.frontends.places import place_of, placed
from jitkernels.frontends.standin import CALLED
from jitkernels.frontends.traced import Traced
from jitkernels.frontends.tracer import Tracer, current
from jitkernels.frontends.watching import resting
from jitkernels.graph.construct import UnknownError, elementwise
from jitkernels.graph.ir import Node
from jitkernels.graph.unknown import AskedError

__all__ = [
    "UNSET", "State", "and_", "both", "bound", "bound_around", "called", "caught", "chain", "chosen",
    "either", "enumerate_", "extreme", "finished", "folded", "for_", "given_back", "if_", "is_", "listed",
    "not_", "or_", "product_", "range_", "reversed_", "while_", "zip_",
]  # fmt: skip
SHORT, MOST_ROUNDS = 8, 4096
"""Rounds of a loop that are always, and at most, run one after another while tracing."""
CURE = (
    "expected numbers, or arrays of one dtype and shape, where the condition is known only when the compiled code "
    "runs. Write `np.where(condition, a, b)` for a choice between elements, or take the branch outside of the "
    "compiled function"
)
"""What to do about the sides of a branch."""


def for_(values: Any, test: Callable[[], Any] | None, body: Callable[[Any], Any], state: State) -> None:
    """``for given in values: body(given)``, as long as the test holds."""
    tracer, found = current(), along(values)
    if tracer is None:
        _run(tracer, values, test, body, state)
        return
    held = [values] if found is None else found.arrays
    tracer.along += held
    try:
        _for(tracer, values, found, test, body, state)
    finally:
        del tracer.along[len(tracer.along) - len(held) :]


def _for(tracer: Tracer, values: Any, found: Along | None, test: Any, body: Any, state: State) -> None:
    """The same in a trace."""
    if found is None:
        reason = UnknownError(
            "a loop is written out round by round, and has too many: go along a range or an array"
        )
        _run(tracer, within_patience(values, reason, 2 * MOST_WRITTEN), test, body, state)
        return
    rounds = found.count.rounds
    if rounds is not None and rounds <= SHORT:
        _run(tracer, found, test, body, state)
        return
    try:
        _grown(
            tracer,
            state,
            lambda state, begins: Loop(tracer, state, found.count, test, begins(lambda i: body(found.at(i)))),
        )
    except GrowsError:
        raise
    except (Exception, UnknownError) as error:
        if first_round.is_missing(found.count):
            return
        if not isinstance(error, UnknownError):
            raise
        now, reason = found.count.now, placed(error, state.line)
        if now is None or tracer.depth and rounds is None:
            raise
        if len(now) > MOST_ROUNDS:
            raise reason from None
        tracer.note(f"a loop is run round by round: {reason}")
        try:
            _run(tracer, within_patience(found, reason), test, body, state)
        except AskedError:
            raise reason from None


@resting
def _grown(tracer: Tracer, state: State, loop: Callable[[State, Any], "Loop | Choosing"]) -> None:
    """Trace a loop or branch, with memory for the lists that grow in it, and what it changes in others."""
    lists: list[Listed] = []

    def begins(body: Callable[..., Any]) -> Callable[..., Any]:
        def begun(*given: Any) -> None:
            for one in lists:
                one.begin()
            body(*given)

        return begun

    try:
        while True:
            try:
                loop(state, begins).trace()
                break
            except ChangesError as error:
                state = state.with_entries(error.container, error.keys)
            except FormError as error:
                state = error.state
            except GrowsError as error:
                if tracer.depth != error.grown.depth:
                    raise
                error.grown.restore()
                error.grown.back(tracer, error)
                lists += [error.grown] if all(one is not error.grown for one in lists) else []
        for one in lists:
            one.end()
    except BaseException:
        for one in lists:
            one.restore()
        raise


def _run(tracer: Tracer | None, values: Any, test: Any, body: Any, state: State) -> None:
    """The loop as Python has it: the trace knows each round."""
    if tracer is None or test is None:
        for given in values:
            if test is not None and not test():
                return
            body(given)
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
        _grown(tracer, state, lambda state, begins: Loop(tracer, state, None, test, begins(body)))
    except GrowsError:
        raise
    except UnknownError as error:
        if isinstance(error, EmptyError):  # later rounds of a loop around have elements, or this one has none
            asked = test()
            if is_decided(asked) and not asked:
                return
        if tracer.depth:
            raise
        reason = placed(error, state.line)
        with suppress(AskedError, SidesError):  # where the trace does not know either, NumPy does all of it
            for _ in range(MOST_ROUNDS):
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
        _grown(tracer, state, lambda state, _: Choosing(tracer, test, yes, no, state))
    except GrowsError:
        raise
    except SidesError as error:
        if error.is_placed:
            raise
        raise SidesError(f"{place_of(error, state.line)}: {error}: {CURE}", is_placed=True) from None
    except UnknownError as error:
        if not tracer.depth:
            reason = placed(error, state.line)
            tracer.note(str(reason))
            try:
                bool(test)  # which raises what says where this is
            except AskedError as told:
                raise AskedError(f"{told}. Why there are not both: {reason}", is_placed=True) from None
        raise


class Choosing(NamedTuple):
    """A branch, which is traced as loops are."""

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


def both(one: Any, other: Callable[[], Any]) -> Any:
    """``one and other()`` where nothing but its truth counts."""
    tracer = current()
    if tracer is None or is_decided(one):
        return other() if one else False
    parts: list[Any] = []

    def second() -> Any:
        parts.append(as_bool(tracer, other()))
        return parts[0]

    found = value_of(tracer, one, second, lambda: False)
    if type(found) is Traced:  # if it is true, so are both
        nodes = [value.node for value in (one, *parts) if type(value) is Traced]
        tracer.implied[id(found.node)] = found.node, nodes
    return found


def either(one: Any, other: Callable[[], Any]) -> Any:
    """``one or other()`` where nothing but its truth counts."""
    tracer = current()
    if tracer is None or is_decided(one):
        return True if one else other()
    return value_of(tracer, one, lambda: True, lambda: as_bool(tracer, other()))


def and_(one: Any, other: Callable[[], Any]) -> Any:
    """``one and other()``."""
    tracer = current()
    if tracer is None or is_decided(one):
        return one and other()
    return value_of(tracer, one, other, lambda: one)


def or_(one: Any, other: Callable[[], Any]) -> Any:
    """``one or other()``."""
    tracer = current()
    if tracer is None or is_decided(one):
        return one or other()
    return value_of(tracer, one, lambda: one, other)


def is_(one: Any, other: Any) -> Any:
    """``one is other``."""
    for value, constant in ((one, other), (other, one)):
        if type(value) is Chosen and (constant is None or type(constant) is str):
            return value.is_one(constant)
    leaves = [
        value.view.storage.leaf for value in (one, other) if type(value) is Traced and not value.is_scalar
    ]
    if one is not other and len(leaves) == 2 and None not in leaves:
        raise UnknownError("whether two arguments are the same array")
    return one is other


SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge, "Eq": operator.eq,
    "NotEq": operator.ne, "Is": is_, "IsNot": lambda one, other: not_(is_(one, other)),
    "In": lambda one, other: one in other, "NotIn": lambda one, other: one not in other,
}  # fmt: skip


def chain(
    join: Callable[[Any, Callable[[], Any]], Any],
    left: Any,
    first: tuple[str, Callable[[], Any]],
    *others: Any,
) -> Any:
    """``left < first < ...``: signs, and what computes what stands behind them; `join` is `and_` or `both`."""
    sign, later = first
    right = later()
    found = SIGNS[sign](left, right)
    return join(found, lambda: chain(join, right, *others)) if others else found


def folded(name: str, function: Any, ours: Callable[[], Any], plain: Callable[[], Any]) -> Any:
    """``function(...)`` of a generator: by a loop if it is Python's function of that name."""
    own = getattr(builtins, name)
    return ours() if function is own or function is CALLED.get(own) else plain()


def extreme(fold: str, value: Any, found: Any, some: Any) -> Any:
    """The better of a value and what was found before, if there was some."""
    if found is UNSET:
        return value
    tracer = current()
    sign = operator.gt if fold == "max" else operator.lt
    if tracer is None or (is_decided(some) and not some):
        return value if not some or sign(value, found) else found
    if is_decided(some):
        return least(tracer, (found, value), sign)
    kind = joined("an extreme", kind_of(value), kind_of(found))
    better = elementwise("logical_or", as_bool(tracer, not_(some)).node, truth(tracer, sign(value, found)))
    nodes = [node_of(tracer, one, kind) for one in (value, found)]
    return number(tracer, Node("where", (better, *nodes), dtype_of(kind), ()), kind)


def given_back(value: Any) -> Any:
    """A result: lists in it stay what they are now."""
    if type(value) is Listed and value.counted is not None:
        return value.counted.finished()
    if type(value) in (tuple, list):
        made = [given_back(one) for one in value]
        return value if all(a is b for a, b in zip(made, value, strict=True)) else type(value)(made)
    if type(value) is dict:
        named = {name: given_back(one) for name, one in value.items()}
        return value if all(named[name] is value[name] for name in value) else named
    return value


def called(function: Any) -> Any:
    """What a type is where it is called."""
    return function if current() is None else CALLED.get(function, function)


def listed(*values: Any) -> list[Any]:
    """``[...]``, which may grow."""
    return [*values] if current() is None else Listed(values)


def not_(value: Any) -> Any:
    """``not value``."""
    tracer = current()
    if tracer is None or is_decided(value):
        return not value
    return number(tracer, elementwise("logical_not", as_bool(tracer, value).node), bool)


def _sum(values: Any, start: Any = 0) -> Any:
    """``sum`` of a list that has grown in a loop is a loop as well."""
    if not is_grown(values):
        return builtins.sum(values, start)
    if values.kind is None:
        return np.sum(values.whole(), axis=0) + start
    found = [start]

    def put(given: tuple[Any, ...]) -> None:
        found[0] = given[0]

    def add(one: Any) -> None:
        found[0] = found[0] + one

    for_(values, None, add, State(("_jk_total",), lambda: (found[0],), put, 0))
    return found[0]


CALLED[builtins.sum] = _sum
