"""Clamped extents in one normal form, and proofs that extents are at least zero.

``max(a, b)`` is ``b + max(a - b, 0)`` and ``min(a, b)`` is ``a - max(a - b, 0)``. Of ``max(d, 0)`` and ``max(-d, 0)``
only that is used of which the first coefficient is positive, as their difference is `d`: so that equal bounds of slices
have equal keys.

A proof replaces clamps, quotients, remainders and the symbols of loops by their bounds one after another, the youngest
symbol first, as its bounds are polynomials of older ones. What it takes beside these bounds becomes guards.
"""

from collections.abc import Callable
from typing import NamedTuple

from jitkernels.compiler.ir.symbolic_dims import (
    Atom,
    Extent,
    Number,
    is_at_least,
    is_loop_variant,
    opaque,
    polynomial,
    product,
    same,
    symbols_of,
    terms_of,
)

EXTREMES = ("max", "min")


class Split(NamedTuple):
    """An extent as the maximum (`is_max`) or minimum of two with one clamp less."""

    is_max: bool
    sides: tuple[Number, Number]


class Factored(NamedTuple):
    """An extent as ``rest + factor * atom``."""

    rest: Number
    factor: Number


def has_clamps(extent: Number) -> bool:
    """Whether a minimum, maximum, quotient or remainder is part of an extent."""
    return isinstance(extent, Extent) and any(atom.operation for monomial in extent.terms for atom in monomial)


def positive_part(extent: Number) -> Number:
    """``max(extent, 0)``."""
    if not isinstance(extent, Extent):
        return max(int(extent), 0)
    if extent.key[0][1] < 0:
        return extent + opaque("max", -extent, 0, extent.scope)
    return opaque("max", extent, 0, extent.scope)


def smaller(left: Number, right: Number) -> Number:
    """``min(left, right)`` in the normal form."""
    return left - positive_part(left - right)


def larger(left: Number, right: Number) -> Number:
    """``max(left, right)`` in the normal form."""
    return right + positive_part(left - right)


def from_end(bound: Number, extent: Number) -> Number:
    """A bound of a slice that counts from the end where it is negative, which differs from iteration to iteration."""
    is_negative = positive_part(-bound) - positive_part(-bound - 1)
    return bound + extent * is_negative


def factored(extent: Extent, atom: Atom) -> Factored | None:
    """An extent as a linear function of an atom; None where it is none."""
    rest: Number = 0
    factor: Number = 0
    for monomial, count in extent.terms.items():
        own = monomial.count(atom)
        if own > 1:
            return None
        part = polynomial({tuple(factor for factor in monomial if factor != atom): count}, extent.scope)
        if own:
            factor = factor + part
        else:
            rest = rest + part
    return Factored(rest, factor)


def linear(extent: Number, symbol: str) -> tuple[Number, int] | None:
    """Split an extent into its value at 0 of a symbol and the symbol's coefficient; None if it is not affine."""
    factor = terms_of(extent).get((Atom(symbol),), 0)
    rest = extent - polynomial({(Atom(symbol),): factor}, extent.scope) if factor else extent
    return None if symbol in symbols_of(rest) else (rest, factor)


def outermost(extent: Number, operations: tuple[str, ...], *, loop_variant_only: bool = False) -> Atom | None:
    """The atom of some operations that no other one of the extent contains; None where there is none."""
    if not isinstance(extent, Extent):
        return None
    atoms = {atom.text: atom for monomial in extent.terms for atom in monomial if atom.operation in operations}
    for text in sorted(atoms, key=len, reverse=True):
        if not loop_variant_only or is_loop_variant(polynomial({(atoms[text],): 1}, extent.scope)):
            return atoms[text]
    return None


def with_atoms(extent: Extent, new: Callable[[Atom], Number]) -> Number:
    """The extent with another one in place of each atom."""
    return sum((count * product(map(new, monomial)) for monomial, count in extent.terms.items()), 0)


def substituted(extent: Number, symbol: str, other: Number) -> Number:
    """An extent with another one in place of a symbol, clamps in the normal form again."""
    if symbol not in symbols_of(extent):
        return extent
    return with_atoms(extent, lambda atom: _atom_with(atom, symbol, other, extent))


def _atom_with(atom: Atom, symbol: str, other: Number, within: Extent) -> Number:
    if atom.text == symbol:
        return other
    itself = polynomial({(atom,): 1}, within.scope)
    if symbol not in symbols_of(itself) or atom.operation == "scaled":
        return itself
    left, right = (substituted(operand, symbol, other) for operand in (atom.left, atom.right))
    match atom.operation:
        case "max":
            return larger(left, right)
        case "min":
            return smaller(left, right)
        case "floordiv":
            return left // right
    return left % right


MAX_PROOF_DEPTH = 12
"""Nesting depth at most: each clamp doubles the work."""


def needs(extent: Number, depth: int = 0, failing: list[Extent] | None = None) -> list[Extent] | None:
    """The extents whose nonnegativity implies that of `extent`: none where it always holds.

    All of them are nonnegative in the traced call; None where one would not be, which is added to `failing`.
    """
    if not isinstance(extent, Extent):
        return [] if extent >= 0 else None
    moves = is_loop_variant(extent)
    if not moves and not has_clamps(extent):
        if is_at_least(extent, 0):
            return []
        return _now(extent, failing)
    conditions = _needs_of_parts(extent, depth, failing if moves else None) if depth < MAX_PROOF_DEPTH else None
    if moves or conditions == []:
        return conditions
    return _now(extent, failing)


