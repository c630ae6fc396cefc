"""Loops over rows of vectors that hold numbers of different transforms of real numbers, as LLVM IR."""

from jitkernels.codegen.source_protocol import IRFunction
from jitkernels.core import dtypes
from jitkernels.microkernels.fft.butterfly import Complex
from jitkernels.microkernels.fft.passes import PassText
from jitkernels.microkernels.fft.tiles import TileText


class CopyText(PassText):
    """The writer of a loop that copies numbers of so many parts, 2 of complex ones."""

    def __init__(self, dtype: str, parts: int) -> None:
        super().__init__(dtype, parts, parts)

    def text(self) -> IRFunction:
        """``(x, y, n, x_step, y_step)``: n numbers, which are so many numbers apart."""
        out, element = self.out, f"{dtypes.named(self.dtype).c}*"
        out.label("entry")
        out.line("br label %number")

        def of_number(k: str) -> None:
            source, target = (self.multiple(self.lanes, out.value(f"mul i64 {k}, %{name}_step")) for name in "xy")
            self.store(self.load("%x", source), "%y", target)

        self.loop("number", "%n", "entry", "done", of_number)
        out.label("done")
        out.line("ret void")
        symbol, body = f"fft_copy_{self.lanes}_{self.dtype}", "\n".join(out.lines)
        head = f"define void @{symbol}(ptr noalias %x, ptr noalias %y, i64 %n, i64 %x_step, i64 %y_step) nounwind"
        return IRFunction(symbol, "void", (element, element, *["int64"] * 3), f"{head} {{\n{body}\n}}\n")


class RealBatchText(TileText):
    """The writer of one of these functions."""

    def halves(self) -> IRFunction:
        """``(xr, xi, yr, yi, roots, m)``: the halves of `real_rows`, for rows k from 1 to ``m / 2`` and m - k."""
        out = self.out
        out.label("entry")
        out.line("%half = lshr i64 %m, 1")
        out.line("%none = icmp eq i64 %half, 0")
        out.line("br i1 %none, label %done, label %row")

        def of_row(number: str) -> None:
            k = self.sum(number, 1)
            at, back = (self.multiple(self.lanes, row) for row in (k, out.value(f"sub i64 %m, {k}")))
            a, b = (Complex(self.load("%xr", where), self.load("%xi", where)) for where in (at, back))
            total, difference = self.math.add(a, b), self.math.subtract(a, b)
            root = self.multiple(2, k)
            rotated = self.math.times(
                Complex(difference.re, total.im),
                Complex(self._broadcast("%roots", root), self._broadcast("%roots", self.sum(root, 1))),
            )
            even = Complex(total.re, difference.im)
            first, last = self.math.add(even, rotated), self.math.subtract(even, rotated)
            self._store_both(first, at)
            self._store_both(Complex(last.re, out.value(f"fneg {self.vector} {last.im}")), back)

        self.loop("row", "%half", "entry", "done", of_row)
        out.label("done")
        out.line("ret void")
        return self.of_arguments("batch_halves", ("xr", "xi", "yr", "yi", "roots"), ("m",), ())

    def ends(self, *, is_forward: bool) -> IRFunction:
        """``(xr, xi, yr, yi, m)``: rows 0 and m of the real transform of row 0, or the conjugate of row 0 of both."""
        out = self.out
        out.label("entry")
        end = self.multiple(self.lanes, "%m")
        a = self.load("%xr", "0")
        b = self.load("%xi", "0") if is_forward else self.load("%xr", end)
        total = out.value(f"fadd {self.vector} {a}, {b}")
        difference = out.value(f"fsub {self.vector} {a}, {b}")
        if is_forward:
            for value, base, at in ((total, "%yr", "0"), (difference, "%yr", end)):
                self.store(out.value(f"fadd {self.vector} {value}, {value}"), base, at)
            for at in ("0", end):
                self.store("zeroinitializer", "%yi", at)
        else:
            self.store(total, "%yr", "0")
            self.store(out.value(f"fneg {self.vector} {difference}"), "%yi", "0")
        out.line("ret void")
        name = f"batch_ends_{'forward' if is_forward else 'inverse'}"
        return self.of_arguments(name, ("xr", "xi", "yr", "yi"), ("m",), ())

    def conjugates(self) -> IRFunction:
        """``(yr, yi, n)``: rows from n / 2 on, conjugates of those before them, of an odd n; row 0 becomes real."""
        out = self.out
        out.label("entry")
        self.store("zeroinitializer", "%yi", "0")
        out.line("%half = lshr i64 %n, 1")
        out.line("%none = icmp eq i64 %half, 0")
        out.line("br i1 %none, label %done, label %row")

        def of_row(number: str) -> None:
            k = self.sum(number, 1)
            at, back = (self.multiple(self.lanes, row) for row in (k, out.value(f"sub i64 %n, {k}")))
            minus = out.value(f"fneg {self.vector} {self.load('%yi', at)}")
            self._store_both(Complex(self.load("%yr", at), minus), back)

        self.loop("row", "%half", "entry", "done", of_row)
        out.label("done")
        out.line("ret void")
        return self.of_arguments("batch_conjugates", ("yr", "yi"), ("n",), ())
