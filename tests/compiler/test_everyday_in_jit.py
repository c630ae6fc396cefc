"""Everyday functions in compiled functions give the results of outside, for all rows, and have derivatives."""

import functools
from collections.abc import Iterator
from typing import Any

import cases
import numpy as np
import pytest
from test_everyday import Keywords, Row, as_tuple, assert_right, example, function_of

import jitkernels as jk
from jitkernels.attrs.schema.schema_queries import min_results
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.compiler.capture.kernels import inline_reference
from jitkernels.compiler.capture.kernels.inline_reference import has_own_code

WRONG: Any = "colour"
ROWS = cases.every_row()
RANDOM = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def no_reference_is_traced_within_itself(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Those of Fourier transforms call NumPy, whose functions call the kernel again."""
    plain, open_ones, within_itself = inline_reference._trace_reference, list[Any](), set[Any]()

    def noted(tracer: Any, shapes: Any, *rest: Any) -> Any:
        schema = type(shapes.form.attr)
        within_itself.update({schema}.intersection(open_ones))
        open_ones.append(schema)
        try:
            return plain(tracer, shapes, *rest)
        finally:
            open_ones.pop()

    monkeypatch.setattr(inline_reference, "_trace_reference", noted)
    yield
    assert not within_itself


def around(function: Any, result_is_one: bool) -> Any:
    """A function that calls another between operations that it could be fused with."""

    def between(given: dict[str, Any], one: float) -> Any:
        changed = {name: _times(value, one) for name, value in given.items()}
        found = function(**changed)
        return _times(found, one) if result_is_one else tuple([_times(part, one) for part in found])

    return between


def _times(value: Any, one: float) -> Any:
    is_float = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    return value * one if is_float else value


def in_turn(row: Row) -> str:
    """The dtypes take turns."""
    return ("float32", "float64")[[param.values[0] for param in ROWS].index(row) % 2]


def function_with(row: Row, options: Keywords) -> Any:
    """An everyday function with options, which are constants of a compiled one."""
    return functools.partial(function_of(row), **options)


def apart(given: Keywords) -> tuple[Keywords, Keywords]:
    """The arrays of a call, and its options."""
    arrays = {name: value for name, value in given.items() if isinstance(value, np.ndarray)}
    return arrays, {name: value for name, value in given.items() if name not in arrays}


@pytest.mark.parametrize("row", ROWS)
def test_kernels_between_other_operations(row: Row) -> None:
    dtype = in_turn(row)
    _, given = example(row, dtype)
    arrays, options = apart(given)
    is_one = len(as_tuple(function_of(row)(**given))) == 1
    compiled = jk.jit(around(function_with(row, options), is_one))
    assert "falls back to NumPy" not in str(compiled.explain(arrays, 1.0))
    assert "0 calls of NumPy" in str(compiled.explain(arrays, 1.0))
    assert_right(row, compiled(arrays, 1.0), given, dtype)


@pytest.mark.parametrize("row", ROWS)
def test_single_calls_use_their_kernel(row: Row) -> None:
    dtype = in_turn(row)
    _, given = example(row, dtype)
    arrays, options = apart(given)
    called = function_with(row, options)
    compiled = jk.jit(lambda given: called(**given))
    explanation = str(compiled.explain(arrays))
    assert "falls back to NumPy" not in explanation
    if not has_own_code(row) and min_results(row) == 1:
        assert f"jk.{row.kernel_type.name.lower()}" in explanation or "gather" in explanation
    assert_right(row, compiled(arrays), given, dtype)


def test_options_of_every_value() -> None:
    """Each value of the string and bool options, in one compiled function for each row."""
    wrong = []
    for param in ROWS:
        (row,) = param.values
        known = row.known_fields()
        choices = {name: known[name].values for name in row.options if name in known and known[name].values}
        _, given = example(row, "float32")
        arrays, options = apart(given)
        for name, values in choices.items():
            choices_of_one = [{**options, name: value} for value in values]
            functions = [function_with(row, one) for one in choices_of_one]
            compiled = jk.jit(lambda given, functions=tuple(functions): [one(**given) for one in functions])
            try:
                expected = [one(**arrays) for one in functions]
            except jk.JitKernelsError:  # options that these arrays do not have
                continue
            for found, right in zip(compiled(arrays), expected, strict=True):
                for one, other in zip(as_tuple(found), as_tuple(right), strict=True):
                    alike = one.dtype == other.dtype and np.allclose(one, other, rtol=1e-5, atol=1e-5)
                    wrong += [] if alike else [(row.__name__, name)]
    assert not wrong


def test_dtypes_axes_and_outputs_are_those_of_everyday_calls() -> None:
    x = RANDOM.normal(size=(3, 4, 5))
    calls: dict[str, Any] = {
        "axis": lambda x: jk.softmax(x, axis=1),
        "first axis": lambda x: jk.sort(x, 0),
        "moved results": lambda x: jk.topk(x, 2, axis=0),
        "statistics": lambda x: jk.layer_norm(x, stats=True, axis=1),
        "ints": lambda x: jk.softmax(x.astype(np.int64)),
        "float16": lambda x: jk.vexp(x.astype(np.float16)),
        "mixed": lambda x: jk.vadd(x.astype(np.float32), x),
        "a number": lambda x: jk.vadd(x.astype(np.float32), 2.0),
        "lists": lambda x: jk.vadd([x[0], x[1]], [x[1], x[2]]),
        "no dimension": lambda x: jk.vexp(x.sum()),
        "one row": lambda x: jk.hsum(x[0, 0]),
        "broadcast": lambda x: jk.vadd(x, x[:1, 0]),
        "random numbers": lambda x: x + jk.uniform(x.shape, seed=x.shape[0]),
        "transposed": lambda x: jk.matmul(x[0], x[1].T) @ x[2],
        "strided": lambda x: jk.cumsum(x[:, ::2, ::-1]),
        "nothing": lambda x: (jk.sort(x[:0]), jk.softmax(x[:, :0]), jk.hsum(x[:, :, :0])),
    }
    for name, call in calls.items():
        compiled = jk.jit(call)
        for one, other in zip(as_tuple(compiled(x)), as_tuple(call(x)), strict=True):
            assert type(one) is np.ndarray, name
            assert one.dtype == other.dtype, name
            assert np.allclose(one, other), name
        assert "falls back to NumPy" not in str(compiled.explain(x)), name


def test_results_are_written_to_out() -> None:
    @jk.jit
    def ordered(x: AnyArray, values: AnyArray, indices: AnyArray, all_schemas: AnyArray) -> Any:
        given = jk.topk(x, 2, out=(values, indices))
        jk.softmax(x, out=all_schemas[::2])
        return given[0] is values, jk.vadd(x, 1.0, out=x) is x

    x = RANDOM.normal(size=(3, 5))
    values, indices, all_schemas = np.zeros((3, 2)), np.zeros((3, 2), np.int64), np.zeros((6, 5))
    before = x.copy()
    assert ordered(x, values, indices, all_schemas) == (True, True)
    assert np.array_equal(values, jk.topk(before, 2)[0])
    assert np.array_equal(indices, jk.topk(before, 2)[1])
    assert np.allclose(all_schemas[::2], jk.softmax(before))
    assert np.array_equal(x, before + 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: jk.softmax(x, axis=5),
        lambda x: jk.matmul(x, x),
        lambda x: jk.softmax(x, **{WRONG: x}),
        lambda x: jk.topk(x, 100),
        lambda x: jk.layer_norm(x, eps=-1.0),
        lambda x: jk.gather(x, np.arange(2) + x.shape[0]),
        lambda x: jk.scatter_add(x[:0], np.arange(3), x),
        lambda x: jk.gather(x[:0], np.arange(2)),
        lambda x: jk.vexp(x, out=np.zeros(3)),
        lambda x: jk.vexp(x, out=x[0]),
        lambda x: jk.layer_norm(x, x[0]),
    ],
)
def test_errors_are_those_of_everyday_calls(call: Any) -> None:
    x = RANDOM.normal(size=(3, 5))
    with pytest.raises(jk.JitKernelsError) as expected:
        call(x)
    with pytest.raises(type(expected.value)) as found:
        jk.jit(call)(x)
    assert str(found.value) == str(expected.value)


def test_options_are_checked_in_each_call() -> None:
    top = jk.jit(lambda x: jk.topk(x, 3)[0] + 0.0)
    assert top(np.arange(8.0)[np.newaxis]).tolist() == [[7, 6, 5]]
    with pytest.raises(jk.AttrError, match="at most 2, the length of a row, got 3"):
        top(np.ones((1, 2)))
    norm = jk.jit(lambda x, eps: jk.layer_norm(x, eps=eps) * 2)
    x = RANDOM.normal(size=(4, 6))
    assert np.allclose(norm(x, 0.5), jk.layer_norm(x, eps=0.5) * 2)
    with pytest.raises(jk.AttrError, match="eps: expected 0 or more"):
        norm(x, -0.5)
    picked = jk.jit(lambda table, ids: jk.gather(table, ids) + 1)
    assert picked(x, np.array([3, 0])).shape == (2, 6)
    for beside in (4, -1):
        with pytest.raises(jk.DataIndexError, match=f"got {beside} at"):
            picked(x, np.array([1, beside]))


def test_one_specialization_serves_all_sizes_of_a_class() -> None:
    ordered = jk.jit(lambda x: jk.sort(x) * 2)
    for n in (9, 12, 15, 16):
        x = RANDOM.normal(size=(5, n))
        assert np.array_equal(ordered(x), np.sort(x) * 2)
    compiles = ordered.stats().compiles
    assert compiles <= 2
    for n in (100, 3000):
        x = RANDOM.normal(size=(5, n))
        assert np.array_equal(ordered(x), np.sort(x) * 2)
    assert ordered.stats().compiles > compiles


def test_kernels_in_loops_and_branches() -> None:
    @jk.jit
    def walk(x: AnyArray, w: AnyArray, rounds: int) -> Any:
        h, c, total = np.zeros((2, 4)), np.zeros((2, 4)), 0.0
        for i in range(rounds):
            _, h, c = jk.lstm(x, w, w, h0=h, c0=c)
            if h[0, 0] > 0.1:
                total += jk.sort(h)[0, 0] * i
            else:
                total += jk.softmax(h)[0, 0]
        return h, total

    x, w = RANDOM.normal(size=(3, 2, 4)), RANDOM.normal(size=(16, 4))
    found = walk(x, w, 300)
    expected = walk.__wrapped__(x, w, 300)
    assert "loop" in str(walk.explain(x, w, 300))
    assert np.allclose(found[0], expected[0])
    assert found[1] == pytest.approx(expected[1])


def test_kernels_of_slices_that_grow_by_iteration() -> None:
    def least_so_far(x: AnyArray) -> Any:
        total = 0.0
        for i in range(1, x.shape[0]):
            total += jk.sort(x[:i])[0]
        return total

    compiled = jk.jit(least_so_far)
    for n in (50, 1000):
        x = RANDOM.normal(size=n)
        assert compiled(x) == pytest.approx(least_so_far(x))
        assert "loop: jk.sort" in str(compiled.explain(x))


def test_levels_and_the_interpreter_agree() -> None:
    x = RANDOM.normal(size=(6, 9))

    def function(x: AnyArray) -> Any:
        values, indices = jk.topk(jk.softmax(x) * 2, 3)
        return values, indices + 1, jk.layer_norm(jk.sort(x)), jk.rms_norm(x + 1)

    expected = function(x)
    for options in ({"opt_level": 0}, {"opt_level": 1}, {"opt_level": -3}, {"backend": "interpreter"}):
        for one, other in zip(jk.jit(function, **options)(x), expected, strict=True):
            assert np.allclose(one, other)


def test_pins_apply_in_compiled_functions() -> None:
    x = RANDOM.normal(size=(4, 6))
    with jk.use(implementation="refer"):
        found = jk.jit(lambda x: jk.sort(x))(x)
    assert np.array_equal(found, np.sort(x))
