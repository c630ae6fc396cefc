"""Tensors of a model as arrays; those whose bytes lie in the model's file, or in others, are read when needed."""

import math
from collections.abc import Callable, MutableMapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from jitkernels.errors import ModelError
from jitkernels.onnx.detach_tensors import Span
from jitkernels.onnx.model_source import ModelFile
from jitkernels.onnx.values import MAX_MODEL_ELEMENTS
from jitkernels.onnx.weights import LazyArray

EXTERNAL, LITTLE_BITS = 1, 8
"""``TensorProto.EXTERNAL``; the bits of a byte: elements of fewer share bytes."""


def read_tensor(proto: Any, folder: Path | None) -> Any:
    """The array of a tensor. Raises ModelError where its data do not fit its type and shape."""
    import onnx
    from onnx import numpy_helper

    shape = _shape(proto)
    elements = math.prod(shape)
    if proto.data_type == onnx.TensorProto.STRING:
        if len(proto.string_data) != elements:
            raise ModelError(f"the tensor '{proto.name}' of shape {list(shape)} has {len(proto.string_data)} strings")
        return np.array([one.decode(errors="replace") for one in proto.string_data], object).reshape(shape)
    dtype = _dtype(proto)
    if proto.data_location == EXTERNAL:
        return external_tensor(proto, folder, {}).make()
    bits = _bits(dtype)
    if proto.HasField("raw_data"):
        _check_bytes(proto, shape, bits, len(proto.raw_data))
        if bits >= LITTLE_BITS and np.little_endian:
            return np.frombuffer(proto.raw_data, dtype).reshape(shape)
    try:
        return numpy_helper.to_array(proto)
    except (ValueError, TypeError) as error:
        raise ModelError(f"the tensor '{proto.name}' of shape {list(shape)}: {error}") from None


def lazy_tensor(proto: Any, span: Span, read: Callable[[Span], Any]) -> LazyArray:
    """A tensor whose raw data is read when it is needed. Raises ModelError where that does not fit type and shape."""
    import onnx

    shape, dtype = _shape(proto), _dtype(proto)
    if proto.data_type == onnx.TensorProto.STRING or proto.data_location == EXTERNAL:
        raise ModelError(f"the tensor '{proto.name}' has raw data beside its strings or external data")
    _check_bytes(proto, shape, _bits(dtype), span.end - span.begin)
    return _lazy(proto.data_type, shape, dtype, partial(read, span))


def _lazy(data_type: int, shape: tuple[int, ...], dtype: Any, read: Callable[[], Any]) -> LazyArray:
    """An array whose raw data a function reads."""
    bits = _bits(dtype)

    def make() -> Any:
        import onnx

        data = read()
        if bits >= LITTLE_BITS and np.little_endian:
            array = data.view(dtype).reshape(shape)
            return array if array.flags.aligned else array.copy()  # where its bytes lie in the middle of a model
        packed = onnx.TensorProto(data_type=data_type, dims=shape, raw_data=data.tobytes())
        return onnx.numpy_helper.to_array(packed)

    return LazyArray(shape, dtype, make)


def _shape(proto: Any) -> tuple[int, ...]:
    shape = tuple(int(extent) for extent in proto.dims)
    if any(extent < 0 for extent in shape) or math.prod(shape) > MAX_MODEL_ELEMENTS:
        raise ModelError(f"the tensor '{proto.name}' has the shape {list(shape)}")
    return shape


def _dtype(proto: Any) -> Any:
    import onnx

    try:
        return onnx.helper.tensor_dtype_to_np_dtype(proto.data_type)
    except (KeyError, ValueError):
        raise ModelError(f"the tensor '{proto.name}' has elements of an unknown type, {proto.data_type}") from None


def _check_bytes(proto: Any, shape: Sequence[int], bits: int, size: int) -> None:
    if size != -(-math.prod(shape) * bits // LITTLE_BITS):
        raise ModelError(f"the tensor '{proto.name}' of shape {list(shape)} has {size} bytes")


def _bits(dtype: Any) -> int:
    """The bits of an element as stored in a model."""
    name = np.dtype(dtype).name
    if name.endswith("4") and np.dtype(dtype).itemsize == 1:
        return 4
    if name in ("int2", "uint2"):
        return 2
    return 4 if name.startswith("float4") else np.dtype(dtype).itemsize * LITTLE_BITS


def external_tensor(proto: Any, folder: Path | None, files: MutableMapping[Path, ModelFile]) -> LazyArray:
    """A tensor in a file beside the model, which is read when it is needed; `files`: those that are open."""
    shape, dtype = _shape(proto), _dtype(proto)
    known = {one.key: one.value for one in proto.external_data}
    location = known.get("location", "")
    if folder is None:
        raise ModelError(f"the tensor '{proto.name}' lies in the file '{location}': load the model from its path")
    path = file_beside(folder, location)
    try:
        offset, length = int(known.get("offset", 0)), int(known.get("length", -1))
    except ValueError:
        raise ModelError(f"the tensor '{proto.name}' has an offset or a length that is no int") from None
    size = -(-math.prod(shape) * _bits(dtype) // LITTLE_BITS)
    if length not in (-1, size) or offset < 0 or offset + size > path.stat().st_size:
        raise ModelError(f"the tensor '{proto.name}' of {size} bytes does not fit its part of '{location}'")
    if not size:
        return LazyArray(shape, dtype, lambda: np.zeros(shape, dtype))
    if path not in files:
        files[path] = ModelFile(path)
    files[path].is_linked |= path != folder.resolve() / location
    return _lazy(proto.data_type, shape, dtype, partial(files[path].read, Span(offset, offset + size)))


def file_beside(folder: Path, location: str) -> Path:
    """A file in a folder by its relative path. Raises ModelError for one outside of it, by links too."""
    path = Path(location)
    if not location or path.is_absolute() or ".." in path.parts or "\0" in location or "\\" in location:
        raise ModelError(f"external data in '{location}': expected a file in the folder of the model")
    found = (folder / path).resolve()
    if not found.is_relative_to(folder.resolve()) or not found.is_file():
        raise ModelError(f"external data in '{location}': there is no such file in the folder of the model")
    return found


def read_sparse(proto: Any, folder: Path | None) -> Any:
    """A sparse tensor as a dense array."""
    shape = tuple(int(extent) for extent in proto.dims)
    if any(extent < 0 for extent in shape) or math.prod(shape) > MAX_MODEL_ELEMENTS:
        raise ModelError(f"the sparse tensor '{proto.values.name}' has the shape {list(shape)}")
    values, indices = read_tensor(proto.values, folder), read_tensor(proto.indices, folder)
    if indices.ndim == 2 and indices.shape[1] == len(shape):
        indices = np.ravel_multi_index(tuple(indices.T), shape, mode="clip")
    if indices.shape != values.shape or (indices.size and not 0 <= indices.min() <= indices.max() < math.prod(shape)):
        raise ModelError(f"the sparse tensor '{proto.values.name}' has indices outside of its shape")
    dense = np.zeros(math.prod(shape), values.dtype)
    dense[indices] = values
    return dense.reshape(shape)
