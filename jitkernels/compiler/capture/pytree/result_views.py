"""Results that are views: built in each call, so by one subscript where possible, whose text is compiled once."""

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from jitkernels.compiler.capture.functionalization import PlaneView, View
from jitkernels.compiler.ir import symbolic_dims
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
    """The same for a view of its parent."""
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
    parts: list[str] = []
    order: list[int] = []
    for start, steps in index_map:
        begin = _text(start)
        if begin is None or len(steps) > 1:
            return None
        if not steps:
            parts.append(begin)
            continue
        dimension, stride = steps[0]
        if type(stride) is not int or stride <= 0:
            return None
        end = _text(start + stride * shape[dimension])
        if end is None:
            return None
        parts.append(f"{begin}:{end}" if stride == 1 else f"{begin}:{end}:{stride}")
        order.append(dimension)
    if order != [*range(len(shape))]:
        return None
    text = ", ".join([*parts, "..."]) if len(order) < len(parts) else ", ".join(parts) or "..."
    made: Step = eval(f"lambda array, values: array[{text}]", {})
    return made


def _text(extent: Any) -> str | None:
    """An extent as an expression of Python; None where it is no polynomial of symbols."""
    if not isinstance(extent, Extent):
        return str(extent) if type(extent) is int else None
    terms = []
    for monomial, count in extent.terms.items():
        if any(atom.operation for atom in monomial):
            return None
        terms.append(" * ".join([str(count), *(f"values[{atom.text!r}]" for atom in monomial)]).removeprefix("1 * "))
    return " + ".join(terms)
