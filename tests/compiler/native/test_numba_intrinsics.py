"""Functions of numba's ``@intrinsic`` in compiled functions: numba compiles them to native functions."""

from typing import Any

import numpy as np
import pytest
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

import jitkernels as jk
from jitkernels.errors import TracingError


def _bits_of(typing_context: Any, x: Any) -> Any:
    """The bits of a float32."""
    if x != types.float32:
        return None

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.int32(types.float32), code


bits_of: Any = intrinsic(_bits_of)


def bits_in_a_loop(x: Any) -> Any:
    result = np.empty(len(x), np.int32)
    for i in range(len(x)):
        result[i] = bits_of(x[i])
    return result


def test_an_intrinsic_computes_what_numba_makes_of_it() -> None:
    x = np.random.default_rng(0).random(100).astype(np.float32)
    np.testing.assert_array_equal(jk.jit(bits_in_a_loop, strict=True)(x), x.view(np.int32))


def test_an_intrinsic_of_other_types_is_refused() -> None:
    with pytest.raises(TracingError, match="numba intrinsic '_bits_of' of float64"):
        jk.jit(bits_in_a_loop, strict=True)(np.ones(3))
    with pytest.raises(NotImplementedError):
        jk.jit(bits_in_a_loop)(np.ones(3))
