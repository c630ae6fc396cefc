"""The iterations of a loop by number: where the induction variable begins, its step, and how many there are."""

from typing import NamedTuple

from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.regions import LoopParts
from jitkernels.compiler.ir.symbolic_dims import Atom, Extent, Number, Scope, same
from jitkernels.compiler.transforms.loop_ints import Ints, int_of

NUMBER_SUFFIX = "t"
"""Of the symbol of an iteration's number, after the symbol of the induction variable."""


class Iterations(NamedTuple):
    """The iterations of a loop: the first value of the induction variable, its step, and their number."""

    begin: Number
    step: int
    trip_count: Number


def iterations_of(parts: LoopParts, ints: Ints) -> Iterations | None:
    """The iterations of a loop that runs all of them; None where their number is no extent."""
    if not parts.counts:
        return None
    begin, end, step = (int_of(bound, ints) for bound in parts.bounds)
    if begin is None or end is None or not isinstance(step, int) or not step:
        return None
    if parts.condition.outputs[0].options.get("value") is not True:
        return None
    trip_count = (end - begin + step - 1) // step if step > 0 else (begin - end - step - 1) // -step
    return Iterations(begin, step, trip_count)


def normalized(symbol: str, iterations: Iterations, scope: Scope) -> tuple[Extent, Number]:
    """The number of an iteration as an extent, and the value of the induction variable in it."""
    begin, step, trip_count = iterations
    if same(begin, 0) and step == 1:
        number = Extent({(Atom(symbol),): 1}, scope)
        return number, number
    name = symbol + NUMBER_SUFFIX
    scope.loop_variant[name] = 0, trip_count - 1
    number = scope.symbol(name, max(symbolic_dims.value_of(trip_count) - 1, 2))
    return number, begin + step * number


def forget(parts: LoopParts, scope: Scope) -> None:
    """Remove the symbol of iteration numbers, which occurs in no vectorized node."""
    name = parts.induction[0].options["symbol"] + NUMBER_SUFFIX
    scope.loop_variant.pop(name, None)
    scope.values.pop(name, None)
