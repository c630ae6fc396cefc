"""Bounds of loop-variant extents, decisions on their signs, and minima, maxima and factors of extents."""

import math
import operator
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations

from jitkernels.compiler.ir import dim_proofs as proofs
from jitkernels.compiler.ir.dim_proofs import EXTREMES, has_clamps, larger, outermost, smaller, substituted
from jitkernels.compiler.ir.symbolic_dims import (
    BOUNDS,
    Atom,
    Extent,
    Number,
    evaluated,
    exact_quotient,
    is_at_least_now,
    is_loop_variant,
    opaque,
    polynomial,
    product,
    same,
    symbols_of,
    terms_of,
    value_of,
)  # fmt: skip
from jitkernels.compiler.ir.unsupported import UnknownSizeError

UNBOUNDED_EXTENT = 2**40
"""Larger than any extent: the bound of an int of which nothing is known."""


def is_product_at_most_now(extents: Iterable[Number], bound: int) -> bool:
    """The same of a product and an upper bound; without a guard where extents vary between iterations of a loop."""
    size = product(extents)
    if is_loop_variant(size):
        return value_of(size) <= bound
    return not is_at_least_now(size, bound + 1)


def note_size(shape: Iterable[Number]) -> None:
    """Record that an array in memory has this shape: its number of elements is below `UNBOUNDED_EXTENT`, too."""
    size = product(shape)
    if isinstance(size, Extent) and len(size.terms) == 1 and not is_loop_variant(size):
        ((monomial, _),) = size.terms.items()
        if len(monomial) > 1 and not any(atom.operation for atom in monomial):
            size.scope.sizes.add(tuple(atom.text for atom in monomial))


def is_size(monomial: Iterable[Atom], extent: Extent) -> bool:
    """Whether a product of symbols is at most the number of elements of an array in memory."""
    names = Counter(atom.text for atom in monomial)
    return any(names <= Counter(size) for size in extent.scope.sizes)


def limit(extent: Number, *, is_upper: bool) -> Number | None:
    """A loop-invariant bound of an extent; None if there is none."""
    while is_loop_variant(extent):
        atom = outermost(extent, (*EXTREMES, "floordiv"), loop_variant_only=True)
        if atom is not None and atom.operation != "floordiv":
            return _limit_of_split(extent, atom, is_upper=is_upper)
        bounds = None if atom is None else _limits_of_quotient(atom)
        if atom is None:
            bound = proofs.without_youngest(extent, is_upper=is_upper)
        else:
            bound = None if bounds is None else proofs.replaced(extent, atom, bounds, is_upper=is_upper)
        if bound is None:
            return None
        extent = bound
    return extent


