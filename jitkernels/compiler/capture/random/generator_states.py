"""The states of NumPy's random generators as arrays over their memory, by the documented C interface of NumPy.

Compiled code takes these arrays as arguments and writes them, as any others: a call that bails out leaves the state as
it was, and the plain function draws the same numbers.
"""

import ctypes
import functools
import struct
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jitkernels.compiler.ir.unsupported import UnsupportedError

MAX_GENERATORS = 64
"""Generators of one kind whose arrays are kept."""
OWNERS = ("Generator", "RandomState")
FIRST_ARRAY = 2
"""Where the arrays begin in an entry, behind the functions of the lock."""


class _StatePart(NamedTuple):
    """A part of a state: its dtype, the number of elements, and the offset from the address of the state.

    `pointer`: the offset of the pointer to the part, where it is a block of its own. `read`: the same from the
    dictionary ``bit_generator.state``, to verify the layout.
    """

    dtype: str
    size: int
    offset: int
    read: Callable[[Any], Any]
    pointer: int = -1


def _wide(*names: str) -> Callable[[Any], list[int]]:
    """Integers of 128 bits in words, the low one first."""
    return lambda state: [state["state"][name] >> shift & (1 << 64) - 1 for name in names for shift in (0, 64)]


def _buffered(offset: int) -> _StatePart:
    """The buffered upper half of a 64-bit number: whether there is one, and the half."""
    return _StatePart("uint32", 2, offset, lambda state: [state["has_uint32"], state["uinteger"]])


_PCG = (_StatePart("uint64", 4, 0, _wide("state", "inc"), pointer=0), _buffered(8))
PARTS: dict[str, tuple[_StatePart, ...]] = {
    "PCG64": _PCG,
    "PCG64DXSM": _PCG,
    "SFC64": (_StatePart("uint64", 4, 0, lambda state: state["state"]["state"]), _buffered(32)),
    "MT19937": (
        _StatePart("uint32", 624, 0, lambda state: state["state"]["key"]),
        _StatePart("int32", 1, 624 * 4, lambda state: [state["state"]["pos"]]),
    ),
    "Philox": (
        _StatePart("uint64", 4, 0, lambda state: state["state"]["counter"], pointer=0),
        _StatePart("uint64", 2, 0, lambda state: state["state"]["key"], pointer=8),
        _StatePart("int32", 1, 16, lambda state: [state["buffer_pos"]]),
        _StatePart("uint64", 4, 24, lambda state: state["buffer"]),
        _buffered(56),
    ),
}
"""The parts of the states of NumPy's bit generators."""


class GeneratorTable:
    """The entries of generators of one kind: how to acquire and release their locks, and their arrays.

    `owner` and `kind`: the names of the types of a generator and of its bit generator.
    """

    def __init__(self, owner: str, kind: str) -> None:
        self.owner, self.kind = owner, kind
        self.entries: dict[Any, tuple[Any, ...]] = {}

    def admit(self, generator: Any) -> tuple[Any, ...] | None:
        """The entry of a generator, new where there is none; None for one of another kind."""
        entry = self.entries.get(generator)
        if entry is None and table_of(generator) is self:
            if len(self.entries) >= MAX_GENERATORS:
                self.entries.clear()  # calls that are running hold the arrays they use
            entry = self.entries[generator] = entry_of(generator)
        return entry


_tables: dict[tuple[str, str], GeneratorTable] = {}


def table_of(generator: Any) -> GeneratorTable:
    """The table of the generator's kind. Raises UnsupportedError for unknown bit generators."""
    owner, own = type(generator).__name__, _bit_generator(generator)
    kind = type(own).__name__
    if owner not in OWNERS or type(own) is not getattr(np.random, kind, None) or kind not in PARTS:
        raise UnsupportedError(f"a random generator ({owner} of {kind}), which compiled code does not know")
    return _tables.setdefault((owner, kind), GeneratorTable(owner, kind))


def _bit_generator(generator: Any) -> Any:
    return generator._bit_generator if hasattr(generator, "_bit_generator") else generator.bit_generator


def entry_of(generator: Any) -> tuple[Any, ...]:
    """How to acquire and release the lock, and the arrays.

    Raises UnsupportedError where the memory does not hold what NumPy says that the state is.
    """
    bit_generator = _bit_generator(generator)
    kind = type(bit_generator).__name__
    address, state = bit_generator.ctypes.state_address, bit_generator.state
    arrays = []
    for part in PARTS[kind]:
        if part.pointer >= 0:
            begin = ctypes.c_uint64.from_address(address + part.pointer).value
        else:
            begin = address + part.offset
        array = _array_at(begin, part.dtype, part.size)
        if sys.byteorder != "little" or not np.array_equal(array, np.array(part.read(state), part.dtype)):
            raise UnsupportedError(f"a random generator ({kind}) whose state lies elsewhere than in known NumPys")
        arrays.append(array)
    if type(generator).__name__ == "RandomState":
        arrays += kept_normal(generator)
    return bit_generator.lock.acquire, bit_generator.lock.release, *arrays


def _array_at(address: int, dtype: str, size: int) -> Any:
    """An array over memory."""
    element = np.ctypeslib.as_ctypes_type(np.dtype(dtype))
    return np.frombuffer((element * size).from_address(address), dtype)


KEPT = 1.2345678901234567
"""A normal number that a probe keeps back."""


def kept_normal(generator: Any) -> list[Any]:
    """Of a `RandomState`: whether it keeps a normal number back, and the number; empty where these are not found."""
    offset = _offset_of_kept()
    if offset is None:
        return []
    flag, number = id(generator) + offset - 8, id(generator) + offset
    return [_array_at(flag, "int32", 1), _array_at(number, "float64", 1)]


@functools.cache
def _offset_of_kept() -> int | None:
    """Where the number lies in a `RandomState`, with an int 8 bytes before it; None if the state says otherwise."""
    probe = np.random.RandomState(0)  # what is looked at
    base, size = id(probe), type(probe).__basicsize__
    _keep(probe, 1, KEPT)
    offset = ctypes.string_at(base, size).find(struct.pack("d", KEPT))
    if offset < 8 or offset % 8:
        return None
    for has_gauss, gauss in ((1, KEPT), (0, 0.0), (1, -KEPT)):
        _keep(probe, has_gauss, gauss)
        at = ctypes.string_at(base + offset - 8, 16)
        if struct.unpack("i4xd", at) != (has_gauss, gauss):
            return None
    return offset


def _keep(probe: Any, has_gauss: int, gauss: float) -> None:
    probe.set_state({**probe.get_state(legacy=False), "has_gauss": has_gauss, "gauss": gauss})


def as_method(value: Any) -> Any:
    """`numpy.random.seed`, a plain function, as the method of the global generator that it calls; others unchanged."""
    module = sys.modules.get("numpy.random")
    if module is None or value is not getattr(module, "seed", None):
        return value
    return module.random_sample.__self__.seed
