"""What compiled calls do with arguments: see whether they are of the kind expected, and read extents from them."""

import struct

from jitkernels.graph import extents
from jitkernels.graph.emit.call_text import CallText
from jitkernels.graph.emit.interface import Argument, Bound, Whole
from jitkernels.graph.extents import Extent, Guard, Number, bare
from jitkernels.graph.short import MANY, MOST
from jitkernels.native.layout import ALIGNED, CONTIGUOUS, WRITEABLE, Offset


class TakenArguments(CallText):
    """The part of the function that takes arguments."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.reached: list[str] = []
        self.given: list[str] = []
        self.numbers: list[str] = []

    def _object(self, argument: Argument) -> str:
        if argument.source < 0:
            return self.load("ptr", "%context", 8 * ~argument.source)
        return self.reached[argument.source]

    def _number(self, argument: Argument, found: str) -> str:
        """Require a number of a type, and have its address in the frame; the address."""
        self.types.add(argument.number)
        kind = self.load("ptr", found, Offset.TYPE)
        self.require(self.new(f"icmp eq ptr {kind}, @jk_type_{argument.number}"))
        if argument.number == "int":
            place = self.variable("i64")
            self.require(self.new(f"call i1 @jk_whole(ptr {found}, ptr {place})"))
        else:
            place = self.new(f"getelementptr i8, ptr {found}, i64 {int(Offset.FLOAT_VALUE)}")
        self.keep(argument.word, "ptr", place)
        return place

    def _whole(self, whole: Whole) -> None:
        value = self.new(f"load i64, ptr {self.numbers[whole.input]}")
        if whole.negated:
            value = self.new(f"sub i64 0, {value}")
        self.known.add(whole.symbol)
        self.block.known["atom", whole.symbol] = value
        if whole.symbol in self.symbols:
            self.keep(self.symbols[whole.symbol], "i64", value)

    def _bound(self, bound: Bound) -> None:
        place = self.numbers[bound.input]
        if self.arguments[bound.input].number == "int" or bound.operation == "is":
            sign = {"<": "slt", "<=": "sle"}.get(bound.operation, "eq")
            number = (
                bound.bound
                if isinstance(bound.bound, int)
                else struct.unpack("<q", struct.pack("<d", bound.bound))[0]
            )
            text = f"icmp {sign} i64 {self.new(f'load i64, ptr {place}')}, {number}"
        else:
            sign = {"<": "olt", "<=": "ole"}.get(bound.operation, "oeq")
            bits = struct.pack(">d", float(bound.bound)).hex().upper()
            text = f"fcmp {sign} double {self.new(f'load double, ptr {place}')}, 0x{bits}"
        holds = self.new(text)
        self.expect(holds if bound.truth else self.new(f"xor i1 {holds}, true"))

    def _arrays(self) -> None:
        """Require arrays of the kinds expected; what is looked at in each is looked at in all before a branch."""
        pairs = list(zip(self.arguments, self.given, strict=True))
        found = [pair for pair in pairs if not pair[0].number and not pair[0].is_own]
        for argument, address in pairs:
            if argument.is_own:
                self.keep(argument.word, "ptr", address)
        for _, array in found:
            self.array(array)
        self.settle()
        for argument, array in found:
            flags = ALIGNED | (CONTIGUOUS if argument.contiguous else 0)
            flags |= WRITEABLE if argument.is_written else 0
            self.kind(array, argument.dtype, len(argument.shape), flags)
        self.settle()
        for argument, array in found:
            self._argument(argument, array)

    def _argument(self, argument: Argument, array: str) -> None:
        shape = self.load("ptr", array, Offset.ARRAY_EXTENTS) if argument.shape else ""
        for i, extent in enumerate(argument.shape):
            self._symbol(extent, self.load("i64", shape, 8 * i), least=2)
        if len(argument.shape) > 1 and isinstance(argument.shape[-1], Extent):
            # Large arrays whose last extent is short have code of their own.
            long = self.new(f"icmp sgt i64 {self.extent(argument.shape[-1])}, {MOST}")
            few = self.new(f"icmp slt i64 {self.extent(extents.product(argument.shape))}, {MANY}")
            self.expect(self.new(f"or i1 {long}, {few}"))
        if not argument.contiguous:
            strides = self.load("ptr", array, Offset.ARRAY_STRIDES)
            for i, stride in enumerate(argument.strides):
                if extents.same(argument.shape[i], 1):
                    continue  # no step is taken
                found = self.load("i64", strides, 8 * i)
                if not isinstance(stride, Extent):
                    self.expect(self.new(f"icmp eq i64 {found}, {int(stride) * argument.size}"))
                    continue
                rest = self.new(f"and i64 {found}, {argument.size - 1}")
                self.require(self.new(f"icmp eq i64 {rest}, 0"))
                self._symbol(stride, self.new(f"sdiv exact i64 {found}, {argument.size}"))
        self.keep(argument.word, "ptr", self.load("ptr", array, Offset.ARRAY_DATA))

    def _symbol(self, extent: Number, found: str, least: int | None = None) -> None:
        """An extent that was read: a number, a symbol for the first time, or one that is known."""
        name = bare(extent)
        if name is None or name in self.known:
            self.expect(self.new(f"icmp eq i64 {found}, {self.extent(extent)}"))
            return
        self.known.add(name)
        self.block.known["atom", name] = found
        if least is not None:
            self.expect(self.new(f"icmp sge i64 {found}, {least}"))
        if name in self.symbols:
            self.keep(self.symbols[name], "i64", found)

    def _guard(self, guard: Guard) -> None:
        sign = {"==": "eq", "!=": "ne", ">": "sgt", ">=": "sge"}[guard.sign]
        self.expect(self.new(f"icmp {sign} i64 {self.extent(guard.extent)}, 0"))

    def _written_apart(self) -> None:
        """Require that what is written overlaps no other argument."""
        arrays = [one for one in self.arguments if not one.number and not one.is_own]
        for target in arrays:
            if target.is_written and not target.contiguous:
                self._apart_in_itself(target)
            for other in arrays if target.is_written else ():
                if other is target or (other.is_written and other.word < target.word):
                    continue
                data, at = (
                    self.new(f"load i64, ptr {self.new(f'getelementptr i64, ptr %frame, i64 {one.word}')}")
                    for one in (target, other)
                )
                size = self.extent(extents.product(target.shape) * target.size)
                if not target.contiguous:
                    data, size = self.span(data, target)
                low, span = at, self.extent(extents.product(other.shape) * other.size)
                if not other.contiguous:
                    low, span = self.span(at, other)
                self.expect(self.apart((data, size), (low, span))[0])

    def _apart_in_itself(self, target: Argument) -> None:
        """Require that each step of a dimension goes beyond all that those of smaller steps span."""
        pairs = zip(target.strides, target.shape, strict=True)
        ordered = sorted(
            ((step, extent) for step, extent in pairs if not extents.same(extent, 1)),
            key=lambda pair: abs(extents.value_of(pair[0])),
        )
        reach = "0"
        for step, extent in ordered:
            found = self.here(step)
            length = self.new(f"call i64 @llvm.abs.i64(i64 {found}, i1 false)")
            self.expect(self.new(f"icmp sgt i64 {length}, {reach}"))
            spanned = self.new(f"mul i64 {length}, {self.here(extent - 1)}")
            reach = self.new(f"add i64 {reach}, {spanned}")
