"""The everyday functions, one per kernel: any array-like, any strides, allocating when ``out`` is None.

Calls go through a compiled dispatcher, which finds a kernel by dtype, options and size class and takes the extents
from the arrays. The first call of a class comes here, to be sent back once the dispatcher knows a kernel for it, and so
does whatever is wrong or rare.
"""

from _thread import _local
from collections.abc import Callable, Sequence
from inspect import Parameter
from typing import Any

import numpy as np

from jitkernels import bfloat16, converting, documentation, pins, results
from jitkernels.attrs.base import Call, KernelAttr
from jitkernels.attrs.roles import AXIS, DTYPE, SHAPE, fewest_results, inputs_of, is_everyday, outputs_of
from jitkernels.dispatch_table import Dispatch
from jitkernels.errors import AttrError, UnknownNameError
from jitkernels.kernel import Kernel, kernel_of
from jitkernels.kernel_funcs import LOOK, KernelFuncs
from jitkernels.locks import making, writing
from jitkernels.native import c_api, launch
from jitkernels.native.code import BUILD
from jitkernels.options import Real, Whole
from jitkernels.registry import row
from jitkernels.signature import AnyArray
from jitkernels.tuning.classes import share_of_smallest

LEAST_SECONDS = 1e-7
"""What an everyday call costs at least."""
PATIENCE = 0.002
"""Seconds of calls on inputs of some dtypes that are worth a nest which converts them, once per machine building it."""
BROUGHT = 10.0
"""How many times as long as the arithmetic it takes to bring inputs together, about."""
SERVED = 2
"""A countdown that lets the next call pass."""
_made: dict[str, "Everyday"] = {}


class _Traces(_local):
    """How many functions a thread is tracing."""

    open = 0


traces = _Traces()


