"""Universal functions made of a function of elements or of rows, in a trace: ``numba.vectorize`` and ``guvectorize``.

1. Functions without loops and branches that call nothing but NumPy are applied to whole arrays.
2. Others are called in loops over the elements of the broadcast arrays, which are compiled with the function.
3. The dtype of a result is that of the function of the first elements; a function that may return numbers of several
   types has none for other inputs than float64, int64 and complex128.
4. Loops for declared types get their arguments cast to those of the first loop that NumPy's safe casts reach.
"""

import dis
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow import runtime_hooks
from jitkernels.compiler.capture.control_flow.loop_state import dtype_of
from jitkernels.compiler.capture.ints import int_cast_checks
from jitkernels.compiler.capture.numpy.vectorized_function import NATURAL
from jitkernels.compiler.capture.numpy_namespace_proxy import original, stand_in
from jitkernels.compiler.capture.override_registry import SERVICES
from jitkernels.compiler.capture.rewrite.ast_builder import FLOW
from jitkernels.compiler.capture.rewrite.rewrite_function import has_control_flow
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import Tracer, current
from jitkernels.compiler.capture.universal.plain_ufunc import batch_of, dimensions_of, in_loop_types, resolved
from jitkernels.compiler.capture.universal.universal_loops import elementwise_loops, fold_loops, row_loops
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError

numpy: Any = stand_in(np)


SEVERAL_TYPES = "a vectorized function that returns numbers of several types"
OF_ELEMENTS = frozenset({"where", "clip", "isclose", "nan_to_num", "sinc", "round", "pi", "e", "inf", "nan"})
"""What functions of arrays may take from NumPy beside its universal functions and types."""
OF_NUMBERS = frozenset({"CONTAINS_OP", "UNARY_NOT", "IS_OP", "BINARY_SUBSCR", "@", "@=", "[]"})
"""Operations that mean something else for arrays than for their elements."""


