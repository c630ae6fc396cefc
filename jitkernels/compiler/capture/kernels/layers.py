"""What operators of networks are written with, in all front ends: images with channels last, and standardized rows."""

from typing import Any

import numpy as np


def images(x: Any) -> Any:
    """An array of channels first as images with channels last, those of one dimension a row high."""
    x = x if x.ndim == 4 else np.expand_dims(x, 2)
    return np.transpose(x, (0, 2, 3, 1))


def channels_first(x: Any, dimensions: int) -> Any:
    """Images with channels last as an array of channels first."""
    x = np.transpose(x, (0, 3, 1, 2))
    return x if dimensions == 4 else np.squeeze(x, 2)


def of_channels(values: Any, dimensions: int) -> Any:
    """A vector of channels, for the second of so many dimensions."""
    return np.reshape(values, (-1, *(1,) * (dimensions - 2)))


def standardized(x: Any, axes: tuple[int, ...], epsilon: float) -> tuple[Any, Any, Any]:
    """Elements less their mean over axes, divided by their deviation; the mean; the inverse deviation."""
    one, added = x.dtype.type(1), x.dtype.type(epsilon)
    mean = np.mean(x, axis=axes, keepdims=True)
    centred = x - mean
    variance = np.mean(centred * centred, axis=axes, keepdims=True)
    inverse = one / np.sqrt(variance + added)
    return centred * inverse, mean, inverse
