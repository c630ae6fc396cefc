"""Functions in the kernel language, created from text and called as machine code."""

import ctypes
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jitkernels.codegen.ir_source import IRSource
from jitkernels.codegen.python import kernel_module
from jitkernels.codegen.source_protocol import inlined, offset, vectors
from jitkernels.runtime.loading import loader

Function = Callable[..., Any]
NAMES = {"np": np, "inlined": inlined, "offset": offset, "vectors": vectors}


def written(path: Path, text: str, **around: Any) -> dict[str, Any]:
    """Return the names that a module of this text defines; it is a file, as the language reads source files."""
    path.write_text(text)
    names = {**NAMES, **around}
    exec(compile(text, str(path), "exec"), names)
    return names


_built = itertools.count()


def nothing() -> None:
    return


def built(name: str, functions: Mapping[str, tuple[Function, Sequence[str]]]) -> dict[str, Any]:
    """Build functions with the C types of their arguments as one object without fast-math flags."""
    program = kernel_module.KernelModule(name)
    program.export("entry", nothing, (), ())
    count = next(_built)  # symbols are unique within a process
    for symbol, (function, arguments) in functions.items():
        program.export(f"{symbol}_{count}", function, arguments, ())
    addresses = loader.functions_of(IRSource(name, program.text), tuple(f"{s}_{count}" for s in functions))
    kinds = ([_c_type(text) for text in arguments] for _, arguments in functions.values())
    compiled = zip(functions, kinds, addresses.values(), strict=True)
    return {symbol: ctypes.CFUNCTYPE(ctypes.c_int64, *kind)(address) for symbol, kind, address in compiled}


def _c_type(text: str) -> Any:
    return ctypes.c_void_p if "*" in text else ctypes.c_int64


def same(result: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return where two arrays are equal including the sign of zeros; all NaN are equal."""
    equal: np.ndarray[Any, Any] = result == expected
    if result.dtype.kind == "f":
        signs = np.signbit(result) == np.signbit(expected)
        equal = equal & signs | np.isnan(result) & np.isnan(expected)
    return equal
