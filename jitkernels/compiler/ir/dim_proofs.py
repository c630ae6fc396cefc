"""What has to hold for an extent to be at least zero: nothing, if the bounds of what it is made of tell, or guards.

Clamps, quotients, remainders and the symbols of loops are replaced by their bounds one after another, the youngest
symbol first, as its bounds are polynomials of older ones.
"""

from jitkernels.compiler.ir.clamped_dims import EXTREMES, Split, factored, has_clamps, outermost
from jitkernels.compiler.ir.symbolic_dims import (  # fmt: skip
    Atom,
    Extent,
    Number,
    is_moving,
    least_of,
    made,
    symbols_of,
)

DEEPEST = 12
"""Clamps and symbols that are replaced one in another at most: each clamp doubles the work."""


def needs(extent: Number, depth: int = 0, failing: list[Extent] | None = None) -> list[Extent] | None:
    """Extents that have to be at least zero so that another one is: none where that always is.

    All of them are in the traced call; None where that takes something that is not, which is added to `failing`.
    """
    if not isinstance(extent, Extent):
        return [] if extent >= 0 else None
    moves = is_moving(extent)
    if not moves and not has_clamps(extent):
        least = least_of(extent)
        if least is not None and least >= 0:
            return []
        return _now(extent, failing)
    found = _needs_of_parts(extent, depth, failing if moves else None) if depth < DEEPEST else None
    if moves or found == []:
        return found
    return _now(extent, failing)


def _now(extent: Extent, failing: list[Extent] | None) -> list[Extent] | None:
    """An extent in which nothing moves, if it is at least zero in the traced call."""
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
        found = [needs(one, depth + 1, failing) for one in (parts.one, parts.other)]
        known = [one for one in found if one is not None]
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
    """An extent as the larger or smaller one of two without one clamp; None where no sign tells which."""
    parts = factored(extent, atom)
    if parts is None:
        return None
    sign = _sign(parts.factor)
    if sign is None:
        return None
    one, other = (parts.rest + parts.factor * side for side in (atom.left, atom.right))
    return Split((atom.operation == "max") == (sign > 0), one, other)


def _sign(factor: Number) -> int | None:
    """1 for a factor that is surely at least zero, -1 for one that is at most zero; None for others."""
    if not isinstance(factor, Extent):
        return 1 if factor >= 0 else -1
    return 1 if needs(factor, DEEPEST // 2) == [] else -1 if needs(-factor, DEEPEST // 2) == [] else None


def _without_quotient(extent: Extent, atom: Atom) -> Number | None:
    """What is at least zero only if an extent is, with a quotient by a number replaced by its bound."""
    parts = factored(extent, atom)
    by = atom.right
    if parts is None or type(by) is not int or by < 1:
        return None
    sign = _sign(parts.factor)
    if sign is None:
        return None
    bound = atom.left - (by - 1) if sign > 0 else atom.left
    return parts.rest * by + parts.factor * bound + (by - 1)  # as an extent is a whole number


def without_youngest(extent: Extent, *, is_upper: bool) -> Number | None:
    """A bound of an extent without its last remainder, or the symbol of the innermost loop; None if there is none."""
    atom = outermost(extent, ("mod",))
    if atom is not None:
        most = atom.right - 1
        return replaced(extent, atom, (0, most), is_upper=is_upper) if needs(most) == [] else None
    moving = extent.scope.moving
    found = symbols_of(extent) & moving.keys()
    if not found:
        return None
    youngest = max(found, key=list(moving).index)
    return replaced(extent, Atom(youngest), moving[youngest], is_upper=is_upper)


def replaced(extent: Extent, atom: Atom, bounds: tuple[Number, Number], *, is_upper: bool) -> Number | None:
    """A bound of an extent with an atom replaced by its bounds: by one of both, or monomial by monomial."""
    whole = factored(extent, atom)
    if whole is not None:
        if _hides(whole.rest, atom) or _hides(whole.factor, atom):
            return None
        sign = _sign(whole.factor)
        if sign is not None:
            return whole.rest + whole.factor * bounds[(sign > 0) == is_upper]
    found: Number = 0
    for monomial, count in extent.terms.items():
        times = sum(one == atom for one in monomial)
        others = made({tuple(one for one in monomial if one != atom): 1}, extent.scope)
        if _hides(others, atom):
            return None
        if times:
            if needs(others, DEEPEST // 2) != [] or (times > 1 and needs(bounds[0], DEEPEST // 2) != []):
                return None
            for _ in range(times):
                others = others * bounds[(count > 0) == is_upper]
        found = found + others * count
    return found


def _hides(extent: Number, atom: Atom) -> bool:
    """Whether a symbol is part of what is no polynomial."""
    return not atom.operation and atom.text in symbols_of(extent)
