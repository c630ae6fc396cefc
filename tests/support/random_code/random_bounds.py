"""Makes loops over slices at random, whose bounds are sums of counts, extents, numbers beside arrays, and clamps."""

import linecache
from collections.abc import Sequence
from typing import Any

import numpy as np

LIMITS = ("n", "N", "N - 1", "m", "N + 1", "n - 2", "N // 2", "2 * m", "min(n, N)", "N - m", "3", "n // 3 + 1")
BEGINS = ("0", "0", "0", "1", "2", "m", "N // 3", "-2", "n - N")
STEPS = ("", "", "", "", "", "", "2", "3", "-1", "-2")
STATEMENTS = (
    "t += x[{slice}].sum()",
    "t += x[{slice}].sum() - y[{slice2}].sum()",
    "y[{slice}] = 0.5 * y[{slice}] + 1.0",
    "y[{slice}] *= 1.25",
    "out[{index}] = x[{slice}].sum()",
    "out[{index}] += x[{index2}] + 1.0",
    "u[{index}] = u[{index2}] * 0.5 + 1.0",
    "u[{index}, {slice}] += v[{index2}, {slice}]",
    "u[{slice}, {index}] = 0.5 * u[{slice}, {index2}]",
    "t += u[{index}, {slice}] @ x[{slice}]",
    "t += u[{slice}, {slice2}].sum()",
    "y[{slice}] = x[{slice}] + u[{index}, {slice}]",
    "t += x[{slice}].max()",
    "t += x[{slice}].mean()",
    "t += np.argmin(x[{slice}])",
    "t += (x[{slice}] > 0.5).max()",
    "out[{index}] = x[{slice}].std()",
    "t += u[{slice}, {slice2}].max(axis=0).sum()",
    "y[{slice}] = x[{slice2}]",
    "y[{low}:{low} + 3] += w",
    "out[{index}] = np.dot(x[{low}:{low} + 3], w)",
)


class RandomBounds:
    """One function of vectors, matrices, and two ints beside them."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.chosen = np.random.default_rng([number, 10])
        self.text = self._made()

    def _pick(self, options: Sequence[str]) -> str:
        return options[int(self.chosen.integers(len(options)))]

    def _term(self, counts: str) -> str:
        """An int of counts, numbers and extents."""
        kind = self.chosen.random()
        count = self._pick(counts)
        small = int(self.chosen.integers(0, 4))
        if kind < 0.35:
            return self._pick((count, f"{count} + {small}", f"{count} - {small}", f"2 * {count}", f"-{count}"))
        if kind < 0.5:
            return self._pick((f"N - {count}", f"n - {count}", f"m + {count}", f"N - {count} - 1"))
        if kind < 0.65:
            return self._pick(
                (f"max({count} - {small}, 0)", f"min({count} + {small}, n)", f"min({count} + {small}, N)",
                 f"{count} // 2", f"{count} % 3", f"max(0, N - {count})")
            )  # fmt: skip
        if kind < 0.8:
            return self._pick(("N", "n", "m", "N - 1", "-1", "-2", "N - m", "n // 2"))
        return self._pick(("0", "1", "2", "5"))

    def _slice(self, counts: str) -> str:
        begin = self._term(counts) if self.chosen.random() < 0.8 else ""
        end = self._term(counts) if self.chosen.random() < 0.8 else ""
        step = self._pick(STEPS)
        return f"{begin}:{end}" + (f":{step}" if step else "")

    def _made(self) -> str:
        lines = [f"def bounds{self.number}(N, m, x, y, u, v, w, out):", "    n = x.shape[0]", "    t = 0.0"]
        counts, indent = "", "    "
        for count in "ij"[: 1 + int(self.chosen.random() < 0.4)]:
            begin, end = self._pick(BEGINS), self._pick(LIMITS)
            if counts and self.chosen.random() < 0.5:
                begin = self._pick(("i", "i + 1", "i - 1"))
            elif counts and self.chosen.random() < 0.3:
                end = self._pick(("i", "i + 1", "i + 3"))
            step = self._pick(("", "", "", "", ", 2"))
            limits = f"{begin}, {end}{step}"
            if not step and self.chosen.random() < 0.15:
                limits = f"{end} - 1, {begin} - 1, -1"
            lines.append(f"{indent}for {count} in range({limits}):")
            counts, indent = counts + count, indent + "    "
        for _ in range(int(self.chosen.integers(1, 3))):
            given = {
                "slice": self._slice(counts), "slice2": self._slice(counts), "index": self._term(counts),
                "index2": self._term(counts), "low": self._term(counts),
            }  # fmt: skip
            lines.append(indent + self._pick(STATEMENTS).format(**given))
        return "\n".join([*lines, "    return t", ""])

    def function(self) -> Any:
        """The function, whose text is where a file's would be."""
        file = f"<random bounds {self.number}>"
        linecache.cache[file] = len(self.text), None, self.text.splitlines(keepends=True), file
        scope: dict[str, Any] = {"np": np}
        exec(compile(self.text, file, "exec"), scope)
        return scope[f"bounds{self.number}"]

    def arguments(self, n: int, size: int, m: int) -> tuple[Any, ...]:
        made = np.random.default_rng(n)
        shapes = ((n,), (n,), (n, n), (n, n), (3,), (n,))
        return (size, m, *(made.random(shape) for shape in shapes))
