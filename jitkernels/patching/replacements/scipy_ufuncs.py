"""Universal functions of `scipy.special` whose loops are replaced by vectors of the same functions."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths import function_table
from jitkernels.patching.piece import Call, Piece, add
from jitkernels.patching.sample_arrays import normal

DTYPES = ("float32", "float64")


def _scalar(name: str) -> Callable[[str], Any]:
    return lambda dtype: function_table.function(name, dtype)


def _log_expit(dtype: str) -> Any:
    softplus: Any = function_table.function("softplus", dtype)

    @inlined()
    def log_expit(x: Any) -> Any:
        return -softplus(-x)

    return log_expit


def _times_logarithm(name: str) -> Callable[[str], Any]:
    """``x * log(y)``, 0 where x is, unless y is NaN."""

    def made(dtype: str) -> Any:
        log: Any = function_table.function(name, dtype)
        zero, harmless = np.dtype(dtype).type(0), np.dtype(dtype).type(1)

        @inlined()
        def times_logarithm(x: Any, y: Any) -> Any:
            is_nothing = x == zero and y == y
            product = x * log(harmless if is_nothing else y)
            return zero if is_nothing else product

        return times_logarithm

    return made


def _entr(dtype: str) -> Any:
    log: Any = function_table.function("log", dtype)
    number = np.dtype(dtype).type
    zero, one, lowest = number(0), number(1), number(-np.inf)

    @inlined()
    def entr(x: Any) -> Any:
        product = -(x * log(x if x > zero else one))
        outside = zero if x == zero else lowest
        return product if x > zero or x != x else outside

    return entr


FUNCTIONS: dict[str, Callable[[str], Any]] = {
    "expit": _scalar("sigmoid"),
    "log_expit": _log_expit,
    "erf": _scalar("erf"),
    "erfc": _scalar("erfc"),
    "entr": _entr,
    "xlogy": _times_logarithm("log"),
    "xlog1py": _times_logarithm("log1p"),
}
"""The makers of the scalar functions by SciPy's names."""


def _calls(name: str) -> Callable[[], Iterator[Call]]:
    def calls() -> Iterator[Call]:
        for dtype in DTYPES:
            for shape in ((8,), (100,), (1000, 100)):
                x = np.abs(normal(shape, np.dtype(dtype))) + np.dtype(dtype).type(0.1)
                arrays = (x, x + 1) if name.startswith("xlog") else (x,)
                yield Call(f"{dtype}, {' x '.join(map(str, shape))}", f"scipy.special:{name}", arrays)

    return calls


for _name, _maker in FUNCTIONS.items():
    add(
        Piece(
            f"scipy.special:{_name}",
            {dtype: _maker(dtype) for dtype in DTYPES},
            "arrays of float32 and float64 in a row, 16 elements or more, not written in place",
            _calls(_name),
        )
    )
