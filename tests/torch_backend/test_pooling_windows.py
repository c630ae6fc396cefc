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

FORMS: dict[str, Callable[[int, int], Any]] = {
    "one number": lambda low, high: high,
    "a list of one": lambda low, high: [high],
    "two": lambda low, high: [low, high],
}
"""How two numbers are given, or one for both dimensions."""


def _check(function: Callable[[Tensor], Any], x: Tensor) -> None:
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


def _check_gradients(x: Tensor, weight: Tensor, channels: int, *options: Any) -> None:
    y = torch.ops.aten.convolution(x, weight, None, *options)
    _check(lambda dy: torch.ops.aten.convolution_backward(dy, x, weight, [channels], *options, [True] * 3), y.cos())


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("added", [(0, 0), (1, 1), (2, 3), (3, 1)])
@pytest.mark.parametrize("padding", [(0, 0), (1, 2)])
def test_gradients_of_transposed_convolutions(padding: Any, added: Any, groups: int) -> None:
    """As much output padding as stride, which dilation allows, makes room for windows that are none."""
    x, weight = torch.randn(1, 2, 4, 4), torch.randn(2, 4 // groups, 2, 3)
    _check_gradients(x, weight, 4, [3, 2], padding, [4, 4], True, added, groups)


def test_gradients_of_transposed_convolutions_of_one_dimension() -> None:
    _check_gradients(torch.randn(2, 3, 5), torch.randn(3, 2, 4), 2, [2], [1], [3], True, [2], 1)


@pytest.mark.parametrize("extents", [(9, 11), (10, 12), (11, 13)])
def test_gradients_of_convolutions(extents: tuple[int, int]) -> None:
    """Pixels behind the last window have none."""
    _check_gradients(torch.randn(2, 3, *extents), torch.randn(4, 3, 2, 3), 4, [3, 2], [1, 2], [4, 4], False, [0, 0], 1)
