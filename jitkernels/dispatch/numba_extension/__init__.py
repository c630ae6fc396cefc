"""numba's view of everyday functions: ``@njit`` code calls ``jk.softmax`` at native speed.

numba calls `init` through the entry point ``numba_extensions`` before it compiles anything. It only registers
`jitkernels.dispatch.numba_extension.call_typing` for built-in functions that are ours.
"""

import sys
import types as python_types
from typing import Any

EVERYDAY = "jitkernels.dispatch.operators"


def init() -> None:
    """Register the types of everyday functions; called by numba."""
    from numba.core.typing.typeof import typeof_impl

    typeof_impl.register(python_types.BuiltinFunctionType)(_type_of)
    typeof_impl.register(python_types.MethodType)(_type_of)


def _type_of(value: Any, context: Any) -> Any:
    """numba's type of an everyday function; its default type for all others."""
    from numba.core.typing.typeof import typeof_impl

    module = sys.modules.get(EVERYDAY)
    holder = getattr(value, "__self__", None)
    if module is None or not isinstance(holder, module.Everyday):
        return typeof_impl.dispatch(object)(value, context)
    from jitkernels.dispatch.numba_extension.call_typing import function_type

    return function_type(holder)
