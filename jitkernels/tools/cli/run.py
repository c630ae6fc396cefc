"""``jitkernels run``: run an exported bundle, or an ONNX model, on arrays from files."""

import json as json_text
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from rich.markup import escape

import jitkernels
from jitkernels.compiler.export.run_bundle import Bundle
from jitkernels.errors import ArgumentError
from jitkernels.tools.cli import layers, output
from jitkernels.tools.cli.model_arguments import array_of, feeds_of, shapes_of

SECONDS_OF_CALLS, MOST_CALLS = 0.5, 1000
"""For how long a profile repeats the call, and the most calls."""
MAX_PRINTED = 100
"""Elements of an output that are printed; of a larger one some of each end are. Files get all."""


class RunOptions(NamedTuple):
    """The options of the command. `target`: the file for the outputs; those behind it are for models only."""

    target: Path | None = None
    dims: Sequence[str] = ()
    profile: bool = False
    json: bool = False
    threads: int | None = None


def run(folder: Path, inputs: Sequence[str], options: RunOptions) -> int:
    """Print the outputs, and write them to a file if the options name one."""
    if options.threads is not None:
        jitkernels.set_num_threads(options.threads)
    if not folder.is_dir():
        return _run_model(folder, inputs, options)
    if options.profile or options.json or options.dims:
        raise ArgumentError(f"{folder}: expected a model file with --profile, --json and --dim")
    bundle = Bundle(folder)
    results = bundle(*[array_of(Path(path)) for path in inputs])
    tensors = bundle.about.outputs
    _show([str(tensor) for tensor in tensors], [tensor.name for tensor in tensors], results, options.target)
    return 0


def _run_model(file: Path, inputs: Sequence[str], options: RunOptions) -> int:
    """Run an ONNX model."""
    from jitkernels.onnx import load

    if options.json and not options.profile:
        raise ArgumentError("--json: expected --profile beside it")
    model = load(file, profile=options.profile)
    feeds = feeds_of(file, model.get_inputs(), inputs, options.dims)
    results = model.run(None, feeds)
    outputs = model.get_outputs()
    if not options.profile:
        _show([str(one) for one in outputs], [one.name for one in outputs], results, options.target)
        return 0
    _write([one.name for one in outputs], results, options.target)
    call_for_some_time(model, feeds)
    stats = model.stats()
    if options.json:
        print(json_text.dumps(stats.as_json(), indent=1))
        return 0
    output.show(layers.table(stats))
    output.console().print(escape(f"{layers.summary(stats)}; {shapes_of(feeds)}"), soft_wrap=True)
    return 0


def call_for_some_time(model: Any, feeds: Mapping[str, Any]) -> None:
    """Call a model that is profiled, so that each of its layers has an undisturbed call."""
    began = perf_counter()
    for _ in range(MOST_CALLS):
        if perf_counter() - began > SECONDS_OF_CALLS:
            break
        model.run(None, feeds)


def _show(titles: Sequence[str], names: Sequence[str], results: Sequence[Any], target: Path | None) -> None:
    """Print results, and write them to a file if `target` names one."""
    with np.printoptions(threshold=MAX_PRINTED):
        for title, array in zip(titles, results, strict=True):
            output.console().print(escape(f"{title}\n{array}"))
    _write(names, results, target)


def _write(names: Sequence[str], results: Sequence[Any], target: Path | None) -> None:
    """Write results to a file if `target` names one."""
    if target is not None and len(results) == 1:
        with target.open("wb") as file:
            np.save(file, results[0])
    elif target is not None:
        with target.open("wb") as file:
            np.savez(file, **dict(zip(names, results, strict=True)))
