"""Bind everyday calls to schemas: from a user's arguments to the fields, input arrays and result shapes of a kernel.

All of it follows from the arrays that a schema declares. This is the Python version, which raises every error and is
the fallback of the compiled dispatcher (`jitkernels.dispatch.native`); both follow the same rules:

* inputs without a dtype of their own are cast to float32 if that holds them all, else to float64; integers and
  booleans count as float64 beside nothing narrower, Python scalars take the dtype of the arrays;
* where the schema stores integers, these stay integers: of the first dtype that it stores and that holds them all;
* bfloat16 of another package, such as ml_dtypes, stays bfloat16 where the schema stores it and NumPy would keep it, and
  is cast to float32 elsewhere; arrays of uint16 are integers;
* leading dimensions (``*rows``) broadcast against each other; all other extents must agree;
* a scalar (the shape ``1``) may have no dimension;
* where a schema has trailing dimensions (``n *remain``), ``axis`` selects the last extent before them, so that no data
  is moved; elsewhere the axis is moved to the end, and back in the results;
* a transposed matrix is passed without a copy;
* where there are no inputs, ``shape`` sets the leading dimensions, and ``dtype`` the dtype, unless ``out`` does.
"""

import math
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitkernels.attrs.schema import foreign_arrays
from jitkernels.attrs.schema.schema_queries import (
    DTYPE,
    SHAPE,
    inputs_of,
    integer_options_of,
    outputs_of,
    spread_of,
    trailing_of,
)
from jitkernels.attrs.schema.shape_inference import (
    extents_of,
    flat,
    is_transpose,
    lead_of,
    moved_axis,
    requested_shape,
    result_shape,
    trail_of,
)
from jitkernels.attrs.schema.signature import AnyArray, Argument
from jitkernels.core import bfloat16
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.errors import ArgumentError, ArgumentTypeError, DataIndexError, WorkspaceError

if TYPE_CHECKING:
    from jitkernels.attrs.schema.base import KernelAttr

WEAK = (bool, int, float)
"""Python's scalar types, which have no dtype of their own."""


@frozen_dataclass
class BoundCall:
    """An everyday call in terms of a kernel: its attr, its input arrays, and the shapes of the caller's results.

    `shapes` are the shapes of the results as the caller sees them, in the memory order of the kernel's outputs.
    `finish`, if not empty, has for each result a function that turns an array of that shape into the caller's (a view
    with axes moved). `narrow`, if not None, is the caller's own bfloat16 dtype, whose bits the inputs are.
    """

    attr: "KernelAttr"
    inputs: Sequence[AnyArray]
    shapes: Sequence[tuple[int, ...]]
    finish: Sequence[Callable[[AnyArray], AnyArray]] = ()
    narrow: "np.dtype[Any] | None" = None


@frozen_dataclass
class Form:
    """An everyday call without its values: the attr, the inputs that are present, unconverted, and the results.

    `lead` and `trail` are the leading and trailing dimensions; `behind` moves the axis of a result back, if it was
    moved. `results` are the outputs with their shapes. `missing` are the symbols whose extents an input omitted.
    """

    attr: "KernelAttr"
    present: tuple[Argument, ...]
    arrays: dict[str, AnyArray]
    lead: tuple[int, ...]
    trail: tuple[int, ...]
    results: tuple[tuple[Argument, tuple[int, ...]], ...]
    missing: frozenset[str]
    behind: Callable[[AnyArray], AnyArray] | None = None


def bound(schema: "type[KernelAttr]", arguments: Sequence[Any], named: dict[str, Any]) -> BoundCall:
    """The kernel call that an everyday call stands for."""
    kernel = schema.kernel_type.name.lower()
    form = form_of(schema, arguments_by_name(schema, arguments, named))
    attr, arrays = form.attr, form.arrays
    declared = {array.name: array for array in attr.signature().arrays}
    inputs = [flat(kernel, a, arrays[a.name], form.lead, declared[a.name], len(form.trail)) for a in form.present]
    is_narrow = attr.fields().get(DTYPE) == bfloat16.BFLOAT16_NAME
    narrow = bfloat16.foreign_among(arrays.values()) if is_narrow else None
    shapes = [shape for _, shape in form.results]
    restore_axis = form.behind
    finishes = [restore_axis if argument.fixed else np.asarray for argument, _ in form.results] if restore_axis else ()
    return BoundCall(attr, inputs, shapes, finishes, narrow)


def arguments_by_name(schema: "type[KernelAttr]", arguments: Sequence[Any], named: dict[str, Any]) -> dict[str, Any]:
    """The arguments of an everyday call by parameter name, defaults included."""
    try:
        bound_arguments = schema.parameters().bind(*arguments, **named)
    except TypeError as error:
        raise ArgumentTypeError(f"{schema.kernel_type.name.lower()}{schema.parameters()}: {error}") from None
    bound_arguments.apply_defaults()
    return bound_arguments.arguments


