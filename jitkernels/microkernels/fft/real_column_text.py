"""Loops over pairs of real columns that are one column of complex numbers, and over rows of conjugates, as LLVM IR.

With `Z` the transform of ``a + i b``, that of a is ``(Z[k] + conj(Z[n - k])) / 2``, and that of b the difference
divided by ``2 i`` (Cooley, Lewis & Welch, 1970). The length n is odd.
"""

from collections.abc import Callable

from jitkernels.codegen.source_protocol import IRFunction
from jitkernels.microkernels.fft.butterfly import Complex
from jitkernels.microkernels.fft.tiles import TileText


class RealColumnText(TileText):
    """The writer of one of these functions."""

    def reals(self, *, stores: bool) -> IRFunction:
        """``(numbers, re, im, step, rows, live, scale)``: of each row `live` real numbers, at most two vectors.

        The first vector is of `re`, the second one of `im`. Rows are `step` elements apart, those of planes a vector.
        """
        self.out.label("entry")
        scale = self.broadcast("%scale")

        def move(row: str, masks: list[str]) -> None:
            first, plane = self.out.value(f"mul i64 {row}, %step"), self.multiple(self.lanes, row)
            for half, base in enumerate(("%re", "%im")):
                at = self.sum(first, half * self.lanes)
                if stores:
                    self.store(self.product(self.load(base, plane), scale), "%numbers", at, masks[half])
                else:
                    self.store(self.product(self.load("%numbers", at, masks[half]), scale), base, plane)

        self.of_rows(move, "%live", self.first_of_row("%live"))
        name = "store_reals" if stores else "load_reals"
        return self.of_arguments(name, ("numbers", "re", "im"), ("step", "rows", "live"), ("scale",))

    def mirrored(self, *, stores: bool) -> IRFunction:
        """``(pairs, re, im, step, rows, first, live, scale.re, scale.im)``: of each row numbers `first` to `live` - 1.

        Number l lies l complex numbers before the beginning of the row.
        """
        lanes = self.lanes
        self.out.label("entry")
        scales = [self.broadcast(f"%scale.{part}") for part in ("re", "im")]
        count = self.multiple(2, self.out.value("sub i64 %live, %first"))
        limits = [self.multiple(2, self.out.value(f"sub i64 {lanes}, %{limit}")) for limit in ("live", "first")]
        before, upto = (self.first_of_row(limit) for limit in limits)
        parts = [self.out.value(f"xor <{lanes} x i1> {a}, {b}") for a, b in zip(before, upto, strict=True)]

        def load(row: str, masks: list[str]) -> None:
            at, plane = self._mirror(row), self.multiple(lanes, row)
            low, high = (self.load("%pairs", self.sum(at, half * lanes), masks[half]) for half in range(2))
            for part, base in enumerate(("%re", "%im")):
                numbers = self.shuffled(low, high, [2 * lane + part for lane in reversed(range(lanes))])
                self.store(self.product(numbers, scales[part]), base, plane)

        def store(row: str, masks: list[str]) -> None:
            at, plane = self._mirror(row), self.multiple(lanes, row)
            re, im = (self.product(self.load(b, plane), s) for b, s in zip(("%re", "%im"), scales, strict=True))
            for half, mask in enumerate(masks):
                last = lanes - 1 - half * lanes // 2
                picks = [last - lane // 2 + lanes * (lane % 2) for lane in range(lanes)]
                self.store(self.shuffled(re, im, picks), "%pairs", self.sum(at, half * lanes), mask)

        self.of_rows(store if stores else load, count, parts)
        name = "store_mirrored" if stores else "load_mirrored"
        integers = ("step", "rows", "first", "live")
        return self.of_arguments(name, ("pairs", "re", "im"), integers, ("scale.re", "scale.im"))

    def _mirror(self, row: str) -> str:
        """Where the last number of a row lies."""
        return self.sum(self.out.value(f"mul i64 {row}, %step"), 2 - 2 * self.lanes)

    def separated(self) -> IRFunction:
        """``(zr, zi, ar, ai, br, bi, n)``: twice the transforms of both columns of pairs, up to ``n / 2``."""

        def of_row(at: str, back: str) -> None:
            z, other = (Complex(self.load("%zr", where), self.load("%zi", where)) for where in (at, back))
            total, difference = self.math.add(z, other), self.math.subtract(z, other)
            minus = self.out.value(f"fneg {self.vector} {difference.re}")
            for base, value in (("ar", total.re), ("ai", difference.im), ("br", total.im), ("bi", minus)):
                self.store(value, f"%{base}", at)

        self.out.label("entry")
        of_row("0", "0")
        self._of_halves(of_row)
        return self.of_arguments("separated", ("zr", "zi", "ar", "ai", "br", "bi"), ("n",), ())

    def combined(self) -> IRFunction:
        """``(ar, ai, br, bi, zr, zi, n)``: ``a + i b``, of the transforms up to ``n / 2`` of real columns."""

        def of_row(at: str, back: str) -> None:
            a, b = (Complex(self.load(f"%{name}r", at), self.load(f"%{name}i", at)) for name in "ab")
            other, first = self.math.minus_i_times(a, b)
            self.store(first.re, "%zr", at)
            self.store(first.im, "%zi", at)
            self.store(other.re, "%zr", back)
            self.store(self.out.value(f"fneg {self.vector} {other.im}"), "%zi", back)

        self.out.label("entry")
        for whole, source in (("%zr", "%ar"), ("%zi", "%br")):
            self.store(self.load(source, "0"), whole, "0")
        self._of_halves(of_row)
        return self.of_arguments("combined", ("ar", "ai", "br", "bi", "zr", "zi"), ("n",), ())

    def _of_halves(self, body: Callable[[str, str], None]) -> None:
        """A loop over rows k from 1 to ``n / 2``, whose body takes where they and rows n - k begin."""
        out = self.out
        out.line("%half = lshr i64 %n, 1")
        out.line("br label %row")

        def of_number(number: str) -> None:
            k = self.sum(number, 1)
            back = out.value(f"sub i64 %n, {k}")
            body(self.multiple(self.lanes, k), self.multiple(self.lanes, back))

        self.loop("row", "%half", "entry", "done", of_number)
        out.label("done")
        out.line("ret void")
