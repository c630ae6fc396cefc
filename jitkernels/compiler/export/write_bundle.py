"""Writing a bundle: all files of one compiled program, or none."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jitkernels.compiler.export import templates
from jitkernels.compiler.export.c_entry import entry_source
from jitkernels.compiler.export.link_object import object_of
from jitkernels.compiler.export.manifest import CHECKED, Description, Tensor, checksum, laid_out
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.lowering.compiled_program import CompiledProgram, Segment
from jitkernels.core import cpu_target
from jitkernels.core.cpu_target import CACHE_LINE_BYTES
from jitkernels.errors import ArgumentError, BundleError, shown


def write(
    directory: Path,
    name: str,
    program: CompiledProgram,
    given: Sequence[tuple[str, Any, bool]],
    values: Mapping[str, int],
) -> Description:
    """Write a bundle into a folder, which is created if needed.

    `given`: for each input of the graph its name, an example, and whether it is a weight. `values`: of the symbols.
    Raises BundleError for a program that no bundle can contain, ArgumentError for a name that is no C identifier.
    """
    if not name.isidentifier() or not name.isascii():
        raise ArgumentError(f"name: expected a C identifier, got {shown(name)}")
    if len(program.steps) != 1 or not isinstance(program.steps[0], Segment):
        by_numpy = ", ".join(step.operation for step in program.steps if not isinstance(step, Segment))
        raise BundleError(
            f"{name}: {f'NumPy computes a part of it ({by_numpy})' if by_numpy else 'it computes nothing'}"
        )
    segment = program.steps[0]
    if segment.calls_python:
        raise BundleError(f"{name}: NumPy computes a part of it")

    def value(extent: Any) -> int:
        return symbolic_dims.evaluated(extent, values)

    inputs: list[tuple[int, str, Any]] = []
    weights: list[tuple[int, str, Any]] = []
    for node, (label, array, is_weight) in zip(program.graph.inputs, given, strict=True):
        contiguous = np.asarray(array, node.dtype, order="C")
        (weights if is_weight else inputs).append((program.words[node], label, contiguous))
    tensors, content = laid_out([(label, array) for _, label, array in weights])
    if any(node not in program.words for node in program.graph.outputs):
        raise BundleError(f"{name}: a result shares memory with an argument")
    outputs = [
        (program.words[node], Tensor(_output(i, program), node.dtype, tuple(map(value, node.shape))))
        for i, node in enumerate(program.graph.outputs)
    ]
    changed = {id(target) for target, _ in program.graph.writes}
    labels = [label for label, _, _ in given]
    begins, arena_bytes = program.arena.offsets(value)
    source = entry_source(
        f"{name}_run",
        segment.source,
        len(program.words) + len(program.symbols) + 1,
        [(word, i) for i, (word, _, _) in enumerate(inputs)],
        [(word, i) for i, (word, _) in enumerate(outputs)],
        [(word, tensor.offset) for (word, _, _), tensor in zip(weights, tensors, strict=True)],
        [(buffer.word, begin) for buffer, begin in zip(program.arena.buffers, begins, strict=True)],
        {word: values[symbol] for symbol, word in program.symbols.items()},
    )
    files = {".o": object_of(name, source, f"{name}_run"), ".weights": content}
    host = cpu_target.target()
    description = Description(
        name=name,
        inputs=tuple(Tensor(label, array.dtype.name, array.shape) for _, label, array in inputs),
        outputs=tuple(tensor for _, tensor in outputs),
        weights=tensors,
        written=tuple(label for node, label in zip(program.graph.inputs, labels, strict=True) if id(node) in changed),
        arena_bytes=-(-arena_bytes // CACHE_LINE_BYTES) * CACHE_LINE_BYTES,
        target=host.name,
        features=tuple(sorted(host.features)),
        checksums={end: checksum(files[end]) for end in CHECKED},
    )
    _put(
        directory,
        {
            **{f"{name}{end}": files[end] for end in CHECKED},
            f"{name}.h": templates.header(description).encode(),
            f"{name}.json": description.text.encode(),
            "example.c": templates.c_example(description).encode(),
            "example.py": templates.python_example(description).encode(),
        },
    )
    return description


def _output(number: int, program: CompiledProgram) -> str:
    return "result" if len(program.graph.outputs) == 1 else f"result_{number}"


def _put(directory: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder: each appears complete, and none if one of them fails."""
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory, prefix=".bundle-") as folder:
        for name, content in files.items():
            Path(folder, name).write_bytes(content)
        for name in files:
            shutil.move(Path(folder, name), directory / name)
