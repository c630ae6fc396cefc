"""Random functions of loops, branches, jumps and element assignments, which Python and compiled code both run.

Every loop ends, almost all indices are in bounds, and numbers stay small.
"""

from random import Random

HEAD = """import numpy as np


def function(a, m, n, x):
    i, j, k = 0, 1, n
    y, z = 0.25, x
    found = False
"""


class Maker:
    """Writes the text of one function."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.lines: list[str] = []
        self.counts: list[str] = []
        self.loops = 0

    def text(self) -> str:
        """Return a module with the function."""
        self.block(1, 3, in_loop=False)
        self.line(1, "return i, j, k, y, z, found")
        return HEAD + "\n".join(self.lines) + "\n"

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def pick(self, *texts: str) -> str:
        return self.random.choice(texts)

    def whole(self) -> str:
        """Return an int expression."""
        leaf = self.pick("i", "j", "k", "n", "1", "3", *self.counts, *self.counts)
        other = self.pick("i", "j", "2", "n", *self.counts)
        return self.pick(
            leaf, f"({leaf} + {other})", f"({leaf} - {other})", f"{leaf} % 5", f"{leaf} // 3", f"abs({leaf} - 4)",
            f"min({leaf}, {other})", f"max({leaf}, 2)", f"({leaf} * {other}) % 11", f"({leaf} if y < z else {other})",
        )  # fmt: skip

    def index(self) -> str:
        """Return an index of `a`, or of each dimension of `m`."""
        if self.counts and self.random.random() < 0.6:
            count = self.random.choice(self.counts)
            return self.pick(f"{count} % n", f"-1 - {count} % n", f"({count} + 1) % n")
        return f"{self.whole()} % n"

    def real(self) -> str:
        """Return a float expression."""
        leaf = self.pick("x", "y", "z", f"a[{self.index()}]", f"m[{self.index()}, {self.index()}]", "0.5")
        other = self.pick("y", "z", "1.5", f"a[{self.index()}]", f"float({self.whole()})")
        return self.pick(
            leaf, f"({leaf} + {other}) * 0.5", f"({leaf} - {other}) * 0.25", f"{leaf} * 0.5", f"-{leaf}",
            f"({leaf} if {self.test()} else {other})", f"abs({leaf})", f"np.sqrt(abs({leaf}))", f"min({leaf}, 2.0)",
        )  # fmt: skip

    def test(self) -> str:
        """Return a condition."""
        if self.random.random() < 0.7:
            return self.pick(
                f"y {self.pick('<', '>', '<=')} z", f"i {self.pick('<', '>', '==', '!=')} j", "found", "not found",
                f"{self.whole()} > 2", f"a[{self.index()}] < y",
            )  # fmt: skip
        return self.pick("y < z and i < j", "i > 3 or y > 0.1", "0 < i < 6", "not (i < j and found)")

    def block(self, depth: int, size: int, *, in_loop: bool) -> None:
        for _ in range(self.random.randint(1, size)):
            self.statement(depth, in_loop=in_loop)

    def statement(self, depth: int, *, in_loop: bool) -> None:
        kind = self.random.random()
        if depth < 5 and kind < 0.22:
            self.choice(depth, in_loop=in_loop)
        elif depth < 4 and kind < 0.45 and self.loops < 4:
            self.loop(depth)
        elif in_loop and kind < 0.5:
            self.line(depth, f"if {self.test()}:")
            self.line(depth + 1, self.pick("break", "continue", "continue"))
        elif kind < 0.52:
            self.line(depth, f"if {self.test()}:")
            self.line(depth + 1, f"return {self.pick('i, 0, k, y, z, found', 'i, j, 1, x, y, found')}")
        else:
            self.line(depth, self.simple())

    def simple(self) -> str:
        return self.pick(
            f"{self.pick('i', 'j', 'k')} = {self.whole()}", f"{self.pick('i', 'j')} += 1", "k -= 1", "k -= 2",
            f"{self.pick('y', 'z')} = {self.real()} * 1.0", f"a[{self.index()}] = {self.real()}",
            f"a[{self.index()}] += {self.real()} * 0.125", f"m[{self.index()}, {self.index()}] = {self.real()}",
            f"found = {self.test()}", "i, j = j, i", f"m[{self.index()}, {self.index()}] *= 0.5",
        )  # fmt: skip

    def choice(self, depth: int, *, in_loop: bool) -> None:
        self.line(depth, f"if {self.test()}:")
        self.block(depth + 1, 2, in_loop=in_loop)
        if self.random.random() < 0.3:
            self.line(depth, f"elif {self.test()}:")
            self.block(depth + 1, 2, in_loop=in_loop)
        if self.random.random() < 0.6:
            self.line(depth, "else:")
            self.block(depth + 1, 2, in_loop=in_loop)

    def loop(self, depth: int) -> None:
        self.loops += 1
        name = f"c{self.loops}"
        if self.random.random() < 0.7:
            limits = self.pick("n", "1, n", "n - 1, -1, -1", "0, n + 3, 2", f"{self.whole()} % 12", "n // 2, n")
            self.line(depth, f"for {name} in range({limits}):")
        else:
            self.line(depth, f"{name} = 0")
            self.line(depth, f"while {name} < n{self.pick('', ' and y < 50.0', ' and not found')}:")
            self.line(depth + 1, f"{name} += 1")
        self.counts.append(name)
        self.block(depth + 1, 3, in_loop=True)
        self.counts.pop()
        if self.random.random() < 0.15:
            self.line(depth, "else:")
            self.block(depth + 1, 1, in_loop=False)
