"""The elementwise functions of the Array API standard: one table, from which namespace, operators and docs are made."""

from typing import Any

import numpy as np

from jitkernels.xp.array_object import MIN_LAZY_ELEMENTS, NamespaceArray
from jitkernels.xp.dispatch import dtype_of, elements_of, elementwise, new_array, record, wrapped
from jitkernels.xp.expression import SCALARS

NAMES = (
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert",
    "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "conj", "copysign", "cos",
    "cosh", "divide", "equal", "exp", "expm1", "floor", "floor_divide", "greater", "greater_equal", "hypot",
    "isfinite", "isinf", "isnan", "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp", "logical_and",
    "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative", "nextafter",
    "not_equal", "positive", "pow", "reciprocal", "remainder", "sign", "signbit", "sin", "sinh", "sqrt", "square",
    "subtract", "tan", "tanh", "trunc",
)  # fmt: skip
"""What `numpy` has as a ufunc by the standard's name and meaning."""
UFUNCS: dict[str, Any] = {name: getattr(np, name) for name in NAMES}
FUSED = (*NAMES, "astype", "clip", "round", "where")
"""Functions that are recorded."""
FUNCTIONS: dict[str, Any] = {}
"""The functions of the namespace by name."""


def _function(name: str, ufunc: Any) -> Any:
    if ufunc.nin == 1:

        def unary(x: Any, /) -> Any:
            return elementwise(ufunc, x)

        made: Any = unary
    else:

        def binary(x1: Any, x2: Any, /) -> Any:
            if (
                type(x1) is not NamespaceArray
                and type(x2) is not NamespaceArray
                and isinstance(x1, bool | int | float | complex)
            ):
                raise TypeError(f"{name}: expected an array, got two Python numbers")
            return elementwise(ufunc, x1, x2)

        made = binary
    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"`numpy.{ufunc.__name__}`, elementwise."
    return made


def power(x1: Any, x2: Any, /) -> Any:
    """`numpy.pow`; a Python number as exponent is a constant of the code, as a square takes one product."""
    if type(x2) in (int, float) and type(x1) is NamespaceArray and not x1.is_small:
        operand = x1._operand()
        return record(
            _power, (x1,), [operand], (("exponent", (type(x2), x2)),), dtype_of(np.pow, [operand, x2]), x1.shape
        )
    return elementwise(np.pow, x1, x2)


def _power(x: Any, exponent: tuple[type, Any]) -> Any:
    """`exponent`: with its type, so that 2 and 2.0 are not one structure."""
    return np.power(x, exponent[1])


def _expm1(x: Any, /) -> Any:
    """The exponential less one. NumPy's is not the standard's for complex zeros, infinities and NaNs."""
    result = elementwise(np.expm1, x)
    if result.dtype.kind != "c":
        return result
    is_usual = elementwise(np.logical_and, elementwise(np.isfinite, x), elementwise(np.not_equal, x, 0))
    return _where(is_usual, result, elementwise(np.subtract, elementwise(np.exp, x), 1))


def _round(x: Any, /) -> Any:
    """The nearest integers, halves to even ones."""
    if type(x) is NamespaceArray and x.dtype.kind == "f":
        return elementwise(np.rint, x)
    return wrapped(np.round(elements_of(x)))


def _clip(x: Any, /, min: Any = None, max: Any = None) -> Any:  # noqa: A002  # names of the standard
    """Elements limited to at least `min` and at most `max`; the dtype of `x` stays."""
    result = x
    for ufunc, bound in ((np.maximum, min), (np.minimum, max)):
        if bound is None:
            continue
        limit = bound
        if type(bound) in (int, float) and x.dtype.kind in "iu":
            limits = np.iinfo(x.dtype)
            limit = int(limits.min if bound < limits.min else limits.max if bound > limits.max else bound)
        result = elementwise(ufunc, result, limit)
    if result is x:
        return wrapped(elements_of(x).copy())
    return result if result.dtype == x.dtype else cast(result, x.dtype)


