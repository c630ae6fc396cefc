"""``jitkernels run``: run an exported bundle on arrays from files."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.markup import escape

from jitkernels.compiler.export.run_bundle import Bundle
from jitkernels.errors import ArgumentError
from jitkernels.tools.cli import output


def run(folder: Path, inputs: Sequence[Path], target: Path | None) -> int:
    """Print the outputs, and write them to a file if `target` names one."""
    bundle = Bundle(folder)
    arrays = []
    for path in inputs:
        try:
            with path.open("rb") as file:
                arrays.append(np.lib.format.read_array(file, allow_pickle=False))
        except (OSError, ValueError) as error:
            raise ArgumentError(f"{path}: expected a file written by numpy.save: {error}") from error
    results = bundle(*arrays)
    names = [tensor.name for tensor in bundle.about.outputs]
    for tensor, array in zip(bundle.about.outputs, results, strict=True):
        output.console().print(escape(f"{tensor}\n{array}"))
    if target is not None and len(results) == 1:
        with target.open("wb") as file:
            np.save(file, results[0])
    elif target is not None:
        with target.open("wb") as file:
            np.savez(file, **dict(zip(names, results, strict=True)))
    return 0
