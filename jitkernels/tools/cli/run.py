"""``jitkernels run``: run an exported bundle, or an ONNX model, on arrays from files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape

from jitkernels.compiler.export.run_bundle import Bundle
from jitkernels.errors import ArgumentError
from jitkernels.tools.cli import output


def run(folder: Path, inputs: Sequence[Path], target: Path | None) -> int:
    """Print the outputs, and write them to a file if `target` names one."""
    if folder.is_file():
        return _run_model(folder, inputs, target)
    bundle = Bundle(folder)
    results = bundle(*_arrays(inputs))
    tensors = bundle.about.outputs
    _show([str(tensor) for tensor in tensors], [tensor.name for tensor in tensors], results, target)
    return 0


def _run_model(file: Path, inputs: Sequence[Path], target: Path | None) -> int:
    """Run an ONNX model."""
    from jitkernels.onnx import load

    model = load(file)
    names = model.graph.input_names
    arrays = _arrays(inputs)
    if len(arrays) != len(names):
        raise ArgumentError(f"{file}: expected {len(names)} inputs ({', '.join(names)}), got {len(arrays)}")
    results = model.run(None, dict(zip(names, arrays, strict=True)))
    outputs = model.get_outputs()
    _show([str(one) for one in outputs], [one.name for one in outputs], results, target)
    return 0


def _arrays(inputs: Sequence[Path]) -> list[Any]:
    """The arrays of files. Raises ArgumentError for files that NumPy did not write."""
    arrays = []
    for path in inputs:
        try:
            with path.open("rb") as file:
                arrays.append(np.lib.format.read_array(file, allow_pickle=False))
        except (OSError, ValueError) as error:
            raise ArgumentError(f"{path}: expected a file written by numpy.save: {error}") from error
    return arrays


def _show(titles: Sequence[str], names: Sequence[str], results: Sequence[Any], target: Path | None) -> None:
    """Print results, and write them to a file if `target` names one."""
    for title, array in zip(titles, results, strict=True):
        output.console().print(escape(f"{title}\n{array}"))
    if target is not None and len(results) == 1:
        with target.open("wb") as file:
            np.save(file, results[0])
    elif target is not None:
        with target.open("wb") as file:
            np.savez(file, **dict(zip(names, results, strict=True)))
