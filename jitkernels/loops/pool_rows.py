"""Rows joined to one in vector code: up to four vectors across stay in registers while the rows run past.

LLVM's own loops across a row read and write the result once for every few rows, leave narrow rows to single elements,
and take long to build.
"""

from dataclasses import dataclass

from jitkernels import dtypes, machine
from jitkernels.native.source import IRFunction

ACROSS = 4
"""Vectors that are in registers together."""


def pool_rows(pool: str, dtype: str, vector_bytes: int, *, looked_up: bool = False) -> IRFunction:
    """``(x, stride, rows, y, width, is_more)``: `width` columns of rows that begin so many elements apart, joined in y.

    If `is_more` is not 0, what y holds is joined to them. Eight rows meet in a tree. Unless the pool is "sum" or "max",
    one argument more is what the sums are multiplied by. Where rows are `looked_up`, two more are ``ids, step``: a row
    begins at ``x + ids[i * step] * stride``.
    """
    rows = rows_of(pool, dtype, vector_bytes, looked_up=looked_up)
    symbol = f"rows_of_{pool}_{dtype}_{rows.lanes}{'_looked_up' if looked_up else ''}"
    arguments = (f"{dtype}*", "int64", "int64", f"{dtype}*", "int64", "int64")
    scale, lookup = (dtype,) if rows.is_scaled else (), ("int64*", "int64") if looked_up else ()
    return IRFunction(symbol, "int64", (*arguments, *scale, *lookup), rows.text(symbol))


def rows_of(pool: str, dtype: str, vector_bytes: int, *, looked_up: bool = False) -> "Rows":
    """What is to be joined, in vectors of so many bytes or the widest there are."""
    element, target = dtypes.named(dtype), machine.target()
    lanes = min(vector_bytes, target.vector_bytes) // element.size
    has_flags = target.masked_lanes(dtype, vector_bytes) > 0
    return Rows(
        element.llvm,
        element.size,
        lanes,
        is_max=pool == "max",
        is_scaled=pool not in ("sum", "max"),
        is_looked_up=looked_up,
        has_masks=has_flags or "avx2" in target.features,
        has_flags=has_flags,
    )


