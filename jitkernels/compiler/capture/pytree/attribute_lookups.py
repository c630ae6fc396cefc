"""``getattr`` and ``hasattr`` in a trace: names that only the trace computes have no guards, so they are refused."""

import types
from typing import Any

from jitkernels.compiler.capture.free_variables import is_unchanging
from jitkernels.compiler.capture.numpy_namespace_proxy import CALLED
from jitkernels.compiler.capture.trace_context import current
from jitkernels.compiler.ir.builder import UnsupportedError

UNCHANGING = "builtins", "numpy", "jitkernels"
"""Packages of types whose attributes no code changes."""


def _check(value: Any, name: Any) -> None:
    """Raise UnsupportedError for a name without a guard: none of the strings that the call's values and code have."""
    tracer = current()
    if tracer is None or not isinstance(name, str) or name in tracer.strings:
        return
    if isinstance(value, types.ModuleType | type):
        has_guard = is_unchanging(value)
    elif isinstance(value, types.FunctionType):
        has_guard = False
    else:  # the structure has the own attributes of objects
        is_known = str(type(value).__module__).partition(".")[0] in UNCHANGING
        has_guard = is_known or name in getattr(value, "__dict__", ())
    if not has_guard:
        raise UnsupportedError(f"a computed name of an attribute, {name!r}")


def _getattr(value: Any, name: str, /, *default: Any) -> Any:
    _check(value, name)
    return getattr(value, name, *default)


def _hasattr(value: Any, name: str, /) -> bool:
    _check(value, name)
    return hasattr(value, name)


CALLED.update({getattr: _getattr, hasattr: _hasattr})
