"""The element types of arrays in one table: their names in NumPy, C and LLVM, and the notation of C arguments.

C arguments are text, because text is the key of compiled code: ``int64``, ``double*``, ``float* restrict``. The
element is named as in NumPy or in C; ``restrict`` promises, as in C, that no other argument aliases what is written
through the pointer.
"""

import functools
from typing import TYPE_CHECKING, Any

from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.errors import UnknownNameError

if TYPE_CHECKING:
    import numpy as np


@frozen_dataclass
class DType:
    """An element type: its name, C and LLVM types, size in bytes, and the NumPy dtype that stores it.

    NumPy has no bfloat16: its arrays are uint16, and so is its C type, as not every compiler has one.
    """

    name: str
    c: str
    llvm: str
    size: int
    storage: str

    @property
    def numpy(self) -> "np.dtype[Any]":
        """NumPy's dtype object of arrays that store this type."""
        import numpy as np

        return np.dtype(self.storage)

    @property
    def is_float(self) -> bool:
        return self.llvm in ("half", "bfloat", "float", "double")

    @property
    def computed(self) -> str:
        """The dtype that kernels compute in for arrays of this type."""
        return "float32" if self.llvm in ("half", "bfloat") else self.name


TABLE = {
    dtype.name: dtype
    for dtype in (
        DType("float16", "_Float16", "half", 2, "float16"),
        DType("bfloat16", "uint16_t", "bfloat", 2, "uint16"),
        DType("float32", "float", "float", 4, "float32"),
        DType("float64", "double", "double", 8, "float64"),
        DType("int8", "int8_t", "i8", 1, "int8"),
        DType("int16", "int16_t", "i16", 2, "int16"),
        DType("int32", "int32_t", "i32", 4, "int32"),
        DType("int64", "int64_t", "i64", 8, "int64"),
        DType("uint8", "uint8_t", "i8", 1, "uint8"),
        DType("uint16", "uint16_t", "i16", 2, "uint16"),
        DType("uint32", "uint32_t", "i32", 4, "uint32"),
        DType("uint64", "uint64_t", "i64", 8, "uint64"),
        DType("bool", "_Bool", "i8", 1, "bool"),
    )
}
_by_c_name = {dtype.c: dtype for dtype in TABLE.values() if dtype.name != "bfloat16"}


def named(name: str) -> DType:
    """The element type of that NumPy or C name. Raises UnknownNameError that lists the known names."""
    dtype = TABLE.get(name) or _by_c_name.get(name)
    if dtype is None:
        raise UnknownNameError(f"no element type {name!r}; there are {', '.join(TABLE)}")
    return dtype


@frozen_dataclass
class CType:
    """A C argument or result: an element, a pointer to elements, or ``void``, whose element is None."""

    element: DType | None
    is_pointer: bool = False
    is_restrict: bool = False

    @property
    def llvm(self) -> str:
        if self.is_pointer:
            return "ptr"
        return self.element.llvm if self.element else "void"

    def declare(self, name: str) -> str:
        """The declaration of a C parameter of this type."""
        element = self.element.c if self.element else "void"
        pointer = "*restrict " if self.is_restrict else "*" if self.is_pointer else ""
        return f"{element} {pointer}{name}"


@functools.cache
def c_type(text: str) -> CType:
    """Parse a C type written as ``float* restrict``. Raises UnknownNameError."""
    bare = text.removesuffix(" restrict")
    element = bare.removesuffix("*")
    return CType(None if element == "void" else named(element), is_pointer=bare.endswith("*"), is_restrict=bare != text)
