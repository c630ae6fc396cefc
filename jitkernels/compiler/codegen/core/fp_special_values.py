"""Functions that compute vectors with special values out of line (see `fp_special_guards`)."""

import numpy as np

from jitkernels.codegen.python.types import NUMBERS, constant
from jitkernels.compiler.codegen.core.ir_builder import llvm_type
from jitkernels.runtime import fp_status

FLOATS = {"float32": "int32", "float64": "int64"}
"""The dtypes of guarded functions, and the integers of their bits."""
MAX_32, MAX_64 = float(np.finfo("float32").max), float(np.finfo("float64").max)
QUOTIENTS = frozenset({"floor_divide", "remainder", "fmod"})
"""Operations for which quotients beyond the dtype's range are special."""
USUAL = {"arccosh": 1.5}
"""A harmless argument that replaces special values while other lanes are computed, where it is not 0.5."""
LEAST: dict[str, dict[str, tuple[float, ...]]] = {
    "float32": {
        "arctanh": (1.0,), "logaddexp": (np.inf, np.inf), "logaddexp2": (np.inf, np.inf), "power": (MAX_32, 2.0**32),
        "arcsin": (2.0,), "arccos": (2.0,), "arcsinh": (2.0**63,), "arccosh": (2.0**63,), "tanh": (2.0**126,),
        **dict.fromkeys(("log", "log2", "log10", "log1p"), (2.0**104,)),
    },
    "float64": {
        "arctanh": (1.0,), "logaddexp": (np.inf, np.inf), "logaddexp2": (np.inf, np.inf), "power": (MAX_64, 2.0**64),
        "arcsin": (2.0,), "arccos": (2.0,), "arcsinh": (2.0**511,), "arccosh": (2.0**511,), "tanh": (2.0**1022,),
        **dict.fromkeys(("log", "log2", "log10", "log1p"), (2.0**970,)),
        **dict.fromkeys(("sin", "cos", "tan"), (2.0**990,)),  # whose halves overflow where products are not fused
    },
}  # fmt: skip
"""The magnitudes from which on arguments are special, if not the largest number: intermediate results overflow, though
the result does not.
"""
ZEROS = {"power": "%a", "floor_divide": "%b"}
"""Arguments whose zeros are poles."""
READ_FLAGS = "@guarded_flags_now"
WRITTEN = "@guarded_flags_become"


