"""Sentinels: objects that code only compares by identity, such as ``numpy._NoValue`` or the ``MISSING`` of a module.

They are constants of a trace. A copy, as of other objects, would be another one.
"""

import dataclasses
from typing import Any

SENTINEL_ATTRIBUTES = frozenset({
    "__module__", "__doc__", "__dict__", "__weakref__", "__slots__", "__annotations__", "__new__", "__init__",
    "__repr__", "__str__", "__reduce__", "__copy__", "__deepcopy__", "__firstlineno__", "__static_attributes__",
    "__annotate_func__", "__annotations_cache__",
})  # fmt: skip
"""Attributes of classes that give their instances nothing to compute with."""


def is_sentinel(value: Any) -> bool:
    """Whether all that code can do with an object is to compare its identity: it has no attributes and no methods."""
    if getattr(value, "__dict__", None) or dataclasses.is_dataclass(value):
        return False
    classes = type(value).__mro__[:-1]
    if any(getattr(base, "__slots__", ()) for base in classes):
        return False
    return all(
        name in SENTINEL_ATTRIBUTES or name.startswith(f"_{base.__name__.lstrip('_')}__")  # private: no code reads it
        for base in classes
        for name in vars(base)
    )
