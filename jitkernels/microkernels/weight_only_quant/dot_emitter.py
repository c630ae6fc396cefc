"""What dot products of floats and of weights of 4 or 8 bits in groups with a scale have in common, as LLVM IR text.

Columns follow one another, 64 bytes of a column are 16 words. Sums of products are vectors of 16 lanes, one for each
row and column, which are added up in the end.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

from jitkernels.loops.tile import Text
from jitkernels.native.source import IRFunction

LANES, STEPS = 16, 8
BYTES = 4 * LANES
"""Of weights at a time."""
NUMBERS = STEPS * LANES
ARGUMENTS = (
    ("ptr", "weights"), ("ptr", "floats"), ("ptr", "scale"), ("ptr", "zero"),
    ("ptr", "found"), ("i64", "stride"), ("i64", "groups"), ("i64", "half"), ("i64", "shift"),
)  # fmt: skip
WORDS, FLOATS, MASK = f"<{LANES} x i32>", f"<{LANES} x float>", f"<{LANES} x i1>"
LANE_NUMBERS = f"<{', '.join(f'i32 {i}' for i in range(LANES))}>"
COLUMNS, ROWS = 4, 4
"""At a time: what is loaded and decoded serves all of them."""
STREAMED = 8 << 20
"""Bytes of weights from which on they are taken to come from memory."""
AHEAD, GROUPS_AHEAD = 4096, 256
"""How much further than the next columns weights and scales are asked for: what memory sends while it answers once."""
LINE = 64


def all_of(kind: str, number: object) -> str:
    """A vector of one number."""
    return f"<{', '.join([f'{kind} {number}'] * LANES)}>"


class DotWriter(ABC):
    """Writes ``dot(weights, floats, scale, zero, found, stride, groups, half, shift)`` of some columns and rows.

    few: groups have 4 << shift bytes, at most 64; otherwise a multiple of what is loaded at a time. shifted: there are
    zero points. Results of rows are `stride` apart.
    """

    kind = ""
    loaded = BYTES
    """Bytes of a column that an iteration takes."""

    def __init__(self, *, few: bool, shifted: bool, columns: int, rows: int = 1) -> None:
        self.few, self.shifted = few, shifted
        self.columns, self.rows = range(columns), range(rows)
        self.out = Text()

    def function(self) -> IRFunction:
        symbol = f"int4_{self.kind}_{'few' if self.few else 'many'}{len(self.columns)}x{len(self.rows)}"
        arguments = ", ".join(f"{kind} %{name}" for kind, name in ARGUMENTS)
        self._places()
        (self._few if self.few else self._many)()
        body, declared = "\n".join(self.out.lines), "\n".join(self.declared())
        text = f"{declared}\ndefine void @{symbol}({arguments}) noinline nounwind {{\n{body}\n}}\n"
        kinds = tuple("void*" if kind == "ptr" else "int64" for kind, _ in ARGUMENTS)
        return IRFunction(symbol, "void", kinds, text)

    @abstractmethod
    def _few(self) -> None: ...

    @abstractmethod
    def _many(self) -> None: ...

    def declared(self) -> list[str]:
        """The functions of LLVM's that are called."""
        return [
            f"declare {WORDS} @llvm.masked.load.v16i32.p0(ptr, i32, {MASK}, {WORDS})",
            f"declare {FLOATS} @llvm.masked.load.v16f32.p0(ptr, i32, {MASK}, {FLOATS})",
            f"declare <16 x i8> @llvm.masked.load.v16i8.p0(ptr, i32, {MASK}, <16 x i8>)",
            f"declare {FLOATS} @llvm.fmuladd.v16f32({FLOATS}, {FLOATS}, {FLOATS})",
            "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
            f"declare float @llvm.vector.reduce.fadd.v16f32(float, {FLOATS})",
        ]

    def _same(self, kind: str, value: str) -> str:
        """A vector of one number."""
        vector = f"<{LANES} x {kind}>"
        one = self.out.value(f"insertelement {vector} poison, {kind} {value}, i64 0")
        return self.out.value(f"shufflevector {vector} {one}, {vector} poison, {WORDS} zeroinitializer")

    def _places(self) -> None:
        """Where each column begins."""
        out = self.out
        out.label("entry")
        out.line("%bytes = mul nsw i64 %groups, %half")
        out.line(f"%over = add nsw i64 %bytes, {self.loaded - 1}")
        out.line(f"%count = sdiv i64 %over, {self.loaded}")
        for c in self.columns:
            for name, kind, step in (
                ("weights", "i8", "%bytes"),
                ("scale", "float", "%groups"),
                ("zero", "i8", "%groups"),
            ):
                by = out.times(c, step)
                out.line(f"%{name}{c} = getelementptr {kind}, ptr %{name}, i64 {by}")

    def _words(self, c: int, at: str, mask: str = "") -> str:
        """Weights of a column from a byte on, 0 where the mask says that there are none."""
        address = self.out.element("i8", f"%weights{c}", at)
        if not mask:
            return self.out.value(f"load {WORDS}, ptr {address}, align 1")
        return self.out.value(
            f"call {WORDS} @llvm.masked.load.v16i32.p0(ptr {address}, i32 1, {MASK} {mask}, {WORDS} zeroinitializer)"
        )

    def _begin(self, count: str) -> None:
        self.out.line(f"%some = icmp sgt i64 {count}, 0")
        self.out.line("br i1 %some, label %loop, label %done")

    def _end(self, count: str) -> None:
        out = self.out
        out.line("%next = add nuw nsw i64 %i, 1")
        out.line(f"%more = icmp slt i64 %next, {count}")
        out.line("br i1 %more, label %loop, label %done")
        out.label("done")
        self._joined("all", "zeroinitializer", "entry", "total", "last")
        self._results()

    def _joined(self, name: str, first: str, here: str, second: str, there: str) -> None:
        """Totals that come from one place or from another."""
        for r in self.rows:
            for c in self.columns:
                begin = first if first == "zeroinitializer" else f"%{first}{r}_{c}"
                self.out.line(
                    f"%{name}{r}_{c} = phi {FLOATS} [ {begin}, %{here} ], [ %{second}{r}_{c}, %{there} ]"
                )

    def _results(self) -> None:
        """Totals, each added up."""
        out = self.out
        for r in self.rows:
            for c in self.columns:
                out.line(
                    f"%sum{r}_{c} = call reassoc float @llvm.vector.reduce.fadd.v16f32(float 0.0, "
                    f"{FLOATS} %all{r}_{c})"
                )
                place = out.element("float", out.element("float", "%found", out.times(r, "%stride")), c)
                out.line(f"store float %sum{r}_{c}, ptr {place}, align 4")
        out.line("ret void")

    def _blocks(self, step: Callable[[str, bool], tuple[list[list[str]], list[str]]]) -> None:
        """Whole blocks, then one behind masks if something is left.

        ``step(i, masked)`` writes what block i adds up to for each row and column, and the scales of columns.
        """
        out = self.out
        out.line(f"%whole = sdiv i64 %bytes, {self.loaded}")
        out.line("%some = icmp sgt i64 %whole, 0")
        out.line("br i1 %some, label %loop, label %rest")
        out.label("loop")
        out.line("%i = phi i64 [ 0, %entry ], [ %next, %loop ]")
        self._carried("before", "entry", "", "loop")
        self._add(*step("%i", False), "before")
        out.line("%next = add nuw nsw i64 %i, 1")
        out.line("%more = icmp slt i64 %next, %whole")
        out.line("br i1 %more, label %loop, label %rest")
        out.label("rest")
        self._joined("most", "zeroinitializer", "entry", "total", "loop")
        out.line("%is_whole = icmp eq i64 %whole, %count")
        out.line("br i1 %is_whole, label %done, label %last")
        out.label("last")
        self._add(*step("%whole", True), "most", "with_last")
        out.line("br label %done")
        out.label("done")
        self._joined("all", "most", "rest", "with_last", "last")
        self._results()

    def _live(self, group: str, masked: bool) -> str:
        """The mask of the groups of a block, from `group` on: at least the one that goes on in it."""
        most = self.out.value("call i64 @llvm.smax.i64(i64 %per, i64 1)")
        if masked:
            left = self.out.value(f"sub nsw i64 %groups, {group}")
            most = self.out.value(f"call i64 @llvm.smin.i64(i64 {left}, i64 {most})")
        return self._below(most)

    def _fetch(self, at: str, step: int) -> None:
        """Weights behind these columns, into the second-level cache, in the order in which they lie.

        Columns are read side by side, but processors foresee one stream: it is that of what is asked for.
        """
        self._ask("weights", self._behind(at, "%bytes", AHEAD), len(self.columns) * step)

    def _fetch_of_groups(self, group: str, count: int) -> None:
        """Scales and zero points of so many groups of each of the columns behind these."""
        out, columns = self.out, len(self.columns)
        behind = self._behind(group, "%groups", GROUPS_AHEAD)
        self._ask("scale", out.value(f"shl nsw i64 {behind}, 2"), 4 * columns * count)
        if self.shifted:
            self._ask("zero", behind, columns * count)

    def _behind(self, at: str, length: str, more: int) -> str:
        """The place behind these columns that one takes who goes on as fast as all of them together."""
        out, columns = self.out, len(self.columns)
        place = out.value(f"add nsw i64 {out.times(columns, at)}, {out.times(columns, length)}")
        return out.value(f"add nsw i64 {place}, {more}")

    def _ask(self, name: str, at: str, count: int) -> None:
        """For so many bytes, at least one; columns that are read one by one are foreseen."""
        if len(self.columns) == 1:
            return
        for line in range(0, max(count, 1), LINE):
            address = self.out.element("i8", f"%{name}", self.out.value(f"add nsw i64 {at}, {line}"))
            self.out.line(f"call void @llvm.prefetch.p0(ptr {address}, i32 0, i32 2, i32 1)")

    def _add(self, found: list[list[str]], scales: list[str], before: str, after: str = "total") -> None:
        """Scaled, to the totals."""
        for r in self.rows:
            for c in self.columns:
                self.out.line(
                    f"%{after}{r}_{c} = call {FLOATS} @llvm.fmuladd.v16f32({FLOATS} {found[r][c]}, "
                    f"{FLOATS} {scales[c]}, {FLOATS} %{before}{r}_{c})"
                )

    def _carried(self, name: str, first: str, before: str, last: str) -> None:
        """Totals so far."""
        for r in self.rows:
            for c in self.columns:
                start = before and f"{before}{r}_{c}"
                self.out.line(
                    f"%{name}{r}_{c} = phi {FLOATS} [ {start or 'zeroinitializer'}, %{first} ], "
                    f"[ %total{r}_{c}, %{last} ]"
                )

    def _below(self, count: str) -> str:
        """The mask of the lanes below a count."""
        most = self.out.value(f"call i64 @llvm.smin.i64(i64 {count}, i64 {LANES})")
        every = self._same("i32", self.out.value(f"trunc i64 {most} to i32"))
        return self.out.value(f"icmp slt {WORDS} {LANE_NUMBERS}, {every}")
