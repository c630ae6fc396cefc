"""Random programs around matrix products: how results are read, and what is written between.

Each follows from its number: two factors, products of them, results written in place of a product or elsewhere,
and assignments to factors, products and other arrays between. Values are integers; sizes are near vector widths,
or so large that products reuse the memory of their results.
"""

import random
from typing import Any

import numpy as np

NAMES = ("x", "w", "b", "v", "c", "d", "e")
"""Factors n by k and k by m, a row, a column's numbers, two arrays of the product's shape, and three such in one."""

OTHERS = (
    "c", "b", "c", "v[:, None]", "c[::-1]", "c[:, ::-1]", "x[:, :1]", "w[0]", "2.0", "0.5", "b[::-1]", "d", "y",
    "x.sum(1)[:, None]", "w.sum(0)", "c.max(1, keepdims=True)", "c.max(0)",
)  # fmt: skip
IN_PLACE = (
    "(A + O)", "(A * O)", "np.maximum(A, O)", "np.tanh(A / 64)", "abs(A)", "np.where(A > O, A, O)", "A.copy()",
    "(A + A)", "(A - Z.max(axis=1, keepdims=True))", "(A - Z.sum(axis=1)[:, None])", "np.cumsum(Z, axis=1)",
)  # fmt: skip
ELSEWHERE = (
    "Z[::-1]", "Z[:, ::-1]", "(A - Z.max(axis=0))", "np.roll(Z, 1, axis=0)", "np.cumsum(Z, axis=0)", "(Z.T + c.T).T",
    "Z[np.arange(Z.shape[0]) // 2]",
)  # fmt: skip
OF_OTHER_SHAPES = (
    "Z.sum(axis=1)", "Z.max(axis=1)", "Z.sum(axis=0)", "Z.T * 2", "Z[1:] - Z[:-1]", "Z[:, :, None] * b[:3]", "Z[0]",
    "Z.reshape(-1) + 1", "Z[None] * e", "Z[::2] + 1", "Z[:, 1:] * Z[:, :-1]", "Z.argmax(axis=1)", "Z.sum()", "Z", "Z.T",
    "(Z > 0).any(axis=1)", "np.concatenate([Z, c])", "np.stack([Z, c])", "Z @ w.T", "x.T @ Z", "Z @ b", "np.pad(Z, 1)",
    "Z.astype('f4')", "np.sort(Z)", "Z.astype(int)",
)  # fmt: skip
BEFORE = ("x += 1", "w *= 2", "x[0] = 3", "w[:, 0] = 1", "x[::2] = x[1:2]")
CHANGES = ("z += c", "z[1:] = 0", "z *= 2", "z[:, 0] += 1", "z[z > 0] = 1", "np.add(z, c, out=z)", "z[::-1] = z")
WRITES = (
    "c[...] = A", "c += Z", "x[...] = x * 2", "w += 1", "d[1:] = Z[1:]", "d[::-1] = Z", "x[:, 0] = Z[:, 0]",
    "b[...] = Z[0]", "v[...] = Z.sum(1)", "c[:, 0] = v", "x[...] = Z[:, :1]", "w[...] = Z[:1]", "c *= 2", "Z += 1",
)  # fmt: skip
WRITES_OF_SQUARES = ("x[...] = A", "w[...] = A", "x[...] = Z.T", "x[1:] = Z[:-1]", "w += Z", "x[...] = y", "w[...] = y")
SMALL = (1, 2, 3, 5, 8, 17, 33, 70)


class RandomProducts:
    """A program, and the arguments of its calls."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.chosen = random.Random(number)
        self.is_square = self.chance(0.3)
        self.is_large = self.chance(0.5)
        self.dtype = "float64" if self.chance(0.7) else "float32"
        self.layouts = [self.pick("CCCCFsr") if self.chance(0.2) else "C" for _ in NAMES]
        self.source = self._source()

    def pick(self, options: Any) -> Any:
        return self.chosen.choice(options)

    def chance(self, probability: float) -> bool:
        return self.chosen.random() < probability

    def _source(self) -> str:
        left = self.pick(("x", "x", "x", "(x + 1)", "x.copy()", "abs(x)", "np.ascontiguousarray(x)"))
        right = self.pick(("w", "w", "w", "(w * 2)", "np.maximum(w, 0)"))
        lines = [f"y = {self.pick(('c * 2', 'abs(c)', 'w[:1] + c'))}"]
        if self.chance(0.15):
            lines.append(self.pick(BEFORE))
        lines.append(f"z = {left} @ {right}")
        products = ["z"]
        if self.chance(0.3):
            lines.append(f"z2 = {self.pick((left, 'x', '(x - 1)'))} @ {self.pick((right, 'w'))}")
            products.append("z2")
        if self.chance(0.15):
            lines.append(self.pick(CHANGES))
        results = []
        for i in range(self.chosen.randint(1, 3)):
            texts = IN_PLACE if self.chance(0.75) else ELSEWHERE if self.chance(0.3) else OF_OTHER_SHAPES
            lines.append(f"r{i} = {self._filled(self.pick(texts), self.pick(products))}")
            results.append(f"r{i}")
            if self.chance(0.3):
                writes = WRITES + WRITES_OF_SQUARES * 2 if self.is_square else WRITES
                lines.append(self._filled(self.pick(writes), self.pick(products)))
        if self.chance(0.2):
            results = [self.pick(results)]
        body = "".join(f"    {line}\n" for line in [*lines, f"return {', '.join(results)},"])
        return f"def program({', '.join(NAMES)}):\n{body}"

    def _filled(self, text: str, product: str, depth: int = 0) -> str:
        """Fill a text: A with expressions of the product's shape, O with other arrays, and Z with the product."""
        while "A" in text:
            inner = "Z" if depth > 2 or self.chance(0.2) else self._filled(self.pick(IN_PLACE), product, depth + 1)
            text = text.replace("A", inner, 1)
        while "O" in text:
            text = text.replace("O", self.pick(OTHERS), 1)
        return text.replace("Z", product)

    def function(self) -> Any:
        scope: dict[str, Any] = {"np": np}
        exec(compile(self.source, f"<random products {self.number}>", "exec"), scope)
        return scope["program"]

    def arguments(self, call: int) -> list[Any]:
        """Return the arguments of a call, of other sizes for odd ones; reproducible."""
        sizes = random.Random(f"{self.number} {call % 2}")
        values = np.random.default_rng([self.number, call])
        if self.is_large:
            n, m, k = sizes.randint(185, 280), sizes.randint(185, 280), sizes.randint(1, 30)
        else:
            n, m, k = sizes.choice(SMALL), sizes.choice(SMALL), sizes.choice((0, *SMALL[:5], 40))
        if self.is_square:
            m = k = n
        shapes = (n, k), (k, m), (m,), (n,), (n, m), (n, m), (3, n, m)
        arrays = [values.integers(-3, 4, shape).astype(self.dtype) for shape in shapes]
        return [_laid_out(array, layout) for array, layout in zip(arrays, self.layouts, strict=True)]


def _laid_out(array: Any, layout: str) -> Any:
    """Return the array in Fortran order, with strides, or with another row before it."""
    if layout == "s":
        array_out = np.zeros((*array.shape, 2), array.dtype)[..., 1]
        array_out[...] = array
        return array_out
    return array[::-1].copy()[::-1] if layout == "r" else np.array(array, order="F" if layout == "F" else "C")
