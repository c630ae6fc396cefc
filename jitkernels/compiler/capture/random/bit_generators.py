"""NumPy's bit generators as traced arithmetic: PCG64, PCG64DXSM, SFC64, MT19937, Philox.

The words of a state are numbers that loops carry in registers; only the arrays of MT19937 and Philox are in memory.
What has loops or branches of its own is a function of `distributions`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh
from jitkernels.compiler.capture.control_flow.loop_state import as_number
from jitkernels.compiler.capture.ints import intervals
from jitkernels.compiler.capture.numpy.numpy_callouts import traced_copy
from jitkernels.compiler.capture.random import distributions
from jitkernels.compiler.capture.random.words import StateWord, cast
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.graph import Node
from jitkernels.microkernels.maths import philox

UNIT_53 = 1.0 / 9007199254740992.0
"""The distance of neighbouring doubles that are drawn, 2 ** -53."""
ONE, HALF, ALL_BITS = np.uint64(1), np.uint64(32), np.uint64(64)


def high_product(a: Any, b: Any) -> Any:
    """The upper half of the product of two words of 64 bits."""
    other = b.node if type(b) is Traced else builder.constant(int(b), "uint64")
    return fresh(a.tracer, Node("multiply_high", (a.node, other), "uint64", ()), is_scalar=True)


def rotated_left(word: Any, bits: int) -> Any:
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))


class BitGenerator:
    """The state of one generator. `arrays`: what the state is read from, as in `generator_states.PARTS`."""

    def __init__(self, tracer: Tracer, arrays: Sequence[Any]) -> None:
        self.tracer, self.arrays = tracer, arrays
        self._set_up()

    def _set_up(self) -> None:
        raise NotImplementedError

    def write_back(self) -> None:
        """Store the state in the arrays, if the function has drawn a number."""
        for array, words in zip(self.arrays, self._parts(), strict=True):
            for index, word in enumerate(words):
                if word.storage.written:
                    array[index] = word.value

    def _parts(self) -> Sequence[Sequence[StateWord]]:
        """The words of each array."""
        raise NotImplementedError

    def next_uint64(self) -> Any:
        raise NotImplementedError

    def next_uint32(self) -> Any:
        """A number of 32 bits: one half of a word after the other, the lower one first."""
        return traced_copy(distributions.half_word)(self)

    def next_double(self) -> Any:
        """A double in [0, 1)."""
        return cast(self.next_uint64() >> np.uint64(11), "float64") * np.float64(UNIT_53)

    def layer(self, word: Any) -> Any:
        """The lowest eight bits of a word, as an index."""
        node = cast(word & np.uint64(255), "int64").node
        intervals.note(self.tracer, node, (0, 255))
        return as_number(self.tracer, node, int)

    def entry(self, table: Any, index: Any) -> Any:
        """An element of a constant table."""
        return fresh(self.tracer, self.tracer.frozen_array(table))[index]

    high_product = staticmethod(high_product)

    def _words(self, array: int, count: int) -> list[StateWord]:
        source = self.arrays[array]
        return [StateWord(self.tracer, source[index].node) for index in range(count)]


class _Buffering(BitGenerator):
    """A generator of 64-bit words that keeps the half that it has not given out."""

    has_uint32: StateWord
    uinteger: StateWord


class PCG64(_Buffering):
    """A linear congruential generator of 128 bits with output XSL-RR (O'Neill)."""

    MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645

    def _set_up(self) -> None:
        self.low, self.high, self.increment_low, self.increment_high = self._words(0, 4)
        self.has_uint32, self.uinteger = self._words(1, 2)

    def _parts(self) -> Sequence[Sequence[StateWord]]:
        return (self.low, self.high), (self.has_uint32, self.uinteger)

    def _step(self, factor_high: int, factor_low: int) -> None:
        """state = state * factor + increment, of 128 bits."""
        low, high = self.low.value, self.high.value
        by_low, increment = np.uint64(factor_low), self.increment_low.value
        upper = high_product(low, by_low) + high * by_low + self.increment_high.value
        if factor_high:
            upper = upper + low * np.uint64(factor_high)
        sum_low = low * by_low + increment
        self.low.value = sum_low
        self.high.value = upper + cast(sum_low < increment, "uint64")

    def next_uint64(self) -> Any:
        self._step(self.MULTIPLIER >> 64, self.MULTIPLIER & (1 << 64) - 1)
        high = self.high.value
        mixed, turn = high ^ self.low.value, high >> np.uint64(58)
        return (mixed >> turn) | (mixed << ((ALL_BITS - turn) & np.uint64(63)))


class PCG64DXSM(PCG64):
    """The same with a multiplier of 64 bits, and output DXSM of the state before the step."""

    MULTIPLIER = 0xDA942042E4DD58B5

    def next_uint64(self) -> Any:
        high, low = self.high.value, self.low.value | ONE
        high = high ^ (high >> HALF)
        high = high * np.uint64(self.MULTIPLIER)
        high = high ^ (high >> np.uint64(48))
        high = high * low
        self._step(0, self.MULTIPLIER)
        return high


class SFC64(_Buffering):
    """Three words of chaotic iteration and a counter (Doty-Humphrey)."""

    def _set_up(self) -> None:
        self.words = self._words(0, 4)
        self.has_uint32, self.uinteger = self._words(1, 2)

    def _parts(self) -> Sequence[Sequence[StateWord]]:
        return self.words, (self.has_uint32, self.uinteger)

    def next_uint64(self) -> Any:
        a, b, c, counter = (word.value for word in self.words)
        result = a + b + counter
        following = b ^ (b >> np.uint64(11)), c + (c << np.uint64(3)), rotated_left(c, 24) + result, counter + ONE
        for word, value in zip(self.words, following, strict=True):
            word.value = value
        return result


class MT19937(BitGenerator):
    """The Mersenne twister: 624 words of 32 bits, and the position of the next one."""

    def _set_up(self) -> None:
        self.key = self.arrays[0].copy()
        (self.position,) = self._words(1, 1)

    def _parts(self) -> Sequence[Sequence[StateWord]]:
        return (), (self.position,)

    def write_back(self) -> None:
        super().write_back()
        if self.key.view.storage.written:
            self.arrays[0][:] = self.key

    def next_uint32(self) -> Any:
        word = traced_copy(distributions.twister_word)(self)
        word = word ^ (word >> np.uint32(11))
        word = word ^ ((word << np.uint32(7)) & np.uint32(0x9D2C5680))
        word = word ^ ((word << np.uint32(15)) & np.uint32(0xEFC60000))
        return word ^ (word >> np.uint32(18))

    def next_uint64(self) -> Any:
        high = cast(self.next_uint32(), "uint64")
        return (high << HALF) | cast(self.next_uint32(), "uint64")

    def next_double(self) -> Any:
        high = cast(self.next_uint32() >> np.uint32(5), "float64")
        low = cast(self.next_uint32() >> np.uint32(6), "float64")
        return (high * np.float64(67108864.0) + low) / np.float64(9007199254740992.0)


class Philox(_Buffering):
    """Philox4x64-10, a counter that is encrypted (Salmon and others): four words at a time."""

    FACTORS = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
    WEYL = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)

    def _set_up(self) -> None:
        self.counter, self.key = self._words(0, 4), self._words(1, 2)
        (self.position,) = self._words(2, 1)
        self.buffer = self.arrays[3].copy()
        self.has_uint32, self.uinteger = self._words(4, 2)

    def _parts(self) -> Sequence[Sequence[StateWord]]:
        return self.counter, (), (self.position,), (), (self.has_uint32, self.uinteger)

    def write_back(self) -> None:
        super().write_back()
        if self.buffer.view.storage.written:
            self.arrays[3][:] = self.buffer

    def next_uint64(self) -> Any:
        return traced_copy(distributions.philox_word)(self)

    def block(self) -> tuple[Any, ...]:
        """Count, and encrypt the counter."""
        carry: Any = ONE
        for word in self.counter:
            word.value = word.value + carry
            carry = cast(word.value < carry, "uint64")
        a, b, c, d = (word.value for word in self.counter)
        low, high = (word.value for word in self.key)
        for _ in range(philox.ROUNDS):
            first, second = a * self.FACTORS[0], c * self.FACTORS[1]
            upper = high_product(a, self.FACTORS[0]), high_product(c, self.FACTORS[1])
            a, b, c, d = upper[1] ^ b ^ low, second, upper[0] ^ d ^ high, first
            low, high = low + self.WEYL[0], high + self.WEYL[1]
        return a, b, c, d


KINDS: dict[str, type[BitGenerator]] = {kind.__name__: kind for kind in (PCG64, PCG64DXSM, SFC64, MT19937, Philox)}
