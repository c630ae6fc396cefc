"""UNIFORM and NORMAL: counter-based random numbers, so that each element depends on its index only.

Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011), computes four
32-bit words from a counter of four words and a key of two: the key is the seed, lower half first; the counter is the
index of the block of words, lower half first, and two zeros. Element i of a call is element offset + i of the stream,
so that results are the same bits for any number of threads and any vector width, and a stream can be split anywhere:
``uniform(n, seed, offset=m)`` continues ``uniform(m, seed)``.
"""

from collections.abc import Iterable

from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, whole
from jitkernels.attrs.schema.signature import Argument

MAX_OFFSET = 1 << 62


class RandomAttr(KernelAttr):
    """Fields of random numbers: n, the number of elements, and their position in which stream."""

    n: int
    seed: int = whole(default=0, is_size=False, samples=(1, 12345, (1 << 32) + 7, (1 << 63) - 1))
    offset: int = whole(default=0, most=MAX_OFFSET, is_size=False, samples=(1, 2, 3, 1001, (1 << 34) + 1))
    dtype: str = "float32"
    arrays = (Argument("y", "out", "*n"),)
    options = ("shape", "seed", "offset", "dtype")

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [1, 7, 64, 1000]
        full = [2**i for i in range(0, 25, 2)] + [10**i for i in range(1, 8)]
        return cases(
            [cls(n=n, dtype=dtype) for dtype in FLOATS for n in full],
            ci=[cls(n=n, seed=n, offset=n // 3, dtype=dtype) for dtype in FLOATS for n in ci],
        )


class UniformAttr(RandomAttr, kernel_type="UNIFORM"):
    """y[i] = a random number 0 <= y < 1, uniform over the multiples of 2**-24 (float64: 2**-53).

    float32: the upper 24 bits of word i % 4 of block i // 4. float64: the upper 53 bits of the words 2 * (i % 2), the
    lower half, and 2 * (i % 2) + 1 of block i // 2. The words are those of Philox4x32-10 with the key `seed`.
    """

    def tolerance(self) -> Tolerance:
        return Tolerance(ulp=0)

    def operations(self) -> float:
        return 20.0 * self.n


class NormalAttr(RandomAttr, kernel_type="NORMAL"):
    """y[i] = a normally distributed random number of mean 0 and variance 1 (Box and Muller, 1958).

    A pair of elements at an even and the next odd index is sqrt(-2 * log(u)) times the cosine and the sine of 2 * pi *
    v. float32: u = (a // 2 + 0.5) / 2**31 rounded to float32, v = b / 2**32 for two words a, b of Philox4x32-10, four
    elements per block. float64: u = (a // 2**11 + 0.5) / 2**53 rounded, v = b / 2**64 for a, b of two words each, the
    lower half first, two elements per block. |y| is at most 6.7 (float64: 8.7).
    """

    def tolerance(self) -> Tolerance:
        """A logarithm, a root, a cosine and two products."""
        return Tolerance(ulp=6)

    def operations(self) -> float:
        return 60.0 * self.n
