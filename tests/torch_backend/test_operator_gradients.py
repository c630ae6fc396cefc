"""Gradients of samples of torch's own tests for its operators: those of compiled graphs are those of eager torch.

AOTAutograd makes the graphs of both directions, as under `torch.compile`. Per push one sample of some operators; all
samples of all of them under ``-m full``.
"""

import warnings
from typing import Any

import pytest
import torch
from functorch.compile import aot_function
from operator_samples import SEED, TOLERANCES, cases, of_tensors, samples
from torch_cases import Recorded

from jitkernels.torch.dynamo_backend import aot_compilers
from jitkernels.torch.run_graph import OTHER_SHAPE

CASES = cases((torch.float32, torch.float64), with_gradients=True)


@pytest.mark.per_push(300)
@pytest.mark.parametrize(("info", "dtype"), CASES)
def test_gradients_of_the_first_sample(info: Any, dtype: torch.dtype) -> None:
    for sample in samples(info, dtype, 1, requires_grad=True):
        _check(info, sample)


@pytest.mark.full
@pytest.mark.parametrize(("info", "dtype"), CASES)
def test_gradients_of_all_samples(info: Any, dtype: torch.dtype) -> None:
    for sample in samples(info, dtype, None, requires_grad=True):
        _check(info, sample)


def _check(info: Any, sample: Any) -> None:
    """Compare results and gradients; samples that torch itself cannot trace are left out."""
    function, tensors = of_tensors(info, sample, sample.output_process_fn_grad)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = _gradients(function, tensors)
        try:
            _gradients(aot_function(function, fw_compiler=_uncompiled), tensors)
        except Exception:  # noqa: BLE001  # of many types, and not ours
            return
        recorded = Recorded()
        found = _gradients(aot_function(function, **aot_compilers(freezes=False)), tensors)
    assert not [why for why in recorded.reasons.values() if OTHER_SHAPE in why]
    for own, right in zip(found, expected, strict=True):
        assert (own is None) == (right is None)
        if right is not None:
            assert (own.dtype, own.shape) == (right.dtype, right.shape)
            tolerance = TOLERANCES[right.dtype]
            torch.testing.assert_close(own, right, rtol=tolerance, atol=tolerance, equal_nan=True, check_stride=False)


def _uncompiled(graph: Any, inputs: Any) -> Any:
    return graph


def _gradients(function: Any, tensors: list[torch.Tensor]) -> list[Any]:
    """The gradients of all tensors that have one, of a weighted sum of the results; None where one has none."""
    torch.manual_seed(SEED)  # for samples with dropout
    given = [one.detach().clone().requires_grad_(one.requires_grad) for one in tensors]
    results = [one for one in function(*given) if isinstance(one, torch.Tensor) and one.requires_grad]
    wanted = [one for one in given if one.requires_grad]
    if not results or not wanted:
        return []
    cotangents = [_weights(one) for one in results]
    return list(torch.autograd.grad(results, wanted, cotangents, allow_unused=True))


def _weights(result: torch.Tensor) -> torch.Tensor:
    """A cotangent whose elements differ."""
    size = torch.arange(result.numel(), dtype=torch.float64).reshape(result.shape)
    return (torch.cos(size) + 0.5).to(result.dtype)
