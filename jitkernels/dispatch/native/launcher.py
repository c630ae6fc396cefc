"""The launcher: what stands between a Python call and a C function, in tens of nanoseconds.

``launch`` is the C function behind every `Kernel`: it finds the kernel's context through ``self`` and calls
the compiled checks that the context names, one object per pattern of arguments, which call the entry when all
arguments fit. ``everyday`` is the C function behind ``jk.vmul`` and its like: it finds a context by the shapes
of the arguments first. Whatever does not pass goes to a Python callable, which raises a clear error or converts.

A context is an array of int64 words (see `context`); its layout, and that of NumPy's and Python's objects, is in
`jitkernels.native.layout`. The latter is verified at start against NumPy's own answers.
"""

import ctypes
import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jitkernels import machine
from jitkernels.disk import say_once
from jitkernels.errors import BuildError
from jitkernels.native import c_api, load, parts
from jitkernels.native.ir import STRAIGHT, IRSource
from jitkernels.native.known import reason_for_python, word_at
from jitkernels.native.launch_ir import Pattern, pattern_text
from jitkernels.native.layout import (
    MOST_DIMENSIONS,
    MOST_WORDS,
    Context,
)

FASTCALL, KEYWORDS = 0x80, 0x2
NEVER = 1 << 62
"""A countdown that no process lives to see the end of."""


class Parameter(NamedTuple):
    """One array argument as the launcher sees it."""

    dtype: "np.dtype[Any]"
    shape: tuple[int, ...]
    output: bool
    in_place: bool


class Holder:
    """Base of the objects that stand as ``self`` behind a launcher; its one slot leads to the context."""

    __slots__ = ("_context",)
    _context: "np.ndarray[Any, np.dtype[np.int64]]"
    callable: Any

    def __getattr__(self, name: str) -> Any:
        """The launcher by its own name, which is how pickle looks for it behind its ``__self__``."""
        if name != "callable" and name == getattr(self.callable, "__name__", None):
            return self.callable
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class _Method(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    )


def _slot_offset() -> int:
    """Where in a Holder the reference to its context lies."""
    holder = Holder()
    holder._context = np.zeros(1, np.int64)
    size = object.__sizeof__(holder)
    return next((at for at in range(16, size, 8) if word_at(id(holder) + at) == id(holder._context)), -1)


@functools.cache
def _loaded() -> "parts.Parts | str":
    """The compiled launcher, or the reason why the slow path serves all."""
    slot, reason = _slot_offset(), reason_for_python()
    if reason is None and slot < 0:
        reason = "slots of objects are nowhere to be found"
    if reason is not None:
        return reason
    try:
        return parts.Parts(slot)
    except BuildError as error:
        if machine.has_compiler():
            raise
        say_once("launcher", f"calls are served by Python: {error}")
        return str(error)


def reason_for_slow_path() -> str | None:
    """Why calls are served by Python instead of the compiled launcher here; None when they are not."""
    found = _loaded()
    return found if isinstance(found, str) else None


def bring_missing() -> bool:
    """Load what the dispatcher was without at its last call; whether that is another than before now."""
    found = _loaded()
    return not isinstance(found, str) and found.bring_missing()


def bring_all() -> None:
    """Load all that any call may need of the dispatcher. Raises BuildError when it cannot be had."""
    found = _loaded()
    if not isinstance(found, str):
        found.bring_all()


