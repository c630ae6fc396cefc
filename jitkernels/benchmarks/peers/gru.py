"""Peers of GRU cells in NumPy."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.gru import GRUH1Attr, GRUHtPart1Attr, GRUHtPart2Attr
from jitkernels.benchmarks.peers import OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import in_dtypes, in_layouts, outs, values
from jitkernels.benchmarks.peers.lstm import activated


@equivalent(GRUH1Attr)
def gru_h1(gates: Any, act_gate: str = "sigmoid", act_cand: str = "tanh", out: Any = None) -> Any:
    u, _, s = np.asarray(gates).reshape(3, -1)
    return np.multiply(activated(act_gate, u), activated(act_cand, s), out=out)


@equivalent(GRUHtPart1Attr)
def gru_ht_part1(gates: Any, ht_1: Any, act_gate: str = "sigmoid", out: Any = None) -> Any:
    _, r, _ = np.asarray(gates).reshape(3, -1)
    return np.multiply(activated(act_gate, r), ht_1, out=out)


@equivalent(GRUHtPart2Attr)
def gru_ht_part2(gates: Any, ht_1: Any, act_gate: str = "sigmoid", act_cand: str = "tanh", out: Any = None) -> Any:
    u, _, s = np.asarray(gates).reshape(3, -1)
    update = activated(act_gate, u)
    retained = (1 - update) * ht_1
    return np.add(update * activated(act_cand, s), retained, out=out)


peer(GRUH1Attr)(lambda attr, gates, ht: partial(gru_h1, gates, attr.act_gate, attr.act_cand, ht))
peer(GRUHtPart1Attr)(lambda attr, gates, ht_1, ht: partial(gru_ht_part1, gates, ht_1, attr.act_gate, ht))
peer(GRUHtPart2Attr)(lambda attr, gates, ht_1, ht: partial(gru_ht_part2, gates, ht_1, attr.act_gate, attr.act_cand, ht))


def _calls(inputs: int, options: tuple[str, ...]) -> Callable[[int], Iterator[OrdinaryCall]]:
    """Return the calls of a row with `inputs` inputs, its gates and perhaps a previous state."""

    def calls(elements: int) -> Iterator[OrdinaryCall]:
        d = elements // 3
        arrays = (values(3 * d), values(d))[:inputs]
        yield OrdinaryCall("plain", arrays)
        for option in options:
            for name in ("sigmoid", "tanh", "relu", "identity"):
                yield OrdinaryCall(f"{option}={name}", arrays, {option: name})
        yield OrdinaryCall("by position", (*arrays, *["sigmoid", "relu"][: len(options)]))
        yield from in_dtypes(*arrays, bools=False)
        yield from in_layouts(*arrays)
        yield OrdinaryCall("empty", tuple(array[:0] for array in arrays))
        for kind, out in outs(values(d)).items():
            yield OrdinaryCall(f"out={kind}", arrays, {"out": out})
        if inputs == 2:
            yield OrdinaryCall("in place", arrays, {"out": arrays[1]})

    return calls


ordinary_calls(GRUH1Attr)(_calls(1, ("act_gate", "act_cand")))
ordinary_calls(GRUHtPart1Attr)(_calls(2, ("act_gate",)))
ordinary_calls(GRUHtPart2Attr)(_calls(2, ("act_gate", "act_cand")))
