"""Samples of torch's own tests for its operators: what is compiled gives what eager torch gives.

Each sample is traced to ATen operators, and these run as the backend runs them. Per push one sample of each operator
and dtype; all of them under ``-m full``.
"""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from jitkernels.torch.aten_decompositions import decompositions
from jitkernels.torch.compiled_module import CompiledModule
from jitkernels.torch.rewrite_pooling import rewrite_pooling

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

DTYPES = torch.float32, torch.float64, torch.int64, torch.bool, torch.complex64
TOLERANCES = {torch.float32: 2e-4, torch.complex64: 2e-4, torch.float64: 1e-6, torch.complex128: 1e-6}
EXCLUDED = "jiterator", "sparse."
"""Parts of the names of operators of GPUs, and of tensors that are not dense."""
RANDOM = (
    "uniform", "rand", "normal", "bernoulli", "multinomial", "dropout", "empty", "rrelu", "geometric", "exponential",
    "cauchy", "lowrank",
)  # fmt: skip
"""Parts of the names of operators whose results are random, or anything."""
UNORDERED = "sort", "topk", "mode", "median", "kthvalue", "unique"
"""Operators that give some index of equal elements."""


def _case(info: Any, dtype: torch.dtype) -> Any:
    return pytest.param(info, dtype, id=f"{info.full_name}-{str(dtype)[6:]}")


CASES = [_case(info, dtype) for info in op_db for dtype in DTYPES if dtype in info.dtypes]


@pytest.mark.per_push(700)
@pytest.mark.parametrize(("info", "dtype"), CASES)
def test_first_sample(info: Any, dtype: torch.dtype) -> None:
    for sample in _samples(info, dtype, 1):
        _check(info, sample)


@pytest.mark.full
@pytest.mark.parametrize(("info", "dtype"), CASES)
def test_all_samples(info: Any, dtype: torch.dtype) -> None:
    for sample in _samples(info, dtype, None):
        _check(info, sample)


def _samples(info: Any, dtype: torch.dtype, count: int | None) -> Iterator[Any]:
    torch.manual_seed(0)
    if any(part in info.name for part in (*EXCLUDED, *RANDOM)):
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield from [*info.sample_inputs("cpu", dtype)][:count]
    except (NotImplementedError, ImportError):  # torch's samples need another package or build
        return


def _check(info: Any, sample: Any) -> None:
    """Compare the operator's compiled graph with the operator itself; samples that torch cannot trace are left out."""
    leaves, spec = pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]

    def function(*given: Any) -> list[Any]:
        rest = iter(given)
        args, keywords = pytree.tree_unflatten(
            [next(rest) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves], spec
        )
        return pytree.tree_leaves(info.op(*args, **keywords))  # type: ignore[no-any-return]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = function(*(one.clone() for one in tensors))
        graph = _graph(function, tensors)
        if graph is None or not all(isinstance(one, torch.Tensor) for one in expected):
            return
        found = CompiledModule(graph)(*(one.clone() for one in tensors))
    for own, right in zip(found, expected, strict=True):
        right = right.resolve_conj().resolve_neg()
        assert (own.dtype, own.shape) == (right.dtype, right.shape)
        is_index = not right.is_floating_point() and any(part in info.name for part in UNORDERED)
        if not is_index:
            tolerance = TOLERANCES.get(right.dtype, 0.0)
            torch.testing.assert_close(own, right, rtol=tolerance, atol=tolerance, equal_nan=True, check_stride=False)


def _graph(function: Callable[..., Any], tensors: list[Any]) -> Any:
    """The graph of ATen operators; None where torch cannot trace the function, as where shapes depend on elements."""
    try:
        traced = make_fx(
            torch.func.functionalize(function), decomposition_table=decompositions(), tracing_mode="fake",
            _allow_non_fake_inputs=True,
        )(*tensors)  # fmt: skip
    except Exception:  # noqa: BLE001  # of many types, and not ours
        return None
    traced.graph.eliminate_dead_code()
    rewrite_pooling(traced)
    return traced