def context(
    parameters: Sequence[Parameter],
    words: Sequence[int],
    *,
    entry: int,
    python: object,
    slow: object,
    long: bool,
) -> "np.ndarray[Any, np.dtype[np.int64]]":
    """The words that tell the launcher what to accept and what to call.

    `entry` is the address of a C function taking one pointer per parameter and then `words`, or 0 to call
    the Python callable `python`, which is None otherwise. `slow` gets the arguments of calls that do not
    pass. `long` work releases the interpreter lock. The caller keeps `python` and `slow` alive.
    """
    pattern = Pattern(
        tuple(len(parameter.shape) for parameter in parameters),
        tuple(parameter.output for parameter in parameters),
        tuple(parameter.in_place for parameter in parameters),
        len(words),
        entry != 0,
    )
    header = {
        Context.ENTRY: entry,
        Context.COUNT: len(parameters),
        Context.LONG: int(long),
        Context.SLOW: id(slow),
        Context.PYTHON: id(python),
        Context.CALL: _pattern_address(pattern),
        Context.COUNTDOWN: NEVER,
    }
    records: list[int] = []
    for parameter in parameters:
        size = parameter.dtype.itemsize * math.prod(parameter.shape)
        extents = [*parameter.shape, *[0] * (MOST_DIMENSIONS - len(parameter.shape))]
        records += [id(parameter.dtype), len(parameter.shape), size, *extents]
    return np.array([*(header[word] for word in sorted(header)), *records, *words], np.int64)


def countdown_of(words: "np.ndarray[Any, np.dtype[np.int64]]") -> int:
    """How many calls Python wants to pass before it sees one."""
    return int(words[Context.COUNTDOWN])


def set_countdown(words: "np.ndarray[Any, np.dtype[np.int64]]", calls: int) -> None:
    """Let so many calls pass before Python sees one."""
    words[Context.COUNTDOWN] = calls


def replace(
    words: "np.ndarray[Any, np.dtype[np.int64]]", other: "np.ndarray[Any, np.dtype[np.int64]]"
) -> None:
    """Let a context call what another one of the same arrays does; what serves refused calls stays."""
    for word in (Context.ENTRY, Context.LONG, Context.PYTHON, Context.CALL):
        words[word] = other[word]


@functools.cache
def _pattern_address(pattern: Pattern) -> int:
    """The compiled checks and call of a pattern; 0 where Python serves all calls, or these."""
    if reason_for_slow_path() is not None:
        return 0
    text = pattern_text(pattern)
    source = IRSource("call", f"{STRAIGHT}{text}", c_api.externals())
    return load.address_of(source) if load.can_be_had(source) else 0


def is_launched(words: "np.ndarray[Any, np.dtype[np.int64]]") -> bool:
    """Whether compiled code takes the calls of a context."""
    return int(words[Context.CALL]) != 0


def fits(parameters: Sequence[Parameter], words: Sequence[int]) -> bool:
    """Whether the launcher can take so many arguments of so many dimensions."""
    few = all(len(parameter.shape) <= MOST_DIMENSIONS for parameter in parameters)
    return few and len(parameters) + len(words) <= MOST_WORDS


_methods: dict[tuple[str, str], _Method] = {}


def _bind(function: str, flags: int, name: str, documentation: str, holder: Holder) -> Any:
    found = _loaded()
    if isinstance(found, str):
        return None
    if (function, name) not in _methods:
        method = _Method(name.encode(), found.addresses[function], flags, documentation.encode())
        # Never freed: launchers that are garbage when the interpreter ends are looked at after this module is gone.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(method))
        _methods[function, name] = method
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    return new(ctypes.addressof(_methods[function, name]), holder, "jitkernels")


def launcher(name: str, documentation: str, holder: Holder) -> Any:
    """A built-in function that launches the context of a holder; None where only Python can."""
    return _bind("jk_launch", FASTCALL | KEYWORDS, name, documentation, holder)


def everyday_launcher(name: str, documentation: str, holder: Holder) -> Any:
    """A built-in function that looks contexts up in the table of a holder; None where only Python can."""
    return _bind("jk_everyday", FASTCALL | KEYWORDS, name, documentation, holder)


def known_context(entry: int, long: bool, countdown: int, exact: bool) -> tuple[int, int, int, int]:
    """The words of a size class of an everyday function, in the order of `Known`."""
    return entry, long, countdown, exact


def set_bypass(active: bool) -> None:
    """Send every everyday call through Python while a pin is in force somewhere."""
    found = _loaded()
    if not isinstance(found, str):
        ctypes.c_int64.from_address(found.addresses["jk_bypass"]).value = int(active)
