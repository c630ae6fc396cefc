"""Results that are views: built in each call, so by one subscript where possible."""

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from jitkernels.compiler.capture.functionalization import PlaneView, View
from jitkernels.compiler.capture.ints.dynamic_row_view import DynamicRow
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.ops import strided_view
from jitkernels.compiler.ir.symbolic_dims import Extent

Values = Mapping[str, int]
Step = Callable[[Any, Values], Any]


def view_builder(view: View) -> Step:
    """A function of an array and values of symbols: the view of the array."""
    steps: list[Step] = []
    current: View | None = view
    while current is not None and current.parent is not None:
        steps.insert(0, _step(current))
        current = current.parent
    if len(steps) == 1:
        return steps[0]

    def build(array: Any, values: Values) -> Any:
        for step in steps:
            array = step(array, values)
        return array if steps else array.view()

    return build


def _step(view: View) -> Step:
    """The same for a view of its parent. Raises UnsupportedError where only the compiled code knows which."""
    if isinstance(view, DynamicRow):
        raise UnsupportedError("a result that is a view at a computed index")
    if type(view) is PlaneView:
        return lambda array, _: getattr(array, view.name)
    index_map, readers = view.map, [extent_reader(extent) for extent in view.shape]
    if index_map is None:
        return lambda array, values: array.reshape([read(values) for read in readers])

    def strided(array: Any, values: Values) -> Any:
        return strided_view(array, index_map, tuple([read(values) for read in readers]), partial(_read, values))

    return slicer(index_map, view.shape) or strided


def extent_reader(extent: Any) -> Callable[[Values], int]:
    """A function that evaluates an extent, with fast paths for constants and symbols."""
    if type(extent) is int:
        return lambda _: extent
    name = symbolic_dims.bare(extent)
    return operator.itemgetter(name) if name is not None else partial(symbolic_dims.evaluated, extent)


def _read(values: Values, extent: Any) -> int:
    return extent if type(extent) is int else symbolic_dims.evaluated(extent, values)


def slicer(index_map: Any, shape: Sequence[Any]) -> Step | None:
    """A function of an array and values of symbols: the view that an index map selects; None for other than slices."""
    parts: list[Callable[[Values], Any]] = []
    order: list[int] = []
    for start, steps in index_map:
        begin = _polynomial_reader(start)
        if begin is None or len(steps) > 1:
            return None
        if not steps:
            parts.append(begin)
            continue
        dimension, stride = steps[0]
        end = _polynomial_reader(start + stride * shape[dimension]) if type(stride) is int and stride > 0 else None
        if end is None:
            return None
        parts.append(_slice_reader(begin, end, stride))
        order.append(dimension)
    if order != [*range(len(shape))]:
        return None
    if len(parts) == 1 and order:
        (only,) = parts
        return lambda array, values: array[only(values)]
    return lambda array, values: array[(*[part(values) for part in parts], ...)]


def _slice_reader(begin: Callable[[Values], int], end: Callable[[Values], int], step: int) -> Callable[[Values], slice]:
    return lambda values: slice(begin(values), end(values), step)


def _polynomial_reader(extent: Any) -> Callable[[Values], int] | None:
    """A function that evaluates an extent faster than `symbolic_dims.evaluated`; None for others than linear ones."""
    if not isinstance(extent, Extent):
        return extent_reader(extent) if type(extent) is int else None
    constant = extent.terms.get((), 0)
    terms = [(monomial, count) for monomial, count in extent.terms.items() if monomial]
    if any(len(monomial) > 1 or monomial[0].operation for monomial, _ in terms):
        return None
    if len(terms) == 1 and terms[0][1] == 1 and not constant:
        return extent_reader(extent)
    factors = [(monomial[0].text, count) for monomial, count in terms]
    return lambda values: constant + sum([count * values[name] for name, count in factors])
