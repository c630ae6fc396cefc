"""LLVM IR of one strip of an embedding-bag reduction: a few vectors in registers, eight rows per iteration, then one.

Loops that LLVM vectorizes from scalar code load and store the result for every few rows, leave narrow rows to scalar
code, and take long to compile.
"""

from jitkernels.core import cpu_target, dtypes
from jitkernels.core.frozen_dataclass import frozen_dataclass

ACROSS = 4
"""Vectors of a strip, all in registers."""


def rows_of(pool: str, dtype: str, vector_bytes: int, *, looked_up: bool = False) -> "Rows":
    """Return the element kind, vectors and masks of a pool, for `vector_bytes` or the widest vectors of the target."""
    element, target = dtypes.named(dtype), cpu_target.target()
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


@frozen_dataclass
class Rows:
    """has_masks: loads and stores can be masked. has_flags: masks are bits of their own (i1), not vectors."""

    number: str
    size: int
    lanes: int
    is_max: bool
    is_scaled: bool
    is_looked_up: bool
    has_masks: bool
    has_flags: bool

    @property
    def identity(self) -> str:
        """Return the identity of the reduction, which keeps even a negative zero."""
        return "0xFFF0000000000000" if self.is_max else "-0.0"

    @property
    def constant(self) -> str:
        return f"{'no_maximum' if self.is_max else 'no_sum'}_{8 * self.size}_{self.lanes}"

    @property
    def identity_constant(self) -> str:
        """Define a constant strip of identities, which strips load in place of an old result."""
        kind = f"<{ACROSS * self.lanes} x {self.number}>"
        return f"@{self.constant} = linkonce_odr hidden constant {kind} splat ({self.number} {self.identity}), align 64"

    def strides(self, stride: str = "%stride") -> str:
        """Write the strides that all strips share."""
        more = (
            ""
            if self.is_looked_up
            else "  %by2 = shl i64 %by, 1\n  %by3 = add i64 %by, %by2\n  %by4 = shl i64 %by, 2\n"
        )
        return f"  %by = mul i64 {stride}, {self.size}\n{more}  %eights = icmp sge i64 %rows, 8\n"


