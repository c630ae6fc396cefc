"""The backend beside its models: sizes, parameters, layouts, and what stays torch's."""

import concurrent.futures
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_cases import BACKEND, Recorded, compiled, made


def test_torch_finds_the_backend_by_its_name() -> None:
    assert BACKEND in torch._dynamo.list_backends()


@pytest.mark.parametrize("training", [False, True])
def test_batches_share_code(training: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = Recorded(monkeypatch)
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


def test_parameters_that_change_are_read_again() -> None:
    model, x = made("perceptron")
    call = compiled(model)
    with torch.no_grad():
        for change in (None, "in place", "replaced", "loaded", None):
            first = model[0]
            assert isinstance(first, nn.Linear)
            if change == "in place":
                first.weight.mul_(2)
            if change == "replaced":
                first.weight = nn.Parameter(torch.randn_like(first.weight))
            if change == "loaded":
                model.load_state_dict(made("perceptron")[0].state_dict())
            torch.testing.assert_close(call(x), model(x))


def test_a_node_without_an_operator_stays_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = Recorded(monkeypatch)

    def function(x: Tensor) -> Tensor:
        return torch.special.bessel_j0(x * 2).t().contiguous() + x.t()

    x = torch.randn(3, 5)
    torch.testing.assert_close(compiled(function)(x), function(x))
    assert set(recorded.reasons) == {"aten.special_bessel_j0.default"}


def test_a_node_that_the_compiler_refuses_stays_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = Recorded(monkeypatch)
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


@pytest.mark.parametrize("dimensions", [1, 2])
@pytest.mark.parametrize("parts", ["norm", "norm relu", "relu", "add", "norm add relu", "add relu", "read twice"])
def test_convolutions_fuse_what_follows(parts: str, dimensions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = Recorded(monkeypatch)
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
        torch.testing.assert_close(compiled(function)(x, other), function(x, other), rtol=1e-4, atol=1e-5)
    assert not recorded.reasons
    (module,) = recorded.modules
    targets = [str(node.target) for node in module.source.graph.nodes if node.op == "call_function"]
    assert len(targets) == (2 if parts == "read twice" else 1), targets
