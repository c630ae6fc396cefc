"""The kernel language computes what Python and NumPy compute, for every element type."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from translated import Function, built, same, written

from jitkernels.codegen.ir_source import IRSource
from jitkernels.codegen.python import kernel_module, types
from jitkernels.codegen.python.types import Value
from jitkernels.codegen.source_protocol import inlined
from jitkernels.core import dtypes

INTS = tuple(name for name in dtypes.TABLE if name.removeprefix("u").startswith("int"))
FLOATS = ("float16", "bfloat16", "float32", "float64")


# Operators: the same text on elements of arrays, translated, and on NumPy's numbers.

ANY = ["a == b", "a != b", "a < b", "a <= b", "a > b", "a >= b", "min(a, b)", "max(a, b)", "max(a, b, a)"]
ANY += ["not a", "a if a < b else b", "a < b < a", "a >= b >= b != a", "a and b", "a or b", "a and b or a"]
NUMBER = ["a + b", "a - b", "a * b", "2 * a", "7 - a"]
INT = ["a // b", "a % b", "a & b", "a | b", "a ^ b", "a << b", "a >> b", "~a", "-a", "+a", "abs(a)"]
INT += ["a // 3", "a % 3", "a // 8", "a % 8", "a // 0", "a % 0", "a // 1", "a << 3", "a >> 100", "a << 64", "5 // a"]
SIGNED = ["a // -3", "a % -3", "a // -1", "a % -1", "a // -8", "a % -8"]
FLOAT = ["a / b", "-a", "+a", "abs(a)", "1 / a", "a * 0.5", *(f"np.{f}(a)" for f in ("sqrt", "fabs", "abs"))]
FLOAT += [*(f"np.{f}(a)" for f in ("floor", "ceil", "trunc", "rint")), "np.copysign(a, b)", "np.copysign(3.0, a)"]
BOOL = ["a & b", "a | b", "a ^ b", "~a"]
# Rounded to bfloat16 a subnormal number may be 0: some processors have an instruction that makes it so.
MAY_WRAP = {*NUMBER}
"""What is not defined in int64 where it does not fit, as sums there are those of indices."""


def edges(name: str) -> np.ndarray[Any, Any]:
    """Values of an element type where things go wrong."""
    if name == "bool":
        return np.array([False, True])
    if name in INTS:
        limits: Any = np.iinfo(name)
        near = [0, 1, 2, 3, 7, 8, 9, 63, 64, limits.max, limits.max - 1, limits.min, limits.min + 1]
        return np.array(near + [-x for x in near[1:7] if limits.min < 0], name)
    limits = np.finfo("float32" if name == "bfloat16" else name)
    some = [0.0, 1.0, 0.5, 1.5, 2.5, 3.7, 1 / 3, np.inf, limits.max, limits.tiny, 1e4]
    some += [limits.smallest_subnormal, limits.tiny / 2] if name != "bfloat16" else []
    return bits_of(np.array([*some, *(-x for x in some), np.nan], limits.dtype), name)


def bits_of(values: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
    """Numbers rounded to an element type, as its arrays hold them."""
    if name != "bfloat16":
        return values.astype(dtypes.TABLE[name].numpy)
    wide = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    rounded = (wide + 0x7FFF + (wide >> 16 & 1) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


def numbers_of(array: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
    """What an array of an element type holds, as NumPy's numbers."""
    return (array.astype(np.uint32) << 16).view(np.float32) if name == "bfloat16" else array


def over(function: Function) -> Function:
    """A range kernel that computes a function of two arrays."""

    def body(x: Any, y: Any, z: Any, n: int) -> None:
        for i in range(n):
            z[i] = function(x[i], y[i])

    return body


def expressions_of(name: str) -> list[str]:
    if name == "bool":
        return ANY + BOOL
    return ANY + NUMBER + (FLOAT if name in FLOATS else INT + SIGNED * (name[0] != "u"))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", dtypes.TABLE)
