"""What a schema is compared with unless its family has a module here: its own NumPy reference.

The reference is the NumPy peer, the equivalent calls it behind the bindings of the everyday function, and the ordinary
calls follow from the arrays that the schema declares.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.schema.base import BoundCall, KernelAttr
from jitkernels.attrs.schema.schema_queries import AXIS, DTYPE, SHAPE, inputs_of
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers.array_layouts import OrdinaryCall, with_outs
from jitkernels.dispatch.kernel_cache import get_refer
from jitkernels.dispatch.operators import Everyday


def reference_peer(attr: KernelAttr, *arrays: AnyArray) -> "partial[Any]":
    """Bind the reference of an attr to arrays."""
    return partial(get_refer(attr), *arrays)


class _ByReference(Everyday):
    """An everyday function without a dispatcher, whose calls the NumPy reference computes."""

    __slots__ = ()

    def __init__(self, attr_class: type[KernelAttr]) -> None:
        self.schema, self._signature, self._table = attr_class, attr_class.parameters(), None
        self._memo = None
        self.name = attr_class.kernel_type.name.lower()

    def _compute(self, call: BoundCall, arrays: Sequence[AnyArray]) -> None:
        get_refer(call.attr)(*arrays)


def reference_equivalent(attr_class: type[KernelAttr]) -> Callable[..., Any]:
    """Return the reference as a function that takes what the schema's everyday function takes."""
    return _ByReference(attr_class).call


def reference_calls(attr_class: type[KernelAttr], elements: int) -> Iterator[OrdinaryCall]:
    """Yield calls with the arrays of the attr in the schema's sweep that is nearest to `elements` elements."""
    attr = _nearest(attr_class, elements)
    if attr is None:
        return
    signature = attr.signature()
    arrays = {a.name: array for a, array in zip(signature.arrays, signature.sample(), strict=True) if not a.output}
    arguments = tuple(arrays.get(argument.name) for argument in inputs_of(attr_class))
    named = {name: getattr(attr, name) for name in attr_class.options if name not in (AXIS, SHAPE, DTYPE)}
    if SHAPE in attr_class.options:
        named[SHAPE] = (elements,)
    yield OrdinaryCall("as declared", arguments, named)
    yield OrdinaryCall("float64", tuple(map(_as_double, arguments)), named)
    with np.errstate(all="ignore"):
        result = reference_equivalent(attr_class)(*arguments, **named)
    if not isinstance(result, tuple):
        outs = with_outs(arguments, len(attr_class.parameters().parameters), result, **named)
        yield from (call for call in outs if result.dtype.kind == "f" or call.form != "out=float64")


def _nearest(attr_class: type[KernelAttr], elements: int) -> KernelAttr | None:
    """Return the attr of the sweep in float32, if there is any, whose largest array is nearest to `elements`."""

    def distance(attr: KernelAttr) -> tuple[bool, float]:
        size = max((math.prod(array.shape) for array in attr.signature().arrays), default=0)
        return attr.fields().get(DTYPE, "float32") != "float32", abs(math.log((size or 0.1) / elements))

    return min((case.attr for case in attr_class.sweep() if "ci" in case.tags), key=distance, default=None)


def _as_double(value: Any) -> Any:
    return value.astype(np.float64) if isinstance(value, np.ndarray) and value.dtype == np.float32 else value
