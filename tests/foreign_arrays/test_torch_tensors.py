"""Tensors of torch as arguments: memory, layouts, and what is refused."""

from typing import Any

import numpy as np
import pytest
import torch
from foreign_values import address, check_lifetime, check_shared, check_threads

import jitkernels as jk


def tensor(*shape: int) -> Any:
    return torch.arange(float(np.prod(shape))).reshape(shape) / 10


@pytest.mark.parametrize(
    "make",
    [
        lambda: tensor(6, 8), lambda: tensor(6, 8)[::2], lambda: tensor(6, 8).T, lambda: tensor(1, 8).expand(5, 8),
        lambda: tensor(2, 3, 4).permute(2, 0, 1), lambda: tensor(6, 8).double(), lambda: tensor(6, 8)[1:, 2:5],
        lambda: tensor(2, 3, 4, 5).to(memory_format=torch.channels_last), lambda: torch.tensor(2.5),
    ],
)  # fmt: skip
def test_memory_is_shared(make: Any) -> None:
    value = make()
    check_shared(value, value.data_ptr(), value.numpy())


@pytest.mark.parametrize(
    "name", ["float16", "float32", "float64", "int8", "int32", "int64", "uint8", "bool", "complex64"]
)
def test_dtypes(name: str) -> None:
    value = torch.arange(8).to(getattr(torch, name))
    compiled = jk.jit(lambda x: x + x)
    for _ in range(3):
        found = compiled(value)
        assert found.dtype == np.dtype(name)
        np.testing.assert_array_equal(found, value.numpy() + value.numpy())


def test_results_go_back_without_a_copy() -> None:
    found = jk.jit(lambda x: np.exp(x))(tensor(6, 8))
    back = torch.from_dlpack(found)
    assert back.data_ptr() == address(found)
    lazy = jk.xp.exp(jk.xp.asarray(tensor(6, 8)))
    assert torch.from_dlpack(lazy).data_ptr() == address(np.asarray(lazy))


def test_writes_reach_the_tensor() -> None:
    def double(x: Any) -> None:
        x *= 2

    value = tensor(2, 4)
    jk.jit(double)(value)
    torch.testing.assert_close(value, tensor(2, 4) * 2)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: tensor(4).requires_grad_(), "float32: .*requires grad.*detach"),
        (lambda: tensor(4).bfloat16(), "torch.bfloat16"),
        (lambda: torch.empty(4, device="meta"), "meta"),
        (lambda: torch.eye(4).to_sparse(), "Sparse"),
        (lambda: (tensor(4) + 1j).conj(), "conjugate"),
        (lambda: torch._neg_view(tensor(4)), "negative"),
        (lambda: (tensor(4) + 1j).conj().imag, "negative"),
    ],
)
def test_what_is_refused(make: Any, reason: str) -> None:
    """With the argument's name, and what torch says."""
    compiled = jk.jit(lambda x, y: x + y)
    for _ in range(2):
        with pytest.raises(
            jk.ArgumentTypeError, match=f"y: expected an array that NumPy can read, got torch.*{reason}"
        ):
            compiled(np.ones(4), make())
    with pytest.raises(jk.ArgumentTypeError, match=f"x: .*got torch.*{reason}"):
        jk.vexp(make())


def test_lifetimes_and_threads() -> None:
    check_lifetime(lambda: tensor(1000))
    check_threads(lambda i: tensor(1000) * i)