def test_operators(name: str, tmp_path: Path) -> None:
    texts = expressions_of(name)
    lines = [f"@inlined()\ndef f{i}(a, b):\n    return {text}\n" for i, text in enumerate(texts)]
    functions = [written(tmp_path / "operators.py", "\n".join(lines))[f"f{i}"] for i in range(len(texts))]
    values = edges(name)
    x, y = (np.ascontiguousarray(grid.ravel()) for grid in np.meshgrid(values, values))
    pairs = list(zip(numbers_of(x, name), numbers_of(y, name), strict=True))
    expected = [np.array([function(a, b) for a, b in pairs]) for function in functions]
    results = [
        "bool" if one.dtype == bool else name if one.dtype == numbers_of(x, name).dtype else str(one.dtype)
        for one in expected
    ]
    assert {*results} <= {"bool", name}
    arguments_of = [(f"{name}*", f"{name}*", f"{result}*", "int64") for result in results]
    names = [f"f{i}" for i in range(len(texts))]
    bodies = {n: (over(f), arguments) for n, f, arguments in zip(names, functions, arguments_of, strict=True)}
    compiled = built(f"operators_{name}", bodies)
    for text, function, result, wanted, symbol in zip(texts, functions, results, expected, names, strict=True):
        z = np.empty(len(x), dtypes.TABLE[result].numpy)
        compiled[symbol](x.ctypes.data, y.ctypes.data, z.ctypes.data, len(x))
        defined = np.ones(len(x), bool)
        if name == "int64" and text in MAY_WRAP:
            defined = np.array([abs(function(int(a), int(b))) < 2**63 for a, b in pairs])
        got, wanted = numbers_of(z, result), numbers_of(bits_of(wanted, result), result)
        right = same(got, wanted) | ~defined
        if result == "bfloat16":
            right |= (got == 0) & (abs(wanted) < np.finfo("float32").tiny)
        wrong = [(pairs[i], got[i], wanted[i]) for i in np.flatnonzero(~right)]
        assert not wrong, (text, wrong[:5])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", dtypes.TABLE)
def test_conversions_and_views(name: str) -> None:
    """Stored, elements take the type of their array, rounded once; views keep the bits."""

    def convert(x: Any, y: Any, n: int) -> None:
        for i in range(n):
            y[i] = x[i]

    def viewing(scalar: Any) -> Function:
        def view(x: Any, y: Any, n: int) -> None:
            for i in range(n):
                y[i] = x[i].view(scalar)

        return view

    bodies = {f"to_{to}": (convert, (f"{name}*", f"{to}*", "int64")) for to in dtypes.TABLE}
    sizes = {to: dtype.size for to, dtype in dtypes.TABLE.items() if to not in ("bool", "bfloat16")}
    alike = [to for to, size in sizes.items() if name in sizes and size == sizes[name]]
    bodies |= {f"as_{to}": (viewing(getattr(np, to)), (f"{name}*", f"{to}*", "int64")) for to in alike}
    compiled = built(f"conversions_{name}", bodies)
    x = edges(name)
    if name == "float64":  # between two float16 or bfloat16, where rounding to float32 first makes a tie of it
        odd = [1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-8 + 2.0**-40, -1 - 2.0**-11 - 2.0**-40, 1e-50, -1e-46, 1e39, 65520]
        x = np.array([*x, *odd])
    for to in dtypes.TABLE:
        z = np.empty(len(x), dtypes.TABLE[to].numpy)
        compiled[f"to_{to}"](x.ctypes.data, z.ctypes.data, len(x))
        numbers = numbers_of(x, name)
        fits = np.ones(len(x), bool)
        if name in FLOATS and to in INTS:
            whole = np.trunc(numbers.astype(np.longdouble))
            fits = (whole >= np.iinfo(to).min) & (whole <= np.iinfo(to).max)
        right = np.where(fits, numbers, 0)
        expected = numbers_of(to_bfloat16(right) if to == "bfloat16" else right.astype(dtypes.TABLE[to].numpy), to)
        got = numbers_of(z, to)
        small = (to == "bfloat16") & (got == 0) & (abs(expected.astype(np.float64)) < 2.0**-126)
        assert (same(got, expected) | ~fits | small).all(), (to, numbers, got, expected)
    for to in alike:
        z = np.empty(len(x), to)
        compiled[f"as_{to}"](x.ctypes.data, z.ctypes.data, len(x))
        assert z.tobytes() == x.tobytes()


