"""``jitkernels bench conv-layers``: the convolutions of networks one by one, against torch and the FMA peak.

Each distinct layer that a compiled model calls is compiled by itself, on arrays with channels last and with constant
filters, which are packed beforehand. torch convolves the same arrays by oneDNN, once as its users write it, and once as
its compiler does: with packed filters, and residual and ReLU inside. The peak is that of the registers which code may
use: with ``JITKERNELS_CPU_FEATURES=-avx512f`` it is that of AVX2.
"""

import importlib.util
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import perf_counter, thread_time
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.attrs.convolution import Conv2DAttr
from jitkernels.benchmarks.convolution_layers import in_words, layers_of, random_arrays
from jitkernels.benchmarks.networks.light_networks import NETWORKS, randomized
from jitkernels.benchmarks.networks.model_batch import with_batch
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.core.cpu_target import target
from jitkernels.tuning.peaks import multiply_adds
from jitkernels.tuning.timer import Timing, measure

OURS, TORCH, ONEDNN, PEAK, TOTAL = "jitkernels", "torch", "oneDNN", "peak", "all layers"
SHOWN = ("shufflenet", "resnet50", "vgg19")
"""The networks without parts given."""


def verdict(lines: Sequence[Line]) -> Verdict:
    words = []
    for line in lines:
        if line.case == TOTAL:
            speeds = {name: line.speed_over(name) for name in (ONEDNN, TORCH)}
            beside = [f", {speed:.2f} times {name}" for name, speed in speeds.items() if speed is not None]
            words.append(f"{line.group} {line.figures['% of peak']:.0f} % of the peak{''.join(beside)}")
    return Verdict(f"{target().vector_bytes} bytes of a register: {'; '.join(words)}")


@benchmark("conv-layers", verdict=verdict, against=ONEDNN, parts=lambda: NETWORKS)
def conv_layers(settings: Settings) -> Iterator[Line]:
    """The convolutions of ResNet-50, VGG-19 and ShuffleNet, or of other networks, against torch and the FMA peak."""
    run_peak, peak_operations = multiply_adds("float32", settings.threads)
    for name in settings.parts or settings.limited(SHOWN):
        known = layers_of(with_batch(randomized(name), settings.batch))
        lines = []
        for attr in settings.limited(known):
            calls = {OURS: _ours(attr)} | (_of_torch(attr) if _has_torch(settings) else {})
            _check(calls)
            times = measure(
                {**calls, PEAK: run_peak},
                budget=max(12 * settings.seconds, 1e-3),
                rounds=(3, 60),
                clock=thread_time if settings.threads == 1 else perf_counter,
            )
            peak = times.pop(PEAK)
            times[PEAK] = _scaled(peak, attr.operations() / peak_operations)
            lines.append(_line(name, in_words(attr), times, attr.operations(), known[attr]))
            yield lines[-1]
        yield _total(name, lines, known)


def _has_torch(settings: Settings) -> bool:
    return settings.peers and importlib.util.find_spec("torch") is not None


def _line(group: str, case: str, times: dict[str, Timing], operations: float, count: int) -> Line:
    seconds = times[OURS].seconds
    figures = {
        "count": count,
        "GFLOP/s": round(operations / seconds / 1e9, 1),
        "% of peak": round(100 * times[PEAK].seconds / seconds, 1),
    }
    return Line(group, case, times, OURS, figures=figures)


def _total(group: str, lines: Sequence[Line], known: Counter[Conv2DAttr]) -> Line:
    """The sum over a network, each layer as often as it has it."""
    counts = [known[attr] for attr, _ in zip(known, lines, strict=False)]
    operations = sum(count * attr.operations() for (attr, count), _ in zip(known.items(), lines, strict=False))
    times = {
        name: Timing(
            sum(count * line.timings[name].seconds for count, line in zip(counts, lines, strict=True)),
            sum(count * line.timings[name].spread for count, line in zip(counts, lines, strict=True)),
        )
        for name in lines[0].timings
    }
    return _line(group, TOTAL, times, operations, sum(counts))


def _scaled(timing: Timing, factor: float) -> Timing:
    return Timing(timing.seconds * factor, timing.spread * factor)


def _ours(attr: Conv2DAttr) -> Callable[[], Any]:
    """The layer as a compiled function of its images: filters and bias are constants, as in compiled models."""
    (x, w, *addends), y = random_arrays(attr)
    bias = addends[0] if attr.biased else None
    images = [x, *addends[attr.biased :]]
    options = {name: getattr(attr, name) for name in Conv2DAttr.options}

    def layer(x: Any, residual: Any = None) -> Any:
        return jk.conv2d(x, w, bias, residual, **options)

    return partial(jk.jit(layer, static_argnames=("w", "bias"), exact_sizes=True), *images, out=y)


def _of_torch(attr: Conv2DAttr) -> dict[str, Callable[[], Any]]:
    """torch's convolution with channels last, in place what follows it; and both at once, the filters packed."""
    import torch

    (x, w, *addends), _ = random_arrays(attr)
    bias = torch.from_numpy(addends[0]) if attr.biased else None
    residual = torch.from_numpy(addends[-1]).permute(0, 3, 1, 2) if attr.has_residual else None
    (top, bottom), (left, right) = attr.padding
    images = torch.nn.functional.pad(torch.from_numpy(x), (0, 0, 0, right - left, 0, bottom - top)).permute(0, 3, 1, 2)
    weights = torch.from_numpy(w).permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    options = [top, left], list(attr.stride), list(attr.dilation), attr.groups
    convolution = partial(
        torch.nn.functional.conv2d, images, weights, bias, options[1], options[0], options[2], attr.groups
    )

    def plain() -> Any:
        z = convolution()
        z = z if residual is None else z.add_(residual)
        return torch.relu_(z) if attr.activation == "relu" else z

    calls: dict[str, Callable[[], Any]] = {TORCH: partial(_inferred, torch, plain)}
    if torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_convolution_pointwise"):
        packed = torch.ops.mkldnn._reorder_convolution_weight(weights, *options, list(images.shape))
        fused = torch.ops.mkldnn._convolution_pointwise
        activation = attr.activation if attr.activation != "identity" else None
        calls[ONEDNN] = partial(
            _inferred,
            torch,
            partial(fused, images, packed, bias, *options, activation or "none", [], "")
            if residual is None
            else partial(fused.binary, images, residual, packed, bias, *options, "add", 1.0, activation, [], None),
        )
    return calls


def _inferred(torch: Any, call: Callable[[], Any]) -> Any:
    """The images that a call gives, without what gradients need."""
    with torch.inference_mode():
        return call().permute(0, 2, 3, 1).numpy()


def _check(calls: dict[str, Callable[[], Any]]) -> None:
    """Raise AssertionError where results differ by more than rounding."""
    expected = calls[OURS]()
    for name, call in calls.items():
        np.testing.assert_allclose(call(), expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max(), err_msg=name)
