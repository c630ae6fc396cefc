"""Embedding-bag reduction of rows to one row: strips of columns, the last as wide as the remaining columns."""

from jitkernels.codegen.source_protocol import IRFunction
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.reduction.embedding_bag_strip import ACROSS, Rows, Strip, rows_of


def pool_rows(pool: str, dtype: str, vector_bytes: int, *, looked_up: bool = False) -> IRFunction:
    """``(x, stride, rows, y, width, is_more)``: reduce `width` columns of rows at a distance of `stride` into y.

    There is at least one row. If `is_more` is not 0, the reduction includes the old y. Eight rows form a tree. Unless
    the pool is "sum" or "max", one more argument is the factor of the sums. Where rows are `looked_up`, two more are
    ``ids, step``: a row begins at ``x + ids[i * step] * stride``.
    """
    rows = rows_of(pool, dtype, vector_bytes, looked_up=looked_up)
    symbol = f"rows_of_{pool}_{dtype}_{rows.lanes}{'_looked_up' if looked_up else ''}"
    arguments = (f"{dtype}*", "int64", "int64", f"{dtype}*", "int64", "int64")
    scale, lookup = (dtype,) if rows.is_scaled else (), ("int64*", "int64") if looked_up else ()
    return IRFunction(symbol, "int64", (*arguments, *scale, *lookup), _Strips(rows).text(symbol))


@frozen_dataclass
class _Strips:
    """Whole strips have a function of their own, which needs more registers than a call with few rows should save."""

    rows: Rows

    def text(self, symbol: str) -> str:
        """Write the LLVM IR of both functions; each calls the other for the columns that are not its own."""
        whole = ACROSS * self.rows.lanes
        bits, kind = f"<{self.rows.lanes} x i1>", f"v{self.rows.lanes}f{8 * self.rows.size}"
        vector = f"<{self.rows.lanes} x {self.rows.number}>"
        masked = f"""declare {vector} @llvm.masked.load.{kind}.p0(ptr, i32, {bits}, {vector})
declare void @llvm.masked.store.{kind}.p0({vector}, ptr, i32, {bits})"""
        more = ", ".join(["", *(f"{kind} {name}" for kind, name in self.more)])
        parameters = f"ptr %x.all, i64 %stride, i64 %rows, ptr %y.all, i64 %width.all, i64 %is_more{more}"
        arguments = f"ptr %x, i64 %stride, i64 %rows, ptr %y, i64 %width, i64 %is_more{more}"
        all_arguments = arguments.replace("%x,", "%x.all,").replace("%y,", "%y.all,").replace("%width,", "%width.all,")
        least = "sgt" if self.rows.has_masks else "sge"  # the other function handles a whole strip
        strip = Strip(self.rows, "w", ACROSS, self.rows.lanes, is_masked=False)
        if self.rows.has_masks:
            parts = [Strip(self.rows, f"m{n}", n, self.rows.lanes, is_masked=True) for n in range(1, ACROSS + 1)]
        else:
            shapes = (("v2", 2, self.rows.lanes), ("v1", 1, self.rows.lanes), ("e", 1, 1))
            parts = [Strip(self.rows, name, count, lanes, is_masked=False) for name, count, lanes in shapes]
        return f"""{self.rows.identity_constant}
{masked if self.rows.has_masks else ""}
define internal i64 @{symbol}_whole({parameters}) noinline nounwind {{
start:
{self.rows.strides()}  %joins = icmp ne i64 %is_more, 0
  br label %next
next:
{self.arrivals([strip])}
  %is_whole = icmp {least} i64 %width, {whole}
  br i1 %is_whole, label %w, label %rest
rest:
  %some = icmp sgt i64 %width, 0
  br i1 %some, label %part, label %end
part:
  %done = tail call i64 @{symbol}({arguments})
  ret i64 %done
end:
  ret i64 0
{strip.text()}}}
define i64 @{symbol}({parameters}) noinline nounwind {{
start:
  %is_wide = icmp {least} i64 %width.all, {whole}
  br i1 %is_wide, label %wide, label %narrow
wide:
  %done = tail call i64 @{symbol}_whole({all_arguments})
  ret i64 %done
narrow:
{self.rows.strides()}  %joins = icmp ne i64 %is_more, 0
  br label %next
next:
{self.arrivals(parts, "narrow")}
{self.masked_choice() if self.rows.has_masks else self.choice()}
end:
  ret i64 0
{"".join(part.text() for part in parts)}}}
!0 = distinct !{{!0, !1}}
!1 = !{{!"llvm.loop.unroll.disable"}}
"""

    @property
    def more(self) -> list[tuple[str, str]]:
        """Types and names of the optional arguments of this kind of pool."""
        scale, lookup = [(self.rows.number, "%factor")], [("ptr", "%ids"), ("i64", "%step")]
        return [*(scale if self.rows.is_scaled else []), *(lookup if self.rows.is_looked_up else [])]

    def arrivals(self, strips: "list[Strip]", first: str = "start") -> str:
        """Return the phi operands of what remains, to which strips branch back."""
        return "\n".join(
            f"  %{name} = phi {kind} [ %{name}.all, %{first} ]"
            + "".join(f", [ %{strip.name}.{name}, %{strip.name}.put ]" for strip in strips if not strip.is_masked)
            for name, kind in (("x", "ptr"), ("y", "ptr"), ("width", "i64"))
        )

    def masked_choice(self) -> str:
        """Write the dispatch on the number of remaining vectors, the last of which is masked."""
        bits = 8 * self.rows.size
        if self.rows.has_flags:
            mask = f"""  %ones = shl nsw i32 -1, %on
  %set = xor i32 %ones, -1
  %few = trunc i32 %set to i{self.rows.lanes}
  %mask = bitcast i{self.rows.lanes} %few to <{self.rows.lanes} x i1>"""
        else:
            kind = f"<{self.rows.lanes} x i{bits}>"
            order = ", ".join(f"i{bits} {i}" for i in range(self.rows.lanes))
            mask = f"""  %on.wide = {"zext i32 %on to i64" if bits == 64 else "add i32 %on, 0"}
  %on.one = insertelement {kind} poison, i{bits} %on.wide, i32 0
  %on.all = shufflevector {kind} %on.one, {kind} poison, <{self.rows.lanes} x i32> zeroinitializer
  %on.flags = icmp sgt {kind} %on.all, <{order}>
  %mask = sext <{self.rows.lanes} x i1> %on.flags to {kind}"""
        cases = " ".join(f"i64 {n - 1}, label %m{n}" for n in range(1, ACROSS + 1))
        return f"""  %last = sub nsw i64 %width, 1
  %vectors = ashr i64 %last, {self.rows.lanes.bit_length() - 1}
  %last.small = trunc i64 %last to i32
  %last.lane = and i32 %last.small, {self.rows.lanes - 1}
  %on = add nsw i32 %last.lane, 1
{mask}
  switch i64 %vectors, label %end [ {cases} ]"""

    def choice(self) -> str:
        """Write the dispatch without masks: the remaining whole vectors, then single elements."""
        parts = [
            f"  %is_{name} = icmp sge i64 %width, {elements}\n  br i1 %is_{name}, label %{name}, label %no_{name}\n"
            f"no_{name}:"
            for name, elements in (("v2", 2 * self.rows.lanes), ("v1", self.rows.lanes), ("e", 1))
        ]
        return "\n".join([*parts, "  br label %end"])
