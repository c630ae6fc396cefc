"""Scalar functions compiled for several lanes give the scalar results; what lanes cannot do is refused."""

import functools
import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from in_lanes import numbers, results
from translated import Function, same, written

from jitkernels.codegen.python.simd_library import Library
from jitkernels.codegen.source_protocol import noinline
from jitkernels.core import dtypes
from jitkernels.errors import BuildError
from jitkernels.microkernels.maths import exp, sigmoid, strict_arithmetic, tanh


def agree(function: Function, *dtypes_of: str) -> None:
    """The same bits in any number of lanes."""
    arguments = [numbers(dtype, seed) for seed, dtype in enumerate(dtypes_of)]
    found = results(function, arguments)
    for lanes, outs in found.items():
        for out, expected in zip(outs, found[1], strict=True):
            wrong = np.flatnonzero(~same(out, expected))[:3]
            assert not wrong.size, (lanes, [a[wrong] for a in arguments], out[wrong], expected[wrong])


def marked(module: ModuleType) -> list[Function]:
    """The marked functions of numbers that a module defines."""
    functions = [one for _, one in inspect.getmembers(module, inspect.isfunction)]
    return [one for one in functions if hasattr(one, "fastmath") and one.__module__ == module.__name__]


MATHS = [
    (one, dtype)
    for module in (exp, sigmoid, tanh)
    for one in marked(module)
    for dtype in [one.__name__[-7:]]
    if {kind.__name__ for kind in inspect.get_annotations(one).values()} == {dtype}  # of numbers of one type
]


@pytest.mark.parametrize(("function", "dtype"), MATHS, ids=[one.__name__ for one, _ in MATHS])
def test_maths(function: Function, dtype: str) -> None:
    agree(function, *[dtype] * function.__code__.co_argcount)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", marked(strict_arithmetic), ids=[one.__name__ for one in marked(strict_arithmetic)])
def test_arithmetic_whose_order_counts(function: Function, dtype: str) -> None:
    agree(function, *[dtype] * function.__code__.co_argcount)


ANY = ["a == b", "a != b", "a < b <= a", "min(a, b)", "max(a, b, a)", "not a", "a if a < b else b"]
ANY += ["a and b", "a or b", "a and b or a", "a < b and not a == b", "(a, b) if a < b or a == 3 else (b, a)"]
NUMBER = ["a + b", "a - b", "a * b", "7 - a", "abs(a)", "-a", "np.float64(a)", "np.float32(a)", "np.float16(a)"]
NUMBER += ["bool(a)", "np.bool_(b) & (a > b)"]
INT = [f"a {sign} b" for sign in ("//", "%", "&", "|", "^", "<<", ">>")]
INT += ["~a", "a // 3", "a % 8", "a // 8", "a << 3", "a >> 100", "5 // a", "a // 0"]
INT += ["np.int8(a)", "np.uint16(a)", "np.int64(a)"]
FLOAT = ["a / b", "a * 0.5", *(f"np.{name}(a)" for name in ("sqrt", "floor", "ceil", "trunc", "rint", "fabs"))]
FLOAT += ["np.copysign(a, b)", "np.copysign(3.0, a)", "np.int32(np.copysign(min(abs(a), 9), b))"]


TOGETHER = 8
"""Operators of one function, which is compiled much sooner than eight of them."""


@pytest.mark.parametrize("dtype", [name for name in dtypes.TABLE if name != "bfloat16"])  # which NumPy lacks
def test_operators(dtype: str, tmp_path: Path) -> None:
    """Every operator on every type, some together as one function of many results."""
    sort = "b" if dtype == "bool" else "f" if dtypes.TABLE[dtype].is_float else "i"
    texts = [*ANY, *{"b": ["a & b", "a | b", "a ^ b", "~a"], "f": [*NUMBER, *FLOAT], "i": [*NUMBER, *INT]}[sort]]
    if dtype == "float16":  # whose conversions need instructions that not every processor has
        texts.remove("np.float16(a)")
    view = {"f": f"a.view(np.int{8 * np.dtype(dtype).itemsize})" if sort == "f" else "", "i": "", "b": ""}[sort]
    texts += [view] if view else []
    alone = [text for text in texts if text.startswith("(")]  # which have several results themselves
    others = [text for text in texts if text not in alone]
    together = [f"({', '.join(others[i : i + TOGETHER])},)" for i in range(0, len(others), TOGETHER)]
    chosen = [*alone, *together]
    lines = [f"@inlined()\ndef f{i}(a, b):\n    return {text}\n" for i, text in enumerate(chosen)]
    names = written(tmp_path / "operators.py", "\n".join(lines))
    for i, text in enumerate(chosen):
        try:
            agree(names[f"f{i}"], dtype, dtype)
        except AssertionError as error:
            raise AssertionError(text) from error


MASKED = """
SIZE = np.float32(3)
FACTORS = 2.0

@noinline()
def slowly(x, y):
    while x > y:
        x = x * np.float32(0.5) - np.float32(1)
    return x

@noinline()
def both(x):
    return x + np.float32(1), x > np.float32(0)

@inlined()
def rarely(x):
    y = x * x
    if abs(x) > SIZE:
        y = y + np.float32(1)
        twice = y + y
        if x > SIZE:
            y = -twice
            x = twice
    return y + x

@inlined()
def otherwise(x):
    y = x
    if x > SIZE and not x > 9:
        y = SIZE
        x += y
    elif x < -SIZE:
        y = -SIZE
    else:
        y *= np.float32(0.5)
        seen = x > 0
    return y, x, seen

@inlined()
def lane_by_lane(x):
    result = x
    if x > SIZE and x < np.float32(1e30):
        result = slowly(x, SIZE)
    return result

@inlined()
def several(x):
    after, is_more = both(x)
    return after if is_more else x

@inlined()
def repeated(x):
    total = x
    for k in range(2, 5):
        if k < 4:
            if x > np.float32(k):
                total = total * x + np.float32(k)
        total -= np.float32(1)
    return total
"""


