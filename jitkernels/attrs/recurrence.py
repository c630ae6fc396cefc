"""LSTM and GRU, and their forms with packed weights: whole sequences in batches."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, PackedInputs, Tolerance, cases, grid, whole
from jitkernels.attrs.schema.signature import AnyArray, Argument
from jitkernels.core.aligned_memory import aligned_empty
from jitkernels.core.bfloat16 import limits

WEIGHTS = (-0.125, 0.125)
STATES = (-1.0, 1.0)
PANEL_UNITS = 16
"""Hidden units of a panel: whole vectors of any processor."""
CHECKED = ((1, 1, 1, 1), (2, 1, 3, 5), (2, 3, 5, 8), (2, 5, 7, 17), (4, 1, 30, 33))
"""Steps, batch, inputs and hidden units."""
ACTIVATION_ULP = 4
"""Error of an activation in ULP, including the roundings of its uses."""


class _RecurrenceAttr(KernelAttr):
    """The common fields of both rows, and the error propagation of a recurrence."""

    steps: int
    batch: int
    input: int
    hidden: int
    bias: bool = False
    initial: bool = False
    dtype: str = "float32"
    gates = 0

    def tolerance(self) -> Tolerance:
        """The whole bound is in `absolute_terms`: errors of a step propagate through the following ones."""
        return Tolerance(ulp=2, terms=1)

    def _own(self, *terms: AnyArray) -> AnyArray:
        """The rounding error of a sum of a few terms, which may underflow."""
        known = limits(self.dtype)
        lost = float(known.eps) * sum(map(np.abs, terms)) + float(known.smallest_subnormal)
        return np.asarray(ACTIVATION_ULP * lost)

    def _activated(self, x: AnyArray, off: AnyArray, tanh_columns: slice) -> tuple[AnyArray, AnyArray]:
        """Sigmoids, and tanh in the columns `tanh_columns`; and their errors, by the steepest slope within x +- off.

        The error is at most the range of the function, unless x has overflowed. A value next to the least normal
        number may be flushed to 0.
        """
        dtype_limits = limits(self.dtype)
        value = 1 / (1 + np.exp(-x))
        value[:, tanh_columns] = np.tanh(x[:, tanh_columns])
        value = value.astype(self.dtype).astype(x.dtype)
        far = np.maximum(np.abs(x) - off, 0)
        far[:, tanh_columns] *= 2
        far = np.exp(-far)
        slope = far / np.square(1 + far)
        slope[:, tanh_columns] *= 4
        error = slope * off + (ACTIVATION_ULP * float(dtype_limits.eps) * np.abs(value) + 2 * float(dtype_limits.tiny))
        return value, np.where(np.isfinite(off), np.minimum(error, 2.0), off)

    def _product(self, x: AnyArray, size: AnyArray, off: AnyArray | None = None) -> AnyArray:
        """The error of x @ w.T, where `size` is |w.T| and `off` the error of x.

        Half a unit for each product of one chain; infinite where that overflows.
        """
        known = limits(self.dtype)
        total = np.abs(x) @ size
        lost = (len(size) / 2 + ACTIVATION_ULP) * float(known.eps) * total
        if off is not None:
            lost = lost + np.where(np.isinf(off).any(-1, keepdims=True), np.inf, off @ size)
        return np.where(total > float(known.max) / 4, np.inf, lost)

    def _of_inputs(self, x: AnyArray, w_ih: AnyArray) -> tuple[AnyArray, AnyArray]:
        """The products of all steps, and their errors."""
        flat, shape = x.reshape(self.steps * self.batch, self.input), (self.steps, self.batch, len(w_ih))
        return (flat @ w_ih.T).reshape(shape), self._product(flat, np.abs(w_ih).T).reshape(shape)

    def _of_state(self, t: int, h: AnyArray, w: AnyArray, size: AnyArray, off: AnyArray) -> tuple[AnyArray, AnyArray]:
        """The product of a step with the state, and its error: zero for an absent initial state."""
        if t or self.initial:
            return h @ w.T, self._product(h, size, off)
        return np.zeros((self.batch, len(w))), np.zeros((self.batch, len(w)))

    def _terms(self, *offs: AnyArray) -> Sequence[AnyArray]:
        """Errors in units of the precision, as `error_bounds` expects them."""
        return [off / float(limits(self.dtype).eps) for off in offs]

    def operations(self) -> float:
        products = 2.0 * self.gates * (self.input + self.hidden)
        return self.steps * self.batch * self.hidden * (products + 20.0 * (self.gates + 1))

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        full = [(50, batch, hidden, hidden) for batch in (1, 32) for hidden in (64, 128, 256, 512)]
        full += [(10, 8, 100, 100), (200, 1, 40, 96), (1, 1, 256, 256)]
        return cases(
            grid(cls, "steps batch input hidden", full, dtype=FLOATS, bias=(True,)),
            ci=[
                cls(steps=steps, batch=batch, input=inputs, hidden=hidden, bias=flag, initial=flag, dtype=dtype)
                for dtype in FLOATS
                for flag, (steps, batch, inputs, hidden) in zip((True, False, True, False, True), CHECKED, strict=True)
            ],
        )


class LSTMAttr(_RecurrenceAttr, kernel_type="LSTM"):
    """y[t] = h = o * tanh(c) for each step t, where c = f * c + i * g.

    i, f, g, o = x[t] @ w_ih.T + b_ih + h @ w_hh.T + b_hh, followed by a sigmoid for i, f and o and tanh for g. After
    the last step h_n = h and c_n = c.

    x is [steps, batch, input]. The weights are those of ``torch.nn.LSTM``: w_ih [4*hidden, input] and w_hh [4*hidden,
    hidden], whose rows belong to i, f, g and o in this order; so do the biases, both or neither of which are passed.
    h0 and c0 [batch, hidden] default to 0, and w_hh is not read before the second step then. Errors grow from step to
    step by the derivatives: where these are large, as with large weights and gates that are not saturated, so are
    errors. Source: Hochreiter & Schmidhuber 1997 with the forget gates of Gers et al. 2000.
    """

    gates = 4
    arrays = (
        Argument("x", "in", "steps batch input"),
        Argument("w_ih", "in", "4*hidden input", domain=WEIGHTS),
        Argument("w_hh", "in", "4*hidden hidden", domain=WEIGHTS),
        Argument("b_ih", "in", "4*hidden", domain=WEIGHTS, when="bias"),
        Argument("b_hh", "in", "4*hidden", domain=WEIGHTS, when="bias"),
        Argument("h0", "in", "batch hidden", domain=STATES, when="initial"),
        Argument("c0", "in", "batch hidden", domain=STATES, when="initial"),
        Argument("y", "out", "steps batch hidden"),
        Argument("h_n", "out", "batch hidden"),
        Argument("c_n", "out", "batch hidden"),
    )

    def prepacked(
        self,
        constants: Mapping[str, AnyArray],
        *,
        winograd: bool,  # noqa: ARG002  # of convolutions
    ) -> tuple[KernelAttr, PackedInputs] | None:
        """LSTM_PACKED, where both weights are constants."""
        return LSTMPackedAttr.of(self, constants)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The error bounds, in units of the precision: each step's own errors, and those propagated to it."""
        x, w_ih, w_hh, *rest = arrays[:-3]
        d, size = self.hidden, np.abs(w_hh).T
        biases = rest[:2] if self.bias else []
        zero = np.zeros((self.batch, d))
        h, c = rest[-2:] if self.initial else (zero, zero)
        off_h, off_c, off_y = zero, zero, np.zeros((self.steps, self.batch, d))
        for t, (of_x, off_x) in enumerate(zip(*self._of_inputs(x, w_ih), strict=True)):
            of_h, off_s = self._of_state(t, h, w_hh, size, off_h)
            off = off_x + off_s + self._own(of_x, of_h, *biases)
            values, offs = self._activated(of_x + of_h + sum(biases), off, slice(2 * d, 3 * d))
            i, f, g, o = (values[:, k * d : (k + 1) * d] for k in range(4))
            off_i, off_f, off_g, off_o = (offs[:, k * d : (k + 1) * d] for k in range(4))
            forget_product, input_product = f * c, i * g
            off_c = (np.abs(f) + off_f) * off_c + np.abs(c) * off_f + (np.abs(i) + off_i) * off_g
            off_c = off_c + np.abs(g) * off_i + self._own(forget_product, input_product)
            c = forget_product + input_product
            shown, off_shown = self._activated(c, off_c, slice(None))
            h = o * shown
            off_h = (np.abs(o) + off_o) * off_shown + np.abs(shown) * off_o + self._own(h)
            off_y[t] = off_h
        return self._terms(off_y, off_h, off_c)


