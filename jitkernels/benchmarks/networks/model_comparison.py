"""A model beside onnxruntime: differences of outputs, time of a call, start-up and memory.

Calls are interleaved in one process. Start-up and memory are those of processes that do nothing else, one for each
contestant; the code of ours is in the cache by then, as it is whenever a process is not the first.
"""

import importlib.util
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.benchmarks.networks.onnx_sessions import WITHOUT_ONNXRUNTIME, session_of
from jitkernels.benchmarks.processes import run, script
from jitkernels.errors import ModelError, NotUsableError
from jitkernels.tuning.timer import measure

OURS, ONNX = "jitkernels", "onnxruntime"
BEGIN = """
import json, sys
from time import perf_counter
import numpy as np
path, arrays, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
feeds, times = dict(np.load(arrays)), [perf_counter()]
"""
END = """
times.append(perf_counter())
for _ in range(3):
    model.run(None, feeds)
try:
    status = open("/proc/self/status").read().splitlines()
    peak = next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM"))
except OSError:
    peak = None
keys = "import_seconds", "load_seconds", "first_seconds"
print(json.dumps({**{key: times[i + 1] - times[i] for i, key in enumerate(keys)}, "peak_bytes": peak}))
"""
STARTS = {
    OURS: f"""{BEGIN}
import jitkernels
times.append(perf_counter())
model = jitkernels.onnx.load(path)
times.append(perf_counter())
model.run(None, feeds)
{END}""",
    ONNX: f"""{BEGIN}
import onnxruntime
times.append(perf_counter())
options = onnxruntime.SessionOptions()
options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
model = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
times.append(perf_counter())
model.run(None, feeds)
{END}""",
}
"""Programs that load a model, compute its first result and three more, and tell what that took."""


@dataclass(frozen=True)
class ContestantFigures:
    """What one contestant takes.

    `seconds`: of a call, the minimum over rounds; `spread`: how far the median is above it. `import_seconds`,
    `load_seconds` and `first_seconds`: of a new process, to import the package, load the model, and compute its first
    result. `peak_bytes`: the most resident memory of that process, None where the system does not report it.
    """

    seconds: float
    spread: float
    import_seconds: float
    load_seconds: float
    first_seconds: float
    peak_bytes: int | None


@dataclass(frozen=True)
class OutputDifference:
    """The largest difference of an output between contestants, absolute and relative to its largest element."""

    output: str
    absolute: float
    relative: float


@dataclass(frozen=True)
class ModelComparison:
    """The figures of both contestants by name, and the differences of outputs."""

    inputs: Mapping[str, str]
    threads: int
    contestants: Mapping[str, ContestantFigures]
    differences: tuple[OutputDifference, ...]

    @property
    def speed(self) -> float:
        """How many calls of ours fit into one of onnxruntime."""
        return self.contestants[ONNX].seconds / self.contestants[OURS].seconds

    def as_json(self) -> dict[str, Any]:
        """All fields as values of JSON."""
        return {**asdict(self), "speed": self.speed}


def compared(path: Path, feeds: Mapping[str, Any], threads: int, seconds: float) -> ModelComparison:
    """Compare on these inputs; `seconds`: the time for measuring calls. Raises NotUsableError without onnxruntime."""
    if importlib.util.find_spec(ONNX) is None:
        raise NotUsableError(WITHOUT_ONNXRUNTIME)
    limits: dict[str, Any] = {f"{name}_NUM_THREADS": str(threads) for name in ("OPENBLAS", "MKL", "OMP", "JITKERNELS")}
    with tempfile.TemporaryDirectory(prefix="jitkernels-compare-") as folder:
        arrays = f"{folder}/inputs.npz"
        np.savez(arrays, **feeds)
        found = run(__name__, "measured", str(path), arrays, threads, seconds, **limits)
        started = {name: script(text, str(path), arrays, str(threads), **limits) for name, text in STARTS.items()}
    figures = {name: ContestantFigures(*found["times"][name], **started[name]) for name in STARTS}
    differences = tuple(OutputDifference(*values) for values in found["differences"])
    shapes = {name: f"{array.dtype}{list(array.shape)}" for name, array in feeds.items()}
    return ModelComparison(shapes, threads, figures, differences)


def measured(path: str, arrays: str, threads: int, seconds: float) -> dict[str, Any]:
    """Times of interleaved calls, and differences of outputs."""
    jk.set_num_threads(threads)
    model, session = jk.onnx.load(path), session_of(path, threads)
    with Path(arrays).open("rb") as file:
        feeds = dict(np.lib.npyio.NpzFile(file, allow_pickle=False))
    names = [one.name for one in model.get_outputs()]
    inputs = [feeds[one.name] for one in model.get_inputs()]
    calls = {OURS: partial(model, *inputs), ONNX: partial(session.run, None, feeds)}
    pairs = zip(names, model.run(None, feeds), calls[ONNX](), strict=True)
    differences = [(name, *difference(name, ours, theirs)) for name, ours, theirs in pairs]
    times = measure(calls, budget=max(seconds, 1e-3), rounds=(3, 60))
    return {
        "times": {name: [timing.seconds, timing.spread] for name, timing in times.items()},
        "differences": differences,
    }


def difference(name: str, ours: Any, theirs: Any) -> tuple[float, float]:
    """The largest difference of the elements of an output, and this over its largest finite element.

    Equal elements do not differ, NaN and infinities included; where other elements do, or texts, that is infinite.
    Raises ModelError for other shapes or types.
    """
    if isinstance(ours, list) or isinstance(theirs, list):
        found = [difference(name, *pair) for pair in zip(ours, theirs, strict=True)]
        return max((one for one, _ in found), default=0.0), max((one for _, one in found), default=0.0)
    one, other = np.asarray(ours), np.asarray(theirs)
    if one.shape != other.shape or one.dtype != other.dtype:
        raise ModelError(f"{name}: {OURS} gives {one.dtype}{list(one.shape)}, {ONNX} {other.dtype}{list(other.shape)}")
    if one.dtype.kind not in "fiub":
        return (0.0, 0.0) if np.array_equal(one, other) else (np.inf, np.inf)
    one, other = one.astype(np.float64), other.astype(np.float64)
    with np.errstate(all="ignore"):
        is_same = (one == other) | (np.isnan(one) & np.isnan(other))
        differences = np.where(is_same, 0, np.abs(one - other))
    largest = float(np.max(np.where(np.isnan(differences), np.inf, differences), initial=0))
    scale = float(np.max(np.abs(other), where=np.isfinite(other), initial=0))
    return largest, largest / scale if scale else largest