@frozen_dataclass
class Strip:
    """Writer of a strip of `count` vectors, the last of which may be masked; its value names have a prefix."""

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
        """Type of the mask of lanes without NaN so far: a maximum is NaN in the other lanes."""
        return f"<{self.lanes} x i1>" if self.rows.has_flags else f"<{self.lanes} x i{8 * self.rows.size}>"

    @property
    def suffix(self) -> str:
        """Suffix of the names of LLVM's vector intrinsics."""
        return f"v{self.lanes}f{8 * self.rows.size}.p0"

    def every(self, value: str) -> str:
        return f"splat ({self.rows.number} {value})"

    def state(self, block: str, incoming: list[tuple[str, str]]) -> str:
        """Write the phis of the accumulators at the top of a block, from each (block, suffix of the names there)."""
        lines = []
        for v in range(self.count):
            for letter, kind in (("s", self.vector), *((("l", self.flags),) if self.rows.is_max else ())):
                values = ", ".join(f"[ %{self.name}.{letter}{v}.{suffix}, %{at} ]" for at, suffix in incoming)
                lines.append(f"  %{self.name}.{letter}{v}.{block} = phi {kind} {values}")
        return "\n".join(lines)

    def load(self, result: str, address: str, v: int) -> str:
        """Append the load of vector v at an address."""
        at = f"{result}.at"
        lines = f"  {at} = getelementptr {self.rows.number}, ptr {address}, i64 {v * self.lanes}\n"
        if self.is_masked and v == self.count - 1:
            mask, code = self.mask(result)
            return (
                f"{lines}{code}  {result} = call {self.vector} @llvm.masked.load.{self.suffix}(ptr {at}, "
                f"i32 1, <{self.lanes} x i1> {mask}, {self.vector} zeroinitializer)"
            )
        return f"{lines}  {result} = load {self.vector}, ptr {at}, align {self.rows.size}"

    def mask(self, result: str) -> tuple[str, str]:
        """Append the mask of the last vector, with value names that begin with the result's."""
        if self.rows.has_flags:
            return "%mask", ""
        kind = f"<{self.lanes} x i{8 * self.rows.size}>"
        return f"{result}.mask", f"  {result}.mask = icmp slt {kind} %mask, zeroinitializer\n"

    def join(self, result: str, a: str, b: str) -> str:
        """Append the reduction of two vectors. A maximum is the second operand if either is NaN: see `numbers`."""
        if not self.rows.is_max:
            return f"  {result} = fadd {self.vector} {a}, {b}"
        return (
            f"  {result}.is = fcmp ogt {self.vector} {a}, {b}\n"
            f"  {result} = select <{self.lanes} x i1> {result}.is, {self.vector} {a}, {self.vector} {b}"
        )

    def numbers(self, result: str, a: str, b: str, before: str = "") -> str:
        """Append the mask of lanes without NaN in both operands and in the mask before."""
        if not self.rows.is_max:
            return ""
        name = f"{result}.all" if before else result
        ordered = f"fcmp ord {self.vector} {a}, {b}"
        if self.rows.has_flags:
            code = f"\n  {name} = {ordered}"
        else:
            code = f"\n  {name}.is = {ordered}\n  {name} = sext <{self.lanes} x i1> {name}.is to {self.flags}"
        return code + (f"\n  {result} = and {self.flags} {name}, {before}" if before else "")

    def address_of(self, result: str, at: str, row: int) -> str:
        """Append the address of a row: one of four behind a base address, or of eight behind an id."""
        if self.rows.is_looked_up:
            return (
                f"  {result}.skip = mul nsw i64 %step, {row}\n"
                f"  {result}.id.at = getelementptr i64, ptr {at}, i64 {result}.skip\n"
                f"  {result}.id = load i64, ptr {result}.id.at\n"
                f"  {result}.far = mul i64 {result}.id, %by\n"
                f"  {result} = getelementptr i8, ptr %x, i64 {result}.far"
            )
        steps = ("0", "%by", "%by2", "%by3")
        return f"  {result} = getelementptr i8, ptr {at}, i64 {steps[row % 4]}"

    def eight(self) -> str:
        """Write the block of eight rows, which form a tree before they meet the accumulators."""
        n, lines = self.name, []
        if not self.rows.is_looked_up:
            # Opaque to LLVM, which would otherwise keep the eight addresses in more registers than there are.
            lines.append(f"  %{n}.p4.known = getelementptr i8, ptr %{n}.p.8, i64 %by4")
            lines.append(f'  %{n}.p4.8 = call ptr asm "", "=r,0"(ptr %{n}.p4.known)')
            lines.append(f"  %{n}.p.next8 = getelementptr i8, ptr %{n}.p4.8, i64 %by4")
        else:
            lines.append(f"  %{n}.eight = shl i64 %step, 3")
            lines.append(f"  %{n}.p.next8 = getelementptr i64, ptr %{n}.p.8, i64 %{n}.eight")
        lines += [
            self.address_of(f"%{n}.r{r}", f"%{n}.p.8" if r < 4 or self.rows.is_looked_up else f"%{n}.p4.8", r)
            for r in range(8)
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
        """Write the block of one of the rows that remain after the eights."""
        n = self.name
        step = "i64" if self.rows.is_looked_up else "i8"
        lines = [
            self.address_of(f"%{n}.r", f"%{n}.p.1", 0),
            f"  %{n}.p.next1 = getelementptr {step}, ptr %{n}.p.1, i64 {'%step' if self.rows.is_looked_up else '%by'}",
        ]
        for v in range(self.count):
            a = f"%{n}.a{v}"
            lines.append(self.load(a, f"%{n}.r", v))
            ordered = self.numbers(f"%{n}.l{v}.next1", a, a, f"%{n}.l{v}.1")
            lines.append(self.join(f"%{n}.s{v}.next1", f"%{n}.s{v}.1", a) + ordered)
        return "\n".join(lines)

    def old(self, address: str) -> str:
        """Append the loads of the initial accumulators."""
        n = self.name
        return "\n".join(
            self.load(f"%{n}.s{v}.down", address, v) + self.numbers(f"%{n}.l{v}.down", *2 * [f"%{n}.s{v}.down"])
            for v in range(self.count)
        )

    def results(self) -> tuple[list[str], str]:
        """Append the results, and return their names."""
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
        """Append the stores of the results and the branch to the remaining columns, if any."""
        n, elements = self.name, self.count * self.lanes
        names, code = self.results()
        lines = [code]
        for v, value in enumerate(names):
            at = f"%{n}.y{v}.at"
            lines.append(f"  {at} = getelementptr {self.rows.number}, ptr %y, i64 {v * self.lanes}")
            if self.is_masked and v == self.count - 1:
                mask, code = self.mask(at)
                lines.append(
                    f"{code}  call void @llvm.masked.store.{self.suffix}({self.vector} {value}, "
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
        """Write the strip; `then` replaces the default use of the results, which stores them."""
        n = self.name
        base = "%ids" if self.rows.is_looked_up else "%x"
        return f"""{n}:
  %{n}.start = select i1 %joins, ptr %y, ptr @{self.rows.constant}
{self.old(f"%{n}.start")}
  br label %{n}.down
{n}.down:
  br i1 %eights, label %{n}.8, label %{n}.1
{n}.8:
  %{n}.n.8 = phi i64 [ %rows, %{n}.down ], [ %{n}.n.next8, %{n}.8 ]
  %{n}.p.8 = phi ptr [ {base}, %{n}.down ], [ %{n}.p.next8, %{n}.8 ]
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
  %{n}.p.1 = phi ptr [ {base}, %{n}.down ], [ %{n}.p.next8, %{n}.left ], [ %{n}.p.next1, %{n}.1 ]
{self.state("1", [(f"{n}.down", "down"), (f"{n}.left", "next8"), (f"{n}.1", "next1")])}
{self.one()}
  %{n}.n.next1 = sub nsw i64 %{n}.n.1, 1
  %{n}.again1 = icmp sgt i64 %{n}.n.next1, 0
  br i1 %{n}.again1, label %{n}.1, label %{n}.put, !llvm.loop !0
{n}.put:
{self.state("put", [(f"{n}.left", "next8"), (f"{n}.1", "next1")])}
{then or self.put()}
"""
