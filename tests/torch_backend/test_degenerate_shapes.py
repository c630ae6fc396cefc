"""Operators along an axis of tensors without axes, with empty axes, or with axes of one element."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from functorch.compile import aot_function
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from jitkernels.torch.aten_decompositions import decompositions
from jitkernels.torch.compiled_module import CompiledModule
from jitkernels.torch.dynamo_backend import aot_compilers

SHAPES = (), (1,), (0,), (2, 0), (0, 3), (1, 1), (2, 0, 3), (1, 3, 1)
FUNCTIONS: dict[str, Callable[[Tensor, int], Any]] = {
    "sum": lambda x, dim: x.sum(dim),
    "mean": lambda x, dim: x.mean(dim, keepdim=True),
    "prod": lambda x, dim: x.prod(dim),
    "amax": lambda x, dim: x.amax(dim),
    "max": lambda x, dim: x.max(dim),
    "min": lambda x, dim: x.min(dim, keepdim=True),
    "argmax": lambda x, dim: x.argmax(dim),
    "argmin": lambda x, dim: x.argmin(dim, keepdim=True),
    "any": lambda x, dim: (x > 0).any(dim),
    "all": lambda x, dim: (x > 0).all(dim, keepdim=True),
    "amax of no axis": lambda x, dim: x.amax(()),
    "any of no axis": lambda x, dim: (x > 0).any(()),
    "all of no axis": lambda x, dim: (x > 0).all(()),
    "sum of no axis": lambda x, dim: x.sum(()),
    "squeeze of no axis": lambda x, dim: x.squeeze(()) + 1,
    "flip of no axis": lambda x, dim: x.flip(()),
    "var": lambda x, dim: x.var(dim, correction=0),
    "std": lambda x, dim: x.std(dim, keepdim=True),
    "var_mean": lambda x, dim: torch.var_mean(x, dim, correction=1),
    "logsumexp": lambda x, dim: x.logsumexp(dim),
    "softmax": lambda x, dim: x.softmax(dim),
    "log_softmax": lambda x, dim: x.log_softmax(dim),
    "norm": lambda x, dim: torch.linalg.vector_norm(x, 2, dim),
    "norm of other orders": lambda x, dim: torch.linalg.vector_norm(x, 3, dim),
    "cumsum": lambda x, dim: x.cumsum(dim),
    "cumprod": lambda x, dim: x.cumprod(dim),
    "sort": lambda x, dim: x.sort(dim=dim, stable=True),
    "sort descending": lambda x, dim: x.sort(dim=dim, descending=True, stable=True),
    "topk": lambda x, dim: x.topk(min(1, x.shape[dim] if x.ndim else 1), dim),
    "topk smallest": lambda x, dim: x.topk(min(1, x.shape[dim] if x.ndim else 1), dim, largest=False),
    "flip": lambda x, dim: x.flip(dim),
    "roll": lambda x, dim: x.roll(1, dim),
    "unsqueeze": lambda x, dim: x.unsqueeze(dim),
    "squeeze": lambda x, dim: x.squeeze(dim) + 1,
    "transpose": lambda x, dim: x.transpose(dim, 0) + 1,
    "index_select": lambda x, dim: x.index_select(dim, _indices(x, dim)),
    "gather": lambda x, dim: x.gather(dim, _zeros_like(x, dim)),
    "gather nothing": lambda x, dim: x.gather(dim, torch.zeros((*x.shape[:-1], 0), dtype=torch.int64)),
    "gather nothing of other axes": lambda x, dim: x.gather(dim, torch.zeros((2, 0), dtype=torch.int64)),
    "gather of a vector": lambda x, dim: x.gather(dim, torch.zeros(1, dtype=torch.int64)),
    "scatter nothing": lambda x, dim: x.scatter(dim, torch.zeros((2, 0), dtype=torch.int64), 2.0),
    "scatter_add of a vector": lambda x, dim: x.scatter_add(dim, torch.zeros(1, dtype=torch.int64), torch.ones(1)),
    "scatter": lambda x, dim: x.scatter(dim, _zeros_like(x, dim), x + 1),
    "scatter value": lambda x, dim: x.scatter(dim, _zeros_like(x, dim), 2.0),
    "scatter_add": lambda x, dim: x.scatter_add(dim, _zeros_like(x, dim), x),
    "index_add": lambda x, dim: x.index_add(dim, _indices(x, dim), x),
    "cat": lambda x, dim: torch.cat([x, x], dim),
    "stack": lambda x, dim: torch.stack([x, x], dim),
    "split": lambda x, dim: x.split(1, dim),
    "unbind": lambda x, dim: x.unbind(dim),
    "unfold": lambda x, dim: x.unfold(dim, min(1, x.shape[dim] if x.ndim else 1), 1),
    "slice": lambda x, dim: x.narrow(dim, 0, min(1, x.shape[dim])) * 2,
    "repeat": lambda x, dim: x.repeat(2, *(1,) * x.ndim),
    "pad": lambda x, dim: torch.nn.functional.pad(x, (1, 1)),
    "layer_norm": lambda x, dim: torch.nn.functional.layer_norm(x, x.shape[dim:]),
    "matmul": lambda x, dim: x @ x.transpose(-1, -2),
    "diagonal": lambda x, dim: x.diagonal(0, dim, dim - 1) + 1,
    "tril": lambda x, dim: x.tril(),
    "nan_to_num": lambda x, dim: x.nan_to_num(),
    "where": lambda x, dim: torch.where(x > 0, x, dim),
}
INDEXED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "take": lambda x, index: x.take(index),
    "put": lambda x, index: x.put(index, x.sum()),
    "put more": lambda x, index: x.put(index, x.sum(), accumulate=True),
    "index_put": lambda x, index: x.index_put((index,), x.sum()),
    "index_select": lambda x, index: x.index_select(0, index),
    "index_fill": lambda x, index: x.index_fill(0, index, 2.0),
    "index_add": lambda x, index: x.index_add(0, index, x[:1]),
    "index_copy": lambda x, index: x.index_copy(0, index, x[:1]),
    "gather": lambda x, index: x.sum().gather(0, index - 1),
    "scatter": lambda x, index: x.sum().scatter(0, index - 1, x.prod()),
    "embedding": lambda x, index: torch.nn.functional.embedding(index, x.reshape(-1, 1)),
}
"""Functions of a vector and an index."""


def _indices(x: Tensor, dim: int) -> Tensor:
    """The places along an axis."""
    return torch.arange(x.shape[dim] if x.ndim else 1)


def _zeros_like(x: Tensor, dim: int) -> Tensor:
    """The first place of an axis for each element."""
    return torch.zeros(x.shape, dtype=torch.int64)


@pytest.mark.filterwarnings("ignore:.*degrees of freedom is <= 0")
@pytest.mark.per_push(60)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_along_an_axis(name: str, shape: tuple[int, ...]) -> None:
    """Where torch itself takes the shape, the compiled result is right, and no node stays torch's."""
    x = torch.arange(1.0, 1 + torch.Size(shape).numel()).reshape(shape) - 2
    for dim in (-1, 0):

        def function(x: Tensor, dim: int = dim) -> Any:
            return FUNCTIONS[name](x, dim)

        try:
            expected = function(x)
            make_fx(torch.func.functionalize(function))(x)
        except (RuntimeError, IndexError):
            continue
        graph = make_fx(torch.func.functionalize(function), decomposition_table=decompositions())(x)
        module = CompiledModule(graph)
        found = module(x)
        assert not module.reasons
        torch.testing.assert_close(found, expected, equal_nan=True, check_stride=False)


@pytest.mark.parametrize("name", INDEXED)
def test_indices_without_axes(name: str) -> None:
    """Nothing reads an index while functions and their gradients are traced, and results are right."""
    function, index = INDEXED[name], torch.tensor(1)
    x, y = (torch.arange(1.0, 5.0, requires_grad=True) for _ in range(2))
    expected, found = function(x, index), aot_function(function, **aot_compilers(freezes=False))(y, index)
    torch.testing.assert_close(found, expected)
    (expected.sum() + x.square().sum()).backward()
    (found.sum() + y.square().sum()).backward()
    torch.testing.assert_close(y.grad, x.grad)
