"""The objects that launcher and dispatcher are made of, and what they link to.

The launcher is what every call passes through. The parts that most calls do without are objects of their own, since
building them would take most of the first call of a process.
"""

import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType

import numpy as np

from jitkernels.native import copying, dispatch, load, moving
from jitkernels.native.language.words import WordSource, translated
from jitkernels.native.layout import ALIGNED, CONTIGUOUS, MOST_CALL_WORDS, WRITEABLE, Part, constants
from jitkernels.native.source import External

NUMPY_API = {"PyArray_CheckFromAny": 108, "PyArray_Empty": 184, "PyArray_Return": 76}
"""Places in NumPy's table of C functions."""
C_API = (
    "Py_IncRef", "Py_DecRef", "PyObject_Vectorcall", "PyEval_SaveThread", "PyEval_RestoreThread", "PyErr_Clear",
    "PyErr_Occurred", "PyErr_SetObject", "PyNumber_Float", "PyLong_AsLong", "PyLong_FromLong", "PyTuple_New",
    "PyDict_GetItemWithError", "PyDict_Next", "PyObject_GetAttr", "PyObject_RichCompareBool", "PyContextVar_Get",
)  # fmt: skip
LIBC = ("malloc", "free")
OBJECTS: dict[str, object] = {
    "jk_ndarray": np.ndarray, "jk_none": None, "jk_float": float, "jk_int": int, "jk_bool": bool, "jk_tuple": tuple,
    "jk_list": list,
    "jk_float32_type": np.float32,
    "jk_float64_type": np.float64, "jk_float32": np.dtype(np.float32), "jk_float64": np.dtype(np.float64),
}  # fmt: skip
"""What translated code compares with, by the names it has there."""
SCALARS = tuple(np.dtype(code) for code in "?bBhHiIlLqQfde")
"""Types of NumPy's own numbers, and none derived from them, whose values the dispatcher reads where they lie."""
_scalars = np.array([len(SCALARS), *(w for d in SCALARS for w in (id(d.type), d.num, d.itemsize))], np.int64)

LAUNCHER = ("jk_launch", "jk_everyday")
VARIABLES = {"jk_bypass": 1, "jk_missing": 1, "jk_parts": len(Part)}
"""The launcher's own words, so many of each: whether Python serves all everyday calls; the number of the part that a
call was without, and one; where the parts are."""
TOGETHER = {"general": (Part.GENERAL,), "converting": (Part.IN_BLOCKS, Part.MIXED, Part.OF_SEQUENCE)}
"""Which parts are one object."""
ARGUMENTS = (6, 12, MOST_CALL_WORDS)
"""A kernel is called with the least of these that is enough: in C a function may be given more than it takes."""


def numpy_function(name: str) -> int:
    """Address of a function of NumPy's C interface."""
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]  # NumPy's stubs leave it out

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = pointer(_multiarray_umath._ARRAY_API, None)
    return ctypes.c_int64.from_address(table + 8 * NUMPY_API[name]).value


def _c_api(name: str) -> Callable[[], int]:
    return lambda: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


def _libc(name: str) -> Callable[[], int]:
    return lambda: ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value or 0


@functools.cache
def externals() -> tuple[External, ...]:
    """What all of them link to: functions of Python, NumPy and C, and the objects they compare with."""
    return (
        *(_link(name, _c_api(name)) for name in C_API),
        *(_link(name, _libc(name)) for name in LIBC),
        *(_link(name, partial(numpy_function, name)) for name in NUMPY_API),
        *(_link(name, partial(id, value)) for name, value in OBJECTS.items()),
        _link("jk_scalars", lambda: _scalars.ctypes.data),
    )


def _link(name: str, address: Callable[[], int]) -> External:
    return External(name, "void", (), address)