def cast(x: Any, dtype: Any) -> Any:
    """The elements in another dtype."""
    if type(x) is not NamespaceArray:
        return new_array(x.astype(dtype))
    operand = x._operand()
    if x.is_small:
        return NamespaceArray(x._elements().astype(dtype), False)
    return record(_cast, (x,), [operand], (("dtype", dtype),), dtype, x.shape)


def _cast(x: Any, dtype: Any) -> Any:
    return x.astype(dtype)


def _where(condition: Any, x1: Any, x2: Any, /) -> Any:
    """Elements of `x1` where the condition is true, of `x2` elsewhere."""
    if type(condition) is not NamespaceArray:
        return wrapped(np.where(*map(elements_of, (condition, x1, x2))))
    operands = condition, x1, x2
    if all(type(one) is not NamespaceArray or one.is_small for one in operands):
        return wrapped(np.where(*map(elements_of, operands)))
    values = [one._operand() if type(one) is NamespaceArray else one for one in operands]
    kinds = [one.dtype if hasattr(one, "dtype") else one for one in values[1:]]
    shape = np.broadcast_shapes(*(one.shape for one in values if hasattr(one, "shape")))
    return record(np.where, operands, values, (), np.result_type(*kinds), shape)


def _real(x: Any, /) -> Any:
    """The real components."""
    return wrapped(np.real(elements_of(x)).copy())


def _imag(x: Any, /) -> Any:
    """The imaginary components."""
    return wrapped(np.imag(elements_of(x)).copy())


FUNCTIONS |= {name: _function(name, ufunc) for name, ufunc in UFUNCS.items()}
FUNCTIONS |= {
    "clip": _clip, "expm1": _expm1, "imag": _imag, "pow": power, "real": _real, "round": _round, "where": _where,
}  # fmt: skip
for _name, _made in FUNCTIONS.items():
    _made.__name__ = _made.__qualname__ = _name
    _made.__module__ = __package__ or ""

OPERATORS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "pow": np.pow, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "lshift": np.bitwise_left_shift, "rshift": np.bitwise_right_shift,
}  # fmt: skip
COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
UNARY_OPERATORS = {"abs": np.abs, "neg": np.negative, "pos": np.positive, "invert": np.bitwise_invert}
ACCEPTED = (NamespaceArray, bool, int, float, complex, np.ndarray, np.generic)
"""Types of the other operand; others may know our arrays and may define the operator."""


def _define_operators() -> None:
    """Give `NamespaceArray` its operators."""
    for name, ufunc in (*OPERATORS.items(), *COMPARISONS.items()):
        direct, reflected, in_place = _binary_operators(ufunc)
        setattr(NamespaceArray, f"__{name}__", direct)
        if name in OPERATORS:
            setattr(NamespaceArray, f"__r{name}__", reflected)
            setattr(NamespaceArray, f"__i{name}__", in_place)
    for name, unary in UNARY_OPERATORS.items():
        setattr(NamespaceArray, f"__{name}__", _unary_operator(unary))


def _binary_operators(ufunc: Any) -> tuple[Any, Any, Any]:
    is_power = ufunc is np.pow

    def direct(self: NamespaceArray, other: Any, /) -> Any:
        own = self._value
        if own is not None and own.size < MIN_LAZY_ELEMENTS:  # what `elementwise` does, as small arrays take little
            value = other if type(other) in SCALARS else other._value if type(other) is NamespaceArray else None
            if value is not None and (value is other or value.size < MIN_LAZY_ELEMENTS):
                result = ufunc(own, value)
                return NamespaceArray(result if type(result) is np.ndarray else np.asarray(result), False)
        if type(other) is not NamespaceArray and not isinstance(other, ACCEPTED):
            return NotImplemented
        return power(self, other) if is_power else elementwise(ufunc, self, other)

    def reflected(self: NamespaceArray, other: Any, /) -> Any:
        return elementwise(ufunc, other, self) if isinstance(other, ACCEPTED) else NotImplemented

    def in_place(self: NamespaceArray, other: Any, /) -> Any:
        result = direct(self, other)
        return result if result is NotImplemented else self._replace(result)

    return direct, reflected, in_place


def _unary_operator(ufunc: Any) -> Any:
    def operate(self: NamespaceArray, /) -> Any:
        return elementwise(ufunc, self)

    return operate


_define_operators()
