"""Functions in the language of loop nests, made from text and called as machine code."""

import ctypes
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jitkernels.native import load
from jitkernels.native.ir import IRSource
from jitkernels.native.language import loops
from jitkernels.native.source import inlined, offset, vectors

Function = Callable[..., Any]
NAMES = {"np": np, "inlined": inlined, "offset": offset, "vectors": vectors}


def written(place: Path, text: str, **around: Any) -> dict[str, Any]:
    """What a module of this text defines; it is a file, as the language reads files."""
    place.write_text(text)
    names = {**NAMES, **around}
    exec(compile(text, str(place), "exec"), names)
    return names


_built = itertools.count()


def nothing() -> None:
    return


def built(name: str, functions: Mapping[str, tuple[Function, Sequence[str]]]) -> dict[str, Any]:
    """Functions and the C types of their arguments, as one object without fast-math flags."""
    program = loops.Program(name)
    program.export("entry", nothing, (), ())
    count = next(_built)  # a symbol has one meaning in a process
    for symbol, (function, arguments) in functions.items():
        program.export(f"{symbol}_{count}", function, arguments, ())
    addresses = load.functions_of(IRSource(name, program.text), tuple(f"{s}_{count}" for s in functions))
    kinds = ([_c_type(text) for text in arguments] for _, arguments in functions.values())
    made = zip(functions, kinds, addresses.values(), strict=True)
    return {symbol: ctypes.CFUNCTYPE(ctypes.c_int64, *kind)(address) for symbol, kind, address in made}


def _c_type(text: str) -> Any:
    return ctypes.c_void_p if "*" in text else ctypes.c_int64


def same(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Where two arrays are equal to the sign of a zero; any NaN is like any other."""
    alike: np.ndarray[Any, Any] = found == expected
    if found.dtype.kind == "f":
        signs = np.signbit(found) == np.signbit(expected)
        alike = alike & signs | np.isnan(found) & np.isnan(expected)
    return alike
