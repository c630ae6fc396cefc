"""Branches and loops of a model: those whose conditions and trip counts are known run while the model is traced.

All others become loops and branches of the compiled code where their values keep one shape, and run in Python, with
compiled bodies, elsewhere.
"""

from typing import Any

import numpy as np

from jitkernels.compiler.api.structured_control_flow import cond as branch
from jitkernels.onnx.operator_registry import operator
from jitkernels.onnx.values import NotServedError, axis_of, constant, is_traced

MAX_UNROLLED_STEPS = 64
"""Most iterations of a loop that is traced one after another."""


@operator("If")
def if_(condition: Any, *, then_branch: Any, else_branch: Any) -> Any:
    if not is_traced(condition):
        return (then_branch if bool(np.asarray(condition).reshape(-1)[0]) else else_branch)()
    then_branch.prepare_constants()
    else_branch.prepare_constants()
    return branch(np.reshape(condition, (-1,))[0], lambda: then_branch(), lambda: else_branch())


def _truth(value: Any) -> bool:
    if is_traced(value):
        raise NotServedError("a loop that ends where an element says so")
    return bool(np.asarray(value).reshape(-1)[0])


@operator("Loop", static=(0, 1))
def loop(count: Any, condition: Any = None, *carried: Any, body: Any) -> Any:
    """Iterations in order: what each carries on, and the results of all, stacked."""
    most = None if count is None else int(np.asarray(count).reshape(-1)[0])
    traced = any(map(_has_traced, (*carried, condition)))
    if traced and (most is None or most > MAX_UNROLLED_STEPS):
        raise NotServedError("a loop of many iterations")
    state = list(carried)
    goes_on = condition is None or _truth(condition)
    collected: list[list[Any]] = [[] for _ in range(len(body.graph.outputs) - 1 - len(carried))]
    i = 0
    while goes_on and (most is None or i < most):
        again, *results = body(constant(i, np.int64), constant(True) if condition is None else condition, *state)
        state, parts = results[: len(carried)], results[len(carried) :]
        for listed, part in zip(collected, parts, strict=True):
            listed.append(part)
        i += 1
        goes_on = True if most is not None and i >= most else _truth(again)
        condition = again
    return (
        *state,
        *(np.stack(parts) if parts else _nothing(body, k - len(collected)) for k, parts in enumerate(collected)),
    )


def _has_traced(value: Any) -> bool:
    return any(map(_has_traced, value)) if isinstance(value, list) else is_traced(value)


def _nothing(body: Any, index: int) -> Any:
    """The stacked results of no iterations, of the declared type of an output."""
    declared = body.graph.outputs[index]
    shape = [one if type(one) is int else 0 for one in declared.shape or ()]
    return np.zeros((0, *shape), declared.dtype or "float32")


@operator("Scan", since=9)
def scan(*values: Any, body: Any, num_scan_inputs: int, node: Any = None) -> Any:
    """Iterations over slices of arrays: the last state, and the results of all, stacked."""
    attributes = node.attributes
    state, arrays = list(values[: len(values) - num_scan_inputs]), list(values[len(values) - num_scan_inputs :])
    axes = attributes.get("scan_input_axes") or [0] * num_scan_inputs
    backwards = attributes.get("scan_input_directions") or [0] * num_scan_inputs
    moved = [np.moveaxis(one, axis_of(axis, one.ndim), 0) for one, axis in zip(arrays, axes, strict=True)]
    count = int(moved[0].shape[0])
    if any(map(is_traced, values)) and count > MAX_UNROLLED_STEPS:
        raise NotServedError("a scan of many iterations")
    collected: list[list[Any]] = [[] for _ in range(len(body.graph.outputs) - len(state))]
    for i in range(count):
        slices = [one[count - 1 - i if back else i] for one, back in zip(moved, backwards, strict=True)]
        results = list(body(*state, *slices))
        state, parts = results[: len(state)], results[len(state) :]
        for listed, part in zip(collected, parts, strict=True):
            listed.append(part)
    out_axes = attributes.get("scan_output_axes") or [0] * len(collected)
    out_backwards = attributes.get("scan_output_directions") or [0] * len(collected)
    stacked = []
    for parts, axis, back in zip(collected, out_axes, out_backwards, strict=True):
        whole = np.stack(parts[::-1] if back else parts)
        stacked.append(np.moveaxis(whole, 0, axis_of(axis, whole.ndim)))
    return (*state, *stacked)


@operator("Scan")
def scan_of_batches(
    lengths: Any, *values: Any, body: Any, num_scan_inputs: int, directions: list[int] | None = None
) -> Any:
    """Opset 8's: the first axis is that of the batch, the second that of the steps."""
    if lengths is not None or any(directions or ()):
        raise NotServedError("a scan of sequences of several lengths")
    rows = []
    states = len(values) - num_scan_inputs
    for b in range(int(values[0].shape[0])):
        state, collected = [one[b] for one in values[:states]], []
        for t in range(int(values[states].shape[1])):
            results = list(body(*state, *(one[b, t] for one in values[states:])))
            state = results[:states]
            collected.append(results[states:])
        stacked = [np.stack([step[k] for step in collected]) for k in range(len(collected[0]))]
        rows.append([*state, *stacked])
    return tuple(np.stack([row[k] for row in rows]) for k in range(len(rows[0])))


@operator("SequenceMap")
def sequence_map(sequence: list[Any], *others: Any, body: Any) -> Any:
    collected = [
        body(one, *(other[i] if isinstance(other, list) else other for other in others))
        for i, one in enumerate(sequence)
    ]
    return tuple([results[k] for results in collected] for k in range(len(body.graph.outputs)))
