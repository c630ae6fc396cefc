"""Integer matrix products of libraries: exact ones are used, others refused with the reason."""

import ctypes
from typing import Any

import cases
import numpy as np
import pytest

import jitkernels as jk
from jitkernels.attrs.schema.registry import implementation
from jitkernels.dispatch.kernel import Kernel
from jitkernels.microkernels.gemm.blas_gemm_int8 import MAX_INT32_STEPS, is_exact

LIBRARIES = ("mkl", "onednn")


def _bytes(address: int, k: int, kind: Any) -> Any:
    return np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(kind)), (k,)).astype(np.int64)


def _store(address: int, value: int) -> None:
    ctypes.c_int32.from_address(address).value = value


def test_saturating_16_bit_sums_are_detected() -> None:
    def exact(a: int, b: int, c: int, k: int) -> None:
        _store(c, int(_bytes(a, k, ctypes.c_uint8) @ _bytes(b, k, ctypes.c_int8)))

    def saturating(a: int, b: int, c: int, k: int) -> None:
        products = np.append(_bytes(a, k, ctypes.c_uint8) * _bytes(b, k, ctypes.c_int8), 0)
        _store(c, int(np.clip(products.reshape(-1, 2).sum(1), -32768, 32767).sum()))

    def through_floats(a: int, b: int, c: int, k: int) -> None:
        _store(c, int(np.float32(_bytes(a, k, ctypes.c_uint8) @ _bytes(b, k, ctypes.c_int8))))

    assert is_exact(exact)
    assert not is_exact(saturating)
    assert not is_exact(through_floats)


@pytest.mark.parametrize("library", LIBRARIES)
def test_unsupported_products_have_a_reason(library: str) -> None:
    found = implementation(jk.MatMulInt8Attr, library)
    assert "with scales" in str(found.reason_against(jk.MatMulInt8Attr(m=3, n=4, k=5, scaled=True)))
    assert "32 bits" in str(found.reason_against(jk.MatMulInt8Attr(m=3, n=4, k=MAX_INT32_STEPS + 1)))


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("m", "n", "k"), [(1, 70, 50), (64, 64, 4099), (200, 200, 64), (3, 5, 0), (2, 0, 7)])
def test_extremes_of_all_sizes(library: str, trans_b: bool, kind: str, parallel: bool, m: int, n: int, k: int) -> None:
    """Results exceed 24 bits, and accumulators are not read before they are complete."""
    attr = jk.MatMulInt8Attr(m=m, n=n, k=k, a_dtype=kind, trans_b=trans_b)
    found = implementation(jk.MatMulInt8Attr, library)
    cases.usable(attr, library)
    limits = np.iinfo(kind)
    a = np.where(np.arange(m * k).reshape(m, k) % 5 == 0, limits.min, limits.max).astype(kind)
    b = np.where(np.arange(n * k).reshape((n, k) if trans_b else (k, n)) % 7 == 0, 127, -128).astype(np.int8)
    c = np.full((m, n), 77, np.int32)
    Kernel(attr, found, {"parallel": parallel}).callable(a, b, c)
    assert np.array_equal(c, a.astype(np.int64) @ (b.T if trans_b else b).astype(np.int64))
