"""GEMV of matrices larger than the caches, four rows at a time, at sizes that a test can afford."""

from typing import Any, Literal

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.attrs.schema.registry import implementation
from jitkernels.dispatch.kernel import Kernel
from jitkernels.gen.gemv import variants
from jitkernels.microkernels.gemv.gemv_n_streaming import ABREAST
from jitkernels.microkernels.gemv.gemv_t_streaming import SUM_BYTES
from jitkernels.microkernels.weight_only_quant.dot_emitter import STREAMED
from jitkernels.tools import testing

WIDE = SUM_BYTES // 4
PLACES: tuple[tuple[Literal["start", "end"], int], ...] = (("end", 0), ("start", 0), ("start", 1))
SIZES = [
    (0, 7), (1, 0), (5, 0), (1, 1), (3, 64), (4, 31), (4, 32), (5, 33), (7, 257), (8, 1024), (11, 1500), (64, 3),
    (255, 9), (256, 4), (257, 8), (1100, 6), (WIDE, 5), (WIDE + 300, 5),
]  # fmt: skip


@pytest.mark.parametrize(
    ("dtype", "trans"),
    [("float32", False), ("float64", False), ("float32", True), ("float64", True), ("bfloat16", True)],
)
@pytest.mark.parametrize(("beta", "parallel"), [(0.0, False), (-1.5, True)])
def test_blocks_of_four_rows_of_any_size(dtype: str, trans: bool, beta: float, parallel: bool) -> None:
    made = implementation(jk.GEMVAttr, "gen")
    for number, (m, n) in enumerate(SIZES):
        attr = jk.GEMVAttr(m=m, n=n, trans=trans, beta=beta, dtype=dtype)
        kernel = Kernel(attr, made, {"algorithm": ABREAST, "parallel": parallel})
        arrays = attr.signature().sample(number)
        if beta == 0:
            arrays[2].view(np.uint8)[...] = 0xFF  # not a number, of any dtype
        right = testing.upcast_reference(attr, [array.copy() for array in arrays])
        for side, apart in PLACES:
            guarded = [testing.Guarded(array, side, apart=apart) for array in arrays]
            kernel.callable(*[guard.array for guard in guarded])
            assert all(guard.intact() for guard in guarded), attr
            testing.assert_close(attr, arrays, [guarded[2].array], right, f"{attr}")


@pytest.mark.parametrize(
    ("wanted", "fields"),
    [
        (ABREAST, {"m": 2048, "n": 4096}),
        (ABREAST, {"m": 4096, "n": 2048, "trans": True}),
        (ABREAST, {"m": 4096, "n": 4096, "trans": True, "dtype": "bfloat16"}),
        (ABREAST, {"m": 1024, "n": 4096, "dtype": "float64"}),
        ("vector", {"m": 8192, "n": 1024}),
        ("vector", {"m": 64, "n": 65536, "trans": True}),
        ("vector", {"m": 3, "n": STREAMED}),
        ("thin", {"m": 100, "n": 4096}),
    ],
)
def test_static_choice_of_the_algorithm(wanted: str, fields: dict[str, Any]) -> None:
    assert variants(jk.GEMVAttr(**fields))[0]["algorithm"] == wanted


@pytest.mark.parametrize("transposed", [False, True])
def test_everyday_calls_of_matrices_from_memory(transposed: bool) -> None:
    """In both orders, and with gaps between rows and elements, against another order of sums."""
    generator = np.random.default_rng(0)
    rows, columns = 517, 4099
    assert 4 * rows * columns >= STREAMED
    matrix = generator.random((rows, columns), np.float32)
    a = matrix.T if transposed else matrix
    x = generator.random(a.shape[1], np.float32)
    right = a.astype(np.float64) @ x
    wide = np.zeros((rows, columns + 5), np.float32)
    wide[:, :columns] = matrix
    gaps = wide[:, :columns].T if transposed else wide[:, :columns]
    spread = np.repeat(x, 2)[::2]
    for one, other in ((a, x), (gaps, x), (a, spread), (a[::-1], x)):
        wanted = right[::-1] if one.strides != a.strides and one.strides[0] < 0 else right
        np.testing.assert_allclose(jk.gemv(one, other), wanted, rtol=1e-4)
