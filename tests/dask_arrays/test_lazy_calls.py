"""Compiled functions of dask arrays: values, chunks and dtypes as NumPy's, in any chunks; errors for the others."""

import itertools
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.export.function_token import token_of
from jitkernels.errors import ArgumentError, ArgumentTypeError

SHAPE = (12, 10)
CHUNKS = {"split": (5, 4), "rows": (5, -1), "columns": (-1, 4), "whole": (-1, -1), "ragged": ((1, 7, 4), (2, 2, 6))}
FUNCTIONS: dict[str, tuple[Callable[..., Any], frozenset[str]]] = {
    "elementwise": (lambda x: np.exp(-x * x) + x, frozenset(CHUNKS)),
    "transposed": (lambda x: x.T + 0, frozenset(CHUNKS)),
    "new axis": (lambda x: x[:, :, None] * np.arange(3.0), frozenset(CHUNKS)),
    "stacked": (lambda x: np.stack([x, x * 2]), frozenset(CHUNKS)),
    "ones": (lambda x: np.ones_like(x), frozenset(CHUNKS)),
    "tuple": (lambda x: (x + 1, x * 2), frozenset(CHUNKS)),
    "complex": (lambda x: x * 1j + 1, frozenset(CHUNKS)),
    "int": (lambda x: (x * 10).astype(np.int32), frozenset(CHUNKS)),
    "comparison": (lambda x: x > 0.5, frozenset(CHUNKS)),
    "rows": (lambda x: x.sum(axis=1), frozenset({"rows", "whole"})),
    "columns": (lambda x: x.mean(axis=0), frozenset({"columns", "whole"})),
    "both": (lambda x: (x + 1, x.sum(axis=1)), frozenset({"rows", "whole"})),
    "softmax": (lambda x: jk.softmax(x) * 2, frozenset({"rows", "whole"})),
    "differences": (lambda x: x[:, 1:] - x[:, :-1], frozenset({"rows", "whole"})),
    "running": (lambda x: np.cumsum(x, axis=1), frozenset({"rows", "whole"})),
    "first": (lambda x: x + x[0], frozenset({"columns", "whole"})),
    "extent": (lambda x: x / x.shape[0], frozenset({"columns", "whole"})),
    "counted": (lambda x: x + np.arange(x.shape[1]), frozenset({"rows", "whole"})),
    "gram": (lambda x: x @ x.T, frozenset({"whole"})),
}
"""Functions, and the chunks for which they work block by block."""


def compute(array: Any) -> Any:
    return array.compute(scheduler="sync")


@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_those_of_numpy_or_an_error_names_the_axis(name: str, chunks: str) -> None:
    function, works = FUNCTIONS[name]
    x = np.random.default_rng(0).random(SHAPE)
    lazy, compiled = da.from_array(x, chunks=CHUNKS[chunks]), jk.jit(function)
    if chunks not in works:
        with pytest.raises(ArgumentError, match=r"of dask arrays: .*(x.rechunk\(\{\d: -1\}\)|at most once)"):
            compiled(lazy)
        return
    results, expected = compiled(lazy), function(x)
    many = isinstance(expected, tuple)
    for result, truth in zip(results if many else (results,), expected if many else (expected,), strict=True):
        assert isinstance(result, da.Array)
        assert (result.shape, result.dtype) == (truth.shape, truth.dtype)
        value = compute(result)
        assert value.dtype == truth.dtype
        np.testing.assert_allclose(value, truth, rtol=1e-12)


def test_arguments_of_all_kinds_broadcast() -> None:
    f = jk.jit(lambda x, y, k=2.0: x * y + k)
    x, y = np.arange(12.0).reshape(4, 3), np.arange(3.0)
    lazy = da.from_array(x, chunks=(3, 2))
    for args, kwargs in (((lazy, y), {}), ((lazy, da.from_array(y, chunks=1)), {"k": 3.0}), ((y, lazy), {"k": 1})):
        plain = [np.asarray(one) for one in args]
        np.testing.assert_array_equal(compute(f(*args, **kwargs)), f(*plain, **kwargs))
    np.testing.assert_array_equal(compute(f(y=lazy, x=lazy)), x * x + 2)


