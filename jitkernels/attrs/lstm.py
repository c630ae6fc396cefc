"""LSTM_CTHT: the elementwise part of one step of an LSTM."""

from collections.abc import Iterable, Sequence

import numpy as np

from jitkernels.attrs.base import FLOATS, Case, KernelAttr, Tolerance, cases, choice
from jitkernels.signature import AnyArray, Argument

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
        """Two activations of 4 ULP, a product and a sum, all relative to `absolute_terms`."""
        return Tolerance(ulp=2, terms=10)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The absolute products, and what the errors of their factors make of them (by the slope there)."""
        gates, ct_1, *peephole = arrays[:-2]
        c, i, f, o = gates.reshape(4, self.d)
        off_i, off_f, off_o = np.zeros((3, self.d))
        if peephole:
            products = peephole[0].reshape(3, self.d)[:2] * ct_1
            off_i, off_f = self._finite(np.abs((i, f)) + np.abs(products))
            i, f = i + products[0], f + products[1]
        candidate, off_c, _ = self._activated(self.act_cand, c)
        input_gate, off_input, slope_i = self._activated(self.act_gate, i)
        forget_gate, off_forget, slope_f = self._activated(self.act_gate, f)
        off_input, off_forget = off_input + slope_i * off_i, off_forget + slope_f * off_f
        ct = candidate * input_gate + ct_1 * forget_gate
        off_ct = np.abs(candidate) * off_input + off_c * np.abs(input_gate) + np.abs(ct_1) * off_forget
        off_ct = self._finite(
            np.where(np.isnan(ct), ct, off_ct)
        )  # NaN where infinity meets a gate that has underflowed
        if peephole:
            w_o = peephole[0][2 * self.d :]
            o, off_o = o + w_o * ct, self._finite(np.abs(o) + np.abs(w_o) * (np.abs(ct) + off_ct))
        cell, off_cell, slope_ct = self._activated(self.act_cell, ct)
        output_gate, off_output, slope_o = self._activated(self.act_gate, o)
        off_cell, off_output = off_cell + slope_ct * off_ct, off_output + slope_o * off_o
        return [off_ct, np.abs(cell) * off_output + off_cell * np.abs(output_gate)]

    def _finite(self, terms: AnyArray) -> AnyArray:
        """Infinite where a sum on the way may overflow, however flat the activation that it goes to."""
        return np.where(terms > float(np.finfo(self.dtype).max), np.inf, terms)

    def _activated(self, name: str, x: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
        """An activation, what its error is relative to (more than itself if it underflows), and its slope."""
        slope = np.ones_like(x)
        if name == "sigmoid":
            value = 1 / (1 + np.exp(-x))
            slope = value * (1 - value)
        elif name == "tanh":
            value = np.tanh(x)
            slope = 1 - value * value
        else:
            value = np.maximum(x, 0) if name == "relu" else x
        value = value.astype(self.dtype).astype(x.dtype)
        return value, np.abs(value) + float(np.finfo(self.dtype).tiny), slope

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
