"""LSTM_CTHT: the elementwise part of one step of an LSTM."""

from collections.abc import Iterable

import numpy as np

from jitkernels.attrs.base import FLOATS, Case, KernelAttr, Tolerance, cases, choice
from jitkernels.signature import Argument

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
    arrays = (
        Argument("gates", "in", "4*d"),
        Argument("ct_1", "in", "d", in_place=True, domain=(-1.0, 1.0)),
        Argument("wp", "in", "3*d", domain=(-1.0, 1.0), when="use_peephole"),
        Argument("ct", "out", "d", in_place=True),
        Argument("ht", "out", "d"),
    )
    options = ("act_gate", "act_cand", "act_cell")

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
