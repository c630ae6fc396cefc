"""GEMV of any size by loops that LLVM vectorizes: every element of the matrix is read once, in order, unpacked.

Where the matrix is contiguous along k, each element of the result is a dot product. Where it is strided along k, four
rows at a time are added to the result, which stays in the first-level cache meanwhile.
"""

from typing import Any

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.codegen.range_kernel import FLAGS, RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined
from jitkernels.core import dtypes
from jitkernels.microkernels.gemm.gemm_arguments import GemmExtents, Operands


def autovectorized_kernel(attr: MatMulAttr) -> RangeKernel:
    """``C = op(A) @ op(B) + beta * C`` for a C of one column or one row."""
    column = attr.n == 1
    along = (not attr.trans_a or attr.m == 1) if column else attr.trans_b
    general, signature = _general(attr), attr.signature()
    of_vector = (_dots if along else _rows)(attr)

    def body(operands: Operands, extents: GemmExtents, part: Range) -> None:
        if (extents.n if column else extents.m) != 1:
            general(operands, extents, part)
            return
        of_vector(operands, extents, part)

    return RangeKernel(
        f"matmul_vector_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("m" if column else "n"),
        names=signature.names,
    )


def _general(attr: MatMulAttr) -> Any:
    """Make the function for sizes that no caller selects this code for but that must be right, such as empty ones."""
    number: Any = dtypes.named(attr.dtype).numpy.type
    beta, keeps, column = number(attr.beta), attr.beta != 0, attr.n == 1
    trans_a, trans_b = attr.trans_a, attr.trans_b

    @inlined("reassoc", "contract")
    def general(operands: Operands, extents: GemmExtents, part: Range) -> None:
        a, b, c, m, n, k = operands.a, operands.b, operands.c, extents.m, extents.n, extents.k
        top, bottom = (part.begin, part.end) if column else (0, m)
        left, right = (0, n) if column else (part.begin, part.end)
        for i in range(top, bottom):
            for j in range(left, right):
                total = number(0)
                for p in range(k):
                    total += a[p * m + i if trans_a else i * k + p] * b[j * k + p if trans_b else p * n + j]
                c[i * n + j] = total + beta * c[i * n + j] if keeps else total

    return general


def _dots(attr: MatMulAttr) -> Any:
    """Make the function for a matrix that is contiguous along k."""
    number: Any = dtypes.named(attr.dtype).numpy.type
    beta, keeps, column = number(attr.beta), attr.beta != 0, attr.n == 1

    @inlined(*FLAGS)
    def dots(operands: Operands, extents: GemmExtents, part: Range) -> None:
        matrix, vector = (operands.a, operands.b) if column else (operands.b, operands.a)
        c, k = operands.c, extents.k
        if k == 1:
            scale = vector[0]
            for i in range(part.begin, part.end):
                c[i] = matrix[i] * scale + beta * c[i] if keeps else matrix[i] * scale
            return
        for i in range(part.begin, part.end):
            total = number(0)
            for p in range(k):
                total += matrix[i * k + p] * vector[p]
            c[i] = total + beta * c[i] if keeps else total

    return dots


def _rows(attr: MatMulAttr) -> Any:
    """Make the function that adds rows of the matrix, four at a time, to the result."""
    number: Any = dtypes.named(attr.dtype).numpy.type
    beta, keeps, column = number(attr.beta), attr.beta != 0, attr.n == 1

    @inlined(*FLAGS)
    def rows(operands: Operands, extents: GemmExtents, part: Range) -> None:
        matrix, vector = (operands.a, operands.b) if column else (operands.b, operands.a)
        c, k, width = operands.c, extents.k, extents.m if column else extents.n
        if width == 1:
            total = number(0)
            for p in range(k):
                total += matrix[p] * vector[p]
            c[0] = total + beta * c[0] if keeps else total
            return
        for i in range(part.begin, part.end):
            c[i] = beta * c[i] if keeps else number(0)
        p = 0
        while p + 4 <= k:
            first = p * width
            v0, v1, v2, v3 = vector[p], vector[p + 1], vector[p + 2], vector[p + 3]
            for i in range(part.begin, part.end):
                low = matrix[first + i] * v0 + matrix[first + width + i] * v1
                high = matrix[first + 2 * width + i] * v2 + matrix[first + 3 * width + i] * v3
                c[i] += low + high
            p += 4
        while p < k:
            for i in range(part.begin, part.end):
                c[i] += matrix[p * width + i] * vector[p]
            p += 1

    return rows