@pytest.mark.parametrize("rows", [(0,), (0, 0), (0, 3, 0, 2), (1, 1)])
def test_empty_and_single_chunks(rows: tuple[int, ...]) -> None:
    x = np.arange(3.0 * sum(rows)).reshape(-1, 3)
    result = jk.jit(lambda x: np.sqrt(x) + 1)(da.from_array(x, chunks=(rows, 3)))
    assert result.chunks == (rows, (3,))
    np.testing.assert_array_equal(compute(result), np.sqrt(x) + 1)


def test_unknown_chunks() -> None:
    x = np.arange(10.0)
    lazy = da.from_array(x, chunks=4)
    some = lazy[lazy > 2.0]
    result = jk.jit(lambda x: x * x)(some)
    assert np.isnan(result.shape[0])
    np.testing.assert_array_equal(compute(result), x[x > 2.0] ** 2)
    with pytest.raises(ArgumentError, match="one chunk along axis 0"):
        jk.jit(lambda x: x - x.sum())(some)


def test_arrays_of_the_function_meet_whole_axes_only() -> None:
    weights = np.arange(10.0)
    f = jk.jit(lambda x: x * weights)
    x = np.ones(SHAPE)
    np.testing.assert_array_equal(compute(f(da.from_array(x, chunks=CHUNKS["rows"]))), x * weights)
    with pytest.raises(ArgumentError, match="meets an array of the function"):
        f(da.from_array(x, chunks=CHUNKS["split"]))


def test_a_chain_is_one_function_of_each_block() -> None:
    calls = [jk.jit(one) for one in (lambda x, y: x * y, lambda z, k: np.exp(-z) + k, lambda z: z * z)]
    x = np.random.default_rng(1).random(SHAPE)
    lazy = da.from_array(x, chunks=CHUNKS["split"])
    first = calls[0](lazy, lazy)
    result = calls[2](calls[1](first, 0.5))
    block = result.dask.layers[result.name].task.func
    assert first.name not in result.dask.layers
    assert "1 loop nest" in str(block.function.explain(x, 0.5))
    np.testing.assert_allclose(compute(result), (np.exp(-x * x) + 0.5) ** 2, rtol=1e-12)
    one, two = dask.compute(first, result, scheduler="sync")
    np.testing.assert_array_equal(one, x * x)
    np.testing.assert_array_equal(two, compute(result))
    with dask.config.set({"jitkernels.compose": False}):
        apart = calls[2](calls[1](first, 0.5))
    assert first.name in apart.dask.layers
    np.testing.assert_allclose(compute(apart), compute(result), rtol=1e-14)


def test_persisted_arrays_are_not_computed_again() -> None:
    counted = itertools.count()

    def source(block: Any) -> Any:
        next(counted)
        return block

    lazy = da.ones(8, chunks=4).map_blocks(source, meta=np.empty(0))
    first = jk.jit(lambda x: x + 1)(lazy).persist(scheduler="sync")
    before = next(counted)
    np.testing.assert_array_equal(compute(jk.jit(lambda x: x * 2)(first)), np.full(8, 4.0))
    assert next(counted) == before + 1


@pytest.mark.parametrize("scheduler", ["sync", "threads", "processes"])
def test_schedulers_and_functions_of_dask_give_the_same_bits(scheduler: str) -> None:
    x = np.random.default_rng(2).random((40, 30))
    lazy, f = da.from_array(x, chunks=(11, 30)), jk.jit(lambda x: np.sin(x) / (1 + x.sum(axis=1, keepdims=True)))
    expected = compute(f(lazy))
    others = {
        "direct": f(lazy),
        "map_blocks": lazy.map_blocks(f, dtype=x.dtype),
        "blockwise": da.blockwise(f, "ij", lazy, "ij", dtype=x.dtype),
        "apply_gufunc": da.apply_gufunc(f, "(i)->(i)", lazy, output_dtypes=x.dtype),
        "delayed": da.concatenate([
            da.from_delayed(dask.delayed(f)(block), (size, 30), x.dtype)
            for block, size in zip(lazy.to_delayed()[:, 0], lazy.chunks[0], strict=True)
        ]),
    }  # fmt: skip
    for name, result in others.items():
        assert np.array_equal(result.compute(scheduler=scheduler), expected), name


