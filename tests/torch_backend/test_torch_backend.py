"""The backend beside its models: sizes, parameters, layouts, and what stays torch's."""

import concurrent.futures
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch_cases import BACKEND, Recorded, compiled, made

from jitkernels.torch.compiled_module import CompiledModule


def test_torch_finds_the_backend_by_its_name() -> None:
    assert BACKEND in torch._dynamo.list_backends()


@pytest.mark.parametrize("training", [False, True])
def test_batches_share_code(training: bool) -> None:
    recorded = Recorded()
    model, _ = made("lenet")
    call = compiled(model)
    for batch in (4, 6, 9, 13, 5, 7, 8, 10, 11, 12, 14, 15):  # beyond 15 torch itself guards convolutions
        x = torch.randn(batch, 1, 28, 28, requires_grad=training)
        with torch.set_grad_enabled(training):
            y = call(x)
            torch.testing.assert_close(y, model(x), rtol=1e-4, atol=1e-5)
            if training:
                y.sum().backward()
    directions = 2 if training else 1
    assert len(recorded.modules) == 2 * directions, "a first batch, and any other one"
    functions = [function for one in recorded.modules for function in one.functions]
    per_function = [len(function.specializations) for function in functions]
    assert max(per_function) <= 3, "classes of sizes, for which kernels differ"


@pytest.mark.parametrize("freezes", [False, True])
def test_parameters_that_change_are_read_again(freezes: bool) -> None:
    model, x = made("perceptron")
    call = compiled(model, options={"freeze": freezes})
    with torch.no_grad():
        for change in (None, "in place", "replaced", "loaded", None, *([] if freezes else ["through data"])):
            first = model[0]
            assert isinstance(first, nn.Linear)
            if change == "in place":
                first.weight.mul_(2)
            if change == "through data":
                first.weight.data.mul_(3)
            if change == "replaced":
                first.weight = nn.Parameter(torch.randn_like(first.weight))
            if change == "loaded":
                model.load_state_dict(made("perceptron")[0].state_dict())
            torch.testing.assert_close(call(x), model(x))


def test_a_node_without_an_operator_stays_torchs() -> None:
    recorded = Recorded()

    def function(x: Tensor) -> Tensor:
        return torch.special.bessel_j0(x * 2).t().contiguous() + x.t()

    x = torch.randn(3, 5)
    torch.testing.assert_close(compiled(function)(x), function(x))
    assert set(recorded.reasons) == {"aten.special_bessel_j0.default"}


def test_a_node_that_the_compiler_refuses_stays_torchs() -> None:
    recorded = Recorded()
    layer, x = nn.Conv3d(2, 3, 2), torch.randn(1, 2, 4, 4, 4)

    def function(x: Tensor) -> Tensor:
        return torch.relu(layer(torch.exp(x)))

    call = compiled(function)
    for _ in range(2):
        torch.testing.assert_close(call(x), function(x))
    assert "3 dimensions" in recorded.reasons["aten.convolution.default"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_dtypes(dtype: torch.dtype) -> None:
    def function(x: Tensor) -> Tensor:
        return torch.softmax(x * 2 + 1, -1)

    x = torch.randn(3, 5, dtype=dtype)
    torch.testing.assert_close(compiled(function)(x), function(x))


@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "strided", "expanded", "offset"])
def test_layouts_of_inputs_and_results(layout: str) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU())
    x = {
        "contiguous": torch.randn(2, 3, 8, 8),
        "channels_last": torch.randn(2, 3, 8, 8).contiguous(memory_format=torch.channels_last),
        "strided": torch.randn(2, 3, 16, 16)[:, :, ::2, ::2],
        "expanded": torch.randn(1, 3, 8, 8).expand(2, 3, 8, 8),
        "offset": torch.randn(3, 3, 8, 8)[1:],
    }[layout]
    with torch.no_grad():
        found, expected = compiled(model)(x), model(x)
    torch.testing.assert_close(found, expected, check_stride=True)


def test_arguments_that_are_written_to_are_written_to() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        x.add_(y)
        return x * 2

    x, y = torch.randn(5), torch.randn(5)
    expected = function(own := x.clone(), y)
    torch.testing.assert_close(compiled(function)(x, y), expected)
    torch.testing.assert_close(x, own)


def test_views_numbers_and_lists_as_results() -> None:
    def function(x: Tensor) -> Any:
        return {"view": x[1:].t(), "sum": x.sum(), "again": [x, x + 1], "size": x.shape[0]}

    x = torch.randn(4, 3)
    found, expected = compiled(function)(x), function(x)
    torch.testing.assert_close(found, expected)
    found["view"].zero_()
    assert not x[1:].any(), "the view shares the memory of the argument"


