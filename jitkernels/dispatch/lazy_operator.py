"""Operators by name for traces: the dispatcher takes longer to build than many programs, and a trace does not call it.

Where a compiled program calls an operator between kernels, the dispatcher is built then.
"""

import functools
from typing import Any

from jitkernels.attrs.schema.registry import op_schema
from jitkernels.dispatch.operators import everyday


class LazyOperator:
    """The everyday function of a kernel, which is looked up by the first call without proxies."""

    def __init__(self, name: str) -> None:
        """Raises UnknownNameError for an unknown name."""
        self.schema, self.__name__ = op_schema(name), name

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        for value in (*arguments, *named.values()):
            if hasattr(type(value), "__jitkernels_call__"):
                return value.__jitkernels_call__(self.schema, self, arguments, named)
        return everyday(self.__name__)(*arguments, **named)

    def __reduce__(self) -> tuple[Any, ...]:
        return lazy_operator, (self.__name__,)


@functools.cache
def lazy_operator(name: str) -> LazyOperator:
    """The operator of that name; one object, so that traces compare equal. Raises UnknownNameError."""
    return LazyOperator(name)
