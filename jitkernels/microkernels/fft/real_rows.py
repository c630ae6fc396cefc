"""Transforms of real numbers: of n of them as of n / 2 complex ones, where n is even.

With ``A = Z[k]`` and ``B = conj(Z[m - k])`` the sum ``E = A + B`` belongs to the elements of even index, and ``T``,
which is ``A - B`` times the root of unity ``-i exp(-2 pi i k / n)``, to those of odd index: ``X[k] = E + T`` and
``X[m - k] = conj(E - T)`` (Cooley, Lewis & Welch, 1970). The inverse is the same with conjugate roots. An odd n that is
short or has no radices takes a transform of n complex numbers.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import IRFunction, inlined, noinline, offset
from jitkernels.core import dtypes
from jitkernels.microkernels.fft.bluestein import RowFunctions
from jitkernels.microkernels.fft.butterfly import Complex
from jitkernels.microkernels.fft.factors import FftLimits
from jitkernels.microkernels.fft.pair_products import product
from jitkernels.microkernels.fft.passes import PassText
from jitkernels.microkernels.fft.plan import HALVES, HALVES_TABLE, PAIRS, padded
from jitkernels.microkernels.fft.plan_cache import tables_of
from jitkernels.microkernels.fft.real_columns import forward_pairs_of, inverse_pairs_of, kind_of_odd, scratch_of_pairs
from jitkernels.microkernels.fft.transform import FftScales, scratch_of


class HalvesText(PassText):
    """The writer of a loop over vectors of k from 1 on, and as many of m - k."""

    def __init__(self, dtype: str, lanes: int) -> None:
        super().__init__(dtype, lanes, 2)

    def text(self) -> IRFunction:
        """``(x, y, roots, m, vectors, sign)``: x may be y; `sign` multiplies the imaginary parts of the roots."""
        out, lanes = self.out, self.lanes
        out.label("entry")
        sign = self.broadcast("%sign")
        out.line("br label %vec")

        def of_vector(number: str) -> None:
            k = self.sum(self.multiple(2 * lanes, number), 2)
            back = self.sum(out.value(f"sub i64 {self.multiple(2, '%m')}, {k}"), 2 - 2 * lanes)
            a, root = self.load_pairs("%x", k), self.load_pairs("%roots", k)
            b = self.load_pairs("%x", back, reverse=True)
            root = Complex(root.re, out.value(f"fmul {self.vector} {root.im}, {sign}"))
            add, subtract = (f"{word} {self.vector}" for word in ("fadd", "fsub"))
            even = Complex(out.value(f"{add} {a.re}, {b.re}"), out.value(f"{subtract} {a.im}, {b.im}"))
            odd = Complex(out.value(f"{subtract} {a.re}, {b.re}"), out.value(f"{add} {a.im}, {b.im}"))
            rotated = self.math.times(odd, root)
            self.store_pairs(self.math.add(even, rotated), k)
            last = self.math.subtract(even, rotated)
            self.store_pairs(Complex(last.re, out.value(f"fneg {self.vector} {last.im}")), back, reverse=True)

        self.loop("vec", "%vectors", "entry", "done", of_vector)
        out.label("done")
        out.line("ret void")
        symbol, body = f"fft_halves_{self.dtype}", "\n".join(out.lines)
        element = dtypes.named(self.dtype).c
        head = f"define void @{symbol}(ptr %x, ptr %y, ptr %roots, i64 %m, i64 %vectors, {self.kind} %sign) noinline"
        arguments = (*[f"{element}*"] * 3, "int64", "int64", element)
        return IRFunction(symbol, "void", arguments, f"{head} nounwind {{\n{body}\n}}\n")


def splitting_of(dtype: str, lanes: int) -> Any:
    """Return the function ``(x, y, roots, m, sign)`` for all k from 1 to m - 1; x may be y."""
    of_vectors = HalvesText(dtype, lanes).text()

    @inlined()
    def split(x: Any, y: Any, roots: Any, m: int, sign: Any) -> None:
        # A vector of k and one of m - k must not overlap, as the first is stored before another k is read.
        vectors = (m - 1) // 2 // lanes
        if vectors > 0:
            of_vectors(x, y, roots, m, vectors, sign)
        for k in range(1 + vectors * lanes, m // 2 + 1):
            at, back = 2 * k, 2 * (m - k)
            re, im = x[at] + x[back], x[at + 1] - x[back + 1]
            a, b = product(x[at] - x[back], x[at + 1] + x[back + 1], roots[at], sign * roots[at + 1])
            y[at] = re + a
            y[at + 1] = im + b
            y[back] = re - a
            y[back + 1] = b - im

    return split


@inlined()
def kind_of_real(n: int) -> int:
    """The kind of plan of n real numbers."""
    return HALVES if n % 2 == 0 else kind_of_odd(n)


def scratch_of_real(limits: FftLimits) -> Any:
    """Return the function of n that gives the elements that a transform of n real numbers needs as scratch."""
    scratch, of_pairs = scratch_of(limits), scratch_of_pairs(limits)

    @inlined()
    def needed(n: int) -> Any:
        if kind_of_real(n) == PAIRS:
            return of_pairs(n)
        return scratch(n // 2, False) + padded(n) if n % 2 == 0 else scratch(n, False) + padded(2 * n)

    return needed


@inlined()
def complex_length(n: int) -> int:
    """The length of the transform of complex numbers."""
    return n // 2 if n % 2 == 0 else n


def forward_of(dtype: str, limits: FftLimits, rows: RowFunctions) -> Any:
    """Return the function ``(words, n, x, y, scratch, scale)``: y has ``n // 2 + 1`` complex numbers."""
    number, tables = np.dtype(dtype).type, tables_of(dtypes.named(dtype).c)
    split, transform, of_pairs = splitting_of(dtype, limits.lanes), rows.transform, forward_pairs_of(dtype, limits)
    one, zero, half = number(1), number(0), number(0.5)

    @noinline()
    def even(words: Any, n: int, x: Any, y: Any, scratch: Any, scale: Any) -> None:
        m = n // 2
        transform(words, m, x, y, scratch, FftScales(one, half * scale, half * scale))
        first, second = y[0] + y[0], y[1] + y[1]
        y[0] = first + second
        y[1] = zero
        y[2 * m] = first - second
        y[2 * m + 1] = zero
        split(y, y, offset(tables(words), words[HALVES_TABLE]), m, one)

    @noinline()
    def odd(words: Any, n: int, x: Any, y: Any, scratch: Any, scale: Any) -> None:
        for k in range(n):
            scratch[2 * k] = x[k]
            scratch[2 * k + 1] = zero
        transform(words, n, scratch, scratch, offset(scratch, padded(2 * n)), FftScales(one, scale, scale))
        for k in range(n + 1):
            y[k] = scratch[k]
        y[1] = zero

    @inlined()
    def forward(words: Any, n: int, x: Any, y: Any, scratch: Any, scale: Any) -> None:
        if n % 2 == 0:
            even(words, n, x, y, scratch, scale)
        elif kind_of_odd(n) == PAIRS:
            of_pairs(words, n, x, y, scratch, scale)
        else:
            odd(words, n, x, y, scratch, scale)

    return forward


