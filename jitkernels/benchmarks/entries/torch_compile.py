"""``jitkernels bench torch-compile``: models of PyTorch by the backends of `torch.compile` and by eager torch.

Each model and mode runs in a process of its own: inference, and training steps of loss and gradients. All contestants
have the same parameters and input. Caches on disk are empty when the benchmark begins. First calls of each compiler run
in a process of its own, since Dynamo remembers what it has read of a model, and imports more for the first one. They do
not include imports, a collection of what imports left, nor what a compiler builds once for all models.
"""

import copy
import gc
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any

import jitkernels as jk
from jitkernels.benchmarks.entries.training import COMPILED, EAGER, JIT
from jitkernels.benchmarks.processes import empty_cache, run
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmarks.table import geometric_mean
from jitkernels.errors import NotUsableError
from jitkernels.tuning.timer import Timing, measure

NAMES = "perceptron", "lenet", "resnet18", "mobilenet_v2", "gpt_block", "lstm", "autoencoder"
"""The models of `torch_models`, which imports torch."""
INFERENCE, TRAINING = "inference", "training"
PROMISED = {INFERENCE: {COMPILED: 1.15, EAGER: 1.5}, TRAINING: {COMPILED: 1.1, EAGER: 1.5}}
"""Speed on the geometric mean of all models."""
UNTRAINED = "lstm"
"""A model that is not trained: AOTAutograd of torch 2.13 cannot save what oneDNN's LSTM keeps, whatever the backend."""
JITKERNELS, INDUCTOR = "jitkernels", "inductor"
"""The backends."""
FIRST_NAMES = {JITKERNELS: "first s", INDUCTOR: f"first s, {COMPILED}"}


def verdict(lines: Sequence[Line]) -> Verdict:
    """Geometric means by mode; with ``--peers`` over both others."""
    words, holds = [], True
    for mode, promised in PROMISED.items():
        for name, least in promised.items():
            ratios = [
                one for line in lines if line.case.startswith(mode) and (one := line.speed_over(name)) is not None
            ]
            if ratios:
                mean = geometric_mean(ratios)
                words.append(f"{mode}: {mean:.2f} times {name} (promised: {least:g}), at least {min(ratios):.2f}")
                holds = holds and mean >= least
    return Verdict("; ".join(words), holds)


@benchmark("torch-compile", verdict=verdict, against=EAGER, parts=lambda: NAMES)
def torch_compile(settings: Settings) -> Iterator[Line]:
    """Models of torch, inference and training, by the backend `jitkernels`, eager torch and, with peers, Inductor."""
    if importlib.util.find_spec("torch") is None:
        raise NotUsableError("torch-compile: expected torch to be installed: pip install 'jitkernels[torch]'")
    with empty_cache() as cache:
        for name in settings.some_of(NAMES):
            for mode in PROMISED if name != UNTRAINED else (INFERENCE,):
                caches: Any = {"cache": cache / "jitkernels", "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor")}
                shared = name, mode, settings.threads, settings.is_tiny
                peers = settings.peers and not settings.is_tiny
                figures = {
                    FIRST_NAMES[backend]: run(__name__, "first_seconds", *shared, backend, **caches)
                    for backend in (JITKERNELS, *([INDUCTOR] if peers else []))
                }
                found = run(__name__, "child", *shared, settings.seconds, peers, **caches)
                timings = {contestant: Timing(*values) for contestant, values in found["times"].items()}
                case = f"{mode}, batch {found['batch']}, {settings.threads} threads"
                yield Line(name, case, timings, JIT, figures=figures)


def first_seconds(name: str, mode: str, threads: int, is_tiny: bool, backend: str) -> float:
    """Seconds of the first call of a model by a backend."""
    torch, model, x = _made(name, threads, is_tiny)
    _prepare(torch, backend)
    torch._dynamo.reset()
    call = _call(torch, model, x, mode, backend)
    gc.collect()
    began = perf_counter()
    call()
    return round(perf_counter() - began, 2)


def child(name: str, mode: str, threads: int, is_tiny: bool, seconds: float, peers: bool) -> dict[str, Any]:
    """Seconds of a call by each contestant."""
    torch, model, x = _made(name, threads, is_tiny)
    backends = {JIT: JITKERNELS, **({COMPILED: INDUCTOR} if peers else {}), EAGER: ""}
    calls: dict[str, Callable[[], Any]] = {}
    for contestant, backend in backends.items():
        torch._dynamo.reset()
        calls[contestant] = _call(torch, copy.deepcopy(model), x, mode, backend)
        calls[contestant]()
    times = measure(calls, budget=max(40 * seconds, 0.1), rounds=(3, 200))
    return {
        "times": {contestant: [timing.seconds, timing.spread] for contestant, timing in times.items()},
        "batch": len(x),
    }  # fmt: skip


def _made(name: str, threads: int, is_tiny: bool) -> tuple[Any, Any, Any]:
    """The package torch, a model and its input."""
    import torch

    from jitkernels.benchmarks.networks.torch_models import MODELS

    jk.set_num_threads(threads)
    torch.set_num_threads(threads)
    torch._dynamo.config.allow_rnn = True
    torch.manual_seed(0)
    spec = MODELS[name]
    return torch, spec.make(), spec.make_input(1 if is_tiny else spec.batch)


def _prepare(torch: Any, backend: str) -> None:
    """Compile one small function with gradients: imports, and what the compiler builds once for all models."""
    x = torch.ones(64, requires_grad=True)
    torch.compile(lambda x: (x * x).sum(), backend=backend)(x).backward()


def _call(torch: Any, model: Any, x: Any, mode: str, backend: str) -> Callable[[], Any]:
    """A call of a model, compiled by a backend if there is one."""
    own = model.train(mode == TRAINING)
    forward: Any = torch.compile(own, backend=backend) if backend else own
    return _training(own, forward, x) if mode == TRAINING else _inference(torch, forward, x)


def _inference(torch: Any, forward: Any, x: Any) -> Callable[[], Any]:
    def call() -> Any:
        with torch.no_grad():
            return forward(x)

    return call


def _training(model: Any, forward: Any, x: Any) -> Callable[[], Any]:
    def call() -> None:
        model.zero_grad()
        forward(x).square().mean().backward()

    return call
