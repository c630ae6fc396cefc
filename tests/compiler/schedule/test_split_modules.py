"""Nests of large segments are compiled in two modules: the same results and the same bytes, whoever compiles them."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.codegen import compile_ahead
from jitkernels.codegen.object_cache import bundled, objects_of
from jitkernels.codegen.source_protocol import symbol_of
from jitkernels.compiler.codegen.core import module_text, split_module
from jitkernels.compiler.codegen.core.split_module import functions_of, split_nests
from jitkernels.core import cpu_target
from jitkernels.runtime.loading import elf_loader


def several(x: Any) -> Any:
    """Nests without a loop around them."""
    return np.sin(x).sum(), np.cumsum(x)[::2], np.sort(x)[:3], (x[:, None] * x).max(axis=1)


def with_loop(x: Any) -> Any:
    """Nests inside of a loop."""
    for i in range(len(x)):
        x = np.sqrt(np.abs(x[::-1] * 0.5 + x * 0.25)) + x.sum() * 1e-3
        x = np.where(x > i, x - 1, np.cumsum(x) / len(x))
    return x


def failing(x: Any, at: Any) -> Any:
    """A nest that bails out."""
    for _ in range(3):
        x = x[at] * 1.5 + x.max()
    return x


def nest(name: str, body: str, length: int = 100) -> str:
    """The text of a nest of at least some length."""
    return f"define internal i64 @{name}(ptr %frame) noinline nounwind {{\n{body}\n{'; ' + 'x' * length}\n}}\n"


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The sources of segments that are made, all of which are worth a second module."""
    made: list[Any] = []
    original = module_text.module_source

    def noted(*arguments: Any, **options: Any) -> Any:
        made.append(original(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(split_module, "MIN_SPLIT_CHARS", 1)
    monkeypatch.setattr(module_text, "MIN_SEPARATE_CHARS", 1)
    monkeypatch.setattr(module_text, "module_source", noted)
    return made


@pytest.mark.per_push
@pytest.mark.parametrize("function", [several, with_loop])
@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_results_do_not_depend_on_modules(function: Any, size: int, sources: list[Any]) -> None:
    x = np.random.default_rng(size).random(size)
    for found, expected in zip(jk.jit(function, strict=True)(x), function(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-12)
    split = [source for source in sources if source.text.count(module_text.NESTS_MARKER) == 2]
    assert split or size == 1  # which LLVM compiles as straight-line code
    for source in split:
        assert len(objects_of(source.object_code(symbol_of(source)))) == 2


@pytest.mark.per_push
@pytest.mark.skipif(not cpu_target.has_compiler(), reason="llvmlite is not installed")
def test_loaders_with_one_name_space_confuse_no_nests(sources: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """As LLVM's, which loads objects of other formats than ELF."""
    monkeypatch.setattr(elf_loader, "HERE", {})
    x = np.random.default_rng(3).random(50)
    compiled = [jk.jit(function, strict=True, cache=False) for function in (with_loop, several)]
    for _ in range(2):
        for function in compiled:
            for found, expected in zip(function(x), function.__wrapped__(x), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-12)
    assert sum(source.text.count(module_text.NESTS_MARKER) == 2 for source in sources) >= 2


@pytest.mark.per_push
def test_what_fails_in_another_module_raises(sources: list[Any]) -> None:
    x, compiled = np.random.default_rng(1).random(50), jk.jit(failing)
    np.testing.assert_allclose(compiled(x, np.arange(50)[::-1]), failing(x, np.arange(50)[::-1]), rtol=1e-12)
    with pytest.raises(IndexError):
        compiled(x, np.arange(50) + 1)
    assert sources


@pytest.mark.per_push
@pytest.mark.skipif(not cpu_target.has_compiler(), reason="llvmlite is not installed")
def test_helpers_and_this_process_compile_the_same_bytes(sources: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    jk.jit(with_loop, cache=False)(np.random.default_rng(2).random(60))
    source = next(one for one in sources if one.text.count(module_text.NESTS_MARKER) == 2)
    alone = source.object_code("segment")
    monkeypatch.setattr(cpu_target, "cpu_count", lambda: 2)
    begun, jobs = compile_ahead.begun, []

    def noted(make: Any) -> Any:
        jobs.append(begun(make))
        return jobs[-1]

    monkeypatch.setattr(compile_ahead, "begun", noted)
    compile_ahead.start_helpers()
    assert compile_ahead.has_idle_helper()
    try:
        assert source.object_code("segment") == alone
    finally:
        compile_ahead.end_helpers()
    assert len(jobs) == 1
    assert compile_ahead.take_demand()
    assert not compile_ahead.take_demand()


def test_nests_that_name_each_other_stay_together(monkeypatch: pytest.MonkeyPatch) -> None:
    nests = [
        nest("a", "call i64 @b(ptr %frame)"), nest("b", "ret i64 0"), nest("c", "call i64 @d(ptr %frame)"),
        nest("d", "ret i64 0"), nest("e", "store i64 0, ptr @counter"),
    ]  # fmt: skip
    monkeypatch.setattr(split_module, "MIN_SPLIT_CHARS", 1)
    first, second = split_nests(nests, ["@counter = global i64 0\n" + nest("own", "", 400)], is_optimized=False)
    assert {*functions_of(second)} in ({"a", "b"}, {"c", "d"}, {"a", "b", "c", "d"})
    assert "e" in functions_of(first)
    assert sorted([*first, *second]) == sorted(nests)


def test_loops_count_as_what_takes_longer() -> None:
    nests = [nest(f"n{i}", "ret i64 0", 40_000) for i in range(4)]
    for own, is_optimized, count in ((5_000, True, 2), (30_000, True, 4), (30_000, False, 2)):
        first, second = split_nests(nests, [nest("loop", "", own)], is_optimized=is_optimized)
        assert (len(first), len(second)) == (4 - count, count)
    assert split_nests([nest("one", "", 10)], [nest("loop", "", 10)], is_optimized=False)[1] == []


def test_bundles_hold_objects() -> None:
    objects = [b"\x7fELF one", b"", b"three"]
    assert objects_of(bundled(objects)) == objects
    assert bundled(objects[:1]) == objects[0]
    for damaged in (bundled(objects)[:-1], bundled(objects) + b"x", bundled(objects)[:12], bundled(objects)[:30]):
        with pytest.raises(ValueError, match="a bundle of"):
            objects_of(damaged)