class GRUAttr(_RecurrenceAttr, kernel_type="GRU"):
    """y[t] = h = n + z * (h - n) for each step t, where n = tanh(a_n + r * b_n).

    r = sigmoid(a_r + b_r) and z = sigmoid(a_z + b_z), where a = x[t] @ w_ih.T + b_ih and b = h @ w_hh.T + b_hh, whose
    columns are those of r, z and n. After the last step h_n = h.

    x is [steps, batch, input]. The weights are those of ``torch.nn.GRU``: w_ih [3*hidden, input] and w_hh [3*hidden,
    hidden], whose rows belong to r, z and n in this order; so do the biases, both or neither of which are passed. h0
    [batch, hidden] defaults to 0, and w_hh is not read before the second step then. The update gate z weighs the
    previous state, where that of GRU_HT_PART2 weighs the candidate, and the reset gate r is applied after the product.
    Errors grow from step to step by the derivatives. Source: Cho et al. 2014, in the form of cuDNN.
    """

    gates = 3
    arrays = (
        Argument("x", "in", "steps batch input"),
        Argument("w_ih", "in", "3*hidden input", domain=WEIGHTS),
        Argument("w_hh", "in", "3*hidden hidden", domain=WEIGHTS),
        Argument("b_ih", "in", "3*hidden", domain=WEIGHTS, when="bias"),
        Argument("b_hh", "in", "3*hidden", domain=WEIGHTS, when="bias"),
        Argument("h0", "in", "batch hidden", domain=STATES, when="initial"),
        Argument("y", "out", "steps batch hidden"),
        Argument("h_n", "out", "batch hidden"),
    )

    def prepacked(
        self,
        constants: Mapping[str, AnyArray],
        *,
        winograd: bool,  # noqa: ARG002  # of convolutions
    ) -> tuple[KernelAttr, PackedInputs] | None:
        """GRU_PACKED, where both weights are constants."""
        return GRUPackedAttr.of(self, constants)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The error bounds, in units of the precision: each step's own errors, and those propagated to it."""
        x, w_ih, w_hh, *rest = arrays[:-2]
        d, size = self.hidden, np.abs(w_hh).T
        b_ih, b_hh = rest[:2] if self.bias else np.zeros((2, 3 * d))
        h = rest[-1] if self.initial else np.zeros((self.batch, d))
        off_h, off_y = np.zeros_like(h), np.zeros((self.steps, self.batch, d))
        for t, (of_x, off_x) in enumerate(zip(*self._of_inputs(x, w_ih), strict=True)):
            of_h, off_s = self._of_state(t, h, w_hh, size, off_h)
            off_a, off_b = off_x + self._own(of_x, b_ih), off_s + self._own(of_h, b_hh)
            a, b = of_x + b_ih, of_h + b_hh
            values, offs = self._activated((a + b)[:, : 2 * d], (off_a + off_b + self._own(a, b))[:, : 2 * d], slice(0))
            r, z, off_r, off_z = values[:, :d], values[:, d:], offs[:, :d], offs[:, d:]
            a_n, b_n, off_b_n = a[:, 2 * d :], b[:, 2 * d :], off_b[:, 2 * d :]
            seen = r * b_n
            off_n = np.abs(b_n) * off_r + (np.abs(r) + off_r) * off_b_n + self._own(a_n, seen)
            n, off_n = self._activated(a_n + seen, off_a[:, 2 * d :] + off_n, slice(None))
            both = np.abs(h) + np.abs(n)
            off_h = (np.abs(z) + off_z) * off_h + (np.abs(1 - z) + off_z) * off_n + off_z * both
            h, off_h = n + z * (h - n), off_h + self._own(n, np.abs(z) * both)
            off_y[t] = off_h
        return self._terms(off_y, off_h)