def to_bfloat16(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The nearest bfloat16, ties to even, from all digits: the nearest of what is below, here and above."""
    near = bits_of(values, "bfloat16").astype(np.int64)
    exact = values.astype(np.longdouble)
    best = near.copy()
    for step in (-1, 1):
        other = near + step
        there = numbers_of(other.astype(np.uint16), "bfloat16").astype(np.longdouble)
        here = numbers_of(best.astype(np.uint16), "bfloat16").astype(np.longdouble)
        best = np.where(np.isfinite(there) & np.isfinite(here) & (abs(there - exact) < abs(here - exact)), other, best)
    return best.astype(np.uint16)


def test_objects_call_no_function_of_compiler_rt() -> None:
    """Where the processor cannot round float64 to two bytes, LLVM would call one that may be missing."""

    def convert(x: Any, y: Any, z: Any, n: int) -> None:
        for i in range(n):
            y[i] = x[i]
            z[i] = x[i]

    for name in dtypes.TABLE:
        program = kernel_module.KernelModule(name)
        program.export("entry", convert, (f"{name}*", "float16*", "bfloat16*", "int64"), ())
        code = IRSource(name, program.text).object_code("converting")
        assert not re.search(rb"__(trunc|ext|fix|float)", code)


NONE = 0


def constants(x: Any, y: Any, z: Any) -> None:
    x[0], x[1], x[2] = 1 + 2.0**-8 + 2.0**-40, 1e39, -(2.0**-30)
    y[0], y[1], y[2], y[3] = 0.1, 1e30, 1 / 3, 2**60
    z[0], z[1], z[2], z[3], z[4] = 0x7FFF_FFFF_FFFF_FFFF, -(2**63), 7 // -2, np.int64(2.9), np.int64(-2.9)
    z[5], z[6], z[7], z[8], z[9] = True, 3 > 2 > 1, NONE or 5, 2 and NONE, not 3
    z[10], z[11], z[12], z[13] = 1 << 40, 2**10, ~5, -7 % 3
    z[14], z[15] = int(y[0] > 0), bool(z[0])


def test_literals() -> None:
    """A literal is rounded once to the type that it meets; constants are folded as Python does."""
    x, y, z = np.zeros(3, np.uint16), np.zeros(4, np.float32), np.zeros(16, np.int64)
    built("constants", {"f": (constants, ("bfloat16*", "float32*", "int64*"))})["f"](
        *(a.ctypes.data for a in (x, y, z))
    )
    expected = [np.zeros(n) for n in (3, 4)] + [np.zeros(16, object)]
    constants(*expected)
    assert [hex(n) for n in x] == ["0x3f81", "0x7f80", "0xb080"]
    assert y.tolist() == expected[1].astype(np.float32).tolist()
    assert z.tolist() == [int(n) for n in expected[2]]


def test_bitwise_not_of_a_constant_bool() -> None:
    """As Python has it, but without the warning that it gives beside since 3.12."""

    def body(z: Any) -> None:
        z[0] = ~True
        z[1] = ~~True

    z = np.zeros(2, np.int64)
    built("inverted", {"f": (body, ("int64*",))})["f"](z.ctypes.data)
    assert z.tolist() == [-2, 1]


@inlined()
def scaled(a: Any, b: Any) -> Any:
    return a * b


def test_numbers_in_variables_have_64_bits() -> None:
    def body(x: Any, y: Any) -> None:
        factor, count = 0.1, 1 << 40
        y[0], y[1], y[2] = x[0] * factor, x[0] * 0.1, scaled(x[0], 0.1)
        y[3] = float(count)

    x, y = np.ones(1, np.float32), np.zeros(4)
    built("wide", {"f": (body, ("float32*", "float64*"))})["f"](x.ctypes.data, y.ctypes.data)
    assert y.tolist() == [0.1, float(np.float32(0.1)), 0.1, 2.0**40]


@pytest.mark.parametrize("one", dtypes.TABLE)
def test_type_promotion(one: str) -> None:
    """As in NumPy, but integers and floating-point numbers do not promote to each other."""
    for other in dtypes.TABLE:
        found = types.common(*(Value(types.NUMBERS[name], "") for name in (one, other)))
        kinds = {*(("int", "float")[name in FLOATS] for name in (one, other) if name != "bool")}
        if len(kinds) == 2 or (kinds == {"int"} and np.result_type(one, other).kind == "f"):
            assert found is None
        elif "bfloat16" in (one, other):
            partner = {one, other} - {"bfloat16", "bool"}
            expected = "float64" if "float64" in partner else "float32" if partner else "bfloat16"
            assert found == types.NUMBERS[expected]
        else:
            assert found == types.NUMBERS[np.result_type(one, other).name]


def test_sums_of_bools_are_integers() -> None:
    def body(x: Any, y: Any, z: Any) -> None:
        z[0], z[1], z[2] = x[0] + x[1], x[0] - x[1] - x[1], (x[0] & x[1]) * 5
        y[0], y[1] = x[0] + y[0], y[1] * x[0]

    x, y, z = np.ones(2, bool), np.full(2, 0.5, np.float32), np.zeros(3, np.int64)
    built("bools", {"f": (body, ("bool*", "float32*", "int64*"))})["f"](*(a.ctypes.data for a in (x, y, z)))
    assert (y.tolist(), z.tolist()) == ([1.5, 0.5], [2, -1, 5])


def test_functions_of_equal_names() -> None:
    """One may call the other: functions are identified by content, not by name."""

    def doubling() -> Any:
        @inlined()
        def computed(x: Any) -> Any:
            return 2 * x

        return computed

    twice = doubling()

    @inlined()
    def computed(x: Any) -> Any:
        return 3 * twice(x)

    def body(x: Any, y: Any) -> None:
        y[0] = computed(x[0]) + twice(x[0])

    x, y = np.ones(1), np.zeros(1)
    built("alike", {"f": (body, ("float64*", "float64*"))})["f"](x.ctypes.data, y.ctypes.data)
    assert y.tolist() == [8]
