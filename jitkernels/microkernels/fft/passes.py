"""Passes of a Fourier transform over arrays, as LLVM IR: each applies one radix to all data.

A transform of ``n = r * ido * l1`` numbers, of which `l1` is the product of the radices before, reads ``x[i, j, p]``
and writes ``y[i, p, k]``, as FFTPACK does (Swarztrauber, 1982), so that results are in order without a permutation:
``y[i, p, k] = w**(i * k) * sum over j of x[i, j, p] * exp(-2 pi i j k / r)`` with the first index the fastest and
``w = exp(-2 pi i / (r * ido))``. Real and imaginary parts lie in planes of their own.

* `along`: vectors hold neighbouring i. The last vector overlaps the one before it, which computes some numbers twice.
* `last`: ``ido`` is 1, and vectors hold neighbouring p: they are transposed in registers.
* `beside`: vectors hold one number each of as many transforms, which lie interleaved: nothing is transposed.
"""

from collections.abc import Callable, Sequence

from jitkernels.codegen.source_protocol import IRFunction, written_by
from jitkernels.core import dtypes
from jitkernels.microkernels.fft.butterfly import Butterflies, Complex
from jitkernels.microkernels.gemm.microkernel import Text

PASS_RADICES = (8, 4, 2, 3, 9, 5, 7, 11, 13)
MIN_OUTLINED_RADIX = 11
"""The least prime whose butterfly is a function of its own where it runs rarely: LLVM takes long for five copies of its
code than for all other radices.
"""


