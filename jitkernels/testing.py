"""What a kernel must do, as checks for any implementation of any row, those of other packages included.

    import jitkernels as jk
    from jitkernels import testing

    for attr in testing.attrs_around(jk.VMulAttr):
        for name in jk.get_all_candidates(attr):
            testing.check(attr, name)

A check raises AssertionError with the kernel, its variant, and the first thing that is wrong. A kernel that
touches memory just outside its arrays ends the process: there is no byte there to report about.
"""

import ctypes
import dataclasses
import itertools
import mmap
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from jitkernels.attrs.base import Case, KernelAttr, Tolerance
from jitkernels.errors import AttrError, DataIndexError
from jitkernels.kernel import Kernel
from jitkernels.registry import implementation
from jitkernels.signature import AnyArray
from jitkernels.tuning.agreement import beyond

Oracle = Callable[[KernelAttr, Sequence[AnyArray]], Sequence[AnyArray]]
"""The true outputs of an attr for the arrays of one call; an inout array still holds its input."""
Side = Literal["start", "end"]
SIZES = (*range(34), 47, 64, 65, 100, 127, 255, 257, 513)
"""Extents that leave every tail of every vector width and unrolling, and none."""
NEAREST = 0.501
"""A tolerance of 0 ULP asks for the nearest value: half a unit, and what long double itself may be off."""
UNTOUCHED = 0xA5
_PROTECT_NOTHING = 0


def upcast_reference(attr: KernelAttr, arrays: Sequence[AnyArray]) -> list[AnyArray]:
    """The outputs of ``refer`` computed in long double: the oracle of rows that bring none of their own."""
    wide = [a.astype(np.longdouble) if a.dtype.kind == "f" else a.copy() for a in arrays]
    implementation(type(attr), "refer").function(attr, *wide)
    return [a for a, parameter in zip(wide, attr.signature().arrays, strict=True) if parameter.output]


def special_values(dtype: str) -> AnyArray:
    """NaN, infinities, zeros, subnormals, the ends of the range, and where exp over- and underflows."""
    limits = np.finfo(dtype)
    smallest, tiny, largest = (float(v) for v in (limits.smallest_subnormal, limits.tiny, limits.max))
    ends = [smallest, 3 * smallest, tiny - smallest, tiny, 1.0, 1.0 + float(limits.eps), largest / 2, largest]
    ends += [float(np.log(v)) for v in (tiny, largest)] + [
        -float(np.log(smallest)),
        2 * float(np.log(largest)),
    ]
    values = [float("nan"), float("inf"), 0.0, 0.5, *ends]
    return np.array([*values, *(-v for v in values)], dtype)


class Guarded:
    """A copy of an array with a page that nothing may touch directly before ("start") or after ("end") it.

    The rest of its own pages holds a pattern that `intact` looks for. Where pages cannot be protected, the
    pattern alone tells.
    """

    def __init__(self, array: AnyArray, side: Side) -> None:
        page = mmap.PAGESIZE
        inside = max(1, -(-array.nbytes // page)) * page
        self._memory = mmap.mmap(-1, inside + 2 * page)
        whole = np.frombuffer(self._memory, np.uint8)
        whole[page : page + inside] = UNTOUCHED
        first = page if side == "start" else page + inside - array.nbytes
        self.array: AnyArray = np.ndarray(array.shape, array.dtype, buffer=self._memory, offset=first)
        self.array[...] = array
        self._outside = (whole[page:first], whole[first + array.nbytes : page + inside])
        for offset in (0, page + inside):
            _protect(whole.ctypes.data + offset, page)

    def intact(self) -> bool:
        """Whether nothing was written to the pages of the array beside the array."""
        return all(bool((part == UNTOUCHED).all()) for part in self._outside)


def _protect(address: int, size: int) -> None:
    library = ctypes.CDLL(None)
    if hasattr(library, "mprotect"):
        failed = library.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), _PROTECT_NOTHING)
        assert not failed, "mprotect refused"


def attrs_around(row: type[KernelAttr], sizes: Sequence[int] = SIZES) -> list[KernelAttr]:
    """The "ci" cases of a row, and for each dtype a middle one with each field in turn changed.

    Integers take `sizes`, strings and flags every value they may have. Combinations that the row refuses, and
    those for which no valid data exist (ids into a table of no rows), are left out.
    """
    found = [case.attr for case in ci_cases(row)]
    for dtype in dict.fromkeys(attr.fields()["dtype"] for attr in found):
        base = middle(row, dtype)
        found += [attr for change in _changes(base, sizes) if (attr := _changed(base, change)) is not None]
    return list(dict.fromkeys(found))


def ci_cases(row: type[KernelAttr]) -> list[Case]:
    """The cases of a row's sweep that are tested everywhere."""
    return [case for case in row.sweep() if "ci" in case.tags]


