"""``jitkernels bench training``: a training step (loss, gradients, Adam) in one compiled function, against torch.

The network has the layers 784-256-128-10 and takes 64 rows a step. Before timing, all contestants run the same
steps from the same weights, and their losses are compared.
"""

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from time import perf_counter, thread_time
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.benchmarks import rss
from jitkernels.benchmarks.processes import run
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.tuning.timer import Timing, measure

JIT, UNFUSED, NUMPY, EAGER, COMPILED = "jit", "level 0", "numpy", "torch", "torch.compile"
PROMISED = {UNFUSED: 1.15, EAGER: 1.5, COMPILED: 1.5}
LAYERS, BATCH_ROWS, TRAINING_STEPS = (784, 256, 128, 10), 64, 20
SMALL = (196, 64, 32, 10)
FIRST = np.float32(1)
"""The number of the first step."""
Step = Callable[[int], Any]


def loss(parameters: Any, x: Any, y: Any) -> Any:
    """Return the cross entropy; each row of `y` is the one-hot vector of the class."""
    w1, b1, w2, b2, w3, b3 = parameters
    h = np.maximum(x @ w1 + b1, 0)
    h = np.maximum(h @ w2 + b2, 0)
    z = h @ w3 + b3
    z = z - z.max(axis=-1, keepdims=True)
    return -np.mean(np.sum(y * (z - np.log(np.sum(np.exp(z), axis=-1, keepdims=True))), axis=-1))


def adam(parameters: Any, means: Any, squares: Any, gradients: Any, number: Any) -> None:
    """Apply step `number` of Adam, which updates all arguments but the gradients in place."""
    rate, scale = 1e-3 / (1 - 0.9**number), 1 / np.sqrt(1 - 0.999**number)
    for p, m, v, d in zip(parameters, means, squares, gradients, strict=True):
        m *= 0.9
        m += 0.1 * d
        v *= 0.999
        v += 0.001 * d * d
        p -= rate * m / (np.sqrt(v) * scale + 1e-8)


def step(parameters: Any, means: Any, squares: Any, number: Any, x: Any, y: Any) -> Any:
    value, gradients = jk.value_and_grad(loss)(parameters, x, y)
    adam(parameters, means, squares, gradients, number)
    return value


def by_hand(parameters: Any, means: Any, squares: Any, number: Any, x: Any, y: Any) -> Any:
    """The same step in NumPy, with manually derived gradients."""
    w1, b1, w2, b2, w3, b3 = parameters
    h1 = np.maximum(x @ w1 + b1, 0)
    h2 = np.maximum(h1 @ w2 + b2, 0)
    z = h2 @ w3 + b3
    z -= z.max(axis=1, keepdims=True)
    e = np.exp(z)
    total = e.sum(axis=1, keepdims=True)
    value = -np.mean(np.sum(y * (z - np.log(total)), axis=1))
    d3 = (e / total - y) / len(x)
    d2 = d3 @ w3.T * (h2 > 0)
    d1 = d2 @ w2.T * (h1 > 0)
    gradients = [x.T @ d1, d1.sum(axis=0), h1.T @ d2, d2.sum(axis=0), h2.T @ d3, d3.sum(axis=0)]
    adam(parameters, means, squares, gradients, number)
    return value


def state(layers: Sequence[int] = LAYERS, dtype: Any = np.float32) -> tuple[Any, Any, Any]:
    """Return initial weights and biases, and Adam's two moments of each."""
    random = np.random.default_rng(0)
    parameters: list[Any] = []
    for inner, outer in pairwise(layers):
        parameters.append((random.normal(size=(inner, outer)) / np.sqrt(inner)).astype(dtype))
        parameters.append(np.zeros(outer, dtype))
    means, squares = ([np.zeros_like(parameter) for parameter in parameters] for _ in range(2))
    return parameters, means, squares


def batch(rows: int = BATCH_ROWS, layers: Sequence[int] = LAYERS, dtype: Any = np.float32) -> tuple[Any, Any]:
    random = np.random.default_rng(1)
    x = random.normal(size=(rows, layers[0])).astype(dtype)
    return x, np.eye(layers[-1], dtype=dtype)[random.integers(0, layers[-1], rows)]


