"""Replace the code of a Python function by a call of another, and put it back.

The function stays the same object: modules, dicts and closures that hold it, pickles, `inspect.signature` and
``is`` see no difference. Its new code has the parameters, the file and the line of the old one. Defaults are the
function's, and are passed on.
"""

import inspect
from collections.abc import Callable
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any

from jitkernels.errors import NotUsableError

_REPLACEMENT, _ORIGINAL, _DECLINED = "\0replacement", "\0original", "\0declined"
_CALLS_FILE = "<patched function>"


def implementation_of(function: Any) -> FunctionType:
    """The Python function within decorators and NumPy's dispatchers. Raises NotUsableError where there is none."""
    while not (isinstance(function, FunctionType) and not hasattr(function, "__wrapped__")):
        inner = getattr(function, "__wrapped__", None) or getattr(function, "_implementation", None)
        if inner is None or isinstance(function, BuiltinFunctionType):
            raise NotUsableError(f"{function!r} is no function written in Python")
        function = inner
    if function.__code__.co_freevars:
        raise NotUsableError(f"{function!r} refers to variables of the function around it")
    return function


def copy_of(function: FunctionType) -> FunctionType:
    """Return a function of the same code."""
    copied = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copied.__kwdefaults__ = function.__kwdefaults__
    copied.__qualname__, copied.__module__, copied.__doc__ = (
        function.__qualname__,
        function.__module__,
        function.__doc__,
    )
    return copied


def parameters_of(function: Any) -> str:
    """The parameters of a Python function as text, without defaults and annotations."""
    return ", ".join(_parameters(function.__code__)[0])


def _parameters(code: CodeType) -> tuple[list[str], list[str]]:
    """The parameters of code as a definition lists them, and the arguments of a call that passes them on."""
    positional = list(code.co_varnames[: code.co_argcount])
    names = list(code.co_varnames[code.co_argcount :])
    keyword_only = [names.pop(0) for _ in range(code.co_kwonlyargcount)]
    rest = [f"*{names.pop(0)}"] if code.co_flags & inspect.CO_VARARGS else []
    keywords = [f"**{names.pop(0)}"] if code.co_flags & inspect.CO_VARKEYWORDS else []
    parameters = [
        *positional[: code.co_posonlyargcount], *(["/"] if code.co_posonlyargcount else []),
        *positional[code.co_posonlyargcount :], *(rest or (["*"] if keyword_only else [])), *keyword_only, *keywords,
    ]  # fmt: skip
    return parameters, [*positional, *rest, *(f"{name}={name}" for name in keyword_only), *keywords]


def forwarding_code(function: FunctionType, replacement: Callable[..., Any], original: FunctionType) -> CodeType:
    """Return code with the parameters of `function` that calls `replacement`, and `original` where that declines."""
    old = function.__code__
    parameters, passed = (", ".join(listed) for listed in _parameters(old))
    text = (
        f"def patched({parameters}):\n"
        f"    function_ = {_REPLACEMENT!r}\n"
        f"    declined_ = {_DECLINED!r}\n"
        f"    result_ = function_({passed})\n"
        f"    if result_ is declined_:\n"
        f"        function_ = {_ORIGINAL!r}\n"
        f"        return function_({passed})\n"
        f"    return result_\n"
    )
    code = next(one for one in compile(text, _CALLS_FILE, "exec").co_consts if isinstance(one, CodeType))
    values = {_REPLACEMENT: replacement, _ORIGINAL: original, _DECLINED: NotImplemented}
    constants: Any = tuple(values.get(one, one) if isinstance(one, str) else one for one in code.co_consts)
    return code.replace(
        co_consts=constants, co_name=old.co_name, co_qualname=old.co_qualname, co_filename=old.co_filename,
        co_firstlineno=old.co_firstlineno,
    )  # fmt: skip
