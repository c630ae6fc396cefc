"""The everyday functions, one per kernel: any array-like, any strides, allocating when ``out`` is None.

Calls go through a compiled dispatcher, which looks up a kernel by dtype, options and size class and takes the extents
from the arrays. The first call of a class misses and comes here; it is repeated once the dispatcher has a kernel for
it. Invalid and rare calls are served here.
"""

from _thread import _local
from collections.abc import Callable, Sequence
from inspect import Parameter
from typing import Any

import numpy as np

from jitkernels.attrs.schema.base import BoundCall, KernelAttr
from jitkernels.attrs.schema.registry import op_schema
from jitkernels.attrs.schema.schema_queries import AXIS, DTYPE, SHAPE, inputs_of, is_everyday, min_results, outputs_of
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.core import cffi_values
from jitkernels.core.fork_locks import build_lock, writing
from jitkernels.dispatch import docstrings, fused_casts
from jitkernels.dispatch import outputs as results
from jitkernels.dispatch.call_memo import CallMemo
from jitkernels.dispatch.derived_extents import Extents
from jitkernels.dispatch.kernel import Kernel, kernel_of
from jitkernels.dispatch.kernel_cache import LOOK, KernelFuncs
from jitkernels.dispatch.native import launcher
from jitkernels.dispatch.operator_table import DispatchTable, words_for_python
from jitkernels.dispatch.option_types import IntOption, Real
from jitkernels.errors import AttrError, UnknownNameError
from jitkernels.runtime import c_api
from jitkernels.runtime.loading.compiled_code import BUILD
from jitkernels.selection import overrides
from jitkernels.selection.size_classes import share_of_smallest

MIN_CALL_SECONDS = 1e-7
"""A lower bound of the time of an everyday call."""
CAST_NEST_SECONDS = 0.002
"""Seconds of calls with inputs of some dtypes that pay for a nest with fused casts, built once per machine."""
CAST_COST = 10.0
"""The time of casting inputs relative to the arithmetic, about."""
LET_ONE_PASS = 2
"""A countdown that lets the next call pass."""
_holders: dict[str, "Everyday"] = {}


class _Traces(_local):
    """The number of functions that a thread is tracing."""

    open = 0


traces = _Traces()