def form_of(schema: "type[KernelAttr]", values: dict[str, Any]) -> Form:
    """Infer fields and shapes from the arguments; no float array is copied, except masks that broadcast."""
    kernel = schema.kernel_type.name.lower()
    present = _present(kernel, schema, values)
    known = schema.known_fields()
    arrays, dtype = _arrays(kernel, schema, present, values)
    kinds = _inferred_dtypes(schema, present, arrays, values)
    arrays = {a.name: _narrowed(kernel, a, arrays[a.name], kinds) for a in present}
    arrays |= {a.name: _broadcast_along(a, arrays, present) for a in present if a.along is not None}
    integer_options = {
        name: known[name].canonical(known[name].label, values[name]) for name in integer_options_of(schema)
    }
    options = {name: values[name] for name in schema.options if name in known and name not in integer_options}
    if DTYPE in options:
        dtype = "float64" if options[DTYPE] is None else options[DTYPE]
        del options[DTYPE]
    flags: dict[str, Any] = {a.when: a in present for a in inputs_of(schema) if a.when is not None}
    trail: tuple[int, ...] = ()
    if trailing_of(schema) is None:
        moved, restore_axis = moved_axis(kernel, schema, arrays, values)
    else:
        moved, restore_axis, trail = arrays, None, trail_of(kernel, schema, present, arrays, values)
    lead = (
        requested_shape(kernel, values[SHAPE])
        if SHAPE in schema.options
        else lead_of(kernel, present, moved, len(trail))
    )
    settled = {name: known[name].canonical(known[name].label, options[name]) for name in options if schema.derived}
    extents, missing = extents_of(kernel, schema, present, moved, lead, trail, {**settled, **integer_options})
    requested = [a for a in outputs_of(schema) if a.when is None or (flags | kinds)[a.when]]
    results = tuple((argument, result_shape(argument, extents, lead, missing, trail)) for argument in requested)
    checks_indices = any(
        a.spreads and isinstance(a.domain[1], str) for a in present
    )  # every index is checked, even if there are no results
    if all(0 in shape for _, shape in results) and not checks_indices:
        extents |= dict.fromkeys(spread_of(schema), 0)
    transposed = {a.transposed: is_transpose(a, moved[a.name], lead) for a in present if a.transposed is not None}
    options |= {name: kinds[name] for name in kinds if name in known}
    sizes = {name: extents[name] for name in extents if name not in options and name not in schema.derived}
    attr = schema(**sizes, **options, **flags, **transposed, **({DTYPE: dtype} if DTYPE in known else {}))
    return Form(attr, tuple(present), moved, lead, trail, results, frozenset(missing), restore_axis)


def _present(kernel: str, schema: "type[KernelAttr]", values: dict[str, Any]) -> list[Argument]:
    """The inputs that are not None. Raises ArgumentError if some but not all inputs of one flag are."""
    for flag in dict.fromkeys(a.when for a in inputs_of(schema) if a.when is not None):
        group = [a.name for a in inputs_of(schema) if a.when == flag]
        if len({values[name] is None for name in group}) > 1:
            raise ArgumentError(f"{kernel}: {' and '.join(group)}: expected both or neither")
    return [a for a in inputs_of(schema) if a.when is None or values[a.name] is not None]


def _inferred_dtypes(
    schema: "type[KernelAttr]", present: Sequence[Argument], arrays: dict[str, AnyArray], values: dict[str, Any]
) -> dict[str, str]:
    """The values of dtype fields that the dtype of an input determines, unless an option of that name does."""
    inferred: dict[str, str] = {}
    known = schema.known_fields()
    for argument in present:
        name = argument.dtype or ""
        field = known.get(name)
        if field is None or name in schema.options:
            continue
        array = arrays[argument.name]
        own, default = array.dtype.name, getattr(schema, name)
        if own not in field.values:
            own = default
            if array.size and array.dtype.kind == "i" and int(array.max()) > int(np.iinfo(default).max):
                own = next(str(v) for v in field.values if v != default)
        inferred.setdefault(name, own)
    options = [name for name in schema.options if name in known and known[name].values and name != DTYPE]
    return inferred | {name: known[name].canonical(known[name].label, values[name]) for name in options}


def _narrowed(kernel: str, argument: Argument, array: AnyArray, inferred: dict[str, str]) -> AnyArray:
    """Cast integers to the dtype that the schema declares. Raises ArgumentError for values out of its range."""
    if argument.dtype is None or argument.dtype == "int64":
        return array
    wanted = np.dtype(inferred.get(argument.dtype, argument.dtype))
    if array.dtype == wanted or not array.size:
        return array.astype(wanted, copy=False)
    limits = np.iinfo(wanted)
    least, most = int(array.min()), int(array.max())
    if least < limits.min or most > limits.max:
        value = least if least < limits.min else most
        raise ArgumentError(
            f"{kernel}: {argument.name}: expected integers from {limits.min} to {limits.max} ({wanted}), got {value}"
        )
    return array.astype(wanted)


