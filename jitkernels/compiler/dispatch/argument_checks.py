"""Argument guards of a compiled entry: check types, dtypes, shapes and strides, and load the symbolic extents."""

import struct
from typing import Any

import numpy as np

from jitkernels.compiler.dispatch.entry_builder import EntryBuilder
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.call_abi import ArrayArgument, Bound, ScalarSymbol
from jitkernels.compiler.ir.static_dim_policy import MAX_STATIC_EXTENT, MIN_STATIC_ELEMENTS
from jitkernels.compiler.ir.symbolic_dims import Extent, Guard, Number, bare
from jitkernels.core import dtypes
from jitkernels.runtime.abi_layout import ALIGNED, CONTIGUOUS, WRITEABLE, Offset

SAME_BITS = {"int": "int64", "float": "float64"}
"""The dtype with the same bits as each Python number type."""


def _bits(value: Any, dtype: str) -> int:
    """The bit pattern of `value` in `dtype`, as an unsigned int."""
    return int.from_bytes(np.asarray(value, dtype).tobytes(), "little")


class ArgumentGuards(EntryBuilder):
    """The part of the entry that checks and unpacks the arguments."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.step_objects: list[str] = []
        self.leaf_objects: list[str] = []
        self.number_addresses: list[str] = []

    def _object(self, argument: ArrayArgument) -> str:
        if argument.source < 0:
            return self.load("ptr", "%context", 8 * ~argument.source)
        return self.step_objects[argument.source]

    def _number(self, argument: ArrayArgument, number_object: str) -> str:
        """Guard the type of a number, store the address of its value in the frame, and return that address."""
        self.types.add(argument.number)
        kind = self.load("ptr", number_object, Offset.TYPE)
        self.require(self.new(f"icmp eq ptr {kind}, @jk_type_{argument.number}"))
        if argument.number == "int":
            value_address = self.variable("i64")
            self.require(self.new(f"call i1 @jk_whole(ptr {number_object}, ptr {value_address})"))
        else:
            value_address = self.new(f"getelementptr i8, ptr {number_object}, i64 {int(Offset.FLOAT_VALUE)}")
        self.keep(argument.word, "ptr", value_address)
        return value_address

    def _integer(self, number: int, bits: int = 64) -> str:
        """Load a Python or NumPy int argument, extended to `bits` bits."""
        kind = self.arguments[number].number
        dtype = dtypes.TABLE["int64" if kind == "int" else kind]
        loaded = self.new(f"load {dtype.llvm}, ptr {self.number_addresses[number]}")
        if dtype.size * 8 == bits:
            return loaded
        return self.new(f"{'zext' if kind.startswith('u') else 'sext'} {dtype.llvm} {loaded} to i{bits}")

    def _whole(self, whole: ScalarSymbol) -> None:
        value = self._integer(whole.input)
        if whole.negated:
            value = self.new(f"sub i64 0, {value}")
        self.known.add(whole.symbol)
        self.block.known["atom", whole.symbol] = value
        if whole.symbol in self.symbols:
            self.keep(self.symbols[whole.symbol], "i64", value)

    def _bound(self, bound: Bound) -> None:
        kind = self.arguments[bound.input].number
        if bound.operation == "is":
            size = dtypes.TABLE[SAME_BITS.get(kind, kind)].size
            loaded = self.new(f"load i{8 * size}, ptr {self.number_addresses[bound.input]}")
            text = f"icmp eq i{8 * size} {loaded}, {_bits(bound.bound, SAME_BITS.get(kind, kind))}"
        elif kind == "int" or kind[0] in "iu":
            # 128 bits for uint64: signed 64 bits hold neither its large values nor a comparison with a negative bound.
            bits = 128 if kind == "uint64" else 64
            sign = {"<": "slt", "<=": "sle"}.get(bound.operation, "eq")
            text = f"icmp {sign} i{bits} {self._integer(bound.input, bits)}, {int(bound.bound)}"
        else:
            sign = {"<": "olt", "<=": "ole"}.get(bound.operation, "oeq")
            bits_of = struct.pack(">d", float(bound.bound)).hex().upper()
            text = f"fcmp {sign} double {self._double(bound.input)}, 0x{bits_of}"
        holds = self.new(text)
        self.expect(holds if bound.truth else self.new(f"xor i1 {holds}, true"))

    def _double(self, number: int) -> str:
        """Load a Python or NumPy float argument as a double, which represents it exactly."""
        kind = self.arguments[number].number
        llvm = dtypes.TABLE[SAME_BITS.get(kind, kind)].llvm
        loaded = self.new(f"load {llvm}, ptr {self.number_addresses[number]}")
        return loaded if llvm == "double" else self.new(f"fpext {llvm} {loaded} to double")

    def _arrays(self) -> None:
        """Guard the array arguments. Each kind of check runs over all arrays before one shared branch."""
        pairs = list(zip(self.arguments, self.leaf_objects, strict=True))
        arrays = [pair for pair in pairs if not pair[0].number and not pair[0].is_own]
        for argument, address in pairs:
            if argument.is_own:
                self.keep(argument.word, "ptr", address)
        for argument, array in arrays:
            if argument.field is None:
                self.array(array)
        self.settle()
        for argument, array in arrays:
            flags = ALIGNED | (CONTIGUOUS if argument.contiguous else 0)
            flags |= WRITEABLE if argument.is_written else 0
            if argument.field is not None and argument.field.is_record:
                self.flags(array, Offset.RECORD_FLAGS, flags & WRITEABLE)
            elif argument.field is not None:
                self.dimensions(array, len(argument.shape), flags)
            else:
                self.kind(array, argument.dtype, len(argument.shape), flags)
        self.settle()
        for argument, array in arrays:
            self._argument(argument, array)

    def _argument(self, argument: ArrayArgument, array: str) -> None:
        shape = self.load("ptr", array, Offset.ARRAY_EXTENTS) if argument.shape else ""
        for i, extent in enumerate(argument.shape):
            self._symbol(extent, self.load("i64", shape, 8 * i), least=2)
        if len(argument.shape) > 1 and isinstance(argument.shape[-1], Extent):
            # Large arrays with a short last extent have their own specialization, in which that extent is constant.
            long = self.new(f"icmp sgt i64 {self.extent(argument.shape[-1])}, {MAX_STATIC_EXTENT}")
            few = self.new(f"icmp slt i64 {self.extent(symbolic_dims.product(argument.shape))}, {MIN_STATIC_ELEMENTS}")
            self.expect(self.new(f"or i1 {long}, {few}"))
        if not argument.contiguous:
            strides = self.load("ptr", array, Offset.ARRAY_STRIDES)
            for i, stride in enumerate(argument.strides):
                if symbolic_dims.same(argument.shape[i], 1):
                    continue  # the stride of a dimension of extent 1 is never used
                loaded = self.load("i64", strides, 8 * i)
                if argument.field is not None:  # records do not overlap
                    distance = self.new(f"call i64 @llvm.abs.i64(i64 {loaded}, i1 false)")
                    self.expect(self.new(f"icmp sge i64 {distance}, {argument.field.itemsize}"))
                if not isinstance(stride, Extent):
                    self.expect(self.new(f"icmp eq i64 {loaded}, {int(stride) * argument.size}"))
                    continue
                rest = self.new(f"and i64 {loaded}, {argument.size - 1}")
                self.require(self.new(f"icmp eq i64 {rest}, 0"))
                self._symbol(stride, self.new(f"sdiv exact i64 {loaded}, {argument.size}"))
        self.keep(argument.word, "ptr", self._data(argument, array))

    def _data(self, argument: ArrayArgument, array: str) -> str:
        """The address of the first element; that of a field is guarded to be aligned."""
        if argument.field is None:
            return self.load("ptr", array, Offset.ARRAY_DATA)
        begin = self.load("ptr", array, Offset.RECORD_DATA if argument.field.is_record else Offset.ARRAY_DATA)
        data = self.new(f"getelementptr i8, ptr {begin}, i64 {argument.field.offset}")
        alignment = np.dtype(argument.dtype).alignment
        rest = self.new(f"and i64 {self.new(f'ptrtoint ptr {data} to i64')}, {alignment - 1}")
        self.expect(self.new(f"icmp eq i64 {rest}, 0"))
        return data

    def _symbol(self, extent: Number, loaded: str, least: int | None = None) -> None:
        """Bind a loaded extent to its symbol on first sight; guard it where it is a constant or already bound."""
        name = bare(extent)
        if name is None or name in self.known:
            self.expect(self.new(f"icmp eq i64 {loaded}, {self.extent(extent)}"))
            return
        self.known.add(name)
        self.block.known["atom", name] = loaded
        if least is not None:
            self.expect(self.new(f"icmp sge i64 {loaded}, {least}"))
        if name in self.symbols:
            self.keep(self.symbols[name], "i64", loaded)

    def _guard(self, guard: Guard) -> None:
        sign = {"==": "eq", "!=": "ne", ">": "sgt", ">=": "sge"}[guard.sign]
        self.expect(self.new(f"icmp {sign} i64 {self.extent(guard.extent)}, 0"))

    def _check_written_disjoint(self) -> None:
        """Guard that written arguments overlap no other argument."""
        arrays = [argument for argument in self.arguments if not argument.number and not argument.is_own]
        nbytes = [symbolic_dims.product(argument.shape) * argument.size for argument in arrays]
        for target, target_bytes in zip(arrays, nbytes, strict=True):
            if target.is_written and not target.contiguous:
                self._check_no_self_overlap(target)
            for other, other_bytes in zip(arrays, nbytes, strict=True) if target.is_written else ():
                if other is target or (other.is_written and other.word < target.word):
                    continue
                if None not in (target.field, other.field) and target.source == other.source:
                    continue  # fields of the same records
                data, other_data = (
                    self.new(f"load i64, ptr {self.new(f'getelementptr i64, ptr %frame, i64 {argument.word}')}")
                    for argument in (target, other)
                )
                size = self.extent(target_bytes)
                if not target.contiguous:
                    data, size = self.span(data, target)
                low, span = other_data, self.extent(other_bytes)
                if not other.contiguous:
                    low, span = self.span(other_data, other)
                self.expect(self.disjoint((data, size), (low, span))[0])

    def _check_no_self_overlap(self, target: ArrayArgument) -> None:
        """Guard that an array does not overlap itself: each stride exceeds the span of all smaller strides."""
        pairs = zip(target.strides, target.shape, strict=True)
        ordered = sorted(
            ((stride, extent) for stride, extent in pairs if not symbolic_dims.same(extent, 1)),
            key=lambda pair: abs(symbolic_dims.value_of(pair[0])),
        )
        span = "0"
        for stride, extent in ordered:
            step_value = self.here(stride)
            length = self.new(f"call i64 @llvm.abs.i64(i64 {step_value}, i1 false)")
            self.expect(self.new(f"icmp sgt i64 {length}, {span}"))
            spanned = self.new(f"mul i64 {length}, {self.here(extent - 1)}")
            span = self.new(f"add i64 {span}, {spanned}")
