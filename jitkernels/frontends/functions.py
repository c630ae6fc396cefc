"""What `__array_function__` is asked for: our implementation, NumPy's own code traced, or NumPy with the values."""

from typing import Any

from jitkernels.frontends.tables import TABLE, serves
from jitkernels.frontends.tracer import Tracer
from jitkernels.graph.construct import UnknownError


@serves("function")
def call_function(tracer: Tracer, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """One of NumPy's functions with traced arguments."""
    found = TABLE.get(function)
    if found is None:
        raise UnknownError(f"numpy.{getattr(function, '__name__', function)}")
    return found(*arguments, **keywords)
