"""Arrays of JAX as arguments: read-only memory of the CPU."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from foreign_values import address, check_shared, check_threads

import jitkernels as jk

jax.config.update("jax_enable_x64", True)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_memory_is_shared(dtype: str) -> None:
    value = jnp.arange(64, dtype=dtype).reshape(8, 8) / (10 if dtype.startswith("f") else 1)
    value = value.astype(dtype)
    check_shared(value, value.unsafe_buffer_pointer(), np.asarray(value))


def test_results_go_back() -> None:
    found = jk.jit(lambda x: np.exp(x))(jnp.arange(4096.0) / 4096)
    back = jnp.from_dlpack(found)
    np.testing.assert_array_equal(back, found)
    is_aligned = address(found) % 64 == 0  # JAX copies what is not
    assert (back.unsafe_buffer_pointer() == address(found)) == is_aligned


def test_memory_is_read_only() -> None:
    def fill(x: Any) -> None:
        x[...] = 0

    value = jnp.ones(4)
    with pytest.raises(ValueError, match="read-only"):
        jk.jit(fill)(value)
    np.testing.assert_array_equal(value, np.ones(4))


def test_bfloat16() -> None:
    """Kernels compute it in float32; compiled functions fall back to NumPy."""
    value = jnp.arange(4, dtype=jnp.bfloat16)
    np.testing.assert_allclose(jk.vexp(value), np.exp(np.arange(4)), rtol=1e-6)
    assert jk.vexp(value).dtype == np.float32
    assert jk.jit(lambda x: x + x)(value).dtype == value.dtype


def test_threads() -> None:
    check_threads(lambda i: jnp.arange(1000.0) * i)
