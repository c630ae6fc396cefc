"""UNIFORM and NORMAL: the published vectors, one stream for any partition, and the distributions."""

import math
from typing import Any

import numpy as np
import pytest
from oracles.random_numbers import philox as oracle_philox

import jitkernels as jk
from jitkernels.attrs.schema.registry import implementation
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.dispatch.kernel import Kernel
from jitkernels.microkernels.maths.philox import philox
from jitkernels.refer.random_numbers import philox as reference_philox
from jitkernels.runtime.loading import loader

KNOWN = (
    ((0, 0, 0, 0), (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0), "d16cfe09 94fdcceb 5001e420 24126ea1"),
)
"""Counter, key and words of philox4x32-10 in the file ``kat_vectors`` of Random123."""
COUNT = 200_000
FUNCTIONS = (jk.uniform, jk.normal)


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN)
def test_published_vectors(counter: tuple[int, ...], key: tuple[int, int], words: str) -> None:
    expected = [int(word, 16) for word in words.split()]
    assert list(oracle_philox(counter, key)) == expected
    columns = np.array([counter], np.uint64).T
    assert reference_philox(columns, key)[:, 0].tolist() == expected
    assert _compiled(np.array([*counter, *key], np.uint64)).tolist() == expected


def _compiled(given: AnyArray) -> AnyArray:
    """The words that the loop nests' own function makes."""

    def body(given: Any, words: Any, n: int, begin: int, end: int) -> None:
        a, b, c, d = philox(given[0], given[1], given[2], given[3], given[4], given[5])
        words[0] = a
        words[1] = b
        words[2] = c
        words[3] = d

    nest = RangeKernel("philox", ("uint64*", "uint64*", "int64"), body, extent=2)
    words = np.zeros(4, np.uint64)
    entry = loader.entry_of(nest, nest.arguments)
    import ctypes

    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(entry.address())
    assert function(given.ctypes.data, words.ctypes.data, 1) == 0
    return words


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_parts_of_a_stream_equal_the_whole(function: Any, dtype: str) -> None:
    whole = function(3000, seed=5, dtype=dtype)
    for start, stop in ((0, 1), (1, 2), (2, 3), (3, 7), (1, 2999), (777, 1777), (4, 8), (2998, 3000)):
        assert np.array_equal(function(stop - start, seed=5, offset=start, dtype=dtype), whole[start:stop])
    assert np.array_equal(function((30, 100), seed=5, dtype=dtype), whole.reshape(30, 100))
    assert not np.array_equal(function(3000, seed=6, dtype=dtype), whole)
    far = function(10, seed=5, offset=(1 << 34) - 3, dtype=dtype)
    assert np.array_equal(function(7, seed=5, offset=1 << 34, dtype=dtype), far[3:])


@pytest.mark.parametrize("row", [jk.UniformAttr, jk.NormalAttr])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_same_bits_in_every_variant(row: Any, dtype: str) -> None:
    """Of any vector width, with any number of threads."""
    attr = row(n=70_001, seed=3, offset=5, dtype=dtype)
    found, made = implementation(row, "gen"), set()
    before = jk.get_num_threads()
    for variant in found.variants(attr):
        for threads in (1, 2, 3):
            jk.set_num_threads(threads)
            y = np.empty(attr.n, dtype)
            Kernel(attr, found, variant).callable(y)
            made.add(y.tobytes())
    jk.set_num_threads(before)
    assert len(found.variants(attr)) >= 2
    assert len(made) == 1


def _distance(values: AnyArray, distribution: Any) -> float:
    """Kolmogorov and Smirnov's: how far the values' distribution is from the true one, times the root of their number.

    It is beyond 1.95 once in a thousand times.
    """
    found = distribution(np.sort(values.astype(np.float64)))
    steps = np.arange(len(values) + 1) / len(values)
    return float(max((found - steps[:-1]).max(), (steps[1:] - found).max()) * math.sqrt(len(values)))


def _chi_square(shares: AnyArray, expected: AnyArray) -> float:
    """How many standard deviations the sum of squares is off (Wilson and Hilferty)."""
    degrees = len(shares) - 1
    squares = float(((shares - expected) ** 2 / expected).sum())
    spread = 2 / (9 * degrees)
    return float(((squares / degrees) ** (1 / 3) - (1 - spread)) / math.sqrt(spread))


def _normal_distribution(x: AnyArray) -> AnyArray:
    return np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in x])


@pytest.mark.parametrize("seed", [1, 2**40 + 9])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform_numbers_are_uniform(seed: int, dtype: str) -> None:
    u = jk.uniform(COUNT, seed=seed, dtype=dtype)
    assert u.min() >= 0
    assert u.max() < 1
    assert _distance(u, lambda x: x) < 1.95
    for bins in (16, 1000):
        assert abs(_chi_square(np.bincount((u * bins).astype(int), minlength=bins), np.full(bins, COUNT / bins))) < 4
    cells = (u[::2] * 30).astype(int) * 30 + (u[1::2] * 30).astype(int)  # neighbours know nothing of each other
    assert abs(_chi_square(np.bincount(cells, minlength=900), np.full(900, COUNT / 1800))) < 4


@pytest.mark.parametrize("seed", [1, 2**40 + 9])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_numbers_are_normal(seed: int, dtype: str) -> None:
    z = jk.normal(COUNT, seed=seed, dtype=dtype)
    assert abs(z.mean()) < 4 / math.sqrt(COUNT)
    assert abs(z.var() - 1) < 4 * math.sqrt(2 / COUNT)
    assert _distance(z[:50_000], _normal_distribution) < 1.95
    edges = np.linspace(-3.5, 3.5, 71)
    shares = np.diff(np.concatenate([[0.0], _normal_distribution(edges), [1.0]]))
    counts = np.bincount(np.searchsorted(edges, z), minlength=72)
    assert abs(_chi_square(counts, shares * COUNT)) < 4
    signs = (z[::2] > 0) * 2 + (z[1::2] > 0)
    assert abs(_chi_square(np.bincount(signs, minlength=4), np.full(4, COUNT / 8))) < 4
    assert 4.0 < np.abs(z).max() < 6.7
