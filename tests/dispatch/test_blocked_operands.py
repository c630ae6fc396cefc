"""Operands copied in blocks give the results of contiguous ones: without rows, and with long rows."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from test_everyday import Giving

import jitkernels as jk
from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import all_schemas
from jitkernels.attrs.schema.schema_queries import inputs_of, spread_of
from jitkernels.benchmarks.peers import array_layouts
from jitkernels.errors import JitKernelsError
from jitkernels.tools import testing

ROWS = [
    pytest.param(row, id=row.kernel_type.name.lower()) for row in all_schemas() if inputs_of(row) and spread_of(row)
]
MOST = 1 << 21
FORMS: dict[str, Callable[[Any], Any]] = {
    "strided": testing.rejected_arguments.strided,
    "wider": lambda value: (
        value.astype({4: f"{value.dtype.kind}8", 8: f"{value.dtype.kind}4"}[value.itemsize])
        if value.itemsize > 2
        else testing.rejected_arguments.strided(value)
    ),
    "columns": array_layouts.columns,
}


def calls(row: type[KernelAttr]) -> Iterator[dict[str, Any]]:
    """Calls of no rows, and of more rows than a block has where each takes a block's whole buffer; of all inputs."""
    base = testing.middle(row, "float64")
    for flag in {a.when for a in inputs_of(row) if a.when is not None}:
        base = testing.sizes.changed(base, {flag: True}) or base
    spread, extents = spread_of(row), testing.sizes.integers(base)
    inner = [name for name in extents if name not in spread]
    for lead, times in ((0, 1), (7, 40)):
        change = dict.fromkeys(spread, lead) | {name: getattr(base, name) * times for name in inner[-1:]}
        attr = testing.sizes.changed(base, change, MOST)
        if attr is not None:
            yield {name: in_half_the_bits(value) for name, value in testing.named(attr).items()}


def in_half_the_bits(value: Any) -> Any:
    """Doubles rounded to floats: of numbers that only doubles tell apart, the order of floats is another."""
    is_double = isinstance(value, np.ndarray) and value.dtype == np.float64
    return value.astype(np.float32).astype(np.float64) if is_double else value


@pytest.mark.parametrize("row", ROWS)
def test_forms_that_pass_through_buffers(row: type[KernelAttr]) -> None:
    function = getattr(jk, row.kernel_type.name.lower())
    for given in calls(row):
        try:
            right = as_tuple(function(**given))
        except JitKernelsError:
            continue  # of a transposed matrix, or of no rows where the row wants some
        arrays = [name for name, value in given.items() if isinstance(value, np.ndarray) and value.ndim]
        for name, form in FORMS.items():
            for some in (arrays,) if name == "columns" else (arrays, arrays[:1], arrays[1:2]):
                formed = given | {one: form(given[one]) for one in some}
                near = 1e-3 if name == "wider" else 1e-9
                for got, wanted in zip(as_tuple(function(**formed)), right, strict=True):
                    assert got.shape == wanted.shape
                    np.testing.assert_allclose(got, wanted, err_msg=f"{name} {some}", rtol=near, atol=near)


def as_tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (np.asarray(results),)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
def test_bins_of_no_elements_are_empty(dtype: str) -> None:
    for shape in ((0,), (0, 40), (3, 0)):
        for _ in range(3):
            kept = np.full(10, 7)
            del kept  # whose memory the result may get
            assert not jk.histogram(np.zeros(shape, dtype)).any()


@pytest.mark.parametrize("name", ["matmul", "matmul_batched", "matmul_epilogue", "gemv"])
def test_transposed_matrices_in_calls_that_python_serves(name: str) -> None:
    """Also where one of them is taken for each of a batch."""
    generator = np.random.default_rng(0)
    for shape in ((5, 7), (2, 5, 7)) if name in ("matmul", "matmul_batched") else ((5, 7),):
        a, b = generator.standard_normal(shape), generator.standard_normal((7,) if name == "gemv" else (7, 4))
        more = (generator.standard_normal(4),) if name == "matmul_epilogue" else ()
        right = getattr(jk, name)(a, b, *more)
        for one, other in ((np.asfortranarray(a), b), (a, np.asfortranarray(b))):
            for given in ((Giving(one), other), (one, Giving(other))):
                got = getattr(jk, name)(*given, *more)
                np.testing.assert_allclose(got, right, rtol=1e-12, atol=1e-12)
            with jk.use("refer"):
                np.testing.assert_allclose(getattr(jk, name)(one, other, *more), right, rtol=1e-12, atol=1e-12)
