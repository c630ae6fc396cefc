"""Peers of ADAM and ADAMW in NumPy, torch and Numba."""

import functools
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.adam import AdamAttr, AdamWAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import LAYOUTS, in_dtypes, outs, shape, values


@equivalent(AdamAttr)
def adam(
    param: Any,
    grad: Any,
    mom1: Any,
    mom2: Any,
    mom2_max: Any = None,
    lr: float = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    beta1_pow: float = 0.0,
    beta2_pow: float = 0.0,
    out: Any = None,
) -> Any:
    grad = np.asarray(grad)
    first = beta1 * np.asarray(mom1) + (1 - beta1) * grad
    second = beta2 * np.asarray(mom2) + (1 - beta2) * grad * grad
    largest = [] if mom2_max is None else [np.maximum(mom2_max, second)]
    root = np.sqrt([*largest, second][0] / (1 - beta2_pow))
    new = param - lr / (1 - beta1_pow) * first / (root + eps)
    if out is None:
        return new, first, second, *largest
    for into, result in zip(out, (new, first, second, *largest), strict=True):
        into[...] = result
    return out


@equivalent(AdamWAttr)
def adamw(
    param: Any,
    grad: Any,
    mom1: Any,
    mom2: Any,
    mom2_max: Any = None,
    lr: float = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    beta1_pow: float = 0.0,
    beta2_pow: float = 0.0,
    coeff: float = 0.01,
    out: Any = None,
) -> Any:
    decayed = np.asarray(param) * (1 - lr * coeff)
    return adam(decayed, grad, mom1, mom2, mom2_max, lr, beta1, beta2, eps, beta1_pow, beta2_pow, out)


@peer(AdamAttr)
@peer(AdamWAttr)
def numpy_adam(attr: AdamAttr, *arrays: AnyArray) -> Bound:
    function: Any = adamw if isinstance(attr, AdamWAttr) else adam
    inputs, results = _halves(attr, arrays)
    named: dict[str, Any] = {name: getattr(attr, name) for name in attr.floats}
    return partial(function, *inputs, **named, out=results)


def _halves(attr: AdamAttr, arrays: tuple[AnyArray, ...]) -> tuple[tuple[AnyArray, ...], tuple[AnyArray, ...]]:
    """Return inputs and outputs."""
    inputs = len(attr.signature().inputs)
    return arrays[:inputs], arrays[inputs:]


def _steps_before(attr: AdamAttr) -> float | None:
    """Return the number of earlier steps that yields the attr's bias correction, or None if there is none."""
    if not attr.beta1_pow and not attr.beta2_pow:
        return 1e9
    if not (0 < attr.beta1 < 1 and attr.beta1_pow):
        return None
    steps = round(math.log(attr.beta1_pow) / math.log(attr.beta1))
    powers = (attr.beta1**steps, attr.beta2**steps)
    matches = np.allclose(powers, (attr.beta1_pow, attr.beta2_pow), rtol=1e-5)
    return steps - 1.0 if matches and steps > 0 else None


@peer(AdamAttr, name="torch")
@peer(AdamWAttr, name="torch")
def torch_adam(attr: AdamAttr, *arrays: AnyArray) -> Bound | None:
    """Run the fused optimizer, in place in the outputs."""
    import torch

    steps = _steps_before(attr)
    if steps is None:
        return None
    (param, grad, *moments), results = _halves(attr, arrays)
    for into, value in zip(results, (param, *moments), strict=True):
        into[...] = value
    kinds: dict[str, Any] = {"amsgrad": attr.amsgrad, "fused": True}
    if isinstance(attr, AdamWAttr):
        optimizer, kinds = torch.optim.AdamW, {**kinds, "weight_decay": attr.coeff}
    else:
        optimizer = torch.optim.Adam
    own, *states = map(torch.from_numpy, results)
    own.requires_grad_()
    own.grad = torch.from_numpy(grad)
    instance = optimizer([own], lr=attr.lr, betas=(attr.beta1, attr.beta2), eps=attr.eps, **kinds)
    instance.state[own]["step"] = torch.tensor(steps, dtype=torch.float32)
    for name, state in zip(("exp_avg", "exp_avg_sq", "max_exp_avg_sq"), states, strict=False):
        instance.state[own][name] = state
    return partial(instance.step)