def middle(row: type[KernelAttr], dtype: str) -> KernelAttr:
    """The "ci" case of that dtype whose arrays have the median size, of those with no extent below 2 if any."""
    found = [case.attr for case in ci_cases(row) if case.attr.fields()["dtype"] == dtype]
    proper = [attr for attr in found if min(itertools.chain(*(a.shape for a in attr.signature().arrays))) > 1]
    ordered = sorted(proper or found, key=lambda attr: sum(a.nbytes for a in attr.signature().arrays))
    return ordered[len(ordered) // 2]


def _changes(base: KernelAttr, sizes: Sequence[int]) -> Iterator[dict[str, Any]]:
    for field in dataclasses.fields(base):  # type: ignore[arg-type]  # attrs are dataclasses
        if field.name == "dtype":
            continue
        values: Sequence[Any] = field.metadata.get("values") or ()
        if field.type in (bool, "bool"):
            values = (False, True)
        elif field.type in (int, "int"):
            values = sizes
        yield from ({field.name: value} for value in values)


def _changed(base: KernelAttr, change: dict[str, Any]) -> KernelAttr | None:
    try:
        attr = type(base)(**base.fields() | change)
        attr.check_data(attr.signature().sample())
        return attr
    except (AttrError, DataIndexError):
        return None


def check(attr: KernelAttr, name: str, oracle: Oracle = upcast_reference) -> None:
    """Run every check of values on every variant of an implementation."""
    found = implementation(type(attr), name)
    for variant in found.variants(attr):
        kernel = Kernel(attr, found, variant)
        check_values(attr, kernel.callable, oracle, label=repr(kernel))
        check_in_place(attr, kernel.callable, oracle, label=repr(kernel))
        check_special_values(attr, kernel.callable, oracle, label=repr(kernel))
        check_bad_indices(attr, kernel.callable, label=repr(kernel))


def check_values(
    attr: KernelAttr,
    function: Callable[..., Any],
    oracle: Oracle = upcast_reference,
    *,
    label: str = "",
    seed: int = 0,
) -> None:
    """Outputs are right and wholly written, inputs as before, and nothing around the arrays is touched."""
    signature = attr.signature()
    arrays = signature.sample(seed)
    expected = oracle(attr, [array.copy() for array in arrays])
    for side in ("start", "end"):
        guarded = [Guarded(array, side) for array in arrays]
        returned = function(*[guard.array for guard in guarded])
        assert returned is None, f"{label} returned {returned!r} instead of None"
        for parameter, guard, before in zip(signature.arrays, guarded, arrays, strict=True):
            assert guard.intact(), f"{label} wrote outside {parameter.name}"
            if parameter.role == "in":
                assert guard.array.tobytes() == before.tobytes(), (
                    f"{label} changed its input {parameter.name}"
                )
        assert_close(
            attr,
            [g.array for g, p in zip(guarded, signature.arrays, strict=True) if p.output],
            expected,
            label,
        )


def check_in_place(
    attr: KernelAttr, function: Callable[..., Any], oracle: Oracle = upcast_reference, *, label: str = ""
) -> None:
    """Each output that may be an input gives the same result when it is; and one array may be several inputs."""
    signature = attr.signature()
    places = range(len(signature.arrays))
    for i, j in itertools.product(places, places):
        one, other = signature.arrays[i], signature.arrays[j]
        if one.role != "in" or (one.shape, one.dtype) != (other.shape, other.dtype) or i == j:
            continue
        if other.role != "in" and not (one.in_place and other.in_place):
            continue
        arrays = signature.sample(3)
        if other.role == "inout":
            arrays[i] = arrays[j]
        arrays[j] = arrays[i]
        expected = oracle(attr, [array.copy() for array in arrays])
        function(*arrays)
        outputs = [array for array, p in zip(arrays, signature.arrays, strict=True) if p.output]
        # Tolerances assume independent inputs: the diagonal of a @ a.T is sqrt(k) times larger than of a @ b.T.
        assert_close(attr, outputs, expected, f"{label} with {one.name} as {other.name}", slack=4)


def assert_close(
    attr: KernelAttr, outputs: Sequence[AnyArray], expected: Sequence[AnyArray], label: str, slack: float = 1
) -> None:
    """Every element of every output is within the row's tolerance of the true value, or nearest to it."""
    tolerance = Tolerance(max(slack * attr.tolerance().ulp, NEAREST), slack * attr.tolerance().absolute)
    for parameter, got, right in zip(attr.signature().outputs, outputs, expected, strict=True):
        assert got.shape == right.shape, f"{label}: the oracle gives {parameter.name} the shape {right.shape}"
        off = beyond(got, right, tolerance)
        if off.any():
            at = tuple(int(i) for i in np.argwhere(off)[0])
            count = int(off.sum())
            raise AssertionError(
                f"{label}: {parameter.name}{list(at)} is {got[at]!r}, expected {right[at]!r} within "
                f"{tolerance}; {count} of {off.size} elements are off"
            )


def check_special_values(
    attr: KernelAttr,
    function: Callable[..., Any],
    oracle: Oracle = upcast_reference,
    *,
    label: str = "",
    alone: bool = True,
) -> None:
    """NaN, infinities, signed zeros, subnormals and overflow come out as they should.

    Each value goes into each input alone (unless `alone` is False), then all inputs are filled with them.
    NaN and infinities must be those of the true result, finite results within four times the tolerance, and
    a zero must have its sign. Where a part of the tolerance is absolute, and so assumes inputs from the
    domain, finite results need only be finite. Where ``refer`` in the attr's own dtype fails this itself,
    because something on the way overflows, nothing is asked.
    """
    signature = attr.signature()
    for arrays in _with_special_values(attr, alone):
        plain, used = ([array.copy() for array in arrays] for _ in range(2))
        with np.errstate(all="ignore"):
            true = oracle(attr, [array.copy() for array in arrays])
            implementation(type(attr), "refer").function(attr, *plain)
            function(*used)
        for i, parameter in enumerate(signature.outputs):
            at = signature.arrays.index(parameter)
            if parameter.dtype.startswith("float"):
                with np.errstate(all="ignore"):
                    right = true[i].astype(parameter.dtype)
                tolerance = attr.tolerance()
                fine = _is_like(used[at], right, tolerance) | ~_is_like(plain[at], right, tolerance)
                if not fine.all():
                    where = tuple(int(k) for k in np.argwhere(~fine)[0])
                    got = f"{parameter.name}{list(where)} is {used[at][where]!r}"
                    raise AssertionError(f"{label}: {got}, expected {right[where]!r} for special values")


def _is_like(got: AnyArray, right: AnyArray, tolerance: Tolerance) -> AnyArray:
    """Which results are NaN, infinite, a zero of that sign, or finite and close, as the right ones are."""
    near = ~beyond(got, right, Tolerance(4 * tolerance.ulp, 4 * tolerance.absolute))
    if tolerance.absolute:
        return np.asarray(near | (np.isfinite(got) & np.isfinite(right)))
    other_zero = (got == 0) & (right == 0) & (np.signbit(got) != np.signbit(right))
    return np.asarray(near & ~other_zero)


def _with_special_values(attr: KernelAttr, alone: bool) -> Iterator[list[AnyArray]]:
    signature = attr.signature()
    places = [i for i, p in enumerate(signature.arrays) if p.role != "out" and p.dtype.startswith("float")]
    places = [i for i in places if signature.arrays[i].nbytes]
    for i in places if alone else ():
        for number, value in enumerate(special_values(signature.arrays[i].dtype)):
            arrays = signature.sample(number)
            arrays[i].reshape(-1)[(7 * number) % arrays[i].size] = value
            yield arrays
    for shift in range(8):
        arrays = signature.sample()
        for turn, i in enumerate(places):
            values = special_values(signature.arrays[i].dtype)
            arrays[i][...] = np.resize(np.roll(values, shift * turn + shift), arrays[i].shape)
        yield arrays


def check_bad_indices(attr: KernelAttr, function: Callable[..., Any], *, label: str = "") -> None:
    """Integers that the row's `check_data` refuses raise DataIndexError naming them, before any write."""
    signature = attr.signature()
    for i, parameter in enumerate(signature.arrays):
        if parameter.role == "out" or not parameter.dtype.startswith("int") or not parameter.nbytes:
            continue
        low, high = int(parameter.domain[0]), int(parameter.domain[1])
        for number, wrong in enumerate((low - 1, high, -(2**63), 2**63 - 1)):
            arrays = signature.sample(number)
            arrays[i].reshape(-1)[(5 * number + 4) % arrays[i].size] = wrong
            if not _refused(attr, arrays):
                continue
            before = [array.tobytes() for array in arrays]
            message = _message(function, arrays)
            assert message is not None, f"{label} accepted {wrong} in {parameter.name}"
            assert parameter.name in message, f"{label}: {message!r} does not name {parameter.name}"
            assert [array.tobytes() for array in arrays] == before, f"{label} wrote before it refused {wrong}"


def _refused(attr: KernelAttr, arrays: Sequence[AnyArray]) -> bool:
    return _message(attr.check_data, [arrays]) is not None


def _message(function: Callable[..., Any], arguments: Sequence[Any]) -> str | None:
    """The message of the DataIndexError of a call, or None if it raised none."""
    try:
        function(*arguments)
    except DataIndexError as error:
        return str(error)
    return None
