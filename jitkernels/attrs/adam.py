"""ADAM and ADAMW: one optimizer step for all parameters of a model."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np

from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, grid, real
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.attrs.vector import vector

BELOW_ONE = 1 - 2.0**-24
"""The largest number below 1 that every dtype represents."""


class AdamAttr(KernelAttr, kernel_type="ADAM"):
    """One step of Adam (Kingma and Ba, 2014), elementwise.

    mom1_out = beta1 * mom1 + (1 - beta1) * grad; mom2_out = beta2 * mom2 + (1 - beta2) * grad ** 2; param_out = param
    - lr / (1 - beta1_pow) * mom1_out / (sqrt(v / (1 - beta2_pow)) + eps), where v is mom2_out; with `amsgrad`, that is
    with mom2_max, it is mom2_max_out = max(mom2_max, mom2_out).

    beta1_pow and beta2_pow are beta1 ** t and beta2 ** t in step t = 1, 2, ..., which corrects the bias of the moments
    that start at zero; with 0, the default, there is no bias correction, and a caller may fold it into lr and eps. lr
    is positive: the step descends the gradient. Paddle's kernel adds, and its callers pass -lr * sqrt(1 - beta2 ** t)
    / (1 - beta1 ** t) and eps * sqrt(1 - beta2 ** t).
    """

    n: int
    lr: float = real(default=1e-3, least=0.0, samples=(0.0, 0.5))
    beta1: float = real(default=0.9, least=0.0, most=1.0, samples=(0.0, 0.5, 1.0))
    beta2: float = real(default=0.999, least=0.0, most=1.0, samples=(0.0, 0.95))
    eps: float = real(default=1e-8, least=0.0, samples=(0.0, 1e-3))
    beta1_pow: float = real(default=0.0, least=0.0, most=BELOW_ONE, samples=(0.9, 0.25))
    beta2_pow: float = real(default=0.0, least=0.0, most=BELOW_ONE, samples=(0.999, 0.5))
    amsgrad: bool = False
    dtype: str = "float32"
    arrays = (
        vector("param", "in"),
        vector("grad", "in"),
        vector("mom1", "in"),
        vector("mom2", "in", domain=(0.0, 2.0)),
        vector("mom2_max", "in", domain=(0.0, 2.0), when="amsgrad"),
        vector("param_out", "out"),
        vector("mom1_out", "out"),
        vector("mom2_out", "out"),
        vector("mom2_max_out", "out", when="amsgrad"),
    )
    floats: ClassVar[tuple[str, ...]] = ("lr", "beta1", "beta2", "eps", "beta1_pow", "beta2_pow")
    options: ClassVar[tuple[str, ...]] = floats

    def tolerance(self) -> Tolerance:
        """Three roundings of each moment; the root, quotient and product of the step, and the factors before them."""
        return Tolerance(ulp=2, terms=8)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """Of the moments |beta * mom| + |(1 - beta) * grad| (or grad ** 2); of the parameters |param| and the step.

        The step's terms include those of the first moment and the propagated errors of the second one: there is no
        bound where that may be zero relative to its errors, unless eps is far larger, nor where it overflows.
        """
        limits = np.finfo(self.dtype)
        precision, tiny, largest = (float(value) for value in (limits.eps, limits.tiny, limits.max))
        param, grad, mom1, mom2 = arrays[:4]
        first = np.abs(self.beta1 * mom1) + np.abs((1 - self.beta1) * grad)
        square = np.square(grad)
        second = np.abs(self.beta2 * mom2) + (1 - self.beta2) * square + tiny
        second = np.where(square < largest, second, np.inf)
        moments = [self.beta1 * mom1 + (1 - self.beta1) * grad, self.beta2 * mom2 + (1 - self.beta2) * square]
        used, moment_terms = moments[1], [first, second]
        if self.amsgrad:
            used = np.maximum(arrays[4], used)
            moment_terms.append(second)
        root = np.sqrt(used / (1 - self.beta2_pow))
        off = second / (1 - self.beta2_pow)
        off_root = np.minimum(off / root, np.sqrt(off / precision)) + root
        below = root + self.eps
        left = below - 16 * precision * off_root
        step = self.lr / (1 - self.beta1_pow)
        terms = step * (first / left + np.abs(moments[0]) * (off_root + below) / left / left)
        # A tiny quotient times a huge factor amplifies underflow errors; a huge quotient overflows first.
        terms = terms + step * tiny + tiny * self.lr / left
        terms = np.where(left > tiny / precision, terms, np.where(np.isnan(left), left, np.inf))
        terms = np.where(np.abs(moments[0]) / left < largest / 2, terms, np.inf)
        return [self._decayed_terms(param) + terms, *moment_terms]

    def _decayed_terms(self, param: AnyArray) -> AnyArray:
        """The absolute terms of the parameter before the step."""
        return np.abs(param)

    def operations(self) -> float:
        """About ten for the moments, and ten each for root and quotient."""
        return 30.0 * self.n

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, False), (7, True), (31, False), (128, True), (1000, False)]
        full = [10**i for i in range(1, 8)] + [2**i for i in range(4, 25, 4)]
        return cases(
            [cls(n=n, amsgrad=amsgrad, dtype=dtype) for dtype in FLOATS for amsgrad in (False, True) for n in full],
            ci=grid(cls, "n amsgrad", ci, dtype=FLOATS, beta1_pow=(0.81,), beta2_pow=(0.998001,)),
        )


class AdamWAttr(AdamAttr, kernel_type="ADAMW"):
    """One step of Adam with decoupled weight decay (Loshchilov and Hutter, 2017), elementwise.

    As ADAM, but param_out = param * (1 - lr * coeff) - step, where ADAM has param - step. The decay is scaled by lr
    itself, without bias correction; Paddle's lr_ratio of a layer is a factor of lr.
    """

    coeff: float = real(default=0.01, least=0.0, samples=(0.0, 0.5))
    floats = (*AdamAttr.floats, "coeff")
    options = floats

    def _decayed_terms(self, param: AnyArray) -> AnyArray:
        return np.abs(param) * (1 + self.lr * self.coeff)
