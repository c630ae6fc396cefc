"""What tests of the backend share: models of the benchmark at small sizes, and calls beside those of eager torch."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from jitkernels.benchmarks.networks import torch_models
from jitkernels.torch.compiled_module import CompiledModule, live_modules

BACKEND = "jitkernels"
MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "perceptron": (torch_models.perceptron, (5, 784)),
    "lenet": (torch_models.lenet, (3, 1, 28, 28)),
    "residual_block": (lambda: torch_models.ResidualBlock(8, 16, 2), (2, 8, 12, 12)),
    "inverted_residual": (lambda: torch_models.InvertedResidual(8, 8, 1, 4), (2, 8, 9, 9)),
    "gpt_block": (lambda: torch_models.GptBlock(32, 4), (2, 10, 32)),
    "lstm": (torch_models.Recurrent, (2, 5, 64)),
    "autoencoder": (torch_models.Autoencoder, (4, 784)),
}


def made(name: str) -> tuple[nn.Module, Tensor]:
    """A model with the same parameters each time, and an input."""
    torch.manual_seed(0)
    make, shape = MODELS[name]
    return make(), torch.randn(shape)


def compiled(model: Any, **options: Any) -> Any:
    torch._dynamo.reset()
    return torch.compile(model, backend=BACKEND, **options)


def step(model: nn.Module, call: Callable[..., Any], x: Tensor) -> list[Tensor]:
    """The output and all gradients of a training step, with the same random numbers each time."""
    torch.manual_seed(1)
    model.zero_grad()
    x = x.clone().requires_grad_()
    y = call(x)
    y.square().mean().backward()
    assert x.grad is not None
    gradients = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
    return [y.detach(), x.grad, *gradients, *(buffer.clone() for buffer in model.buffers())]


class Recorded:
    """The graphs that the backend compiles from now on."""

    def __init__(self) -> None:
        self._before = {*live_modules}

    @property
    def modules(self) -> list[CompiledModule]:
        return [one for one in live_modules if one not in self._before]

    @property
    def reasons(self) -> dict[str, str]:
        """The targets of nodes that torch runs, and why."""
        return {str(node.target): why for one in self.modules for node, why in one.reasons.items()}
