"""The transforms of Winograd's minimal filtering, as LLVM IR text: vectors of channels, one tile at a time.

A transform is a product with a small constant matrix from the left, and with its transpose from the right. The text has
one expression for each sum of even or odd terms, or of a pair of opposite points, which rows of the matrix share.
`whole` functions take patches inside of the image, and whole vectors. The others copy what there is of a patch, or of
the results, through a buffer on the stack.

Every process builds the text again at its start to compute the cache key of the object, so this module must not import
a compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.gemm.microkernel import Text, declarations, element_size, element_type, float_literal

#: IR arguments of the transform of a patch: rows and columns from `top` and `left` to `bottom` and `right` are inside
#: the image, of which x + x_offset is the element (0, 0). Strides and offsets are in elements.
PATCH_ARGUMENTS = (
    ("ptr", "x"), ("i64", "x_offset"), ("i64", "row_stride"), ("i64", "pixel_stride"), ("i64", "top"),
    ("i64", "bottom"), ("i64", "left"), ("i64", "right"),
    ("ptr", "to"), ("i64", "to_offset"), ("i64", "position_stride"), ("i64", "channels"),
)  # fmt: skip
#: IR arguments of the transform of products to the first `rows` and `columns` results of a tile.
RESULT_ARGUMENTS = (
    ("ptr", "products"), ("i64", "products_offset"), ("i64", "position_stride"), ("ptr", "bias"), ("i64", "first"),
    ("ptr", "residual"), ("ptr", "y"), ("i64", "y_offset"), ("i64", "row_stride"), ("i64", "pixel_stride"),
    ("i64", "rows"), ("i64", "columns"), ("i64", "filters"),
)  # fmt: skip
FRAME = '"frame-pointer"="all"'
"""LLVM aligns spilled vectors only where it has a frame pointer: others cross cache lines."""
Matrix = tuple[tuple[float, ...], ...]


@frozen_dataclass
class Transform:
    """Compile-time parameters of a transform function; `matrix` is applied from both sides.

    A patch is square, with as many rows as `matrix` has columns. `biased`, `has_residual` and `relu` are those of
    results.
    """

    symbol: str
    dtype: str
    lanes: int
    matrix: Matrix
    whole: bool
    biased: bool = False
    has_residual: bool = False
    relu: bool = False

    def patch_text(self) -> str:
        """Write the IR of the transform of a patch."""
        return declarations(self.dtype, self.lanes) + _PatchText(self).build()

    def result_text(self) -> str:
        """Write the IR of the transform of products."""
        return declarations(self.dtype, self.lanes) + _ResultText(self).build()


class _TransformText:
    """What both transforms share: the loop over vectors, and products with the matrix."""

    arguments: tuple[tuple[str, str], ...] = ()
    extent = ""

    def __init__(self, transform: Transform) -> None:
        self.transform, self.out = transform, Text()
        self.lanes, self.kind, self.align = (
            transform.lanes, element_type(transform.dtype), element_size(transform.dtype),
        )  # fmt: skip
        self.vector = f"<{self.lanes} x {self.kind}>"
        self.suffix = f"v{self.lanes}f{8 * self.align}"
        self.sizes = len(transform.matrix), len(transform.matrix[0])

    def build(self) -> str:
        out = self.out
        arguments = ", ".join(f"{kind} {'noalias ' if kind == 'ptr' else ''}%{name}" for kind, name in self.arguments)
        out.label("entry")
        self.prepare()
        out.lines.append(f"  %some = icmp sgt i64 %{self.extent}, 0")
        out.line("br i1 %some, label %step, label %done")
        out.label("step")
        out.lines.append("  %at = phi i64 [ 0, %entry ], [ %next, %next_step ]")
        if not self.transform.whole:
            live = out.value(f"sub nsw i64 %{self.extent}, %at")
            self.mask = out.lanes_below(live, self.lanes)
        self.step()
        out.line("br label %next_step")
        out.label("next_step")
        out.lines.append(f"  %next = add nsw i64 %at, {self.lanes}")
        out.lines.append(f"  %more = icmp slt i64 %next, %{self.extent}")
        out.line("br i1 %more, label %step, label %done")
        out.label("done")
        out.line("ret void")
        body = "\n".join(out.lines)
        return f"define void @{self.transform.symbol}({arguments}) noinline nounwind {FRAME} {{\n{body}\n}}\n"

    def prepare(self) -> None:
        """Append what comes before the loop."""
        raise NotImplementedError

    def step(self) -> None:
        """Append the transform of the vector of channels from %at on."""
        raise NotImplementedError

    def load(self, address: str) -> str:
        return self.out.value(f"load {self.vector}, ptr {address}, align {self.align}")

    def masked_load(self, address: str) -> str:
        return self.out.value(
            f"call {self.vector} @llvm.masked.load.{self.suffix}.p0(ptr {address}, i32 {self.align}, "
            f"<{self.lanes} x i1> {self.mask}, {self.vector} zeroinitializer)"
        )

    def element(self, base: str, index: str | int) -> str:
        return self.out.element(self.kind, base, index)

    def squared(self, load: Callable[[int, int], str], store: Callable[[int, int, str], None]) -> None:
        """Append the product with the matrix from both sides: all columns of `load`, then all rows, for `store`."""
        results, terms = self.sizes
        columns = [self.times_matrix([load(i, j) for i in range(terms)]) for j in range(terms)]
        for i in range(results):
            for j, value in enumerate(self.times_matrix([column[i] for column in columns])):
                store(i, j, value)

    def times_matrix(self, values: Sequence[str]) -> list[str]:
        """Append the matrix times a column of vectors."""
        shared: dict[tuple[tuple[int, float], ...], str] = {}
        return [self._row(row, values, shared) for row in self.transform.matrix]

    def _row(
        self, row: Sequence[float], values: Sequence[str], shared: dict[tuple[tuple[int, float], ...], str]
    ) -> str:
        terms: list[tuple[float, str]] = []
        for indices in shared_terms(row):
            sign = 1.0 if row[indices[-1]] > 0 else -1.0
            scale = abs(row[indices[-1]]) if len({abs(row[i]) for i in indices}) == 1 else 1.0
            key = tuple((i, row[i] * sign / scale) for i in indices)
            if key not in shared:
                shared[key] = self._sum([(factor, values[i]) for i, factor in key])
            terms.append((sign * scale, shared[key]))
        return self._sum(terms)

    def _sum(self, terms: Sequence[tuple[float, str]]) -> str:
        """Append the sum of factors times vectors, one without a factor first if there is one."""
        out, vector = self.out, self.vector
        (factor, total), *rest = sorted(terms, key=lambda term: (abs(term[0]) != 1, term[0] < 0))
        if factor != 1:
            total = out.value(
                f"fneg {vector} {total}" if factor == -1 else f"fmul {vector} {total}, {self._all(factor)}"
            )
        for factor, value in rest:
            if abs(factor) == 1:
                total = out.value(f"{'fadd' if factor > 0 else 'fsub'} {vector} {total}, {value}")
            else:
                total = out.value(
                    f"call {vector} @llvm.fmuladd.{self.suffix}({vector} {value}, {vector} {self._all(factor)}, "
                    f"{vector} {total})"
                )
        return total

    def _all(self, value: float) -> str:
        return f"<{', '.join([f'{self.kind} {float_literal(value, self.transform.dtype)}'] * self.lanes)}>"

    def copy_loops(self, rows: tuple[str, str], columns: tuple[str, str]) -> Callable[[], None]:
        """Append the begin of two loops with %i and %j; the function that is returned appends their end."""
        out = self.out
        out.lines.append(f"  %has_rows = icmp slt i64 {rows[0]}, {rows[1]}")
        out.lines.append(f"  %has_columns = icmp slt i64 {columns[0]}, {columns[1]}")
        out.lines.append("  %has_some = and i1 %has_rows, %has_columns")
        out.line("br i1 %has_some, label %copy_row, label %copied")
        out.label("copy_row")
        out.lines.append(f"  %i = phi i64 [ {rows[0]}, %step ], [ %i_next, %copy_end ]")
        out.line("br label %copy")
        out.label("copy")
        out.lines.append(f"  %j = phi i64 [ {columns[0]}, %copy_row ], [ %j_next, %copy ]")

        def end() -> None:
            out.lines.append("  %j_next = add nsw i64 %j, 1")
            out.lines.append(f"  %j_more = icmp slt i64 %j_next, {columns[1]}")
            out.line("br i1 %j_more, label %copy, label %copy_end")
            out.label("copy_end")
            out.lines.append("  %i_next = add nsw i64 %i, 1")
            out.lines.append(f"  %i_more = icmp slt i64 %i_next, {rows[1]}")
            out.line("br i1 %i_more, label %copy_row, label %copied")
            out.label("copied")

        return end

    def place(self, width: int) -> str:
        """Append the address of the vector (%i, %j) of the buffer."""
        row = self.out.value(f"mul nsw i64 %i, {width}")
        index = self.out.value(f"add nsw i64 {row}, %j")
        return self.out.value(f"getelementptr {self.vector}, ptr %buffer, i64 {index}")

    def image_place(self, base: str) -> str:
        """Append the address of pixel (%i, %j) of an array."""
        down = self.out.value("mul nsw i64 %i, %row_stride")
        along = self.out.value("mul nsw i64 %j, %pixel_stride")
        return self.element(base, self.out.value(f"add nsw i64 {down}, {along}"))


def shared_terms(row: Sequence[float]) -> list[list[int]]:
    """Return the indices of the terms of a row in groups that other rows have too, but for signs and factors.

    Columns 1 and 2, 3 and 4, ... of a matrix that evaluates polynomials belong to points p and -p. Rows 1 and 2, ... of
    one that interpolates differ in the signs of odd columns.
    """
    indices = [i for i, factor in enumerate(row) if factor]
    pairs = [[i, i + 1] for i in range(1, len(row) - 1, 2) if row[i] and abs(row[i]) == abs(row[i + 1])]
    if len(row) % 2 == 0 and pairs and len(pairs) == (len(row) - 2) // 2:
        paired = {i for pair in pairs for i in pair}
        return [[i] for i in indices if i not in paired] + pairs
    return [part for part in ([i for i in indices if i % 2 == 0], [i for i in indices if i % 2]) if part]


class _PatchText(_TransformText):
    """The transform of a patch of an image."""

    arguments, extent = PATCH_ARGUMENTS, "channels"

    def prepare(self) -> None:
        out, size = self.out, self.sizes[0]
        out.lines.append(f"  %from = getelementptr {self.kind}, ptr %x, i64 %x_offset")
        out.lines.append(f"  %target = getelementptr {self.kind}, ptr %to, i64 %to_offset")
        if not self.transform.whole:
            out.lines.append(f"  %buffer = alloca [{size * size} x {self.vector}], align 64")
            out.line(f"store [{size * size} x {self.vector}] zeroinitializer, ptr %buffer")

    def step(self) -> None:
        out, size = self.out, self.sizes[0]
        source = self.element("%from", "%at")
        target = self.element("%target", "%at")
        if self.transform.whole:
            rows = [self.element(source, out.times(i, "%row_stride")) for i in range(size)]
            steps = [out.times(j, "%pixel_stride") for j in range(size)]
        else:
            end = self.copy_loops(("%top", "%bottom"), ("%left", "%right"))
            value = self.masked_load(self.image_place(source))
            out.line(f"store {self.vector} {value}, ptr {self.place(size)}, align {self.lanes * self.align}")
            end()
            rows = [out.value(f"getelementptr {self.vector}, ptr %buffer, i64 {i * size}") for i in range(size)]
            steps = [j * self.lanes for j in range(size)]

        def store(i: int, j: int, value: str) -> None:
            address = self.element(target, out.times(i * size + j, "%position_stride"))
            out.line(f"store {self.vector} {value}, ptr {address}, align {self.align}")

        self.squared(lambda i, j: self.load(self.element(rows[i], steps[j])), store)


class _ResultText(_TransformText):
    """The transform of products, with bias, residual and relu."""

    arguments, extent = RESULT_ARGUMENTS, "filters"

    def prepare(self) -> None:
        out, size = self.out, self.sizes[0]
        out.lines.append(f"  %from = getelementptr {self.kind}, ptr %products, i64 %products_offset")
        for name in ("y", "residual") if self.transform.has_residual else ("y",):
            out.lines.append(f"  %{name}_tile = getelementptr {self.kind}, ptr %{name}, i64 %y_offset")
        if self.transform.biased:
            out.lines.append(f"  %bias_start = getelementptr {self.kind}, ptr %bias, i64 %first")
        if not self.transform.whole:
            out.lines.append(f"  %buffer = alloca [{size * size} x {self.vector}], align 64")

    def step(self) -> None:
        out, whole, (results, terms) = self.out, self.transform.whole, self.sizes
        source = self.element("%from", "%at")
        bias = ""
        if self.transform.biased:
            address = self.element("%bias_start", "%at")
            bias = self.load(address) if whole else self.masked_load(address)

        def store(i: int, j: int, value: str) -> None:
            value = out.value(f"fadd {self.vector} {value}, {bias}") if bias else value
            if whole:
                down, along = out.times(i, "%row_stride"), out.times(j, "%pixel_stride")
                self._finish(value, lambda base: self.element(self.element(self.element(base, "%at"), down), along))
            else:
                place = out.value(f"getelementptr {self.vector}, ptr %buffer, i64 {i * results + j}")
                out.line(f"store {self.vector} {value}, ptr {place}, align {self.lanes * self.align}")

        self.squared(lambda i, j: self.load(self.element(source, out.times(i * terms + j, "%position_stride"))), store)
        if not whole:
            end = self.copy_loops(("0", "%rows"), ("0", "%columns"))
            value = out.value(f"load {self.vector}, ptr {self.place(results)}, align {self.lanes * self.align}")
            self._finish(value, lambda base: self.image_place(self.element(base, "%at")))
            end()

    def _finish(self, value: str, place: Callable[[str], str]) -> None:
        """Append residual, relu and store of a result; `place` appends its address in an array."""
        out, whole = self.out, self.transform.whole
        if self.transform.has_residual:
            address = place("%residual_tile")
            value = out.value(
                f"fadd {self.vector} {value}, {self.load(address) if whole else self.masked_load(address)}"
            )
        if self.transform.relu:
            negative = out.value(f"fcmp olt {self.vector} {value}, zeroinitializer")
            value = out.value(
                f"select <{self.lanes} x i1> {negative}, {self.vector} zeroinitializer, {self.vector} {value}"
            )
        address = place("%y_tile")
        if whole:
            out.line(f"store {self.vector} {value}, ptr {address}, align {self.align}")
        else:
            out.line(
                f"call void @llvm.masked.store.{self.suffix}.p0({self.vector} {value}, ptr {address}, "
                f"i32 {self.align}, <{self.lanes} x i1> {self.mask})"
            )