def _broadcast_along(argument: Argument, arrays: dict[str, AnyArray], present: Sequence[Argument]) -> AnyArray:
    """Broadcast an array to the dimensions of the input it follows (`Argument.along`), then flatten its leading ones.

    Extents that other inputs have broadcast, too. What does not broadcast stays as it is, for the schema to reject.
    """
    array, other = arrays[argument.name], arrays[argument.along or ""]
    own = tuple(_extent_of_others(extent.symbols[0], argument, arrays, present) for extent in argument.fixed[1:])
    try:
        array = np.broadcast_to(array, np.broadcast_shapes(array.shape, own))
        lead = array.shape[: -len(own)]
        if len(lead) > 1 and set(lead) != {1}:
            array = np.broadcast_to(array, (*other.shape[:-1], own[-1]))
            lead = array.shape[: -len(own)]
    except (ValueError, RuntimeError):  # the latter for more dimensions than NumPy broadcasts
        return arrays[argument.name]
    return array.reshape(math.prod(lead), *array.shape[-len(own) :])


def _extent_of_others(symbol: str, argument: Argument, arrays: dict[str, AnyArray], present: Sequence[Argument]) -> int:
    """An extent as the other inputs have it; 1, which broadcasts to any, where none has."""
    for other in present:
        names = [extent.symbols[0] for extent in other.fixed if extent.is_plain] if other is not argument else []
        shape = arrays[other.name].shape
        if symbol in names and len(shape) >= len(names):
            return int(shape[names.index(symbol) - len(names)])
    return 1


def _arrays(
    kernel: str, schema: "type[KernelAttr]", present: Sequence[Argument], values: dict[str, Any]
) -> tuple[dict[str, AnyArray], str]:
    """Every input as a numeric ndarray, and the common dtype of those that declare none."""
    arrays = {a.name: _array(kernel, a, values[a.name]) for a in present}
    floating = [a.name for a in present if a.dtype is None]
    weak = [values[name] if type(values[name]) in WEAK else arrays[name].dtype for name in floating]
    common = _common(weak) if floating else np.dtype(np.float64)
    known = schema.known_fields().get(DTYPE)
    stored = known.dtypes if known is not None else ()
    if bfloat16.is_foreign(common):
        return arrays, bfloat16.BFLOAT16_NAME if bfloat16.BFLOAT16_NAME in stored else "float32"
    if common.kind in "iub":
        holding = [name for name in stored if not bfloat16.is_float(name) and np.can_cast(common, name)]
        return arrays, holding[0] if holding else "float64"
    return arrays, "float32" if common in (np.dtype(np.float16), np.dtype(np.float32)) else "float64"


def _common(kinds: Sequence[Any]) -> "np.dtype[Any]":
    """NumPy's promotion of dtypes; bfloat16 counts as float32 beside dtypes that it does not promote with.

    Python scalars are ignored beside bfloat16, where NumPy takes a float for a double.
    """
    own = [kind for kind in kinds if isinstance(kind, np.dtype)]
    if not any(map(bfloat16.is_foreign, own)):
        return np.result_type(*kinds)
    try:
        return np.result_type(*own)
    except TypeError:
        return np.result_type(*(np.float32 if bfloat16.is_foreign(kind) else kind for kind in own))


def _array(kernel: str, argument: Argument, value: Any) -> AnyArray:
    wanted = "integers" if argument.dtype else "real numbers"
    label = f"{kernel}: {argument.name}: expected {wanted}"
    if _is_masked(value):
        raise ArgumentTypeError(f"{kernel}: {argument.name}: expected an array without a mask, got a masked array")
    try:
        array = foreign_arrays.as_array(value) if foreign_arrays.is_foreign(value) else np.asarray(value)
    except foreign_arrays.NotShareableError as error:
        raise ArgumentTypeError(f"{label}, got {error}") from None
    except MemoryError as error:
        raise WorkspaceError(f"{kernel}: {argument.name}: no memory to convert it: {error}") from None
    except Exception as error:  # noqa: BLE001  # whatever a strange object raises
        raise ArgumentTypeError(f"{label}, got {type(value).__name__}: {error}") from None
    if argument.dtype is None and bfloat16.is_foreign(array.dtype):
        return array.reshape(1) if argument.is_number and array.ndim == 0 else array
    if array.dtype.kind not in ("iu" if argument.dtype else "fiub") or array.dtype.itemsize > 8:
        got = f"{type(value).__name__} of " if array.dtype == object else ""
        raise ArgumentTypeError(f"{label}, got {got}dtype {array.dtype}")
    if argument.is_number and array.ndim == 0:
        array = array.reshape(1)
    if argument.dtype == "int64" and array.dtype == np.uint64 and array.size:
        largest = int(array.max())
        if largest > np.iinfo(np.int64).max:
            raise DataIndexError(f"{label} of 64 bits with a sign, got {largest}")
    return array


def _is_masked(value: Any) -> bool:
    """Whether `value` is a masked array, without importing `numpy.ma`, which takes 10 ms."""
    return "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray)