class TracedUfunc:
    """A universal function of elements. `types`: its loops, as in `numpy.ufunc.types`; any without."""

    def __init__(self, function: Callable[..., Any], code: types.CodeType, loop_types: Sequence[str]) -> None:
        self.function, self.types = function, loop_types
        self.is_of_arrays = _takes_arrays(function, code)

    def __call__(self, *arguments: Any, out: Any = None, **keywords: Any) -> Any:
        _refuse(keywords)
        arrays = [*map(numpy.asarray, arguments)]
        arrays, dtypes = resolved(arrays, self.types, [*map(_type_of, arguments)], _converted)
        result = self._called(arrays)
        if dtypes:
            results = result if type(result) is tuple else (result,)
            cast = tuple(one.astype(dtype) for one, dtype in zip(results, dtypes, strict=True))
            result = cast if type(result) is tuple else cast[0]
        return result if out is None else _into(out, result)

    def _called(self, arrays: list[Any]) -> Any:
        shape = numpy.broadcast_shapes(*[array.shape for array in arrays])
        if not shape:
            joined = _tracer().joined_kinds
            before = len(joined)
            result = self.function(*[array[()] for array in arrays])
            if any(dtype_of(one) != dtype_of(other) for one, other in joined[before:]):
                raise UnsupportedError(SEVERAL_TYPES)
            return tuple(map(_number, result)) if type(result) is tuple else _number(result)
        if self.is_of_arrays:
            result = self.function(*arrays)
            is_fresh = type(result) is Traced and all(result is not array for array in arrays)
            if is_fresh and symbolic_dims.same_shape(result.extents, builder.broadcast_shapes(map(_extents, arrays))):
                return result
        inputs = [numpy.broadcast_to(array, shape) for array in arrays]
        dtypes, is_tuple = self._dtypes(inputs)
        outputs = [numpy.empty(shape, dtype) for dtype in dtypes]
        self._run(elementwise_loops(len(inputs), len(outputs), len(shape)), dtypes, *inputs, *outputs)
        return tuple(outputs) if is_tuple else outputs[0]

    def reduce(
        self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False, **keywords: Any
    ) -> Any:
        """As `numpy.ufunc.reduce`, in order along one axis."""
        _refuse({**keywords, "dtype": dtype})
        array = numpy.asarray(array)
        if axis is None and array.ndim == 1:
            axis = 0
        if type(axis) is not int or not array.ndim:
            raise UnsupportedError("a reduction by a vectorized function along other than one axis")
        rows = self._in_loop_types(numpy.moveaxis(array, axis, 0))
        result = self._start(rows, rows.shape[1:])
        result[...] = rows[0]
        self._run(fold_loops(rows.ndim - 1, accumulates=False), [result.dtype], rows, result)
        result = result[()] if rows.ndim == 1 else result
        if keepdims:
            result = numpy.expand_dims(result, axis)
        return result if out is None else _into(out, result)

    def accumulate(self, array: Any, axis: Any = 0, **keywords: Any) -> Any:
        """As `numpy.ufunc.accumulate`."""
        _refuse(keywords)
        array = numpy.asarray(array)
        if type(axis) is not int or not array.ndim:
            raise UnsupportedError("an accumulation by a vectorized function along other than one axis")
        rows = self._in_loop_types(numpy.moveaxis(array, axis, 0))
        result = self._start(rows, rows.shape)
        result[0] = rows[0]
        self._run(fold_loops(rows.ndim - 1, accumulates=True), [result.dtype], rows, result)
        return numpy.moveaxis(result, 0, axis)

    def outer(self, first: Any, second: Any, **keywords: Any) -> Any:
        """As `numpy.ufunc.outer`."""
        first, second = numpy.asarray(first), numpy.asarray(second)
        return self(first.reshape((*first.shape, *[1] * second.ndim)), second, **keywords)

    def _in_loop_types(self, rows: Any) -> Any:
        cast, is_same = in_loop_types(rows, self.types, _converted)
        if not is_same:
            raise UnsupportedError("a reduction by a function whose declared results have other types")
        return cast

    def _start(self, rows: Any, shape: Any) -> Any:
        """A new array for results of a fold. Raises UnsupportedError without elements, for which ufuncs have none."""
        if rows.size == 0:
            raise UnsupportedError("a reduction of no elements")
        if rows.shape[0] == 1 or self.types:
            return numpy.empty(shape, rows.dtype)
        (dtype,), _ = self._dtypes([rows, rows])
        return numpy.empty(shape, np.result_type(dtype, str(rows.dtype)))

    def _dtypes(self, arrays: Sequence[Any]) -> tuple[list[Any], bool]:
        """The dtypes of the results for the first elements of arrays, and whether there are several."""
        tracer = _tracer()
        if any(array.size == 0 for array in arrays):
            raise UnsupportedError("a vectorized function of no elements")
        before = len(tracer.joined_kinds)
        result = self.function(*[array[(0,) * array.ndim] for array in arrays])
        is_natural = all(str(array.dtype) in NATURAL for array in arrays)
        if not is_natural and any(dtype_of(a) != dtype_of(b) for a, b in tracer.joined_kinds[before:]):
            raise UnsupportedError(SEVERAL_TYPES)
        return _dtypes_of(result), type(result) is tuple

    def _run(self, code: types.CodeType, dtypes: Sequence[Any], *arrays: Any) -> None:
        """Run loops in which the function must return numbers of these dtypes: stores would convert others."""

        def function(*elements: Any) -> Any:
            result = self.function(*elements)
            if _dtypes_of(result) != [*dtypes]:
                raise UnsupportedError(SEVERAL_TYPES)
            return result

        types.FunctionType(code, {FLOW: runtime_hooks, "function": function, "first": 1})(*arrays)


class TracedGufunc:
    """A generalized universal function, which writes to its last arguments. `layout`: as ``(n),(n)->()``."""

    def __init__(self, function: Callable[..., Any], layout: str, loop_types: Sequence[str]) -> None:
        self.function, self.types = function, loop_types
        self.inputs, self.outputs = dimensions_of(layout)

    def __call__(self, *arguments: Any, out: Any = None, **keywords: Any) -> Any:
        _refuse(keywords)
        count = len(self.inputs)
        given = arguments[count:]
        if len(arguments) != count and (len(given) != len(self.outputs) or out is not None):
            raise UnsupportedError("a generalized ufunc with other arguments than its layout has")
        arrays, dtypes = resolved(
            [*map(numpy.asarray, arguments[:count])], self.types, [*map(_type_of, arguments[:count])], _converted
        )
        batch, sizes = batch_of([array.shape for array in arrays], self.inputs, numpy.broadcast_shapes)
        if not all(name in sizes for names in self.outputs for name in names):
            raise UnsupportedError("a generalized ufunc with a dimension of outputs alone")
        inputs = [
            numpy.broadcast_to(array, (*batch, *(sizes[name] for name in names)))
            for array, names in zip(arrays, self.inputs, strict=True)
        ]
        shapes = [(*batch, *(sizes[name] for name in names)) for names in self.outputs]
        if given:
            _check_outputs(given, shapes, dtypes)
        if any(_storage(one) is _storage(array) for one in given for array in arrays):
            inputs = [array.copy() for array in inputs]  # as NumPy does where they overlap outputs
        results = given or tuple(numpy.empty(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True))
        outputs = [
            result if names else numpy.expand_dims(result, -1)
            for result, names in zip(results, self.outputs, strict=True)
        ]
        table = {FLOW: runtime_hooks, "function": self.function}
        types.FunctionType(row_loops(count, len(outputs), len(batch)), table)(*inputs, *outputs)
        if not given and not batch:
            results = tuple(one if names else one[()] for one, names in zip(results, self.outputs, strict=True))
        result = results if len(results) > 1 else results[0]
        return result if out is None else _into(out, result)


