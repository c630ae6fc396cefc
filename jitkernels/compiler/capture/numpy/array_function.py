"""What `__array_function__` is asked for: our implementation, NumPy's own code traced, or NumPy with the values."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from jitkernels.frontends import foreign
from jitkernels.frontends.tables import COMPOSED, TABLE, serves
from jitkernels.frontends.traced import Traced
from jitkernels.frontends.tracer import Tracer
from jitkernels.graph.construct import UnknownError

REFUSED = {
    np.put, np.place, np.putmask, np.save, np.savez, np.savez_compressed,
    np.savetxt, np.shares_memory, np.may_share_memory, np.apply_along_axis, np.apply_over_axes, np.piecewise,
    np.unique, np.nonzero, np.flatnonzero, np.argwhere, np.extract, np.compress, np.array2string, np.array_repr,
    np.array_str, np.array_equal, np.allclose, np.trim_zeros, np.intersect1d, np.union1d, np.setdiff1d,
}  # fmt: skip
"""Functions whose results have a size that depends on values, that write, call back, or decide."""


@serves("function")
def call_function(tracer: Tracer, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """One of NumPy's functions with traced arguments."""
    found = TABLE.get(function)
    name = getattr(function, "__name__", str(function))
    if function in REFUSED:
        raise UnknownError(f"numpy.{name}")
    if tracer.differentiates and function in COMPOSED and keywords.get("out") is None:
        with contextlib.suppress(UnknownError):  # of some options the function is what it is elsewhere
            return COMPOSED[function](*arguments, **keywords)
    if found is not None:
        try:
            return found(*arguments, **keywords)
        except UnknownError:
            if keywords.get("out") is not None or function in TABLE_WRITES:
                raise
    elif foreign.is_python(function):
        before = [(one, one.view.storage.node) for one in _arrays((arguments, keywords))]
        try:
            return foreign.traced_copy(function)(*arguments, **keywords)
        except (Exception, UnknownError):  # noqa: BLE001  # NumPy raises what is to be raised when it computes
            tracer.note(f"numpy.{name} cannot be traced")
            if any(one.view.storage.node is not node for one, node in before):
                raise UnknownError(f"numpy.{name}, which writes to its arguments") from None
    if keywords.get("out") is not None:
        raise UnknownError(f"numpy.{name} with out=")
    return foreign.computed(tracer, function, arguments, keywords)


TABLE_WRITES = {np.copyto, np.fill_diagonal}
"""Functions of the table that write to what they are given."""


def _arrays(value: Any) -> Iterator[Traced]:
    if type(value) is Traced:
        yield value
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _arrays(one)
    elif isinstance(value, dict):
        yield from _arrays(list(value.values()))
