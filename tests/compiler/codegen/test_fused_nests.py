"""Loop nests of compiled functions as rows: checked, measured, stored and selected like all kernels."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.attrs.fused import FusedAttr
from jitkernels.attrs.schema import registry
from jitkernels.attrs.schema.registry import implementation, implementations
from jitkernels.compiler.lowering import autotune_nest, lower_graph
from jitkernels.compiler.lowering.build_segment import NestRequest
from jitkernels.dispatch.kernel import Kernel
from jitkernels.tools import testing

Function = Callable[..., Any]


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


FUNCTIONS: dict[str, tuple[Function, int, int]] = {
    "product": (lambda x, y: x * y + 1, 2, 1),
    "two results": (lambda x, y: (x * y, x - y), 2, 2),
    "gelu": (lambda x: 0.5 * x * (1 + np.tanh(0.79788456 * (x + 0.044715 * x * x * x))), 1, 2),
    "softmax": (softmax, 1, 2),
    "mean": (lambda x: x.mean(axis=-1), 1, 2),
    "columns": (lambda x: x.max(axis=0), 1, 2),
    "broadcast": (lambda x: x - x.mean(axis=0), 1, 2),
    "transposed": (lambda x, y: x + y.T, 2, 2),
    "steps": (lambda x: x[:, ::2] * x[:, 1::2], 1, 2),
    "reversed": (lambda x: x[::-1] - x, 1, 1),
    "position": (lambda x: np.argmax(x, axis=-1), 1, 2),
    "integers": (lambda x: (x * 8).astype(np.int32) // 3, 1, 1),
}
SIZE = 24


def nests_of(found: Any, config: jk.JitConfig) -> list[autotune_nest.FusedNest]:
    """The nests of a specialization that can be measured alone."""
    nests: list[autotune_nest.FusedNest] = []

    def collect(request: NestRequest) -> None:
        nest = autotune_nest.fused_nest(request)
        nests.extend([nest] if nest is not None else [])

    lower_graph.compile_graph(found.graph, found.scope, config, collect)
    return nests


def attrs_of(name: str, dtype: str) -> list[FusedAttr]:
    """The nests of a function of square matrices or vectors."""
    function, count, ndim = FUNCTIONS[name]
    generator = np.random.default_rng(0)
    arrays = [generator.random((SIZE,) * ndim).astype(dtype) for _ in range(count)]
    compiled: Any = jk.jit(function)
    found, _, _ = compiled.look_up(tuple(arrays), {})
    nests = nests_of(found, compiled.config)
    return [autotune_nest.attr_of(nest, found.scope.values) for nest in nests]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_variant_matches_the_reference(name: str, dtype: str) -> None:
    attrs = attrs_of(name, dtype)
    assert attrs, "no nest that is a kernel by itself"
    for attr in attrs:
        found = implementation(type(attr), "gen")
        assert found.variants(attr)[0]["unroll"] == attr.computes.unroll
        for n in (6, 34):
            testing.check(type(attr)(expression=attr.expression, **dict.fromkeys(attr.extents(), n)), "gen")


def test_rows_are_identified_by_their_expression() -> None:
    one, other = attrs_of("softmax", "float32") + attrs_of("softmax", "float64")
    assert attrs_of("softmax", "float32") == [one]
    assert one != other
    assert type(one) is not type(other)
    assert list(implementations(type(one))) == ["gen", "refer"]
    assert one not in (other,)
    assert "exp" in one.text()
    assert type(one).from_json(one.to_json()) == one


def test_sizes_outside_the_size_class_are_rejected() -> None:
    (attr,) = attrs_of("steps", "float32")
    with pytest.raises(jk.errors.AttrError, match="at least 2, got 1"):
        type(attr)(**attr.fields() | dict.fromkeys(attr.extents(), 1))
    with pytest.raises(jk.errors.AttrError, match="as for the traced sizes"):
        type(attr)(**attr.fields() | dict.fromkeys(attr.extents(), 7))


def test_fused_nests_are_in_no_list_of_rows() -> None:
    (attr,) = attrs_of("product", "float32")
    assert type(attr) not in registry.all_schemas()
    assert attr.kernel_type not in list(jk.KernelType)


def test_kernels_of_expressions_can_be_called() -> None:
    (attr,) = attrs_of("product", "float64")
    x, y = np.arange(float(SIZE)), np.ones(SIZE)
    z = np.empty(SIZE)
    jk.KernelFuncs.cache().at(attr)(x, y, z)
    assert z.tolist() == (x * y + 1).tolist()


@pytest.mark.usefixtures("fresh")
def test_measured_variants_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """`explain` says so; where measurements do not count they are not used."""
    monkeypatch.setenv("JITKERNELS_TUNE", "replay")
    x = np.random.default_rng(0).random((64, 48)).astype("float32")
    compiled = jk.jit(softmax)
    before = compiled(x)
    assert "measured" not in str(compiled.explain(x))
    explanation, _ = compiled.tune(x, seconds=0.2)
    assert "gen" in str(explanation)
    assert "measured" in str(compiled.explain(x))
    assert "measured" in str(jk.jit(softmax).explain(x))
    np.testing.assert_allclose(compiled(x), before, rtol=1e-6)
    monkeypatch.setenv("JITKERNELS_TUNE", "off")
    assert "measured" not in str(jk.jit(softmax).explain(x))
    with pytest.raises(jk.errors.NotUsableError, match="JITKERNELS_TUNE"):
        compiled.tune(x)


def test_tune_measures_the_sizes_of_its_arguments(private_cache: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not those of an earlier call whose code serves them; size-class guards of one need not hold for the other."""
    monkeypatch.setenv("JITKERNELS_CACHE_DIR", str(private_cache))
    monkeypatch.setenv("JITKERNELS_TUNE", "replay")
    compiled = jk.jit(lambda x: (x.max(axis=-1), x.argmax(axis=0), (x > 1).sum()))
    for shape in ((30, 1001), (40, 999), (30, 5)):
        x = np.random.default_rng(0).random(shape).astype("float32")
        for explanation in compiled.tune(x, seconds=0.3):
            assert f"n0={shape[0]}, n1={shape[1]})" in str(explanation)
        assert compiled.explain(x).kernels
        for found, expected in zip(compiled(x), compiled.__wrapped__(x), strict=True):
            assert np.array_equal(found, expected)
        compiled(np.ones((30, 2), "float32"))