def test_arguments_that_are_refused() -> None:
    f, lazy = jk.jit(lambda x: x + 1), da.ones(4, chunks=2)
    with pytest.raises(ArgumentError, match="out: expected None"):
        f(lazy, out=np.empty(4))
    with pytest.raises(ArgumentTypeError, match="argument 1: expected a dask array, got Delayed"):
        jk.jit(lambda x, y: x + y)(lazy, dask.delayed(1))
    with pytest.raises(ArgumentError, match="a write to an argument"):
        jk.jit(lambda x: np.add(x, 1, out=x))(lazy)
    with pytest.raises(ArgumentError, match="map_blocks"):
        jk.jit(lambda x: {"a": x + 1})(lazy)


def test_tokens_are_the_same_for_the_same_code_and_values() -> None:
    def made(k: float) -> Any:
        return jk.jit(lambda x: x * k)

    assert dask.tokenize.tokenize(made(2.0)) == dask.tokenize.tokenize(made(2.0))
    assert len({dask.tokenize.tokenize(one) for one in (made(2.0), made(3.0), jk.jit(lambda x: x * 2.0))}) == 3
    lazy = da.ones(4, chunks=2)
    assert made(2.0)(lazy).name == made(2.0)(lazy).name != made(3.0)(lazy).name


def test_results_are_inferred_without_code() -> None:
    f = jk.jit(lambda x: np.sinh(x) + 1)
    result = f(da.ones((6, 6), chunks=2))
    assert not f.specializations
    assert result.dtype == np.float64


def test_one_array_for_several_parameters_meets_what_each_requires() -> None:
    x = da.from_array(np.arange(8.0).reshape(4, 2), chunks=(2, 2))
    function = jk.jit(lambda p, q: p.sum(axis=0) + q)
    with pytest.raises(ArgumentError, match="expected one chunk along axis 0"):
        function(x, x)
    y = jk.jit(lambda x: x + 1)(x)
    with pytest.raises(ArgumentError, match="expected one chunk along axis 0"):
        function(y, y)
    whole = x.rechunk((4, 1))
    assert np.array_equal(function(whole, whole).compute(), function.__wrapped__(x.compute(), x.compute()))


def _variants() -> dict[str, list[Any]]:
    """Functions that differ in one thing that their code object or a global name does not show."""

    def helper(default: Any) -> Any:
        def added(x: Any, a: Any = default) -> Any:
            return x + a

        return added

    def with_class(step: Any) -> Any:
        kind: Any = type("Kind", (), {"step": step})
        return lambda x: x * kind.step

    def with_masked(mask: Any) -> Any:
        held = np.ma.masked_array([1.0, 2.0], mask)
        return lambda x: x + held.sum()

    def with_helpers(*defaults: Any) -> Any:
        f, g, h = map(helper, defaults)
        return lambda x: f(x) + g(x) + h(x)

    def with_field(name: str) -> Any:
        dtype = np.dtype([(name, int)])
        return lambda x: x.view(dtype)

    return {
        "defaults of helpers": [with_helpers(*defaults) for defaults in itertools.product((1, 2), repeat=3)],
        "classes": [with_class(2), with_class(3)],
        "masks": [with_masked([0, 0]), with_masked([0, 1])],
        "parameters": [lambda a, b: a + b, lambda a, *, b: a + b],
        "fields": [with_field("a"), with_field("b")],
    }


@pytest.mark.parametrize("name", _variants())
def test_tokens_differ_where_functions_do(name: str) -> None:
    tokens = [[token_of(one) for one in _variants()[name]] for _ in range(2)]
    assert len({*tokens[0]}) == len(tokens[0])
    if name != "classes":  # without cloudpickle, or of another class object, no token is the same again
        assert tokens[0] == tokens[1]