def _type_of(argument: Any) -> Any:
    """Python's type of a number; None for a number of NumPy's."""
    if type(argument) is Traced:
        return argument.python if argument.is_weak else None
    return int if type(argument) is SymInt else type(argument)


def _converted(array: Any, dtype: np.dtype[Any], is_weak: bool) -> Any:
    if is_weak and type(array) is Traced and array.dtype.kind == "i":
        int_cast_checks.check(array.tracer, array.node, dtype.name)
    return array.astype(dtype)


def _number(result: Any) -> Any:
    """A result for numbers as NumPy's number, as those for arrays have its dtypes."""
    return numpy.asarray(result)[()]


def _dtypes_of(result: Any) -> list[Any]:
    return [numpy.asarray(one).dtype for one in (result if type(result) is tuple else (result,))]


def _check_outputs(given: Sequence[Any], shapes: Sequence[Any], dtypes: Sequence[np.dtype[Any]]) -> None:
    """Raise UnsupportedError for arrays that results cannot be written to as they are."""
    if not all(type(one) is Traced and tuple(one.shape) == shape for one, shape in zip(given, shapes, strict=True)):
        raise UnsupportedError("an output of a generalized ufunc of another shape")
    if any(str(one.dtype) != dtype.name for one, dtype in zip(given, dtypes, strict=False)):
        raise UnsupportedError("an output of a generalized ufunc of another dtype")


def _storage(array: Any) -> Any:
    return array.view.storage if type(array) is Traced else array


def _takes_arrays(function: Any, code: types.CodeType) -> bool:
    """Whether a function of numbers is one of arrays as well: it has operators and universal functions alone."""
    if has_control_flow(code) or code.co_freevars or any(isinstance(one, types.CodeType) for one in code.co_consts):
        return False
    if not OF_NUMBERS.isdisjoint(name for step in dis.get_instructions(code) for name in (step.opname, step.argrepr)):
        return False
    table = function.__globals__
    values = {name: original(table[name]) for name in code.co_names if name in table}
    if any(
        not (value is np or isinstance(value, np.ufunc | bool | int | float | complex)) for value in values.values()
    ):
        return False
    return all(name == "abs" or _is_elementwise(name) for name in code.co_names if name not in values)


def _is_elementwise(name: str) -> bool:
    """Whether an attribute of NumPy, which no attribute of numbers has the name of, is a function of elements."""
    value = getattr(np, name, None)
    is_ufunc = isinstance(value, np.ufunc) and value.signature is None
    return name in OF_ELEMENTS or is_ufunc or (isinstance(value, type) and issubclass(value, np.number | np.bool_))


def _extents(array: Any) -> tuple[Any, ...]:
    return tuple(array.extents if type(array) is Traced else array.shape)


def _tracer() -> Tracer:
    tracer = current()
    if tracer is None:
        raise UnsupportedError("a vectorized function called outside of a trace")
    return tracer


def _refuse(keywords: dict[str, Any]) -> None:
    given = [name for name, value in keywords.items() if value is not None]
    if given:
        raise UnsupportedError(f"a vectorized function with {given[0]}=")


def _into(out: Any, result: Any) -> Any:
    if type(result) is tuple or type(out) is tuple:
        raise UnsupportedError("a vectorized function with a tuple as out")
    out[...] = result
    return out


SERVICES["universal"] = lambda function, code, layout, loop_types: (
    TracedGufunc(function, layout, loop_types) if layout else TracedUfunc(function, code, loop_types)
)
