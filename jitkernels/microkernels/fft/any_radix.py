"""The pass of any odd radix, for the primes whose butterflies are too long to be written out.

The sums and differences of the inputs j and r - j are multiplied by a matrix of cosines and sines, as in butterflies of
small primes. They lie on the stack, and each that is loaded serves several results.
"""

import functools
from typing import Any, NamedTuple

import numpy as np

from jitkernels.codegen.source_protocol import IRFunction, inlined, noinline, offset
from jitkernels.core import dtypes
from jitkernels.microkernels.fft.butterfly import Complex
from jitkernels.microkernels.fft.factors import LEAST_ANY_RADIX, MAX_RADIX
from jitkernels.microkernels.fft.passes import PassText
from jitkernels.microkernels.fft.roots import root_of_unity

RESULTS = 4
"""Results k computed at once, and as many r - k: their sums are 16 registers."""
MASKED_VECTORS, WHOLE_VECTORS, BROADCAST_ROOTS = "narrow", "along", "beside"
"""How numbers are read and multiplied by roots: some lanes of vectors, whole ones, or each by one root."""


@inlined()
def matrix_size(radix: int) -> int:
    """The elements of the matrix of a radix, 0 of those whose butterflies are written out."""
    half = radix // 2
    return 2 * half * ((half + RESULTS - 1) // RESULTS * RESULTS) if radix >= LEAST_ANY_RADIX else 0


def matrix_filling_of(dtype: str) -> Any:
    """Return the function ``(radix, matrix)`` that fills it: of each block of results its rows, cosines, then sines.

    The last block overlaps the one before it.
    """
    number = np.dtype(dtype).type

    @noinline()
    def fill(radix: int, matrix: Any) -> None:
        half, at = radix // 2, 0
        for block in range((half + RESULTS - 1) // RESULTS):
            first = min(block * RESULTS, half - RESULTS) + 1
            for j in range(1, half + 1):
                for k in range(RESULTS):
                    re, im = root_of_unity(j * (first + k) % radix, radix)
                    matrix[at + k] = number(re)
                    matrix[at + RESULTS + k] = number(im)
                at += 2 * RESULTS

    return fill


class AnyRadixText(PassText):
    """The writer of the butterfly of one vector."""

    def __init__(self, dtype: str, lanes: int, way: str) -> None:
        super().__init__(dtype, lanes, 1)
        self.way, self.mask = way, ""

    def text(self) -> IRFunction:
        """``(xr, xi, yr, yi, w, wi, matrix, radix, x_step, y_step, root_step, live)``."""
        out = self.out
        out.label("entry")
        out.line(f"%space = alloca [{4 * (MAX_RADIX // 2)} x {self.vector}], align {self.lanes * self.size}")
        out.line("%half = lshr i64 %radix, 1")
        out.line(f"%blocks.more = add i64 %half, {RESULTS - 1}")
        out.line(f"%blocks = udiv i64 %blocks.more, {RESULTS}")
        out.line(f"%final = sub i64 %half, {RESULTS}")
        if self.way == MASKED_VECTORS:
            self.mask = self.first_lanes("%live")
        first = self._input("0")
        out.line("br label %fold")
        total = self._folded(first)
        out.label("folded")
        self._store_both(total, "0", self.mask)
        out.line("br label %block")
        self.loop("block", "%blocks", "folded", "done", lambda block: self._results(block, first))
        out.label("done")
        out.line("ret void")
        names = ("xr", "xi", "yr", "yi", "w", "wi", "matrix")
        head = ", ".join(f"ptr noalias %{name}" for name in names)
        numbers = ("radix", "x_step", "y_step", "root_step", "live")
        head += "".join(f", i64 %{name}" for name in numbers)
        symbol, element = f"fft_any_{self.way}_{self.dtype}", f"{dtypes.named(self.dtype).c}*"
        body = "\n".join(out.lines)
        text = f"define void @{symbol}({head}) noinline nounwind {{\n{body}\n}}\n{self._declared()}"
        return IRFunction(symbol, "void", (*[element] * len(names), *["int64"] * len(numbers)), text)

    def _input(self, number: str) -> Complex:
        at = "0" if number == "0" else self.out.value(f"mul i64 {number}, %x_step")
        return Complex(self.load("%xr", at, self.mask), self.load("%xi", at, self.mask))

    def _slots(self, number: str) -> list[str]:
        """Where the sum and the difference of a pair of inputs lie."""
        first = self.multiple(4, number)
        return [self.out.element(self.vector, "%space", self.sum(first, part)) for part in range(4)]

    def _folded(self, first: Complex) -> Complex:
        """Store the sums and differences of all pairs; return the sum of all inputs."""
        out = self.out
        starts = (("re", first.re), ("im", first.im))

        def of_pair(index: str) -> None:
            for part, start in starts:
                out.line(f"%total.{part} = phi {self.vector} [ {start}, %entry ], [ %more.{part}, %fold.end ]")
            j = self.sum(index, 1)
            a, b = self._input(j), self._input(out.value(f"sub i64 %radix, {j}"))
            both = (self.math.add(a, b), self.math.subtract(a, b))
            for at, value in zip(self._slots(index), (*both[0], *both[1]), strict=True):
                out.line(f"store {self.vector} {value}, ptr {at}, align {self.lanes * self.size}")
            for part, value in zip(("re", "im"), both[0], strict=True):
                out.line(f"%more.{part} = fadd {self.vector} %total.{part}, {value}")

        self.loop("fold", "%half", "entry", "folded", of_pair)
        return Complex("%more.re", "%more.im")

    def _results(self, block: str, first: Complex) -> None:
        """The results of a block."""
        out = self.out
        regular = self.multiple(RESULTS, block)
        k0 = out.value(f"call i64 @llvm.smin.i64(i64 {regular}, i64 %final)")
        row = self.multiple(2 * RESULTS, out.value(f"mul i64 {block}, %half"))
        out.line("br label %term")
        sums = [f"%sum.{k}.{part}" for k in range(RESULTS) for part in range(4)]
        starts = [first.re, first.im, "zeroinitializer", "zeroinitializer"] * RESULTS

        def of_term(j: str) -> None:
            for name, start in zip(sums, starts, strict=True):
                out.line(f"{name} = phi {self.vector} [ {start}, %block ], [ {name}.next, %term.end ]")
            pair = [out.value(f"load {self.vector}, ptr {at}, align {self.lanes * self.size}") for at in self._slots(j)]
            at = self.sum(row, self.multiple(2 * RESULTS, j))
            for k in range(RESULTS):
                factors = [self._broadcast("%matrix", self.sum(at, k + half)) for half in (0, RESULTS)]
                for part, value in enumerate(pair):
                    name = f"%sum.{k}.{part}"
                    product = out.value(f"fmul contract {self.vector} {value}, {factors[part // 2]}")
                    out.line(f"{name}.next = fadd contract {self.vector} {name}, {product}")

        self.loop("term", "%half", "block", "block.left", of_term)
        out.label("block.left")
        for k in range(RESULTS):
            even = Complex(f"%sum.{k}.0.next", f"%sum.{k}.1.next")
            odd = Complex(f"%sum.{k}.2.next", f"%sum.{k}.3.next")
            number = self.sum(k0, k + 1)
            pair = self.math.minus_i_times(even, odd)
            for at, value in zip((number, out.value(f"sub i64 %radix, {number}")), pair, strict=True):
                root = out.value(f"mul i64 {self.sum(at, -1)}, %root_step")
                load = self._broadcast if self.way == BROADCAST_ROOTS else self._load_root
                rotated = self.math.times(value, Complex(load("%w", root), load("%wi", root)))
                self._store_both(rotated, out.value(f"mul i64 {at}, %y_step"), self.mask)

    def _load_root(self, base: str, at: str) -> str:
        return self.load(base, at, self.mask)


class PassArrays(NamedTuple):
    """Planes that a pass reads and writes, its roots, and the matrix of its radix."""

    source: Any
    target: Any
    size: int
    roots: Any
    matrix: Any


@functools.cache  # passes along rows and last ones share one
def any_radix_of(dtype: str, lanes: int, way: str) -> Any:
    """Return the pass ``(arrays, radix, ido, l1)`` along rows or of columns beside each other."""
    masked, whole, beside = (
        AnyRadixText(dtype, lanes, kind).text() for kind in (MASKED_VECTORS, WHOLE_VECTORS, BROADCAST_ROOTS)
    )

    @noinline()
    def along(arrays: PassArrays, radix: int, ido: int, l1: int) -> None:
        x, y, size, roots, matrix = arrays.source, arrays.target, arrays.size, arrays.roots, arrays.matrix
        imaginary, step = offset(roots, (radix - 1) * ido), ido * l1
        for p in range(l1):
            first, to = p * radix * ido, p * ido
            if ido < lanes:
                masked(
                    offset(x, first), offset(x, size + first), offset(y, to), offset(y, size + to),
                    roots, imaginary, matrix, radix, ido, step, ido, ido,
                )  # fmt: skip
            else:
                for vector in range((ido + lanes - 1) // lanes):
                    i = min(vector * lanes, ido - lanes)
                    whole(
                        offset(x, first + i), offset(x, size + first + i), offset(y, to + i), offset(y, size + to + i),
                        offset(roots, i), offset(imaginary, i), matrix, radix, ido, step, ido, lanes,
                    )  # fmt: skip

    @noinline()
    def columns(arrays: PassArrays, radix: int, ido: int, l1: int) -> None:
        x, y, size, roots, matrix = arrays.source, arrays.target, arrays.size, arrays.roots, arrays.matrix
        imaginary, step = offset(roots, (radix - 1) * ido), ido * lanes
        for p in range(l1):
            for i in range(ido):
                first, to = (p * radix * ido + i) * lanes, (p * ido + i) * lanes
                beside(
                    offset(x, first), offset(x, size + first), offset(y, to), offset(y, size + to),
                    offset(roots, i), offset(imaginary, i), matrix, radix, step, step * l1, ido, lanes,
                )  # fmt: skip

    return columns if way == BROADCAST_ROOTS else along
