"""Writing a bundle: all files of one compiled program, or none."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jitkernels.compiler.export import templates
from jitkernels.compiler.export.c_entry import FrameSlots, entry_source
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
    examples: Sequence[tuple[str, Any, bool]],
    values: Mapping[str, int],
) -> Description:
    """Write a bundle into a folder, which is created if needed.

    `examples`: for each input of the graph its name, an array, and whether it is a weight. `values`: of the symbols.
    Raises BundleError for a program that no bundle can contain, ArgumentError for a name that is no C identifier.
    """
    if not name.isidentifier() or not name.isascii():
        raise ArgumentError(f"name: expected a C identifier, got {shown(name)}")
    segment = _only_segment(name, program)
    inputs, weights = _arrays(program, examples)
    outputs = _outputs(name, program, values)
    tensors, content = laid_out([(label, array) for _, label, array in weights])
    begins, arena_bytes = program.arena.offsets(lambda extent: symbolic_dims.evaluated(extent, values))
    slots = FrameSlots(
        len(program.words) + len(program.symbols) + 1,
        [(word, i) for i, (word, _, _) in enumerate(inputs)],
        [(word, i) for i, (word, _) in enumerate(outputs)],
        [(word, tensor.offset) for (word, _, _), tensor in zip(weights, tensors, strict=True)],
        [(buffer.word, begin) for buffer, begin in zip(program.arena.buffers, begins, strict=True)],
        {word: values[symbol] for symbol, word in program.symbols.items()},
    )
    source = entry_source(f"{name}_run", segment.source, slots)
    files = {".o": object_of(name, source, f"{name}_run"), ".weights": content}
    host = cpu_target.target()
    changed = {id(target) for target, _ in program.graph.writes}
    description = Description(
        name=name,
        inputs=tuple(Tensor(label, array.dtype.name, array.shape) for _, label, array in inputs),
        outputs=tuple(tensor for _, tensor in outputs),
        weights=tensors,
        written=tuple(
            label for node, (label, _, _) in zip(program.graph.inputs, examples, strict=True) if id(node) in changed
        ),
        arena_bytes=-(-arena_bytes // CACHE_LINE_BYTES) * CACHE_LINE_BYTES,
        target=host.name,
        features=tuple(sorted(host.features)),
        checksums={end: checksum(files[end]) for end in CHECKED},
    )
    _put(directory, {**{f"{name}{end}": files[end] for end in CHECKED}, **_texts(description)})
    return description


def _only_segment(name: str, program: CompiledProgram) -> Segment:
    """Return the segment that a program consists of. Raises BundleError for one that NumPy computes a part of."""
    if len(program.steps) != 1 or not isinstance(program.steps[0], Segment):
        by_numpy = ", ".join(step.operation for step in program.steps if not isinstance(step, Segment))
        raise BundleError(
            f"{name}: {f'NumPy computes a part of it ({by_numpy})' if by_numpy else 'it computes nothing'}"
        )
    if program.steps[0].calls_python:
        raise BundleError(f"{name}: NumPy computes a part of it")
    return program.steps[0]


def _arrays(
    program: CompiledProgram, examples: Sequence[tuple[str, Any, bool]]
) -> tuple[list[tuple[int, str, Any]], list[tuple[int, str, Any]]]:
    """Return the inputs, and the weights, of a program: the frame slot, the name, and the array in C order of each."""
    inputs: list[tuple[int, str, Any]] = []
    weights: list[tuple[int, str, Any]] = []
    for node, (label, array, is_weight) in zip(program.graph.inputs, examples, strict=True):
        contiguous = np.asarray(array, node.dtype, order="C")
        (weights if is_weight else inputs).append((program.words[node], label, contiguous))
    return inputs, weights


def _outputs(name: str, program: CompiledProgram, values: Mapping[str, int]) -> list[tuple[int, Tensor]]:
    """Return the frame slot and the shape of each result. Raises BundleError for one that is a view of an argument."""
    if any(node not in program.words for node in program.graph.outputs):
        raise BundleError(f"{name}: a result shares memory with an argument")
    return [
        (
            program.words[node],
            Tensor(
                _output(i, program), node.dtype, tuple(symbolic_dims.evaluated(extent, values) for extent in node.shape)
            ),
        )
        for i, node in enumerate(program.graph.outputs)
    ]


def _output(number: int, program: CompiledProgram) -> str:
    return "result" if len(program.graph.outputs) == 1 else f"result_{number}"


def _texts(description: Description) -> dict[str, bytes]:
    """Return the files that people and tools read, by name: the C header, the manifest, and the examples."""
    return {
        f"{description.name}.h": templates.header(description).encode(),
        f"{description.name}.json": description.text.encode(),
        "example.c": templates.c_example(description).encode(),
        "example.py": templates.python_example(description).encode(),
    }


def _put(directory: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder: each appears complete, and none if one of them fails."""
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory, prefix=".bundle-") as folder:
        for name, content in files.items():
            Path(folder, name).write_bytes(content)
        for name in files:
            shutil.move(Path(folder, name), directory / name)
