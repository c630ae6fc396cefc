"""Everyday calls bound to rows: from what a user passes to the fields, the arrays and the result shapes of a kernel.

All of it follows from the arrays that a row declares. This is the plain Python of it, which raises every error and
serves whatever the compiled dispatcher (`jitkernels.native.dispatch`) leaves to it; both follow the same rules:

* inputs without a dtype of their own are taken as float32 if that holds them all, else as float64; integers and
  booleans count as float64 beside nothing narrower, Python numbers take the dtype of the arrays;
* leading dimensions (``*rows``) broadcast against each other; all other extents must agree;
* a number (the shape ``1``) may have no dimension;
* where a row has trailing dimensions (``n *remain``), ``axis`` says which one the last extent before them is, so that
  nothing is moved; elsewhere it is moved to the end, and back in the results;
* a transposed matrix is taken as it lies;
* where there are no inputs, ``shape`` tells the leading dimensions, and ``dtype`` the dtype, unless ``out`` does.
"""

import inspect
import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitkernels.errors import (
    ArgumentError,
    ArgumentTypeError,
    DataIndexError,
    WorkspaceError,
    shown,
)
from jitkernels.records import record
from jitkernels.signature import AnyArray, Argument, Array

if TYPE_CHECKING:
    from jitkernels.attrs.base import KernelAttr

AXIS = "axis"
SHAPE = "shape"
DTYPE = "dtype"
MOST_DIMENSIONS = 64
"""Of NumPy's arrays."""
WEAK = (bool, int, float)
"""Python's numbers, which have no dtype of their own."""


@record
class Call:
    """An everyday call in terms of a kernel: its attr, its input arrays, and what the caller gets back.

    `shapes` are the shapes of the results as the caller sees them, in the memory order of the kernel's
    outputs. `finish`, if given, turns a result of that shape into the caller's (a view with axes moved).
    """

    attr: "KernelAttr"
    inputs: Sequence[AnyArray]
    shapes: Sequence[tuple[int, ...]]
    finish: Callable[[AnyArray], AnyArray] | None = None


def inputs_of(row: "type[KernelAttr]") -> list[Argument]:
    """The arrays that an everyday call is given."""
    return [argument for argument in row.arrays if argument.role == "in"]


def outputs_of(row: "type[KernelAttr]") -> list[Argument]:
    """The arrays that an everyday call gives back."""
    return [argument for argument in row.arrays if argument.role == "out"]


def trailing_of(row: "type[KernelAttr]") -> str | None:
    """The symbol of the trailing dimensions of a row's inputs, if they may have any."""
    return next((a.trailing for a in inputs_of(row) if a.trailing is not None), None)


def is_everyday(row: "type[KernelAttr]") -> bool:
    """Whether inputs and options tell all extents, so that a call needs nothing but them."""
    told = {symbol for argument in inputs_of(row) for extent in argument.extents for symbol in extent.symbols}
    told |= {*wholes_of(row)} | (_spread(row) if SHAPE in row.options else set())
    wanted = {symbol for a in outputs_of(row) for extent in a.extents for symbol in extent.symbols}
    fixed = {name for name, field in row.known_fields().items() if field.is_integer}
    return bool(row.arrays) and wanted | fixed <= told


def wholes_of(row: "type[KernelAttr]") -> list[str]:
    """The options that are ints, which shapes may have beside extents."""
    known = row.known_fields()
    return [name for name in row.options if name in known and known[name].kind == "whole"]


