"""Image networks whose training steps the benchmark ``image-training`` times: NumPy functions, and the same in torch.

LeNet-5 (LeCun et al. 1998) with ReLU and maxima, AlexNet (Krizhevsky 2014) without dropout, and ResNet-18 (He et al.
2015) with batch norm in training mode. Images have channels last.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import jitkernels as jk
from jitkernels.attrs.schema.signature import AnyArray

EPSILON = np.float32(1e-5)


class Layer(NamedTuple):
    """A convolution of `channels` by `filters` of `kernel` pixels on each side."""

    kernel: int
    channels: int
    filters: int
    stride: int = 1
    padding: int = 0
    is_pooled: bool = False


class Network(NamedTuple):
    """Layers, widths of the dense layers behind them, pixels on each side of an image, and images of a batch."""

    layers: Sequence[Layer]
    widths: Sequence[int]
    pixels: int
    batch: int
    pool: int = 3
    is_residual: bool = False


def _residual_layers() -> Iterator[Layer]:
    """The layers of ResNet-18: the stem, then of each block its two layers and, where sizes change, the projection."""
    yield Layer(7, 3, 64, 2, 3, is_pooled=True)
    channels = 64
    for filters in (64, 128, 256, 512):
        for block in range(2):
            stride = 2 if filters > 64 and block == 0 else 1
            yield Layer(3, channels, filters, stride, 1)
            yield Layer(3, filters, filters, 1, 1)
            if channels != filters:
                yield Layer(1, channels, filters, stride)
            channels = filters


NETWORKS = {
    "lenet": Network(
        (Layer(5, 1, 6, padding=2, is_pooled=True), Layer(5, 6, 16, is_pooled=True)), (400, 120, 84, 10), 28, 64, 2
    ),
    "alexnet": Network(
        (
            Layer(11, 3, 64, 4, 2, is_pooled=True),
            Layer(5, 64, 192, padding=2, is_pooled=True),
            Layer(3, 192, 384, padding=1),
            Layer(3, 384, 256, padding=1),
            Layer(3, 256, 256, padding=1, is_pooled=True),
        ),
        (9216, 4096, 4096, 1000),
        224,
        16,
    ),
    "resnet18": Network(tuple(_residual_layers()), (512, 1000), 224, 8, is_residual=True),
}
"""By name."""


def parameters_of(network: Network) -> list[AnyArray]:
    """Random filters (He et al. 2015), each with biases or with factors and shifts, then dense weights and biases."""
    rng, arrays = np.random.default_rng(0), []
    for layer in network.layers:
        shape = layer.kernel, layer.kernel, layer.channels, layer.filters
        arrays.append(rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[:3])))
        arrays += [np.ones(layer.filters)] if network.is_residual else []
        arrays.append(np.zeros(layer.filters))
    for rows, columns in zip(network.widths, network.widths[1:], strict=False):
        arrays += [rng.standard_normal((rows, columns)) * np.sqrt(2 / rows), np.zeros(columns)]
    return [array.astype(np.float32) for array in arrays]


def batch_of(network: Network) -> tuple[AnyArray, AnyArray]:
    """Random images, and one-hot vectors of random classes."""
    rng, classes = np.random.default_rng(1), network.widths[-1]
    shape = network.batch, network.pixels, network.pixels, network.layers[0].channels
    labels = np.eye(classes, dtype=np.float32)[rng.integers(0, classes, network.batch)]
    return rng.standard_normal(shape).astype(np.float32), labels


def loss_of(network: Network) -> Callable[..., Any]:
    """The function of parameters, images and one-hot vectors that gives the mean cross entropy."""
    features = residual_features if network.is_residual else plain_features

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        h, dense = features(network, parameters, x), parameters[-2 * (len(network.widths) - 1) :]
        for i in range(0, len(dense), 2):
            h = h @ dense[i] + dense[i + 1]
            h = np.maximum(h, 0) if i + 2 < len(dense) else h
        h = h - h.max(axis=-1, keepdims=True)
        return -np.mean(np.sum(y * (h - np.log(np.sum(np.exp(h), axis=-1, keepdims=True))), axis=-1))

    return loss


def plain_features(network: Network, parameters: Any, x: Any) -> Any:
    """Convolutions with biases and ReLU, some of them pooled."""
    for i, layer in enumerate(network.layers):
        w, bias = parameters[2 * i : 2 * i + 2]
        x = jk.conv2d(x, w, bias, stride=layer.stride, padding=layer.padding, activation="relu")
        x = jk.max_pool2d(x, network.pool, 2) if layer.is_pooled else x
    return x.reshape(len(x), network.widths[0])


def residual_features(network: Network, parameters: Any, x: Any) -> Any:
    """The stem, blocks of two convolutions and what they add to, and the mean of each channel."""

    def normalized(number: int, x: Any) -> Any:
        layer = network.layers[number]
        w, factor, shift = parameters[3 * number : 3 * number + 3]
        z = jk.conv2d(x, w, stride=layer.stride, padding=layer.padding)
        z = z - z.mean(axis=(0, 1, 2))
        return z * (factor / np.sqrt(np.mean(z * z, axis=(0, 1, 2)) + EPSILON)) + shift

    x, number = jk.max_pool2d(np.maximum(normalized(0, x), 0), 3, 2, 1), 1
    while number < len(network.layers):
        z = normalized(number + 1, np.maximum(normalized(number, x), 0))
        has_projection = number + 2 < len(network.layers) and network.layers[number + 2].kernel == 1
        x = np.maximum(z + (normalized(number + 2, x) if has_projection else x), 0)
        number += 3 if has_projection else 2
    return x.mean(axis=(1, 2))


def in_torch(network: Network, parameters: Sequence[AnyArray], torch: Any) -> Any:
    """The same network as a torch module with these parameters, in memory with channels last."""
    nn = torch.nn

    def convolution(layer: Layer) -> list[Any]:
        sizes = layer.channels, layer.filters, layer.kernel, layer.stride, layer.padding
        own = nn.Conv2d(*sizes, bias=not network.is_residual)
        return [own, nn.BatchNorm2d(layer.filters)] if network.is_residual else [own]

    class Residual(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, layers: Sequence[Layer]) -> None:
            super().__init__()
            first, second = (convolution(layer) for layer in layers[:2])
            self.body = nn.Sequential(*first, nn.ReLU(inplace=True), *second)
            self.projection = nn.Sequential(*convolution(layers[2])) if len(layers) > 2 else nn.Identity()

        def forward(self, x: Any) -> Any:
            return torch.relu_(self.body(x) + self.projection(x))

    class Flatten(nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return x.permute(0, 2, 3, 1).reshape(len(x), -1)

    modules: list[Any] = []
    blocks = [*_blocks(network.layers)] if network.is_residual else []
    for layer in network.layers[:1] if network.is_residual else network.layers:
        pool = nn.MaxPool2d(network.pool, 2, 1 if network.is_residual else 0)
        modules += [*convolution(layer), nn.ReLU(inplace=True), *([pool] if layer.is_pooled else [])]
    modules += [*map(Residual, blocks), *([nn.AdaptiveAvgPool2d(1)] if blocks else []), Flatten()]
    for rows, columns in zip(network.widths, network.widths[1:], strict=False):
        modules += [nn.Linear(rows, columns), nn.ReLU(inplace=True)]
    module = nn.Sequential(*modules[:-1])
    with torch.no_grad():
        for own, given in zip(module.parameters(), parameters, strict=True):
            array = torch.from_numpy(given.copy())
            own.copy_(array.permute(3, 2, 0, 1) if array.ndim == 4 else array.T if array.ndim == 2 else array)
    return module.to(memory_format=torch.channels_last)


def _blocks(layers: Sequence[Layer]) -> Iterator[Sequence[Layer]]:
    """The layers of each block behind the stem."""
    number = 1
    while number < len(layers):
        count = 3 if number + 2 < len(layers) and layers[number + 2].kernel == 1 else 2
        yield layers[number : number + count]
        number += count
