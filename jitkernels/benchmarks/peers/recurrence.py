"""Peers of LSTM and GRU, and of their forms with packed weights, in NumPy and other packages."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.recurrence import PANEL_UNITS, GRUAttr, GRUPackedAttr, LSTMAttr, LSTMPackedAttr
from jitkernels.attrs.schema.argument_binding import arguments_by_name
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer, threads
from jitkernels.benchmarks.peers.array_layouts import in_dtypes, in_layouts, outs, values

HIDDEN = 16
"""Units in ordinary calls with few elements; the elements count x."""


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


@equivalent(LSTMAttr)
def lstm(
    x: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None, h0: Any = None, c0: Any = None,
    out: Any = None,
) -> Any:  # fmt: skip
    x, w_ih, w_hh = np.asarray(x), np.asarray(w_ih), np.asarray(w_hh)
    hidden = w_hh.shape[1]
    zero = np.zeros((x.shape[1], hidden), np.result_type(x, w_ih))
    h, c = (zero, zero) if h0 is None else (np.asarray(h0), np.asarray(c0))
    y = np.empty((*x.shape[:2], hidden), zero.dtype) if out is None else out[0]
    sums = x @ w_ih.T
    if b_ih is not None:
        sums = sums + (np.asarray(b_ih) + np.asarray(b_hh))
    for t in range(len(x)):
        i, f, g, o = np.split(sums[t] + h @ w_hh.T, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        y[t] = h = sigmoid(o) * np.tanh(c)
    if out is None:
        return y, h, c
    out[1][...], out[2][...] = h, c
    return out


@equivalent(GRUAttr)
def gru(x: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None, h0: Any = None, out: Any = None) -> Any:
    x, w_ih, w_hh = np.asarray(x), np.asarray(w_ih), np.asarray(w_hh)
    hidden = w_hh.shape[1]
    h = np.zeros((x.shape[1], hidden), np.result_type(x, w_ih)) if h0 is None else np.asarray(h0)
    y = np.empty((*x.shape[:2], hidden), h.dtype) if out is None else out[0]
    of_x = x @ w_ih.T
    if b_ih is not None:
        of_x = of_x + np.asarray(b_ih)
    for t in range(len(x)):
        of_h = h @ w_hh.T
        if b_hh is not None:
            of_h = of_h + np.asarray(b_hh)
        (a_r, a_z, a_n), (b_r, b_z, b_n) = np.split(of_x[t], 3, axis=1), np.split(of_h, 3, axis=1)
        n = np.tanh(a_n + sigmoid(a_r + b_r) * b_n)
        y[t] = h = n + sigmoid(a_z + b_z) * (h - n)
    if out is None:
        return y, h
    out[1][...] = h
    return out


def _inputs_and_outputs(
    attr: LSTMAttr | GRUAttr, arrays: tuple[AnyArray, ...], states: int
) -> tuple[list[Any], list[AnyArray]]:
    """Return the inputs, None for omitted ones, and the outputs."""
    inputs: list[Any] = list(arrays[: len(arrays) - 1 - states])
    biases: list[Any] = [inputs.pop(3) for _ in range(2)] if attr.bias else [None, None]
    return [*inputs[:3], *biases, *(inputs[3:] or [None] * states)], list(arrays[-1 - states :])


@peer(LSTMAttr)
def numpy_lstm(attr: LSTMAttr, *arrays: AnyArray) -> Bound:
    inputs, outputs = _inputs_and_outputs(attr, arrays, 2)
    return partial(lstm, *[*inputs, tuple(outputs)])


@peer(GRUAttr)
def numpy_gru(attr: GRUAttr, *arrays: AnyArray) -> Bound:
    inputs, outputs = _inputs_and_outputs(attr, arrays, 1)
    return partial(gru, *[*inputs, tuple(outputs)])


def _of_torch(name: str, attr: LSTMAttr | GRUAttr, inputs: list[Any]) -> Bound | None:
    """Return torch's module of that name with these weights, which it stores in its own format."""
    import torch

    if not (attr.hidden and attr.batch and attr.steps and attr.input):
        return None
    module = getattr(torch.nn, name)(
        attr.input, attr.hidden, bias=attr.bias, dtype=getattr(torch, attr.dtype)
    ).requires_grad_(False)
    biases = [module.bias_ih_l0, module.bias_hh_l0] if attr.bias else []
    weights = (module.weight_ih_l0, module.weight_hh_l0, *biases)
    for weight, value in zip(weights, [value for value in inputs[1:5] if value is not None], strict=True):
        weight.copy_(torch.from_numpy(value))
    states = [torch.from_numpy(state[np.newaxis]) for state in inputs[5:] if state is not None]
    given = [torch.from_numpy(inputs[0])]
    if states:
        given.append(tuple(states) if len(states) > 1 else states[0])
    run = torch.inference_mode()(module.forward)
    return partial(run, *given)


