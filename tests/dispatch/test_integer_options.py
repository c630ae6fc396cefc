"""Options that are ints, shapes and dtypes, some of which are extents of results."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from rows_of_tests import put_back, take_out
from test_everyday_forms import bits, compiled

from jitkernels.attrs.schema.base import Case, KernelAttr, Tolerance, cases, whole
from jitkernels.attrs.schema.registry import all_schemas, implements
from jitkernels.attrs.schema.schema_queries import integer_options_of
from jitkernels.attrs.schema.signature import AnyArray, Argument
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.dispatch.operators import Everyday
from jitkernels.errors import ArgumentError, ArgumentTypeError, AttrError, JitKernelsError, RegistrationError

MOST = (1 << 63) - 1


class ToyRepeatAttr(KernelAttr, kernel_type="TOY_REPEAT"):
    """y[i, j] = x[i, j % n] + seed."""

    rows: int
    n: int
    k: int = whole(least=0, samples=(1, 5))
    seed: int = whole(default=3, most=1000, is_size=False)
    dtype: str = "float32"
    arrays = (Argument("x", "in", "*rows n"), Argument("y", "out", "*rows k"))
    options = ("k", "seed", "axis")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n == 0 and self.k > 0:
            raise AttrError("ToyRepeatAttr: k: expected 0 where there is nothing to repeat")

    def tolerance(self) -> Tolerance:
        return Tolerance(ulp=0)

    def operations(self) -> float:
        return float(self.rows * self.k)

    @classmethod
    def sweep(cls) -> list[Case]:
        return cases([], ci=[cls(rows=2, n=5, k=9, dtype=dtype) for dtype in ("float32", "float64")])


class ToyCountAttr(KernelAttr, kernel_type="TOY_COUNT"):
    """y[i] = start + i."""

    n: int
    start: int = whole(default=0, is_size=False)
    dtype: str = "float32"
    arrays = (Argument("y", "out", "*n"),)
    options = ("shape", "start", "dtype")

    tolerance = ToyRepeatAttr.tolerance

    def operations(self) -> float:
        return float(self.n)

    @classmethod
    def sweep(cls) -> list[Case]:
        return cases([], ci=[cls(n=9, dtype=dtype) for dtype in ("float32", "float64")])


def repeated(attr: ToyRepeatAttr, x: AnyArray, y: AnyArray) -> None:
    y[...] = x[:, np.arange(attr.k) % max(attr.n, 1)] + attr.seed if attr.n else 0


def counted(attr: ToyCountAttr, y: AnyArray) -> None:
    y[...] = attr.start + np.arange(attr.n)


def repeated_nest(attr: ToyRepeatAttr) -> RangeKernel:
    number = np.dtype(attr.dtype).type

    def body(x: Any, y: Any, rows: int, n: int, k: int, seed: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            for j in range(k):
                y[i * k + j] = x[i * n + j % n] + number(seed)

    return RangeKernel(f"toy_repeat_{attr.dtype}", attr.signature().c_arguments, body, extent=2)


def counted_nest(attr: ToyCountAttr) -> RangeKernel:
    number = np.dtype(attr.dtype).type

    def body(y: Any, n: int, start: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            y[i] = number(start + i)

    return RangeKernel(f"toy_count_{attr.dtype}", attr.signature().c_arguments, body, extent=1)


ROWS: Sequence[tuple[Any, Any, Any]] = ((ToyRepeatAttr, repeated, repeated_nest), (ToyCountAttr, counted, counted_nest))
for _row, _reference, _nest in ROWS:
    implements(_row, name="refer")(_reference)
    implements(_row, name="gen")(_nest)
    take_out(_row)


@pytest.fixture(params=["compiled", "Python"])
def functions(request: pytest.FixtureRequest) -> Iterator[tuple[Any, Any, Any]]:
    """Everyday functions of both rows: by the dispatcher, which has to serve each second call, or by Python.

    Beside them the function of the second row, whichever way it serves a call.
    """
    with put_back(ToyRepeatAttr), put_back(ToyCountAttr):
        made = [Everyday(ToyRepeatAttr), Everyday(ToyCountAttr)]
        if request.param == "Python":
            for one in made:
                one._table = None
            yield made[0].call, made[1].call, made[1].call
        else:
            repeat, count = (partial(compiled, one.callable) for one in made)
            yield repeat, count, made[1].callable


def test_options_set_the_length_of_results(functions: Any) -> None:
    repeat, _, _ = functions
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    for k in (1, 2, 5, 6, 7, 100, 0):
        for seed in (0, 1, 999):
            expected = np.resize(x[0], (2, k)).astype(np.float32)
            expected[...] = x[:, np.arange(k) % 6] + np.float32(seed)
            assert bits(repeat(x, k, seed)) == bits(expected)
            assert bits(repeat(x, seed=seed, k=np.int32(k))) == bits(expected)
            out = np.full((2, 2 * k), 7, np.float32)[:, ::2]
            assert repeat(x[::1, ::1], k=k, seed=seed, out=out) is out
            assert bits(np.ascontiguousarray(out)) == bits(expected)
    assert bits(repeat(x, 4)) == bits(x[:, :4] + np.float32(3))
    assert bits(repeat(x[1], 4)) == bits(x[1, :4] + np.float32(3))
    assert bits(repeat(x.T, 4, axis=0)) == bits(np.ascontiguousarray((x[:, :4] + np.float32(3)).T))


def test_numbers_outside_their_limits_are_rejected(functions: Any) -> None:
    repeat, count, _ = functions
    x = np.ones((2, 6), np.float32)
    for named, kind in (
        ({}, ArgumentTypeError),
        ({"k": -1}, AttrError),
        ({"k": 2.0}, AttrError),
        ({"k": "2"}, AttrError),
        ({"k": True}, AttrError),
        ({"k": None}, AttrError),
        ({"k": 1 << 70}, AttrError),
        ({"k": 2, "seed": 1001}, AttrError),
        ({"k": 2, "seed": -1}, AttrError),
    ):
        with pytest.raises(JitKernelsError) as caught:
            repeat(x, **named)
        assert isinstance(caught.value, kind)
        assert list(named)[-1:] <= [name for name in ("k", "seed") if name in str(caught.value)]
    assert count(1, start=MOST)[0] == np.float64(MOST)
    for start in (MOST + 1, -1):
        with pytest.raises(AttrError, match="start: expected"):
            count(1, start=start)


def test_shapes_and_dtypes_are_named(functions: Any) -> None:
    _, count, anyhow = functions
    for shape in (7, np.int64(7), (7,), [7], (2, 3), (), 0, (2, 0), (2, 1, 3, 1, 2)):
        expected = np.arange(4, 4 + np.empty(shape).size).reshape(shape)
        for dtype in (None, "float32", np.float32, np.dtype("float32"), "float64", np.float64, float, "f4"):
            wanted = np.float64 if dtype is None else dtype
            call = anyhow if dtype in (float, "f4") else count
            assert bits(call(shape, 4, dtype)) == bits(expected.astype(wanted))
        for dtype in (np.float32, np.float64):
            out = np.zeros(expected.shape, dtype)
            assert count(shape, start=4, out=out) is out
            assert bits(out) == bits(expected.astype(dtype))
            assert anyhow(shape, start=4, out=(out,)) is out
    wide = np.zeros((70, 300), np.float32)[:, ::2]  # more than a block
    assert count((70, 150), out=wide) is wide
    assert np.array_equal(wide, np.arange(70 * 150).reshape(70, 150))
    other = np.zeros(3, ">f4")
    assert np.array_equal(count(3, out=other), np.arange(3))


def test_invalid_shapes_and_dtypes_are_rejected(functions: Any) -> None:
    _, _, count = functions
    for arguments, named in (
        ((), {}),
        ((-1,), {}),
        (((2, -3),), {}),
        ((2.0,), {}),
        (("2",), {}),
        ((True,), {}),
        ((None,), {}),
        (((1 << 40, 1 << 40),), {}),
        ((1 << 62,), {}),
        (((1,) * 65,), {}),
        ((2,), {"dtype": "int32"}),
        ((2,), {"dtype": "nonsense"}),
        ((2,), {"out": np.zeros(3)}),
        ((2,), {"out": np.zeros(2, np.int32)}),
    ):
        with pytest.raises(JitKernelsError) as caught:
            count(*arguments, **named)
        assert isinstance(caught.value, ArgumentError | ArgumentTypeError | AttrError | MemoryError)


def test_seeds_share_a_kernel() -> None:
    attr = ToyRepeatAttr(rows=3, n=5, k=9, seed=77)
    assert attr.size_class() == ToyRepeatAttr(rows=4, n=8, k=16)
    assert attr.extents() == {"rows": 3, "n": 5, "k": 9}
    assert ToyRepeatAttr.from_json(attr.to_json()) == attr


def test_invalid_declarations_are_rejected() -> None:
    with pytest.raises(RegistrationError, match="'shape' and 'dtype' where there are no inputs"):

        class WrongAttr(KernelAttr, kernel_type="TOY_WRONG"):
            n: int
            dtype: str = "float32"
            arrays = (Argument("x", "in", "*n"), Argument("y", "out", "*n"))
            options = ("shape",)


def test_samples_of_integer_options() -> None:
    """Every row with such an option declares samples, and each survives JSON."""
    for row in all_schemas():
        for name in integer_options_of(row):
            field = row.known_fields()[name]
            samples = row.__dataclass_fields__[name].metadata["samples"]  # type: ignore[attr-defined]
            assert samples, f"{row.__name__}: {name}"
            assert all(field.least <= value <= field.most for value in samples)
