"""Models written in PyTorch, which the benchmark ``torch-compile`` times and tests of the backend run.

A multilayer perceptron, LeNet-5 (LeCun et al. 1998), ResNet-18 (He et al. 2015), MobileNetV2 (Sandler et al. 2018), a
block of GPT-2 (Radford et al. 2019), an LSTM, and a variational autoencoder (Kingma and Welling 2013).
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional


class TorchModel(NamedTuple):
    """How a model and an input of it are made; the latter for a batch."""

    make: Callable[[], nn.Module]
    make_input: Callable[[int], Tensor]
    batch: int


def perceptron() -> nn.Module:
    return nn.Sequential(
        nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)
    )  # fmt: skip


def lenet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip


class ResidualBlock(nn.Module):  # type: ignore[misc]
    """Two convolutions of 3 x 3, and what they are added to."""

    def __init__(self, channels: int, filters: int, stride: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(channels, filters, 3, stride, 1, bias=False), nn.BatchNorm2d(filters), nn.ReLU(),
            nn.Conv2d(filters, filters, 3, 1, 1, bias=False), nn.BatchNorm2d(filters),
        )  # fmt: skip
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels != filters:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, filters, 1, stride, bias=False), nn.BatchNorm2d(filters))

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.layers(x) + self.shortcut(x))


def resnet18() -> nn.Module:
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
    ]  # fmt: skip
    channels = 64
    for filters in (64, 128, 256, 512):
        for block in range(2):
            layers.append(ResidualBlock(channels, filters, 2 if filters > 64 and block == 0 else 1))
            channels = filters
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


class InvertedResidual(nn.Module):  # type: ignore[misc]
    """A depthwise convolution between two of 1 x 1, the first of which widens by a factor."""

    def __init__(self, channels: int, filters: int, stride: int, factor: int) -> None:
        super().__init__()
        inner = channels * factor
        layers: list[nn.Module] = []
        if factor != 1:
            layers += [nn.Conv2d(channels, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU6()]
        layers += [
            nn.Conv2d(inner, inner, 3, stride, 1, groups=inner, bias=False), nn.BatchNorm2d(inner), nn.ReLU6(),
            nn.Conv2d(inner, filters, 1, bias=False), nn.BatchNorm2d(filters),
        ]  # fmt: skip
        self.layers, self.is_residual = nn.Sequential(*layers), stride == 1 and channels == filters

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layers(x)
        return x + y if self.is_residual else y


MOBILE_STAGES = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip
"""Factor, channels, blocks and stride of each stage, table 2 of the paper."""


def mobilenet_v2() -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6()]
    channels = 32
    for factor, filters, blocks, stride in MOBILE_STAGES:
        for block in range(blocks):
            layers.append(InvertedResidual(channels, filters, stride if block == 0 else 1, factor))
            channels = filters
    layers += [nn.Conv2d(channels, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.ReLU6()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000))


class GptBlock(nn.Module):  # type: ignore[misc]
    """Causal attention of several heads, and a perceptron, each behind a layer norm and added to its input."""

    def __init__(self, width: int = 256, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.first_norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.first_norm(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.perceptron(self.second_norm(x))


class Recurrent(nn.Module):  # type: ignore[misc]
    """An LSTM over sequences, and a layer on its last output."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(64, 128, batch_first=True), nn.Linear(128, 10)

    def forward(self, x: Tensor) -> Tensor:
        outputs, _ = self.lstm(x)
        y: Tensor = self.head(outputs[:, -1])
        return y


class Autoencoder(nn.Module):  # type: ignore[misc]
    """A variational autoencoder: random draws around the encoded means, decoded."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(784, 400), nn.ReLU())
        self.mean, self.log_variance = nn.Linear(400, 20), nn.Linear(400, 20)
        self.decoder = nn.Sequential(nn.Linear(20, 400), nn.ReLU(), nn.Linear(400, 784), nn.Sigmoid())

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.encoder(x)
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        z = mean + torch.exp(0.5 * log_variance) * torch.randn_like(mean)
        y: Tensor = self.decoder(z)
        return y


def _of(*shape: int) -> Callable[[int], Tensor]:
    return lambda batch: torch.randn(batch, *shape)


MODELS = {
    "perceptron": TorchModel(perceptron, _of(784), 64),
    "lenet": TorchModel(lenet, _of(1, 28, 28), 64),
    "resnet18": TorchModel(resnet18, _of(3, 224, 224), 4),
    "mobilenet_v2": TorchModel(mobilenet_v2, _of(3, 224, 224), 4),
    "gpt_block": TorchModel(GptBlock, _of(128, 256), 4),
    "lstm": TorchModel(Recurrent, _of(32, 64), 16),
    "autoencoder": TorchModel(Autoencoder, _of(784), 64),
}
