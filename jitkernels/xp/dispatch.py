"""How functions of `jk.xp` run: at once or later.

Elementwise functions and reductions of large arrays are recorded as expressions, those of small arrays run at once by
NumPy. Others run at once, by a kernel of the registry or by NumPy.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.dispatch.operators import everyday
from jitkernels.xp.array_object import MIN_LAZY_ELEMENTS, NamespaceArray, check_device
from jitkernels.xp.expression import MAX_LAZY_NODES, SCALARS, LazyNode

_dtypes: dict[Any, Any] = {}
_BOOL = np.dtype(bool)


def elements_of(value: Any) -> Any:
    """The elements of an array of ours, in lists and tuples, too, which may be kept; other values unchanged."""
    kind = type(value)
    if kind is NamespaceArray:
        value._is_shared = True
        return value._elements()
    if kind is tuple or kind is list:
        return kind([elements_of(one) for one in value])
    return value


def is_traced(value: Any) -> bool:
    """Whether a value is an array of a trace of `jk.jit`, which records NumPy's functions."""
    return hasattr(type(value), "__jitkernels_call__")


def new_array(result: Any) -> Any:
    """An array of ours of a result of NumPy or of a kernel that nothing else refers to."""
    return result if is_traced(result) else NamespaceArray(np.asarray(result), False)


def wrapped(result: Any) -> Any:
    """A result of NumPy with arrays of ours in place of its arrays and array scalars."""
    if is_traced(result):
        return result
    if isinstance(result, np.ndarray | np.generic):
        return NamespaceArray(np.asarray(result))
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*map(wrapped, result))
    return type(result)(map(wrapped, result)) if type(result) in (tuple, list) else result


def elementwise(ufunc: Any, *operands: Any) -> Any:
    """A ufunc of arrays and Python numbers: at once where all arrays are small, else recorded."""
    values = []
    is_small = True
    for operand in operands:
        kind = type(operand)
        if kind is NamespaceArray:
            value = operand._value
            if value is None:
                value = operand._operand()
                is_small = False
            elif value.size >= MIN_LAZY_ELEMENTS:
                is_small = False
            values.append(value)
        elif kind in SCALARS:
            values.append(operand)
        elif is_traced(operand):
            return ufunc(*operands)
        else:
            values.append(np.asarray(operand))
    if not is_small:
        return _recorded(ufunc, operands, values)
    result = ufunc(*values)
    return NamespaceArray(result if type(result) is np.ndarray else np.asarray(result), False)


def _recorded(ufunc: Any, operands: Any, values: list[Any]) -> Any:
    dtype = dtype_of(ufunc, values)
    shapes = [one.shape for one in values if type(one) not in SCALARS]
    shape = shapes[0]
    if any(one != shape for one in shapes):
        shape = np.broadcast_shapes(*shapes)
    return record(ufunc, operands, values, (), dtype, shape)


def record(
    function: Any,
    operands: Any,
    values: list[Any],
    keywords: tuple[tuple[str, Any], ...],
    dtype: Any,
    shape: tuple[int, ...],
) -> NamespaceArray:
    """An array whose elements are computed when they are needed."""
    total = 0
    for position, operand in enumerate(operands):
        if type(operand) is NamespaceArray:
            operand._is_shared = True
            value = values[position]
            if type(value) is LazyNode:
                total += value.total
    if total >= MAX_LAZY_NODES:
        values = [one.evaluate() if type(one) is LazyNode else one for one in values]
    return NamespaceArray._of_expression(LazyNode(function, tuple(values), keywords, dtype, shape))


def dtype_of(ufunc: Any, values: list[Any]) -> Any:
    """The dtype of the result of a ufunc for arrays and Python numbers. Raises TypeError as NumPy does."""
    kinds = tuple([type(one) if type(one) in SCALARS else one.dtype for one in values])
    dtype = _dtypes.get((ufunc, kinds))
    if dtype is None:
        given = tuple(_BOOL if kind is bool else kind for kind in kinds)
        dtype = _dtypes[ufunc, kinds] = ufunc.resolve_dtypes((*given, None))[-1]
    for value in values:
        if type(value) is int and not -128 <= value < 128:
            _check_range(value, kinds)
    return dtype


def _check_range(value: int, kinds: Any) -> None:
    """Raise OverflowError, as NumPy does, for an int that is too large for the integers beside it."""
    dtypes = [kind for kind in kinds if type(kind) is not type]
    common = np.result_type(*dtypes)
    if common.kind in "iu":
        common.type(value)


def by_numpy(name: str, function: Any, kernel: Any = None) -> Any:
    """A function of the namespace that NumPy computes from the elements of its arguments.

    `kernel`: a function of the same arguments that computes it, or returns NotImplemented.
    """

    def called(*arguments: Any, **keywords: Any) -> Any:
        given = elements_of(arguments)
        named = {key: elements_of(value) for key, value in keywords.items()}
        if named.pop("device", None) is not None:
            check_device(keywords["device"])
        result = NotImplemented if kernel is None else kernel(*given, **named)
        return wrapped(function(*given, **named) if result is NotImplemented else result)

    called.__name__ = called.__qualname__ = name
    called.__module__ = __package__ or ""
    called.__doc__ = f"`numpy.{function.__name__}`."
    called.__signature__ = _signature(function)  # type: ignore[attr-defined]
    return called


def _signature(function: Any) -> inspect.Signature:
    """NumPy's signature of a function; of a ufunc, its operands."""
    if isinstance(function, np.ufunc):
        names = [f"x{i + 1}" for i in range(function.nin)]
        return inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names])
    return inspect.signature(function)


def kernel_named(name: str) -> Callable[[], Any]:
    """The everyday function of a kernel, which is loaded by its first call."""
    loaded: list[Any] = []

    def load() -> Any:
        if not loaded:
            loaded.append(everyday(name))
        return loaded[0]

    return load