class Everyday(launcher.Holder):
    """The Python side of one everyday function; `callable` is what users call."""

    __slots__ = (
        "_calls_until_search",
        "_memo",
        "_position_beyond",
        "_signature",
        "_slow",
        "_table",
        "callable",
        "name",
        "schema",
    )

    def __init__(self, attr_class: type[KernelAttr]) -> None:
        self.schema = attr_class
        self.name = attr_class.kernel_type.name.lower()
        self._signature = attr_class.parameters()
        self._slow: Callable[..., Any] = self.serve
        if attr_class.beyond is not None:
            self._position_beyond = [*self._signature.parameters].index(attr_class.beyond[0])
            self._slow = self.forward
        self._table = _dispatch_table(attr_class)
        self._memo = CallMemo() if self._table is None else None
        self._calls_until_search: dict[int, int] = {}  # by key of a class, for a kernel of static shape
        compiled = None
        if launcher.reason_for_slow_path() is None:
            self._context = words_for_python() if self._table is None else self._table.words
            self._context[0] = id(self._slow)
            compiled = launcher.launcher(self.name, docstrings.text_of(attr_class), self, "jk_everyday")
        self.callable = compiled or self._slow

    def __reduce__(self) -> tuple[Any, ...]:
        return _holder, (self.name,)

    def serve(self, *arguments: Any, **named: Any) -> Any:
        """Serve calls from compiled code; if it lacked a segment that is loaded now, call it again."""
        if self._memo is not None and not overrides.blocks:
            known = self._memo.call(arguments, named)
            if known is not None:
                return known
        for value in (*arguments, *named.values()):
            traced = _proxy_call(value)
            if traced is not None:
                return traced(self.schema, self.callable, arguments, named)
        if cffi_values.has_memory((*arguments, *named.values())):
            return self._call_with_memory(arguments, named)
        again = self.callable if launcher.load_missing() else self.call
        return again(*arguments, **named)

    def _call_with_memory(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Calls with cffi memory; the object passed as ``out`` is returned."""
        arrays, by_name = cffi_values.arrays_of(self.name, arguments, named)
        result = self.callable(*arrays, **by_name)
        return result if named.get("out") is None else named["out"]

    def forward(self, *arguments: Any, **named: Any) -> Any:
        """Forward calls with more dimensions than the schema supports to the one that supports them; serve others."""
        assert self.schema.beyond is not None, "set only for schemas with `beyond`"
        name, most, other = self.schema.beyond
        position = self._position_beyond
        value = arguments[position] if len(arguments) > position else named.get(name)
        if (value.ndim if type(value) is np.ndarray else _dimensions(value)) <= most:
            return self.serve(*arguments, **named)
        return _holder(other).callable(*arguments, **named)

    def call(self, *arguments: Any, out: Any = None, **named: Any) -> Any:
        """Convert the arguments, run the fastest kernel, return arrays of the caller's shape."""
        if self._learn_missed():
            return self.callable(*arguments, **named if out is None else {**named, "out": out})
        if len(arguments) == len(self._signature.parameters) + 1 and out is None:
            *rest, out = arguments
            arguments = tuple(rest)
        out_arrays = results.as_tuple(out)
        if len(out_arrays) == min_results(self.schema) == 1:
            out = out_arrays[0]  # of a tuple of one, as NumPy accepts it
        if DTYPE in self.schema.options:
            arguments, named = self._in_dtype_of(out, arguments, named)
        if self._table is not None and any(map(results.is_unusual_memory, out_arrays)):
            results.copy_to_out(self.name, self.callable(*arguments, **named), out)
            return out
        call = self.schema.call(*arguments, **named)
        if call.narrow is not None:
            c_api.accept_bfloat16(call.narrow)
        for value in (*arguments, *named.values()):  # not `out`, which may have a mask
            if isinstance(value, np.ndarray) and type(value) is not np.ndarray:
                c_api.accept_subclass(type(value))
        signature = call.attr.signature()
        outputs = signature.outputs
        targets = results.direct_targets(self.name, call, outputs, out)
        arrays = [results.allocate(self.name, o) if t is None else t for o, t in zip(outputs, targets, strict=True)]
        self._compute(call, [*results.copy_overlapping(signature, call.inputs, arrays), *arrays])
        if self._memo is not None and not overrides.blocks:
            given = named if out is None else {**named, "out": out}
            self._memo.remember(arguments, given, call, KernelFuncs.cache().of_class(call.attr))
        shaped = [
            results.as_caller_dtype(call, parameter, array.reshape(shape))
            for parameter, array, shape in zip(outputs, arrays, call.shapes, strict=True)
        ]
        if call.finish:
            shaped = [finish(result) for finish, result in zip(call.finish, shaped, strict=True)]
        if out is None:
            shaped = [np.ascontiguousarray(result) if call.finish else result for result in shaped]
            return shaped[0] if len(shaped) == 1 else tuple(shaped)
        for array, result, target in zip(results.as_tuple(out), shaped, targets, strict=True):
            if target is None:
                with np.errstate(all="ignore"):
                    array[...] = result
        return out

    def _in_dtype_of(
        self, out: Any, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, with the dtype of ``out`` where they name none."""
        try:
            bound = self._signature.bind_partial(*arguments, **named)
        except TypeError:  # reported when the call is bound
            return arguments, named
        if bound.arguments.get(DTYPE) is None:
            bound.arguments[DTYPE] = results.dtype_of(out)
        return bound.args, bound.kwargs

    def _learn_missed(self) -> bool:
        """Whether the dispatcher missed the kernel of a size class and has it now: it can serve the call then.

        The key determines the choice, so that the arguments need not be examined.
        """
        if self._table is None or overrides.blocks:
            return False
        key, fields = self._table.take_missed()
        if not key:
            return False
        try:
            kernel = KernelFuncs.cache().of_class(self.schema(**fields))
        except AttrError:  # the largest member is too large for this machine
            return False
        if not kernel.address:
            return False
        calls = launcher.NEVER
        if self._table.may_be_exact:  # sizes are unknown: assume the smallest
            calls = _calls_worth(LOOK, kernel.attr, share_of_smallest(kernel.attr))
        self._register(key, kernel, calls)
        return True

    def _register(self, key: int, kernel: Kernel, calls: int) -> None:
        """Register a kernel until its countdown ends or a kernel of static shape is to be searched for."""
        assert self._table is not None, "called only with a dispatcher"
        self._calls_until_search[key] = calls
        with writing:
            countdown = max(min(kernel.calls_until_due, calls), LET_ONE_PASS)
            self._table.put(key, kernel.address, kernel.is_long, countdown)

    def _compute(self, call: BoundCall, arrays: Sequence[AnyArray]) -> None:
        """Run the kernel of the call's size class, and register it for the next call of that class."""
        if overrides.blocks:
            KernelFuncs.cache().at(call.attr)(*arrays)
            return
        kernel = KernelFuncs.cache().of_class(call.attr)
        kernel.run_as(call.attr, arrays)
        if self._table is not None:
            key = self._table.key(call.attr.fields())
            passed = self._table.take_count(key) or 1
            left = self._calls_until_search.get(key, 0) - passed
            calls = self._register_exact(call.attr, key in self._calls_until_search and left <= 0)
            kernel.count(passed)
            if kernel.address:
                self._register(key, kernel, left if left > 0 else calls)
            self._register_cast_nest(call.attr, kernel)

    def _register_cast_nest(self, attr: KernelAttr, kernel: Kernel) -> None:
        """Register a nest with fused casts that the last call missed, once calls have paid for it."""
        assert self._table is not None, "called only with a dispatcher"
        key, names = self._table.take_wanted(kernel.address)
        if not key or not kernel.address:
            return
        entry = calls = 0
        with build_lock:  # before the lock inside a cached property of the nest
            nest = fused_casts.nest_of(kernel, names)
            if nest is not None:
                due = nest.is_loaded or self._table.is_due(key)
                calls = 0 if due else _calls_worth(CAST_NEST_SECONDS, attr, CAST_COST)
                entry = 0 if calls else fused_casts.address_of(nest)
        with writing:
            self._table.put(key, entry, False, calls or launcher.NEVER)

    def _register_exact(self, attr: KernelAttr, earned: bool) -> int:
        """Register a kernel of static shape, once calls have paid for it; returns how many more calls to wait."""
        assert self._table is not None, "called only with a dispatcher"
        if not self._table.can_be_exact(attr.fields()):
            return launcher.NEVER
        cost = KernelFuncs.cache().cost_of_exact(attr, earned)
        if cost is None:
            return launcher.NEVER
        if not cost:
            kernel = kernel_of(KernelFuncs.cache().at(attr))
            assert kernel is not None, "every callable of `at` has a kernel behind it"
            exact = self._table.key(attr.fields(), exact=True)
            kernel.count(self._table.take_count(exact))
            # The reference has no machine code; the kernel of the class may.
            served = kernel if kernel.address else KernelFuncs.cache().of_class(attr)
            if served.address:
                with writing:
                    self._table.put(exact, served.address, served.is_long, kernel.calls_until_due)
            cost = BUILD
        return _calls_worth(cost, attr)

    def forget(self) -> None:
        """Remove all kernels from the dispatcher."""
        if self._memo is not None:
            self._memo.forget()
        if self._table is not None:
            self._calls_until_search.clear()
            with writing:
                self._table.forget()


def _proxy_call(value: Any) -> Any:
    """The handler of array proxies that replaces a call; None for all others. Traces search lists for proxies."""
    if type(value) in (list, tuple):
        return next(filter(None, map(_proxy_call, value)), None) if traces.open else None
    return value.__jitkernels_call__ if hasattr(type(value), "__jitkernels_call__") else None


def _dimensions(value: Any) -> int:
    """The number of dimensions of an array-like, nested lists included; 0 for unknown objects."""
    count = 0
    while isinstance(value, list | tuple) and value:
        value, count = value[0], count + 1
    ndim = getattr(value, "ndim", 0)
    return count + (ndim if isinstance(ndim, int) else 0)


def _calls_worth(seconds: float, attr: KernelAttr, share: float = 1.0) -> int:
    """How many calls cost `seconds`, roughly, if each is a share of the attr's work."""
    return int(seconds / (MIN_CALL_SECONDS + share * attr.operations() / 5e10))


def _dispatch_table(attr_class: type[KernelAttr]) -> DispatchTable | None:
    """The dispatch table of a schema, or None where Python must serve all calls."""
    if launcher.reason_for_slow_path() is not None:
        return None
    fields = attr_class.known_fields()
    options: dict[str, Any] = {}
    for name in attr_class.options:
        default = attr_class.parameters().parameters[name].default
        if name in (AXIS, SHAPE):
            options[name] = default
        elif name == DTYPE:
            options[name] = (*_names_of(np.float32), *_names_of(np.float64))
        elif fields[name].kind == "whole":
            least, most = int(fields[name].least), int(fields[name].most)
            first = None if default is Parameter.empty else default
            options[name] = IntOption(first, least, most, is_size=fields[name].is_size)
        elif fields[name].values:
            others = [value for value in fields[name].values if value != default]
            options[name] = (default, *others)
        elif fields[name].kind == "float" and name in attr_class.floats:
            options[name] = Real(default, fields[name].least, fields[name].most)
        else:
            return None
    symbols = [name for name, field in fields.items() if field.is_integer]
    kinds = {a.dtype: fields[a.dtype].values for a in attr_class.arrays if a.dtype is not None and a.dtype in fields}
    in_key = {*options, *symbols, *kinds, "dtype"} | {
        flag for a in attr_class.arrays for flag in (a.when, a.transposed) if flag
    }
    fixed = [n for n in fields if n not in in_key and n not in {a.read for a in attr_class.arrays}]
    if fixed or [name for name in attr_class.options if name in attr_class.floats] != list(attr_class.floats):
        return None
    try:
        stored = fields[DTYPE].dtypes if DTYPE in fields else ()
        flags = [name for name, values in options.items() if isinstance(values, tuple) and isinstance(values[0], bool)]
        extents = Extents(attr_class, symbols, flags)
        return DispatchTable(inputs_of(attr_class), outputs_of(attr_class), extents, options, kinds, stored=stored)
    except ValueError:
        return None


def _names_of(number: Any) -> tuple[Any, ...]:
    """Common spellings of a dtype, except those that NumPy has to look up."""
    return number, np.dtype(number), np.dtype(number).name


def everyday(name: str) -> Any:
    """The everyday function of a kernel; raises UnknownNameError for an unknown name."""
    return _holder(name).callable


def _holder(name: str) -> Everyday:
    if name not in _holders:
        schema = op_schema(name)
        if not is_everyday(schema):
            raise UnknownNameError(f"{name} has no everyday function: its inputs do not determine all extents")
        with build_lock:
            if name not in _holders:
                _holders[name] = Everyday(schema)
    return _holders[name]


def clear_tables() -> None:
    """Empty the dispatch tables of all everyday functions, after selections may have changed."""
    for function in list(_holders.values()):
        function.forget()


KernelFuncs.on_clear(clear_tables)
