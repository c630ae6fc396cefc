"""Emit LLVM IR that infers the extents of a call from the shapes of its arrays, as `shape_inference` in Python."""

import functools
import math
from typing import Any

import numba.core.types
from llvmlite import ir
from numba.core import cgutils
from numba.np import arrayobj

from jitkernels.attrs.schema.schema_queries import trailing_of
from jitkernels.attrs.schema.signature import Argument, DeclaredExtent
from jitkernels.core import dtypes

types: Any = numba.core.types
INT = ir.IntType(64)
BIT = ir.IntType(1)
DOUBLE = ir.DoubleType()


class ShapeEmitter:
    """The inferred values of a call as LLVM values: `symbols` by name, `pointers` of inputs, `floats` by name.

    `holds` is the condition that all arguments match what the kernel accepts.
    """

    def __init__(self, emitter: Any) -> None:
        self.site, self.context, self.builder = emitter.site, emitter.context, emitter.builder
        self.kinds, self.values = emitter.kinds, emitter.values
        self.holds: Any = BIT(1)
        self.symbols: dict[str, Any] = {}
        self.pointers: list[Any] = []
        self.floats: dict[str, Any] = {}
        self.lead: list[Any] = []
        self.trail: list[Any] = []
        self._spans: list[tuple[Argument, Any, Any]] = []

    def require(self, condition: Any) -> None:
        """Add a condition to `holds`."""
        self.holds = self.builder.and_(self.holds, condition)

    def _is(self, value: Any, other: Any) -> Any:
        return self.builder.icmp_signed("==", value, other)

    def _product(self, values: Any) -> Any:
        return functools.reduce(self.builder.mul, values, INT(1))

    def solve(self) -> None:
        """Compute every symbol, and require that all arrays agree with them."""
        self._take_options()
        shapes = [(o.argument, self._array(name, o)) for name, o in self.site.present]
        arrays = [(argument, shape) for argument, shape in shapes if shape is not None]
        self._split(arrays)
        for plain in (True, False):  # plain symbols first, so that the others are checked against them
            for argument, shape in arrays:
                for extent, size in self._pairs(argument, shape):
                    if len(extent.symbols) == 1 and extent.is_plain == plain:
                        self._define(extent, size)
        for argument, shape in arrays:
            for extent, size in self._pairs(argument, shape):
                self.require(self._is(size, self._extent(extent)))
            for missing in argument.fixed[len(self._pairs(argument, shape)) :]:
                self.symbols.setdefault(missing.symbols[0], INT(1))
        attr = self.site.attr.fields()
        absent = self.site.absent()
        self.symbols |= {name: INT(attr[name]) for name in absent if name not in self.symbols and name in attr}
        for name in self.site.sizes:
            if name not in absent:
                self.require(self.builder.icmp_signed(">", self.symbols[name], INT(0)))

    def _take_options(self) -> None:
        """Integers and floats that options determine."""
        fields = self.site.schema.known_fields()
        attr = self.site.attr.fields()
        scalars = self.site.scalars
        for name, field in fields.items():
            if field.kind == "whole" and name in scalars:
                value = self.context.cast(self.builder, self.values[name], self.kinds[name], types.int64)
                for sign, limit in ((">=", field.least), ("<=", field.most)):
                    self.require(self.builder.icmp_signed(sign, value, INT(int(limit))))
                self.symbols[name] = value
            elif field.kind == "whole":
                self.symbols[name] = INT(attr[name])
        for name in self.site.schema.floats:
            value = self._float(name, fields[name]) if name in scalars else DOUBLE(attr[name])
            self.floats[name] = cgutils.alloca_once_value(self.builder, value)
        if "shape" in scalars:
            kind, value = self.kinds["shape"], self.values["shape"]
            several = isinstance(kind, types.BaseTuple)
            parts = cgutils.unpack_tuple(self.builder, value, kind.count) if several else [value]
            element = kind.dtype if several else kind
            self.lead = [self.context.cast(self.builder, part, element, types.int64) for part in parts]
        elif isinstance(shape := self.site.constants.get("shape"), int):
            self.lead = [INT(shape)]

    def _float(self, name: str, field: Any) -> Any:
        """A float option as the kernel reads it: finite, within its limits, rounded to the computing dtype."""
        builder = self.builder
        value = self.context.cast(builder, self.values[name], self.kinds[name], types.float64)
        rounded = value
        if dtypes.named(self.site.attr.fields()["dtype"]).computed == "float32":
            rounded = builder.fpext(builder.fptrunc(value, ir.FloatType()), DOUBLE)
        zero = DOUBLE(0.0)
        same_zero = builder.icmp_signed(
            "==", builder.zext(builder.fcmp_ordered("==", value, zero), INT),
            builder.zext(builder.fcmp_ordered("==", rounded, zero), INT),
        )  # fmt: skip
        self.require(same_zero)
        finite = math.nextafter(math.inf, 0)
        self.require(builder.fcmp_ordered(">=", rounded, DOUBLE(max(field.least, -finite))))
        self.require(builder.fcmp_ordered("<=", rounded, DOUBLE(min(field.most, finite))))
        return rounded

    def _array(self, name: str, operand: Any) -> Any:
        """The shape of an operand, after storing its pointer; None for a scalar."""
        builder, kind, value = self.builder, types.unliteral(self.kinds[name]), self.values[name]
        if operand.ndim is None:
            element = types.float64 if self.site.attr.fields()["dtype"] == "float64" else types.float32
            self.pointers.append(
                cgutils.alloca_once_value(builder, self.context.cast(builder, value, self.kinds[name], element))
            )
            return None
        array = arrayobj.make_array(kind)(self.context, builder, value)
        shape = cgutils.unpack_tuple(builder, array.shape, kind.ndim)
        if kind.layout == "A":
            self.require(self._is_contiguous(kind, array, shape))
        self.pointers.append(array.data)
        self._spans.append((operand.argument, *self._span(kind, array, shape)))
        return shape

    def _is_contiguous(self, kind: Any, array: Any, shape: Any) -> Any:
        """Whether the strides of an array are those of C order."""
        builder = self.builder
        wanted: Any = INT(self.context.get_abi_sizeof(self.context.get_data_type(kind.dtype)))
        matches: Any = BIT(1)
        strides = cgutils.unpack_tuple(builder, array.strides, kind.ndim)
        for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
            matches = builder.and_(matches, self._is(stride, wanted))
            wanted = builder.mul(wanted, extent)
        return matches

    def _span(self, kind: Any, array: Any, shape: Any) -> tuple[Any, Any]:
        """The address range of an array."""
        begin = self.builder.ptrtoint(array.data, INT)
        size = INT(self.context.get_abi_sizeof(self.context.get_data_type(kind.dtype)))
        return begin, self.builder.add(begin, self._product([*shape, size]))

    def _split(self, arrays: Any) -> None:
        """Split off leading and trailing dimensions, which must be equal in all arrays that have them."""
        trailing = self.site.trailing()
        leads = [s[: len(s) - self._own(a, s)] for a, s in arrays if a.spreads]
        trails = [s[len(s) - trailing :] for a, s in arrays if a.trailing is not None and trailing]
        for groups in (leads, trails):
            for other in groups[1:]:
                for extent, other_extent in zip(groups[0], other, strict=True):
                    self.require(self._is(extent, other_extent))
        self.lead = leads[0] if leads else self.lead
        self.trail = trails[0] if trails else []
        for name in self.site.spread():
            self.symbols[name] = self._product(self.lead)
        if (name := trailing_of(self.site.schema)) is not None:
            self.symbols[name] = self._product(self.trail)

    def _own(self, argument: Argument, shape: Any) -> int:
        """How many dimensions of an array are not leading."""
        trailing = self.site.trailing() if argument.trailing is not None else 0
        return len(self._pairs(argument, shape)) + trailing

    def _pairs(self, argument: Argument, shape: Any) -> list[tuple[DeclaredExtent, Any]]:
        """The declared extents of an array paired with its actual ones."""
        trailing = self.site.trailing() if argument.trailing is not None else 0
        own = argument.fixed
        before = shape[: len(shape) - trailing]
        if argument.is_number and not before:
            return []
        if own and own[-1].optional and not argument.spreads and len(before) == len(own) - 1:
            own = own[:-1]
        return list(zip(own, before[len(before) - len(own) :], strict=True))

    def _define(self, extent: DeclaredExtent, size: Any) -> None:
        symbol = extent.symbols[0]
        if symbol not in self.symbols:
            value = self.builder.sub(size, INT(extent.more)) if extent.more else size
            self.symbols[symbol] = self.builder.sdiv(value, INT(extent.factor)) if extent.factor > 1 else value

    def _extent(self, extent: DeclaredExtent) -> Any:
        value = self._product([INT(extent.factor), *(self.symbols[symbol] for symbol in extent.symbols)])
        return self.builder.add(value, INT(extent.more)) if extent.more else value

    def result(self, index: int) -> list[Any]:
        argument = self.site.outputs[index]
        missing = {
            e.symbols[0]
            for name, o in self.site.present
            for e in o.argument.fixed
            if e.optional and not o.argument.spreads and o.ndim == len(o.argument.fixed) - 1
        }
        own = [e for e in argument.fixed if not (e.optional and e.symbols[0] in missing)]
        fixed = [self._extent(extent) for extent in own]
        lead = self.lead if argument.spreads else []
        return [*lead, *fixed, *(self.trail if argument.trailing is not None else [])]

    def output_pointers(self) -> list[Any]:
        """Pointers of the arrays of ``out``, which must have the result shapes and must not overlap other arrays."""
        builder = self.builder
        kind, value = self.kinds["out"], self.values["out"]
        several = isinstance(kind, types.BaseTuple)
        kinds = kind.types if several else (kind,)
        values = [builder.extract_value(value, i) for i in range(len(kinds))] if several else [value]
        if len(kinds) != len(self.site.outputs):
            self.require(BIT(0))
            return [INT(0).inttoptr(ir.IntType(8).as_pointer())] * len(self.site.outputs)
        pointers, spans = [], list[tuple[Any, Any]]()
        for index, (array_type, array_value) in enumerate(zip(kinds, values, strict=True)):
            array = arrayobj.make_array(array_type)(self.context, builder, array_value)
            shape = cgutils.unpack_tuple(builder, array.shape, array_type.ndim)
            wanted = self.result(index)
            fits = str(array_type.dtype) == self.site.signature.outputs[index].dtype and len(shape) == len(wanted)
            self.require(BIT(int(fits and array_type.aligned and array_type.layout in "CA")))
            for extent, other in zip(shape, wanted, strict=False):
                self.require(self._is(extent, other))
            if array_type.layout == "A":
                self.require(self._is_contiguous(array_type, array, shape))
            begin, end = self._span(array_type, array, shape)
            for argument, first, last in self._spans:
                same = builder.and_(self._is(begin, first), self._is(end, last))
                allowed = BIT(int(argument.in_place and self.site.outputs[index].in_place))
                self.require(builder.or_(self._disjoint(begin, end, first, last), builder.and_(same, allowed)))
            for first, last in spans:
                self.require(self._disjoint(begin, end, first, last))
            spans.append((begin, end))
            pointers.append(array.data)
        return pointers

    def _disjoint(self, begin: Any, end: Any, first: Any, last: Any) -> Any:
        """Whether two address ranges are disjoint."""
        builder = self.builder
        return builder.or_(builder.icmp_unsigned("<=", end, first), builder.icmp_unsigned("<=", last, begin))

    def key(self) -> list[Any]:
        """The words of `CallSite.key`."""
        builder = self.builder
        words = []
        for name in self.site.sizes:
            below = builder.sub(self.symbols[name], INT(1))
            words.append(builder.sub(INT(64), builder.ctlz(below, BIT(0))))
        if self.site.schema.floats:
            zeros: Any = INT(0)
            for i, name in enumerate(self.site.schema.floats):
                is_zero = builder.fcmp_ordered("==", builder.load(self.floats[name]), DOUBLE(0.0))
                zeros = builder.or_(zeros, builder.shl(builder.zext(is_zero, INT), INT(i)))
            words.append(zeros)
        return words
