"""GEMV of any size by loops that LLVM vectorizes: every element of the matrix is read once, in order, unpacked.

Where the matrix is contiguous along k, each element of the result is a dot product. Where it is strided along k, four
rows at a time are added to the result, which stays in the first-level cache meanwhile.
"""

from typing import Any

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.codegen.source_protocol import inlined
from jitkernels.core import dtypes


def autovectorized_nest(attr: MatMulAttr) -> LoopNest:
    """``C = op(A) @ op(B) + beta * C`` for a C of one column or one row."""
    number: Any = dtypes.named(attr.dtype).numpy.type
    beta, column = number(attr.beta), attr.n == 1
    keeps, trans_a, trans_b = attr.beta != 0, attr.trans_a, attr.trans_b
    along = (not trans_a or attr.m == 1) if column else trans_b

    @inlined("reassoc", "contract")
    def general(a: Any, b: Any, c: Any, m: int, n: int, k: int, begin: int, end: int) -> None:
        """Handle sizes that no caller selects this code for but that must be right, such as empty ones."""
        top, bottom = (begin, end) if column else (0, m)
        left, right = (0, n) if column else (begin, end)
        for i in range(top, bottom):
            for j in range(left, right):
                total = number(0)
                for p in range(k):
                    total += a[p * m + i if trans_a else i * k + p] * b[j * k + p if trans_b else p * n + j]
                c[i * n + j] = total + beta * c[i * n + j] if keeps else total

    def dots(a: Any, b: Any, c: Any, m: int, n: int, k: int, begin: int, end: int) -> None:
        if (n if column else m) != 1:
            general(a, b, c, m, n, k, begin, end)
            return
        matrix, vector = (a, b) if column else (b, a)
        if k == 1:
            scale = vector[0]
            for i in range(begin, end):
                c[i] = matrix[i] * scale + beta * c[i] if keeps else matrix[i] * scale
            return
        for i in range(begin, end):
            total = number(0)
            for p in range(k):
                total += matrix[i * k + p] * vector[p]
            c[i] = total + beta * c[i] if keeps else total

    def rows(a: Any, b: Any, c: Any, m: int, n: int, k: int, begin: int, end: int) -> None:
        if (n if column else m) != 1:
            general(a, b, c, m, n, k, begin, end)
            return
        matrix, vector = (a, b) if column else (b, a)
        width = m if column else n
        if width == 1:
            total = number(0)
            for p in range(k):
                total += matrix[p] * vector[p]
            c[0] = total + beta * c[0] if keeps else total
            return
        for i in range(begin, end):
            c[i] = beta * c[i] if keeps else number(0)
        p = 0
        while p + 4 <= k:
            first = p * width
            v0, v1, v2, v3 = vector[p], vector[p + 1], vector[p + 2], vector[p + 3]
            for i in range(begin, end):
                low = matrix[first + i] * v0 + matrix[first + width + i] * v1
                high = matrix[first + 2 * width + i] * v2 + matrix[first + 3 * width + i] * v3
                c[i] += low + high
            p += 4
        while p < k:
            for i in range(begin, end):
                c[i] += matrix[p * width + i] * vector[p]
            p += 1

    signature = attr.signature()
    return LoopNest(
        f"matmul_vector_{attr.dtype}",
        signature.c_arguments,
        dots if along else rows,
        extent=signature.index("m" if column else "n"),
    )