def test_tuning_a_fallback_is_an_error() -> None:
    compiled = jk.jit(lambda x: np.extract(x, x))
    with pytest.raises(jk.errors.NotUsableError, match="falls back to NumPy"):
        compiled.tune(np.ones(3))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_streaming_stores_of_unaligned_results(dtype: str) -> None:
    """Any number of elements precede the first whole cache line and follow the last, of one result or several."""
    for name in ("product", "integers", "two results"):
        for attr in attrs_of(name, dtype):
            found = implementation(type(attr), "gen")
            for n in (2, 15, 16, 17, 33, 64, 129, 1000):
                small = type(attr)(expression=attr.expression, **dict.fromkeys(attr.extents(), n))
                for unroll in (1, 2, 4):
                    variant = {"unroll": unroll, "vector_bytes": 64, "stream": True, "parallel": False}
                    testing.check_values(small, Kernel(small, found, variant).callable)
            text = attr.computes.body(64, 2, stream=True)
            assert "!nontemporal" in text


def test_nests_measured_as_kernels_serve_all_row_lengths() -> None:
    """Compiled functions have code for rows about as long as the traced ones."""
    compiled: Any = jk.jit(softmax)
    found, _, _ = compiled.look_up((np.ones((8, 1000), np.float32),), {})
    assert found.guards
    assert all(guard.is_choice for guard in found.guards)
    (nest,) = nests_of(found, compiled.config)
    for columns in (7, 30, 700):
        attr = autotune_nest.attr_of(nest, {"n0": 9, "n1": columns})
        testing.check_values(attr, jk.get_all_candidates(attr)["gen"])