def parameters(row: "type[KernelAttr]") -> inspect.Signature:
    """Arrays by name, those that may be missing with the default None, then options with theirs, if any."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    found = [
        inspect.Parameter(a.name, kind, default=inspect.Parameter.empty if a.when is None else None)
        for a in inputs_of(row)
    ]
    empty = inspect.Parameter.empty
    defaults = {name: getattr(row, name, empty) for name in row.known_fields()}
    defaults |= {AXIS: -1, SHAPE: empty, DTYPE: None}
    found += [inspect.Parameter(name, kind, default=defaults[name]) for name in row.options]
    return inspect.Signature(found)


def bound(row: "type[KernelAttr]", arguments: Sequence[Any], named: dict[str, Any]) -> Call:
    """The call of a kernel that an everyday call stands for."""
    kernel = row.kernel_type.name.lower()
    try:
        given = row.parameters().bind(*arguments, **named)
    except TypeError as error:
        raise ArgumentTypeError(f"{kernel}{row.parameters()}: {error}") from None
    given.apply_defaults()
    values = given.arguments
    present = _present(kernel, row, values)
    known = row.known_fields()
    arrays, dtype = _arrays(kernel, row, present, values)
    kinds = _told_dtypes(row, present, arrays, values)
    arrays = {a.name: _narrowed(kernel, a, arrays[a.name], kinds) for a in present}
    told = {name: known[name].canonical(known[name].label, values[name]) for name in wholes_of(row)}
    options = {name: values[name] for name in row.options if name in known and name not in told}
    if DTYPE in options:
        dtype = "float64" if options[DTYPE] is None else options[DTYPE]
        del options[DTYPE]
    flags = {a.when: a in present for a in inputs_of(row) if a.when is not None}
    trail: tuple[int, ...] = ()
    if trailing_of(row) is None:
        moved, finish = _moved(kernel, row, arrays, values)
    else:
        moved, finish, trail = arrays, None, _trail(kernel, row, present, arrays, values)
    lead = (
        _shape(kernel, values[SHAPE]) if SHAPE in row.options else _lead(kernel, present, moved, len(trail))
    )
    extents, missing = _extents(kernel, row, present, moved, lead, trail, told)
    results = [
        _result_shape(argument, extents, lead, missing, trail)
        for argument in outputs_of(row)
        if argument.when is None or flags[argument.when]
    ]
    looks = any(a.spreads and isinstance(a.domain[1], str) for a in present)  # at each index, results or none
    if all(0 in shape for shape in results) and not looks:
        extents |= dict.fromkeys(_spread(row), 0)
    lying = {a.turned: _lies_turned(a, moved[a.name], lead) for a in present if a.turned is not None}
    options |= {name: kinds[name] for name in kinds if name in known}
    attr = row(**extents, **options, **flags, **lying, **({DTYPE: dtype} if DTYPE in known else {}))
    wanted = {array.name: array for array in attr.signature().arrays}
    inputs = [_flat(kernel, a, moved[a.name], lead, wanted[a.name], len(trail)) for a in present]
    return Call(attr, inputs, results, finish)


def _present(kernel: str, row: "type[KernelAttr]", values: dict[str, Any]) -> list[Argument]:
    """The inputs that are given; those of one flag come together or not at all."""
    for flag in dict.fromkeys(a.when for a in inputs_of(row) if a.when is not None):
        group = [a.name for a in inputs_of(row) if a.when == flag]
        if len({values[name] is None for name in group}) > 1:
            raise ArgumentError(f"{kernel}: {' and '.join(group)}: expected both or neither")
    return [a for a in inputs_of(row) if a.when is None or values[a.name] is not None]


def _told_dtypes(
    row: "type[KernelAttr]", present: Sequence[Argument], arrays: dict[str, AnyArray], values: dict[str, Any]
) -> dict[str, str]:
    """The dtypes that inputs tell of by their own, where a field says which of some it is and no option does."""
    found: dict[str, str] = {}
    known = row.known_fields()
    for argument in present:
        name = argument.dtype or ""
        field = known.get(name)
        if field is None or name in row.options:
            continue
        array = arrays[argument.name]
        own, default = array.dtype.name, getattr(row, name)
        if own not in field.values:
            own = default
            if array.size and array.dtype.kind == "i" and int(array.max()) > int(np.iinfo(default).max):
                own = next(str(v) for v in field.values if v != default)
        found.setdefault(name, own)
    options = [name for name in row.options if name in known and known[name].values and name != DTYPE]
    return found | {name: known[name].canonical(known[name].label, values[name]) for name in options}


def _narrowed(kernel: str, argument: Argument, array: AnyArray, told: dict[str, str]) -> AnyArray:
    """Integers as those that a row takes. Raises ArgumentError for those that are none of them."""
    if argument.dtype is None or argument.dtype == "int64":
        return array
    wanted = np.dtype(told.get(argument.dtype, argument.dtype))
    if array.dtype == wanted or not array.size:
        return array.astype(wanted, copy=False)
    limits = np.iinfo(wanted)
    least, most = int(array.min()), int(array.max())
    if least < limits.min or most > limits.max:
        came = least if least < limits.min else most
        raise ArgumentError(
            f"{kernel}: {argument.name}: expected integers from {limits.min} to {limits.max} ({wanted}), got {came}"
        )
    return array.astype(wanted)


def _arrays(
    kernel: str, row: "type[KernelAttr]", present: Sequence[Argument], values: dict[str, Any]
) -> tuple[dict[str, AnyArray], str]:
    """Every input as an ndarray of numbers, and the dtype of those that have none of their own."""
    arrays = {a.name: _array(kernel, a, values[a.name]) for a in present}
    floating = [a.name for a in present if a.dtype is None]
    weak = [values[name] if type(values[name]) in WEAK else arrays[name].dtype for name in floating]
    common = np.result_type(*weak) if floating else np.dtype(np.float64)
    return arrays, "float32" if common in (np.dtype(np.float16), np.dtype(np.float32)) else "float64"


def _array(kernel: str, argument: Argument, value: Any) -> AnyArray:
    wanted = "integers" if argument.dtype else "real numbers"
    label = f"{kernel}: {argument.name}: expected {wanted}"
    if _is_masked(value):
        raise ArgumentTypeError(
            f"{kernel}: {argument.name}: expected an array without a mask, got a masked array"
        )
    try:
        array = np.asarray(value)
    except MemoryError as error:
        raise WorkspaceError(f"{kernel}: {argument.name}: no memory to convert it: {error}") from None
    except Exception as error:  # noqa: BLE001  # whatever a strange object raises
        raise ArgumentTypeError(f"{label}, got {type(value).__name__}: {error}") from None
    if array.dtype.kind not in ("iu" if argument.dtype else "fiub") or array.dtype.itemsize > 8:
        came = f"{type(value).__name__} of " if array.dtype == object else ""
        raise ArgumentTypeError(f"{label}, got {came}dtype {array.dtype}")
    if argument.is_number and array.ndim == 0:
        array = array.reshape(1)
    if argument.dtype == "int64" and array.dtype == np.uint64 and array.size:
        largest = int(array.max())
        if largest > np.iinfo(np.int64).max:
            raise DataIndexError(f"{label} of 64 bits with a sign, got {largest}")
    return array


def _is_masked(value: Any) -> bool:
    """Whether it is an array with a mask; where nobody has imported these there are none, and it takes 10 ms."""
    return "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray)


def _trail(
    kernel: str,
    row: "type[KernelAttr]",
    present: Sequence[Argument],
    arrays: dict[str, AnyArray],
    values: dict[str, Any],
) -> tuple[int, ...]:
    """The trailing dimensions, which all inputs that may have some have alike."""
    first, *others = [a for a in present if a.trailing is not None]
    shape: tuple[int, ...] = arrays[first.name].shape
    if AXIS in row.options:
        count = -1 - _from_end(kernel, first.name, len(shape), values[AXIS])
    else:
        count = max(len(shape) - len(first.fixed), 0)
    trail = shape[len(shape) - count :]
    for other in others:
        came = arrays[other.name].shape
        if len(came) < count or came[len(came) - count :] != trail:
            raise ArgumentError(
                f"{kernel}: {other.name}: expected the last dimensions {trail}, as {first.name} has them, got {came}"
            )
    return trail


def _from_end(kernel: str, name: str, dimensions: int, given: Any) -> int:
    """An axis of an array, counted from the end."""
    axis = _index(kernel, given)
    if dimensions == 0:
        raise ArgumentError(f"{kernel}: {name}: expected at least 1 dimension, got 0")
    if not -dimensions <= axis < dimensions:
        raise ArgumentError(f"{kernel}: axis: expected -{dimensions} to {dimensions - 1}, got {shown(axis)}")
    return axis % dimensions - dimensions


def _index(kernel: str, axis: Any) -> int:
    why: Exception | None = None
    if not isinstance(axis, bool):
        try:
            return operator.index(axis)
        except Exception as error:  # noqa: BLE001  # whatever an object that is asked for its number raises
            why = error
    raise ArgumentTypeError(f"{kernel}: axis: expected an int, got {shown(axis)}") from why


def _shape(kernel: str, given: Any) -> tuple[int, ...]:
    """The leading dimensions that a call names: an int, or several."""
    extents = given if isinstance(given, tuple | list) else (given,)
    found = []
    for extent in extents:
        if isinstance(extent, bool) or not isinstance(extent, int | np.integer):
            raise ArgumentTypeError(
                f"{kernel}: shape: expected an int or a tuple of ints, got {shown(given)}"
            )
        if extent < 0 or len(extents) > MOST_DIMENSIONS:
            raise ArgumentError(
                f"{kernel}: shape: expected at most {MOST_DIMENSIONS} ints of 0 or more, got {shown(given)}"
            )
        found.append(int(extent))
    most_bytes = 8 * math.prod(max(extent, 1) for extent in found)
    if most_bytes > sys.maxsize:  # NumPy makes none such, empty or not
        raise ArgumentError(f"{kernel}: shape: expected one that memory can have, got {shown(given)}")
    return tuple(found)


def _moved(
    kernel: str, row: "type[KernelAttr]", arrays: dict[str, AnyArray], values: dict[str, Any]
) -> tuple[dict[str, AnyArray], Callable[[AnyArray], AnyArray] | None]:
    """The arrays with their axis at the end, and what moves it back in a result (None if it was there)."""
    if AXIS not in row.options:
        return arrays, None
    turned = [a.name for a in inputs_of(row) if a.name in arrays and any(e.spread for e in a.extents)]
    from_end = _from_end(kernel, turned[0], arrays[turned[0]].ndim, values[AXIS])
    if from_end == -1:
        return arrays, None
    shifted = {
        n: np.moveaxis(arrays[n], from_end, -1) if arrays[n].ndim >= -from_end else arrays[n] for n in turned
    }
    return arrays | shifted, lambda result: np.moveaxis(result, -1, from_end)


def _fixed(argument: Argument, array: AnyArray) -> int:
    """How many of an array's dimensions are not leading ones."""
    own = argument.fixed
    short = own and own[-1].optional and not argument.spreads and array.ndim == len(own) - 1
    return len(own) - 1 if short else len(own)


