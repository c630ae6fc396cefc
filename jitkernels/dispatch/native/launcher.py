"""The launcher: from a Python call to a C function in tens of nanoseconds.

``jk_launch`` is the C function behind every `Kernel`: it reads the kernel's context through ``self`` and calls the
compiled checks of that context, one object per pattern of arguments, which call the entry when all arguments match.
``jk_everyday`` is the C function behind ``jk.vmul`` and other everyday functions: it first looks up a context by the
shapes of the arguments. Failed checks fall back to a Python callable, which raises a clear error or converts.

A context is an array of int64 words (see `context`); its layout, and that of NumPy's and Python's objects, is in
`jitkernels.runtime.abi_layout`. The latter is verified at startup against NumPy's own answers.
"""

import ctypes
import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jitkernels.codegen.ir_source import LIGHT_PIPELINE, IRSource
from jitkernels.core import cpu_target
from jitkernels.core.atomic_files import warn_once
from jitkernels.dispatch.native import dispatcher_modules
from jitkernels.dispatch.native.launcher_checks import Pattern, pattern_text
from jitkernels.errors import BuildError
from jitkernels.runtime import c_api
from jitkernels.runtime.abi_check import reason_for_python, word_at
from jitkernels.runtime.abi_layout import MAX_DIMENSIONS, MAX_WORDS, Context
from jitkernels.runtime.loading import build_ahead, loader

FASTCALL, KEYWORDS = 0x80, 0x2
"""CPython's calling convention: METH_FASTCALL | METH_KEYWORDS."""
NEVER = 1 << 62
"""A countdown that no process can exhaust."""


class Parameter(NamedTuple):
    """One array argument as the launcher sees it."""

    dtype: "np.dtype[Any]"
    shape: tuple[int, ...]
    output: bool
    in_place: bool


class Holder:
    """Base of the ``self`` objects of launchers; its one slot refers to the context."""

    __slots__ = ("_context",)
    _context: "np.ndarray[Any, np.dtype[np.int64]]"
    callable: Any

    def __getattr__(self, name: str) -> Any:
        """The launcher by its own name, which pickle looks up in its ``__self__``."""
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
    """The byte offset of the context reference in a Holder."""
    holder = Holder()
    holder._context = np.zeros(1, np.int64)
    size = object.__sizeof__(holder)
    return next((at for at in range(16, size, 8) if word_at(id(holder) + at) == id(holder._context)), -1)


@functools.cache
def _loaded() -> "dispatcher_modules.DispatcherObjects | str":
    """The compiled launcher, or the reason why Python serves all calls."""
    objects = _objects()
    if isinstance(objects, str):
        return objects
    try:
        objects.load()
    except BuildError as error:
        if cpu_target.has_compiler():
            raise
        warn_once("launcher", f"calls are served by Python: {error}")
        return str(error)
    return objects


@functools.cache
def _objects() -> "dispatcher_modules.DispatcherObjects | str":
    """What the launcher is built from, or the reason why Python serves all calls."""
    slot, reason = _slot_offset(), reason_for_python()
    if reason is None and slot < 0:
        reason = "the memory layout of object slots is unknown"
    return dispatcher_modules.DispatcherObjects(slot) if reason is None else reason


def begin_build() -> None:
    """Let a helper process build the launcher, where the cache lacks it, while this process does something else."""
    objects = _objects()
    if not isinstance(objects, str) and cpu_target.has_compiler():
        build_ahead.begin_lazy([objects.launcher])


def reason_for_slow_path() -> str | None:
    """Why Python serves all calls instead of the compiled launcher; None if it does not."""
    loaded = _loaded()
    return loaded if isinstance(loaded, str) else None


def load_missing() -> bool:
    """Load the object that the dispatcher missed in its last call; return whether one was loaded."""
    loaded = _loaded()
    return not isinstance(loaded, str) and loaded.load_missing()


def load_all() -> None:
    """Load all objects of the dispatcher. Raises BuildError if one cannot be built."""
    loaded = _loaded()
    if not isinstance(loaded, str):
        loaded.load_all()


def context(
    parameters: Sequence[Parameter], words: Sequence[int], *, entry: int, python: object, slow: object, long: bool
) -> "np.ndarray[Any, np.dtype[np.int64]]":
    """The words of a context: which arguments the launcher accepts and what it calls.

    `entry` is the address of a C function that takes one pointer per parameter and then `words`, or 0 to call the
    Python callable `python`, which is None otherwise. `slow` gets the arguments of calls that fail a check. `long`
    work releases the interpreter lock. The caller keeps `python` and `slow` alive.
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
    descriptors: list[int] = []
    for parameter in parameters:
        size = parameter.dtype.itemsize * math.prod(parameter.shape)
        extents = [*parameter.shape, *[0] * (MAX_DIMENSIONS - len(parameter.shape))]
        descriptors += [id(parameter.dtype), len(parameter.shape), size, *extents]
    return np.array([*(header[word] for word in sorted(header)), *descriptors, *words], np.int64)


def replace(words: "np.ndarray[Any, np.dtype[np.int64]]", other: "np.ndarray[Any, np.dtype[np.int64]]") -> None:
    """Let a context call the code of another one of the same arrays; its fallback stays."""
    for word in (Context.ENTRY, Context.LONG, Context.PYTHON, Context.CALL):
        words[word] = other[word]


@functools.cache
def _pattern_address(pattern: Pattern) -> int:
    """The address of the compiled checks and call of a pattern; 0 where Python serves the calls."""
    if reason_for_slow_path() is not None:
        return 0
    text = pattern_text(pattern)
    source = IRSource("call", f"{LIGHT_PIPELINE}{text}", c_api.externals())
    return loader.address_of(source) if loader.is_loadable(source) else 0


def fits(parameters: Sequence[Parameter], words: Sequence[int]) -> bool:
    """Whether the launcher supports these parameters and words: their number and dimensions."""
    supported = all(len(parameter.shape) <= MAX_DIMENSIONS for parameter in parameters)
    return supported and len(parameters) + len(words) <= MAX_WORDS


_methods: dict[tuple[str, str], _Method] = {}


def launcher(name: str, documentation: str, holder: Holder, function: str = "jk_launch") -> Any:
    """A built-in function that launches the context of a holder; None where Python serves all calls.

    `function` is ``jk_everyday`` for a holder of a table, in which each call looks up its context.
    """
    loaded = _loaded()
    if isinstance(loaded, str):
        return None
    if (function, name) not in _methods:
        method = _Method(name.encode(), loaded.addresses[function], FASTCALL | KEYWORDS, documentation.encode())
        # Never freed: the interpreter may access launchers at exit, after this module is gone.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(method))
        _methods[function, name] = method
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    return new(ctypes.addressof(_methods[function, name]), holder, "jitkernels")


def set_bypass(active: bool) -> None:
    """Route every everyday call through Python while an override is in force."""
    loaded = _loaded()
    if not isinstance(loaded, str):
        ctypes.c_int64.from_address(loaded.addresses["jk_bypass"]).value = int(active)


def bypass_address() -> int:
    """The address of the int64 flag of `set_bypass`, for other compiled code; 0 without a launcher."""
    loaded = _loaded()
    return 0 if isinstance(loaded, str) else int(loaded.addresses["jk_bypass"])
