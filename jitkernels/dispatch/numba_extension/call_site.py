"""A call site of an everyday function in compiled code: its compile-time facts, and its table of kernels.

A call whose arrays match what a kernel accepts (C order, the kernel's dtype, extents that agree) runs without Python:
its extents select a kernel in the table. Every other call falls back to the everyday function, which converts,
broadcasts, raises errors, and whose kernel is then added to the table.
"""

import math
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.schema_queries import AXIS, DTYPE, SHAPE, inputs_of, outputs_of, trailing_of
from jitkernels.attrs.schema.signature import Argument
from jitkernels.dispatch.kernel_cache import KernelFuncs
from jitkernels.dispatch.native import launcher
from jitkernels.dispatch.operators import Everyday
from jitkernels.selection import overrides

SLOTS = 64
"""Kernels that the table of a call site holds, by a hash of their size class."""
GOLDEN = 0x9E3779B97F4A7C15
SAMPLE_EXTENT = 2
"""The value of every symbol in the sample call that determines the types of results."""
_sites: "weakref.WeakSet[CallSite]" = weakref.WeakSet()


class PresentInput(NamedTuple):
    """A present input: its declaration, number of dimensions, and layout in numba's notation.

    `ndim` is None for a scalar.
    """

    argument: Argument
    ndim: int | None
    dtype: str = ""
    layout: str = "C"

    @property
    def is_transposed(self) -> bool:
        """Whether it is a matrix in Fortran order, which its schema accepts without a copy."""
        return self.layout == "F" and self.argument.transposed is not None and self.ndim == 2


