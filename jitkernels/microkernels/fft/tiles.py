"""Moves between interleaved complex numbers and planes, as LLVM IR, and the transposes of two steps."""

from collections.abc import Callable

from jitkernels.codegen.source_protocol import IRFunction
from jitkernels.core import dtypes
from jitkernels.microkernels.fft.butterfly import Complex
from jitkernels.microkernels.fft.passes import PassText


class TileText(PassText):
    """The writer of one of these functions."""

    def __init__(self, dtype: str, lanes: int) -> None:
        super().__init__(dtype, lanes, lanes)
        self.element = f"{dtypes.named(dtype).c}*"

    def product(self, a: str, b: str) -> str:
        return self.out.value(f"fmul contract {self.vector} {a}, {b}")

    def of_rows(self, body: Callable[[str, bool], None]) -> None:
        """A loop over rows, of whole vectors or of `live` numbers each; both masks are ready."""
        out, lanes = self.out, self.lanes
        out.label("entry")
        twice = self.multiple(2, "%live")
        self.masks = [self.first_lanes(twice), self.first_lanes(self.sum(twice, -lanes))]
        self.before()
        out.line(f"%whole = icmp eq i64 %live, {lanes}")
        out.line("br i1 %whole, label %row, label %part")
        self.loop("row", "%rows", "entry", "done", lambda row: body(row, False))
        self.loop("part", "%rows", "entry", "done", lambda row: body(row, True))
        out.label("done")
        out.line("ret void")

    def before(self) -> None:
        """What the loop needs."""
        self.scales = [self.broadcast(f"%scale.{part}") for part in ("re", "im")]

    def columns(self, *, stores: bool) -> IRFunction:
        """``(pairs, step, re, im, rows, live, scale.re, scale.im)``: of each row of complex numbers `live` ones.

        RowFunctions are `step` elements apart, planes have `lanes` of them side by side. Both parts are scaled.
        """
        lanes = self.lanes

        def load(row: str, is_part: bool) -> None:
            at, to = self.out.value(f"mul i64 {row}, %step"), self.multiple(lanes, row)
            masks = self.masks if is_part else ["", ""]
            low, high = self.load("%pairs", at, masks[0]), self.load("%pairs", self.sum(at, lanes), masks[1])
            for part, base in enumerate(("%re", "%im")):
                numbers = self.shuffled(low, high, [2 * lane + part for lane in range(lanes)])
                self.store(self.product(numbers, self.scales[part]), base, to)

        def store(row: str, is_part: bool) -> None:
            at, source = self.out.value(f"mul i64 {row}, %step"), self.multiple(lanes, row)
            masks = self.masks if is_part else ["", ""]
            re, im = (self.product(self.load(b, source), s) for b, s in zip(("%re", "%im"), self.scales, strict=True))
            for half, mask in enumerate(masks):
                first = half * lanes // 2
                picks = [first + lane // 2 + lanes * (lane % 2) for lane in range(lanes)]
                self.store(self.shuffled(re, im, picks), "%pairs", self.sum(at, half * lanes), mask)

        self.of_rows(store if stores else load)
        symbol = f"fft_{'store' if stores else 'load'}_columns_{self.dtype}"
        head = (
            f"define void @{symbol}(ptr noalias %pairs, i64 %step, ptr noalias %re, ptr noalias %im, i64 %rows, "
            f"i64 %live, {self.kind} %scale.re, {self.kind} %scale.im) noinline nounwind {{"
        )
        number = self.element.rstrip("*")
        arguments = (self.element, "int64", self.element, self.element, "int64", "int64", number, number)
        body = "\n".join(self.out.lines)
        return IRFunction(symbol, "void", arguments, f"{head}\n{body}\n}}\n{self._declared()}")

    def rotated_tile(self) -> IRFunction:
        """``(re, im, roots, factors, tr, ti)``: a square of vectors times roots of unity, transposed.

        Row t of the square is multiplied by row t of `roots` (a vector of real parts, one of imaginary ones) and by the
        number t of `factors` (real parts, then imaginary ones).
        """
        out, lanes = self.out, self.lanes
        out.label("entry")
        parts: list[list[str]] = [[], []]
        for t in range(lanes):
            at = str(t * lanes)
            value = Complex(self.load("%re", at), self.load("%im", at))
            root = Complex(self.load("%roots", str(2 * t * lanes)), self.load("%roots", str((2 * t + 1) * lanes)))
            numbers = [
                out.value(
                    f"load {self.kind}, ptr {out.element(self.kind, '%factors', str(t + half))}, align {self.size}"
                )
                for half in (0, lanes)
            ]
            factor = Complex(*map(self.broadcast, numbers))
            value = self.math.times(value, self.math.times(root, factor))
            parts[0].append(value.re)
            parts[1].append(value.im)
        for rows, base in zip(parts, ("%tr", "%ti"), strict=True):
            for t, row in enumerate(self.unzipped(rows)):
                self.store(row, base, str(t * lanes))
        out.line("ret void")
        symbol = f"fft_rotated_tile_{self.dtype}"
        pointers = ", ".join(f"ptr noalias %{name}" for name in ("re", "im", "roots", "factors", "tr", "ti"))
        body = "\n".join(out.lines)
        text = f"define void @{symbol}({pointers}) noinline nounwind {{\n{body}\n}}\n"
        return IRFunction(symbol, "void", (self.element,) * 6, text)
