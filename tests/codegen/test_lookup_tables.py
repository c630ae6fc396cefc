"""Lookup tables: each lane reads its own row, for any number of lanes, and nothing out of bounds."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from in_lanes import results
from translated import built, written

from jitkernels.codegen.python.simd_library import Library
from jitkernels.codegen.source_protocol import Module, Table
from jitkernels.errors import BuildError

LOOK_UP = """
@inlined()
def look_up(i):
    first, second, third = ROWS[i]
    return third, first - second
"""
LOOP = """
def look_up(out, n):
    for i in range(n):
        first, second, third = ROWS[i - 3]
        out[i] = first - second + third
"""


def table(kind: Any, count: int = 8) -> Table:
    random = np.random.default_rng(4)
    return Table(tuple(tuple(kind(number) for number in random.integers(-99, 99, 3)) for _ in range(count)))


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, np.int8])
def test_each_lane_reads_its_row(kind: Any, tmp_path: Path) -> None:
    rows = table(kind)
    function = written(tmp_path / "rows.py", LOOK_UP, ROWS=rows)["look_up"]
    i = np.random.default_rng(5).integers(-(2**62), 2**62, 128)
    i[:20] = np.arange(-10, 10)
    expected = np.array([rows[one] for one in i])
    for lanes, (third, difference) in results(function, [i]).items():
        assert (third == expected[:, 2]).all(), lanes
        with np.errstate(over="ignore"):
            assert (difference == expected[:, 0] - expected[:, 1]).all(), lanes


def test_loops_have_tables(tmp_path: Path) -> None:
    rows = table(np.float32, 16)
    function = written(tmp_path / "loop.py", LOOP, ROWS=rows)["look_up"]
    out = np.empty(40, np.float32)
    built("tables", {"look_up": (function, ("float*", "int64_t"))})["look_up"](out.ctypes.data, out.size)
    first, second, third = np.array([rows[i - 3] for i in range(40)]).T
    assert (out == first - second + third).all()


def test_different_tables_have_different_texts(tmp_path: Path) -> None:
    texts = set()
    for kind in (np.float32, np.float64):
        module = Module()
        module.define("entry", written(tmp_path / "loop.py", LOOP, ROWS=table(kind))["look_up"], ())
        texts.add(module.text)
    assert len(texts) == 2


WRONG = {
    "three rows": table(np.float32, 3).rows,
    "none": (),
    "of two types": ((np.float32(1), np.float64(2)),),
    "of Python's": ((1.0, 2.0),),
    "of two lengths": ((np.int8(1), np.int8(2)), (np.int8(1), np.int8(2), np.int8(3))),
    "of one": ((np.int8(1),), (np.int8(2),)),
}


@pytest.mark.parametrize("rows", WRONG.values(), ids=[*WRONG])
def test_invalid_tables_are_rejected(rows: Any, tmp_path: Path) -> None:
    function = written(tmp_path / "wrong.py", LOOK_UP, ROWS=Table(rows))["look_up"]
    with pytest.raises(BuildError, match=r"look_up \(.*line 4\): a table: expected rows.*: ROWS\[i\]"):
        Library().called(function, ["int64"], 8)


POLYNOMIAL = """
@inlined()
def polynomial(x):
    return (C[2] * x + C[1]) * x - C[0]
"""


def test_coefficients_are_constants(tmp_path: Path) -> None:
    coefficients = np.float32(0.5), np.float32(-3), np.float32(2)
    function = written(tmp_path / "polynomial.py", POLYNOMIAL, C=coefficients)["polynomial"]
    x = np.arange(-8, 8, dtype=np.float32)
    for lanes, (found,) in results(function, [np.resize(x, 32)]).items():
        assert (found[:16] == (2 * x - 3) * x - np.float32(0.5)).all(), lanes
    texts = set()
    for c in (coefficients, tuple(map(np.float64, coefficients))):
        module = Module()
        module.define("entry", written(tmp_path / "polynomial.py", POLYNOMIAL, C=c)["polynomial"], ())
        texts.add(module.text)
    assert len(texts) == 2


@pytest.mark.parametrize("coefficients", [(np.float32(1),), (1.0, "a", 2.0)], ids=["too few", "text"])
def test_invalid_coefficients_are_rejected(coefficients: Any, tmp_path: Path) -> None:
    function = written(tmp_path / "wrong.py", POLYNOMIAL, C=coefficients)["polynomial"]
    with pytest.raises(BuildError, match=r"polynomial \(.*line 4\): .*C\[2\]"):
        Library().called(function, ["float32"], 8)
