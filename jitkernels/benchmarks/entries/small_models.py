"""``jitkernels bench small-models``: ONNX models of some microseconds, one row at a time, against onnxruntime.

Ours are called both ways: as functions of arrays, and by ``run``, as onnxruntime's sessions are.
"""

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.benchmarks.networks.onnx_sessions import session_of
from jitkernels.benchmarks.networks.small_networks import NETWORKS, network
from jitkernels.benchmarks.processes import run
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmarks.table import geometric_mean
from jitkernels.onnx.random_inputs import random_inputs
from jitkernels.tuning.timer import Timing, measure

BY_CALL, BY_RUN, ONNX = "model(x)", "model.run", "onnxruntime"


def verdict(lines: Sequence[Line]) -> Verdict:
    timed = [line for line in lines if ONNX in line.timings]
    if not timed:
        return Verdict(f"{len(lines)} models, {ONNX} not timed")
    words = []
    for name in (BY_CALL, BY_RUN):
        speeds = {line.case: line.timings[ONNX].seconds / line.timings[name].seconds for line in timed}
        least = min(speeds, key=lambda case: speeds[case])
        words.append(f"{name} {geometric_mean([*speeds.values()]):.2f} times (least {speeds[least]:.2f}, {least})")
    return Verdict(f"as fast as {ONNX}: {'; '.join(words)}")


@benchmark("small-models", verdict=verdict, against=ONNX, parts=lambda: NETWORKS)
def small_models(settings: Settings) -> Iterator[Line]:
    """Perceptrons, LeNet, an LSTM and elementwise operations as ONNX models on one row, one thread; onnxruntime."""
    limits: dict[str, Any] = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "MKL", "OMP", "JITKERNELS")}
    names = settings.some_of(NETWORKS)
    found = run(__name__, "child", list(names), settings.seconds, settings.peers, **limits)
    for name in names:
        yield Line("small-models", name, {one: Timing(*values) for one, values in found[name].items()}, BY_CALL)


def child(names: Sequence[str], seconds: float, peers: bool) -> dict[str, dict[str, list[float]]]:
    """Seconds of a call by each contestant, after checking that their results agree."""
    has_session = peers and importlib.util.find_spec("onnxruntime") is not None
    found = {}
    for name in names:
        proto = network(name)
        model = jk.onnx.load(proto)
        feeds = random_inputs(model.get_inputs(), {})
        calls: dict[str, Callable[[], Any]] = {
            BY_CALL: partial(model, *feeds.values()),
            BY_RUN: partial(model.run, None, feeds),
        }
        if has_session:
            calls[ONNX] = partial(session_of(proto.SerializeToString(), 1).run, None, feeds)
        for call in calls.values():
            np.testing.assert_allclose(np.squeeze(call()), np.squeeze(calls[BY_RUN]()), rtol=1e-3, atol=1e-5)
        times = measure(calls, budget=max(8 * seconds, 1e-3), rounds=(5, 60))
        found[name] = {one: [timing.seconds, timing.spread] for one, timing in times.items()}
    return found
