"""Loop nests of segments with loops are optimized apart from these, in modules of any size, unless the loops decide."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.codegen import compiling, llvm_backend, llvm_passes
from jitkernels.codegen.compile_job import CompileJob
from jitkernels.compiler.codegen.core import module_text
from jitkernels.compiler.codegen.core.module_text import NESTS_MARKER, NEVER_FAILS


def smoothed(x: Any, rounds: Any) -> Any:
    """A nest of any range in each iteration."""
    for _ in range(rounds):
        x = np.sqrt(x[::-1] * 0.5 + np.abs(x) * 0.25)
    return x


def windows(x: Any) -> Any:
    """Nests of nine elements in each iteration of a loop, whose range is no argument."""
    found = np.zeros(len(x) - 9)
    for i in range(len(found)):
        part = np.zeros(9)
        for k in range(9):
            part[k] = x[i + k] * k
        found[i] = np.sqrt(np.abs(part)).sum()
    return found


def checked(x: Any, at: Any, rounds: Any) -> Any:
    """A nest that fails where an index is outside."""
    for _ in range(rounds):
        x = x[at] * 1.5 + 1
    return x


def compiled(
    function: Any, monkeypatch: pytest.MonkeyPatch, *arguments: Any, least: int = 1
) -> tuple[Any, list[CompileJob], list[str]]:
    """The result of a first call, what LLVM compiled for it, and the texts of segments."""
    jobs: list[CompileJob] = []
    texts: list[str] = []
    original, write = compiling.compiled, module_text.segment_text

    def noted(job: CompileJob) -> bytes:
        jobs.append(job)
        return original(job)

    def written(*parts: Any, **options: Any) -> str:
        texts.append(write(*parts, **options))
        return texts[-1]

    with monkeypatch.context() as patch:
        patch.setattr(module_text, "MIN_SEPARATE_CHARS", least)
        patch.setattr(module_text, "compiled", noted)
        patch.setattr(module_text, "segment_text", written)
        result = jk.jit(function, cache=False)(*arguments)
    return result, [job for job in jobs if job.name == "fused"], texts


def test_nests_of_any_range_get_few_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops alone get strength reduction: addresses of nests are as good as they are."""
    reduced = []
    run = llvm_backend._run

    def noted(names: tuple[str, ...], module: Any, target: Any) -> None:
        if names == llvm_passes.STRENGTH_REDUCTION:
            reduced.append([one.name for one in module.functions if not one.is_declaration])
        run(names, module, target)

    monkeypatch.setattr(llvm_backend, "_run", noted)
    x = np.random.default_rng(1).random(1001)
    found, jobs, texts = compiled(smoothed, monkeypatch, x, 3)
    np.testing.assert_allclose(found, smoothed(x, 3), rtol=1e-5)
    own, _, nests = texts[-1].partition(NESTS_MARKER)
    assert any(" call " in line and "sqrt" in line for line in nests.splitlines())
    heads = [line for line in own.splitlines() if line.startswith("define ") and "%begin" in line]
    assert ["@flow1(" in head for head in heads] == [True]
    assert all(job.reduces for job in jobs if job.apart)
    assert [name for name in reduced[0] if "nest" in name] == []
    _, jobs, _ = compiled(lambda x: np.sqrt(x) * 2 - x, monkeypatch, x)
    assert [job.reduces for job in jobs] == [False]
    assert len(reduced) == 1


def test_few_nests_are_optimized_with_their_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(1).random(1001).astype("float16")
    for least, is_apart in ((1, True), (1_000_000, False)):
        _, jobs, _ = compiled(smoothed, monkeypatch, x, 3, least=least)
        assert any(job.apart for job in jobs) == is_apart


def test_nests_of_a_known_range_stay_with_their_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(1).random(60) - 0.5
    found, _, texts = compiled(windows, monkeypatch, x)
    np.testing.assert_allclose(found, windows(x), rtol=1e-12)
    own, _, nests = texts[-1].partition(NESTS_MARKER)
    called = set(module_text._CONSTANT_RANGE.findall(own))
    assert called
    assert all(f"define internal i64 @{name}(" in own and f"@{name}(" not in nests for name in called)


def test_only_nests_that_cannot_fail_are_declared_so(monkeypatch: pytest.MonkeyPatch) -> None:
    x, at = np.random.default_rng(1).random(50), np.arange(50)[::-1].copy()
    for function, arguments in ((smoothed, (x, 3)), (checked, (x, at, 4))):
        found, _, texts = compiled(function, monkeypatch, *arguments)
        np.testing.assert_allclose(found, function(*arguments), rtol=1e-12)
        own, _, nests = texts[-1].partition(NESTS_MARKER)
        for line in nests.splitlines():
            if line.startswith("define i64 @") and "%begin" in line:
                name = line[line.index("@") : line.index("(")]
                body = nests[nests.index(line) :].partition("\n}")[0]
                fails = any(
                    text.strip().startswith("ret ") and text.strip() != "ret i64 0" for text in body.splitlines()
                )
                declared = next(text for text in own.splitlines() if text.startswith("declare ") and f"{name}(" in text)
                assert not (fails and NEVER_FAILS in declared)
    at[7] = 50
    with pytest.raises(IndexError):
        jk.jit(checked)(x, at, 4)


@pytest.mark.parametrize("threads", [1, 2])
def test_loops_and_nests_agree_with_one_module(
    threads: int, restored_threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same with all nests in the module of their loops."""
    jk.set_num_threads(threads)
    x = np.random.default_rng(2).random(40_000)
    for function, arguments in ((smoothed, (x, 7)), (windows, (x[:500],)), (checked, (x, np.argsort(x), 3))):
        apart = compiled(function, monkeypatch, *arguments)[0]
        with monkeypatch.context() as patch:
            patch.setattr(module_text, "_is_inlined", lambda text: True)
            together = compiled(function, monkeypatch, *arguments)[0]
        np.testing.assert_allclose(apart, together, rtol=1e-13)
        np.testing.assert_allclose(apart, function(*arguments), rtol=1e-12)
