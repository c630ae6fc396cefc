"""Random programs with indices that are sums of induction variables and numbers, in or out of bounds."""

import random

INDICES = (
    "c", "c + {t}", "c - {t}", "{t} - c", "-c", "-c - 1", "n - 1 - c", "c + i", "c + {t} - i", "2 * c", "c + t - w[1]",
    "i", "k", "k - 1", "t", "j", "j + 1", "{t}", "c // 2", "c % n", "min(c, k)",
)  # fmt: skip
CONDITIONS = (
    "x > 0.5", "c % 2 == 0", "0 <= c + {t} < n", "0 < c <= n - 2 or x > 0.9", "k > {t}", "not (x > 0.3 and c > 1)",
    "c != t", "97 <= i <= 99 or c <= k",
)  # fmt: skip


class Maker:
    """Makes the text of one program."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def text(self) -> str:
        """Return a function of two arrays, ints, and a length."""
        lines = ["import numpy as np", "", "def function(a, b, w, n):"]
        lines += ["    out = np.zeros(len(a))", "    s, k, m, j, t = 0.0, 0, 0, 0, 0"]
        begin, end = self._term(), self.random.choice(("n", "n", "len(b)", "n - 1", "4"))
        lines += [f"    for i in range({begin}, {end}):", "        x = b[i]", f"        t = {self._number()}"]
        for _ in range(self.random.randint(1, 3)):
            lines += [f"        {line}" for line in self.random.choice((self._for, self._while, self._search))()]
        lines += [f"        {line}" for line in self._statement("i")]
        return "\n".join([*lines, "    return out, s, k, m", ""])

    def _number(self) -> str:
        return self.random.choice(("w[0]", "w[i % 3]", "int(w[0])", "i", "2", "k"))

    def _term(self) -> str:
        return self.random.choice(("0", "1", "2", "w[2]", "-1"))

    def _index(self) -> str:
        return self.random.choice(INDICES).format(t=self._term())

    def _statement(self, c: str) -> list[str]:
        kind = self.random.randrange(7)
        index, other = (self._index().replace("c", c) for _ in range(2))
        if kind == 0:
            return [f"out[{index}] = a[{other}] + x"]
        if kind == 1:
            return [f"a[{index}] = max(a[{index}], b[{other}])"]
        if kind == 2:
            return [f"s += a[{index}] * b[{other}]"]
        if kind == 3:
            return [f"x = b[{index}]"]
        condition = self.random.choice(CONDITIONS).format(t=self._term()).replace("c ", f"{c} ")
        if kind == 4:
            return [f"if {condition.replace(' c', f' {c}')}:", f"    out[{index}] += 1.0", "    k += 1"]
        if kind == 5:
            return [f"if {condition.replace(' c', f' {c}')}:", "    m += 1", "else:", "    k = max(k, m)", "    m = 0"]
        return [f"if {condition.replace(' c', f' {c}')}:", f"    x = a[{index}]"]

    def _for(self) -> list[str]:
        bounds = self.random.choice((
            "n", "{t}, n", "{t}, n - {t}", "n, {t}, -1", "n - 1, t - 1, -1", "{t}, n, 2", "t, n", "i + 1, n", "i",
            "n - 1, -1, -1",
        ))  # fmt: skip
        lines = [f"for c in range({bounds.format(t=self._term())}):"]
        for _ in range(self.random.randint(1, 3)):
            lines += [f"    {line}" for line in self._statement("c")]
        if self.random.random() < 0.2:
            lines += [f"    if x > {self.random.random():.2f}:", "        break"]
        return lines

    def _while(self) -> list[str]:
        step, condition, begin = self.random.choice((
            ("j -= 1", "j >= 0 and a[j] > x", "i - 1"), ("j += 1", "j < n", "0"), ("j += 1", "j < n and a[j] < x", "k"),
            ("j += 2", "j * j <= n", "1"), ("j += 1", "j * j < n + i", "t"), ("j -= 1", "j > t", "n - 1"),
        ))  # fmt: skip
        lines = [f"j = {begin}", f"while {condition}:"]
        lines += [f"    {line.replace('c', 'c')}" for line in self._statement("j")] + [f"    {step}"]
        if self.random.random() < 0.3:
            lines += ["    if s > 1e6:", "        break"]
        return [*lines, *self._statement("j")]

    def _search(self) -> list[str]:
        return [
            "j, high = 0, n",
            "while j < high:",
            "    middle = (j + high) // 2",
            "    if a[middle] < x:",
            "        j = middle + 1",
            "    else:",
            "        high = middle",
            *self._statement("j"),
        ]
