"""The dispatch table of an everyday function: its schema's arrays and options as int64 words, and its contexts by key.

The layout is in `jitkernels.runtime.abi_layout`. The key of a context is options, dtype and the size class of every
extent, six bits each; a context of static shape has the extents in place of their classes.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels.attrs.schema.fields import NARROW, STORED_INTEGERS
from jitkernels.attrs.schema.schema_queries import AXIS, DTYPE, SHAPE
from jitkernels.attrs.schema.signature import Argument
from jitkernels.core import operand_forms
from jitkernels.dispatch.derived_extents import Extents
from jitkernels.dispatch.fast_path_kind import kind_of
from jitkernels.dispatch.native import launcher
from jitkernels.dispatch.option_types import IntOption, Real
from jitkernels.runtime.abi_layout import (
    ADDRESS_BITS,
    BACKWARDS,
    CONVERTING,
    DTYPES,
    EVERY,
    EXACT_BITS,
    KEEPS_BFLOAT16,
    KEEPS_INTEGERS,
    KEY_BASE,
    KIND_BITS,
    MAX_APART,
    MAX_FLOATS,
    MAX_OPERANDS,
    MAX_SHAPE,
    MAX_SLOTS,
    MAX_SYMBOLS,
    MOST_VALUES,
    NO_ELEMENTS,
    NUMBER,
    ContextWords,
    DerivedSpec,
    OperandSpec,
    OperatorTable,
    OptionSpec,
)
from jitkernels.runtime.c_api import SCALARS

STORED = (*NARROW, *STORED_INTEGERS)
"""The dtypes in keys, in the order of their numbers."""
KEPT = {NARROW[-1]: KEEPS_BFLOAT16, STORED_INTEGERS[0]: KEEPS_INTEGERS}
INTEGERS = ("int8", "uint8", "int32", "int64")
"""Integer dtypes that the dispatcher accepts or returns."""
_NAMES: dict[int, str] = {
    **{dtype.num: dtype.name for dtype in SCALARS},
    NUMBER: operand_forms.SCALAR_FORM,
    **{EVERY + apart - 2: operand_forms.every(apart) for apart in range(2, MAX_APART + 1)},
    BACKWARDS: operand_forms.REVERSED_FORM,
}
_GOLDEN = 0x9E3779B97F4A7C1
_MASK = (1 << 64) - 1


def words_for_python() -> "np.ndarray[Any, np.dtype[np.int64]]":
    """Return the words of a function all of whose calls Python serves: none binds, for lack of parameters."""
    words = np.zeros(OperatorTable.OPERAND_SPECS, np.int64)
    words[[OperatorTable.INPUTS, OperatorTable.PARAMETERS]] = -1
    words[OperatorTable.OPTIONS] = 1
    return words


class DispatchTable:
    """The table of one everyday function; raises ValueError where the schema exceeds its limits.

    parameters are the names of inputs, options and ``out``; extents: the integers of the C function, in its order;
    values the allowed objects of each option, by name (numbers: default and limits); stored: dtypes of the kernel.
    may_be_exact: whether keys can hold exact extents, if these are not large.
    """

    def __init__(
        self,
        inputs: Sequence[Argument],
        outputs: Sequence[Argument],
        extents: Extents,
        options: Mapping[str, Any],
        kinds: Mapping[str, tuple[str, ...]] | None = None,
        *,
        stored: Sequence[str] = (),
    ) -> None:
        self._inputs, self._options = inputs, dict(options)
        self._symbols, self._one_more = extents.names, extents.one_more
        self._kinds, self._stored = dict(kinds or {}), stored
        self._names = [sys.intern(name) for name in (*(a.name for a in inputs), *options, "out")]
        self._interned: list[object] = []
        self._factors: dict[str, int] = {}
        self._sizes = [
            name
            for name in extents.symbols
            if not isinstance(values := self._options.get(name), IntOption) or values.is_size
        ]
        self.may_be_exact = len(self._sizes) * EXACT_BITS + 11 < 62
        self._assign_factors()
        self._check(outputs)
        self.words = self._table(outputs, self._forms(extents))
        self._contexts: dict[int, np.ndarray[Any, np.dtype[np.int64]]] = {}
        self._addresses: dict[int, int] = {}
        self._countdowns: dict[int, int] = {}
        self._free_rows: Iterator[Any] = iter(())
        self._listed: set[int] = set()
        self.forget()

    def _assign_factors(self) -> None:
        """Assign the factor of each optional group, transposed input and choice in the options of a key."""
        factor = 1
        for argument in self._inputs:
            for flag in (argument.when, argument.transposed):
                if flag is not None and flag not in self._factors:
                    self._factors[flag] = factor
                    factor *= 2
        for name, values in self._options.items():
            if isinstance(values, tuple) and name != DTYPE:
                self._factors[name] = factor
                factor *= len(values)
        for name, values in self._kinds.items():
            if name not in self._factors:
                self._factors[name] = factor
                factor *= len(values)
        if DTYPES * factor > KEY_BASE:
            raise ValueError("too many options")

    def _forms(self, extents: Extents) -> list[list[int]]:
        """The words of the derived extents."""
        flags = {
            name: (self._factors[name], values[0])
            for name, values in self._options.items()
            if isinstance(values, tuple) and isinstance(values[0], bool)
        }
        return extents.words(flags)

    def _check(self, outputs: Sequence[Argument]) -> None:
        arrays = [*self._inputs, *outputs]
        spread = {a.extents[0].symbols[0] for a in arrays if a.spreads}
        limits = (
            (len(arrays), MAX_OPERANDS, "arrays"),
            (len(self._symbols), MAX_SYMBOLS, "extents"),
            (len(self._names), MAX_SLOTS, "parameters"),
            (len(spread), 1, "kinds of leading dimensions"),
            (max(len(a.extents) for a in arrays), MAX_SHAPE, "dimensions"),
            (max((len(e.symbols) for a in arrays for e in a.extents), default=0), 2, "symbols in an extent"),
            (max((len(v) for v in self._options.values() if isinstance(v, tuple)), default=0), MOST_VALUES, "values"),
            (sum(isinstance(v, Real) for v in self._options.values()), MAX_FLOATS, "floats"),
        )
        for count, most, what in limits:
            if count > most:
                raise ValueError(f"{count} {what}")
        if any(a.dtype not in (None, *INTEGERS) and a.dtype not in self._kinds for a in arrays):
            raise ValueError("a dtype of its own")
        if any(values != ("int8", "uint8") for values in self._kinds.values()):
            raise ValueError("dtypes to choose from")
        if any(e.spread and i and e.symbols[0] != a.trailing for a in arrays for i, e in enumerate(a.extents)):
            raise ValueError("leading dimensions that do not lead")

    def _table(
        self, outputs: Sequence[Argument], forms: Sequence[Sequence[int]]
    ) -> "np.ndarray[Any, np.dtype[np.int64]]":
        operand_specs = [self._operand_spec(a) for a in (*self._inputs, *outputs)]
        choices = [self._choice(name, values) for name, values in self._options.items()]
        start = OperatorTable.OPERAND_SPECS + OperandSpec.WORDS * len(operand_specs)
        end = start + OptionSpec.WORDS * len(choices)
        words = np.zeros(end + DerivedSpec.WORDS * len(forms), np.int64)
        arrays = (*self._inputs, *outputs)
        spread = [self._symbols.index(a.extents[0].symbols[0]) for a in arrays if a.spreads]
        trailing = [self._symbols.index(a.trailing) for a in self._inputs if a.trailing is not None]
        free = [a for a in self._inputs if a.spreads or a.trailing is not None]
        unconditional = [a for a in outputs if a.when not in self._options]  # where all options have their defaults
        plain = kind_of(self._inputs, unconditional, self._symbols, bool(self._options))
        picked, picker = self._gathered()
        header = {
            OperatorTable.INPUTS: len(self._inputs),
            OperatorTable.OPTIONS: len(self._options),
            OperatorTable.OUTPUTS: len(outputs),
            OperatorTable.PARAMETERS: len(self._names),
            OperatorTable.SYMBOLS: len(self._symbols),
            OperatorTable.FLOATS: sum(isinstance(values, Real) for values in self._options.values()),
            OperatorTable.SPREAD: spread[0] if spread else -1,
            OperatorTable.PLAIN: plain,
            OperatorTable.UNSIZED: sum(1 << i for i, s in enumerate(self._symbols) if s not in self._sizes),
            OperatorTable.OUT: id(self._names[-1]),
            OperatorTable.AT_ONCE: int(self._is_at_once(spread, outputs)),
            OperatorTable.PICKED: picked,
            OperatorTable.PICKER: picker,
            OperatorTable.NARROW: int(any(a.dtype not in (None, "int64") for a in (*self._inputs, *outputs))),
            OperatorTable.TRAILING: trailing[0] if trailing else -1,
            OperatorTable.MIRRORS: int(bool(trailing) and "axis" in self._options and free == self._inputs[:1]),
            OperatorTable.REDUCES: int(not outputs[0].fixed),
            OperatorTable.KEEPS: sum(KEPT.get(name, 0) for name in self._stored),
            OperatorTable.MOVES: int(outputs[0].moves is not None),
            OperatorTable.CHOICES: start,
            OperatorTable.HIDDEN: self._symbols_without_output(outputs),
            OperatorTable.DERIVED: end,
            OperatorTable.FORMS: len(forms),
            OperatorTable.ONE_MORE: sum(1 << i for i, s in enumerate(self._symbols) if s in self._one_more),
        }
        for index, value in header.items():
            words[index] = value
        words[OperatorTable.NAMES : OperatorTable.NAMES + len(self._names)] = [id(name) for name in self._names]
        words[OperatorTable.OPERAND_SPECS : start] = [word for operand_spec in operand_specs for word in operand_spec]
        words[start:end] = [word for option in choices for word in option]
        words[end:] = [word for form in forms for word in form]
        return words

    def _is_at_once(self, spread: Sequence[int], outputs: Sequence[Argument]) -> bool:
        """Whether a kernel needs all leading dimensions in one call, or would read a matrix again for each block."""
        shared = any(len(a.fixed) > 1 and not a.spreads for a in self._inputs)
        return not spread or not self._inputs or shared or not all(a.spreads for a in outputs)

    def _gathered(self) -> tuple[int, int]:
        """The input whose rows are gathered, and the input of indices that selects them; -1 where there are none."""
        names = [a.name for a in self._inputs]
        pairs = [(names.index(a.picks), i) for i, a in enumerate(self._inputs) if a.picks is not None]
        return pairs[0] if len(pairs) == 1 else (-1, -1)

    def _symbols_without_output(self, outputs: Sequence[Argument]) -> int:
        """The symbols, as bits, that no output has: where one of them is 0 results may be non-empty."""
        shown = {symbol for a in outputs for extent in a.extents for symbol in extent.symbols}
        looked_at = [a for a in self._inputs if a.dtype is not None]  # integers, where there are any
        if looked_at:
            shown &= {symbol for a in looked_at for extent in a.extents for symbol in extent.symbols}
        return sum(1 << i for i, symbol in enumerate(self._symbols) if symbol not in shown)

    def _operand_spec(self, argument: Argument) -> list[int]:
        fixed = [extent for extent in argument.extents if not extent.spread]
        group = [a.name for a in self._inputs if a.when == argument.when] if argument.when else []
        leads = group[:1] == [argument.name]
        first = [a.name for a in self._inputs].index(group[0]) if group else -1
        header = {
            OperandSpec.WHEN: self._factors[argument.when] if argument.when and (leads or not group) else 0,
            OperandSpec.LEADER: first,
            OperandSpec.INTEGER: self._number(argument) + 1 if argument.dtype is not None else 0,
            OperandSpec.VARIES: self._factors.get(argument.dtype or "", 0),
            OperandSpec.TELLS: self._factors.get(argument.dtype or "", 0) if self._determines_dtype(argument) else 0,
            OperandSpec.UNLESS: 1 + [a.when for a in self._inputs].index(argument.unless) if argument.unless else 0,
            OperandSpec.LEADS: int(argument.spreads),
            OperandSpec.TRAILS: int(argument.trailing is not None),
            OperandSpec.FIXED: len(fixed),
            OperandSpec.OPTIONAL: 2 if argument.is_number else int(bool(fixed) and fixed[-1].optional),
            OperandSpec.TURN: self._factors[argument.transposed] if argument.transposed else 0,
            OperandSpec.IN_PLACE: int(argument.in_place),
            OperandSpec.ALONG: 1 + [a.name for a in self._inputs].index(argument.along) if argument.along else 0,
        }
        shape: list[int] = []
        for extent in fixed:
            indices = [self._symbols.index(symbol) for symbol in extent.symbols]
            shape += [extent.factor, *[*indices, -1, -1][:2]]
        shape += [0] * (3 * MAX_SHAPE - len(shape))
        more = [extent.more for extent in fixed]
        return [*(header[word] for word in sorted(header)), *shape, *more, *[0] * (MAX_SHAPE - len(more))]

    def _number(self, argument: Argument) -> int:
        """NumPy's type number of an integer array; the first one of several dtypes."""
        name = argument.dtype or ""
        return int(np.dtype(self._kinds[name][0] if name in self._kinds else name).num)

    def _determines_dtype(self, argument: Argument) -> bool:
        """Whether an input determines a dtype field: the first one that can."""
        if argument.dtype not in self._kinds or argument.dtype in self._options:
            return False
        return [a.name for a in self._inputs if a.dtype == argument.dtype][:1] == [argument.name]

    def _choice(self, name: str, values: Any) -> list[int]:
        if name == AXIS:
            words = [OptionSpec.AXIS, 0, 0]
        elif name == SHAPE:
            words = [OptionSpec.A_SHAPE, 0, 0]
        elif isinstance(values, IntOption):
            words = [OptionSpec.AN_INT, self._symbols.index(name), *values.words()]
        elif isinstance(values, Real):
            words = [OptionSpec.A_FLOAT, 0, *values.words()]
        else:
            objects = [sys.intern(value) if isinstance(value, str) else value for value in values]
            if isinstance(values[0], bool):
                objects += map(np.bool_, values)
            kind = OptionSpec.A_DTYPE if name == DTYPE else OptionSpec.OF_VALUES
            words = [kind, self._factors.get(name, 0), len(objects), *map(id, objects)]
            self._interned.append(objects)
        return [*words, *[0] * (OptionSpec.DIFFERENT - len(words)), len(values) if isinstance(values, tuple) else 0]

    def key(self, fields: Mapping[str, Any], exact: bool = False) -> int:
        """The key of an attr's fields: of its size class, or of exactly its extents."""
        options = sum(factor * self._values_of(name).index(fields[name]) for name, factor in self._factors.items())
        key = DTYPES * options + STORED.index(fields["dtype"]) + KEY_BASE
        for symbol in self._sizes:
            extent = int(fields[symbol])
            size_class = max(extent - 1 - (symbol in self._one_more), 0).bit_length() if extent else NO_ELEMENTS
            key = key << EXACT_BITS | extent if exact else key << 6 | size_class
        return key | 1 << 62 if exact else key

    def take_missed(self) -> tuple[int, dict[str, Any]]:
        """The key of the size class that a call missed, and the fields of the class's largest member; (0, {}) if none.

        Floats are not in the key, so they are not among the fields; ints that are not sizes get any valid value.
        """
        key = int(self.words[OperatorTable.MISSED])
        self.words[OperatorTable.MISSED] = 0
        if not key or key >= CONVERTING:  # or a key of exact extents
            return 0, {}
        symbols, fields = len(self._sizes), dict[str, Any]()
        for i, name in enumerate(self._sizes, 1):
            size_class = key >> 6 * (symbols - i) & 63
            fields[name] = 0 if size_class == NO_ELEMENTS else (1 << size_class) + (name in self._one_more)
        for name, values in self._options.items():
            if isinstance(values, IntOption) and not values.is_size:
                fields[name] = values.least if values.default is None else values.default
        options, wide = divmod((key >> 6 * symbols) - KEY_BASE, DTYPES)
        fields["dtype"] = STORED[wide]
        for name, factor in self._factors.items():
            values = self._values_of(name)
            fields[name] = values[options // factor % len(values)]
        return key, fields

    def _values_of(self, name: str) -> tuple[Any, ...]:
        """The allowed values of a field that keys encode."""
        values: tuple[Any, ...] = self._options.get(name) or self._kinds.get(name) or (False, True)
        return values

    def can_be_exact(self, fields: Mapping[str, Any]) -> bool:
        """Whether a context for exactly these extents is possible."""
        return self.may_be_exact and all(fields[symbol] < 1 << EXACT_BITS for symbol in self._sizes)

    def take_wanted(self, entry: int) -> tuple[int, list[str]]:
        """The key of the fused-cast nest that a call missed, and the forms of its inputs; (0, []) if none."""
        key = int(self.words[OperatorTable.WANTED])
        self.words[OperatorTable.WANTED] = 0
        if not key or key & (1 << ADDRESS_BITS) - 1 not in (0, entry):  # overwritten by another call
            return 0, []
        key |= entry
        if key in self._listed and not self.is_due(key):
            return 0, []
        kinds = [key >> ADDRESS_BITS + KIND_BITS * i & (1 << KIND_BITS) - 1 for i in range(len(self._inputs))]
        return key, [_NAMES[kind] for kind in reversed(kinds)]

    def is_due(self, key: int) -> bool:
        """Whether the countdown of a key has ended, so that Python handles this call."""
        return key in self._listed and int(self._contexts[key][ContextWords.COUNTDOWN]) <= 0

    def take_count(self, key: int) -> int:
        """How many calls of a key the dispatcher counted since the last `put` or `take_count`; 0 for an unknown key."""
        if key not in self._listed:
            return 0
        before, self._countdowns[key] = self._countdowns[key], int(self._contexts[key][ContextWords.COUNTDOWN])
        return before - self._countdowns[key]

    def put(self, key: int, entry: int, long: bool, countdown: int = launcher.NEVER) -> None:
        """Register machine code, which is never freed, under a key.

        The words of a key are never moved, as a call without the interpreter lock may be reading them.
        """
        if 4 * (len(self._contexts) + 1) > len(self._keys):
            self._set_hash_table(np.zeros(2 * len(self._keys), np.int64))
            for known in self._listed:
                self._insert(known)
        context = entry, long, countdown, bool(key >> 62)  # the words of `ContextWords`
        self.words[OperatorTable.EXACT] |= key >> 62
        if key not in self._contexts:
            self._allocate(key, len(context))
        self._contexts[key][:] = context
        self._countdowns[key] = countdown
        self._listed.add(key)
        self._insert(key)

    def _allocate(self, key: int, words: int) -> None:
        """Allocate the words of a key; many keys share an array."""
        # One atomic step, since a signal handler may allocate as well.
        room = next(self._free_rows, None)
        if room is None:
            rows = iter(np.zeros((64, words), np.int64))
            room, self._free_rows = next(rows), rows
        self._addresses[key] = room.ctypes.data
        self._contexts[key] = room  # last: its presence means that the address is set

    def _insert(self, key: int) -> None:
        slots = len(self._keys) // 2
        slot = (((key * _GOLDEN) & _MASK) >> 32) & (slots - 1)
        while self._keys[2 * slot] not in (0, key):
            slot = (slot + 1) & (slots - 1)
        self._keys[2 * slot + 1] = self._addresses[key]
        self._keys[2 * slot] = key

    def _set_hash_table(self, keys: "np.ndarray[Any, np.dtype[np.int64]]") -> None:
        self._keys = keys
        self.words[OperatorTable.KEYS] = keys.ctypes.data
        self.words[OperatorTable.MASK] = len(keys) // 2 - 1

    def forget(self) -> None:
        """Remove all contexts from the dispatcher."""
        self._listed.clear()
        self.words[OperatorTable.EXACT] = 0
        self._set_hash_table(np.zeros(128, np.int64))
