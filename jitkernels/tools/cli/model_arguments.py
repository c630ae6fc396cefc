"""Models on the command line: inputs by name or in order from files, random ones elsewhere, and symbolic sizes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jitkernels.errors import ArgumentError
from jitkernels.onnx.model_interface import ValueType
from jitkernels.onnx.random_inputs import open_dimensions, random_inputs


def feeds_of(file: Path, declared: Sequence[ValueType], inputs: Sequence[str], dims: Sequence[str]) -> dict[str, Any]:
    """The inputs of a model by name: arrays of ``name=x.npy`` or, in order, of ``x.npy``; others are random."""
    names = [one.name for one in declared]
    feeds, in_order = {}, []
    for text in inputs:
        name, equals, path = text.partition("=")
        if equals and name in names:
            if name in feeds:
                raise ArgumentError(f"--input {text}: expected each input once, got {name} twice")
            feeds[name] = array_of(Path(path))
        elif equals and not Path(text).exists():
            raise ArgumentError(f"--input {text}: expected one of the inputs {', '.join(names)}, got {name!r}")
        else:
            in_order.append(array_of(Path(text)))
    rest = [name for name in names if name not in feeds]
    if len(in_order) > len(rest):
        raise ArgumentError(f"{file}: expected {len(names)} inputs ({', '.join(names)}), got {len(inputs)}")
    feeds.update(zip(rest, in_order, strict=False))
    sizes, known = sizes_of(dims), open_dimensions(declared)
    for name, size in sizes.items():
        if name not in known:
            expected = f"expected one of the dimensions {', '.join(known)}" if known else "the model fixes all sizes"
            raise ArgumentError(f"--dim {name}={size}: {expected}")
    random = random_inputs([one for one in declared if one.name not in feeds], sizes)
    return {name: feeds[name] if name in feeds else random[name] for name in names}


def sizes_of(dims: Sequence[str]) -> dict[str, int]:
    """The sizes of assignments such as ``batch=1``. Raises ArgumentError for other texts."""
    sizes: dict[str, int] = {}
    for text in dims:
        name, _, number = text.rpartition("=")
        if not name or not number.isascii() or not number.isdigit():
            raise ArgumentError(f"--dim {text}: expected a size of a symbolic dimension, such as batch=1")
        sizes[name] = int(number)
    return sizes


def array_of(path: Path) -> Any:
    """The array of a file. Raises ArgumentError for one that NumPy did not write."""
    try:
        with path.open("rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise ArgumentError(f"{path}: expected a file written by numpy.save: {error}") from error


def shapes_of(feeds: Mapping[str, Any]) -> str:
    """Names, dtypes and shapes of inputs as text."""
    return ", ".join(f"{name} {array.dtype}{list(array.shape)}" for name, array in feeds.items())