def _lead(
    kernel: str, present: Sequence[Argument], arrays: dict[str, AnyArray], behind: int
) -> tuple[int, ...]:
    """The common leading dimensions. Raises ArgumentError where they do not broadcast."""
    shapes = {}
    for argument in present:
        array, spreads = arrays[argument.name], argument.spreads
        fixed = _fixed(argument, array) + _behind(argument, behind)
        if array.ndim < fixed or (array.ndim > fixed and not spreads):
            fixed = len(argument.fixed)
            spreads = spreads or argument.trailing is not None
            many = f"{'at least ' if spreads else ''}{fixed} dimension{'s' * (fixed != 1)}"
            raise ArgumentError(
                f"{kernel}: {argument.name}: expected {many} {argument.symbols}, got {array.ndim}"
            )
        if spreads:
            shapes[argument.name] = array.shape[: array.ndim - fixed]
    different = list(dict.fromkeys(shapes.values()))
    if len(different) < 2:
        return different[0] if different else ()
    try:
        return np.broadcast_shapes(*different)
    except (ValueError, RuntimeError):  # the latter for more dimensions than NumPy broadcasts
        listed = " and ".join(str(arrays[name].shape) for name in shapes)
        raise ArgumentError(
            f"{kernel}: {' and '.join(shapes)}: expected shapes that broadcast, got {listed}"
        ) from None


