"""The types of the kernel language: numbers, pointers to them, tuples, and literals that take any type."""

import itertools
import math
import struct
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import MAX_BITS
from jitkernels.core import dtypes
from jitkernels.core.frozen_dataclass import frozen_dataclass


@frozen_dataclass
class Type:
    """What a value is. `kind` is int, float, bool, pointer, tuple, literal or nothing.

    `llvm` is what registers hold, `memory` what arrays hold; they differ for bool alone. A pointer to ``void`` has
    no element. A tuple with `fields` is a struct: it may be a variable, and an argument.
    """

    name: str
    kind: str
    llvm: str = ""
    memory: str = ""
    size: int = 0
    is_signed: bool = True
    element: "Type | None" = None
    parts: tuple["Type", ...] = ()
    fields: tuple[str, ...] = ()

    @property
    def is_number(self) -> bool:
        return self.kind in ("int", "float", "bool", "literal")


@frozen_dataclass
class Value:
    """An operand: its type and LLVM's text for it, the Python number of a literal, or the values of a tuple."""

    type: Type
    text: str = ""
    number: Any = None
    parts: tuple["Value", ...] = ()


def _number(dtype: dtypes.DType) -> Type:
    kind = "bool" if dtype.name == "bool" else "float" if dtype.is_float else "int"
    register = "i1" if kind == "bool" else dtype.llvm
    return Type(dtype.name, kind, register, dtype.llvm, dtype.size, not dtype.name.startswith("uint"))


NUMBERS = {name: _number(dtype) for name, dtype in dtypes.TABLE.items()}
INT64, FLOAT32, FLOAT64, BOOL = (NUMBERS[name] for name in ("int64", "float32", "float64", "bool"))
OF_NUMPY: dict[type, Type] = {np.dtype(name).type: kind for name, kind in NUMBERS.items() if name != "bfloat16"}
"""The types of NumPy's numbers."""
NUMBERS |= {
    "complex64": Type("complex64", "complex", "<2 x float>", "<2 x float>", 8),
    "complex128": Type("complex128", "complex", "<2 x double>", "<2 x double>", 16),
}  # fused loops move them; the kernel language has no complex numbers
LITERAL = Type("literal", "literal")
NOTHING = Type("nothing", "nothing", "void")
NONE = Type("None", "pointer", "ptr", "ptr", 8)
"""The type of arrays that a kernel may have and does not."""


def tuple_of(parts: tuple[Type, ...], name: str = "", fields: tuple[str, ...] = ()) -> Type:
    """The type of several values that a function returns; with a name and fields, of a struct."""
    llvm = "{ " + ", ".join(leaf.llvm for part in parts for leaf in leaf_types(part)) + " }"
    return Type(f"{name}({', '.join(part.name for part in parts)})", "tuple", llvm, parts=parts, fields=fields)


def leaf_types(kind: Type) -> tuple[Type, ...]:
    """The types of the single values that a value consists of."""
    return tuple(leaf for part in kind.parts for leaf in leaf_types(part)) if kind.parts else (kind,)


def leaves(value: Value) -> tuple[Value, ...]:
    """The single values that a value consists of."""
    return tuple(leaf for part in value.parts for leaf in leaves(part)) if value.parts else (value,)


def assembled(kind: Type, texts: Iterator[str]) -> Value:
    """The value of a type whose leaves have these texts."""
    if not kind.parts:
        return Value(kind, next(texts))
    return Value(kind, parts=tuple(assembled(part, texts) for part in kind.parts))


def numbered(kinds: Iterable[Type]) -> tuple[Value, ...]:
    """The parameters of a function of these types: leaf i is ``%a<i>``."""
    texts = (f"%a{i}" for i in itertools.count())
    return tuple(assembled(kind, texts) for kind in kinds)


def register(kind: Type, lanes: int) -> str:
    """The LLVM type of a register of one number, or of lanes."""
    if lanes == 1 or kind is NOTHING:
        return kind.llvm
    if kind.parts:
        return "{ " + ", ".join(register(part, lanes) for part in kind.parts) + " }"
    return f"<{lanes} x {kind.llvm}>"


def pointer_to(element: Type | None) -> Type:
    """The type of pointers to elements; of untyped ones for None."""
    return Type(f"{element.name if element else 'void'}*", "pointer", "ptr", "ptr", 8, element=element)