class _Packed:
    """Weights in panels of 16 units, the first of which begins with the first unit."""

    gates: int
    hidden: int
    dtype: str
    name: str

    @classmethod
    def of(cls, attr: KernelAttr, constants: Mapping[str, AnyArray]) -> tuple[Self, PackedInputs] | None:
        """The attr of the same layer with packed weights, and how these are packed; None where one is no constant."""
        weights = "w_ih", "w_hh"
        if not constants.keys() >= set(weights):
            return None
        packed = cls(**attr.fields())
        return packed, dict.fromkeys(weights, ((packed.name, packed.dtype), packed.pack))

    @classmethod
    def derive(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"panels": (fields["hidden"] + PANEL_UNITS - 1) // PANEL_UNITS}

    def pack(self, w: AnyArray) -> AnyArray:
        """Weights [gates*hidden, depth] in panels."""
        depth, panels = w.shape[1], -(-self.hidden // PANEL_UNITS)
        packed: AnyArray = aligned_empty((panels, depth, self.gates, PANEL_UNITS), self.dtype)
        packed[...] = 0
        units = np.reshape(w, (self.gates, self.hidden, depth))
        for panel in range(panels):
            own = units[:, panel * PANEL_UNITS : (panel + 1) * PANEL_UNITS]
            packed[panel, ..., : own.shape[1]] = own.transpose(2, 0, 1)
        return packed.reshape(panels, depth, self.gates * PANEL_UNITS)

    def unpack(self, panels: AnyArray) -> AnyArray:
        """The inverse of `pack`."""
        count, depth, _ = panels.shape
        units = panels.reshape(count, depth, self.gates, PANEL_UNITS).transpose(2, 0, 3, 1)
        used = units.reshape(self.gates, count * PANEL_UNITS, depth)[:, : self.hidden]
        return used.reshape(self.gates * self.hidden, depth)

    def prepacked(self, constants: Mapping[str, AnyArray], *, winograd: bool) -> None:
        """None: it is packed."""


class LSTMPackedAttr(_Packed, LSTMAttr, kernel_type="LSTM_PACKED"):
    """LSTM with packed weights: w_ih[p, k, 16 * g + u] = v[hidden * g + 16 * p + u, k] of its weights v, and so w_hh.

    p counts panels of 16 hidden units, and g the 4 gates; what is behind the last unit is not used. Compiled functions
    call it where the weights of LSTM are constants, which are packed once. The number of hidden units is an option, as
    weights do not show it.
    """

    hidden: int = whole(default=PANEL_UNITS, samples=(1, 17))
    arrays = (
        Argument("x", "in", "steps batch input"),
        Argument("w_ih", "in", "panels input 64", domain=WEIGHTS),
        Argument("w_hh", "in", "panels hidden 64", domain=WEIGHTS),
        Argument("b_ih", "in", "4*hidden", domain=WEIGHTS, when="bias"),
        Argument("b_hh", "in", "4*hidden", domain=WEIGHTS, when="bias"),
        Argument("h0", "in", "batch hidden", domain=STATES, when="initial"),
        Argument("c0", "in", "batch hidden", domain=STATES, when="initial"),
        Argument("y", "out", "steps batch hidden"),
        Argument("h_n", "out", "batch hidden"),
        Argument("c_n", "out", "batch hidden"),
    )
    options = ("hidden",)
    derived = ("panels",)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        x, w_ih, w_hh, *rest = arrays
        return super().absolute_terms([x, self.unpack(w_ih), self.unpack(w_hh), *rest])


class GRUPackedAttr(_Packed, GRUAttr, kernel_type="GRU_PACKED"):
    """GRU with packed weights: w_ih[p, k, 16 * g + u] = v[hidden * g + 16 * p + u, k] of its weights v, and so w_hh.

    p counts panels of 16 hidden units, and g the 3 gates; what is behind the last unit is not used. Compiled functions
    call it where the weights of GRU are constants, which are packed once. The number of hidden units is an option, as
    weights do not show it.
    """

    hidden: int = whole(default=PANEL_UNITS, samples=(1, 17))
    arrays = (
        Argument("x", "in", "steps batch input"),
        Argument("w_ih", "in", "panels input 48", domain=WEIGHTS),
        Argument("w_hh", "in", "panels hidden 48", domain=WEIGHTS),
        Argument("b_ih", "in", "3*hidden", domain=WEIGHTS, when="bias"),
        Argument("b_hh", "in", "3*hidden", domain=WEIGHTS, when="bias"),
        Argument("h0", "in", "batch hidden", domain=STATES, when="initial"),
        Argument("y", "out", "steps batch hidden"),
        Argument("h_n", "out", "batch hidden"),
    )
    options = ("hidden",)
    derived = ("panels",)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        x, w_ih, w_hh, *rest = arrays
        return super().absolute_terms([x, self.unpack(w_ih), self.unpack(w_hh), *rest])
