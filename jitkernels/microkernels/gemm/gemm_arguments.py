"""The arguments of GEMM as structs, and the C types and names of those of its kernels."""

from typing import Any, NamedTuple

from jitkernels.codegen.source_protocol import IRFunction, Written, inlined, offset
from jitkernels.core import dtypes
from jitkernels.microkernels.epilogue.tile_consumer import FOLLOWED

NAMES = ("a", "b", "c", "m", "n", "k", "after", "context")
"""Names of the arguments; the consumer's stand at the end, as they may be absent."""


class Operands(NamedTuple):
    """``c = op(a) @ op(b) + beta * c``."""

    a: Any
    b: Any
    c: Any


class GemmExtents(NamedTuple):
    """c has m rows and n columns; k is what is added up."""

    m: int
    n: int
    k: int


class Consumer(NamedTuple):
    """What takes finished rows, see `jitkernels.microkernels.epilogue.tile_consumer`; None where nothing does."""

    after: Any
    context: Any


class MatrixPart(NamedTuple):
    """A part of a matrix: it begins at an offset, and its rows are a stride apart."""

    data: Any
    at: int
    stride: int


@inlined()
def moved(matrix: MatrixPart, elements: int) -> Any:
    """Return the part that begins some elements further on."""
    return MatrixPart(matrix.data, matrix.at + elements, matrix.stride)


@inlined()
def rows_from(operands: Operands, extents: GemmExtents, row: int) -> Any:
    """Return the operands of the rows of c from one on, for an a that is not transposed."""
    return Operands(offset(operands.a, row * extents.k), operands.b, offset(operands.c, row * extents.n))


def ir_function(symbol: str, dtype: str, arguments: tuple[tuple[str, str], ...], text: str | Written) -> Any:
    """Make an IR function whose pointers point to ``dtype``; range kernels call it as a Python function."""
    pointer = f"{dtypes.named(dtype).c}*"
    return IRFunction(symbol, "void", tuple(pointer if kind == "ptr" else "int64" for kind, _ in arguments), text)


def matmul_arguments(dtype: str, *, followed: bool = False) -> tuple[str, ...]:
    """Return the C types of ``(a, b, c, m, n, k)``, and of the consumer's arguments if one follows."""
    pointer = f"{dtypes.named(dtype).c}*"
    if followed:  # the consumer reads C
        return (pointer,) * 3 + ("int64",) * 3 + FOLLOWED
    return (f"{pointer} restrict",) * 3 + ("int64",) * 3
