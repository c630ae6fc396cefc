"""Base class of the dot-product kernels of floats with 4- or 8-bit weights in scaled groups, as LLVM IR text.

Columns are contiguous, 64 bytes of a column are 16 words. Accumulators are vectors of 16 lanes, one for each row and
column, with a horizontal sum at the end.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

from jitkernels.codegen.source_protocol import IRFunction
from jitkernels.core.cpu_target import CACHE_LINE_BYTES
from jitkernels.microkernels.gemm.microkernel import Text

LANES, VECTORS_PER_STEP = 16, 8
STEP_BYTES = 4 * LANES
"""Bytes of weights per step."""
STEP_NUMBERS = VECTORS_PER_STEP * LANES
ARGUMENTS = (
    ("ptr", "weights"), ("ptr", "floats"), ("ptr", "scale"), ("ptr", "zero"),
    ("ptr", "result"), ("i64", "stride"), ("i64", "groups"), ("i64", "half"), ("i64", "shift"),
)  # fmt: skip
WORDS, FLOATS, MASK = f"<{LANES} x i32>", f"<{LANES} x float>", f"<{LANES} x i1>"
LANE_NUMBERS = f"<{', '.join(f'i32 {i}' for i in range(LANES))}>"
TILE_COLUMNS, TILE_ROWS = 4, 4
"""Columns and rows per tile: what is loaded and decoded serves all of them."""
STREAMED = 8 << 20
"""Least bytes of weights that are assumed to come from memory, not from a cache."""
WEIGHT_PREFETCH_BYTES, SCALE_PREFETCH_GROUPS = 4096, 256
"""Prefetch distance in bytes of weights and scales behind these columns: what memory delivers in one latency."""


def all_of(kind: str, number: object) -> str:
    """Return a constant vector of one number."""
    return f"<{', '.join([f'{kind} {number}'] * LANES)}>"


class DotWriter(ABC):
    """Writer of ``dot(weights, floats, scale, zero, result, stride, groups, half, shift)`` of some columns and rows.

    few: groups have 4 << shift bytes, at most 64; otherwise a multiple of what is loaded at a time. shifted: there are
    zero points. Results of rows are `stride` apart.
    """

    kind = ""
    loaded = STEP_BYTES
    """Bytes of a column per iteration."""

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
        """Declare the LLVM intrinsics that are called."""
        return [
            f"declare {WORDS} @llvm.masked.load.v16i32.p0(ptr, i32, {MASK}, {WORDS})",
            f"declare {FLOATS} @llvm.masked.load.v16f32.p0(ptr, i32, {MASK}, {FLOATS})",
            f"declare <16 x i8> @llvm.masked.load.v16i8.p0(ptr, i32, {MASK}, <16 x i8>)",
            f"declare {FLOATS} @llvm.fmuladd.v16f32({FLOATS}, {FLOATS}, {FLOATS})",
            "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
            f"declare float @llvm.vector.reduce.fadd.v16f32(float, {FLOATS})",
        ]

    def _same(self, kind: str, value: str) -> str:
        """Append a broadcast of one number."""
        vector = f"<{LANES} x {kind}>"
        first_lane = self.out.value(f"insertelement {vector} poison, {kind} {value}, i64 0")
        return self.out.value(f"shufflevector {vector} {first_lane}, {vector} poison, {WORDS} zeroinitializer")

    def _places(self) -> None:
        """Append the addresses of the columns."""
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
        """Append a load of weights of a column from a byte offset on, 0 where masked."""
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

    def _joined(self, name: str, first: str, first_block: str, second: str, second_block: str) -> None:
        """Append the phis of totals that come from one of two blocks."""
        for r in self.rows:
            for c in self.columns:
                begin = first if first == "zeroinitializer" else f"%{first}{r}_{c}"
                self.out.line(
                    f"%{name}{r}_{c} = phi {FLOATS} [ {begin}, %{first_block} ], [ %{second}{r}_{c}, %{second_block} ]"
                )

    def _results(self) -> None:
        """Append the horizontal sums of the totals, and store them."""
        out = self.out
        for r in self.rows:
            for c in self.columns:
                out.line(
                    f"%sum{r}_{c} = call reassoc float @llvm.vector.reduce.fadd.v16f32(float 0.0, {FLOATS} %all{r}_{c})"
                )
                address = out.element("float", out.element("float", "%result", out.times(r, "%stride")), c)
                out.line(f"store float %sum{r}_{c}, ptr {address}, align 4")
        out.line("ret void")

    def _blocks(self, step: Callable[[str, bool], tuple[list[list[str]], list[str]]]) -> None:
        """Write the loop over whole blocks, then a masked one for the tail.

        ``step(i, masked)`` writes the products of block i for each row and column, and the scales of columns.
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
        """Append the mask of the groups of a block, from `group` on: at least the group that continues in it."""
        most = self.out.value("call i64 @llvm.smax.i64(i64 %per, i64 1)")
        if masked:
            left = self.out.value(f"sub nsw i64 %groups, {group}")
            most = self.out.value(f"call i64 @llvm.smin.i64(i64 {left}, i64 {most})")
        return self._below(most)

    def _fetch(self, at: str, step: int) -> None:
        """Append a prefetch of weights behind these columns, into the second-level cache, in memory order.

        Columns are read side by side, but hardware prefetchers follow one stream best: the prefetched one.
        """
        self._prefetch_bytes(
            "weights", self._prefetch_address(at, "%bytes", WEIGHT_PREFETCH_BYTES), len(self.columns) * step
        )

    def _fetch_of_groups(self, group: str, count: int) -> None:
        """Append a prefetch of scales and zero points of `count` groups of each of the columns behind these."""
        out, columns = self.out, len(self.columns)
        behind = self._prefetch_address(group, "%groups", SCALE_PREFETCH_GROUPS)
        self._prefetch_bytes("scale", out.value(f"shl nsw i64 {behind}, 2"), 4 * columns * count)
        if self.shifted:
            self._prefetch_bytes("zero", behind, columns * count)

    def _prefetch_address(self, at: str, length: str, more: int) -> str:
        """Append the prefetch address behind these columns that advances as fast as all of them together."""
        out, columns = self.out, len(self.columns)
        offset = out.value(f"add nsw i64 {out.times(columns, at)}, {out.times(columns, length)}")
        return out.value(f"add nsw i64 {offset}, {more}")

    def _prefetch_bytes(self, name: str, at: str, count: int) -> None:
        """Append prefetches of `count` bytes, at least one; the hardware prefetches a single column by itself."""
        if len(self.columns) == 1:
            return
        for line in range(0, max(count, 1), CACHE_LINE_BYTES):
            address = self.out.element("i8", f"%{name}", self.out.value(f"add nsw i64 {at}, {line}"))
            self.out.line(f"call void @llvm.prefetch.p0(ptr {address}, i32 0, i32 2, i32 1)")

    def _add(self, products: list[list[str]], scales: list[str], before: str, after: str = "total") -> None:
        """Append the scaled products to the totals."""
        for r in self.rows:
            for c in self.columns:
                self.out.line(
                    f"%{after}{r}_{c} = call {FLOATS} @llvm.fmuladd.v16f32({FLOATS} {products[r][c]}, "
                    f"{FLOATS} {scales[c]}, {FLOATS} %{before}{r}_{c})"
                )

    def _carried(self, name: str, first: str, before: str, last: str) -> None:
        """Append the loop-carried totals."""
        for r in self.rows:
            for c in self.columns:
                start = before and f"{before}{r}_{c}"
                self.out.line(
                    f"%{name}{r}_{c} = phi {FLOATS} [ {start or 'zeroinitializer'}, %{first} ], "
                    f"[ %total{r}_{c}, %{last} ]"
                )

    def _below(self, count: str) -> str:
        """Append the mask of the lanes below a count."""
        most = self.out.value(f"call i64 @llvm.smin.i64(i64 {count}, i64 {LANES})")
        every = self._same("i32", self.out.value(f"trunc i64 {most} to i32"))
        return self.out.value(f"icmp slt {WORDS} {LANE_NUMBERS}, {every}")