class Parts:
    """The launcher, loaded, and the parts of the dispatcher that calls have come to need.

    `addresses` is where the launcher's functions and variables are. Raises BuildError when it cannot be had.
    """

    def __init__(self, slot: int) -> None:
        """`slot` is the offset of the context in a Holder."""
        self._constants = {
            **constants(),
            "SLOT": slot,
            "READABLE": ALIGNED | CONTIGUOUS,
            "WRITABLE": ALIGNED | CONTIGUOUS | WRITEABLE,
            "HAS_FLOAT16": int(copying.has_float16()),
            "BOOL": copying.BOOL,
            "FLOAT16": copying.FLOAT16,
            "FLOAT32": copying.FLOAT32,
            "FLOAT64": copying.FLOAT64,
            "LANES": copying.LANES,
            "SAME": copying.SAME,
            "LEAST_ROW": moving.LEAST_ROW,
            "SQUARE": moving.SQUARE,
            "INFINITY_BITS": 0x7FF << 52,
        }
        # The translator's own text is in every key (`jitkernels.native.cache`).
        files = [__file__, *(str(module.__file__) for module in (copying, moving, *dispatch.MODULES))]
        self._written = "".join([*(Path(file).read_text() for file in files), f"\n{self._constants}\n"])
        self.addresses = self._loaded("launcher", LAUNCHER, owns=VARIABLES)

    def bring_missing(self) -> bool:
        """Load the part that a call was without; whether there was one. Raises BuildError when it cannot be had."""
        missing = ctypes.c_int64.from_address(self.addresses["jk_missing"])
        number, missing.value = missing.value - 1, 0
        for title, parts in TOGETHER.items():
            if number in parts:
                names = [part.name.lower() for part in parts]
                links = [_link(name, partial(self.addresses.__getitem__, name)) for name in VARIABLES]
                found = self._loaded(title, names, links)
                for part, name in zip(parts, names, strict=True):
                    ctypes.c_int64.from_address(self.addresses["jk_parts"] + 8 * part).value = found[name]
                return True
        return False

    def _loaded(
        self,
        name: str,
        exported: Sequence[str],
        links: Sequence[External] = (),
        owns: Mapping[str, int] = MappingProxyType({}),
    ) -> dict[str, int]:
        """Where the exported functions of an object, and the words that it owns, are in this process."""

        def ir() -> str:
            variables = {
                name: f"@{name} = global [{count} x i64] zeroinitializer\n" for name, count in owns.items()
            }
            provided = {
                "called": _called(),
                "nearest_single": NEAREST_SINGLE,
                **copying.provided(),
                **moving.provided(),
                **variables,
            }
            text = translated(dispatch.FUNCTIONS, exported, self._constants, provided, dispatch.INLINED)
            return text.replace(f"@{exported[0]}(", "@entry(")

        source = WordSource(name, self._written, ir, (*externals(), *links))
        return {exported[0]: load.address_of(source), **load.functions_of(source, (*exported[1:], *owns))}


def _called() -> str:
    """``called(entry, words, count)``: the C function with so many words, or more."""
    most = ARGUMENTS[-1]
    lines = ["define internal i64 @called(i64 %entry, i64 %words, i64 %count) nounwind {"]
    lines += ["  %f = inttoptr i64 %entry to ptr", "  %w = inttoptr i64 %words to ptr"]
    for count in ARGUMENTS:
        if count < most:
            lines += [f"  %few{count} = icmp sle i64 %count, {count}"]
            lines += [f"  br i1 %few{count}, label %c{count}, label %more{count}", f"c{count}:"]
        lines += [f"  %p{count}.{i} = getelementptr i64, ptr %w, i64 {i}" for i in range(count)]
        lines += [f"  %a{count}.{i} = load i64, ptr %p{count}.{i}" for i in range(count)]
        passed = ", ".join(f"i64 %a{count}.{i}" for i in range(count))
        lines += [f"  %r{count} = call i64 %f({passed})", f"  ret i64 %r{count}"]
        if count < most:
            lines += [f"more{count}:"]
    return "\n".join([*lines, "}", ""])


NEAREST_SINGLE = """define internal i64 @nearest_single(i64 %bits) nounwind {
  %double = bitcast i64 %bits to double
  %single = fptrunc double %double to float
  %back = fpext float %single to double
  %rounded = bitcast double %back to i64
  ret i64 %rounded
}
"""
"""The bits of a double, nearest in float32."""
