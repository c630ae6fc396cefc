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
import sys
import sysconfig
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jitkernels.native import load, parts
from jitkernels.native.codegen import STRAIGHT, IRSource
from jitkernels.native.launch_ir import Pattern, pattern_text
from jitkernels.native.layout import (
    ALIGNED,
    CONTIGUOUS,
    MOST_DIMENSIONS,
    MOST_WORDS,
    NATIVE,
    NOT_SWAPPED,
    WRITEABLE,
    Context,
    Offset,
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


def _word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


def _layout_is_known(slot: int) -> bool:
    """Whether ndarray, tuple and Holder objects look in memory as the launcher assumes."""
    sample = np.zeros((3, 5), np.float32)
    sample.flags.writeable = False
    extents = _word(id(sample) + Offset.ARRAY_EXTENTS)
    strides = _word(id(sample) + Offset.ARRAY_STRIDES)
    number = 2.5
    items = [number]
    flags = ctypes.c_int32.from_address(id(sample) + Offset.ARRAY_FLAGS).value
    holder = Holder()
    holder._context = np.zeros(1, np.int64)
    pair = ("out", "in")
    references = ctypes.c_uint32.from_address(id(sample) + Offset.REFERENCES)
    before, again = references.value, sample
    return (
        (again is sample and references.value == before + 1)
        and _word(id(sample) + Offset.TYPE) == id(np.ndarray)
        and _word(id(sample) + Offset.ARRAY_DATA) == sample.ctypes.data
        and ctypes.c_int32.from_address(id(sample) + Offset.ARRAY_DIMENSIONS).value == 2
        and (_word(extents), _word(extents + 8)) == (3, 5)
        and _word(id(sample) + Offset.ARRAY_DTYPE) == id(np.dtype(np.float32))
        and flags & (ALIGNED | CONTIGUOUS | WRITEABLE) == ALIGNED | CONTIGUOUS
        and _word(id(holder) + slot) == id(holder._context)
        and _word(id(pair) + Offset.TUPLE_SIZE) == 2
        and _word(id(pair) + Offset.TUPLE_ITEMS) == id(pair[0])
        and (_word(strides), _word(strides + 8)) == (20, 4)
        and ctypes.c_double.from_address(id(number) + Offset.FLOAT_VALUE).value == number
        and _word(_word(id(items) + Offset.LIST_ITEMS)) == id(number)
        and _word(id(items) + Offset.TUPLE_SIZE) == 1
        and all(_number_is_known(dtype.type(1)) for dtype in parts.SCALARS)
        and all(_dtype_is_known(np.dtype(name)) for name in ("float32", "int64", "float16", "bool"))
    )


def _number_is_known(number: "np.generic") -> bool:
    """Whether a number of NumPy holds its value where the dispatcher reads it."""
    value = ctypes.string_at(id(number) + Offset.FLOAT_VALUE, number.itemsize)
    return bool(value == number.tobytes())


def _dtype_is_known(dtype: "np.dtype[Any]") -> bool:
    """Whether a dtype object looks in memory as the dispatcher assumes."""
    return (
        ctypes.c_int32.from_address(id(dtype) + Offset.DTYPE_NUMBER).value == dtype.num
        and ctypes.c_char.from_address(id(dtype) + Offset.DTYPE_ORDER).value == dtype.byteorder.encode()
        and _word(id(dtype) + Offset.DTYPE_BYTES) == dtype.itemsize
        and dtype.byteorder in (chr(NATIVE), "|")
    )


def _slot_offset() -> int:
    """Where in a Holder the reference to its context lies."""
    holder = Holder()
    holder._context = np.zeros(1, np.int64)
    size = object.__sizeof__(holder)
    return next((at for at in range(16, size, 8) if _word(id(holder) + at) == id(holder._context)), -1)


def _empty_works(address: int) -> bool:
    make = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_int, ctypes.POINTER(ctypes.c_int64), ctypes.c_void_p, ctypes.c_int
    )(address)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(np.dtype(np.float64)))
    made = make(2, (ctypes.c_int64 * 2)(3, 5), id(np.dtype(np.float64)), 0)
    return isinstance(made, np.ndarray) and made.shape == (3, 5) and made.dtype == np.float64


def _from_any_works(address: int) -> bool:
    make = ctypes.PYFUNCTYPE(
        ctypes.py_object,
        ctypes.py_object,
        ctypes.c_void_p,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_void_p,
    )(address)
    made = [
        make(values, None, 0, 0, ALIGNED | NOT_SWAPPED, None) for values in ([[1, 2.5]], np.ones(2, ">i4"))
    ]
    if not all(isinstance(array, np.ndarray) and array.dtype.isnative for array in made):
        return False
    return [array.tolist() for array in made] == [[[1.0, 2.5]], [1, 1]]


@functools.cache
def reason_for_python() -> str | None:
    """Why compiled code cannot read the objects of this Python and NumPy; None when it can."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "a free-threaded Python: objects have another layout"
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return f"{sys.implementation.name} is not 64-bit CPython"
    if not _layout_is_known(_slot_offset()):
        return f"NumPy {np.__version__} on Python {sys.version.split()[0]} has another object layout"
    if not (
        _empty_works(parts.numpy_function("PyArray_Empty"))
        and _from_any_works(parts.numpy_function("PyArray_CheckFromAny"))
    ):
        return f"NumPy {np.__version__} has another C interface"
    return None


@functools.cache
def _loaded() -> "parts.Parts | str":
    """The compiled launcher, or the reason why the slow path serves all."""
    return reason_for_python() or parts.Parts(_slot_offset())


def reason_for_slow_path() -> str | None:
    """Why calls are served by Python instead of the compiled launcher here; None when they are not."""
    found = _loaded()
    return found if isinstance(found, str) else None


def bring_missing() -> bool:
    """Load what the dispatcher was without at its last call; whether that is another than before now."""
    found = _loaded()
    return not isinstance(found, str) and found.bring_missing()


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
    """The compiled checks and call of a pattern; 0 where Python serves all calls."""
    if reason_for_slow_path() is not None:
        return 0
    text = pattern_text(pattern)
    return load.address_of(IRSource("call", f"{STRAIGHT}{text}", parts.externals()))


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