class GuardEmitter:
    """Emits the functions. Arguments are %a and, if there are two, %b; in memory, they are at %a.at and %b.at."""

    def __init__(self, operation: str, symbol: str, result: str, kinds: tuple[str, ...], lanes: int) -> None:
        self.operation, self.lanes = operation, lanes
        self.names = ("%a", "%b")[: len(kinds)]
        self.kind, self.dtype = llvm_type(kinds[0], lanes), kinds[0]
        self.bits = llvm_type(FLOATS[kinds[0]], lanes)
        self.mask, self.result = llvm_type("bool", lanes), llvm_type(result, lanes)
        self.is_float = result in FLOATS
        self.stored = self.result if self.is_float else llvm_type("uint8", lanes)
        self.call = f"call {self.result} {symbol}({self.passed})"

    @property
    def passed(self) -> str:
        return ", ".join(f"{self.kind} {name}" for name in self.names)

    @property
    def pointers(self) -> str:
        return ", ".join(f"ptr {name}.at" for name in self.names)

    @property
    def harmless(self) -> float:
        """The harmless argument that replaces values computed elsewhere."""
        return USUAL.get(self.operation, 0.5)

    def number(self, value: float) -> str:
        return constant(NUMBERS[self.dtype], value, self.lanes)

    def bits_of(self, value: float) -> str:
        whole = np.array(value, self.dtype).view(FLOATS[self.dtype]).item()
        return constant(NUMBERS[FLOATS[self.dtype]], whole, self.lanes)

    def any_of(self, name: str, mask: str) -> list[str]:
        """Reduce a mask: set `name` to whether any lane is on."""
        if self.lanes == 1:
            return [f"  {name} = or i1 {mask}, false"]
        word = f"i{self.lanes}"
        return [f"  {name}.word = bitcast {self.mask} {mask} to {word}", f"  {name} = icmp ne {word} {name}.word, 0"]

    def magnitude(self, name: str) -> list[str]:
        """The bits of a number and those of its magnitude, which order as integers; NaN is the largest."""
        least = self.bits_of(-0.0)
        return [
            f"  {name}.bits = bitcast {self.kind} {name} to {self.bits}",
            f"  {name}.sign = and {self.bits} {name}.bits, {least}",
            f"  {name}.size = xor {self.bits} {name}.bits, {name}.sign",
        ]

    def special_mask(self) -> list[str]:
        """%odd: the mask of the lanes with special values."""
        largest = float(np.finfo(self.dtype).max)
        limits = LEAST[self.dtype].get(self.operation, (largest, largest))
        lines, masks = [], []
        for name, limit in zip(self.names, limits, strict=False):
            least = self.bits_of(limit)
            lines += [*self.magnitude(name), f"  {name}.odd = icmp uge {self.bits} {name}.size, {least}"]
            masks.append(f"{name}.odd")
        if self.operation == "power":
            lines.append(f"  %a.low = icmp sle {self.bits} %a.bits, {self.bits_of(0.0)}")
            masks.append("%a.low")
        if self.operation in QUOTIENTS:
            info = np.finfo(self.dtype)
            distance = info.maxexp - info.nmant - 3  # or less, of subnormal numbers
            far = constant(NUMBERS[FLOATS[self.dtype]], distance << info.nmant, self.lanes)
            lines += [
                f"  %b.none = icmp eq {self.bits} %b.size, {self.bits_of(0.0)}",
                f"  %apart = sub {self.bits} %a.size, %b.size",
                f"  %far = icmp sgt {self.bits} %apart, {far}",
            ]
            masks += ["%b.none", "%far"]
        before = masks[0]
        for number, mask in enumerate(masks[1:]):
            lines.append(f"  %odd{number} = or {self.mask} {before}, {mask}")
            before = f"%odd{number}"
        return [*lines, f"  %odd = or {self.mask} {before}, {constant(NUMBERS['bool'], 0, self.lanes)}"]

    def guarded(self, special: str, outlined_lanes: int) -> str:
        """Return the guarded function: all lanes inline, unless there are special values, for which it calls `special`.

        `outlined_lanes`: the lanes of the out-of-line function.
        """
        slots = [f"{name}.at" for name in (*self.names, "%r")]
        kinds = [*(self.dtype for _ in self.names), self.dtype if self.is_float else "uint8"]
        count = max(self.lanes, outlined_lanes)
        stores = []
        for name in self.names:
            if self.lanes < outlined_lanes:
                harmless = constant(NUMBERS[self.dtype], self.harmless, outlined_lanes)
                stores.append(f"  store {llvm_type(self.dtype, outlined_lanes)} {harmless}, ptr {name}.at")
            stores.append(f"  store {self.kind} {name}, ptr {name}.at")
        return "\n".join(
            [
                f"define private {self.result} @NAME({self.passed}) alwaysinline nounwind {{",
                *(f"  {slot} = alloca {llvm_type(kind, count)}" for slot, kind in zip(slots, kinds, strict=True)),
                *self.special_mask(),
                *self.any_of("%some", "%odd"),
                "  br i1 %some, label %special, label %usual, !prof !4",
                "usual:",
                f"  %value = {self.call}",
                f"  ret {self.result} %value",
                "special:",
                *stores,
                f"  call void {special}(i64 {count}, ptr %r.at, {self.pointers})",
                *self.loaded("%r", "%r.at"),
                f"  ret {self.result} %r",
                "}",
            ]
        )

    def loaded(self, name: str, slot: str) -> list[str]:
        """Load a result from memory, where bools are bytes."""
        if self.is_float:
            return [f"  {name} = load {self.result}, ptr {slot}"]
        return [
            f"  {name}.byte = load {self.stored}, ptr {slot}",
            f"  {name} = trunc {self.stored} {name}.byte to {self.result}",
        ]

    def stores(self, name: str, slot: str) -> list[str]:
        """Store a result to memory."""
        if self.is_float:
            return [f"  store {self.result} {name}, ptr {slot}"]
        return [
            f"  {name}.byte = zext {self.result} {name} to {self.stored}",
            f"  store {self.stored} {name}.byte, ptr {slot}",
        ]

    def outlined(self) -> str:
        """Return a function of all lanes that is not inlined, so that nothing moves across its flags."""
        return "\n".join(
            [
                f"define private void @NAME(ptr %r.at, {self.pointers}) noinline nounwind {{",
                *(f"  {name} = load {self.kind}, ptr {name}.at" for name in self.names),
                f"  %r = {self.call}",
                *self.stores("%r", "%r.at"),
                "  ret void",
                "}",
            ]
        )

    def special_lanes(self, outlined: str) -> str:
        """Return the out-of-line function of (lanes, result, arguments), which computes special lanes separately."""
        steps = []
        for half, order in ("fine", "{other}, {own}"), ("special", "{own}, {other}"):
            for name in self.names:
                values = order.format(own=f"{self.kind} {name}", other=f"{self.kind} {self.number(self.harmless)}")
                steps += [
                    f"  {name}.{half} = select {self.mask} %odd, {values}",
                    f"  store {self.kind} {name}.{half}, ptr {name}.new",
                ]
            argument_slots = ", ".join(f"ptr {name}.new" for name in self.names)
            steps += [f"  %before = call i32 {READ_FLAGS}()"] if half == "special" else []
            steps += [f"  call void {outlined}(ptr %r.new, {argument_slots})", *self.loaded(f"%r.{half}", "%r.new")]
        pointers = [
            f"  {name}.now = getelementptr {NUMBERS[kind].memory}, ptr {name}.at, i64 %i"
            for name, kind in (
                *((name, self.dtype) for name in self.names),
                ("%r", self.dtype if self.is_float else "uint8"),
            )
        ]
        return "\n".join(
            [
                f"define private void @NAME(i64 %lanes, ptr %r.at, {self.pointers}) noinline nounwind {{",
                f"  %r.new = alloca {self.stored}",
                *(f"  {name}.new = alloca {self.kind}" for name in self.names),
                "  br label %step",
                "step:",
                "  %i = phi i64 [ 0, %0 ], [ %next, %step ]",
                *pointers,
                *(f"  {name} = load {self.kind}, ptr {name}.now" for name in self.names),
                *self.special_mask(),
                *steps,
                f"  %r = select {self.mask} %odd, {self.result} %r.special, {self.result} %r.fine",
                *self.stores("%r", "%r.now"),
                *(self.result_flags() if self.is_float else [f"  call void {WRITTEN}(i32 %before)"]),
                f"  %next = add i64 %i, {self.lanes}",
                "  %more = icmp slt i64 %next, %lanes",
                "  br i1 %more, label %step, label %done",
                "done:",
                "  ret void",
                "}",
            ]
        )

    def result_flags(self) -> list[str]:
        """Set the flags that follow from the results, in addition to those that were set before."""
        infinity, lines = self.bits_of(np.inf), []
        mask, bits = self.mask, self.bits
        lines += [line.replace("%r.special.", "%s.") for line in self.magnitude("%r.special")]
        lines.append(f"  %s.nan = icmp ugt {bits} %s.size, {infinity}")
        lines.append(f"  %s.infinite = icmp eq {bits} %s.size, {infinity}")
        known, finite = constant(NUMBERS["bool"], 1, self.lanes), constant(NUMBERS["bool"], 1, self.lanes)
        for number, name in enumerate(self.names):
            lines += [
                f"  {name}.known = icmp ule {bits} {name}.size, {infinity}",
                f"  {name}.finite = icmp ult {bits} {name}.size, {infinity}",
                f"  %known{number} = and {mask} {known}, {name}.known",
                f"  %finite{number} = and {mask} {finite}, {name}.finite",
            ]
            known, finite = f"%known{number}", f"%finite{number}"
        pole, over, invalid = constant(NUMBERS["bool"], 0, self.lanes), "%over.all", "%invalid.all"
        if self.operation.startswith("logaddexp"):
            known = constant(NUMBERS["bool"], 1, self.lanes)  # NumPy compares its arguments, which sets invalid for NaN
        lines.append(f"  %invalid.all = and {mask} %s.nan, {known}")
        lines.append(f"  %over.all = and {mask} %s.infinite, {finite}")
        if self.operation == "arctanh":
            pole, over = over, pole
        elif self.operation in ZEROS:
            lines += [
                f"  %zero = icmp eq {bits} {ZEROS[self.operation]}.size, {self.bits_of(0.0)}",
                f"  %other = xor {mask} %zero, {constant(NUMBERS['bool'], 1, self.lanes)}",
                f"  %pole.all = and {mask} %s.infinite, %zero",
                f"  %pole = and {mask} %pole.all, {finite}",
                f"  %over = and {mask} %over.all, %other",
            ]
            pole, over = "%pole", "%over"
        if self.operation == "floor_divide":  # NumPy subtracts an infinite quotient from itself
            lines.append(f"  %invalid = or {mask} %invalid.all, {over}")
            invalid = "%invalid"
        word = "%before"
        for kind, mask in ("invalid", invalid), ("divide", pole), ("over", over):
            lines += self.any_of(f"%is.{kind}", mask)
            lines += [
                f"  %flag.{kind} = select i1 %is.{kind}, i32 {fp_status.bits()[kind]}, i32 0",
                f"  %word.{kind} = or i32 {word}, %flag.{kind}",
            ]
            word = f"%word.{kind}"
        return [*lines, f"  call void {WRITTEN}(i32 {word})"]