def test_special_values() -> None:
    def function(x: Tensor) -> Any:
        return torch.sort(x, descending=True)[0], x.clamp(-1, 1), torch.relu(x), x.amax(), torch.exp(x), x.long() // 2

    x = torch.tensor([0.0, -0.0, float("inf"), -3.0, 1e-40, 5.5])
    torch.testing.assert_close(compiled(function)(x), function(x))
    x[1] = float("nan")
    for found, expected in zip(compiled(function)(x)[:5], function(x)[:5], strict=True):
        torch.testing.assert_close(found, expected, equal_nan=True)


def test_empty_tensors() -> None:
    def function(x: Tensor) -> Any:
        return x * 2, x.sum(), torch.cat([x, x])

    torch.testing.assert_close(compiled(function)(torch.randn(0, 3)), function(torch.randn(0, 3)))


def test_threads_share_a_compiled_model() -> None:
    model, x = made("lenet")
    with torch.no_grad():
        call, expected = compiled(model), model(x)
        call(x)

        def many(_: int) -> list[Tensor]:
            with torch.no_grad():
                return [call(x) for _ in range(20)]

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for results in pool.map(many, range(4)):
                for found in results:
                    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_double_gradients_are_torchs_error() -> None:
    call = compiled(lambda x: (x * x).sum())
    x = torch.randn(3, requires_grad=True)
    (gradient,) = torch.autograd.grad(call(x), x, create_graph=True)
    with pytest.raises(RuntimeError, match="does not currently support double backward"):
        gradient.sum().backward()


@pytest.mark.parametrize("freezes", [False, True])
@pytest.mark.parametrize("dimensions", [1, 2])
@pytest.mark.parametrize("parts", ["norm", "norm relu", "relu", "add", "norm add relu", "add relu", "read twice"])
def test_convolutions_fuse_what_follows(parts: str, dimensions: int, freezes: bool) -> None:
    recorded = Recorded()
    torch.manual_seed(0)
    layer: Any = (nn.Conv1d if dimensions == 1 else nn.Conv2d)(3, 5, 3, padding=1)
    norm: Any = (nn.BatchNorm1d if dimensions == 1 else nn.BatchNorm2d)(5).eval()
    with torch.no_grad():
        for tensor in (norm.running_mean, norm.weight, norm.bias):
            tensor.copy_(torch.randn_like(tensor))
        norm.running_var.uniform_(0.5, 2)

    def function(x: Tensor, other: Tensor) -> Any:
        first = y = layer(x)
        y = norm(y) if "norm" in parts else y
        y = y + other if "add" in parts else y
        y = torch.relu(y) if "relu" in parts else y
        return (first, first * 2) if parts == "read twice" else y

    shape = (7,) * dimensions
    x, other = torch.randn(2, 3, *shape), torch.randn(2, 5, *shape)
    with torch.no_grad():
        call = compiled(function, options={"freeze": freezes})
        torch.testing.assert_close(call(x, other), function(x, other), rtol=1e-4, atol=1e-5)
    assert not recorded.reasons
    (module,) = recorded.modules
    targets = [str(node.target) for node in module.source.graph.nodes if node.op == "call_function"]
    assert len(targets) == (2 if parts == "read twice" else 1), targets


def test_unknown_options_are_refused() -> None:
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="options: expected 'freeze' alone, got 'frozen'"):
        compiled(lambda x: x * 2, options={"frozen": True})(torch.randn(3))


@pytest.mark.parametrize(
    "function",
    [
        torch.abs,
        torch.sgn,
        torch.linalg.vector_norm,
        torch.angle,
        lambda x: x * 2,
        lambda x: x.conj() + 1,
        torch.square,
    ],
)
@pytest.mark.parametrize("view", ["plain", "conjugate", "negative", "nan"])
def test_complex_numbers_and_lazy_views(function: Any, view: str) -> None:
    x = torch.randn(5, dtype=torch.complex64)
    x[0] = 0
    x = {"plain": x, "conjugate": x.conj(), "negative": x.conj().imag, "nan": torch.tensor([np.nan, -1.0, -0.0])}[view]
    torch.testing.assert_close(compiled(function)(x), function(x), equal_nan=True)


def test_strides_beside_a_node_of_torchs_and_of_expanded_results() -> None:
    def function(x: Tensor) -> Any:
        y = x * 2
        return torch.special.bessel_j0(x).sum(), y.t(), y.sum().expand(3), y[:, None].expand(3, 2, 4), y.sum(0, True)

    def whole(x: Tensor) -> Any:
        return (x * 2).sum().expand(3), (x + 1)[:, None].expand(3, 2, 4), (x * 3).t()

    x = torch.randn(3, 4)
    for one in (function, whole):
        torch.testing.assert_close(compiled(one)(x), one(x), check_stride=True)


