"""A reference that cannot be inlined leaves nothing in the trace: its constants, tapes and bailouts go."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.capture.kernels.operand_checks import TraceSnapshot
from jitkernels.compiler.capture.trace_call import make_proxies
from jitkernels.compiler.capture.trace_context import Tracer, pop, push
from jitkernels.compiler.ir import builder

CACHES = {"scope", "_values", "places", "failures", "call_order"}
"""By node, or compared apart."""


def state_of(tracer: Tracer) -> dict[str, Any]:
    kept = {name: value for name, value in vars(tracer).items() if name not in CACHES}
    copies = {name: value.copy() if isinstance(value, list | dict | set) else value for name, value in kept.items()}
    return copies | {"symbols": dict(tracer.scope.values), "extent guards": dict(tracer.scope.guards)}


def test_snapshots_restore_the_whole_state() -> None:
    tracer = Tracer()
    push(tracer)
    try:
        (proxy,) = make_proxies(tracer, [np.ones(3)], exact=False)
        kept = np.arange(5.0)
        tracer.frozen_array(kept)
        before, snapshot = state_of(tracer), TraceSnapshot(tracer)
        for _ in range(2):
            room = tracer.room()
            lost = tracer.frozen_array(np.arange(7.0))
            tracer.checks.append(builder.constant(True, "bool"))
            tracer.picks.append(proxy.node)
            tracer.bailout_results.append(lost)
            tracer.notes["a note"] = None
            tracer.has_flows = True
            assert tracer.scope.values[str(room)] == len(tracer.constants[tracer.inputs[-2].options["index"] - 1])
            snapshot.restore()
            assert state_of(tracer) == before
    finally:
        pop()


def histogram_alone(x: Any) -> Any:
    return np.histogram(x.reshape(-1, 10), bins=256, range=(0, 256))


def histogram_first(x: Any) -> Any:
    counts, _ = np.histogram(x, bins=16, range=(0, 256))
    return counts, np.sort(x[x > 3])


def histogram_last(x: Any) -> Any:
    chosen = np.sort(x[x > 3])
    counts, edges = np.histogram(x, bins=16, range=(0, 256))
    return counts, chosen, edges


def histogram_in_loops(x: Any) -> Any:
    total, counts = 0.0, np.zeros(16, np.int64)
    for i in range(3):
        counts = counts + np.histogram(x, bins=16, range=(0, 256))[0]
        total += np.sort(x[x > i * 50])[0]
    return counts, total


@pytest.mark.parametrize("function", [histogram_alone, histogram_first, histogram_last, histogram_in_loops])
def test_what_follows_has_memory_of_its_own(function: Any) -> None:
    """The reference of HISTOGRAM makes arrays of computed length before it is given up."""
    x = np.random.default_rng(0).uniform(0, 256, 3000)
    compiled = jk.jit(function, strict=True)
    for n in (300, 3000, 900):
        for found, expected in zip(compiled(x[:n]), function(x[:n]), strict=True):
            assert np.array_equal(found, expected)
