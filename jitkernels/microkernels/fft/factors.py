"""How lengths are divided: into the radices of passes, into two steps, or into a longer length that has radices.

1. Lengths of the primes up to 13 have passes of their own, and larger primes one for any radix. The last radix is the
   one whose pass transposes: the number of lanes where that divides a long length, so that all passes before it have
   whole vectors, else the largest that has a pass of its own.
2. Long ones are two steps (Bailey, 1990): `across` transforms whose numbers lie far apart, as many at once as a vector
   has lanes, then `down` transforms of neighbours. All passes of either run in the cache.
3. Any other length is a convolution with a chirp (Bluestein, 1970), of a power of two times 1, 3, 5, 9 or 15.
"""

from typing import Any, NamedTuple

from jitkernels.codegen.source_protocol import noinline
from jitkernels.core import cpu_target, dtypes

PRIMES = (2, 3, 5, 7, 11, 13)
LEAST_ANY_RADIX, MAX_RADIX = 17, 311
"""The primes that the pass of any radix takes. Its operations grow with the radix: from about here on a convolution is
faster.
"""
WHOLE_COUNT = 16
"""The numbers of a vector: a prime that leaves a length fewer has passes of vectors in part, and the less it may be."""


class FftLimits(NamedTuple):
    """The lanes of a vector, and the length above which two steps are faster than one."""

    lanes: int
    one_step: int


def limits_of(dtype: str, vector_bytes: int) -> FftLimits:
    """Two planes for reading, two for writing, and the roots, all in half of the L2 cache."""
    size = dtypes.named(dtype).size
    return FftLimits(vector_bytes // size, cpu_target.l2_cache_bytes() // 2 // (6 * size))


@noinline()
def without(n: int, prime: int) -> int:
    """N without its factors `prime`."""
    rest = n
    while rest > 1 and rest % prime == 0:
        rest = rest // prime
    return rest


@noinline()
def of_large_primes(n: int) -> int:
    """N without its factors `PRIMES`."""
    return without(without(without(without(without(without(n, 2), 3), 5), 7), 11), 13)


@noinline()
def largest_of(n: int) -> int:
    """The largest prime factor of a number without factors `PRIMES`, or one more than `MAX_RADIX` for a larger one."""
    rest, prime, largest = n, LEAST_ANY_RADIX, 1
    while rest > 1 and prime <= MAX_RADIX:
        if rest % prime == 0:
            rest, largest = rest // prime, prime
        else:
            prime += 2
    return largest if rest == 1 else MAX_RADIX + 1


@noinline()
def has_radices(n: int, beside: bool) -> bool:
    """Whether the length has passes: no primes but `PRIMES`, or others that are worth a pass.

    beside: transforms lie beside each other, so that vectors are whole whatever the prime leaves.
    """
    rest = of_large_primes(n)
    if rest == 1:
        return True
    prime = largest_of(rest)
    return prime * WHOLE_COUNT <= MAX_RADIX * (WHOLE_COUNT if beside else min(n // prime, WHOLE_COUNT))


@noinline()
def doubled(factor: int, least: int) -> int:
    """`factor` times the least power of two that is `least` or more."""
    length = factor
    while length < least:
        length *= 2
    return length


@noinline()
def smooth_length(n: int, beside: bool) -> int:
    """The length itself where it has radices, else that of the convolution, which is of rows."""
    if has_radices(n, beside):
        return n
    least = 2 * n - 1
    first = min(doubled(1, least), doubled(3, least))
    return min(first, min(doubled(5, least), min(doubled(9, least), doubled(15, least))))


@noinline()
def largest_prime(n: int) -> int:
    """The largest of the primes that divides n; 2 for 1."""
    rest = of_large_primes(n)
    if rest > 1:
        return largest_of(rest)
    if n % 13 == 0:
        return 13
    if n % 11 == 0:
        return 11
    if n % 7 == 0:
        return 7
    if n % 5 == 0:
        return 5
    return 3 if n % 3 == 0 else 2


@noinline()
def steps_of(n: int, one_step: int) -> int:
    """The length of the first of two steps, or 0 where there is one: factors as long as it is below the root of n."""
    across, rest = 1, n
    while rest > 1 and n > one_step:
        prime = largest_prime(rest)
        if (across * prime) * (across * prime) <= n:
            across *= prime
        rest = rest // prime
    return across if n > one_step else 0


@noinline()
def last_radix(n: int, lanes: int) -> int:
    """The radix of the last pass over the numbers of one transform; 1 where it has large primes alone."""
    small = n // of_large_primes(n)
    if small == 1:
        return 1
    if n % 16 == 0 and lanes == 16 and n >= lanes * lanes:
        return 16
    if n % 8 == 0:
        return 8
    prime = largest_prime(small)
    return 4 if n % 4 == 0 and prime <= 3 else prime


@noinline()
def next_radix(rest: int) -> int:
    """The radix of a pass, where the radices of `rest` are left: large primes first, where vectors are whole.

    Then eights, but fours where a two would be left, and nines.
    """
    large = of_large_primes(rest)
    if large > 1:
        return largest_of(large)
    if rest % 8 == 0 and rest % 16 != 0 or rest % 32 == 0:
        return 8
    if rest % 4 == 0:
        return 4
    if rest % 9 == 0 and rest % 2 != 0:
        return 9
    radix = 2
    while rest % radix != 0:
        radix += 1
    return radix


@noinline()
def put_radices(radices: Any, n: int, last: int) -> None:
    """Write the number of radices, and the radices, of which `last` is the last one unless it is 1."""
    rest, count = n // last, 0
    while rest > 1:
        radix = next_radix(rest)
        count += 1
        radices[count] = radix
        rest = rest // radix
    if last > 1:
        count += 1
        radices[count] = last
    radices[0] = count
