"""Partition of sort keys around a pivot, whole vectors at a time, as LLVM IR.

A permutation from a table, by the mask of the comparison, brings the keys below the pivot to the front of a vector. It
is stored whole behind those already found, and again in front of the others, which fill the target from its end:
between the two is as much room as there are keys to come. So no store is masked, and no branch depends on keys.
"""

from collections.abc import Callable

from jitkernels.codegen.source_protocol import IRFunction
from jitkernels.core.cpu_target import Target
from jitkernels.microkernels.sort.key_vectors import KeyVectors

UNROLLED = 4
"""Vectors of an iteration."""


def has_permutations(target: Target, vector_bytes: int) -> bool:
    """Whether the processor permutes vectors of this width by a table in one instruction."""
    if vector_bytes == 32:
        return "avx2" in target.features
    return vector_bytes == 16 and (target.is_x86 or target.is_arm)


def partition(target: Target, dtype: str, bits: int, lanes: int, *, relation: str, converts: bool) -> IRFunction:
    """``(source, to, n, pivot)``: write the keys that `relation` (slt, sle) holds for in front of the others.

    Returns their number. It does so with whole vectors: the room for the last ``n % lanes`` keys is behind those found.
    With `converts` the source has elements of `dtype`, the keys of which are written.
    """
    kind = f"{'elements' if converts else 'keys'}_{relation}_{dtype}"
    writer, symbol = _Partition(target, bits, lanes, kind), f"partitioned_{kind}"
    text = writer.function(symbol, (lambda row: writer.key_of(dtype, row)) if converts else lambda row: row, relation)
    return IRFunction(symbol, "int64", ("void*", "void*", "int64", f"int{bits}"), text)


class _Partition(KeyVectors):
    """The text of a partition."""

    def __init__(self, target: Target, bits: int, lanes: int, kind: str) -> None:
        super().__init__(bits, lanes)
        self.kind, self.vector_bytes, self.is_arm = kind, bits * lanes // 8, target.is_arm
        self.unit = 4 if self.vector_bytes == 32 else 1
        """Bytes of what the instruction moves."""
        self.units = f"<{self.vector_bytes // self.unit} x i{8 * self.unit}>"
        self.indices = f"<{self.vector_bytes // self.unit} x i8>"
        self.pivots = ""

    @property
    def intrinsic(self) -> str:
        if self.vector_bytes == 32:
            return "@llvm.x86.avx2.permd"
        return "@llvm.aarch64.neon.tbl1.v16i8" if self.is_arm else "@llvm.x86.ssse3.pshuf.b.128"

    def table(self) -> str:
        """For each mask the indices of its lanes, then of the others."""
        rows = []
        for mask in range(1 << self.lanes):
            order = sorted(range(self.lanes), key=lambda lane, mask=mask: not mask >> lane & 1)  # type: ignore[misc]
            parts = self.bits // 8 // self.unit
            units = ", ".join(f"i8 {lane * parts + part}" for lane in order for part in range(parts))
            rows.append(f"{self.indices} <{units}>")
        return (
            f"@permutations_{self.kind} = private unnamed_addr constant [{len(rows)} x {self.indices}] "
            f"[{', '.join(rows)}], align 64\n"
        )

    def permuted(self, keys: str, number: str) -> str:
        """Append the keys in the order of row `number` of the table."""
        row = self.new(f"getelementptr {self.indices}, ptr @permutations_{self.kind}, i64 {number}")
        narrow = self.new(f"load {self.indices}, ptr {row}, align 4")
        wide = narrow if self.unit == 1 else self.new(f"zext {self.indices} {narrow} to {self.units}")
        units = self.new(f"bitcast {self.vector} {keys} to {self.units}")
        moved = self.new(f"call {self.units} {self.intrinsic}({self.units} {units}, {self.units} {wide})")
        return self.new(f"bitcast {self.units} {moved} to {self.vector}")

    def step(self, keys: str, relation: str, low: str, left: str, *, overlaps: bool) -> str:
        """Append the partition of a vector, behind `low` keys found and with `left` ones to come; return the new low.

        Where these are fewer than two vectors the stores overlap, and the second keeps what the first one found.
        """
        found = self.compared(relation, keys, self.pivots)
        word = self.new(f"bitcast {self.mask} {found} to i{self.lanes}")
        number = self.new(f"zext i{self.lanes} {word} to i64")
        ordered = self.permuted(keys, number)
        self.store(ordered, "%to", low)
        count = self.new(f"call i64 @llvm.ctpop.i64(i64 {number})")
        behind = self.new(f"sub i64 {self.new(f'add i64 {low}, {left}')}, {self.lanes}")
        if overlaps:
            wide = self.new(f"zext i{self.lanes} {word} to i{self.bits}")
            own = self.new(f"call i{self.bits} @llvm.ctpop.i{self.bits}(i{self.bits} {wide})")
            is_other = self.compared("uge", self.vector_of(range(self.lanes)), self.splat(own))
            ordered = self.selected(is_other, ordered, self.loaded("%to", behind))
        self.store(ordered, "%to", behind)
        return self.new(f"add i64 {low}, {count}")

    def loop(self, name: str, before: str, vectors: int, key: Callable[[str], str], relation: str, then: str) -> None:
        """Append a loop over `vectors` vectors an iteration, while there are as many keys, with block `then` behind."""
        low, left = ("0", "%n") if before == "entry" else (f"%{before}.low", f"%{before}.left")
        self.lines += [
            f"  br label %{name}" if before == "entry" else "",
            f"{name}:",
            f"  %{name}.low = phi i64 [ {low}, %{before} ], [ %{name}.lower, %{name}.body ]",
            f"  %{name}.left = phi i64 [ {left}, %{before} ], [ %{name}.fewer, %{name}.body ]",
            f"  %{name}.more = icmp sge i64 %{name}.left, {self.lanes * (vectors + (vectors > 1))}",
            f"  br i1 %{name}.more, label %{name}.body, label %{then}",
            f"{name}.body:",
        ]
        low, left = f"%{name}.low", f"%{name}.left"
        source = self.at("%source", self.new(f"sub i64 %n, {left}"))
        for keys in [key(self.loaded(source, i * self.lanes)) for i in range(vectors)]:
            low = self.step(keys, relation, low, left, overlaps=vectors == 1)
            left = self.new(f"sub i64 {left}, {self.lanes}")
        self.lines += [f"  %{name}.lower = add i64 {low}, 0", f"  %{name}.fewer = add i64 {left}, 0"]
        self.lines.append(f"  br label %{name}")

    def function(self, symbol: str, key: Callable[[str], str], relation: str) -> str:
        self.lines.append("entry:")
        self.pivots = self.splat("%pivot")
        self.loop("several", "entry", UNROLLED, key, relation, "single")
        self.loop("single", "several", 1, key, relation, "done")
        self.lines += ["done:", "  ret i64 %single.low"]
        head = f"define i64 @{symbol}(ptr %source, ptr %to, i64 %n, i{self.bits} %pivot) noinline nounwind {{"
        return self.table() + "\n".join([head, *filter(None, self.lines), "}", ""])
