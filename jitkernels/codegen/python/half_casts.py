"""Casts between float32 and the formats of 16 bits where processors have no instruction.

LLVM would call a function of compiler-rt there, which no process need have.
"""

from collections.abc import Callable

from jitkernels.codegen.python import types
from jitkernels.core import cpu_target

FLOAT16, BFLOAT16, HALF, WORD = (types.NUMBERS[name] for name in ("float16", "bfloat16", "int16", "int32"))
ROUNDING_FEATURES = frozenset({"avx512bf16", "avxneconvert", "bf16"})
"""Features that have the instruction for bfloat16: two of x86, and one of aarch64."""
QUIET_BIT = 0x40
"""Of a bfloat16: a NaN whose payload lies in the lower half only would become infinity."""
FRACTION_SHIFT, REBIAS = 13, (127 - 15) << 23
"""Bits of the fraction that float32 has and float16 lacks; what the exponents differ by."""
LEAST_NORMAL, INFINITE = (127 - 14) << 23, (127 + 16) << 23
"""The bits of the float32 numbers that are the least normal float16, and the least power of 2 beyond float16."""
SUBNORMAL_MAGIC = (127 - 1) << 23
"""The bits of 0.5, whose last place is that of float16's subnormal numbers."""


def is_emulated(kind: types.Type) -> bool:
    """Whether casts between float32 and a type take several instructions here."""
    target = cpu_target.target()
    if kind is FLOAT16:
        return not target.is_arm and "f16c" not in target.features
    return kind is BFLOAT16 and not ROUNDING_FEATURES & target.features


class _Emitter:
    """Emits instructions on vectors of some lanes by `new`."""

    def __init__(self, new: Callable[[str], str], lanes: int) -> None:
        self.new, self.lanes = new, lanes
        self.single, self.whole, self.half, self.bit = (
            types.register(kind, lanes) for kind in (types.FLOAT32, WORD, HALF, types.BOOL)
        )

    def splat(self, number: int) -> str:
        return types.constant(WORD, number, self.lanes)

    def on_bits(self, instruction: str, left: str, right: str | int) -> str:
        """An instruction on words; comparisons give bits."""
        other = self.splat(right) if isinstance(right, int) else right
        return self.new(f"{instruction} {self.whole} {left}, {other}")

    def select(self, condition: str, left: str, right: str | int) -> str:
        other = self.splat(right) if isinstance(right, int) else right
        return self.new(f"select {self.bit} {condition}, {self.whole} {left}, {self.whole} {other}")

    def cast(self, value: str, source: str, target: str) -> str:
        return self.new(f"bitcast {source} {value} to {target}")

    def to_bfloat16(self, bits: str) -> str:
        """The bits of a bfloat16 in the lower half of words, from those of float32."""
        high = self.on_bits("lshr", bits, 16)
        bias = self.on_bits("add", self.on_bits("and", high, 1), 0x7FFF)
        near = self.on_bits("lshr", self.on_bits("add", bits, bias), 16)
        is_nan = self.on_bits("icmp ugt", self.on_bits("and", bits, 0x7FFFFFFF), 0x7F800000)
        return self.select(is_nan, self.on_bits("or", high, QUIET_BIT), near)

    def to_float16(self, bits: str) -> str:
        """The same of a float16: a sum rounds what becomes subnormal, a carry of the rounding what becomes infinite."""
        magnitude = self.on_bits("and", bits, 0x7FFFFFFF)
        sign = self.on_bits("and", self.on_bits("lshr", bits, 16), 0x8000)
        fraction = self.on_bits("lshr", magnitude, FRACTION_SHIFT)
        bias = self.on_bits("add", self.on_bits("and", fraction, 1), (1 << (FRACTION_SHIFT - 1)) - 1 - REBIAS)
        normal = self.on_bits("lshr", self.on_bits("add", magnitude, bias), FRACTION_SHIFT)
        is_small = self.on_bits("icmp ult", magnitude, LEAST_NORMAL)
        # What is not small is left out of the sum, where it might set flags.
        small = self.cast(self.select(is_small, magnitude, 0), self.whole, self.single)
        magic = self.cast(self.splat(SUBNORMAL_MAGIC), self.whole, self.single)
        shifted = self.cast(self.new(f"fadd {self.single} {small}, {magic}"), self.single, self.whole)
        subnormal = self.on_bits("sub", shifted, SUBNORMAL_MAGIC)
        finite = self.select(is_small, subnormal, normal)
        is_nan = self.on_bits("icmp ugt", magnitude, 0x7F800000)
        payload = self.on_bits("or", self.on_bits("and", fraction, 0x3FF), 0x7E00)
        beyond = self.new(f"select {self.bit} {is_nan}, {self.whole} {payload}, {self.whole} {self.splat(0x7C00)}")
        is_finite = self.on_bits("icmp ult", magnitude, INFINITE)
        return self.on_bits("or", self.select(is_finite, finite, beyond), sign)

    def of_float16(self, bits: str) -> str:
        """The bits of float32, from those of a float16 in the lower half of words; a difference scales subnormals."""
        sign = self.on_bits("shl", self.on_bits("and", bits, 0x8000), 16)
        magnitude = self.on_bits("shl", self.on_bits("and", bits, 0x7FFF), FRACTION_SHIFT)
        normal = self.on_bits("add", magnitude, REBIAS)
        is_beyond = self.on_bits("icmp uge", magnitude, 0x7C00 << FRACTION_SHIFT)
        large = self.select(is_beyond, self.on_bits("add", normal, REBIAS), normal)
        is_small = self.on_bits("icmp ult", magnitude, 1 << 23)
        raised = self.select(is_small, self.on_bits("add", magnitude, LEAST_NORMAL), LEAST_NORMAL)
        least = self.cast(self.splat(LEAST_NORMAL), self.whole, self.single)
        difference = self.new(f"fsub {self.single} {self.cast(raised, self.whole, self.single)}, {least}")
        small = self.cast(difference, self.single, self.whole)
        return self.on_bits("or", self.select(is_small, small, large), sign)


def emit_rounding(new: Callable[[str], str], value: str, kind: types.Type, lanes: int) -> str:
    """Emit instructions that round a float, or a vector of them, to the nearest number of `kind`, ties to even."""
    emitter = _Emitter(new, lanes)
    bits = emitter.cast(value, emitter.single, emitter.whole)
    rounded = emitter.to_float16(bits) if kind is FLOAT16 else emitter.to_bfloat16(bits)
    narrow = new(f"trunc {emitter.whole} {rounded} to {emitter.half}")
    return emitter.cast(narrow, emitter.half, types.register(kind, lanes))


def emit_widening(new: Callable[[str], str], value: str, kind: types.Type, lanes: int) -> str:
    """Emit instructions that extend a number of `kind` to float.

    Of bfloat16, LLVM would move ``floor`` and others before an ``fpext``.
    """
    emitter = _Emitter(new, lanes)
    narrow = emitter.cast(value, types.register(kind, lanes), emitter.half)
    bits = new(f"zext {emitter.half} {narrow} to {emitter.whole}")
    wide = emitter.of_float16(bits) if kind is FLOAT16 else emitter.on_bits("shl", bits, 16)
    return emitter.cast(wide, emitter.whole, emitter.single)
