"""Clamped extents: minimum and maximum in one normal form, so that equal bounds of slices have equal keys.

``max(a, b)`` is ``b + max(a - b, 0)`` and ``min(a, b)`` is ``a - max(a - b, 0)``. Of ``max(d, 0)`` and ``max(-d, 0)``
only that is used of which the first coefficient is positive, as their difference is `d`.
"""

from typing import NamedTuple

from jitkernels.compiler.ir.symbolic_dims import Atom, Extent, Number, is_moving, made, opaque, symbols_of

EXTREMES = ("max", "min")


class Split(NamedTuple):
    """An extent as the larger one (`is_max`), or the smaller one, of two in which one atom less is clamped."""

    is_max: bool
    one: Number
    other: Number


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


def smaller(one: Number, other: Number) -> Number:
    """``min(one, other)`` in the normal form."""
    return one - positive_part(one - other)


def larger(one: Number, other: Number) -> Number:
    """``max(one, other)`` in the normal form."""
    return other + positive_part(one - other)


def from_end(bound: Number, extent: Number) -> Number:
    """A bound of a slice that counts from the end where it is negative, which differs from iteration to iteration."""
    is_negative = positive_part(-bound) - positive_part(-bound - 1)
    return bound + extent * is_negative


def factored(extent: Extent, atom: Atom) -> Factored | None:
    """An extent as a linear function of an atom; None where it is none."""
    rest: Number = 0
    factor: Number = 0
    for monomial, count in extent.terms.items():
        own = sum(one == atom for one in monomial)
        if own > 1:
            return None
        part = made({tuple(one for one in monomial if one != atom): count}, extent.scope)
        if own:
            factor = factor + part
        else:
            rest = rest + part
    return Factored(rest, factor)


def outermost(extent: Number, operations: tuple[str, ...], *, moving_only: bool = False) -> Atom | None:
    """The atom of some operations that no other one of the extent contains; None where there is none."""
    if not isinstance(extent, Extent):
        return None
    found = {atom.text: atom for monomial in extent.terms for atom in monomial if atom.operation in operations}
    for text in sorted(found, key=len, reverse=True):
        if not moving_only or is_moving(made({(found[text],): 1}, extent.scope)):
            return found[text]
    return None


def substituted(extent: Number, symbol: str, other: Number) -> Number:
    """An extent with another one in place of a symbol, clamps in the normal form again."""
    if symbol not in symbols_of(extent):
        return extent
    found: Number = 0
    for monomial, count in extent.terms.items():
        part: Number = count
        for atom in monomial:
            part = part * _atom_with(atom, symbol, other, extent)
        found = found + part
    return found


def _atom_with(atom: Atom, symbol: str, other: Number, within: Extent) -> Number:
    if atom.text == symbol:
        return other
    itself = made({(atom,): 1}, within.scope)
    if symbol not in symbols_of(itself) or atom.operation == "scaled":
        return itself
    left, right = (substituted(one, symbol, other) for one in (atom.left, atom.right))
    match atom.operation:
        case "max":
            return larger(left, right)
        case "min":
            return smaller(left, right)
        case "floordiv":
            return left // right
    return left % right
