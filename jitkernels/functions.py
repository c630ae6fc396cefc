"""The everyday functions, one per kernel: any array-like, any strides, allocating when ``out`` is None.

Arrays that a kernel can take as they are go from a compiled dispatcher straight to the kernel's entry. All
else comes here, is converted, and, if it needed no conversion, is remembered for the dispatcher.
"""

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels import pins
from jitkernels.attrs.base import Call, KernelAttr
from jitkernels.errors import ArgumentError, ArgumentTypeError
from jitkernels.kernel import Kernel
from jitkernels.kernel_funcs import KernelFuncs
from jitkernels.locks import making, writing
from jitkernels.native import launch
from jitkernels.native.layout import Table
from jitkernels.registry import row
from jitkernels.signature import AnyArray, Array, Signature

_made: dict[str, "Everyday"] = {}


class Everyday(launch.Holder):
    """The Python side of one everyday function; `callable` is what users get."""

    __slots__ = ("_attr_class", "_kept", "_signature", "_slow", "callable", "name")

    def __init__(self, attr_class: type[KernelAttr]) -> None:
        self._attr_class = attr_class
        self.name = attr_class.kernel_type.name.lower()
        self._signature = attr_class.parameters()
        parameters = list(self._signature.parameters.values())
        inputs = sum(parameter.default in (parameter.empty, None) for parameter in parameters)
        self._slow = self.call
        self._kept: dict[int, Any] = {}
        self._context = launch.table(self._slow, inputs, out_follows=len(parameters) == inputs)
        documentation = self._documentation(parameters)
        self.callable = launch.everyday_launcher(self.name, documentation, self) or self._slow

    def __reduce__(self) -> tuple[Any, ...]:
        return _holder_of, (self.name,)

    def _documentation(self, parameters: Sequence[inspect.Parameter]) -> str:
        listed = [p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters]
        signature = f"{self.name}({', '.join([*listed, 'out=None'])})"
        return f"{signature}\n--\n\n{inspect.cleandoc(self._attr_class.__doc__ or '')}"

    def call(self, *arguments: Any, out: Any = None, **named: Any) -> Any:
        """Convert what needs converting, run the best kernel, give back arrays of the caller's shape."""
        if len(arguments) == len(self._signature.parameters) + 1 and out is None:
            *rest, out = arguments
            arguments = tuple(rest)
        call = self._attr_class.call(*arguments, **named)
        kernel = _kernel_of(KernelFuncs.cache().at(call.attr))
        outputs = kernel.signature.outputs
        targets = self._targets(call, outputs, out)
        arrays = [
            np.empty(o.shape, o.dtype) if t is None else t for o, t in zip(outputs, targets, strict=True)
        ]
        kernel.callable(*_apart(kernel.signature, call.inputs, arrays), *arrays)
        self._remember(kernel, call, arguments, named)
        results = [array.reshape(shape) for array, shape in zip(arrays, call.shapes, strict=True)]
        if call.finish is not None:
            results = [call.finish(result) for result in results]
        if out is None:
            return results[0] if len(results) == 1 else tuple(results)
        for array, result, target in zip(_several(out), results, targets, strict=True):
            if target is None:
                array[...] = result
        return out

    def _targets(self, call: Call, outputs: Sequence[Array], out: Any) -> list[AnyArray | None]:
        """For each output the memory of ``out`` in the kernel's shape, or None where it cannot be used directly."""
        if out is None:
            return [None] * len(outputs)
        given = _several(out)
        if len(given) != len(outputs):
            raise ArgumentTypeError(f"{self.name}: out: expected {len(outputs)} arrays, got {len(given)}")
        targets: list[AnyArray | None] = []
        for array, output, shape in zip(given, outputs, call.shapes, strict=True):
            wanted = call.finish(np.empty(shape, np.bool_)).shape if call.finish else tuple(shape)
            _check_out(self.name, output, array, wanted)
            direct = call.finish is None and array.flags.carray and array.dtype == output.dtype
            direct = direct and array.dtype.isnative
            targets.append(array.reshape(output.shape) if direct else None)
        return targets

    def _remember(self, kernel: Kernel, call: Call, arguments: Sequence[Any], named: dict[str, Any]) -> None:
        """Let the dispatcher take the next call of these shapes, if it needs none of the above."""
        if named or pins.active() or len(call.shapes) != 1 or kernel.address == 0:
            return
        if call.finish or len(arguments) != len(call.inputs):
            return
        if not all(_is_memory_of(given, used) for given, used in zip(arguments, call.inputs, strict=True)):
            return
        array_shapes = [*(given.shape for given in arguments), tuple(call.shapes[0])]
        parameters = kernel.parameters(array_shapes)
        if parameters is None:
            return
        words = kernel.context(parameters)
        with writing:
            place = launch.place_in_table(parameters)
            self._kept[place] = words, kernel
            self._context[place] = words.ctypes.data

    def forget(self) -> None:
        """Empty the dispatcher's table."""
        with writing:
            self._context[Table.CONTEXTS :] = 0
            self._kept.clear()


def _several(out: Any) -> tuple[Any, ...]:
    return out if isinstance(out, tuple) else (out,)


def _kernel_of(function: Any) -> Kernel:
    kernel = function.__self__
    assert isinstance(kernel, Kernel)
    return kernel


def _is_memory_of(given: Any, used: AnyArray) -> bool:
    """Whether a kernel's input is the caller's array, seen in another shape at most."""
    if type(given) is not np.ndarray or given.dtype is not used.dtype or not given.flags.c_contiguous:
        return False
    return bool(given.ctypes.data == used.ctypes.data)


def _check_out(kernel: str, output: Array, array: Any, shape: tuple[int, ...]) -> None:
    expected = f"{kernel}: out: expected a writeable {output.dtype} array of shape {shape}"
    if not isinstance(array, np.ndarray):
        raise ArgumentTypeError(f"{expected}, got {type(array).__name__}")
    if not np.can_cast(output.dtype, array.dtype, "same_kind"):
        raise ArgumentTypeError(f"{expected}, got dtype {array.dtype}")
    if array.shape != shape:
        raise ArgumentError(f"{expected}, got shape {array.shape}")
    if not array.flags.writeable:
        raise ArgumentError(f"{expected}, got a read-only array")


def _apart(signature: Signature, inputs: Sequence[AnyArray], arrays: Sequence[AnyArray]) -> list[AnyArray]:
    """Inputs that overlap an output in a way the kernel cannot take are copied first, as NumPy does."""
    separate = []
    for parameter, value in zip(signature.inputs, inputs, strict=True):
        clash = any(
            np.may_share_memory(value, array)
            and not (parameter.in_place and output.in_place and value.ctypes.data == array.ctypes.data)
            for array, output in zip(arrays, signature.outputs, strict=True)
        )
        separate.append(value.copy() if clash else value)
    return separate


def everyday(name: str) -> Any:
    """The everyday function of a kernel; raises UnknownNameError for a name that is none."""
    return _holder_of(name).callable


def _holder_of(name: str) -> Everyday:
    if name not in _made:
        found = row(name)
        with making:
            if name not in _made:
                _made[name] = Everyday(found)
    return _made[name]


def forget_all() -> None:
    """Empty the tables of all everyday functions, after picks may have changed."""
    for function in list(_made.values()):
        function.forget()


KernelFuncs.when_cleared(forget_all)