@peer(AdamAttr, name="numba")
@peer(AdamWAttr, name="numba")
def numba_adam(attr: AdamAttr, *arrays: AnyArray) -> Bound | None:
    number = np.dtype(attr.dtype).type
    inputs, results = _halves(attr, arrays)
    if attr.amsgrad:
        return None
    shrunk = math.sqrt(1 - attr.beta2_pow)
    decay = attr.lr * attr.coeff if isinstance(attr, AdamWAttr) else 0.0
    factors = (1 - decay, attr.beta1, attr.beta2, attr.lr * shrunk / (1 - attr.beta1_pow), attr.eps * shrunk)
    return partial(_numba_loop(), inputs, results, tuple(map(number, factors)))


@functools.cache
def _numba_loop() -> Callable[..., None]:
    import numba

    @numba.njit(error_model="numpy")  # type: ignore[untyped-decorator,unused-ignore]  # where there is no Numba
    def loop(inputs: Any, results: Any, factors: Any) -> None:
        param, grad, mom1, mom2 = inputs
        param_out, mom1_out, mom2_out = results
        decay, beta1, beta2, factor, eps = factors
        one = type(beta1)(1)
        for i in range(param.size):
            first = beta1 * mom1[i] + (one - beta1) * grad[i]
            second = beta2 * mom2[i] + (one - beta2) * grad[i] * grad[i]
            mom1_out[i] = first
            mom2_out[i] = second
            param_out[i] = decay * param[i] - factor * first / (np.sqrt(second) + eps)

    compiled: Callable[..., None] = loop
    return compiled


@ordinary_calls(AdamAttr)
def steps(elements: int) -> Iterator[OrdinaryCall]:
    yield from _steps(elements, {})


@ordinary_calls(AdamWAttr)
def decaying_steps(elements: int) -> Iterator[OrdinaryCall]:
    yield from _steps(elements, {"coeff": 0.1})


def _steps(elements: int, more: dict[str, float]) -> Iterator[OrdinaryCall]:
    line = tuple(values(elements) for _ in range(5))
    whole = tuple(values(shape(elements, 2)) for _ in range(5))
    corrected = {"lr": 0.01, "beta1_pow": 0.81, "beta2_pow": 0.998, **more}
    yield OrdinaryCall("1-D", line[:4])
    yield OrdinaryCall("corrected", line[:4], corrected)
    yield OrdinaryCall("amsgrad", line, corrected)
    yield OrdinaryCall("amsgrad by name", line[:4], {"mom2_max": line[4]})
    yield OrdinaryCall("by position", (*line, 0.01, 0.5, 0.95, 1e-3))
    yield OrdinaryCall("2-D", whole, corrected)
    yield from in_dtypes(*line[:4], bools=False)
    yield OrdinaryCall("grad float16", (line[0], line[1].astype(np.float16), *line[2:4]))
    yield OrdinaryCall("param float64", (line[0].astype(np.float64), *line[1:4]))
    for name, form in LAYOUTS.items():
        yield OrdinaryCall(name, tuple(map(form, whole)))
        yield OrdinaryCall(f"grad {name}", (whole[0], form(whole[1]), *whole[2:4]))
    yield OrdinaryCall("moments of numbers", (*line[:2], 0.0, 0.0))
    yield OrdinaryCall("empty", tuple(value[:0] for value in line[:4]))
    kinds = [outs(whole[0]) for _ in range(4)]
    for kind in kinds[0]:
        yield OrdinaryCall(f"out={kind}", whole[:4], {"out": tuple(out[kind] for out in kinds[:3])})
        yield OrdinaryCall(f"amsgrad, out={kind}", whole, {"out": tuple(out[kind] for out in kinds)})
    own = tuple(values(elements) for _ in range(5))
    yield OrdinaryCall("in place", own[:4], {"out": (own[0], *own[2:4])})
    yield OrdinaryCall("amsgrad, in place", own, {"out": (own[0], *own[2:])})
