"""``jitkernels run``: the outputs of a bundle for arrays in files."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.markup import escape

from jitkernels.bundles.running import Bundle
from jitkernels.cli import output
from jitkernels.errors import ArgumentError


def run(folder: Path, inputs: Sequence[Path], target: Path | None) -> int:
    """Print the outputs, and write them to a file if one is given."""
    bundle = Bundle(folder)
    given = []
    for path in inputs:
        try:
            with path.open("rb") as file:
                given.append(np.lib.format.read_array(file, allow_pickle=False))
        except (OSError, ValueError) as error:
            raise ArgumentError(f"{path}: expected an array as numpy.save writes it: {error}") from error
    results = bundle(*given)
    names = [one.name for one in bundle.about.outputs]
    for tensor, array in zip(bundle.about.outputs, results, strict=True):
        output.console().print(escape(f"{tensor}\n{array}"))
    if target is not None and len(results) == 1:
        with target.open("wb") as file:
            np.save(file, results[0])
    elif target is not None:
        with target.open("wb") as file:
            np.savez(file, **dict(zip(names, results, strict=True)))
    return 0
