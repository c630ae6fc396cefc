"""``jitkernels bench models``: image networks as ONNX models, against onnxruntime.

Each network runs in a process of its own, where the contestants are interleaved. Weights are random, and results are
compared before they are timed. Ours also run with Winograd's algorithm.
"""

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.benchmarks.networks.light_networks import NETWORKS, randomized
from jitkernels.benchmarks.networks.model_batch import with_batch
from jitkernels.benchmarks.networks.onnx_sessions import session_of
from jitkernels.benchmarks.processes import run
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmarks.table import geometric_mean
from jitkernels.tuning.timer import Timing, measure

OURS, WINOGRAD, ONNX = "jitkernels", "winograd", "onnxruntime"
PROMISED_MEAN, PROMISED_LEAST = 1.25, 1.0
"""Times the speed of onnxruntime: the geometric mean over all networks, and on each."""


def verdict(lines: Sequence[Line]) -> Verdict:
    speeds = {line.group: speed for line in lines if (speed := line.speed_over(ONNX)) is not None}
    if not speeds:
        return Verdict(f"{len(lines)} networks, {ONNX} not timed")
    mean, least = geometric_mean([*speeds.values()]), min(speeds, key=lambda name: speeds[name])
    return Verdict(
        f"{mean:.2f} times as fast as {ONNX} (promised: {PROMISED_MEAN:g}); at least {speeds[least]:.2f} times on each "
        f"({least}; promised: {PROMISED_LEAST:g})",
        mean >= PROMISED_MEAN and speeds[least] >= PROMISED_LEAST,
    )


@benchmark("models", verdict=verdict, against=ONNX, parts=lambda: NETWORKS)
def models(settings: Settings) -> Iterator[Line]:
    """Image networks as ONNX models, by default one image at a time, and the time to the first result; onnxruntime."""
    for name in settings.some_of(NETWORKS):
        limits: dict[str, Any] = {"JITKERNELS_NUM_THREADS": str(settings.threads)}
        answer = run(
            __name__, "child", name, settings.batch, settings.seconds, settings.threads, settings.peers, **limits
        )
        timings = {contestant: Timing(*values) for contestant, values in answer["times"].items()}
        case = f"batch {settings.batch}, float32, {settings.threads} thread{'s'[: settings.threads > 1]}"
        yield Line(name, case, timings, OURS, figures={"first s": answer["first"]})


def child(name: str, batch: int, seconds: float, threads: int, peers: bool) -> dict[str, Any]:
    """Seconds of a call by each contestant, and of ours from the model to its first result."""
    jk.set_num_threads(threads)
    proto = with_batch(randomized(name), batch)
    began = perf_counter()
    model = jk.onnx.load(proto)
    (declared,) = model.get_inputs()
    shape: Any = declared.shape
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    result = model(x)
    first = perf_counter() - began
    fast = jk.onnx.load(proto, winograd=True)
    np.testing.assert_allclose(fast(x), result, rtol=1e-3, atol=1e-4 * np.abs(result).max())
    calls: dict[str, Callable[[], Any]] = {OURS: partial(model, x), WINOGRAD: partial(fast, x)}
    if peers and importlib.util.find_spec("onnxruntime"):
        session = session_of(proto.SerializeToString(), threads)
        calls[ONNX] = partial(session.run, None, {declared.name: x})
        (expected,) = calls[ONNX]()
        np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())
    times = measure(calls, budget=max(20 * seconds, 0.1), rounds=(5, 60))
    return {"first": round(first, 2), "times": {key: [timing.seconds, timing.spread] for key, timing in times.items()}}
