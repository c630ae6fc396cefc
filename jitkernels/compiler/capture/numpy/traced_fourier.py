"""Functions of `numpy.fft` in traces: kernels of pairs, which read and write what is fused before and behind them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh
from jitkernels.compiler.capture.numpy.reductions import is_given
from jitkernels.compiler.capture.numpy.shape_ops import of_array
from jitkernels.compiler.capture.override_registry import METHODS, overrides
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import UnsupportedError, elementwise
from jitkernels.compiler.ir.graph import Node
from jitkernels.dispatch.fourier import FourierTransforms, is_served
from jitkernels.dispatch.lazy_operator import lazy_operator


class TracedFourierTransforms(FourierTransforms):
    """The functions for traced arrays, whose complex numbers are computed as planes."""

    def pairs(self, a: Any, *, single: bool) -> Any:
        """Real and imaginary parts, stacked."""
        part = np.float32 if single else np.float64
        parts = [METHODS["astype"](np.real(a), part), METHODS["astype"](np.imag(a), part)]
        return np.stack(parts, axis=-1)

    def kernel(self, name: str) -> Callable[..., Any]:
        return lazy_operator(name)

    def zeros(self, a: Any, shape: Sequence[Any]) -> Any:
        """Zeros, which take no memory where they are read at once."""
        sizes = [getattr(size, "extent", size) for size in shape]
        return fresh(a.tracer, builder.broadcast_to(builder.constant(0, a.dtype.name), sizes))

    def length(self, n: Any) -> Any:
        """A length that loops or arrays determine: code for that of this call; calls with another one bail out."""
        if type(n) is not Traced or n.ndim or n.dtype.kind not in "iu" or n.tracer.depth or n.tracer.is_known(n.node):
            return super().length(n)
        value = int(n.tracer.value(n.node))
        n.tracer.checks.append(elementwise("not_equal", n.node, value))
        n.tracer.note(f"code for Fourier transforms of {value} elements")
        return value

    def numbers(self, pairs: Any) -> Any:
        re, im = pairs[..., 0].node, pairs[..., 1].node
        dtype = "complex64" if pairs.dtype == np.float32 else "complex128"
        return fresh(pairs.tracer, Node("complex", (re, im), dtype, re.shape))


_TRACED = TracedFourierTransforms()


def _override(name: str, transform: Callable[..., Any]) -> None:
    """Register the override of a function; the parameters of both kinds have the same order."""
    is_along_one = name in FourierTransforms.ALONG_ONE
    usual = -1 if is_along_one else (-2, -1) if name.endswith("2") else None

    def along_one(a: Any, n: Any = None, axis: Any = usual, norm: Any = None, out: Any = None) -> Any:
        return traced(a, n, axis, norm, out)

    def along_several(a: Any, s: Any = None, axes: Any = usual, norm: Any = None, out: Any = None) -> Any:
        return traced(a, s, axes, norm, out)

    def traced(a: Any, lengths: Any, axes: Any, norm: Any, out: Any) -> Any:
        array = of_array(a)
        if is_given(out) and out is not None:
            raise UnsupportedError(f"{name} with out")
        if not is_served(name, array.dtype):
            raise UnsupportedError(f"{name} of {array.dtype}")
        return transform(array, lengths, axes, norm)

    overrides(getattr(np.fft, name))(along_one if is_along_one else along_several)


for _name in (*FourierTransforms.ALONG_ONE, *FourierTransforms.ALONG_SEVERAL):
    _override(_name, getattr(_TRACED, _name))
