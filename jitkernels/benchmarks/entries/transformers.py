"""``jitkernels bench transformers``: an encoder and a decoder as ONNX models, and the encoder in NumPy, beside peers.

Each model runs in a process of its own, where the contestants are interleaved. Weights are random, and results are
compared before they are timed.
"""

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.benchmarks import numpy_encoder, rss, transformer_models
from jitkernels.benchmarks.processes import run
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmarks.table import geometric_mean
from jitkernels.tuning.timer import Timing, measure

OURS, ONNX, TORCH = "jitkernels", "onnxruntime", "torch"
SIZES = {
    "encoder": ((1, 16, 0), (1, 128, 0), (8, 16, 0), (8, 128, 0)),
    "decoder": ((1, 16, 0), (1, 128, 0), (1, 1, 128), (8, 1, 128)),
    "numpy-encoder": ((1, 16, 0), (1, 128, 0), (8, 16, 0), (8, 128, 0)),
}
"""By model: batch, tokens of the call, and tokens before."""


def verdict(lines: Sequence[Line]) -> Verdict:
    speeds = [speed for line in lines if (speed := line.speed_over(ONNX)) is not None]
    if not speeds:
        return Verdict(f"{len(lines)} cases, {ONNX} not timed")
    return Verdict(f"{geometric_mean(speeds):.2f} times as fast as {ONNX}, at least {min(speeds):.2f} times")


@benchmark("transformers", verdict=verdict, against=ONNX, parts=lambda: tuple(SIZES))
def transformers(settings: Settings) -> Iterator[Line]:
    """Transformers as ONNX models beside onnxruntime, and one in NumPy beside torch."""
    for name in settings.some_of(tuple(SIZES)):
        answer = run(__name__, "child", name, settings.seconds, settings.threads, settings.peers)
        for batch, length, past, times in answer["cases"]:
            timings = {contestant: Timing(*values) for contestant, values in times.items()}
            case = f"batch {batch}, {length} tokens{f' behind {past}' if past else ''}"
            yield Line(name, case, timings, OURS, figures={"MB": answer["megabytes"]})


def child(name: str, seconds: float, threads: int, peers: bool) -> dict[str, Any]:
    """Seconds of a call by each contestant for each size, and the memory of the process with our model alone."""
    jk.set_num_threads(threads)
    contestants, megabytes = (_numpy if name == "numpy-encoder" else _models)(name, threads, peers)
    cases = []
    for batch, length, past in SIZES[name]:
        calls = {contestant: make(batch, length, past) for contestant, make in contestants.items()}
        results = {contestant: np.asarray(call()) for contestant, call in calls.items()}
        for contestant, result in results.items():
            np.testing.assert_allclose(results[OURS], result, rtol=1e-3, atol=1e-4, err_msg=contestant)
        times = measure(calls, budget=max(10 * seconds, 0.1), rounds=(5, 60))
        cases.append((batch, length, past, {key: [timing.seconds, timing.spread] for key, timing in times.items()}))
    return {"cases": cases, "megabytes": megabytes}


Make = Callable[[int, int, int], Callable[[], Any]]
"""Makes the call of a contestant for a batch, tokens and tokens before."""


def _models(name: str, threads: int, peers: bool) -> tuple[dict[str, Make], float]:
    is_encoder = name == "encoder"
    sizes = transformer_models.MINILM if is_encoder else transformer_models.GPT2
    proto = (transformer_models.encoder if is_encoder else transformer_models.decoder)(sizes)

    def feeds(batch: int, length: int, past: int) -> dict[str, Any]:
        if is_encoder:
            return transformer_models.encoder_feeds(sizes, batch, length)
        return transformer_models.decoder_feeds(sizes, batch, length, past)

    before = rss.now()
    model = jk.onnx.load(proto)

    def ours(batch: int, length: int, past: int) -> Callable[[], Any]:
        values = tuple(feeds(batch, length, past).values())
        return (lambda: model(*values)) if is_encoder else (lambda: model(*values)[0])

    ours(*SIZES[name][0])()
    contestants: dict[str, Make] = {OURS: ours}
    megabytes = round((rss.now() - before) / 2**20, 1)
    if peers and importlib.util.find_spec("onnxruntime"):
        import onnxruntime

        chosen = onnxruntime.SessionOptions()
        chosen.intra_op_num_threads, chosen.inter_op_num_threads, chosen.log_severity_level = threads, 1, 3
        session = onnxruntime.InferenceSession(proto.SerializeToString(), chosen, providers=["CPUExecutionProvider"])

        def theirs(batch: int, length: int, past: int) -> Callable[[], Any]:
            values = feeds(batch, length, past)
            return lambda: session.run(None, values)[0]

        contestants[ONNX] = theirs
    return contestants, megabytes


def _numpy(name: str, threads: int, peers: bool) -> tuple[dict[str, Make], float]:
    sizes = transformer_models.MINILM
    weights = numpy_encoder.weights_of(sizes)
    compiled = jk.jit(numpy_encoder.encoder)

    def inputs(batch: int, length: int, past: int) -> Any:
        return np.random.default_rng(1).standard_normal((batch, length, sizes.hidden)).astype(np.float32)

    before = rss.now()
    compiled(inputs(1, 16, 0), weights, sizes.heads)
    megabytes = round((rss.now() - before) / 2**20, 1)
    contestants: dict[str, Make] = {
        OURS: lambda *case: partial(compiled, inputs(*case), weights, sizes.heads),
        "NumPy": lambda *case: partial(numpy_encoder.encoder, inputs(*case), weights, sizes.heads),
    }
    if peers and importlib.util.find_spec("torch"):
        contestants[TORCH] = lambda *case: numpy_encoder.in_torch(inputs(*case), weights, sizes.heads, threads)
    return contestants, megabytes