def of_c(text: str) -> Type:
    """The type of a C argument or result, as written in `jitkernels.core.dtypes`."""
    kind = dtypes.c_type(text)
    element = NUMBERS[kind.element.name] if kind.element else None
    if kind.is_pointer:
        return pointer_to(element)
    return element or NOTHING


def literal(number: Any) -> Value:
    """A literal or constant, whose type is determined by its use."""
    return Value(LITERAL, number=number)


def holds(kind: Type, number: Any, *, written: bool) -> bool:
    """Return whether a type can represent a literal: in range; integral for integers unless the cast is `written`."""
    if kind.kind == "float":
        return isinstance(number, float) or number.bit_length() <= MAX_BITS - 1
    if kind.kind == "bool":
        return written or number in (0, 1)
    if kind.kind != "int" or not (math.isfinite(number) and (written or not isinstance(number, float))):
        return False
    bits = 8 * kind.size - kind.is_signed
    return (-(1 << bits) if kind.is_signed else 0) <= int(number) < 1 << bits


def constant(kind: Type, number: Any, lanes: int = 1) -> str:
    """LLVM's text for a number of a type, in all lanes: floats as the bits they are rounded to, integers wrapped.

    There is one NaN, whatever its sign was.
    """
    if lanes > 1:
        return f"splat ({kind.llvm} {constant(kind, number)})"
    if kind.kind == "bool":
        return "true" if number else "false"
    if kind.kind == "int":
        bits = 8 * kind.size
        wrapped = int(number) & ((1 << bits) - 1)
        return str(wrapped - (1 << bits) if wrapped >> (bits - 1) else wrapped)
    if kind.kind == "complex":
        part, value = (FLOAT32 if kind.size == 8 else FLOAT64), complex(number)
        return f"<{part.llvm} {constant(part, value.real)}, {part.llvm} {constant(part, value.imag)}>"
    value = math.nan if number != number else float(number)
    match kind.llvm:
        case "half":
            with np.errstate(over="ignore"):
                return f"0xH{np.float16(value).view(np.uint16):04X}"
        case "bfloat":
            return f"0xR{_bfloat16(value):04X}"
        case "float":
            with np.errstate(over="ignore"):
                value = float(np.float32(value))
    return f"0x{struct.pack('>d', value).hex().upper()}"


def one_of(kind: Type, text: str) -> str:
    """The number that a constant is in all lanes; what is no constant stays as it is."""
    return text.removeprefix(f"splat ({kind.llvm} ").removesuffix(")")


def _bfloat16(value: float) -> int:
    """The bits of the nearest bfloat16, ties to even."""
    with np.errstate(over="ignore"):
        single = np.float32(value)
    bits, near = int(single.view(np.uint32)), float(single)
    if value != value:
        return bits >> 16 | 0x40
    if near != value:  # towards zero and made odd, so that rounding again is rounding once
        bits = bits - (abs(near) > abs(value)) | 1
    return bits + 0x7FFF + (bits >> 16 & 1) >> 16


def default_of(value: Value) -> Type:
    """The type of a variable that is made from a value: literals are what Python has them for, in 64 bits."""
    if value.type is not LITERAL:
        return value.type
    return BOOL if isinstance(value.number, bool) else FLOAT64 if isinstance(value.number, float) else INT64


def common(one: Value, other: Value) -> Type | None:
    """The type in which two numbers are worked on, or None where the text has to say it.

    Literals follow the other number. Integers and floating-point numbers are each taken to the wider type; between the
    two there is no conversion that is not written.
    """
    left, right = one.type, other.type
    if left is LITERAL or right is LITERAL:
        if left is right:
            if isinstance(one.number, bool) and isinstance(other.number, bool):
                return BOOL
            return FLOAT64 if isinstance(one.number, float) or isinstance(other.number, float) else INT64
        given, kind = (one, right) if left is LITERAL else (other, left)
        if isinstance(given.number, float) and kind.kind != "float":
            return None
        return INT64 if kind is BOOL and not isinstance(given.number, bool) else kind
    if left == right:
        return left
    if left.kind == "bool" or right.kind == "bool":
        return right if left.kind == "bool" else left
    if left.kind != right.kind:
        return None
    if left.kind == "float":
        return FLOAT32 if left.size == right.size else max(left, right, key=_size)  # float16 beside bfloat16
    if left.is_signed == right.is_signed:
        return max(left, right, key=_size)
    signed, unsigned = (left, right) if left.is_signed else (right, left)
    return signed if signed.size > unsigned.size else NUMBERS.get(f"int{16 * unsigned.size}")


def _size(kind: Type) -> int:
    return kind.size