def inverse_of(dtype: str, limits: FftLimits, rows: RowFunctions) -> Any:
    """Return the function ``(words, n, x, y, scratch, scale)``: x has ``n // 2 + 1`` complex numbers."""
    number, tables = np.dtype(dtype).type, tables_of(dtypes.named(dtype).c)
    split, transform, of_pairs = splitting_of(dtype, limits.lanes), rows.transform, inverse_pairs_of(dtype, limits)
    one, zero = number(1), number(0)

    @noinline()
    def even(words: Any, n: int, x: Any, y: Any, scratch: Any, scale: Any) -> None:
        m = n // 2
        scratch[0] = x[0] + x[2 * m]
        scratch[1] = x[0] - x[2 * m]
        split(x, scratch, offset(tables(words), words[HALVES_TABLE]), m, -one)
        transform(words, m, scratch, y, offset(scratch, padded(n)), FftScales(-one, scale, -scale))

    @noinline()
    def odd(words: Any, n: int, x: Any, y: Any, scratch: Any, scale: Any) -> None:
        scratch[0] = x[0]
        scratch[1] = zero
        for k in range(1, n // 2 + 1):
            re, im = x[2 * k], x[2 * k + 1]
            scratch[2 * k] = re
            scratch[2 * k + 1] = im
            scratch[2 * (n - k)] = re
            scratch[2 * (n - k) + 1] = -im
        transform(words, n, scratch, scratch, offset(scratch, padded(2 * n)), FftScales(-one, scale, -scale))
        for k in range(n):
            y[k] = scratch[2 * k]

    @inlined()
    def inverse(words: Any, n: int, x: Any, y: Any, scratch: Any, scale: Any) -> None:
        if n % 2 == 0:
            even(words, n, x, y, scratch, scale)
        elif kind_of_odd(n) == PAIRS:
            of_pairs(words, n, x, y, scratch, scale)
        else:
            odd(words, n, x, y, scratch, scale)

    return inverse