def verdict(lines: Sequence[Line]) -> Verdict:
    words, holds = [], True
    for line in lines:
        for name, promised in PROMISED.items():
            speed = line.speed_over(name)
            if speed is not None:
                words.append(f"{speed:.2f} times {name} (promised: {promised})")
                holds = holds and speed >= promised
        if f"{EAGER} MB" in line.figures:
            share = line.figures[f"{JIT} MB"] / line.figures[f"{EAGER} MB"]
            words.append(f"its peak memory is {share:.2f} times that of {EAGER} (promised: 1)")
            holds = holds and share <= 1
        words.append(f"losses differ by up to {line.figures['losses differ']:.1e} of the first")
    return Verdict("; ".join(words), holds)


@benchmark("training", verdict=verdict, against=EAGER)
def training(settings: Settings) -> Iterator[Line]:
    """A training step of a network of three layers: loss, gradients and Adam, against manual NumPy and torch."""
    threads = str(settings.threads)
    limits: dict[str, Any] = {f"{library}_NUM_THREADS": threads for library in ("OPENBLAS", "MKL", "OMP", "JITKERNELS")}
    measurements = run(__name__, "child", settings.threads, settings.seconds, **limits)
    timings = {name: Timing(*values) for name, values in measurements["times"].items()}
    case = f"{'-'.join(map(str, LAYERS))}, {BATCH_ROWS} rows, {threads} threads"
    figures = {"losses differ": measurements["differ"]}
    for name in (JIT, EAGER) if EAGER in timings and rss.is_available() else ():
        alone = limits | dict.fromkeys(limits, "1") | rss.PROMPT
        figures[f"{name} MB"] = run(__name__, "memory", name, **alone) / 1e6
    yield Line("training", case, timings, JIT, figures=figures)


def child(threads: int, seconds: float) -> dict[str, Any]:
    """Return seconds of a step by each contestant, and the relative difference of their losses."""
    steps = {JIT: _ours(jk.jit(step)), UNFUSED: _ours(jk.jit(step, opt_level=0)), NUMPY: _ours(by_hand)}
    if importlib.util.find_spec("torch"):
        steps |= {EAGER: _torch(threads, compiles=False), COMPILED: _torch(threads, compiles=True)}
    curves = {name: [float(value(number)) for number in range(1, TRAINING_STEPS + 1)] for name, value in steps.items()}
    expected = np.array(curves[NUMPY])
    differ = max(float(np.max(np.abs(np.array(value) - expected))) for value in curves.values()) / expected[0]
    clock = thread_time if threads == 1 else perf_counter
    calls = {name: partial(value, TRAINING_STEPS + 1) for name, value in steps.items()}
    times = measure(calls, budget=max(20 * seconds, 2.0), rounds=(9, 60), clock=clock)
    return {"times": {name: [value.seconds, value.spread] for name, value in times.items()}, "differ": differ}


def memory(name: str) -> int:
    """Return the peak bytes of steps on one thread, beyond parameters, Adam's moments and the batch.

    Steps of a small network run before, so that code and library state do not count.
    """
    function = jk.jit(step)

    def of(layers: Sequence[int], rows: int) -> Step:
        if name == JIT:
            return _ours(function, layers, rows)
        return _torch(1, compiles=False, layers=layers, rows=rows)

    small = of(SMALL, 16)
    for number in range(1, TRAINING_STEPS):
        small(number)
    common: int = sum(array.nbytes for listed in (*state(), batch()) for array in listed)
    before = rss.now()
    own = of(LAYERS, BATCH_ROWS)
    for number in range(1, TRAINING_STEPS):
        own(number)
    return rss.most() - before - common


def _ours(function: Callable[..., Any], layers: Sequence[int] = LAYERS, rows: int = BATCH_ROWS) -> Step:
    state_of_training, (x, y) = state(layers), batch(rows, layers)
    return lambda number: function(*state_of_training, np.float32(number), x, y)


def _torch(threads: int, *, compiles: bool, layers: Sequence[int] = LAYERS, rows: int = BATCH_ROWS) -> Step:
    import torch

    torch.set_num_threads(threads)
    inputs, ones = batch(rows, layers)
    x, classes = torch.tensor(inputs), torch.tensor(ones.argmax(axis=1))
    given = [torch.tensor(step, requires_grad=True) for step in state(layers)[0]]
    optimizer = torch.optim.Adam(given, lr=1e-3, foreach=True)

    def forward(x: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = given
        h = torch.relu(x @ w1 + b1)
        h = torch.relu(h @ w2 + b2)
        return torch.nn.functional.cross_entropy(h @ w3 + b3, classes)

    change: Any = optimizer.step
    if compiles:
        forward, change = torch.compile(forward), torch.compile(change)

    def step(_: int) -> Any:
        optimizer.zero_grad()
        value = forward(x)
        value.backward()
        change()
        return value.detach()

    return step
