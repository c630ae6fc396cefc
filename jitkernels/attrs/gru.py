"""GRU_H1, GRU_HT_PART1 and GRU_HT_PART2: the elementwise parts of one step of a GRU."""

from collections.abc import Iterable, Sequence

import numpy as np

from jitkernels.attrs.rnn_activations import ACTIVATIONS, activated
from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, choice
from jitkernels.attrs.schema.signature import AnyArray, Argument

USUAL = (8, 16, 32, 64, 100, 128, 256, 512, 1024, 4096)
CHECKED = (
    (1, "sigmoid", "tanh"),
    (8, "sigmoid", "identity"),
    (31, "tanh", "relu"),
    (100, "sigmoid", "tanh"),
    (1000, "relu", "sigmoid"),
)
"""Lengths, and activations of gates and candidate."""
GATES = Argument("gates", "in", "3*d")
BEFORE = Argument("ht_1", "in", "d", in_place=True, domain=(-1.0, 1.0))


class _GruCellAttr(KernelAttr):
    """The common fields of all three rows."""

    d: int
    act_gate: str = choice(*ACTIVATIONS, default="sigmoid")

    def tolerance(self) -> Tolerance:
        """Two activations of 4 ULP, two products and a sum, all relative to `absolute_terms`."""
        return Tolerance(ulp=2, terms=10)

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        def attr(d: int, gate: str, candidate: str, dtype: str) -> KernelAttr:
            acts = {"act_gate": gate, "act_cand": candidate}
            return cls(d=d, dtype=dtype, **{name: acts[name] for name in cls.options})  # type: ignore[call-arg]

        return cases(
            [attr(d, "sigmoid", "tanh", dtype) for dtype in FLOATS for d in USUAL],
            ci=[attr(*checked, dtype) for dtype in FLOATS for checked in CHECKED],
        )


class GRUH1Attr(_GruCellAttr, kernel_type="GRU_H1"):
    """ht = act_gate(u) * act_cand(s): the first step, before which the state is 0.

    gates holds the three pre-activations [u | r | s], each of length d, and is not modified; r is not read.
    """

    act_cand: str = choice(*ACTIVATIONS, default="tanh")
    dtype: str = "float32"
    arrays = (GATES, Argument("ht", "out", "d"))
    options = ("act_gate", "act_cand")

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The absolute product, and the propagated errors of its factors."""
        u, _, s = arrays[0].reshape(3, self.d)
        update, off_update, _ = activated(self.act_gate, u, self.dtype)
        candidate, off_candidate, _ = activated(self.act_cand, s, self.dtype)
        ht = update * candidate
        return [np.where(np.isnan(ht), ht, np.abs(update) * off_candidate + off_update * np.abs(candidate))]

    def operations(self) -> float:
        return 40.0 * self.d


class GRUHtPart1Attr(_GruCellAttr, kernel_type="GRU_HT_PART1"):
    """ht = act_gate(r) * ht_1: the previous state as the candidate reads it.

    gates holds the three pre-activations [u | r | s], each of length d, and is not modified; only r is read. The
    caller adds the product of ht and the weights of the candidate to s, and calls GRU_HT_PART2.
    """

    dtype: str = "float32"
    arrays = (GATES, BEFORE, Argument("ht", "out", "d", in_place=True))
    options = ("act_gate",)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The absolute product, and the propagated error of the gate."""
        _, r, _ = arrays[0].reshape(3, self.d)
        reset, off_reset, _ = activated(self.act_gate, r, self.dtype)
        ht = reset * arrays[1]
        return [np.where(np.isnan(ht), ht, off_reset * np.abs(arrays[1]))]

    def operations(self) -> float:
        return 20.0 * self.d


class GRUHtPart2Attr(_GruCellAttr, kernel_type="GRU_HT_PART2"):
    """ht = act_gate(u) * act_cand(s) + (1 - act_gate(u)) * ht_1: the update gate weighs the candidate.

    gates holds the three pre-activations [u | r | s], each of length d, and is not modified; r is not read.
    """

    act_cand: str = choice(*ACTIVATIONS, default="tanh")
    dtype: str = "float32"
    arrays = (GATES, BEFORE, Argument("ht", "out", "d", in_place=True))
    options = ("act_gate", "act_cand")

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The absolute products, and the propagated errors of their factors."""
        u, _, s = arrays[0].reshape(3, self.d)
        before = arrays[1]
        update, off_update, _ = activated(self.act_gate, u, self.dtype)
        candidate, off_candidate, _ = activated(self.act_cand, s, self.dtype)
        ht = update * candidate + (1 - update) * before
        candidate_terms = np.abs(update) * off_candidate + off_update * np.abs(candidate)
        state_terms = (np.abs(1 - update) + off_update) * np.abs(before)
        return [np.where(np.isnan(ht), ht, candidate_terms + state_terms)]

    def operations(self) -> float:
        return 45.0 * self.d
