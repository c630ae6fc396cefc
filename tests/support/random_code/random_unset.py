"""Random functions with variables set, deleted and read in random branches, loops and handlers.

Python raises UnboundLocalError in some calls of most of them, and none in others.
"""

from random import Random

HEAD = """def function(a, m, n, x):
    total, many = 0.0, 0
"""
TAIL = "    return total, many\n"
EXCEPTIONS = ("IndexError", "UnboundLocalError", "(IndexError, ValueError)", "Exception", "NameError")


class Maker:
    """Writes the text of one function. `tries`: how often a statement is a block with handlers."""

    def __init__(self, seed: int, tries: float = 0.0) -> None:
        self.random, self.tries = Random(seed), tries
        self.lines: list[str] = []
        self.counts: list[str] = []
        self.loops = 0
        self.budget = 14

    def text(self) -> str:
        """Return a module with the function."""
        for name in ("i", "j", "y", "z"):
            if self.random.random() < 0.5:
                self.line(1, f"{name} = {self.value(name)}")
        while self.budget > 0:
            self.statement(1, in_loop=False)
        if self.random.random() < 0.4:
            self.line(1, self.read())
        return HEAD + "\n".join(self.lines) + "\n" + TAIL

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)
        self.budget -= 1

    def pick(self, *texts: str) -> str:
        return self.random.choice(texts)

    def test(self) -> str:
        """Return a condition: some hold always or never, some depend on one array or number alone."""
        count = self.pick("many", *self.counts, *self.counts)
        return self.pick(
            f"a[{count} % n] > x", f"a[{count} % n] < x", f"{count} > {self.pick('0', '2', '5')}", f"{count} == 3",
            f"{count} % 3 == 1", "n > 9", "total > 1.5", "m[0, 0] > 0", f"a[{count} % n] > 9", f"{count} >= 0",
        )  # fmt: skip

    def value(self, name: str) -> str:
        count = self.pick("many", *self.counts)
        if name in ("i", "j"):
            return self.pick(count, f"{count} + 1", "3", "n")
        return self.pick(f"a[{count} % n]", f"{count} * 0.5", "x", f"m[{count} % n, 0]", "0.25")

    def write(self) -> str:
        name = self.pick("i", "j", "y", "z", "y", "z", "i")
        return f"{name} = {self.value(name)}"

    def read(self) -> str:
        whole, real = self.pick("i", "j"), self.pick("y", "z")
        return self.pick(
            f"total += {real}", f"many += {whole}", f"{whole} += 1", f"{real} = {real} * 0.5",
            f"total = {real} if total < x else total", f"if x < 0.8 and {real} > 0: many += 1",
            f"a[{whole} % n] = {real}", f"del {self.pick(real, whole)}", f"total += sum([{real} for one in a])",
            f"many += max(many, {whole})", f"total += (lambda: {real})()",
        )  # fmt: skip

    def block(self, depth: int, size: int, *, in_loop: bool) -> None:
        for _ in range(self.random.randint(1, size)):
            self.statement(depth, in_loop=in_loop)

    def statement(self, depth: int, *, in_loop: bool) -> None:
        kind = self.random.random()
        if depth < 5 and self.random.random() < self.tries:
            self.attempt(depth, in_loop=in_loop)
        elif depth < 5 and kind < 0.25:
            self.choice(depth, in_loop=in_loop)
        elif depth < 4 and kind < 0.42 and self.loops < 3:
            self.loop(depth)
        elif kind < 0.47:
            self.line(depth, f"if {self.test()}:")
            self.line(depth + 1, self.pick("break", "continue") if in_loop else f"return {self.pick('i', 'y')}, n")
        elif kind < 0.78:
            self.line(depth, self.write())
        else:
            self.line(depth, self.read())

    def choice(self, depth: int, *, in_loop: bool) -> None:
        self.line(depth, f"if {self.test()}:")
        self.block(depth + 1, 2, in_loop=in_loop)
        if self.random.random() < 0.6:
            self.line(depth, "else:")
            self.block(depth + 1, 2, in_loop=in_loop)

    def attempt(self, depth: int, *, in_loop: bool) -> None:
        self.line(depth, "try:")
        self.block(depth + 1, 2, in_loop=in_loop)
        kind = self.random.random()
        if kind < 0.8:
            if self.random.random() < 0.3:
                self.line(depth + 1, self.pick("raise ValueError", "a[n] = 1.0", "total += a[-n - 1]"))
            self.line(depth, f"except {self.random.choice(EXCEPTIONS)}:" if kind < 0.65 else "except:")
            self.block(depth + 1, 2, in_loop=in_loop)
            if self.random.random() < 0.3:
                self.line(depth, "else:")
                self.block(depth + 1, 1, in_loop=in_loop)
        if kind > 0.7:
            self.line(depth, "finally:")
            self.line(depth + 1, self.pick(self.write(), "many += 1", self.read()))

    def loop(self, depth: int) -> None:
        self.loops += 1
        name = f"c{self.loops}"
        if self.random.random() < 0.7:
            limits = self.pick("n", "1, n", "n - 1, -1, -1", "many % 5", "n // 2, n", "n - 9", "4")
            target = self.pick(name, name, name, "i")
            self.line(depth, f"for {target} in range({limits}):")
            if target != name:
                self.line(depth + 1, f"{name} = {target}")
        else:
            self.line(depth, f"{name} = {self.pick('0', '0', 'n - 9')}")
            self.line(depth, f"while {name} < n{self.pick('', ' and total < 50.0')}:")
            self.line(depth + 1, f"{name} += 1")
        self.counts.append(name)
        self.block(depth + 1, 3, in_loop=True)
        self.counts.pop()
        if self.random.random() < 0.15:
            self.line(depth, "else:")
            self.block(depth + 1, 1, in_loop=False)
