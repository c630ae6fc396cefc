"""Samples of torch's own tests for its operators: what is compiled gives what eager torch gives.

Each sample is traced to ATen operators, and these run as the backend runs them. Per push one sample of each operator
and dtype; all of them under ``-m full``.
"""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from operator_samples import SEED, TOLERANCES, UNTRACED, cases, of_tensors, samples
from torch.fx.experimental.proxy_tensor import make_fx

from jitkernels.torch.aten_decompositions import decompositions
from jitkernels.torch.compiled_module import CompiledModule
from jitkernels.torch.rewrite_pooling import rewrite_pooling
from jitkernels.torch.run_graph import OTHER_SHAPE

DTYPES = torch.float32, torch.float64, torch.int64, torch.bool, torch.complex64
UNORDERED = "sort", "topk", "mode", "median", "kthvalue", "unique"
"""Operators that give some index of equal elements."""
DECOMPOSED = {"linspace": "of ints, which torch's kernel rounds elsewhere"}
"""Operators whose decompositions by torch give other results than its kernels, and where: the former are expected."""
CASES = cases(DTYPES)


@pytest.mark.per_push(700)
@pytest.mark.parametrize(("info", "dtype"), CASES)
def test_first_sample(info: Any, dtype: torch.dtype) -> None:
    for sample in samples(info, dtype, 1):
        _check(info, sample)


@pytest.mark.full
@pytest.mark.parametrize(("info", "dtype"), CASES)
def test_all_samples(info: Any, dtype: torch.dtype) -> None:
    for sample in samples(info, dtype, None):
        _check(info, sample)


def _check(info: Any, sample: Any) -> None:
    """Compare the operator's compiled graph with the operator itself, unless torch cannot trace the sample."""
    function, tensors = of_tensors(info, sample)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(SEED)
        expected = function(*(one.clone() for one in tensors))
        graph = _graph(function, tensors)
        if graph is None or not all(isinstance(one, torch.Tensor) for one in expected):
            assert info.name in UNTRACED
            return
        if info.name in DECOMPOSED:
            expected = graph(*(one.clone() for one in tensors))
        module = CompiledModule(graph)
        torch.manual_seed(SEED)
        found = module(*(one.clone() for one in tensors))
    assert not [why for why in module.reasons.values() if OTHER_SHAPE in why]
    for own, right in zip(found, expected, strict=True):
        right = right.resolve_conj().resolve_neg()
        assert (own.dtype, own.shape) == (right.dtype, right.shape)
        is_index = not right.is_floating_point() and any(part in info.name for part in UNORDERED)
        if not is_index:
            tolerance = TOLERANCES.get(right.dtype, 0.0)
            torch.testing.assert_close(own, right, rtol=tolerance, atol=tolerance, equal_nan=True, check_stride=False)


def _graph(function: Callable[..., Any], tensors: list[Any]) -> Any:
    """The graph of ATen operators; None where torch cannot trace the function, as where shapes depend on elements.

    What it traces as it stands must be traceable when it is decomposed as well.
    Decompositions write in place, too, so that what they give is made functional again.
    """
    try:
        traced = _traced(function, tensors)
        if any(node.op == "call_function" and _writes(node.target) for node in traced.graph.nodes):
            traced = _traced(traced, tensors)
    except Exception:  # of many types
        try:
            _traced(function, tensors, {})
        except Exception:  # noqa: BLE001  # not ours
            return None
        raise
    traced.graph.eliminate_dead_code()
    rewrite_pooling(traced)
    return traced


def _traced(function: Callable[..., Any], tensors: list[Any], table: Mapping[Any, Any] | None = None) -> Any:
    return make_fx(
        torch.func.functionalize(function), decomposition_table=decompositions() if table is None else table,
        tracing_mode="fake", _allow_non_fake_inputs=True,
    )(*tensors)  # fmt: skip


def _writes(target: Any) -> bool:
    schema = getattr(target, "_schema", None)
    return schema is not None and bool(schema.is_mutable)
