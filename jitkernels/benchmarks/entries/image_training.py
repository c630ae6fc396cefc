"""``jitkernels bench image-training``: training steps of image networks in one compiled function, against torch.

A step is loss, gradients and Adam, which updates the parameters in place. All contestants run the same first steps from
the same parameters, and their losses are compared; torch has channels last, and its fused Adam.
"""

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.benchmarks import rss
from jitkernels.benchmarks.entries.training import COMPILED, EAGER, JIT, UNFUSED, adam
from jitkernels.benchmarks.networks.trained_networks import NETWORKS, batch_of, in_torch, loss_of, parameters_of
from jitkernels.benchmarks.processes import run
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.tuning.timer import Timing, measure

PROMISED = {EAGER: 1.1, COMPILED: 1.0}
PROMISED_OVER_LEVEL_0 = {"alexnet": 1.14, "resnet18": 1.24}
"""Times the speed of level 0, as MegBrain's optimisations of graphs gave for the same networks."""
COMPARED_STEPS = 20
ADAM_RATE = 1e-3
"""The learning rate of `adam`."""


def verdict(lines: Sequence[Line]) -> Verdict:
    words, holds = [], True
    for line in lines:
        promised = PROMISED | {UNFUSED: PROMISED_OVER_LEVEL_0.get(line.group, 0.0)}
        for name, least in promised.items():
            speed = line.speed_over(name)
            if speed is not None and line.group in PROMISED_OVER_LEVEL_0:
                words.append(f"{line.group} {speed:.2f} times {name} (promised: {least:g})")
                holds = holds and speed >= least
        words.append(f"losses of {line.group} differ by up to {line.figures['losses differ']:.1e} of the first")
    return Verdict("; ".join(words), holds)


@benchmark("image-training", verdict=verdict, against=EAGER, parts=lambda: NETWORKS)
def image_training(settings: Settings) -> Iterator[Line]:
    """Training steps of LeNet, AlexNet and ResNet-18 with Adam: loss, gradients and update, against torch."""
    for name in settings.some_of(NETWORKS):
        network, steps = NETWORKS[name], 2 if settings.is_tiny else COMPARED_STEPS
        found = run(__name__, "child", name, settings.threads, settings.seconds, steps, settings.peers)
        timings = {contestant: Timing(*values) for contestant, values in found["times"].items()}
        figures = {"losses differ": found["differ"], "first s": found["first"]}
        for contestant in (JIT, EAGER) if EAGER in timings and rss.is_available() else ():
            prompt: dict[str, Any] = dict(rss.PROMPT)
            own = run(__name__, "memory", name, contestant, settings.threads, **prompt)
            figures[f"{contestant} MB"] = own / 1e6
        yield Line(name, f"batch {network.batch}, float32, {settings.threads} threads", timings, JIT, figures=figures)


def child(name: str, threads: int, seconds: float, steps: int, peers: bool) -> dict[str, Any]:
    """Seconds of a step by each contestant, of our first one, and the relative difference of the losses."""
    began = perf_counter()
    ours = _ours(name, threads)
    values = {JIT: [ours(1)]}
    first = perf_counter() - began
    contestants = {JIT: ours}
    if peers:
        contestants[UNFUSED] = _ours(name, threads, opt_level=0)
        if importlib.util.find_spec("torch"):
            contestants |= {
                EAGER: _torch(name, threads, compiles=False),
                COMPILED: _torch(name, threads, compiles=True),
            }
    for contestant, step in contestants.items():
        known = values.setdefault(contestant, [])
        known += [step(number) for number in range(1 + len(known), steps + 1)]
    expected = np.array(values[JIT])
    differ = max(float(np.max(np.abs(np.array(losses) - expected))) for losses in values.values()) / expected[0]
    calls = {contestant: partial(step, steps + 1) for contestant, step in contestants.items()}
    times = measure(calls, budget=max(40 * seconds, 0.1), rounds=(3, 60))
    seconds_of = {contestant: [timing.seconds, timing.spread] for contestant, timing in times.items()}
    return {"times": seconds_of, "differ": differ, "first": round(first, 2)}


def memory(name: str, contestant: str, threads: int) -> int:
    """The peak bytes of a process of three steps, beyond those before the first one."""
    step = _ours(name, threads) if contestant == JIT else _torch(name, threads, compiles=False)
    before = rss.now()
    for number in range(1, 4):
        step(number)
    return rss.most() - before


def _ours(name: str, threads: int, **config: Any) -> Callable[[int], float]:
    network = NETWORKS[name]
    loss, parameters, (x, y) = loss_of(network), parameters_of(network), batch_of(network)
    means, squares = ([np.zeros_like(array) for array in parameters] for _ in range(2))
    jk.set_num_threads(threads)

    def step(parameters: Any, means: Any, squares: Any, number: Any, x: Any, y: Any) -> Any:
        value, gradients = jk.value_and_grad(loss)(parameters, x, y)
        adam(parameters, means, squares, gradients, number)
        return value

    compiled = jk.jit(step, **config)
    return lambda number: float(compiled(parameters, means, squares, np.float32(number), x, y))


def _torch(name: str, threads: int, *, compiles: bool) -> Callable[[int], float]:
    import torch

    torch.set_num_threads(threads)
    network = NETWORKS[name]
    module, (images, ones) = in_torch(network, parameters_of(network), torch), batch_of(network)
    x, classes = torch.from_numpy(images).permute(0, 3, 1, 2), torch.from_numpy(ones.argmax(axis=1))
    optimizer = torch.optim.Adam(module.parameters(), lr=ADAM_RATE, fused=True)
    forward = torch.compile(module) if compiles else module

    def step(_: int) -> float:
        optimizer.zero_grad(set_to_none=True)
        value = torch.nn.functional.cross_entropy(forward(x), classes)
        value.backward()
        optimizer.step()
        return float(value.detach())

    return step
