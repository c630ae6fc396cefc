"""``jitkernels bench serving``: inference of small networks on a few rows, against NumPy, onnxruntime and torch.

All contestants are interleaved in one single-threaded process. jitkernels gets its weights as arguments, as free
variables, and as static arrays; all write to ``out=``. The smallest network has a promised maximum time; the larger one
a promised speedup over onnxruntime for a single row. For more rows, only call overhead can be saved, as matrix
multiplication dominates.
"""

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from time import thread_time
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.processes import run
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.tuning.timer import Timing, measure

JIT, CAPTURED, JIT_STATIC, NUMPY, ONNX = "jit", "jit, captured", "jit, static", "numpy", "onnxruntime"
EAGER, COMPILED = "torch", "torch.compile"
NETWORKS: Mapping[str, tuple[int, int]] = {"two layers of 16": (16, 2), "four layers of 128": (128, 4)}
"""Width and number of layers."""
ROWS = (1, 8, 32)
MORE = tuple(f"{rows} rows" for rows in ROWS[1:])
SMALLEST, LARGER = NETWORKS
PROMISED_OVERHEAD_SECONDS, TIMES_ONNX = 0.5e-6, 5.0
Network = tuple[AnyArray, list[AnyArray], list[AnyArray]]


def forward(x: Any, weights: Any, biases: Any) -> Any:
    """Compute the network's output: layers with a rectifier between them."""
    for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        x = x @ weight + bias
        if i < len(weights) - 1:
            x = np.maximum(x, 0)
    return x


def network(width: int, layers: int, rows: int) -> Network:
    """Return input rows, weights and biases."""
    random = np.random.default_rng(0)
    weights = [(random.standard_normal((width, width)) / np.sqrt(width)).astype(np.float32) for _ in range(layers)]
    biases = [random.standard_normal(width).astype(np.float32) for _ in range(layers)]
    return random.standard_normal((rows, width)).astype(np.float32), weights, biases


def verdict(lines: Sequence[Line]) -> Verdict:
    words, holds = [], True
    for line in lines:
        if line.case.startswith(MORE):
            continue
        seconds, speed = line.timings[JIT_STATIC].seconds, line.speed_over(ONNX)
        if line.group == SMALLEST:
            words.append(f"{line.group}: {seconds * 1e6:.2f} us (promised: {PROMISED_OVERHEAD_SECONDS * 1e6:g})")
            holds = holds and seconds <= PROMISED_OVERHEAD_SECONDS
        elif speed is not None:
            words.append(f"{line.group}: {speed:.1f} times {ONNX} (promised: {TIMES_ONNX:g})")
            holds = holds and speed >= TIMES_ONNX
    return Verdict("; ".join(words), holds)


@benchmark("serving", verdict=verdict, against=ONNX)
def serving(settings: Settings) -> Iterator[Line]:
    """Inference of networks with two layers of 16 and four of 128 on 1, 8 and 32 rows, one thread, with onnxruntime."""
    limits: dict[str, Any] = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "MKL", "OMP", "JITKERNELS")}
    for group, (width, layers) in settings.limited(NETWORKS.items()):
        for rows in settings.limited(ROWS):
            measurements = run(__name__, "child", width, layers, rows, settings.seconds, settings.peers, **limits)
            timings = {name: Timing(*values) for name, values in measurements.items()}
            yield Line(group, f"{rows} row{'s'[: rows > 1]}, float32", timings, JIT_STATIC)


def child(width: int, layers: int, rows: int, seconds: float, peers: bool) -> dict[str, list[float]]:
    """Return seconds of a call by each contestant, after checking that their results agree."""
    inputs = network(width, layers, rows)
    expected = forward(*inputs)
    calls: dict[str, Callable[[], Any]] = {JIT: _as_arguments(*inputs), CAPTURED: _captured(*inputs)}
    calls[JIT_STATIC] = _captured(*inputs, static_argnames=("weights", "biases"))
    calls[NUMPY] = partial(forward, *inputs)
    if peers and importlib.util.find_spec("onnxruntime") and importlib.util.find_spec("onnx"):
        calls[ONNX] = _of_onnxruntime(*inputs)
    if peers and importlib.util.find_spec("torch"):
        calls |= _of_torch(*inputs)
    for name, call in calls.items():
        result = call()
        result = result[0] if isinstance(result, list) else result
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-3, atol=1e-4, err_msg=name)
    times = measure(calls, budget=max(20 * seconds, 0.1), rounds=(5, 60), clock=thread_time)
    return {name: [timing.seconds, timing.spread] for name, timing in times.items()}


def _as_arguments(x: Any, weights: Any, biases: Any) -> Callable[[], Any]:
    compiled, out = jk.jit(forward), np.empty_like(x)
    # No functools.partial: with keywords it adds 0.1 us per call.
    return lambda: compiled(x, weights, biases, out=out)


def _captured(x: Any, weights: Any, biases: Any, **options: Any) -> Callable[[], Any]:
    def answered(x: Any) -> Any:
        return forward(x, weights, biases)

    compiled, out = jk.jit(answered, **options), np.empty_like(x)
    return lambda: compiled(x, out=out)


def _of_onnxruntime(x: AnyArray, weights: list[AnyArray], biases: list[AnyArray]) -> Callable[[], Any]:
    """Return a session of one thread; weights are constants of the model, which it may pack."""
    import onnx
    import onnxruntime

    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    nodes, constants, current = [], [], "x"
    for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        constants += [onnx.numpy_helper.from_array(weight, f"w{i}"), onnx.numpy_helper.from_array(bias, f"b{i}")]
        is_last = i == len(weights) - 1
        output_name = "y" if is_last else f"z{i}"
        nodes.append(helper.make_node("Gemm", [current, f"w{i}", f"b{i}"], [output_name]))
        if not is_last:
            nodes.append(helper.make_node("Relu", [output_name], [f"h{i}"]))
            current = f"h{i}"
    ends = [helper.make_tensor_value_info(name, kind, x.shape) for name in "xy"]
    graph = helper.make_graph(nodes, "network", ends[:1], ends[1:], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    chosen = onnxruntime.SessionOptions()
    chosen.intra_op_num_threads = chosen.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), chosen, providers=["CPUExecutionProvider"])
    return partial(session.run, None, {"x": x})


def _of_torch(x: AnyArray, weights: list[AnyArray], biases: list[AnyArray]) -> dict[str, Callable[[], Any]]:
    import torch

    torch.set_num_threads(1)
    layers: list[Any] = []
    for weight, bias in zip(weights, biases, strict=True):
        layer = torch.nn.Linear(*weight.shape)
        layer.weight.data, layer.bias.data = torch.tensor(weight.T), torch.tensor(bias)
        layers += [layer, torch.nn.ReLU()]
    module, inputs = torch.nn.Sequential(*layers[:-1]).eval(), torch.tensor(x)

    def answered(function: Any) -> Any:
        with torch.inference_mode():
            return function(inputs)

    return {EAGER: partial(answered, module), COMPILED: partial(answered, torch.compile(module))}
