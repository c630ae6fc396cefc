"""Butterflies: Fourier transforms of few complex numbers whose parts are registers, as LLVM IR.

Transforms of 2 and 4 numbers need no products. Those of odd primes add and subtract the inputs j and r - j first, so
that half the products remain. Those of other lengths are made of these, by Cooley & Tukey's factorization (1965) with
constant roots of unity. All are forward: the sign of the exponent is negative.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from jitkernels.microkernels.gemm.microkernel import Text, float_literal

BUTTERFLY_FLAGS = "contract"
"""Products may be fused into sums. Nothing is reordered: the error bounds are those of this order."""


class Complex(NamedTuple):
    """The registers of the real and the imaginary parts."""

    re: str
    im: str


def root_of_unity(k: int, n: int) -> tuple[float, float]:
    """Cosine and sine of k / n of a full turn, of an angle of at most an eighth of it, so that both are accurate."""
    quarter = Fraction(4 * k, n)
    turns = round(quarter)
    angle = float(quarter - turns) * (math.pi / 2)
    cosine, sine = math.cos(angle), math.sin(angle)
    for _ in range(turns % 4):
        cosine, sine = -sine, cosine
    return cosine, sine


class Butterflies:
    """Writes transforms into a text. vector: the LLVM type of registers of elements of `dtype`."""

    def __init__(self, out: Text, vector: str, dtype: str) -> None:
        self.out, self.vector, self.dtype = out, vector, dtype

    def _of(self, operation: str, a: str, b: str) -> str:
        return self.out.value(f"{operation} {BUTTERFLY_FLAGS} {self.vector} {a}, {b}")

    def constant(self, value: float) -> str:
        """A register whose elements all have this value."""
        element = self.vector.split(" x ")[-1].rstrip(">")
        literal = float_literal(value, self.dtype)
        return f"splat ({element} {literal})" if self.vector.startswith("<") else literal

    def add(self, a: Complex, b: Complex) -> Complex:
        return Complex(self._of("fadd", a.re, b.re), self._of("fadd", a.im, b.im))

    def subtract(self, a: Complex, b: Complex) -> Complex:
        return Complex(self._of("fsub", a.re, b.re), self._of("fsub", a.im, b.im))

    def minus_i_times(self, a: Complex, b: Complex) -> tuple[Complex, Complex]:
        """``a - i b`` and ``a + i b``."""
        low = Complex(self._of("fadd", a.re, b.im), self._of("fsub", a.im, b.re))
        return low, Complex(self._of("fsub", a.re, b.im), self._of("fadd", a.im, b.re))

    def times(self, a: Complex, w: Complex) -> Complex:
        """The product, two of whose four products are fused."""
        re = self._of("fsub", self._of("fmul", a.re, w.re), self._of("fmul", a.im, w.im))
        return Complex(re, self._of("fadd", self._of("fmul", a.re, w.im), self._of("fmul", a.im, w.re)))

    def times_root(self, a: Complex, k: int, n: int) -> Complex:
        """The product with ``exp(-2 pi i k / n)``, without products where that is a power of i."""
        k %= n
        if 4 * k % n == 0:
            quarter = 4 * k // n
            zero = self.constant(-0.0)
            minus_re, minus_im = (self._of("fsub", zero, part) if quarter else part for part in a)
            return (a, Complex(a.im, minus_re), Complex(minus_re, minus_im), Complex(minus_im, a.re))[quarter]
        if 8 * k % n == 0:
            return self._times_eighth(a, 8 * k // n)
        cosine, sine = root_of_unity(k, n)
        return self.times(a, Complex(self.constant(cosine), self.constant(-sine)))

    def _times_eighth(self, a: Complex, eighths: int) -> Complex:
        """The product with an odd power of ``(1 - i) / sqrt(2)``: one product for each part."""
        total, difference = self._of("fadd", a.re, a.im), self._of("fsub", a.im, a.re)
        half = math.sqrt(0.5)
        parts = {
            1: (total, half, difference, half),
            3: (difference, half, total, -half),
            5: (total, -half, difference, -half),
            7: (difference, -half, total, half),
        }[eighths]
        return Complex(
            self._of("fmul", parts[0], self.constant(parts[1])), self._of("fmul", parts[2], self.constant(parts[3]))
        )

    def transform(self, x: Sequence[Complex]) -> list[Complex]:
        """The forward transform, in natural order."""
        n = len(x)
        if n == 1:
            return list(x)
        if n == 2:
            return [self.add(*x), self.subtract(*x)]
        if n == 4:
            return self._of_four(x)
        factor = next(f for f in (4, 2, 3, 5, 7, 11, 13, n) if n % f == 0)
        return self._of_prime(x) if factor == n else self._composed(x, factor)

    def _of_four(self, x: Sequence[Complex]) -> list[Complex]:
        even, odd = (self.add(x[0], x[2]), self.add(x[1], x[3]))
        left, right = (self.subtract(x[0], x[2]), self.subtract(x[1], x[3]))
        first, third = self.minus_i_times(left, right)
        return [self.add(even, odd), first, self.subtract(even, odd), third]

    def _composed(self, x: Sequence[Complex], inner: int) -> list[Complex]:
        """Of ``outer * inner`` numbers: `inner` transforms of `outer` numbers, roots, `outer` transforms of `inner`."""
        n = len(x)
        outer = n // inner
        columns = [self.transform(x[i::inner]) for i in range(inner)]
        result: list[Complex] = [Complex("", "")] * n
        for k in range(outer):
            rotated = [self.times_root(columns[i][k], i * k, n) for i in range(inner)]
            for j, value in enumerate(self.transform(rotated)):
                result[k + outer * j] = value
        return result

    def _of_prime(self, x: Sequence[Complex]) -> list[Complex]:
        r, half = len(x), len(x) // 2
        sums = [self.add(x[j], x[r - j]) for j in range(1, half + 1)]
        differences = [self.subtract(x[j], x[r - j]) for j in range(1, half + 1)]
        first = x[0]
        for one in sums:
            first = self.add(first, one)
        result = [first] * r
        for k in range(1, half + 1):
            even, odd = x[0], Complex("", "")
            for j, (a, b) in enumerate(zip(sums, differences, strict=True), 1):
                cosine, sine = map(self.constant, root_of_unity(j * k % r, r))
                even = Complex(
                    *(self._of("fadd", e, self._of("fmul", p, cosine)) for e, p in zip(even, a, strict=True))
                )
                rotated = [self._of("fmul", part, sine) for part in b]
                odd = Complex(*rotated) if j == 1 else Complex(*map(self._of, ("fadd",) * 2, odd, rotated))
            result[k], result[r - k] = self.minus_i_times(even, odd)
        return result