class PassText:
    """The writer of one pass."""

    def __init__(self, dtype: str, lanes: int, radix: int) -> None:
        self.dtype, self.lanes, self.radix = dtype, lanes, radix
        self.kind, self.size = dtypes.named(dtype).llvm, dtypes.named(dtype).size
        self.vector = f"<{lanes} x {self.kind}>"
        self.out = Text()
        self.math = Butterflies(self.out, self.vector, dtype)

    def function(self, way: str) -> str:
        """The function of ``xr, xi, yr, yi, w, ido, l1``; a `last` and a `beside` pass alike, the latter of `lanes`."""
        write: Callable[[], None] = {"along": self._along, "last": self._last, "beside": self._beside}[way]
        write()
        body = "\n".join(self.out.lines)
        if self.is_outlined:
            space = f"  %numbers = alloca [{2 * self.radix} x {self.vector}], align 64"
            body = body.replace("entry:", f"entry:\n{space}", 1)
        pointers = ", ".join(f"ptr noalias %{name}" for name in ("xr", "xi", "yr", "yi", "w"))
        symbol = pass_symbol(way, self.radix, self.dtype)
        head = f"define void @{symbol}({pointers}, i64 %ido, i64 %l1) alwaysinline nounwind {{"
        return f"{head}\n{body}\n}}\n{self._declared()}{self._outlined() if self.is_outlined else ''}"

    @property
    def is_outlined(self) -> bool:
        """Whether the butterfly is a function of its own."""
        return self.radix >= MIN_OUTLINED_RADIX and self.radix % 2 == 1

    @property
    def _butterfly(self) -> str:
        return f"fft_butterfly_{self.radix}_{self.dtype}"

    def _outlined(self) -> str:
        """The butterfly as a function of the address of its numbers, which passes of all ways share."""
        inner = PassText(self.dtype, self.lanes, self.radix)
        inner.out.label("entry")
        y = inner.math.transform(inner.loaded_numbers())
        inner.store_numbers(y)
        inner.out.line("ret void")
        body = "\n".join(inner.out.lines)
        return f"define linkonce_odr void @{self._butterfly}(ptr noalias %numbers) noinline nounwind {{\n{body}\n}}\n"

    def transformed(self, x: Sequence[Complex], *, is_rare: bool = False) -> list[Complex]:
        """The forward transform of the radix, in natural order; `is_rare`: where code that is short matters most."""
        if not (self.is_outlined and is_rare):
            return self.math.transform(x)
        self.store_numbers(x)
        self.out.line(f"call void @{self._butterfly}(ptr %numbers)")
        return self.loaded_numbers()

    def loaded_numbers(self) -> list[Complex]:
        """The numbers of a butterfly in memory: all real parts, then all imaginary ones."""
        parts = [
            self.out.value(f"load {self.vector}, ptr {at}, align {self.lanes * self.size}") for at in self._numbers()
        ]
        return [Complex(*both) for both in zip(parts[: self.radix], parts[self.radix :], strict=True)]

    def store_numbers(self, numbers: Sequence[Complex]) -> None:
        """Write the numbers of a butterfly to memory."""
        parts = [number.re for number in numbers] + [number.im for number in numbers]
        for at, part in zip(self._numbers(), parts, strict=True):
            self.out.line(f"store {self.vector} {part}, ptr {at}, align {self.lanes * self.size}")

    def _numbers(self) -> list[str]:
        return [self.out.element(self.vector, "%numbers", str(number)) for number in range(2 * self.radix)]

    def _declared(self) -> str:
        suffix = f"v{self.lanes}{self.kind_suffix}"
        mask = f"<{self.lanes} x i1>"
        return (
            f"declare {self.vector} @llvm.masked.load.{suffix}.p0(ptr, i32, {mask}, {self.vector})\n"
            f"declare void @llvm.masked.store.{suffix}.p0({self.vector}, ptr, i32, {mask})\n"
        )

    @property
    def kind_suffix(self) -> str:
        return f"f{8 * self.size}"

    def load(self, base: str, index: str, mask: str = "") -> str:
        """A vector at an index."""
        at = self.out.element(self.kind, base, index)
        if not mask:
            return self.out.value(f"load {self.vector}, ptr {at}, align {self.size}")
        return self.out.value(
            f"call {self.vector} @llvm.masked.load.v{self.lanes}{self.kind_suffix}.p0(ptr {at}, i32 {self.size}, "
            f"<{self.lanes} x i1> {mask}, {self.vector} zeroinitializer)"
        )

    def store(self, value: str, base: str, index: str, mask: str = "") -> None:
        at = self.out.element(self.kind, base, index)
        if not mask:
            self.out.line(f"store {self.vector} {value}, ptr {at}, align {self.size}")
            return
        self.out.line(
            f"call void @llvm.masked.store.v{self.lanes}{self.kind_suffix}.p0({self.vector} {value}, ptr {at}, "
            f"i32 {self.size}, <{self.lanes} x i1> {mask})"
        )

    def loop(self, name: str, count: str, before: str, after: str, body: Callable[[str], None], step: int = 1) -> None:
        """Blocks `name` to `name`.end: a body for 0 to count, at least once. The block `before` enters it."""
        out = self.out
        out.label(name)
        out.line(f"%{name}.i = phi i64 [ 0, %{before} ], [ %{name}.next, %{name}.end ]")
        body(f"%{name}.i")
        out.line(f"br label %{name}.end")
        out.label(f"{name}.end")
        out.line(f"%{name}.next = add i64 %{name}.i, {step}")
        more = out.value(f"icmp slt i64 %{name}.next, {count}")
        out.line(f"br i1 {more}, label %{name}, label %{after}")

    def overlapping(self, name: str, count: str, before: str, after: str, body: Callable[[str], None]) -> None:
        """The same in steps of vectors, for counts of at least one vector; the last one ends at `count`."""
        out = self.out
        out.label(name)
        out.line(f"%{name}.i = phi i64 [ 0, %{before} ], [ %{name}.next, %{name}.end ]")
        body(f"%{name}.i")
        out.line(f"br label %{name}.end")
        out.label(f"{name}.end")
        final = out.value(f"sub i64 {count}, {self.lanes}")
        following = out.value(f"add i64 %{name}.i, {self.lanes}")
        out.line(f"%{name}.next = call i64 @llvm.smin.i64(i64 {following}, i64 {final})")
        more = out.value(f"icmp slt i64 %{name}.i, {final}")
        out.line(f"br i1 {more}, label %{name}, label %{after}")

    def multiple(self, factor: int, of: str) -> str:
        return self.out.value(f"mul i64 {of}, {factor}")

    def sum(self, a: str, b: str | int) -> str:
        return a if b == 0 else self.out.value(f"add i64 {a}, {b}")

    def first_lanes(self, count: str) -> str:
        """The mask of the first `count` lanes."""
        return self.out.lanes_below(count, self.lanes)

    def _along(self) -> None:
        out = self.out
        out.label("entry")
        out.line(f"%block = mul i64 %ido, {self.radix}")
        out.line("%stride = mul i64 %ido, %l1")
        out.line(f"%roots = mul i64 %ido, {self.radix - 1}")
        out.line("%wi = getelementptr " + f"{self.kind}, ptr %w, i64 %roots")
        mask = self.first_lanes("%ido")
        out.line(f"%wide = icmp sge i64 %ido, {self.lanes}")
        out.line("br i1 %wide, label %row, label %narrow")

        def of_row(p: str) -> None:
            source, target = (out.value(f"mul i64 {p}, {size}") for size in ("%block", "%ido"))
            out.line("br label %vec")
            self.overlapping("vec", "%ido", "row", "row.left", lambda i: self._of_vector(source, target, i, ""))
            out.label("row.left")

        def of_narrow(p: str) -> None:
            source, target = (out.value(f"mul i64 {p}, {size}") for size in ("%block", "%ido"))
            self._of_vector(source, target, "0", mask)

        self.loop("row", "%l1", "entry", "done", of_row)
        self.loop("narrow", "%l1", "entry", "done", of_narrow)
        out.label("done")
        out.line("ret void")

    def _of_vector(self, source: str, target: str, i: str, mask: str) -> None:
        x = self._inputs(self.sum(source, i), "%ido", mask)
        y = self.transformed(x, is_rare=bool(mask))
        at, root = self.sum(target, i), i
        for k, value in enumerate(y):
            if k:
                value = self.math.times(value, Complex(self.load("%w", root, mask), self.load("%wi", root, mask)))
                root = self.sum(root, "%ido")
            self._store_both(value, at, mask)
            at = self.sum(at, "%stride")

    def _inputs(self, first: str, step: str, mask: str = "") -> list[Complex]:
        at, result = first, []
        for _ in range(self.radix):
            result.append(Complex(self.load("%xr", at, mask), self.load("%xi", at, mask)))
            at = self.sum(at, step)
        return result

    def _store_both(self, value: Complex, at: str, mask: str = "") -> None:
        self.store(value.re, "%yr", at, mask)
        self.store(value.im, "%yi", at, mask)

    def _last(self) -> None:
        out, lanes = self.out, self.lanes
        out.label("entry")
        total = self.multiple(self.radix, "%l1")
        masks = [self.first_lanes(self.sum(total, -t * lanes)) for t in range(self.radix)]
        mask = self.first_lanes("%l1")
        out.line(f"%wide = icmp sge i64 %l1, {lanes}")
        out.line("br i1 %wide, label %vec, label %narrow")

        def write(p: str, whole: Sequence[str], live: str) -> None:
            first = self.multiple(self.radix, p)
            parts = []
            for base in ("%xr", "%xi"):
                rows = [self.load(base, self.sum(first, t * lanes), m) for t, m in enumerate(whole)]
                parts.append(self.unzipped(rows))
            at = p
            for value in self.transformed([Complex(*both) for both in zip(*parts, strict=True)], is_rare=bool(live)):
                self._store_both(value, at, live)
                at = self.sum(at, "%l1")

        self.overlapping("vec", "%l1", "entry", "done", lambda p: write(p, [""] * self.radix, ""))
        out.label("narrow")
        write("0", masks, mask)
        out.line("br label %done")
        out.label("done")
        out.line("ret void")

    def unzipped(self, rows: Sequence[str]) -> list[str]:
        """Of the concatenation of vectors, the vectors of every r-th element, r their number."""
        r = len(rows)
        if r & (r - 1) == 0:
            if r == 1:
                return list(rows)
            halves = [
                self.unzipped(
                    [
                        self.shuffled(rows[t], rows[t + 1], [2 * lane + odd for lane in range(self.lanes)])
                        for t in range(0, r, 2)
                    ]
                )
                for odd in range(2)
            ]
            return [one for pair in zip(*halves, strict=True) for one in pair]
        return [self._every(rows, j) for j in range(r)]

    def _every(self, rows: Sequence[str], j: int) -> str:
        """Every r-th element from j, gathered from one vector after another."""
        lanes, r = self.lanes, len(rows)
        where = [divmod(lane * r + j, lanes) for lane in range(lanes)]
        value = "poison"
        for t, row in enumerate(rows):
            picks = [lanes + place if t == source else lane for lane, (source, place) in enumerate(where)]
            if any(pick >= lanes for pick in picks):
                value = self.shuffled(value, row, picks)
        return value

    def shuffled(self, a: str, b: str, picks: Sequence[int]) -> str:
        mask = ", ".join(f"i32 {pick}" for pick in picks)
        return self.out.value(f"shufflevector {self.vector} {a}, {self.vector} {b}, <{self.lanes} x i32> <{mask}>")

    def broadcast(self, number: str) -> str:
        """A vector of one number."""
        one = self.out.value(f"insertelement {self.vector} poison, {self.kind} {number}, i64 0")
        return self.out.value(
            f"shufflevector {self.vector} {one}, {self.vector} poison, <{self.lanes} x i32> zeroinitializer"
        )

    def load_pairs(self, base: str, at: str, *, reverse: bool = False) -> Complex:
        """A vector of complex numbers whose parts alternate in memory."""
        low, high = self.load(base, at), self.load(base, self.sum(at, self.lanes))
        order = range(self.lanes - 1, -1, -1) if reverse else range(self.lanes)
        re, im = (self.shuffled(low, high, [2 * lane + part for lane in order]) for part in range(2))
        return Complex(re, im)

    def store_pairs(self, value: Complex, at: str, *, reverse: bool = False) -> None:
        """Store such a vector to `%y`."""
        lanes = self.lanes
        for half in range(2):
            numbers = range(half * lanes // 2, half * lanes // 2 + lanes // 2)
            picks = [
                pick for k in numbers for lane in [lanes - 1 - k if reverse else k] for pick in (lane, lane + lanes)
            ]
            self.store(self.shuffled(value.re, value.im, picks), "%y", self.sum(at, half * lanes))

    def _beside(self) -> None:
        out = self.out
        out.label("entry")
        out.line(f"%across = mul i64 %ido, {self.lanes}")
        out.line(f"%block = mul i64 %across, {self.radix}")
        out.line("%stride = mul i64 %across, %l1")
        out.line(f"%roots = mul i64 %ido, {self.radix - 1}")
        out.line("%wi = getelementptr " + f"{self.kind}, ptr %w, i64 %roots")
        out.line("%fewer = add i64 %ido, -1")
        out.line("%has_roots = icmp sgt i64 %ido, 1")
        out.line("br label %row")

        def of_row(p: str) -> None:
            source, target = (out.value(f"mul i64 {p}, {size}") for size in ("%block", "%across"))
            self._of_number(source, target, "")
            out.line("br i1 %has_roots, label %vec, label %row.left")

            def of_number(i: str) -> None:
                number = self.sum(i, 1)
                along = self.multiple(self.lanes, number)
                self._of_number(self.sum(source, along), self.sum(target, along), number)

            self.loop("vec", "%fewer", "row", "row.left", of_number)
            out.label("row.left")

        self.loop("row", "%l1", "entry", "done", of_row)
        out.label("done")
        out.line("ret void")

    def _of_number(self, source: str, target: str, root: str) -> None:
        y = self.transformed(self._inputs(source, "%across"), is_rare=not root)
        at = target
        for k, value in enumerate(y):
            if k and root:
                value = self.math.times(value, Complex(self._broadcast("%w", root), self._broadcast("%wi", root)))
                root = self.sum(root, "%ido")
            self._store_both(value, at)
            at = self.sum(at, "%stride")

    def _broadcast(self, base: str, index: str) -> str:
        at = self.out.element(self.kind, base, index)
        return self.broadcast(self.out.value(f"load {self.kind}, ptr {at}, align {self.size}"))


def pass_symbol(way: str, radix: int, dtype: str) -> str:
    return f"fft_{way}_{radix}_{dtype}"


def pass_text(way: str, radix: int, dtype: str, lanes: int) -> str:
    """LLVM IR of the pass of a radix."""
    return PassText(dtype, lanes, radix).function(way)


def fft_pass(way: str, radix: int, dtype: str, lanes: int) -> IRFunction:
    """The pass of a radix, whose text is generated when it is built: most processes use few passes."""
    element = f"{dtypes.named(dtype).c}*"
    arguments = (*[element] * 5, "int64", "int64")
    return IRFunction(
        pass_symbol(way, radix, dtype), "void", arguments, written_by(pass_text, way, radix, dtype, lanes)
    )
