"""Runs on disk: one JSON file with the machine's stamp and every line; loading returns an equal run."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jitkernels.benchmarks.suite import Line
from jitkernels.errors import ArgumentError
from jitkernels.tuning.timer import Timing

RUN_FORMAT = 1


@dataclass(frozen=True)
class Run:
    """The lines of one run of a benchmark, with a description of the machine and the date."""

    benchmark: str
    stamp: dict[str, Any]
    lines: tuple[Line, ...]


def save(path: Path, run: Run) -> None:
    """Write a run. Raises ArgumentError if the file is not writable."""
    content = {"format": RUN_FORMAT, **asdict(run)}
    try:
        path.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as error:
        raise ArgumentError(f"{path}: {error.strerror or error}") from None


def load(path: Path) -> Run:
    """Read a run. Raises ArgumentError for an invalid file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != RUN_FORMAT:
            raise ValueError(f"format {content['format']} instead of {RUN_FORMAT}")
        lines = tuple(_line(**entry) for entry in content["lines"])
        return Run(str(content["benchmark"]), dict(content["stamp"]), lines)
    except OSError as error:
        raise ArgumentError(f"{path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ArgumentError(f"{path}: expected a file written by `jitkernels bench --json`: {error}") from None


def _line(timings: dict[str, Any], rivals: Sequence[str], **rest: Any) -> Line:
    parsed = {name: _timing(**timing) for name, timing in timings.items()}
    return Line(timings=parsed, rivals=tuple(rivals), **rest)


def _timing(seconds: Any, spread: Any, threaded: Any = False, price: Any = 1.0) -> Timing:
    return Timing(float(seconds), float(spread), bool(threaded), float(price))