class Everyday(launch.Holder):
    """The Python side of one everyday function; `callable` is what users get."""

    __slots__ = (
        "_dispatch",
        "_looks",
        "_place_beyond",
        "_signature",
        "_slow",
        "callable",
        "name",
        "row",
    )

    def __init__(self, attr_class: type[KernelAttr]) -> None:
        self.row = attr_class
        self.name = attr_class.kernel_type.name.lower()
        self._signature = attr_class.parameters()
        self._slow: Callable[..., Any] = self.serve
        if attr_class.beyond is not None:
            self._place_beyond = [*self._signature.parameters].index(attr_class.beyond[0])
            self._slow = self.send_on
        self._dispatch = _dispatch(attr_class)
        self._looks: dict[int, int] = {}  # calls of a class before the next look for a kernel of one size
        made = None
        if self._dispatch is not None:
            self._context = self._dispatch.words
            self._context[0] = id(self._slow)
            made = launch.everyday_launcher(self.name, documentation.text_of(attr_class), self)
        self.callable = made or self._slow

    def __reduce__(self) -> tuple[Any, ...]:
        return _holder_of, (self.name,)

    def serve(self, *arguments: Any, **named: Any) -> Any:
        """Calls that come from compiled code: they go again if it was without a part that is brought now."""
        for value in (*arguments, *named.values()):
            traced = _own_call(value)
            if traced is not None:
                return traced(self.row, self.callable, arguments, named)
        again = self.callable if launch.bring_missing() else self.call
        return again(*arguments, **named)

    def send_on(self, *arguments: Any, **named: Any) -> Any:
        """Calls with more dimensions than the row has room for, to the row that has; all others are served."""
        assert self.row.beyond is not None, "else nothing comes here"
        name, most, other = self.row.beyond
        place = self._place_beyond
        value = arguments[place] if len(arguments) > place else named.get(name)
        if (value.ndim if type(value) is np.ndarray else _dimensions(value)) <= most:
            return self.serve(*arguments, **named)
        return _holder_of(other).callable(*arguments, **named)

    def call(self, *arguments: Any, out: Any = None, **named: Any) -> Any:
        """Convert what needs converting, run the best kernel, give back arrays of the caller's shape."""
        if self._learns():
            return self.callable(*arguments, **named if out is None else {**named, "out": out})
        if len(arguments) == len(self._signature.parameters) + 1 and out is None:
            *rest, out = arguments
            arguments = tuple(rest)
        given = results.several(out)
        if len(given) == fewest_results(self.row) == 1:
            out = given[0]  # of a tuple of one, as NumPy takes it
        if DTYPE in self.row.options:
            arguments, named = self._in_dtype_of(out, arguments, named)
        if self._dispatch is not None and any(map(results.lies_strangely, given)):
            results.put(self.name, self.callable(*arguments, **named), out)
            return out
        call = self.row.call(*arguments, **named)
        if call.narrow is not None:
            c_api.know_bfloat16(call.narrow)
        for value in (*arguments, *named.values()):  # not a result, which may have a mask
            if isinstance(value, np.ndarray) and type(value) is not np.ndarray:
                c_api.know_derived(type(value))
        signature = call.attr.signature()
        outputs = signature.outputs
        targets = results.targets(self.name, call, outputs, out)
        arrays = [
            results.new(self.name, o) if t is None else t for o, t in zip(outputs, targets, strict=True)
        ]
        self._compute(call, [*results.apart(signature, call.inputs, arrays), *arrays])
        shaped = [
            results.as_asked(call, parameter, array.reshape(shape))
            for parameter, array, shape in zip(outputs, arrays, call.shapes, strict=True)
        ]
        if call.finish:
            shaped = [finish(result) for finish, result in zip(call.finish, shaped, strict=True)]
        if out is None:
            shaped = [np.ascontiguousarray(result) if call.finish else result for result in shaped]
            return shaped[0] if len(shaped) == 1 else tuple(shaped)
        for array, result, target in zip(results.several(out), shaped, targets, strict=True):
            if target is None:
                with np.errstate(all="ignore"):
                    array[...] = result
        return out

    def _in_dtype_of(
        self, out: Any, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, with the dtype of ``out`` where they name none."""
        try:
            given = self._signature.bind_partial(*arguments, **named)
        except TypeError:  # which is told in its place
            return arguments, named
        if given.arguments.get(DTYPE) is None:
            given.arguments[DTYPE] = results.dtype_of(out)
        return given.args, given.kwargs

    def _learns(self) -> bool:
        """Whether the dispatcher was without the kernel of a size class, and is no longer: it can serve the call then.

        The key says all that the choice depends on, so that the arguments need not be looked at.
        """
        if self._dispatch is None or pins.blocks:
            return False
        key, fields = self._dispatch.missed()
        if not key:
            return False
        try:
            kernel = KernelFuncs.cache().of_class(self.row(**fields))
        except AttrError:  # the largest of the class would be too large for this machine
            return False
        if not kernel.address:
            return False
        calls = launch.NEVER
        if self._dispatch.may_be_exact:  # nobody knows which sizes, so calls of the smallest count
            calls = _calls_worth(LOOK, kernel.attr, share_of_smallest(kernel.attr))
        self._put(key, kernel, calls)
        return True

    def _put(self, key: int, kernel: Kernel, calls: int) -> None:
        """Let the dispatcher call a kernel until it is due, or until a kernel of one size is to be looked for."""
        assert self._dispatch is not None, "asked only where there is a dispatcher"
        self._looks[key] = calls
        with writing:
            countdown = max(min(kernel.calls_until_due, calls), SERVED)
            self._dispatch.put(key, kernel.address, kernel.is_long, countdown)

    def _compute(self, call: Call, arrays: Sequence[AnyArray]) -> None:
        """Run the kernel of the call's size class, and let the dispatcher take the next call of that class."""
        if pins.blocks:
            KernelFuncs.cache().at(call.attr)(*arrays)
            return
        kernel = KernelFuncs.cache().of_class(call.attr)
        kernel.run_as(call.attr, arrays)
        if self._dispatch is not None:
            key = self._dispatch.key(call.attr.fields())
            passed = self._dispatch.counted(key) or 1
            left = self._looks.get(key, 0) - passed
            calls = self._specialise(call.attr, key in self._looks and left <= 0)
            kernel.count(passed)
            if kernel.address:
                self._put(key, kernel, left if left > 0 else calls)
            self._convert(call.attr, kernel)

    def _convert(self, attr: KernelAttr, kernel: Kernel) -> None:
        """Once calls have paid for it, a nest that converts what it reads, if the last call was without."""
        assert self._dispatch is not None, "asked only where there is a dispatcher"
        key, names = self._dispatch.wanted(kernel.address)
        if not key or not kernel.address:
            return
        entry = calls = 0
        with making:  # before the lock that a cached property of the nest has of its own
            nest = converting.nest_of(kernel, names)
            if nest is not None:
                due = nest.is_loaded or self._dispatch.is_due(key)
                calls = 0 if due else _calls_worth(PATIENCE, attr, BROUGHT)
                entry = 0 if calls else converting.address_of(nest)
        with writing:
            self._dispatch.put(key, entry, False, calls or launch.NEVER)

    def _specialise(self, attr: KernelAttr, earned: bool) -> int:
        """A kernel of exactly these extents, once calls have paid for it; returns how many more calls to wait."""
        assert self._dispatch is not None, "asked only where there is a dispatcher"
        if not self._dispatch.can_be_exact(attr.fields()):
            return launch.NEVER
        cost = KernelFuncs.cache().cost_of_exact(attr, earned)
        if cost is None:
            return launch.NEVER
        if not cost:
            kernel = kernel_of(KernelFuncs.cache().at(attr))
            assert kernel is not None, "every callable of `at` has a kernel behind it"
            exact = self._dispatch.key(attr.fields(), exact=True)
            kernel.count(self._dispatch.counted(exact))
            # The reference has no machine code; that of the class may.
            served = kernel if kernel.address else KernelFuncs.cache().of_class(attr)
            if served.address:
                with writing:
                    self._dispatch.put(exact, served.address, served.is_long, kernel.calls_until_due)
            cost = BUILD
        return _calls_worth(cost, attr)

    def forget(self) -> None:
        """Let the dispatcher know no kernel any more."""
        if self._dispatch is not None:
            self._looks.clear()
            with writing:
                self._dispatch.forget()


def _own_call(value: Any) -> Any:
    """What arrays that are no data do instead of a call; None for all others. Traces look into lists for such."""
    if type(value) in (list, tuple):
        return next(filter(None, map(_own_call, value)), None) if traces.open else None
    return value.__jitkernels_call__ if hasattr(type(value), "__jitkernels_call__") else None


def _dimensions(value: Any) -> int:
    """Of an array-like: lists are looked into, as NumPy does; 0 for what may be anything."""
    count = 0
    while isinstance(value, list | tuple) and value:
        value, count = value[0], count + 1
    found = getattr(value, "ndim", 0)
    return count + (found if isinstance(found, int) else 0)


def _calls_worth(seconds: float, attr: KernelAttr, share: float = 1.0) -> int:
    """How many calls cost that, roughly, if each is a share of the attr's work."""
    return int(seconds / (LEAST_SECONDS + share * attr.operations() / 5e10))


def _dispatch(attr_class: type[KernelAttr]) -> Dispatch | None:
    """The dispatcher's table of a row, or None where Python must serve all calls."""
    if launch.reason_for_slow_path() is not None:
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
            options[name] = Whole(first, least, most, is_size=fields[name].is_size)
        elif fields[name].values:
            others = [value for value in fields[name].values if value != default]
            options[name] = (default, *others)
        elif fields[name].kind == "float" and name in attr_class.floats:
            options[name] = Real(default, fields[name].least, fields[name].most)
        else:
            return None
    symbols = [name for name, field in fields.items() if field.is_integer]
    kinds = {
        a.dtype: fields[a.dtype].values
        for a in attr_class.arrays
        if a.dtype is not None and a.dtype in fields
    }
    told = {*options, *symbols, *kinds, "dtype"} | {
        flag for a in attr_class.arrays for flag in (a.when, a.turned) if flag
    }
    fixed = [n for n in fields if n not in told and n not in {a.read for a in attr_class.arrays}]
    if fixed or [name for name in attr_class.options if name in attr_class.floats] != list(attr_class.floats):
        return None
    try:
        narrow = bfloat16.NAME in fields[DTYPE].dtypes if DTYPE in fields else False
        return Dispatch(inputs_of(attr_class), outputs_of(attr_class), symbols, options, kinds, narrow=narrow)
    except ValueError:
        return None


def _names_of(number: Any) -> tuple[Any, ...]:
    """What people write for a dtype, but for what NumPy has to look up."""
    return number, np.dtype(number), np.dtype(number).name


def everyday(name: str) -> Any:
    """The everyday function of a kernel; raises UnknownNameError for a name that is none."""
    return _holder_of(name).callable


def _holder_of(name: str) -> Everyday:
    if name not in _made:
        found = row(name)
        if not is_everyday(found):
            raise UnknownNameError(f"{name} has no everyday function: its inputs do not tell all extents")
        with making:
            if name not in _made:
                _made[name] = Everyday(found)
    return _made[name]


def forget_all() -> None:
    """Empty the tables of all everyday functions, after picks may have changed."""
    for function in list(_made.values()):
        function.forget()


KernelFuncs.when_cleared(forget_all)
