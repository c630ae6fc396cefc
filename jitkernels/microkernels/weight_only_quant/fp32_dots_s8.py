"""Dot products of floats and of 8-bit weights in groups, as LLVM IR text.

Sixteen weights are converted to floats at once. For one row, the sum of products of each group is multiplied by the
scale; for several rows, the weights are, before the products.
"""

from typing import NamedTuple

from jitkernels.microkernels.weight_only_quant.dot_emitter import FLOATS, LANES, MASK, WORDS, DotWriter

BYTES = f"<{LANES} x i8>"
WHOLE = 32
"""Weights per step; the remaining ones take steps of 16."""


class _Loop(NamedTuple):
    """The labels of a loop, of the block before and of that behind it; its range, and its first sums."""

    name: str
    label: str
    next_label: str
    begin: str
    end: str
    before: str


class _Weights(NamedTuple):
    """Where the weights of a group begin, and its zero points and scales by column."""

    at: str
    middles: list[str]
    scales: list[str]


class Int8Dots(DotWriter):
    """Groups of any size; `shift` is unused."""

    kind = "bytes"

    def _few(self) -> None:
        self._many()

    def _many(self) -> None:
        """Write the loop over groups, in each first whole steps, then shorter ones."""
        out = self.out
        out.line("%whole = and i64 %half, -32")
        self._begin("%groups")
        out.label("loop")
        out.line("%i = phi i64 [ 0, %entry ], [ %next, %last ]")
        self._carried("before", "entry", "", "last")
        at = out.value("mul nsw i64 %i, %half")
        factors, middles = [], []
        for c in self.columns:
            scale = out.value(f"load float, ptr {out.element('float', f'%scale{c}', '%i')}, align 4")
            factors.append(self._same("float", scale))
            if self.shifted:
                zero = out.value(f"load i8, ptr {out.element('i8', f'%zero{c}', '%i')}, align 1")
                middles.append(self._same("i32", out.value(f"sext i8 {zero} to i32")))
        self._fetch_of_groups("%i", 1)
        out.line("br label %steps")
        single = len(self.rows) == 1
        before = "" if single else "%before"
        scales = [] if single else factors
        weights = _Weights(at, middles, scales)
        self._loop(_Loop("steps", "loop", "rests", "0", "%whole", before), weights)
        self._loop(_Loop("rests", "steps", "last", "%whole", "%half", "%steps_sum"), weights)
        out.label("last")
        if single:
            self._add([[f"%rests_sum0_{c}" for c in self.columns]], factors, "before")
        else:
            for r in self.rows:
                for c in self.columns:
                    out.line(f"%total{r}_{c} = bitcast {FLOATS} %rests_sum{r}_{c} to {FLOATS}")
        self._end("%groups")

    def _loop(self, loop: _Loop, group: _Weights) -> None:
        """Write the loop over the products of weights begin..end of a group, some at a time."""
        name, label, next_label, begin, end, before = loop
        at, middles, scales = group
        out, step = self.out, WHOLE if name == "steps" else LANES
        out.label(name)
        out.line(f"%{name}_p = phi i64 [ {begin}, %{label} ], [ %{name}_next, %{name}_body ]")
        for r in self.rows:
            for c in self.columns:
                first = f"{before}{r}_{c}" if before else "zeroinitializer"
                new = f"%{name}_new{r}_{c}"
                out.line(f"%{name}_sum{r}_{c} = phi {FLOATS} [ {first}, %{label} ], [ {new}, %{name}_body ]")
        out.line(f"%{name}_more = icmp slt i64 %{name}_p, {end}")
        out.line(f"br i1 %{name}_more, label %{name}_body, label %{next_label}")
        out.label(f"{name}_body")
        offset = out.value(f"add nsw i64 {at}, %{name}_p")
        mask = "" if step == WHOLE else self._below(out.value(f"sub nsw i64 {end}, %{name}_p"))
        sums = {(r, c): f"%{name}_sum{r}_{c}" for r in self.rows for c in self.columns}
        if step == WHOLE:
            self._fetch(offset, WHOLE)
        for part in range(0, step, LANES):
            here_at = out.value(f"add nsw i64 {offset}, {part}")
            weights = [self._weights(c, here_at, mask, middles, scales) for c in self.columns]
            for r in self.rows:
                floats = self._floats(r, here_at, mask)
                for c in self.columns:
                    name_of = f"%{name}_new{r}_{c}" if part == step - LANES else f"%{name}_part{part}_{r}_{c}"
                    out.line(
                        f"{name_of} = call {FLOATS} @llvm.fmuladd.v16f32({FLOATS} {weights[c]}, {FLOATS} {floats}, "
                        f"{FLOATS} {sums[r, c]})"
                    )
                    sums[r, c] = name_of
        out.line(f"%{name}_next = add nuw nsw i64 %{name}_p, {step}")
        out.line(f"br label %{name}")

    def _weights(self, c: int, at: str, mask: str, middles: list[str], scales: list[str]) -> str:
        out, address = self.out, self.out.element("i8", f"%weights{c}", at)
        if mask:
            weights = out.value(
                f"call {BYTES} @llvm.masked.load.v16i8.p0(ptr {address}, i32 1, {MASK} {mask}, {BYTES} zeroinitializer)"
            )
        else:
            weights = out.value(f"load {BYTES}, ptr {address}, align 1")
        weights = out.value(f"sext {BYTES} {weights} to {WORDS}")
        if middles:  # integer addition: the units that add floats convert integers
            weights = out.value(f"sub {WORDS} {weights}, {middles[c]}")
        weights = out.value(f"sitofp {WORDS} {weights} to {FLOATS}")
        return out.value(f"fmul {FLOATS} {weights}, {scales[c]}") if scales else weights

    def _floats(self, r: int, at: str, mask: str) -> str:
        """Append a load of the floats of row r, 0 where masked."""
        out = self.out
        address = out.element("float", out.element("float", "%floats", out.times(r, "%bytes")), at)
        if not mask:
            return out.value(f"load {FLOATS}, ptr {address}, align 4")
        return out.value(
            f"call {FLOATS} @llvm.masked.load.v16f32.p0(ptr {address}, i32 4, {MASK} {mask}, {FLOATS} zeroinitializer)"
        )
