"""Kernels in compiled functions whose workspace cannot be allocated."""

import gc
import sys
from typing import Any

import numpy as np
import pytest
from jitted import array, notes, same

import jitkernels as jk
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.compiler.schedule.matmul_step import MatMulStep
from jitkernels.errors import WorkspaceError
from jitkernels.runtime.loading import loader

ARGUMENTS = jk.MatMulAttr(m=4, n=4, k=4, dtype="float64").signature().c_arguments


def kernel(workspace: int) -> Any:
    """One that writes a seven, if it gets so many bytes."""

    def body(a: Any, b: Any, c: Any, m: int, n: int, k: int, workspace: Any, begin: int, end: int) -> None:
        workspace[0] = 7.0
        c[0] = workspace[0]

    nest = RangeKernel("needy", ARGUMENTS, body, extent=3, workspace=workspace, workspace_dtype="float64")
    return loader.entry_of(nest, ARGUMENTS)


@pytest.fixture(params=[False, True])
def compiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a compiler of functions with a kernel of a given workspace, entered with or without Python."""

    def made(function: Any, workspace: int) -> Any:
        monkeypatch.setattr(MatMulStep, "external", lambda *_, **__: kernel(workspace))
        monkeypatch.setattr(MatMulStep, "with_row_callback", lambda *_, **__: None)
        monkeypatch.setattr(MatMulStep, "is_package_file", False)
        return jk.jit(function, profile=request.param)

    return made


def plus(a: Any, b: Any) -> Any:
    return a @ b + 1, a * 2


def into(a: Any, b: Any) -> None:
    a += 1
    b[...] = a @ b


@pytest.mark.parametrize("threads", [1, 2])
def test_too_little_memory_is_an_error(compiled: Any, threads: int, restored_threads: int) -> None:
    """Each call raises; the error names the kernel, and no result is kept."""
    jk.set_num_threads(threads)
    function = compiled(plus, 1 << 60)
    a, b = array(300, 300), array(300, 300, seed=2)
    out = np.zeros((300, 300)), np.zeros((300, 300))
    before = [sys.getrefcount(one) for one in (a, b, out, out[0])]
    for _ in range(3):
        with pytest.raises(WorkspaceError, match="no memory for its workspace"):
            function(a, b)
        with pytest.raises(MemoryError):
            function(a, b, out=out)
    gc.collect()
    assert [sys.getrefcount(one) for one in (a, b, out, out[0])] == before
    assert not notes(function)
    same(a, array(300, 300))


def test_workspace_errors_do_not_repeat_writes(compiled: Any) -> None:
    """NumPy does not rerun a call that was partly written."""
    function = compiled(into, 1 << 60)
    for _ in range(3):
        a, b = array(9, 9), array(9, 9, seed=2)
        with pytest.raises(WorkspaceError):
            function(a, b)
        assert (a <= array(9, 9) + 1).all()


def test_sufficient_workspace(compiled: Any) -> None:
    """The same kernel computes where its workspace is small."""
    found, twice = compiled(plus, 64)(array(300, 300), array(300, 300))
    assert found[0, 0] == 8
    same(twice, array(300, 300) * 2)
