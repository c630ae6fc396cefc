"""Columns of Arrow as arguments."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from foreign_values import address, check_shared, check_threads

import jitkernels as jk
from jitkernels.attrs.schema import foreign_arrays


def column(count: int = 1000) -> Any:
    return pa.array(np.linspace(0.0, 1.0, count))


def pointer(array: Any) -> int:
    return int(array.buffers()[1].address + array.offset * array.type.bit_width // 8)


@pytest.mark.parametrize(
    "make",
    [column, lambda: column().slice(10, 50), lambda: pa.array(np.arange(5)), lambda: column().cast(pa.float32())],
)
def test_memory_is_shared(make: Any) -> None:
    value = make()
    check_shared(value, pointer(value), value.to_numpy())


def test_columns_of_tables() -> None:
    """A column of one chunk is shared, one of several is copied to one array."""
    table = pa.table({"a": column()})
    one = table.column("a")
    check_shared(one, pointer(one.chunk(0)), column().to_numpy())
    several = pa.chunked_array([column(), column()])
    found = jk.jit(lambda x: np.exp(x))(several)
    np.testing.assert_allclose(found, np.exp(several.to_numpy()))
    tensor = pa.Tensor.from_numpy(np.eye(4))
    np.testing.assert_array_equal(jk.jit(lambda x: x * 2)(tensor), np.eye(4) * 2)


def test_nulls_are_nan() -> None:
    """As NumPy reads them: in a copy."""
    value = pa.array([1.0, None, 3.0])
    np.testing.assert_array_equal(jk.jit(lambda x: x * 2)(value), [2.0, np.nan, 6.0])
    np.testing.assert_array_equal(foreign_arrays.as_array(value), [1.0, np.nan, 3.0])


def test_what_is_refused() -> None:
    with pytest.raises(jk.ArgumentTypeError, match=r"x: expected an array that NumPy can read, got pyarrow.*string"):
        jk.jit(lambda x: x * 2)(pa.array(["a", "b"]))


def test_results_become_columns_without_a_copy() -> None:
    found = jk.jit(lambda x: np.exp(x))(column())
    assert pointer(pa.array(found)) == address(found)


def test_threads() -> None:
    check_threads(lambda i: pa.array(np.linspace(0.0, i, 1000)))
