"""Pickles of compiled functions: the function, by name or by value, and its objects, so that a process starts warm.

A function that its module names is pickled by that name. Others are pickled by value where the pickler can do that, as
cloudpickle does, and the copies of it that Ray and Spark bring. These pickle functions of ``__main__`` by value, too,
as another process has another ``__main__``. Processes recognize by its token a function that they got before, and keep
its code.

The objects come first in a pickle, and nothing here imports the compiler: the first import of that loads some of them.
"""

import importlib
import operator
import sys
import types
from collections import OrderedDict
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from jitkernels.core.fork_locks import writing
from jitkernels.runtime.loading.object_payload import EMPTY, Payload

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_FUNCTIONS = 64
"""The most functions by value that a process keeps, with their code, for pickles that come later."""
BY_VALUE = "list_registry_pickle_by_value"
"""cloudpickle's function that lists modules whose functions are pickled by value."""

_functions: "OrderedDict[str, Any]" = OrderedDict()
"""Functions that were restored by value here, by token; the one that was used last is the last."""
_packing: ContextVar[frozenset[str]] = ContextVar("packing", default=frozenset())
"""The tokens of functions whose bytes are being made: one that refers to itself must not begin again."""


class PickleState:
    """What a function knows about its pickles: of its own objects, of those it came with, and how it was made.

    `packed`: the bytes of a function that came by value. Nobody changes what such a copy refers to, so that they are
    made once, however many tasks a scheduler sends.
    """

    def __init__(self) -> None:
        self.links: tuple[Any, ...] = ()
        self.payload, self.received = EMPTY, EMPTY
        self.token, self.packed = "", b""
        self.recipe: tuple[Any, ...] = ()


def reduced(function: Any, construct: "Callable[..., Any]", arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """What pickles a compiled function that ``construct(*arguments)`` makes again."""
    state, payload = _state(function), _payload(function)
    plain = function.__wrapped__
    module, name = getattr(plain, "__module__", ""), getattr(plain, "__qualname__", "")
    if _is_named(function, module, name):
        return restored_by_name, (payload, module, name)
    cloudpickle = _copy_that_pickles() or _imported_copy()
    if cloudpickle is not None and state.recipe and _pack(state, cloudpickle["dumps"]):
        return restored_from_bytes, (payload, state.token, cloudpickle["loads"], state.packed)
    from jitkernels.compiler.export.function_token import token_of

    token = token_of(construct, *arguments)
    return restored_by_value, (payload, token, construct, arguments)


def restored_by_name(payload: Payload, module: str, name: str) -> Any:
    """The function that a module names."""
    function = operator.attrgetter(name)(importlib.import_module(module))
    _state(function).received = payload
    return function


def restored_by_value(payload: Payload, token: str, construct: "Callable[..., Any]", arguments: tuple[Any, ...]) -> Any:
    """The function of this token that is known here, or a new one."""
    function = _known(token)
    if function is None:
        function = construct(*arguments)
        state = _state(function)
        state.token, state.recipe = token, (construct, arguments)
        _remember(token, function)
    _state(function).received = payload
    return function


def restored_from_bytes(payload: Payload, token: str, unpack: "Callable[[bytes], Any]", packed: bytes) -> Any:
    """The function of this token that is known here, or the one that `packed` describes."""
    function = _known(token)
    if function is None:
        return restored_by_value(payload, token, *unpack(packed))
    _state(function).received = payload
    return function


def restored_from(function: Any, construct: "Callable[..., Any]", *arguments: Any) -> tuple[Any, ...]:
    """What pickles an object that ``construct(function, *arguments)`` makes again, the compiled function first."""
    return applied, (function, construct, *arguments)


def applied(function: Any, construct: "Callable[..., Any]", *arguments: Any) -> Any:
    """``construct(function, *arguments)``."""
    return construct(function, *arguments)


def _state(function: Any) -> PickleState:
    if function.pickle_state is None:
        function.pickle_state = PickleState()
    state: PickleState = function.pickle_state
    return state


def _is_named(function: Any, module: str, name: str) -> bool:
    """Whether another process finds the function by the name that it has in its module."""
    try:
        is_there = operator.attrgetter(name)(sys.modules[module]) is function
    except (AttributeError, KeyError):
        return False
    own = _copy_that_pickles()
    cloudpickle = own or _imported_copy()
    if cloudpickle is None or not is_there:
        return is_there
    by_value = cloudpickle[BY_VALUE]()
    is_main = own is not None and module == "__main__"
    return not is_main and not any(f"{module}.".startswith(f"{one}.") for one in by_value)


def _copy_that_pickles() -> "dict[str, Any] | None":
    """The names in the module of the copy of cloudpickle that is pickling; None where another pickler is.

    No argument says who pickles. The method ``dump`` of cloudpickle's picklers is the last code in Python before this
    module, as the rest of a pickler is C, and its module has the list of modules by value.
    """
    passed = __name__, f"{__package__}.jit", "pickle"  # which has a pickler in Python, too
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "") in passed:
        frame = frame.f_back
    return frame.f_globals if frame is not None and BY_VALUE in frame.f_globals else None


def _imported_copy() -> "dict[str, Any] | None":
    """The names in cloudpickle, where it is imported."""
    module = sys.modules.get("cloudpickle")
    return None if module is None else vars(module)


def _pack(state: PickleState, dumps: "Callable[[Any], bytes]") -> bool:
    """Make the bytes of a function that came by value; whether there are any."""
    active = _packing.get()
    if not state.packed and state.token not in active:
        token = _packing.set(active | {state.token})
        try:
            state.packed = dumps(state.recipe)
        finally:
            _packing.reset(token)
    return bool(state.packed)


def _known(token: str) -> Any:
    with writing:
        function = _functions.get(token)
        if function is not None:
            _functions.move_to_end(token)
        return function


def _remember(token: str, function: Any) -> None:
    with writing:
        _functions[token] = function
        _functions.move_to_end(token)
        while len(_functions) > MAX_FUNCTIONS:
            _functions.popitem(last=False)


def _payload(function: Any) -> Payload:
    """The function's objects; where it has not run here, those that it came with."""
    links = tuple(link for one in function._with_parts() for link in one.links.values() if link is not None)
    state = _state(function)
    if links != state.links:
        from jitkernels.compiler.export.carry_objects import payload_of

        state.links, state.payload = links, payload_of(links)
    return state.payload if state.payload.content else state.received
