"""Moves between interleaved complex numbers and planes, as LLVM IR, and the transposes of two steps."""

from collections.abc import Callable, Sequence

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

    def first_of_row(self, elements: str) -> list[str]:
        """The masks of so many elements of a row of two vectors."""
        return [self.first_lanes(elements), self.first_lanes(self.sum(elements, -self.lanes))]

    def of_rows(self, body: Callable[[str, list[str]], None], elements: str, masks: list[str]) -> None:
        """A loop over rows of two vectors: of so many elements each, which `masks` select where they are fewer."""
        out = self.out
        out.line(f"%whole = icmp eq i64 {elements}, {2 * self.lanes}")
        out.line("br i1 %whole, label %row, label %part")
        self.loop("row", "%rows", "entry", "done", lambda row: body(row, ["", ""]))
        self.loop("part", "%rows", "entry", "done", lambda row: body(row, masks))
        out.label("done")
        out.line("ret void")

    def of_arguments(
        self, name: str, pointers: Sequence[str], numbers: Sequence[str], reals: Sequence[str]
    ) -> IRFunction:
        """The function of the lines: pointers, integers, then real numbers."""
        head = ", ".join(
            [f"ptr noalias %{one}" for one in pointers]
            + [f"i64 %{one}" for one in numbers]
            + [f"{self.kind} %{one}" for one in reals]
        )
        symbol, body = f"fft_{name}_{self.dtype}", "\n".join(self.out.lines)
        arguments = (
            *[self.element] * len(pointers),
            *["int64"] * len(numbers),
            *[self.element.rstrip("*")] * len(reals),
        )
        text = f"define void @{symbol}({head}) noinline nounwind {{\n{body}\n}}\n{self._declared()}"
        return IRFunction(symbol, "void", arguments, text)

    def columns(self, *, stores: bool) -> IRFunction:
        """``(pairs, re, im, step, rows, live, scale.re, scale.im)``: of each row of complex numbers `live` ones.

        Rows are `step` elements apart, planes have `lanes` of them side by side. Both parts are scaled.
        """
        lanes = self.lanes
        self.out.label("entry")
        elements = self.multiple(2, "%live")
        scales = [self.broadcast(f"%scale.{part}") for part in ("re", "im")]

        def load(row: str, masks: list[str]) -> None:
            at, to = self.out.value(f"mul i64 {row}, %step"), self.multiple(lanes, row)
            low, high = self.load("%pairs", at, masks[0]), self.load("%pairs", self.sum(at, lanes), masks[1])
            for part, base in enumerate(("%re", "%im")):
                numbers = self.shuffled(low, high, [2 * lane + part for lane in range(lanes)])
                self.store(self.product(numbers, scales[part]), base, to)

        def store(row: str, masks: list[str]) -> None:
            at, source = self.out.value(f"mul i64 {row}, %step"), self.multiple(lanes, row)
            re, im = (self.product(self.load(b, source), s) for b, s in zip(("%re", "%im"), scales, strict=True))
            for half, mask in enumerate(masks):
                first = half * lanes // 2
                picks = [first + lane // 2 + lanes * (lane % 2) for lane in range(lanes)]
                self.store(self.shuffled(re, im, picks), "%pairs", self.sum(at, half * lanes), mask)

        self.of_rows(store if stores else load, elements, self.first_of_row(elements))
        name = "store_columns" if stores else "load_columns"
        return self.of_arguments(name, ("pairs", "re", "im"), ("step", "rows", "live"), ("scale.re", "scale.im"))

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
        return self.of_arguments("rotated_tile", ("re", "im", "roots", "factors", "tr", "ti"), (), ())
