"""Patched functions against the originals: the rows' own calls, and arguments that replacements must decline."""

import pkgutil
import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.patching.piece import Call, Piece, pieces
from jitkernels.patching.swapped_code import implementation_of

PIECES = pieces()
TOLERANCES = {"float32": 2e-4, "float64": 3e-8, "complex64": 2e-4, "complex128": 1e-9}
"""Relative to the largest result: distances by products, which scikit-learn takes, lose half of the digits at 0."""

LARGE = 1e30
"""Results of that size stand beside others of it."""


@pytest.fixture(autouse=True)
def unpatched() -> Iterator[None]:
    for one in PIECES:
        import_module(one.module)
    yield
    jk.unpatch()


def assert_same(ours: Any, theirs: Any, precision: str = "") -> None:
    """Equal types, dtypes, shapes and layouts, and values within rounding of a dtype, by default that of the result."""
    assert type(ours) is type(theirs)
    if isinstance(theirs, tuple):
        assert len(ours) == len(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            assert_same(mine, other, precision)
        return
    if not isinstance(theirs, np.ndarray | np.generic | float) or np.asarray(theirs).dtype == object:
        if isinstance(theirs, np.ndarray):
            ours, theirs = ours.tolist(), theirs.tolist()
        assert ours == theirs
        return
    mine, other = np.asarray(ours), np.asarray(theirs)
    assert (mine.dtype, mine.shape) == (other.dtype, other.shape)
    assert mine.flags.writeable == other.flags.writeable
    tolerance = TOLERANCES.get(precision or mine.dtype.name, 0.0) if mine.dtype.kind in "fc" else 0.0
    size = float(np.nanmax(np.abs(np.where(np.isfinite(other), other, 0)), initial=0.0))
    np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance * size if size < LARGE else 0.0)


