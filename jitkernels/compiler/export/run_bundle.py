"""Running a bundle from Python without a compiler or linker."""

from pathlib import Path
from typing import Any

import numpy as np

from jitkernels.compiler.export.manifest import CHECKED, Tensor, checksum, described
from jitkernels.core import cpu_target
from jitkernels.core.aligned_memory import aligned_memory
from jitkernels.core.c_symbols import symbol_address
from jitkernels.errors import ArgumentError, ArgumentTypeError, BundleError, WorkspaceError
from jitkernels.runtime.cffi_library import function_at, pointer_to, pointers_to
from jitkernels.runtime.loading.elf_loader import load_object

OUT_OF_BOUNDS = 2
RUN_TYPE = "int32_t(*)(const void *const *, void *const *, const void *, void *)"
"""The function type that the header of a bundle declares."""


class Bundle:
    """A bundle as a thread-safe function of NumPy arrays.

    Raises BundleError for a folder with no bundle or several, for a damaged one, and for one for another processor.
    """

    def __init__(self, directory: Path | str) -> None:
        folder = Path(directory)
        descriptions = [path for path in sorted(folder.glob("*.json")) if path.with_suffix(".o").exists()]
        if len(descriptions) != 1:
            raise BundleError(f"{folder}: expected a folder with one bundle, got {len(descriptions)}")
        try:
            self.about = described(descriptions[0].read_text(errors="replace"))
            files = {end: descriptions[0].with_suffix(end).read_bytes() for end in CHECKED}
        except OSError as error:
            raise BundleError(f"{folder}: a file of the bundle is missing: {error}") from error
        missing = set(self.about.features) - set(cpu_target.target().features)
        if missing:
            raise BundleError(f"{folder}: this processor lacks {', '.join(sorted(missing))}")
        for end, content in files.items():
            if checksum(content) != self.about.checksums[end]:
                raise BundleError(
                    f"{descriptions[0].with_suffix(end)}: the file is damaged, or belongs to another export: "
                    f"expected SHA-256 {self.about.checksums[end]}, got {checksum(content)}"
                )
        code, weights = (files[end] for end in CHECKED)
        self._weights = aligned_memory(len(weights))
        self._weights[:] = np.frombuffer(weights, np.uint8)
        try:
            placed = load_object(code, f"{self.about.name}_run", symbol_address)
        except LookupError as error:
            raise BundleError(f"{folder}: the object file cannot be loaded: {error}") from error
        if placed is None:
            raise BundleError(f"{folder}: the object file is for another system")
        self._placed = placed
        self._run = function_at(placed.address, RUN_TYPE)

    def __repr__(self) -> str:
        inputs = ", ".join(map(str, self.about.inputs))
        return f"<bundle {self.about.name}({inputs}) -> {', '.join(map(str, self.about.outputs))}>"

    def __call__(self, *inputs: Any) -> list[Any]:
        """The outputs. Raises ArgumentError or ArgumentTypeError for inputs of other shapes or dtypes."""
        about = self.about
        if len(inputs) != len(about.inputs):
            expected = ", ".join(map(str, about.inputs)) or "no inputs"
            raise ArgumentTypeError(f"{about.name}: expected {expected}, got {len(inputs)} inputs")
        arrays = [_checked(argument, tensor) for argument, tensor in zip(inputs, about.inputs, strict=True)]
        for array, argument, tensor in zip(arrays, inputs, about.inputs, strict=True):
            if tensor.name in about.written and array is not argument:
                raise ArgumentError(f"{tensor.name}: expected an array in C order, since the bundle writes to it")
        outputs = [np.empty(node.shape, node.dtype) for node in about.outputs]
        arena = aligned_memory(about.arena_bytes)
        status = self._run(pointers_to(arrays), pointers_to(outputs), pointer_to(self._weights), pointer_to(arena))
        if status == OUT_OF_BOUNDS:
            raise IndexError("an index is out of bounds")
        if status:
            raise WorkspaceError("a kernel cannot allocate its workspace")
        return outputs


def _checked(argument: Any, expected: Tensor) -> Any:
    array = np.asarray(argument)
    if array.dtype != expected.dtype:
        raise ArgumentTypeError(f"{expected.name}: expected dtype {expected.dtype}, got {array.dtype}")
    if array.shape != expected.shape:
        raise ArgumentError(f"{expected.name}: expected shape {expected.shape}, got {array.shape}")
    if expected.shape and array is argument and not array.flags.c_contiguous:
        return np.ascontiguousarray(array)
    return array
