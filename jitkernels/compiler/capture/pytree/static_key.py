"""Keys of static arguments: what a specialization compares of values that its code was made for."""

from typing import Any

from jitkernels.compiler.capture import free_variables


def static(value: Any) -> Any:
    """A hashable key of a static argument: equal for equal values of equal types."""
    if isinstance(value, tuple | list):
        return type(value), tuple(map(static, value))
    if isinstance(value, dict):
        return dict, tuple((static(key), static(item)) for key, item in value.items())
    if isinstance(value, float):
        return type(value), value.hex()
    if isinstance(value, complex):
        return type(value), value.real.hex(), value.imag.hex()
    try:
        hash(value)
    except TypeError:
        return type(value), free_variables.Same(value)
    return type(value), value