@functools.cache
def masked_functions(place: Path) -> dict[str, Any]:
    return written(place / "masked.py", MASKED, noinline=noinline)


@pytest.mark.parametrize("name", ["rarely", "otherwise", "lane_by_lane", "several", "repeated", "slowly", "both"])
def test_masked_calls(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    function = masked_functions(tmp_path_factory.getbasetemp())[name]
    x = numbers("float32")
    rare = np.where(np.abs(x) > 3, np.float32(0.25), x)
    rare[[5, 700]] = 100.0
    for data in (x, rare, np.full(64, 0.5, np.float32)):
        arguments = [data, np.full_like(data, 3)][: function.__code__.co_argcount]
        if name == "slowly":
            arguments[0] = np.where(np.isfinite(data), np.clip(data, -9, 1e6), 0).astype(np.float32)
        found = results(function, arguments)
        for outs in found.values():
            for out, expected in zip(outs, found[1], strict=True):
                assert same(out, expected).all()


def test_only_active_lanes_call_outlined_functions(tmp_path: Path) -> None:
    """Calls of inactive lanes would never end."""
    text = """
@noinline()
def endless(x):
    while x > np.float32(0):
        x = x
    return x

@inlined()
def guarded(x):
    y = x
    if x < np.float32(0):
        y = endless(x) - np.float32(1)
    return y
"""
    function = written(tmp_path / "guarded.py", text, noinline=noinline)["guarded"]
    x = np.resize(np.array([1, -2, 3], np.float32), 96)
    for outs in results(function, [x]).values():
        assert (outs[0] == np.where(x < 0, x - 1, x)).all()


def test_inactive_branches_are_skipped(tmp_path: Path) -> None:
    text = "@inlined()\ndef f(x):\n    if x > np.float32(3):\n        x = -x\n    return x\n"
    library = Library()
    library.called(written(tmp_path / "f.py", text)["f"], ["float32"], 8)
    assert "br i1" in library.text
    assert "@llvm.expect.i1(i1 %" in library.text


REFUSED = {
    "while x > 0:\n        x = x - 1": r"a loop that each lane would leave on its own.*: x > 0",
    "if x > 0:\n        return x": r"some lanes would leave here and others not.*: return x",
    "for k in range(3):\n        if x > 0:\n            break": r"some lanes would leave here.*: break",
    "for k in range(3):\n        if x > 0:\n            continue": r"some lanes would leave here.*: continue",
    "for k in range(np.int64(x)):\n        x = x": r"a limit that differs by lane: expected a constant: np.int64\(x\)",
    "for k in vectors(0, 8, 4):\n        x = x": r"lanes inside of lanes.*: for k in vectors",
    "x = x[0]": r"expected a pointer to numbers, got float32: x\[0\]",
    "x = f(x)": "a function that calls itself",
}


@pytest.mark.parametrize("body", REFUSED)
def test_statements_without_simd_form_are_rejected(body: str, tmp_path: Path) -> None:
    text = f"@inlined()\ndef f(x):\n    {body}\n    return x\n"
    names = written(tmp_path / "refused.py", text)
    with pytest.raises(BuildError, match=rf"f \(.*refused.py, line \d+\): .*{REFUSED[body]}"):
        Library().called(names["f"], ["float32"], 8)


def test_invalid_simd_functions_are_rejected(tmp_path: Path) -> None:
    names = written(tmp_path / "bare.py", "def bare(x):\n    return x\n\n@inlined()\ndef none(x):\n    x = x\n")
    with pytest.raises(BuildError, match=r"bare.*expected a function marked @inlined"):
        Library().called(names["bare"], ["float32"], 8)
    with pytest.raises(BuildError, match=r"none \(.*returns nothing: expected numbers"):
        Library().called(names["none"], ["float32"], 8)
    with pytest.raises(BuildError, match=r"takes 1 arguments \(x\), and is called with 2"):
        Library().called(names["none"], ["float32", "float32"], 8)
    for lanes in (0, 3, -4, 2.0):
        with pytest.raises(BuildError, match="expected a power of two"):
            Library().called(exp.exp_float32, ["float32"], lanes)  # type: ignore[arg-type]  # what is refused


def test_texts_do_not_depend_on_request_order() -> None:
    """Names come from content, each function and declaration stands once, in any order of requests."""
    one, other = Library(), Library()
    for library, widths in ((one, (1, 8)), (other, (8, 1))):
        for lanes in widths:
            for _ in range(2):
                library.called(tanh.tanh_float32, ["float32"], lanes)
                library.called(sigmoid.sigmoid_float32, ["float32"], lanes)
    assert sorted(one.text.split("\n")) == sorted(other.text.split("\n"))
    lines = [line for line in one.text.split("\n") if line.startswith(("define", "declare"))]
    assert len(lines) == len(set(lines))
    assert sum("limited_exp_float32" in line for line in lines) == 2
    assert one.called(exp.exp_float32, ["float32"], 8) != one.called(exp.exp_float32, ["float32"], 16)


def test_a_function_is_translated_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    Library().called(exp.exp_float64, ["float64"], 4)
    monkeypatch.delattr("jitkernels.codegen.python.function_writer.FunctionWriter.body")
    assert Library().called(exp.exp_float64, ["float64"], 4)[1] == "float64"