class CallSite:
    """All calls of an everyday function with arguments of the same numba types.

    constants: parameters known at compile time. operands: the present inputs by name. scalars: options known at run
    time, with their values in the sample call. result: of the sample call. reason: why every call falls back to
    Python, or None.
    """

    def __init__(
        self,
        holder: Everyday,
        constants: Mapping[str, Any],
        operands: Mapping[str, PresentInput],
        scalars: Mapping[str, Any],
    ) -> None:
        self.holder, self.constants = holder, dict(constants)
        self.operands, self.scalars = dict(operands), dict(scalars)
        self.schema: type[KernelAttr] = holder.schema
        if holder.schema.beyond is not None:
            name, most, other = holder.schema.beyond
            if name in operands and (operands[name].ndim or 0) > most:
                from jitkernels.attrs.schema.registry import op_schema

                self.schema = op_schema(other)
        sample = {**self.constants, **self.scalars}
        sample |= {name: self._sample(operand) for name, operand in self.operands.items()}
        self.result = holder.callable(**sample)
        self.call = self.schema.call(**{self._renamed(name): value for name, value in sample.items()})
        self.attr = self.call.attr
        self.signature = self.attr.signature()
        self.sizes = [name for name, f in self.schema.known_fields().items() if f.is_integer and f.is_size]
        self.slots = np.zeros(SLOTS, np.int64)
        self._descriptors: dict[tuple[int, ...], Any] = {}
        self._alive: list[Any] = []
        self.reason = self._reason()
        _sites.add(self)

    def _renamed(self, name: str) -> str:
        """The name of a parameter in the schema that serves calls with more dimensions."""
        if self.schema is self.holder.schema:
            return name
        position = [*self.holder.schema.parameters().parameters].index(name)
        return [*self.schema.parameters().parameters][position]

    @property
    def present(self) -> list[tuple[str, PresentInput]]:
        """The present inputs in the order of the kernel: parameter name, and the operand as `schema` declares it."""
        operands = []
        for name, operand in self.operands.items():
            own = self._renamed(name)
            (argument,) = (a for a in inputs_of(self.schema) if a.name == own)
            operands.append((name, operand._replace(argument=argument)))
        order = [a.name for a in inputs_of(self.schema)]
        return sorted(operands, key=lambda pair: order.index(pair[1].argument.name))

    def trailing(self) -> int:
        """The number of trailing dimensions of the arrays that may have some."""
        own = [operand for _, operand in self.present if operand.argument.trailing is not None]
        if trailing_of(self.schema) is None or not own:
            return 0
        dimensions = own[0].ndim or 0
        if AXIS in self.schema.options:
            return -1 - (int(self.constants.get(AXIS, -1)) % max(dimensions, 1) - dimensions)
        return max(dimensions - len(own[0].argument.fixed), 0)

    def _sample(self, operand: PresentInput) -> Any:
        """An operand of the sample call: every symbol is 2, and so are leading and trailing dimensions."""
        if operand.ndim is None:
            return np.dtype(operand.dtype).type(1).item()
        known = dict.fromkeys((s for e in operand.argument.extents for s in e.symbols), SAMPLE_EXTENT)
        known |= {name: value for name, value in self._wholes().items() if name in known}
        fixed = [extent.value(known) for extent in operand.argument.fixed]
        if operand.argument.trailing is not None:
            fixed = [SAMPLE_EXTENT] * operand.ndim
        if operand.argument.is_number:
            return np.ones([1] * operand.ndim, operand.dtype)
        shape = [SAMPLE_EXTENT] * (operand.ndim - len(fixed)) + fixed[max(len(fixed) - operand.ndim, 0) :]
        order: Any = "F" if operand.layout == "F" else "C"
        return np.ones(shape, operand.dtype, order) if operand.dtype[0] == "f" else np.zeros(
            shape, operand.dtype, order
        )  # fmt: skip

    def _wholes(self) -> dict[str, int]:
        return {n: v for n, v in {**self.constants, **self.scalars}.items() if type(v) is int and n != AXIS}

    def _reason(self) -> str | None:
        """Why every call falls back to Python, or None."""
        arrays = [operand for _, operand in self.present]
        if launcher.reason_for_slow_path() is not None:
            return launcher.reason_for_slow_path()
        if self.call.finish or self.call.narrow is not None:
            return "the axis is not the last one"
        if len(arrays) != len(self.signature.inputs):
            return "the kernel has other array arguments"
        for operand, array, value in zip(arrays, self.signature.inputs, self.call.inputs, strict=True):
            if why := self._reason_against(operand, array, value):
                return f"{operand.argument.name}: {why}"
        leads = {self.lead(operand) for operand in arrays if operand.argument.spreads}
        if len(leads) > 1:
            return "leading dimensions are broadcast"
        known = {s for operand in arrays for e in operand.argument.extents for s in e.symbols} | self.spread()
        known |= {*self._wholes()} | ({trailing_of(self.schema) or ""} if arrays else set())
        known |= self.absent()
        unknown = [name for name, _ in self.signature.integers if name not in known]
        return f"no argument determines {', '.join(unknown)}" if unknown else None

    def _reason_against(self, operand: PresentInput, array: Any, value: Any) -> str | None:
        """Why the kernel cannot accept an array, whatever its extents are."""
        if operand.ndim is None:
            return None if operand.argument.is_number else "a scalar is broadcast"
        if operand.dtype != array.dtype:
            return f"{operand.dtype} is converted to {array.dtype}"
        if operand.argument.is_number:
            return None if operand.ndim < 2 else "it has too many dimensions"
        if operand.layout == "F" and not operand.is_transposed:
            return "its memory layout is not the kernel's"
        if operand.argument.transposed and self.attr.fields()[operand.argument.transposed] != operand.is_transposed:
            return "its memory layout is not the kernel's"
        if operand.argument.along and operand.ndim != len(operand.argument.extents):
            return "it is broadcast"
        return None if value.size == math.prod(array.shape) else "it is broadcast"

    def lead(self, operand: PresentInput) -> int:
        """The number of leading dimensions of an operand."""
        own = len(operand.argument.fixed) + (self.trailing() if operand.argument.trailing is not None else 0)
        return (operand.ndim or 0) - own

    def spread(self) -> set[str]:
        """The symbols of leading dimensions."""
        arrays = [*inputs_of(self.schema), *outputs_of(self.schema)]
        return {a.extents[0].symbols[0] for a in arrays if a.spreads}

    def absent(self) -> set[str]:
        """The symbols that only absent inputs have; their values are the same in any such call."""
        present = {o.argument.name for _, o in self.present}
        of = [({s for e in a.extents for s in e.symbols}, a.name in present) for a in inputs_of(self.schema)]
        determined = set().union(*(symbols for symbols, is_there in of if is_there))
        return set().union(*(symbols for symbols, is_there in of if not is_there)) - determined

    @property
    def outputs(self) -> list[Argument]:
        """The declarations of the results, in order."""
        return [next(a for a in outputs_of(self.schema) if a.name == o.name) for o in self.signature.outputs]

    def slow(self, *values: Any) -> Any:
        """The fallback: the everyday call with operands, scalars, and ``out`` if passed; registers its kernel."""
        names = [*self.operands, *self.scalars]
        arguments = dict(zip(names, values, strict=False))
        out = {"out": values[len(names)]} if len(values) > len(names) else {}
        result = self.holder.callable(**self.constants, **arguments, **out)
        if self.reason is None and not overrides.blocks:
            self._learn(arguments)
        return result

    def _learn(self, passed: Mapping[str, Any]) -> None:
        """Add the kernel of a call's size class to the table."""
        arguments = {**self.constants, **passed}
        call = self.schema.call(**{self._renamed(name): value for name, value in arguments.items()})
        fields = self.attr.fields()
        flags = {a.transposed: fields[a.transposed] for a in inputs_of(self.schema) if a.transposed is not None}
        attr = type(call.attr)(**{**call.attr.fields(), **flags})
        kernel = KernelFuncs.cache().of_class(attr)
        if not kernel.address or attr.signature().c_arguments != self.signature.c_arguments:
            return
        key = self.key(attr)
        descriptor = self._descriptors.get((kernel.address, *key))
        if descriptor is None:
            descriptor = self._descriptors[kernel.address, *key] = np.array([kernel.address, *key], np.int64)
            self._alive.append(kernel)
        self.slots[slot_of(key)] = descriptor.ctypes.data

    def key(self, attr: KernelAttr) -> list[int]:
        """The size class of every extent, and which floats are 0, as that may be another computation."""
        fields = attr.fields()
        classes = [(max(int(fields[name]), 1) - 1).bit_length() for name in self.sizes]
        zeros = sum((fields[name] == 0) << i for i, name in enumerate(self.schema.floats))
        return [*classes, zeros] if self.schema.floats else classes

    def forget(self) -> None:
        """Empty the table; descriptors stay allocated, as other threads may be reading them."""
        self.slots[:] = 0


def slot_of(key: Sequence[int]) -> int:
    """The index of a key in the table."""
    mixed = 0
    for word in key:
        mixed = (mixed + word + 1) * GOLDEN & (1 << 64) - 1
    return mixed >> 64 - (SLOTS.bit_length() - 1)


def clear_tables() -> None:
    """Empty all tables, after selections may have changed."""
    for site in [*_sites]:
        site.forget()


KernelFuncs.on_clear(clear_tables)
NOT_SCALAR = (AXIS, SHAPE, DTYPE)
"""Options that determine the type of results: constants of compiled code."""