def _limits_of_quotient(atom: Atom) -> tuple[Number, Number] | None:
    if type(atom.right) is not int or atom.right < 1:
        return None
    low, high = (limit(atom.left, is_upper=is_upper) for is_upper in (False, True))
    return None if low is None or high is None else (low // atom.right, high // atom.right)


def _limit_of_split(extent: Extent, atom: Atom, *, is_upper: bool) -> Number | None:
    parts = proofs.split(extent, atom)
    if parts is None:
        return None
    known = [bound for side in parts.sides if (bound := limit(side, is_upper=is_upper)) is not None]
    if parts.is_max != is_upper:  # either of both is a bound
        pick = min if is_upper else max
        return pick(known, key=value_of) if known else None
    if len(known) < 2:
        return None
    for left, right in (known, known[::-1]):
        if proofs.needs(left - right) == []:
            return left if is_upper else right
    return (larger if is_upper else smaller)(*known)


def cases(extents: Sequence[Number]) -> list[Sequence[Number]] | None:
    """The values that extents have together in the iterations of loops; None where a symbol in them has many values."""
    scopes = {name: extent.scope for extent in extents if isinstance(extent, Extent) and is_loop_variant(extent)
              for name in symbols_of(extent) & extent.scope.loop_variant.keys()}  # fmt: skip
    if not scopes:
        return [extents]
    name, scope = next(iter(scopes.items()))
    result: list[Sequence[Number]] = []
    for value in scope.few.get(name, ()):
        known = [_with_value(extent, name, value) for extent in extents]
        more = None if None in known else cases([extent for extent in known if extent is not None])
        if more is None:
            return None
        result += more
    return result or None


def _with_value(extent: Number, name: str, value: Number) -> Number | None:
    """An extent for a value of a symbol; None where it is no polynomial of the symbol."""
    atoms = {atom for monomial in terms_of(extent) for atom in monomial if atom.operation}
    is_hidden = any(name in symbols_of(polynomial({(atom,): 1}, extent.scope)) for atom in atoms)
    return None if is_hidden else substituted(extent, name, value)


def decide_loop_variant(difference: Extent, sign: str) -> bool:
    """The answer of `is_surely`. Raises UnknownSizeError where iterations may differ in it."""
    answer = is_surely(difference, sign)
    if answer is None:
        raise UnknownSizeError("the size of an array differs from iteration to iteration, and it is not known how")
    return answer


def is_surely(difference: Number, sign: str) -> bool | None:
    """Whether ``difference <sign> 0`` (``==``, ``>=`` or ``>``) in all iterations of this call; None if it may differ.

    A condition that holds in this call, but not in all calls, becomes a guard.
    """
    if not is_loop_variant(difference):
        return bool(difference == 0 if sign == "==" else difference >= 0 if sign == ">=" else difference > 0)
    if sign == "==":
        answers = [([difference - 1], False), ([-difference - 1], False), ([difference, -difference], True)]
    else:
        least = int(sign == ">")
        answers = [([difference - least], True), ([least - 1 - difference], False)]
    failing: list[Extent] = []
    proven = [(needs, answer) for extents, answer in answers if (needs := _all_needs(extents, failing)) is not None]
    if not proven and sign == "==" and _is_zero_by_relation(difference):
        return True
    if not proven:
        for extent in failing:  # calls in which one of these holds have faster code
            if abs(extent.value) < UNBOUNDED_EXTENT:
                extent.guard(-extent, ">", is_choice=True)
        return None
    needs, answer = min(proven, key=lambda proof: len(proof[0]) > 0)  # without guards if that will do
    for extent in needs:
        extent.guard(extent, ">=")
    return answer


def _is_zero_by_relation(difference: Extent) -> bool:
    """Whether an extent is zero in all calls with a relation of two sizes that this call has, which becomes a guard.

    As ``N == x.shape[0]``, where slices of arrays of both sizes are clamped. Relations are equality, multiples, and a
    constant difference, in this order.
    """
    scope = difference.scope
    names = [name for name in sorted(symbols_of(difference)) if name not in scope.loop_variant and name[0] != "s"]
    symbols = {name: polynomial({(Atom(name),): 1}, scope) for name in names}
    values = scope.values
    relations: list[tuple[int, str, Number]] = []
    for name, other in permutations(names, 2):
        if values[name] >= values[other]:
            times, rest = divmod(values[name], values[other])
            if not rest:
                relations.append((int(times > 1), name, symbols[other] * times))
            relations.append((2, name, symbols[other] + (values[name] - values[other])))
    for _, name, other_size in sorted(relations, key=operator.itemgetter(0)):
        if same(substituted(difference, name, other_size), 0):
            guarded = symbols[name] - other_size
            guarded.guard(guarded, "==")
            return True
    return False


def _all_needs(extents: Sequence[Number], failing: list[Extent]) -> list[Extent] | None:
    result: list[Extent] | None = []
    for extent in extents:
        needs = proofs.needs(extent, failing=failing)
        result = None if result is None or needs is None else [*result, *needs]
    return result


def known_with_clamps(difference: Extent, sign: str) -> bool | None:
    """Whether ``difference <sign> 0`` in all calls, where that follows from clamps in it; None where it does not."""
    if not has_clamps(difference):
        return None
    if is_surely_at_least(difference, int(sign != ">=")):
        return sign != "=="
    return False if sign != "==" and is_surely_at_least(-difference, int(sign == ">=")) else None


def is_surely_at_least(extent: Number, number: int) -> bool:
    """Whether ``extent >= number`` in all calls and iterations."""
    return proofs.needs(extent - number) == []


def traced_product(extents: Iterable[Number]) -> int:
    """The product in the traced call, without a guard: and without a polynomial of high degree."""
    return math.prod(map(value_of, extents))


class SymbolValues:
    """Evaluates extents for values of symbols, to which loops add the loop-variant ones."""

    def __init__(self, symbols: Mapping[str, int]) -> None:
        self.symbols = dict(symbols)

    def __call__(self, extent: Number) -> int:
        return evaluated(extent, self.symbols)


def scale_and_offset(extent: Number) -> tuple[int, Number, int]:
    """An extent as ``scale * rest + offset``: the largest integer scale, the rest, and the integer offset."""
    terms = dict(terms_of(extent))
    more = terms.pop((), 0)
    if not isinstance(extent, Extent):
        return 1, 0, more
    times = math.gcd(*terms.values())
    return times, exact_quotient(polynomial(terms, extent.scope), times), more


def least(left: Number, right: Number) -> Number:
    """The smaller extent, evaluated in each call."""
    return _extreme("min", left, right)


def largest(left: Number, right: Number) -> Number:
    """The larger extent, evaluated in each call."""
    return _extreme("max", left, right)


def scaled(extent: Extent, factor: float) -> Number:
    """``int(extent * factor)`` for a float factor."""
    return opaque("scaled", extent, factor, extent.scope)


def _extreme(operation: str, left: Number, right: Number) -> Number:
    difference = left - right
    if not isinstance(difference, Extent):
        return left if (difference <= 0) == (operation == "min") else right
    return opaque(operation, left, right, difference.scope)


BOUNDS.update(decided=decide_loop_variant, limit=limit, known=known_with_clamps)
