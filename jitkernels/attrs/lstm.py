"""LSTM_CTHT: the elementwise part of one step of an LSTM."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from jitkernels.attrs.base import (
    FLOATS,
    Call,
    Case,
    KernelAttr,
    Tolerance,
    cases,
    choice,
    dtype_name,
    float_arrays,
)
from jitkernels.errors import ArgumentError
from jitkernels.signature import Array, Signature

ACTIVATIONS = ("sigmoid", "tanh", "relu", "identity")


class LSTMCtHtAttr(KernelAttr, kernel_type="LSTM_CTHT"):
    """ct = act_cand(c) * act_gate(i) + ct_1 * act_gate(f); ht = act_cell(ct) * act_gate(o).

    gates holds the four pre-activations [c | i | f | o], each of length d, and is left as it is. With
    peepholes wp = [w_i | w_f | w_o]: i gains w_i * ct_1, f gains w_f * ct_1, and o gains w_o * ct.
    """

    d: int
    act_gate: str = choice(*ACTIVATIONS, default="sigmoid")
    act_cand: str = choice(*ACTIVATIONS, default="tanh")
    act_cell: str = choice(*ACTIVATIONS, default="tanh")
    use_peephole: bool = False
    dtype: str = "float32"

    def signature(self) -> Signature:
        gates = Array("gates", "in", (4 * self.d,), self.dtype)
        ct_1 = Array("ct_1", "in", (self.d,), self.dtype, in_place=True, domain=(-1.0, 1.0))
        peephole = (
            [Array("wp", "in", (3 * self.d,), self.dtype, domain=(-1.0, 1.0))] if self.use_peephole else []
        )
        ct = Array("ct", "out", (self.d,), self.dtype, in_place=True)
        ht = Array("ht", "out", (self.d,), self.dtype)
        return Signature((gates, ct_1, *peephole, ct, ht), (("d", self.d),))

    def tolerance(self) -> Tolerance:
        """Every activation is off by at most 3 units; the sum of two products may cancel."""
        return Tolerance(ulp=16, absolute=32 * float(np.finfo(self.dtype).eps))

    def operations(self) -> float:
        return 90.0 * self.d

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        usual = [
            cls(d=d, use_peephole=peephole, dtype=dtype)
            for dtype in FLOATS
            for peephole in (False, True)
            for d in (8, 16, 32, 64, 100, 128, 256, 512, 1024, 4096)
        ]
        ci = [
            cls(d=d, act_gate=gate, act_cand=candidate, act_cell=cell, use_peephole=peephole, dtype=dtype)
            for dtype in FLOATS
            for peephole in (False, True)
            for d, gate, candidate, cell in (
                (1, "sigmoid", "tanh", "tanh"),
                (8, "sigmoid", "tanh", "identity"),
                (31, "sigmoid", "relu", "tanh"),
                (100, "tanh", "identity", "sigmoid"),
                (1000, "relu", "sigmoid", "relu"),
            )
        ]
        return cases(usual, ci=ci)

    @classmethod
    def call(
        cls,
        gates: Any,
        ct_1: Any,
        wp: Any = None,
        act_gate: str = "sigmoid",
        act_cand: str = "tanh",
        act_cell: str = "tanh",
    ) -> Call:
        peephole = {} if wp is None else {"wp": wp}
        arrays = float_arrays("lstm_ctht", gates=gates, ct_1=ct_1, **peephole)
        d = arrays[1].size
        for name, array, times in zip(("gates", "ct_1", "wp"), arrays, (4, 1, 3), strict=False):
            if array.shape != (times * d,):
                raise ArgumentError(f"lstm_ctht: {name}: expected shape {(times * d,)}, got {array.shape}")
        attr = cls(
            d=d,
            act_gate=act_gate,
            act_cand=act_cand,
            act_cell=act_cell,
            use_peephole=wp is not None,
            dtype=dtype_name(arrays[0]),
        )
        return Call(attr, arrays, [(d,), (d,)])
