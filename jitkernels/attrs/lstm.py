"""LSTM_CTHT and LSTM_C1H1: the elementwise part of one step of an LSTM."""

from collections.abc import Iterable, Sequence

import numpy as np

from jitkernels.attrs.rnn_activations import ACTIVATIONS, activated, finite
from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, choice
from jitkernels.attrs.schema.signature import AnyArray, Argument

USUAL = (8, 16, 32, 64, 100, 128, 256, 512, 1024, 4096)
CHECKED = (
    (1, "sigmoid", "tanh", "tanh"),
    (8, "sigmoid", "tanh", "identity"),
    (31, "sigmoid", "relu", "tanh"),
    (100, "tanh", "identity", "sigmoid"),
    (1000, "relu", "sigmoid", "relu"),
)
"""Lengths, and activations of gates, candidate and cell."""


class _LstmCellAttr(KernelAttr):
    """The common fields of both rows."""

    d: int
    act_gate: str = choice(*ACTIVATIONS, default="sigmoid")
    act_cand: str = choice(*ACTIVATIONS, default="tanh")
    act_cell: str = choice(*ACTIVATIONS, default="tanh")
    use_peephole: bool = False
    dtype: str = "float32"
    options = ("act_gate", "act_cand", "act_cell")

    def tolerance(self) -> Tolerance:
        """Two activations of 4 ULP, a product and a sum, all relative to `absolute_terms`."""
        return Tolerance(ulp=2, terms=10)

    def _of_state(self, ct: AnyArray, off_ct: AnyArray, o: AnyArray, peephole: Sequence[AnyArray]) -> list[AnyArray]:
        """The terms of a new cell (NaN where infinity meets an underflowed gate) and of its output."""
        off_ct = finite(np.where(np.isnan(ct), ct, off_ct), self.dtype)
        off_o = np.zeros(self.d)
        if peephole:
            w_o = peephole[0][2 * self.d :]
            o, off_o = o + w_o * ct, finite(np.abs(o) + np.abs(w_o) * (np.abs(ct) + off_ct), self.dtype)
        cell, off_cell, slope_ct = activated(self.act_cell, ct, self.dtype)
        output_gate, off_output, slope_o = activated(self.act_gate, o, self.dtype)
        off_cell, off_output = off_cell + slope_ct * off_ct, off_output + slope_o * off_o
        return [off_ct, np.abs(cell) * off_output + off_cell * np.abs(output_gate)]

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        usual = [
            cls(d=d, use_peephole=peephole, dtype=dtype)
            for dtype in FLOATS
            for peephole in (False, True)
            for d in USUAL
        ]
        ci = [
            cls(d=d, act_gate=gate, act_cand=candidate, act_cell=cell, use_peephole=peephole, dtype=dtype)
            for turn, dtype in enumerate(FLOATS)
            for number, (d, gate, candidate, cell) in enumerate(CHECKED)
            for peephole in [(number + turn) % 2 == 1]
        ]
        return cases(usual, ci=ci)


class LSTMCtHtAttr(_LstmCellAttr, kernel_type="LSTM_CTHT"):
    """ct = act_cand(c) * act_gate(i) + ct_1 * act_gate(f); ht = act_cell(ct) * act_gate(o).

    gates holds the four pre-activations [c | i | f | o], each of length d, and is not modified. With peepholes wp =
    [w_i | w_f | w_o]: i gains w_i * ct_1, f gains w_f * ct_1, and o gains w_o * ct.
    """

    arrays = (
        Argument("gates", "in", "4*d"),
        Argument("ct_1", "in", "d", in_place=True, domain=(-1.0, 1.0)),
        Argument("wp", "in", "3*d", domain=(-1.0, 1.0), when="use_peephole"),
        Argument("ct", "out", "d", in_place=True),
        Argument("ht", "out", "d"),
    )

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The absolute products, and the propagated errors of their factors (by the slope there)."""
        gates, ct_1, *peephole = arrays[:-2]
        c, i, f, o = gates.reshape(4, self.d)
        off_i, off_f = np.zeros((2, self.d))
        if peephole:
            products = peephole[0].reshape(3, self.d)[:2] * ct_1
            off_i, off_f = finite(np.abs((i, f)) + np.abs(products), self.dtype)
            i, f = i + products[0], f + products[1]
        candidate, off_c, _ = activated(self.act_cand, c, self.dtype)
        input_gate, off_input, slope_i = activated(self.act_gate, i, self.dtype)
        forget_gate, off_forget, slope_f = activated(self.act_gate, f, self.dtype)
        off_input, off_forget = off_input + slope_i * off_i, off_forget + slope_f * off_f
        ct = candidate * input_gate + ct_1 * forget_gate
        off_ct = np.abs(candidate) * off_input + off_c * np.abs(input_gate) + np.abs(ct_1) * off_forget
        return self._of_state(ct, off_ct, o, peephole)

    def operations(self) -> float:
        return 90.0 * self.d


class LSTMC1H1Attr(_LstmCellAttr, kernel_type="LSTM_C1H1"):
    """ct = act_cand(c) * act_gate(i); ht = act_cell(ct) * act_gate(o): the first step, before which the cell is 0.

    gates holds the four pre-activations [c | i | f | o], each of length d, and is not modified; f is not read. With
    peepholes wp = [w_i | w_f | w_o], of which only w_o is read: o gains w_o * ct.
    """

    arrays = (
        Argument("gates", "in", "4*d"),
        Argument("wp", "in", "3*d", domain=(-1.0, 1.0), when="use_peephole"),
        Argument("ct", "out", "d"),
        Argument("ht", "out", "d"),
    )

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The absolute products, and the propagated errors of their factors (by the slope there)."""
        gates, *peephole = arrays[:-2]
        c, i, _, o = gates.reshape(4, self.d)
        candidate, off_c, _ = activated(self.act_cand, c, self.dtype)
        input_gate, off_input, _ = activated(self.act_gate, i, self.dtype)
        off_ct = np.abs(candidate) * off_input + off_c * np.abs(input_gate)
        return self._of_state(candidate * input_gate, off_ct, o, peephole)

    def operations(self) -> float:
        return 70.0 * self.d
