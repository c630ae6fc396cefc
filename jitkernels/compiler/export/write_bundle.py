"""Writing a bundle: the files of one compiled program, all of them or none."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jitkernels import machine
from jitkernels.bundles import texts
from jitkernels.bundles.description import CHECKED, LINE, Description, Tensor, checksum, laid_out
from jitkernels.bundles.entry import entry_source
from jitkernels.bundles.objects import object_of
from jitkernels.errors import ArgumentError, BundleError, shown
from jitkernels.graph import extents
from jitkernels.graph.program import Program, Segment


def write(
    directory: Path,
    name: str,
    program: Program,
    given: Sequence[tuple[str, Any, bool]],
    values: Mapping[str, int],
) -> Description:
    """Write a bundle into a folder, which is made if there is none.

    `given`: for each input of the graph its name, an example, and whether that is a weight. `values`: of the symbols.
    Raises BundleError for what cannot be put into one, ArgumentError for a name that is none in C.
    """
    if not name.isidentifier() or not name.isascii():
        raise ArgumentError(f"name: expected a name as C has them, got {shown(name)}")
    if len(program.steps) != 1 or not isinstance(program.steps[0], Segment):
        by_numpy = ", ".join(step.operation for step in program.steps if not isinstance(step, Segment))
        raise BundleError(
            f"{name}: {f'NumPy does a part of it ({by_numpy})' if by_numpy else 'nothing is computed'}"
        )
    segment = program.steps[0]
    if segment.calls_python:
        raise BundleError(f"{name}: NumPy does a part of it")

    def value(extent: Any) -> int:
        return extents.evaluated(extent, values)

    inputs: list[tuple[int, str, Any]] = []
    weights: list[tuple[int, str, Any]] = []
    for node, (label, array, is_weight) in zip(program.graph.inputs, given, strict=True):
        whole = np.asarray(array, node.dtype, order="C")
        (weights if is_weight else inputs).append((program.words[id(node)], label, whole))
    tensors, content = laid_out([(label, array) for _, label, array in weights])
    if any(id(node) not in program.words for node in program.graph.outputs):
        raise BundleError(f"{name}: a result lies in the memory of an argument")
    outputs = [
        (program.words[id(node)], Tensor(_output(i, program), node.dtype, tuple(map(value, node.shape))))
        for i, node in enumerate(program.graph.outputs)
    ]
    changed = {id(target) for target, _ in program.graph.writes}
    labels = [label for label, _, _ in given]
    begins, arena_bytes = program.arena.places(value)
    source = entry_source(
        f"{name}_run",
        segment.source,
        len(program.words) + len(program.symbols) + 1,
        [(word, i) for i, (word, _, _) in enumerate(inputs)],
        [(word, i) for i, (word, _) in enumerate(outputs)],
        [(word, one.offset) for (word, _, _), one in zip(weights, tensors, strict=True)],
        [(buffer.word, begin) for buffer, begin in zip(program.arena.buffers, begins, strict=True)],
        {word: values[symbol] for symbol, word in program.symbols.items()},
    )
    files = {".o": object_of(name, source, f"{name}_run"), ".weights": content}
    host = machine.target()
    description = Description(
        name=name,
        inputs=tuple(Tensor(label, array.dtype.name, array.shape) for _, label, array in inputs),
        outputs=tuple(one for _, one in outputs),
        weights=tensors,
        written=tuple(
            label for node, label in zip(program.graph.inputs, labels, strict=True) if id(node) in changed
        ),
        arena_bytes=-(-arena_bytes // LINE) * LINE,
        target=host.name,
        features=tuple(sorted(host.features)),
        checksums={end: checksum(files[end]) for end in CHECKED},
    )
    _put(
        directory,
        {
            **{f"{name}{end}": files[end] for end in CHECKED},
            f"{name}.h": texts.header(description).encode(),
            f"{name}.json": description.text.encode(),
            "example.c": texts.c_example(description).encode(),
            "example.py": texts.python_example(description).encode(),
        },
    )
    return description


def _output(number: int, program: Program) -> str:
    return "result" if len(program.graph.outputs) == 1 else f"result_{number}"


def _put(directory: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder: each appears whole, and none if one cannot be written."""
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory, prefix=".bundle-") as folder:
        for name, content in files.items():
            Path(folder, name).write_bytes(content)
        for name in files:
            shutil.move(Path(folder, name), directory / name)
