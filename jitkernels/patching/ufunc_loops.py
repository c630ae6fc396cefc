"""Replace the inner loops of universal functions, and put them back.

NumPy keeps a function pointer for each combination of types. The ufunc stays the same object; whoever holds it gets the
new loop, and so do its methods. Arrays in a row go to a kernel; short or strided ones, and those that are overwritten,
to the original loop. So do those in which the kernel raises floating-point flags: the original then reports errors as
`scipy.special.errstate` says.
"""

import ctypes
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

from jitkernels.codegen.ir_source import IRSource
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import External, vectors
from jitkernels.core import cpu_target, dtypes
from jitkernels.errors import NotUsableError
from jitkernels.runtime import fp_status
from jitkernels.runtime.loading.loader import address_of

MIN_LOOP_ELEMENTS = 16
"""Elements from which on a kernel is faster than a loop that calls a function for each."""
BLOCK_ELEMENTS = 8192
"""Elements per thread at least: some tens of microseconds."""
REPLACE_LOOP = 30
"""The index of ``PyUFunc_ReplaceLoopBySignature`` in NumPy's table, which never changes."""

LOOPS_OFFSET = object.__basicsize__ + 4 * ctypes.sizeof(ctypes.c_int)
"""The offset of the array of loops in ``PyUFuncObject``, behind nin, nout, nargs and identity."""


def elementwise_kernel(name: str, function: Callable[..., Any], dtype: str, inputs: int) -> RangeKernel:
    """Make the kernel ``(x, z, n)`` or ``(x, y, z, n)`` of a scalar function in the language of kernels."""
    target = cpu_target.target()
    lanes, pointer = target.lanes(dtype), f"{dtype}*"

    def one(x: Any, z: Any, n: int, begin: int, end: int) -> None:
        for i in vectors(begin, end, lanes):
            z[i] = function(x[i])

    def two(x: Any, y: Any, z: Any, n: int, begin: int, end: int) -> None:
        for i in vectors(begin, end, lanes):
            z[i] = function(x[i], y[i])

    return RangeKernel(
        f"{name}_{dtype}",
        (*[pointer] * (inputs + 1), "int64"),
        one if inputs == 1 else two,
        extent=inputs + 1,
        block=BLOCK_ELEMENTS,
        parallel=True,
        flags=("contract",),
        vector_bytes=target.vector_bytes,
    )


def loop_source(kernel: RangeKernel, dtype: str, original: int) -> IRSource:
    """The source of a loop of NumPy's C API that calls the kernel, or the loop at the address `original`."""
    count, size = len(kernel.arguments) - 1, dtypes.named(dtype).size
    lines = []
    for i in range(count):
        lines += [
            f"  %args{i} = getelementptr ptr, ptr %args, i64 {i}",
            f"  %a{i} = load ptr, ptr %args{i}",
            f"  %steps{i} = getelementptr i64, ptr %steps, i64 {i}",
            f"  %s{i} = load i64, ptr %steps{i}",
            f"  %c{i} = icmp eq i64 %s{i}, {size}",
        ]
    tests = [f"%c{i}" for i in range(count)] + ["%is_long"]
    for i in range(count - 1):
        lines.append(f"  %d{i} = icmp ne ptr %a{i}, %a{count - 1}")
        tests.append(f"%d{i}")
    lines.append("  %t0 = and i1 true, true")
    for i, test in enumerate(tests):
        lines.append(f"  %t{i + 1} = and i1 %t{i}, {test}")
    kinds = ", ".join(["ptr"] * count)
    passed = ", ".join(f"ptr %a{i}" for i in range(count))
    body = "\n".join(lines)
    text = f"""{fp_status.text(with_underflow=True)}declare i64 @ufunc_kernel({kinds}, i64)
declare void @ufunc_original(ptr, ptr, ptr, ptr)
define void @entry(ptr %args, ptr %dims, ptr %steps, ptr %data) nounwind {{
start:
  %n = load i64, ptr %dims
  %is_long = icmp sge i64 %n, {MIN_LOOP_ELEMENTS}
{body}
  br i1 %t{len(tests)}, label %ours, label %theirs
ours:
  %before = call i32 @flags_now()
  call void @flags_become(i32 0)
  %status = call i64 @ufunc_kernel({passed}, i64 %n)
  %raised = call i32 @flags_now()
  call void @flags_become(i32 %before)
  %is_fine = icmp eq i32 %raised, 0
  %is_done = icmp eq i64 %status, 0
  %is_served = and i1 %is_fine, %is_done
  br i1 %is_served, label %end, label %theirs
theirs:
  call void @ufunc_original(ptr %args, ptr %dims, ptr %steps, ptr %data)
  br label %end
end:
  ret void
}}
"""
    pointers = ("int64*",) * 4
    externals = (
        External("ufunc_kernel", "int64", kernel.arguments, lambda: address_of(kernel), lambda: kernel),
        External("ufunc_original", "void", pointers, lambda: original),
    )
    return IRSource(f"loop_{kernel.name}", text, externals)


@functools.cache
def _replace_loop() -> Callable[..., int]:
    """NumPy's function; it replaces a loop, and returns the one before by the last argument."""
    capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    capsule_pointer.restype, capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = capsule_pointer(_multiarray_umath._UFUNC_API, None)
    address = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[REPLACE_LOOP]
    kinds = (ctypes.py_object, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_void_p))
    return ctypes.PYFUNCTYPE(ctypes.c_int, *kinds)(address or 0)


def exchange(ufunc: np.ufunc, dtype: str, loop: int) -> int:
    """Make the function at an address the loop of one dtype; return the address of the one before.

    Raises NotUsableError if the ufunc has no such loop.
    """
    number = np.dtype(dtype).num
    signature = (ctypes.c_int * ufunc.nargs)(*[number] * ufunc.nargs)
    before = ctypes.c_void_p()
    if _replace_loop()(ufunc, loop, signature, ctypes.byref(before)) != 0 or before.value is None:
        raise NotUsableError(f"{ufunc.__name__} has no loop of {dtype}")
    return before.value


def current_loop(ufunc: np.ufunc, dtype: str) -> int:
    """The address of the loop of one dtype. Raises NotUsableError if there is none."""
    character = np.dtype(dtype).char
    signature = f"{character * ufunc.nin}->{character * ufunc.nout}"
    if signature not in ufunc.types:
        raise NotUsableError(f"{ufunc.__name__} has no loop of {dtype}")
    loops = ctypes.c_void_p.from_address(id(ufunc) + LOOPS_OFFSET).value or 0
    found = (ctypes.c_void_p * ufunc.ntypes).from_address(loops)[ufunc.types.index(signature)]
    return int(found or 0)


@functools.cache
def _loop_of(name: str, function: Callable[..., Any], dtype: str, inputs: int, original: int) -> int:
    return address_of(loop_source(elementwise_kernel(name, function, dtype, inputs), dtype, original))


def install(ufunc: np.ufunc, functions: Mapping[str, Callable[..., Any]]) -> dict[str, int]:
    """Give a ufunc loops of scalar functions, by dtype; return the original ones."""
    originals = {dtype: current_loop(ufunc, dtype) for dtype in functions}
    loops = {
        dtype: _loop_of(ufunc.__name__, function, dtype, ufunc.nin, originals[dtype])
        for dtype, function in functions.items()
    }
    for dtype, loop in loops.items():
        exchange(ufunc, dtype, loop)
    return originals


def put_back(ufunc: np.ufunc, originals: Mapping[str, int]) -> None:
    """Give a ufunc its own loops again."""
    for dtype, loop in originals.items():
        exchange(ufunc, dtype, loop)
