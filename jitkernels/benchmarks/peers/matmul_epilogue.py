"""Peers of MATMUL_EPILOGUE in NumPy and torch."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.matmul_epilogue import MatMulEpilogueAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import in_dtypes, in_layouts, shape, values, with_outs
from jitkernels.benchmarks.peers.compiled import of_torch

erfc = np.frompyfunc(math.erfc, 1, 1)


@equivalent(MatMulEpilogueAttr)
def matmul_epilogue(a: Any, b: Any, bias: Any = None, activation: str = "identity", out: Any = None) -> Any:
    z = np.matmul(a, b)
    if bias is not None:
        z = z + bias
    if activation == "relu":
        return np.maximum(z, 0, out=out)
    if activation == "tanh":
        return np.tanh(z, out=out)
    if activation == "sigmoid":
        return np.divide(1, 1 + np.exp(-z), out=out)
    if activation == "silu":
        return np.divide(z, 1 + np.exp(-z), out=out)
    if activation == "gelu":
        return np.multiply(z, erfc(-z * math.sqrt(0.5)).astype(z.dtype) / 2, out=out)
    return np.positive(z, out=out)


@peer(MatMulEpilogueAttr)
def numpy_epilogue(attr: MatMulEpilogueAttr, a: AnyArray, b: AnyArray, *rest: AnyArray) -> Bound:
    *bias, c = rest
    left, right = a.T if attr.trans_a else a, b.T if attr.trans_b else b
    return partial(matmul_epilogue, left, right, bias[0] if bias else None, attr.activation, c)


@partial(of_torch, MatMulEpilogueAttr)
def torch_epilogue(attr: MatMulEpilogueAttr, torch: Any, a: Any, b: Any, *rest: Any) -> Bound:
    *biases, c = rest
    bias = biases[0] if biases else None
    left, right = a.T if attr.trans_a else a, b if attr.trans_b else b.T
    functions: dict[str, Any] = {
        "relu": torch.relu_,
        "gelu": torch.nn.functional.gelu,
        "silu": partial(torch.nn.functional.silu, inplace=True),
        "tanh": torch.tanh_,
        "sigmoid": torch.sigmoid_,
    }
    activated = functions.get(attr.activation, torch.nn.Identity())

    def call() -> None:
        c.copy_(activated(torch.nn.functional.linear(left, right, bias)))

    return partial(call)


@ordinary_calls(MatMulEpilogueAttr)
def layers(elements: int) -> Iterator[OrdinaryCall]:
    a = values(shape(elements, 2))
    rows, inner = a.shape
    b, bias, result = values((inner, rows)), values(rows), np.zeros((rows, rows), np.float32)
    for activation in ("identity", "relu", "gelu", "silu", "tanh", "sigmoid"):
        yield OrdinaryCall(activation, (a, b, bias), {"activation": activation})
    yield OrdinaryCall("no bias", (a, b), {"activation": "relu"})
    yield OrdinaryCall("weights transposed", (a, a.T, bias))
    cube = values(shape(elements, 3))
    yield OrdinaryCall("3-D", (cube, values((cube.shape[-1], rows)), bias, "relu"))
    yield from in_dtypes(a, b, bias)
    yield from in_layouts(a, b, bias, fixed=("relu",), label="all {}")
    yield OrdinaryCall("empty", (a[:0], b, bias))
    yield from with_outs((a, b, bias), 4, result, activation="relu")