def test_gradients_have_the_strides_of_torchs() -> None:
    layer = nn.Conv2d(3, 5, 3)
    for layout in (torch.contiguous_format, torch.channels_last):
        x = torch.randn(2, 3, 8, 8).contiguous(memory_format=layout).requires_grad_()
        found, expected = (
            torch.autograd.grad(call(x).square().sum(), (x, layer.weight)) for call in (compiled(layer), layer)
        )
        torch.testing.assert_close(found[0], expected[0], check_stride=True, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(found[1], expected[1], rtol=1e-4, atol=1e-4)


def test_attention_with_a_masked_row() -> None:
    mask = torch.ones(4, 4, dtype=torch.bool)
    mask[1] = False
    q, k, v = (torch.randn(2, 3, 4, 4, requires_grad=True) for _ in range(3))

    def function(*operands: Tensor) -> Tensor:
        return nn.functional.scaled_dot_product_attention(*operands, attn_mask=mask)

    def results(call: Any) -> list[Tensor]:
        y = call(q, k, v)
        return [y, *torch.autograd.grad(y.square().sum(), (q, k, v))]

    torch.testing.assert_close(results(compiled(function)), results(function), rtol=1e-4, atol=1e-5)


def test_a_call_that_fails_leaves_later_ones_compiled() -> None:
    recorded = Recorded()
    table = torch.randn(5, 3)

    def function(indices: Tensor) -> Tensor:
        return nn.functional.embedding(indices, table) * 2

    call = compiled(function)
    for indices in (torch.tensor([0, 7]), torch.tensor([4, 1])):
        if indices.max() < len(table):
            torch.testing.assert_close(call(indices), function(indices))
        else:
            with pytest.raises(IndexError):
                call(indices)
    assert not recorded.reasons


def test_kept_images_have_channels_last() -> None:
    """Nothing transposes what is kept for gradients; results that users see have torch's strides."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 3, padding=1), nn.ReLU())
    strides = set()

    def pack(tensor: Tensor) -> Tensor:
        strides.add(tensor.stride())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = compiled(model)(torch.randn(2, 3, 8, 8, requires_grad=True))
    assert y.stride() == (256, 64, 8, 1)
    assert (512, 1, 64, 8) in strides


def test_images_with_channels_last_are_not_copied() -> None:
    """Elementwise operators, batch norm and convolutions compute in the order of memory, which is that of kernels."""

    def function(x: Tensor, dy: Tensor, filters: Tensor, wide: Tensor, scale: Tensor) -> list[Tensor]:
        y = torch.relu(torch.ops.aten.convolution(x, filters, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1))
        z = torch.ops.aten.convolution(y, wide, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
        ones = torch.ones_like(scale)
        slope = torch.where(y > 0, dy, dy * 0.5)
        dx, dscale, _ = torch.ops.aten.native_batch_norm_backward(
            slope, y, scale, None, None, scale, ones, True, 1e-5, [True, True, True]
        )
        (dw,) = torch.ops.aten.convolution_backward(
            dx, x, filters, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [False, True, False]
        )[1:2]
        return [y, z, dx, dw, dscale]

    def image(channels: int) -> Tensor:
        return torch.randn(2, channels, 16, 16).to(memory_format=torch.channels_last)

    tensors = image(24), image(40), torch.randn(40, 24, 1, 1), torch.randn(8, 40, 3, 3), torch.rand(40)
    module = CompiledModule(make_fx(function)(*tensors))
    for result, expected in zip(module(*tensors), function(*tensors), strict=True):
        torch.testing.assert_close(result, expected, rtol=1e-3, atol=1e-3)
    assert not module.reasons
    ((compiled_function, traced),) = module._call._functions.values()
    arrays = [tensor.numpy() for tensor in tensors]
    for place, order in traced.transposed:
        arrays[place] = arrays[place].transpose(order)
    text = str(compiled_function.explain(tuple(arrays)))
    whole = [line for line in text.splitlines() if "copy" in line and "[2, " in line]
    assert len(whole) <= 1, text  # of the gradient that becomes the rows of a product


def test_graphs_that_write_to_views_stay_torchs() -> None:
    def function(x: Tensor) -> Tensor:
        y = torch.empty(6)
        y[1:4].copy_(x)
        y[4:6].copy_(y[1:3])
        return y[1:]

    module = CompiledModule(make_fx(function)(torch.ones(3)))
    x = torch.arange(3.0)
    torch.testing.assert_close(module(x), function(x))
    assert set(module.reasons.values()) == {"copy_ writes to a tensor of the graph"}
    assert module.functions == []