@dataclass(frozen=True)
class Rows:
    """has_masks: lanes can be off in loads and stores. has_flags: these are bits of their own, no vectors."""

    number: str
    size: int
    lanes: int
    is_max: bool
    is_scaled: bool
    is_looked_up: bool
    has_masks: bool
    has_flags: bool

    @property
    def nothing(self) -> str:
        """What joined to anything leaves it as it is, a negative zero as well."""
        return "0xFFF0000000000000" if self.is_max else "-0.0"

    def text(self, symbol: str) -> str:
        """Whole strips have a function of their own, which needs more registers than a call of few rows should save."""
        whole = ACROSS * self.lanes
        bits, kind = f"<{self.lanes} x i1>", f"v{self.lanes}f{8 * self.size}"
        vector = f"<{self.lanes} x {self.number}>"
        masked = f"""declare {vector} @llvm.masked.load.{kind}.p0(ptr, i32, {bits}, {vector})
declare void @llvm.masked.store.{kind}.p0({vector}, ptr, i32, {bits})"""
        more = ", ".join(["", *(f"{kind} {name}" for kind, name in self.more)])
        parameters = f"ptr %x.all, i64 %stride, i64 %rows, ptr %y.all, i64 %width.all, i64 %is_more{more}"
        arguments = f"ptr %x, i64 %stride, i64 %rows, ptr %y, i64 %width, i64 %is_more{more}"
        all_arguments = arguments.replace("%x,", "%x.all,").replace("%y,", "%y.all,").replace("%width,", "%width.all,")
        least = "sgt" if self.has_masks else "sge"  # which leaves a whole strip to the other function
        strip = Strip(self, "w", ACROSS, self.lanes, is_masked=False)
        names = [f"m{n}" for n in range(1, ACROSS + 1)] if self.has_masks else ["v2", "v1", "e"]
        parts = [
            Strip(self, name, n, lanes, is_masked=self.has_masks)
            for name, n, lanes in (
                [(name, n, self.lanes) for n, name in enumerate(names, 1)]
                if self.has_masks
                else [("v2", 2, self.lanes), ("v1", 1, self.lanes), ("e", 1, 1)]
            )
        ]
        return f"""{self.nothing_there}
{masked if self.has_masks else ""}
define internal i64 @{symbol}_whole({parameters}) noinline nounwind {{
start:
{self.strides()}  %joins = icmp ne i64 %is_more, 0
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
{self.strides()}  %joins = icmp ne i64 %is_more, 0
  br label %next
next:
{self.arrivals(parts, "narrow")}
{self.masked_choice() if self.has_masks else self.choice()}
end:
  ret i64 0
{"".join(part.text() for part in parts)}}}
!0 = distinct !{{!0, !1}}
!1 = !{{!"llvm.loop.unroll.disable"}}
"""

    @property
    def constant(self) -> str:
        return f"{'no_maximum' if self.is_max else 'no_sum'}_{8 * self.size}_{self.lanes}"

    @property
    def nothing_there(self) -> str:
        """The definition of a strip of nothing, which strips are loaded from as from the result."""
        kind = f"<{ACROSS * self.lanes} x {self.number}>"
        return f"@{self.constant} = linkonce_odr hidden constant {kind} splat ({self.number} {self.nothing}), align 64"

    @property
    def more(self) -> list[tuple[str, str]]:
        """Types and names of what only some kinds take."""
        scale, lookup = [(self.number, "%factor")], [("ptr", "%ids"), ("i64", "%step")]
        return [*(scale if self.is_scaled else []), *(lookup if self.is_looked_up else [])]

    def strides(self, stride: str = "%stride") -> str:
        """What is the same for all strips."""
        more = "" if self.is_looked_up else "  %by2 = shl i64 %by, 1\n  %by3 = add i64 %by, %by2\n  %by4 = shl i64 %by, 2\n"
        return f"  %by = mul i64 {stride}, {self.size}\n{more}  %eights = icmp sge i64 %rows, 8\n"

    def arrivals(self, strips: "list[Strip]", first: str = "start") -> str:
        """What is left to do, where strips come back to."""
        return "\n".join(
            f"  %{name} = phi {kind} [ %{name}.all, %{first} ]"
            + "".join(f", [ %{strip.name}.{name}, %{strip.name}.put ]" for strip in strips if not strip.is_masked)
            for name, kind in (("x", "ptr"), ("y", "ptr"), ("width", "i64"))
        )

    def masked_choice(self) -> str:
        """As many vectors as are left, the last of which has some lanes off."""
        bits = 8 * self.size
        if self.has_flags:
            mask = f"""  %ones = shl nsw i32 -1, %on
  %set = xor i32 %ones, -1
  %few = trunc i32 %set to i{self.lanes}
  %mask = bitcast i{self.lanes} %few to <{self.lanes} x i1>"""
        else:
            kind = f"<{self.lanes} x i{bits}>"
            order = ", ".join(f"i{bits} {i}" for i in range(self.lanes))
            mask = f"""  %on.wide = {"zext i32 %on to i64" if bits == 64 else "add i32 %on, 0"}
  %on.one = insertelement {kind} poison, i{bits} %on.wide, i32 0
  %on.all = shufflevector {kind} %on.one, {kind} poison, <{self.lanes} x i32> zeroinitializer
  %on.flags = icmp sgt {kind} %on.all, <{order}>
  %mask = sext <{self.lanes} x i1> %on.flags to {kind}"""
        cases = " ".join(f"i64 {n - 1}, label %m{n}" for n in range(1, ACROSS + 1))
        return f"""  %last = sub nsw i64 %width, 1
  %vectors = ashr i64 %last, {self.lanes.bit_length() - 1}
  %last.small = trunc i64 %last to i32
  %last.lane = and i32 %last.small, {self.lanes - 1}
  %on = add nsw i32 %last.lane, 1
{mask}
  switch i64 %vectors, label %end [ {cases} ]"""

    def choice(self) -> str:
        """Where all lanes are always on: as many vectors as there are, then single elements."""
        parts = [
            f"  %is_{name} = icmp sge i64 %width, {elements}\n  br i1 %is_{name}, label %{name}, label %no_{name}\n"
            f"no_{name}:"
            for name, elements in (("v2", 2 * self.lanes), ("v1", self.lanes), ("e", 1))
        ]
        return "\n".join([*parts, "  br label %end"])


