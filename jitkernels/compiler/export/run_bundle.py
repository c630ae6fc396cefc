"""Running a bundle from Python, without what it was made with: no compiler, no linker."""

import ctypes
from pathlib import Path
from typing import Any

import numpy as np

from jitkernels import machine
from jitkernels.bundles.description import CHECKED, LINE, Tensor, checksum, described
from jitkernels.errors import ArgumentError, ArgumentTypeError, BundleError, WorkspaceError
from jitkernels.native.placing import place

OUT_OF_BOUNDS = 2


class Bundle:
    """A bundle as a function of NumPy arrays. Threads may call it at once.

    Raises BundleError where the folder has none or several, a damaged one, or one for another processor.
    """

    def __init__(self, directory: Path | str) -> None:
        folder = Path(directory)
        found = [one for one in sorted(folder.glob("*.json")) if one.with_suffix(".o").exists()]
        if len(found) != 1:
            raise BundleError(f"{folder}: expected a folder with one bundle, got {len(found)}")
        try:
            self.about = described(found[0].read_text(errors="replace"))
            files = {end: found[0].with_suffix(end).read_bytes() for end in CHECKED}
        except OSError as error:
            raise BundleError(f"{folder}: a file of the bundle is missing: {error}") from error
        missing = set(self.about.features) - set(machine.target().features)
        if missing:
            raise BundleError(f"{folder}: this processor has no {', '.join(sorted(missing))}")
        for end, content in files.items():
            if checksum(content) != self.about.checksums[end]:
                raise BundleError(
                    f"{found[0].with_suffix(end)}: the file is damaged, or of another export: expected SHA-256 "
                    f"{self.about.checksums[end]}, got {checksum(content)}"
                )
        code, weights = (files[end] for end in CHECKED)
        self._weights = _aligned(len(weights))
        self._weights[:] = np.frombuffer(weights, np.uint8)
        try:
            placed = place(code, f"{self.about.name}_run", _of_system)
        except LookupError as error:
            raise BundleError(f"{folder}: the object file cannot be loaded: {error}") from error
        if placed is None:
            raise BundleError(f"{folder}: the object file is for another system")
        self._placed = placed
        self._run: Any = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)(placed.address)

    def __repr__(self) -> str:
        given = ", ".join(map(str, self.about.inputs))
        return f"<bundle {self.about.name}({given}) -> {', '.join(map(str, self.about.outputs))}>"

    def __call__(self, *inputs: Any) -> list[Any]:
        """The outputs. Raises ArgumentError or ArgumentTypeError for inputs of other shapes or dtypes."""
        about = self.about
        if len(inputs) != len(about.inputs):
            wanted = ", ".join(map(str, about.inputs)) or "no inputs"
            raise ArgumentTypeError(f"{about.name}: expected {wanted}, got {len(inputs)} inputs")
        given = [_checked(one, tensor) for one, tensor in zip(inputs, about.inputs, strict=True)]
        for array, one, tensor in zip(given, inputs, about.inputs, strict=True):
            if tensor.name in about.written and array is not one:
                raise ArgumentError(f"{tensor.name}: expected an array in C order, as it is changed")
        outputs = [np.empty(one.shape, one.dtype) for one in about.outputs]
        arena = _aligned(about.arena_bytes)
        pointers = [
            (ctypes.c_void_p * (len(arrays) + 1))(*(array.ctypes.data for array in arrays))
            for arrays in (given, outputs)
        ]
        status = self._run(*pointers, self._weights.ctypes.data, arena.ctypes.data)
        if status == OUT_OF_BOUNDS:
            raise IndexError("an index is out of bounds")
        if status:
            raise WorkspaceError("there is no memory for a kernel to work in")
        return outputs


def _checked(given: Any, wanted: Tensor) -> Any:
    array = np.asarray(given)
    if array.dtype != wanted.dtype:
        raise ArgumentTypeError(f"{wanted.name}: expected dtype {wanted.dtype}, got {array.dtype}")
    if array.shape != wanted.shape:
        raise ArgumentError(f"{wanted.name}: expected shape {wanted.shape}, got {array.shape}")
    if wanted.shape and array is given and not array.flags.c_contiguous:
        return np.ascontiguousarray(array)
    return array


def _aligned(size: int) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    """Memory that begins at a line."""
    whole = np.zeros(size + LINE, np.uint8)
    begin = -whole.ctypes.data % LINE
    return whole[begin : begin + size]


def _of_system(name: str) -> int:
    return ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value or 0