peer(LSTMAttr, name="torch")(lambda attr, *arrays: _of_torch("LSTM", attr, _inputs_and_outputs(attr, arrays, 2)[0]))
peer(GRUAttr, name="torch")(lambda attr, *arrays: _of_torch("GRU", attr, _inputs_and_outputs(attr, arrays, 1)[0]))


def _of_onnxruntime(name: str, order: tuple[int, ...], attr: LSTMAttr | GRUAttr, inputs: list[Any]) -> Bound | None:
    """Return a session of one node, whose weights are constants in ONNX's order of gates."""
    try:
        import onnx
        import onnxruntime
    except ImportError:  # one without the other is invalid
        return None
    if attr.dtype != "float32" or not (attr.hidden and attr.batch and attr.steps and attr.input):
        return None

    def ordered(w: AnyArray) -> AnyArray:
        parts = w.reshape(len(order), attr.hidden, -1)
        return np.ascontiguousarray(np.concatenate([parts[gate] for gate in order])[np.newaxis])

    constants = {"w": ordered(inputs[1]), "r": ordered(inputs[2])}
    if attr.bias:
        constants["b"] = np.concatenate([ordered(bias)[..., 0] for bias in inputs[3:5]], axis=1)
    fed = {"x": inputs[0]}
    states = {key: s[np.newaxis] for key, s in zip(("h", "c"), inputs[5:], strict=False) if s is not None}
    fed |= states
    names = ["x", "w", "r", "b" if attr.bias else "", "", *states]
    named = {"linear_before_reset": 1} if name == "GRU" else {}
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    node = helper.make_node(name, names, ["y"], hidden_size=attr.hidden, **named)
    graph = helper.make_graph(
        [node], name,
        [helper.make_tensor_value_info(key, kind, value.shape) for key, value in fed.items()],
        [helper.make_tensor_value_info("y", kind, None)],
        [onnx.numpy_helper.from_array(value, key) for key, value in constants.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads.most()
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return partial(session.run, None, fed)


@peer(LSTMAttr, name="onnxruntime")
def onnxruntime_lstm(attr: LSTMAttr, *arrays: AnyArray) -> Bound | None:
    return _of_onnxruntime("LSTM", (0, 3, 1, 2), attr, _inputs_and_outputs(attr, arrays, 2)[0])


@peer(GRUAttr, name="onnxruntime")
def onnxruntime_gru(attr: GRUAttr, *arrays: AnyArray) -> Bound | None:
    return _of_onnxruntime("GRU", (1, 0, 2), attr, _inputs_and_outputs(attr, arrays, 1)[0])


def _calls(gates: int, states: int) -> Callable[[int], Iterator[OrdinaryCall]]:
    """Return the calls of a row with these numbers of gates and states."""

    def calls(elements: int) -> Iterator[OrdinaryCall]:
        inputs = 4 if elements < 100 else HIDDEN
        steps, batch = max(elements // inputs // 4, 1), 4 if elements >= 100 else 2
        hidden = inputs
        x = values((steps, batch, inputs))
        weights = tuple(values((gates * hidden, n)) / 8 for n in (inputs, hidden))
        biases = (values(gates * hidden), values(gates * hidden))
        before = (values((batch, hidden)),) * states
        yield OrdinaryCall("plain", (x, *weights))
        yield OrdinaryCall("biases", (x, *weights, *biases))
        yield OrdinaryCall("states", (x, *weights, *biases, *before))
        yield OrdinaryCall("states by name", (x, *weights), dict(zip(("h0", "c0"), before, strict=False)))
        yield from in_dtypes(x, *weights, bools=False)
        yield from in_layouts(x, *weights)
        yield OrdinaryCall("batch first", (np.ascontiguousarray(x.swapaxes(0, 1)).swapaxes(0, 1), *weights))
        yield OrdinaryCall("no rows", (x[:, :0], *weights))
        shown = outs(values((steps, batch, hidden)))
        for kind, state in outs(values((batch, hidden))).items():
            yield OrdinaryCall(f"out={kind}", (x, *weights), {"out": (shown[kind], *(state.copy() for _ in before))})

    return calls


ordinary_calls(LSTMAttr)(_calls(4, 2))
ordinary_calls(GRUAttr)(_calls(3, 1))


def _unpacked(panels: Any, gates: int, hidden: int) -> AnyArray:
    """Return the weights of so many hidden units in their usual order."""
    count, depth, _ = np.shape(panels)
    units = np.reshape(panels, (count, depth, gates, PANEL_UNITS)).transpose(2, 0, 3, 1)
    return units.reshape(gates, count * PANEL_UNITS, depth)[:, :hidden].reshape(gates * hidden, depth)


@equivalent(LSTMPackedAttr)
def lstm_packed(*arguments: Any, out: Any = None, **named: Any) -> Any:
    """Compute LSTM with weights that are no longer packed."""
    return lstm(**_with_weights(LSTMPackedAttr, arguments, named), out=out)


@equivalent(GRUPackedAttr)
def gru_packed(*arguments: Any, out: Any = None, **named: Any) -> Any:
    """Compute GRU with weights that are no longer packed."""
    return gru(**_with_weights(GRUPackedAttr, arguments, named), out=out)


def _with_weights(row: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call, whose weights are unpacked, by their names."""
    given = dict(arguments_by_name(row, arguments, named))
    hidden = given.pop("hidden")
    return given | {name: _unpacked(given[name], row.gates, hidden) for name in ("w_ih", "w_hh")}


@peer(LSTMPackedAttr)
def numpy_packed_lstm(attr: LSTMPackedAttr, x: AnyArray, w_ih: AnyArray, w_hh: AnyArray, *rest: AnyArray) -> Bound:
    return numpy_lstm(attr, x, attr.unpack(w_ih), attr.unpack(w_hh), *rest)


@peer(GRUPackedAttr)
def numpy_packed_gru(attr: GRUPackedAttr, x: AnyArray, w_ih: AnyArray, w_hh: AnyArray, *rest: AnyArray) -> Bound:
    return numpy_gru(attr, x, attr.unpack(w_ih), attr.unpack(w_hh), *rest)


def _packed_calls(gates: int, states: int) -> Callable[[int], Iterator[OrdinaryCall]]:
    """Return the calls of a row with packed weights: of one panel, and of two."""

    def calls(elements: int) -> Iterator[OrdinaryCall]:
        inputs, batch = 4, 2
        steps = max(elements // inputs // batch, 1)
        x = values((steps, batch, inputs))
        for hidden in (PANEL_UNITS, PANEL_UNITS + 5):
            panels = -(-hidden // PANEL_UNITS)
            weights = tuple(values((panels, n, gates * PANEL_UNITS)) / 8 for n in (inputs, hidden))
            biases = (values(gates * hidden), values(gates * hidden))
            before = (values((batch, hidden)),) * states
            yield OrdinaryCall(f"{hidden} units", (x, *weights), {"hidden": hidden})
            yield OrdinaryCall(f"{hidden} units with states", (x, *weights, *biases, *before), {"hidden": hidden})
        yield from in_dtypes(x, *weights, bools=False, hidden=hidden)
        yield from in_layouts(x, *weights, hidden=hidden)

    return calls


ordinary_calls(LSTMPackedAttr)(_packed_calls(4, 2))
ordinary_calls(GRUPackedAttr)(_packed_calls(3, 1))