@dataclass(frozen=True)
class Strip:
    """The code for `count` vectors across, of the last of which lanes may be off. Names begin with its own."""

    rows: Rows
    name: str
    count: int
    lanes: int
    is_masked: bool

    @property
    def vector(self) -> str:
        return f"<{self.lanes} x {self.rows.number}>"

    @property
    def flags(self) -> str:
        """The type of what tells lanes that met NaN."""
        return f"<{self.lanes} x i1>" if self.rows.has_flags else f"<{self.lanes} x i{8 * self.rows.size}>"

    def every(self, value: str) -> str:
        return f"splat ({self.rows.number} {value})"

    def state(self, block: str, arrivals: list[tuple[str, str]]) -> str:
        """What is joined so far, at the top of a block: from each (block, suffix of the names there)."""
        lines = []
        for v in range(self.count):
            for letter, kind in (("s", self.vector), *((("l", self.flags),) if self.rows.is_max else ())):
                values = ", ".join(f"[ %{self.name}.{letter}{v}.{suffix}, %{at} ]" for at, suffix in arrivals)
                lines.append(f"  %{self.name}.{letter}{v}.{block} = phi {kind} {values}")
        return "\n".join(lines)

    def load(self, result: str, place: str, v: int) -> str:
        """Vector v behind a place."""
        at = f"{result}.at"
        lines = f"  {at} = getelementptr {self.rows.number}, ptr {place}, i64 {v * self.lanes}\n"
        if self.is_masked and v == self.count - 1:
            mask, code = self.mask(result)
            bits = 8 * self.rows.size
            return (
                f"{lines}{code}  {result} = call {self.vector} @llvm.masked.load.v{self.lanes}f{bits}.p0(ptr {at}, "
                f"i32 1, <{self.lanes} x i1> {mask}, {self.vector} zeroinitializer)"
            )
        return f"{lines}  {result} = load {self.vector}, ptr {at}, align {self.rows.size}"

    def mask(self, result: str) -> tuple[str, str]:
        if self.rows.has_flags:
            return "%mask", ""
        kind = f"<{self.lanes} x i{8 * self.rows.size}>"
        return f"{result}.mask", f"  {result}.mask = icmp slt {kind} %mask, zeroinitializer\n"

    def join(self, result: str, a: str, b: str) -> str:
        """The greater of two is the latter if either is NaN: `met` tells those."""
        if not self.rows.is_max:
            return f"  {result} = fadd {self.vector} {a}, {b}"
        return (
            f"  {result}.is = fcmp ogt {self.vector} {a}, {b}\n"
            f"  {result} = select <{self.lanes} x i1> {result}.is, {self.vector} {a}, {self.vector} {b}"
        )

    def numbers(self, result: str, a: str, b: str, before: str = "") -> str:
        """Which lanes are numbers in both, and were before."""
        if not self.rows.is_max:
            return ""
        name = f"{result}.all" if before else result
        found = f"fcmp ord {self.vector} {a}, {b}"
        if self.rows.has_flags:
            code = f"\n  {name} = {found}"
        else:
            code = f"\n  {name}.is = {found}\n  {name} = sext <{self.lanes} x i1> {name}.is to {self.flags}"
        return code + (f"\n  {result} = and {self.flags} {name}, {before}" if before else "")

    def place(self, result: str, x: str, ids: str, row: int, base: str = "") -> str:
        """Where a row of eight begins."""
        if self.rows.is_looked_up:
            return (
                f"  {result}.skip = mul nsw i64 %step, {row}\n"
                f"  {result}.id.at = getelementptr i64, ptr {ids}, i64 {result}.skip\n"
                f"  {result}.id = load i64, ptr {result}.id.at\n"
                f"  {result}.far = mul i64 {result}.id, %by\n"
                f"  {result} = getelementptr i8, ptr %x, i64 {result}.far"
            )
        steps = ("0", "%by", "%by2", "%by3")
        return f"  {result} = getelementptr i8, ptr {base or x}, i64 {steps[row % 4]}"

    def eight(self) -> str:
        """Eight rows, which meet in a tree before they join those before them."""
        n, lines = self.name, []
        if not self.rows.is_looked_up:
            # Hidden from LLVM, which would take more registers for the eight places than there are to spare.
            lines.append(f"  %{n}.p4.known = getelementptr i8, ptr %{n}.p.8, i64 %by4")
            lines.append(f'  %{n}.p4.8 = call ptr asm "", "=r,0"(ptr %{n}.p4.known)')
            lines.append(f"  %{n}.p.next8 = getelementptr i8, ptr %{n}.p4.8, i64 %by4")
        else:
            lines.append(f"  %{n}.eight = shl i64 %step, 3")
            lines.append(f"  %{n}.p.next8 = getelementptr i64, ptr %{n}.p.8, i64 %{n}.eight")
        lines += [
            self.place(f"%{n}.r{r}", "%x", f"%{n}.p.8", r, f"%{n}.p.8" if r < 4 else f"%{n}.p4.8") for r in range(8)
        ]
        for v in range(self.count):
            a, b, m = ([f"%{n}.{letter}{v}.{r}" for r in range(8)] for letter in "abm")
            lines += [self.load(a[r], f"%{n}.r{r}", v) for r in range(8)]
            for r in range(4):
                lines.append(self.join(b[r], a[2 * r], a[2 * r + 1]))
                lines.append(self.numbers(m[r], a[2 * r], a[2 * r + 1], m[r - 1] if r else "").lstrip("\n"))
            lines += [self.join(b[4 + r], b[2 * r], b[2 * r + 1]) for r in range(2)]
            lines += [self.join(b[6], b[4], b[5]), self.join(f"%{n}.s{v}.next8", f"%{n}.s{v}.8", b[6])]
            if self.rows.is_max:
                lines.append(f"  %{n}.l{v}.next8 = and {self.flags} %{n}.l{v}.8, {m[3]}")
        return "\n".join(filter(None, lines))

    def one(self) -> str:
        n = self.name
        step = "i64" if self.rows.is_looked_up else "i8"
        lines = [
            self.place(f"%{n}.r", "%x", f"%{n}.p.1", 0, f"%{n}.p.1"),
            f"  %{n}.p.next1 = getelementptr {step}, ptr %{n}.p.1, i64 {'%step' if self.rows.is_looked_up else '%by'}",
        ]
        for v in range(self.count):
            a = f"%{n}.a{v}"
            lines.append(self.load(a, f"%{n}.r", v))
            found = self.numbers(f"%{n}.l{v}.next1", a, a, f"%{n}.l{v}.1")
            lines.append(self.join(f"%{n}.s{v}.next1", f"%{n}.s{v}.1", a) + found)
        return "\n".join(lines)

    def old(self, place: str) -> str:
        """What is there before the first row."""
        n = self.name
        return "\n".join(
            self.load(f"%{n}.s{v}.down", place, v) + self.numbers(f"%{n}.l{v}.down", *2 * [f"%{n}.s{v}.down"])
            for v in range(self.count)
        )

    def results(self) -> tuple[list[str], str]:
        """The names of the results, and the code that makes them of what is joined."""
        n, names, lines = self.name, [], []
        if self.rows.is_scaled:
            lines.append(f"  %{n}.factor.one = insertelement {self.vector} poison, {self.rows.number} %factor, i32 0")
            lines.append(
                f"  %{n}.factor = shufflevector {self.vector} %{n}.factor.one, {self.vector} poison, "
                f"<{self.lanes} x i32> zeroinitializer"
            )
        for v in range(self.count):
            value, flag = f"%{n}.s{v}.put", f"%{n}.l{v}.put"
            names.append(f"%{n}.result{v}")
            if self.rows.is_scaled:
                lines.append(f"  {names[v]} = fmul {self.vector} {value}, %{n}.factor")
            elif self.rows.is_max:
                if not self.rows.has_flags:
                    lines.append(f"  {flag}.is = icmp ne {self.flags} {flag}, zeroinitializer")
                    flag += ".is"
                lines.append(
                    f"  {names[v]} = select <{self.lanes} x i1> {flag}, {self.vector} {value}, "
                    f"{self.vector} {self.every('0x7FF8000000000000')}"
                )
            else:
                names[v] = value
        return names, "\n".join(lines)

    def put(self) -> str:
        """Write the results and go on to what is left, if anything is."""
        n, elements = self.name, self.count * self.lanes
        names, code = self.results()
        lines = [code]
        for v, value in enumerate(names):
            at = f"%{n}.y{v}.at"
            lines.append(f"  {at} = getelementptr {self.rows.number}, ptr %y, i64 {v * self.lanes}")
            if self.is_masked and v == self.count - 1:
                mask, code = self.mask(at)
                lines.append(
                    f"{code}  call void @llvm.masked.store.v{self.lanes}f{8 * self.rows.size}.p0({self.vector} {value}, "
                    f"ptr {at}, i32 1, <{self.lanes} x i1> {mask})"
                )
            else:
                lines.append(f"  store {self.vector} {value}, ptr {at}, align {self.rows.size}")
        if self.is_masked:
            return "\n".join([*lines, "  br label %end"])
        after = f"""  %{n}.x = getelementptr {self.rows.number}, ptr %x, i64 {elements}
  %{n}.y = getelementptr {self.rows.number}, ptr %y, i64 {elements}
  %{n}.width = sub nsw i64 %width, {elements}
  br label %next"""
        return "\n".join([*lines, after])

    def text(self, then: str = "") -> str:
        """All of it; `then` stands for what is done with the results, which is to write them."""
        n = self.name
        where = "%ids" if self.rows.is_looked_up else "%x"
        return f"""{n}:
  %{n}.start = select i1 %joins, ptr %y, ptr @{self.rows.constant}
{self.old(f"%{n}.start")}
  br label %{n}.down
{n}.down:
  br i1 %eights, label %{n}.8, label %{n}.1
{n}.8:
  %{n}.n.8 = phi i64 [ %rows, %{n}.down ], [ %{n}.n.next8, %{n}.8 ]
  %{n}.p.8 = phi ptr [ {where}, %{n}.down ], [ %{n}.p.next8, %{n}.8 ]
{self.state("8", [(f"{n}.down", "down"), (f"{n}.8", "next8")])}
{self.eight()}
  %{n}.n.next8 = sub nsw i64 %{n}.n.8, 8
  %{n}.again8 = icmp sge i64 %{n}.n.next8, 8
  br i1 %{n}.again8, label %{n}.8, label %{n}.left, !llvm.loop !0
{n}.left:
  %{n}.some = icmp sgt i64 %{n}.n.next8, 0
  br i1 %{n}.some, label %{n}.1, label %{n}.put
{n}.1:
  %{n}.n.1 = phi i64 [ %rows, %{n}.down ], [ %{n}.n.next8, %{n}.left ], [ %{n}.n.next1, %{n}.1 ]
  %{n}.p.1 = phi ptr [ {where}, %{n}.down ], [ %{n}.p.next8, %{n}.left ], [ %{n}.p.next1, %{n}.1 ]
{self.state("1", [(f"{n}.down", "down"), (f"{n}.left", "next8"), (f"{n}.1", "next1")])}
{self.one()}
  %{n}.n.next1 = sub nsw i64 %{n}.n.1, 1
  %{n}.again1 = icmp sgt i64 %{n}.n.next1, 0
  br i1 %{n}.again1, label %{n}.1, label %{n}.put, !llvm.loop !0
{n}.put:
{self.state("put", [(f"{n}.left", "next8"), (f"{n}.1", "next1")])}
{then or self.put()}
"""