def outcome(function: Any, arguments: Any, keywords: Any) -> tuple[Any, str, list[str]]:
    """The result or the error of a call, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result, error = function(*arguments, **keywords), ""
        except Exception as raised:  # noqa: BLE001, whatever the original raises
            result, error = None, f"{type(raised).__name__}: {raised}"
    return result, error, sorted({f"{one.category.__name__}: {one.message}" for one in caught})


def compare(one: Piece, function: Any, arguments: Any, keywords: Any) -> None:
    theirs, error, said = outcome(function, arguments, keywords)
    with jk.patch(one.target):
        ours, our_error, we_said = outcome(function, arguments, keywords)
    assert (our_error, we_said) == (error, said)
    if not error:
        is_single = any(isinstance(one, np.ndarray) and one.dtype == np.float32 for one in arguments)
        assert_same(ours, theirs, "float32" if is_single else "")


def smaller(value: Any) -> Any:
    """Fewer rows of large arrays: the tests need no time at full size."""
    return value[:3000] if isinstance(value, np.ndarray) and value.ndim and len(value) > 3000 else value


@pytest.mark.parametrize("one", PIECES, ids=lambda one: one.target)
def test_calls_give_what_the_originals_give(one: Piece) -> None:
    for call in one.calls():
        function = pkgutil.resolve_name(call.function)
        keywords = {name: smaller(value) for name, value in call.keywords.items()}
        compare(one, function, tuple(map(smaller, call.arguments)), keywords)


@pytest.mark.parametrize("one", [one for one in PIECES if callable(one.replacement)], ids=lambda one: one.target)
def test_calls_are_served(one: Piece) -> None:
    """The largest of them at least: a row whose calls all go to the original is none."""
    served = []
    own = implementation_of(pkgutil.resolve_name(one.target)).__code__

    def watched(*arguments: Any, **keywords: Any) -> Any:
        assert callable(one.replacement)
        result = one.replacement(*arguments, **keywords)
        served.append(result is not NotImplemented)
        return result

    from jitkernels.patching.swapped_code import copy_of, forwarding_code

    function = implementation_of(pkgutil.resolve_name(one.target))
    function.__code__ = forwarding_code(function, watched, copy_of(function))
    try:
        for call in one.calls():
            pkgutil.resolve_name(call.function)(
                *map(smaller, call.arguments),
                **call.keywords
                if not any(isinstance(value, np.ndarray) for value in call.keywords.values())
                else {name: smaller(value) for name, value in call.keywords.items()},
            )
    finally:
        function.__code__ = own
    assert served
    assert served[-1]


class Subclass(np.ndarray[Any, Any]):
    """A subclass of arrays."""


def variants(x: AnyArray) -> Iterator[tuple[str, Any]]:
    """An array in forms that kernels do not take, or must take care of."""
    yield "subclass", x.view(Subclass)
    yield "list", x.tolist()
    yield "float16", x.real.astype(np.float16)
    yield "longdouble", x.real.astype(np.longdouble)
    yield "complex", x + 1j
    yield "integers", np.abs(x.real * 10).astype(np.int64)
    yield "empty", x[:0]
    yield "no columns", x[..., :0]
    yield "one", x[:1]
    yield "reversed", x[::-1]
    yield "Fortran order", np.asfortranarray(x)
    yield "every second", np.repeat(x, 2, axis=-1)[..., ::2]
    yield "byte order", x.astype(x.dtype.newbyteorder())
    yield "read only", read_only(x)
    yield "three dimensions", np.stack([x, x])
    yield "scalar", x.reshape(-1)[0]
    yield "objects", x.astype(object)
    yield "masked", np.ma.masked_greater(x.real, 1)
    for name, value in (("nan", np.nan), ("inf", np.inf), ("-inf", -np.inf), ("huge", np.finfo(x.dtype).max)):
        special = x.copy()
        special.reshape(-1)[:2] = value
        yield name, special
    yield "zeros", np.zeros_like(x)
    yield "nan column", np.where(np.arange(x.shape[-1]) == 0, np.nan, x).astype(x.dtype)
    yield "None", None
    yield "string", "x"


def read_only(x: AnyArray) -> AnyArray:
    result = x.copy()
    result.flags.writeable = False
    return result


def hostile_calls(one: Piece) -> Iterator[tuple[str, Any, Any]]:
    """A call of the row in all variants of its arrays, alone and with everything else as it was."""
    calls = list(one.calls())
    call: Call = calls[len(calls) // 2]
    for i, argument in enumerate(call.arguments):
        if isinstance(argument, np.ndarray):
            for name, variant in variants(argument[:60].copy()):
                others = [smaller(value[:60]) if isinstance(value, np.ndarray) else value for value in call.arguments]
                others[i] = variant
                keywords = {k: v[:60] if isinstance(v, np.ndarray) else v for k, v in call.keywords.items()}
                yield f"{name} at {i}", tuple(others), keywords


PUBLIC = [one for one in PIECES if "_kmeans" not in one.target]
"""The others are called by scikit-learn, after its checks."""


@pytest.mark.parametrize("one", PUBLIC, ids=lambda one: one.target)
def test_hostile_arguments_are_the_originals(one: Piece) -> None:
    function = pkgutil.resolve_name(next(iter(one.calls())).function)
    failures = []
    for name, arguments, keywords in hostile_calls(one):
        try:
            compare(one, function, arguments, keywords)
        except AssertionError as error:
            failures.append(f"{name}: {error}")
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("one", PIECES, ids=lambda one: one.target)
def test_errors_that_numpy_raises(one: Piece) -> None:
    """Compiled code falls back on NumPy where errors are raised: it must not reach the replacement again."""
    call = next(iter(one.calls()))
    function = pkgutil.resolve_name(call.function)
    with np.errstate(all="raise", under="ignore"):
        compare(one, function, call.arguments, call.keywords)


def test_special_functions_report_errors() -> None:
    """`scipy.special.errstate` is SciPy's, also where a kernel would have served."""
    special = import_module("scipy.special")
    x = np.full(100, -1000.0)
    with special.errstate(underflow="raise"):
        theirs = outcome(special.expit, (x,), {})
        with jk.patch("scipy.special"):
            ours = outcome(special.expit, (x,), {})
    assert ours[1:] == theirs[1:]


@pytest.mark.parametrize("name", [one.name for one in PIECES if not callable(one.replacement)])
def test_special_values_of_universal_functions(name: str) -> None:
    special = import_module("scipy.special")
    function = getattr(special, name)
    one = next(one for one in PIECES if one.name == name)
    values = [0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 1e-300, -1e-300, 5e-324, 700.0, -700.0, 800.0, -800.0]
    values += [1e300, -1e300, 1e-20, 20.0, -20.0, 1.5, -1.5]
    for dtype in (np.float64, np.float32):
        with np.errstate(all="ignore"):
            x = np.array(values, dtype)
        grid = [both.ravel() for both in np.meshgrid(x, x)] if function.nin == 2 else [x]
        compare(one, function, tuple(grid), {})
        out = grid[0].copy()
        compare(one, function, (*(out if i == 0 else other for i, other in enumerate(grid)),), {})
        with jk.patch(one.target):
            ours = function(*(out if i == 0 else other for i, other in enumerate(grid)), out=out)
        assert ours is out
        np.testing.assert_allclose(out, function(*grid), rtol=TOLERANCES[out.dtype.name])