def _now(extent: Extent, failing: list[Extent] | None) -> list[Extent] | None:
    """A loop-invariant extent, if it is at least zero in the traced call."""
    if extent.value >= 0:
        return [extent]
    if failing is not None:
        failing.append(extent)
    return None


def _needs_of_parts(extent: Extent, depth: int, failing: list[Extent] | None) -> list[Extent] | None:
    atom = outermost(extent, EXTREMES)
    if atom is not None:
        parts = split(extent, atom)
        if parts is None:
            return None
        proofs = [needs(side, depth + 1, failing) for side in parts.sides]
        known = [proof for proof in proofs if proof is not None]
        if parts.is_max:
            return min(known, key=len) if known else None
        return [*known[0], *known[1]] if len(known) == 2 else None
    atom = outermost(extent, ("floordiv",))
    if atom is not None:
        scaled = _without_quotient(extent, atom)
        return needs(scaled, depth + 1, failing) if scaled is not None else None
    below = without_youngest(extent, is_upper=False)
    return needs(below, depth + 1, failing) if below is not None else None


def split(extent: Extent, atom: Atom) -> Split | None:
    """An extent as a maximum or minimum of two without one clamp; None where the sign of its factor is unknown."""
    parts = factored(extent, atom)
    if parts is None:
        return None
    sign = _sign(parts.factor)
    if sign is None:
        return None
    sides = parts.rest + parts.factor * atom.left, parts.rest + parts.factor * atom.right
    return Split((atom.operation == "max") == (sign > 0), sides)


def _sign(factor: Number) -> int | None:
    """1 for a factor that is surely at least zero, -1 for one that is at most zero; None for others."""
    if not isinstance(factor, Extent):
        return 1 if factor >= 0 else -1
    return (
        1 if needs(factor, MAX_PROOF_DEPTH // 2) == [] else -1 if needs(-factor, MAX_PROOF_DEPTH // 2) == [] else None
    )


def _without_quotient(extent: Extent, atom: Atom) -> Number | None:
    """An extent that is nonnegative only if `extent` is, with a quotient replaced by its bound.

    The divisor is an integer, or a symbol, by which the quotient may be multiplied again.
    """
    parts = factored(extent, atom)
    by = atom.right
    if parts is None or not is_at_least(by, 1):
        return None
    times = _whole_ratio(parts.factor, by) if isinstance(by, Extent) else None
    if times is not None:
        return parts.rest + times * (atom.left - (by - 1) if times > 0 else atom.left)
    sign = _sign(parts.factor)
    if sign is None:
        return None
    bound = atom.left - (by - 1) if sign > 0 else atom.left
    return parts.rest * by + parts.factor * bound + (by - 1)  # as an extent is a whole number


def _whole_ratio(extent: Number, divisor: Extent) -> int | None:
    """``extent / divisor``, if that is the same integer for all values of the symbols."""
    monomial, count = next(iter(divisor.terms.items()))
    times, rest = divmod(terms_of(extent).get(monomial, 0), count)
    return times if not rest and same(extent, divisor * times) else None


def without_youngest(extent: Extent, *, is_upper: bool) -> Number | None:
    """A bound of an extent without its last remainder, or the symbol of the innermost loop; None if there is none."""
    atom = outermost(extent, ("mod",))
    if atom is not None:
        most = atom.right - 1
        return replaced(extent, atom, (0, most), is_upper=is_upper) if needs(most) == [] else None
    loop_variant = extent.scope.loop_variant
    symbols = symbols_of(extent) & loop_variant.keys()
    if not symbols:
        return None
    youngest = max(symbols, key=list(loop_variant).index)
    return replaced(extent, Atom(youngest), loop_variant[youngest], is_upper=is_upper)


def replaced(extent: Extent, atom: Atom, bounds: tuple[Number, Number], *, is_upper: bool) -> Number | None:
    """A bound of an extent with an atom replaced by one of its bounds, as a whole or monomial by monomial."""
    whole = factored(extent, atom)
    if whole is not None:
        if _hides(whole.rest, atom) or _hides(whole.factor, atom):
            return None
        sign = _sign(whole.factor)
        if sign is not None:
            return whole.rest + whole.factor * bounds[(sign > 0) == is_upper]
    total: Number = 0
    for monomial, count in extent.terms.items():
        times = monomial.count(atom)
        others = polynomial({tuple(factor for factor in monomial if factor != atom): 1}, extent.scope)
        if _hides(others, atom):
            return None
        if times:
            if needs(others, MAX_PROOF_DEPTH // 2) != [] or (
                times > 1 and needs(bounds[0], MAX_PROOF_DEPTH // 2) != []
            ):
                return None
            for _ in range(times):
                others = others * bounds[(count > 0) == is_upper]
        total = total + others * count
    return total


def _hides(extent: Number, atom: Atom) -> bool:
    """Whether a symbol occurs inside an atom that is no polynomial."""
    return not atom.operation and atom.text in symbols_of(extent)


def constant_sum(one: Extent, other: Extent, factor: int = 1) -> int | None:
    """``one + factor * other``, if that is a number for all values of the symbols."""
    symbolic = len(one.terms) - (() in one.terms)
    if symbolic != len(other.terms) - (() in other.terms):
        return None
    if any(monomial and other.terms.get(monomial) != -factor * count for monomial, count in one.terms.items()):
        return None
    return one.terms.get((), 0) + factor * other.terms.get((), 0)
