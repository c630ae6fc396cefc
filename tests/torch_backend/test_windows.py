"""Options of pooling and convolutions: one number for both dimensions, windows beyond the padding, other divisors."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from jitkernels.torch.aten_decompositions import decompositions
from jitkernels.torch.compiled_module import CompiledModule

FORMS = {
    "one number": lambda low, high: high,
    "a list of one": lambda low, high: [high],
    "two": lambda low, high: [low, high],
}
"""How two numbers are given, or one for both dimensions."""


def _check(function: Callable[[Tensor], Tensor], x: Tensor) -> None:
    module = CompiledModule(make_fx(function, decomposition_table=decompositions())(x))
    torch.testing.assert_close(module(x), function(x), rtol=1e-5, atol=1e-5, check_stride=False)
    assert not module.reasons


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("divisor", [None, 1, 3, 50])
def test_means(form: str, divisor: int | None) -> None:
    x = torch.randn(2, 3, 7, 9)
    for ceil, includes, sides in itertools.product((False, True), (False, True), ((0, 0), (1, 2), (2, 1))):
        kernel, stride, padding = (FORMS[form](*pair) for pair in ((4, 5), (2, 3), sides))
        function = _mean(kernel, stride, padding, ceil, includes, divisor)
        _check(function, x)
        _check(function, x[0])


def _mean(*options: Any) -> Callable[[Tensor], Tensor]:
    return lambda x: torch.nn.functional.avg_pool2d(x, *options)


@pytest.mark.parametrize("form", FORMS)
def test_convolutions(form: str) -> None:
    weight = torch.randn(4, 3, 2, 2)

    def function(x: Tensor) -> Tensor:
        stride, padding, dilation = (FORMS[form](*pair) for pair in ((2, 3), (0, 1), (1, 2)))
        return torch.nn.functional.conv2d(x, weight, None, stride, padding, dilation)

    def transposed(x: Tensor) -> Tensor:
        stride, padding, output_padding = (FORMS[form](*pair) for pair in ((2, 3), (0, 1), (0, 1)))
        return torch.nn.functional.conv_transpose2d(x, weight.transpose(0, 1), None, stride, padding, output_padding)

    _check(function, torch.randn(2, 3, 8, 9))
    _check(transposed, torch.randn(2, 3, 8, 9))
