"""Fourier transforms as plain loops over planes of real and imaginary parts, for numba to compile.

Passes of the radices of a length (Stockham's order, so that no pass permutes), and a convolution with a chirp where a
length has other primes (Bluestein, 1970). Everything lies in one workspace, at offsets: two pairs of planes of
`length` elements, the roots of unity of that length, and for a convolution the chirp and its transform.
"""

import math
from typing import Any

from numpy import float64

from jitkernels.microkernels.fft.factors import next_radix
from jitkernels.more.numba.numba_kernel import cos_float64, real, sin_float64

HALF_PI = math.pi / 2
FIRST, SECOND, ROOTS, CHIRP, IMAGE, PLANES = 0, 2, 4, 6, 8, 10
"""Offsets in the workspace, and its elements, as multiples of the length."""


def root(k: int, n: int) -> Any:
    """``exp(-2 pi i k / n)``, by an angle of at most an eighth of a turn."""
    quarters = (8 * k + n) // (2 * n)
    angle = float64(4 * k - quarters * n) / float64(n) * HALF_PI
    cosine, sine = cos_float64(angle), sin_float64(angle)
    re = sine if quarters % 2 == 1 else cosine
    im = cosine if quarters % 2 == 1 else sine
    re = -re if (quarters + 1) % 4 >= 2 else re
    im = im if quarters % 4 >= 2 else -im
    return real(re), real(im)


def pass_of_four(work: Any, at: int, to: int, n: int, stride: int, m: int) -> None:
    """One pass of radix 4: ``m`` groups of `stride` transforms."""
    for p in range(m):
        w1, w2, w3 = ROOTS * n + p * stride, ROOTS * n + 2 * p * stride, ROOTS * n + 3 * p * stride
        for q in range(stride):
            a = at + q + stride * p
            b, c, d = a + stride * m, a + 2 * stride * m, a + 3 * stride * m
            even_re, even_im = work[a] + work[c], work[a + n] + work[c + n]
            odd_re, odd_im = work[b] + work[d], work[b + n] + work[d + n]
            left_re, left_im = work[a] - work[c], work[a + n] - work[c + n]
            right_re, right_im = work[b] - work[d], work[b + n] - work[d + n]
            y = to + q + 4 * stride * p
            work[y], work[y + n] = even_re + odd_re, even_im + odd_im
            re, im = left_re + right_im, left_im - right_re
            work[y + stride] = re * work[w1] - im * work[w1 + n]
            work[y + stride + n] = re * work[w1 + n] + im * work[w1]
            re, im = even_re - odd_re, even_im - odd_im
            work[y + 2 * stride] = re * work[w2] - im * work[w2 + n]
            work[y + 2 * stride + n] = re * work[w2 + n] + im * work[w2]
            re, im = left_re - right_im, left_im + right_re
            work[y + 3 * stride] = re * work[w3] - im * work[w3 + n]
            work[y + 3 * stride + n] = re * work[w3 + n] + im * work[w3]


def pass_of_any(work: Any, at: int, to: int, n: int, stride: int, m: int, radix: int) -> None:
    """One pass of any radix."""
    for p in range(m):
        for k in range(radix):
            y, turn = to + stride * (radix * p + k), ROOTS * n + p * k * stride
            for q in range(stride):
                re, im = work[at + stride * p + q], work[at + n + stride * p + q]
                for j in range(1, radix):
                    x, w = at + stride * (p + m * j) + q, ROOTS * n + j * k % radix * (n // radix)
                    re += work[x] * work[w] - work[x + n] * work[w + n]
                    im += work[x] * work[w + n] + work[x + n] * work[w]
                work[y + q] = re * work[turn] - im * work[turn + n]
                work[y + q + n] = re * work[turn + n] + im * work[turn]


def passes(work: Any, n: int) -> int:
    """Transform the planes at `FIRST`; returns the offset of the result."""
    at, to, stride, rest = FIRST * n, SECOND * n, 1, n
    while rest > 1:
        radix = 4 if rest % 4 == 0 else next_radix(rest)
        m = rest // radix
        if radix == 4:
            pass_of_four(work, at, to, n, stride, m)
        else:
            pass_of_any(work, at, to, n, stride, m, radix)
        at, to, stride, rest = to, at, stride * radix, m
    return at


def length_of(n: int) -> int:
    """The length of the passes: n where it has radices, else that of the convolution, a power of two."""
    rest, length = n, 1
    for prime in range(2, 14):
        while rest > 1 and rest % prime == 0:
            rest = rest // prime
    while length < 2 * n - 1:
        length *= 2
    return n if rest == 1 else length


def fill_tables(work: Any, n: int, length: int) -> None:
    """Roots of unity, and the chirp ``exp(-pi i k**2 / n)`` where it is needed."""
    square, count = 0, 0 if length == n else n
    for k in range(length + count):
        is_root = k < length
        re, im = root(k if is_root else square, length if is_root else 2 * n)
        at = ROOTS * length + k if is_root else CHIRP * length + k - length
        work[at], work[at + length] = re, im
        square = square if is_root else (square + 2 * (k - length) + 1) % (2 * n)


def load_chirp(work: Any, n: int, length: int) -> None:
    """The conjugate of the chirp, around 0 in both directions."""
    for k in range(2 * length):
        work[k] = real(0)
    for k in range(n):
        re, im, back = work[CHIRP * length + k], -work[(CHIRP + 1) * length + k], (length - k) % length
        work[k], work[length + k], work[back], work[length + back] = re, im, re, im


def times_chirp(work: Any, at: int, n: int, length: int, factor: Any, sign: Any) -> None:
    """Multiply n numbers with the chirp, after their parts with `factor`, and the imaginary ones with `sign`."""
    for k in range(n if length != n else 0):
        re, im = factor * work[at + k], factor * sign * work[at + length + k]
        c, s = work[CHIRP * length + k], work[(CHIRP + 1) * length + k]
        work[at + k], work[at + length + k] = re * c - im * s, re * s + im * c


def times_image(work: Any, at: int, length: int) -> None:
    """The product with the transform of the chirp, conjugated, as the inverse of a transform is that of conjugates."""
    for k in range(length):
        re, im = work[at + k], work[at + length + k]
        c, s = work[IMAGE * length + k], work[(IMAGE + 1) * length + k]
        work[k], work[length + k] = re * c - im * s, -(re * s + im * c)


def first_turn(n: int, length: int) -> int:
    """The first of the turns of `transform`: -1 transforms the chirp, where it is needed."""
    return 0 if length == n else -1


def turns_of(n: int, length: int) -> int:
    """The turns that transform the numbers of one array: a convolution takes two."""
    return 1 if length == n else 2


def is_last(turn: int, each: int) -> bool:
    """Whether a turn has the result of an array."""
    return turn >= 0 and turn % each == each - 1


def transform(work: Any, n: int, length: int, turn: int, each: int) -> int:
    """One turn, before whose first one for an array the planes have been loaded; returns the offset of the result.

    There is one call of `passes`, which numba inlines.
    """
    if turn < 0:
        load_chirp(work, n, length)
    elif turn % each == 0:
        times_chirp(work, 0, n, length, real(1), real(1))
        for k in range(n, length):
            work[k], work[length + k] = real(0), real(0)
    at = passes(work, length)
    if turn < 0:
        for k in range(2 * length):
            work[IMAGE * length + k] = work[at + k]
    elif is_last(turn, each):
        times_chirp(work, at, n, length, real(1) / real(length), real(-1))
    else:
        times_image(work, at, length)
    return at
