"""Products of rows of complex numbers, of which a transform by convolution takes three."""

from typing import Any

from jitkernels.codegen.source_protocol import IRFunction, inlined
from jitkernels.core import dtypes
from jitkernels.microkernels.fft.butterfly import Complex
from jitkernels.microkernels.fft.passes import PassText


@inlined("contract")
def product(a: Any, b: Any, c: Any, d: Any) -> Any:
    """``(a + i b) (c + i d)``."""
    return a * c - b * d, a * d + b * c


class ProductText(PassText):
    """The writer of a loop over vectors of products."""

    def __init__(self, dtype: str, lanes: int) -> None:
        super().__init__(dtype, lanes, 2)

    def text(self) -> IRFunction:
        """``(x, factors, y, vectors, sign, re, im)``; `sign` multiplies imaginary parts of x, re and im the results."""
        out = self.out
        out.label("entry")
        sign, re, im = (self.broadcast(f"%{name}") for name in ("sign", "re", "im"))
        out.line("br label %vec")

        def multiplied(a: str, b: str) -> str:
            return out.value(f"fmul {self.vector} {a}, {b}")

        def of_vector(number: str) -> None:
            at = self.multiple(2 * self.lanes, number)
            x, factor = self.load_pairs("%x", at), self.load_pairs("%factors", at)
            value = self.math.times(Complex(x.re, multiplied(x.im, sign)), factor)
            self.store_pairs(Complex(multiplied(value.re, re), multiplied(value.im, im)), at)

        self.loop("vec", "%vectors", "entry", "done", of_vector)
        out.label("done")
        out.line("ret void")
        symbol, body, element = f"fft_products_{self.dtype}", "\n".join(out.lines), dtypes.named(self.dtype).c
        scales = ", ".join(f"{self.kind} %{name}" for name in ("sign", "re", "im"))
        head = f"define void @{symbol}(ptr %x, ptr %factors, ptr %y, i64 %vectors, {scales}) noinline nounwind"
        arguments = (*[f"{element}*"] * 3, "int64", *[element] * 3)
        return IRFunction(symbol, "void", arguments, f"{head} {{\n{body}\n}}\n")


def products_of(dtype: str, lanes: int) -> Any:
    """Return the function ``(x, n, factors, y, sign, re, im)`` of n complex numbers; y may be x."""
    of_vectors = ProductText(dtype, lanes).text()

    @inlined()
    def multiply(x: Any, n: int, factors: Any, y: Any, sign: Any, re: Any, im: Any) -> None:
        vectors = n // lanes
        if vectors > 0:
            of_vectors(x, factors, y, vectors, sign, re, im)
        for k in range(vectors * lanes, n):
            a, b = product(x[2 * k], sign * x[2 * k + 1], factors[2 * k], factors[2 * k + 1])
            y[2 * k] = re * a
            y[2 * k + 1] = im * b

    return multiply
