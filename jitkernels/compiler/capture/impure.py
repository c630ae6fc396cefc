"""Impure functions: side effects in each call, or results that differ between calls, which a trace would drop."""

import builtins
import types
from typing import Any

from jitkernels.compiler.ir.builder import UnsupportedError

IMPURE_MODULES = (
    "random", "time", "datetime", "secrets", "uuid", "os", "sys", "io", "logging", "threading", "warnings",
)  # fmt: skip
IMPURE_BUILTINS = {
    "print", "input", "open", "exec", "eval", "globals", "locals", "vars", "setattr", "delattr", "id", "breakpoint",
    "__import__",
}  # fmt: skip


class ImpureModule:
    """Proxy of a module whose functions are impure: raises UnsupportedError where the trace comes to use one."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        raise UnsupportedError(f"the function uses the module {self._module.__name__}")


def is_impure_module(value: Any) -> bool:
    """Whether a value is a module whose functions return something else in each call."""
    return type(value) is types.ModuleType and _is_impure_module(value.__name__)


def _is_impure_module(name: object) -> bool:
    """Whether functions of a module, or of its package, are impure."""
    root = str(name).partition(".")[0]
    return root in ("posix", "nt") or root.removeprefix("_") in IMPURE_MODULES


_impure = {id(getattr(builtins, name)): name for name in IMPURE_BUILTINS}


def why_impure(value: Any) -> str:
    """Why a function or class is impure, whatever its name; empty for a pure one."""
    if id(value) in _impure:
        return f"the function calls {_impure[id(value)]}"
    if isinstance(value, types.MethodType):
        return why_impure(value.__func__)
    if isinstance(value, types.BuiltinFunctionType):
        owner = value.__self__
        if not isinstance(owner, types.ModuleType):
            kind = owner if isinstance(owner, type) else type(owner)
            return f"the function calls {value.__qualname__}" if _is_impure_module(kind.__module__) else ""
    elif not isinstance(value, types.FunctionType | type):
        return ""
    if not _is_impure_module(value.__module__):
        return ""
    return f"the function uses {value.__name__} of the module {value.__module__}"