def _extents(
    kernel: str,
    row: "type[KernelAttr]",
    present: Sequence[Argument],
    arrays: dict[str, AnyArray],
    lead: tuple[int, ...],
    trail: tuple[int, ...],
    told: dict[str, int],
) -> tuple[dict[str, int], set[str]]:
    """The value of each symbol, some of which options told, and the symbols whose extents an array left out."""
    values = dict(told)
    missing: set[str] = set()
    for plain in (True, False):  # plain symbols first, so that the others are checked against them
        for argument in present:
            array = arrays[argument.name]
            shape = _before(argument, array, len(trail))
            fixed, own = _fixed(argument, array), argument.fixed
            for extent, size in zip(own, shape[len(shape) - fixed :], strict=False):
                if len(extent.symbols) == 1 and (extent.factor == 1) == plain and size % extent.factor == 0:
                    values.setdefault(extent.symbols[0], size // extent.factor)
            if fixed < len(own):
                missing.add(own[-1].symbols[0])
                values.setdefault(own[-1].symbols[0], 1)
    values |= dict.fromkeys(_spread(row), math.prod(lead))
    behind = trailing_of(row)
    if behind is not None:
        values[behind] = math.prod(trail)
    for argument in present:
        array = arrays[argument.name]
        own = argument.fixed[: _fixed(argument, array)]
        known = all(symbol in values for extent in own for symbol in extent.symbols)
        wanted = tuple(extent.value(values) for extent in own) if known else None
        shape = _before(argument, array, len(trail))
        if shape[len(shape) - len(own) :] != wanted:
            meant = f"shape {argument.symbols}" + (f" = {wanted}" if wanted is not None else "")
            raise ArgumentError(f"{kernel}: {argument.name}: expected {meant}, got {array.shape}")
    return values, missing


def _behind(argument: Argument, behind: int) -> int:
    """How many trailing dimensions an array has where a call has so many."""
    return behind if argument.trailing is not None else 0


def _before(argument: Argument, array: AnyArray, behind: int) -> tuple[int, ...]:
    """The shape of an array without its trailing dimensions."""
    shape: tuple[int, ...] = array.shape
    return shape[: len(shape) - _behind(argument, behind)]


def _result_shape(
    argument: Argument,
    values: dict[str, int],
    lead: tuple[int, ...],
    missing: set[str],
    trail: tuple[int, ...],
) -> tuple[int, ...]:
    own = [e for e in argument.fixed if not (e.optional and e.symbols[0] in missing)]
    fixed = tuple(extent.value(values) for extent in own)
    return (lead if argument.spreads else ()) + fixed + (trail if argument.trailing is not None else ())


def _spread(row: "type[KernelAttr]") -> set[str]:
    """The symbols of leading dimensions."""
    return {e.symbols[0] for a in row.arrays for e in a.extents if e.spread}


def _lies_turned(argument: Argument, array: AnyArray, lead: tuple[int, ...]) -> bool:
    """Whether matrices lie in memory as the transposes of C-contiguous ones, which needs no copy."""
    if array.flags.c_contiguous or array.ndim < 2:
        return False
    if array.ndim > 2 and (len(argument.fixed) < 2 or array.shape[:-2] != lead):
        return False
    return bool(array.swapaxes(-1, -2).flags.c_contiguous)


def _flat(
    kernel: str, argument: Argument, array: AnyArray, lead: tuple[int, ...], wanted: Array, behind: int
) -> AnyArray:
    """An input in the kernel's own shape: contiguous, aligned, of its dtype; the caller's memory if possible."""
    if argument.spreads:
        fixed = _fixed(argument, array) + _behind(argument, behind)
        whole = lead + array.shape[array.ndim - fixed :]
        array = array if array.shape == whole else np.broadcast_to(array, whole)
    if argument.turned is not None and _lies_turned(argument, array, lead):
        array = array.swapaxes(-1, -2)
    if array.size != math.prod(wanted.shape):
        return np.empty(wanted.shape, wanted.dtype)  # no result has an element, so nobody reads it
    if array.dtype == wanted.dtype and array.flags.c_contiguous and array.flags.aligned:
        return array.reshape(wanted.shape)
    try:
        with np.errstate(all="ignore"):
            return np.require(array, wanted.dtype, ["C", "A"]).reshape(wanted.shape)
    except (MemoryError, ValueError) as error:  # as many bytes as no machine has are a ValueError
        raise WorkspaceError(
            f"{kernel}: {argument.name}: no memory for {wanted.describe()}: {error}"
        ) from None
