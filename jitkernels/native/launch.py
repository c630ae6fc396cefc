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
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitkernels.native import codegen
from jitkernels.native.launch_ir import Pattern, pattern_text
from jitkernels.native.launch_ir import text as launcher_text
from jitkernels.native.layout import (
    ALIGNED,
    CONTIGUOUS,
    MOST_DIMENSIONS,
    MOST_WORDS,
    TABLE_SIZE,
    WRITEABLE,
    Context,
    Offset,
    Table,
)
from jitkernels.native.source import External

FASTCALL, KEYWORDS = 0x80, 0x2
EMPTY_IN_NUMPY_API = 184
C_API = (
    "Py_IncRef", "Py_DecRef", "PyObject_Vectorcall", "PyEval_SaveThread", "PyEval_RestoreThread",
)  # fmt: skip


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
    flags = ctypes.c_int32.from_address(id(sample) + Offset.ARRAY_FLAGS).value
    holder = Holder()
    holder._context = np.zeros(1, np.int64)
    pair = ("out", "in")
    return (
        _word(id(sample) + Offset.TYPE) == id(np.ndarray)
        and _word(id(sample) + Offset.ARRAY_DATA) == sample.ctypes.data
        and ctypes.c_int32.from_address(id(sample) + Offset.ARRAY_DIMENSIONS).value == 2
        and (_word(extents), _word(extents + 8)) == (3, 5)
        and _word(id(sample) + Offset.ARRAY_DTYPE) == id(np.dtype(np.float32))
        and flags & (ALIGNED | CONTIGUOUS | WRITEABLE) == ALIGNED | CONTIGUOUS
        and _word(id(holder) + slot) == id(holder._context)
        and _word(id(pair) + Offset.TUPLE_SIZE) == 2
        and _word(id(pair) + Offset.TUPLE_ITEMS) == id(pair[0])
    )


def _slot_offset() -> int:
    """Where in a Holder the reference to its context lies."""
    holder = Holder()
    holder._context = np.zeros(1, np.int64)
    size = object.__sizeof__(holder)
    return next((at for at in range(16, size, 8) if _word(id(holder) + at) == id(holder._context)), -1)


def _numpy_empty() -> int:
    """Address of NumPy's ``PyArray_Empty``, verified by a call."""
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = pointer(_multiarray_umath._ARRAY_API, None)
    return _word(table + 8 * EMPTY_IN_NUMPY_API)


def _empty_works(address: int) -> bool:
    make = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_int, ctypes.POINTER(ctypes.c_int64), ctypes.c_void_p, ctypes.c_int
    )(address)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(np.dtype(np.float64)))
    made = make(2, (ctypes.c_int64 * 2)(3, 5), id(np.dtype(np.float64)), 0)
    return isinstance(made, np.ndarray) and made.shape == (3, 5) and made.dtype == np.float64


def _c_api(name: str) -> Callable[[], int]:
    return lambda: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


@functools.cache
def _externals() -> tuple[External, ...]:
    """What the launcher links to: functions of Python and NumPy, and the objects it compares with."""
    functions = [External(name, "void", (), _c_api(name)) for name in C_API]
    objects = (
        External("jk_ndarray", "void", (), lambda: id(np.ndarray)),
        External("jk_none", "void", (), lambda: id(None)),
    )
    return (*functions, External("PyArray_Empty", "void", (), _numpy_empty), *objects)


@functools.cache
def _functions() -> dict[str, int] | str:
    """Addresses of ``launch``, ``everyday`` and ``jk_bypass``, or the reason why the slow path serves all."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "a free-threaded Python: objects have another layout"
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return f"{sys.implementation.name} is not 64-bit CPython"
    slot = _slot_offset()
    if not _layout_is_known(slot):
        return f"NumPy {np.__version__} on Python {sys.version.split()[0]} has another object layout"
    if not _empty_works(_numpy_empty()):
        return f"NumPy {np.__version__} has another C interface"
    from jitkernels.native import load

    source = codegen.IRSource("launcher", launcher_text(slot), _externals())
    return load.functions_of(source, ("jk_launch", "jk_everyday", "jk_bypass"))


def reason_for_slow_path() -> str | None:
    """Why calls are served by Python instead of the compiled launcher here; None when they are not."""
    found = _functions()
    return found if isinstance(found, str) else None


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
    }
    records: list[int] = []
    for parameter in parameters:
        size = parameter.dtype.itemsize * math.prod(parameter.shape)
        extents = [*parameter.shape, *[0] * (MOST_DIMENSIONS - len(parameter.shape))]
        records += [id(parameter.dtype), len(parameter.shape), size, *extents]
    return np.array([*(header[word] for word in sorted(header)), *records, *words], np.int64)


@functools.cache
def _pattern_address(pattern: Pattern) -> int:
    """The compiled checks and call of a pattern; 0 where Python serves all calls."""
    if reason_for_slow_path() is not None:
        return 0
    from jitkernels.native import load

    return load.address_of(codegen.IRSource("call", pattern_text(pattern), _externals()))


def fits(parameters: Sequence[Parameter], words: Sequence[int]) -> bool:
    """Whether the launcher can take so many arguments of so many dimensions."""
    few = all(len(parameter.shape) <= MOST_DIMENSIONS for parameter in parameters)
    return few and len(parameters) + len(words) <= MOST_WORDS


_methods: dict[tuple[str, str], _Method] = {}


def _bind(function: str, flags: int, name: str, documentation: str, holder: Holder) -> Any:
    found = _functions()
    if isinstance(found, str):
        return None
    if (function, name) not in _methods:
        _methods[function, name] = _Method(name.encode(), found[function], flags, documentation.encode())
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    return new(ctypes.addressof(_methods[function, name]), holder, "jitkernels")


def launcher(name: str, documentation: str, holder: Holder) -> Any:
    """A built-in function that launches the context of a holder; None where only Python can."""
    return _bind("jk_launch", FASTCALL, name, documentation, holder)


def everyday_launcher(name: str, documentation: str, holder: Holder) -> Any:
    """A built-in function that looks contexts up in the table of a holder; None where only Python can."""
    return _bind("jk_everyday", FASTCALL | KEYWORDS, name, documentation, holder)


_OUT = sys.intern("out")


def table(slow: object, inputs: int, out_follows: bool) -> "np.ndarray[Any, np.dtype[np.int64]]":
    """An empty table of contexts for `everyday_launcher`.

    It takes up to `inputs` positional arrays; ``out`` comes by name, or after all of them if `out_follows`.
    """
    words = np.zeros(Table.CONTEXTS + TABLE_SIZE, np.int64)
    words[: Table.CONTEXTS] = [id(slow), inputs, int(out_follows), id(_OUT)]
    return words


def place_in_table(parameters: Sequence[Parameter]) -> int:
    """Index of the word in a table that ``everyday`` reads for these inputs (it computes the same sum)."""
    mixed = 0
    for parameter in parameters:
        if not parameter.output:
            mixed = mixed * 31 + (id(parameter.dtype) >> 4)
            for dimension in parameter.shape:
                mixed = mixed * 31 + dimension
    mixed &= (1 << 64) - 1
    return Table.CONTEXTS + ((mixed ^ (mixed >> 12)) & (TABLE_SIZE - 1))


def set_bypass(active: bool) -> None:
    """Send every everyday call through Python while a pin is in force somewhere."""
    found = _functions()
    if not isinstance(found, str):
        ctypes.c_int64.from_address(found["jk_bypass"]).value = int(active)
