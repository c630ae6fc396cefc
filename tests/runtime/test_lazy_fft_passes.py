"""Kernels in parts: transforms build the passes of the lengths that they meet, whoever calls them."""

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import python

import jitkernels as jk
from jitkernels.attrs.fourier import FftC2CAttr, FftC2RAttr, FftR2CAttr
from jitkernels.core import cpu_target
from jitkernels.dispatch.kernel_cache import KernelFuncs
from jitkernels.errors import BuildError
from jitkernels.gen.fourier import fft_c2c, fft_c2r, fft_r2c
from jitkernels.microkernels.fft.factors import has_radices, last_radix, limits_of, put_radices, smooth_length, steps_of
from jitkernels.microkernels.fft.pass_parts import PASS_ALONG, PASS_BESIDE, PASS_LAST, passes_of
from jitkernels.runtime.loading import lazy_link, loader

LENGTHS = (*range(1, 40), 64, 101, 121, 128, 169, 243, 341, 512, 997, 1000, 1001, 2 * 997, 4095, 4096, 5005, 36864)
FIRST_CALLS = """
import numpy as np
import jitkernels as jk
from jitkernels.runtime.loading import loader as load
names = []
built = load.built
load.built = lambda source, **options: names.append(source.name) or built(source, **options)
f = {function}
for n in {lengths}:
    x = np.random.default_rng(n).random(n) + 1j
    np.testing.assert_allclose(f(x), np.fft.fft(x), atol=1e-9)
    print(*sorted({{name for name in names if name.startswith(("fft_along", "fft_last", "fft_beside"))}}))
    names.clear()
"""


def numbers(*shape: int) -> Any:
    random = np.random.default_rng(sum(shape))
    return random.random(shape) + 1j * random.random(shape)


@pytest.mark.parametrize("function", ["jk.jit(lambda x: np.fft.fft(x))", "jk.fft"])
def test_calls_build_only_the_passes_they_need(function: str, tmp_path: Path) -> None:
    given = FIRST_CALLS.format(function=function, lengths=(512, 64, 500, 512))
    first, *others = python(given, tmp_path, JITKERNELS_TUNE="off").splitlines()
    assert set(first.split()) <= {"fft_along_8", "fft_last_8"}
    assert "fft_along_8" in first
    assert not others[0]
    assert "5" in others[1]
    assert "8" not in others[1]
    assert not others[2]


def test_parts_of_a_call_without_a_check_are_all_there(tmp_path: Path) -> None:
    """A loop in which only a length is known that changes calls any pass."""
    given = """
import numpy as np
import jitkernels as jk

def spectra(x, sizes):
    found = np.zeros(len(sizes))
    for i in range(len(sizes)):
        found[i] = np.abs(np.fft.fft(x[: sizes[i]])).sum()
    return found

x, sizes = np.random.default_rng(1).random(600), np.array([512, 60, 49, 121, 17, 600])
np.testing.assert_allclose(jk.jit(spectra)(x, sizes), spectra(x, sizes))
print("fine")
"""
    assert python(given, tmp_path).splitlines()[-1] == "fine"


def test_addresses_serve_the_sizes_of_their_attr() -> None:
    """Code of others calls a kernel at its address, and has no answer to `MISSING`."""
    for n in (77, 78, 256):
        attr = FftC2CAttr(rows=1, n=n, columns=1, dtype="float64")
        kernel: Any = KernelFuncs.cache().at(attr)
        kernel = kernel.__self__
        x, y = numbers(n), np.zeros(n, complex)
        words = [
            ctypes.c_int64(word) for word in (x.ctypes.data, y.ctypes.data, *dict(attr.signature().integers).values())
        ]
        scale = ctypes.c_double(1.0)
        call = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(words), ctypes.c_void_p)(kernel.address)
        assert call(*words, ctypes.addressof(scale)) == 0
        np.testing.assert_allclose(y, np.fft.fft(x), atol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_checks_request_all_passes_of_plans(dtype: str) -> None:
    """What a check asks for is what the radices of the plans are."""
    limits = limits_of(dtype, cpu_target.target().vector_bytes)
    source = fft_c2c(FftC2CAttr(rows=1, n=8, columns=1, dtype=dtype))
    for n in LENGTHS:
        radices = [0] * 64
        length = smooth_length(n, False)
        rows = lazy_link.needed_by(source, {"rows": 1, "n": n, "columns": 1})
        across = steps_of(length, limits.one_step)
        if across:
            put_radices(radices, across, 1)
            ways = [PASS_BESIDE]
        else:
            put_radices(radices, length, last_radix(length, limits.lanes))
            ways = [PASS_ALONG, PASS_LAST]
        known = [passes_of(way, dtype, limits.lanes) for way in ways]
        for radix in radices[1 : 1 + radices[0]]:
            assert any(passes.get(radix, passes.get(0)) in rows for passes in known), (n, radix)
        columns = lazy_link.needed_by(source, {"rows": 1, "n": n, "columns": 100})
        if has_radices(n, True):
            put_radices(radices, n, 1)
            passes = passes_of(PASS_BESIDE, dtype, limits.lanes)
            wanted = {passes.get(radix, passes[0]).symbol for radix in radices[1 : 1 + radices[0]]}
            assert {one.symbol for one in columns} == wanted


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_any_length_in_any_order(rows: int) -> None:
    forward, real = jk.jit(lambda x: np.fft.fft(x, axis=1)), jk.jit(lambda x: np.fft.rfft(x))
    back, columns = jk.jit(lambda x, n: np.fft.irfft(x, n)), jk.jit(lambda x: np.fft.ifft(x, axis=0))
    for n in (*LENGTHS, *LENGTHS[::-7]):
        x = numbers(rows, n)
        np.testing.assert_allclose(forward(x), np.fft.fft(x, axis=1), atol=1e-8)
        np.testing.assert_allclose(real(x.real), np.fft.rfft(x.real), atol=1e-8)
        np.testing.assert_allclose(back(x, n), np.fft.irfft(x, n), atol=1e-8)
        np.testing.assert_allclose(columns(x.T.copy()), np.fft.ifft(x.T, axis=0), atol=1e-8)


def test_parts_that_cannot_be_built_fall_back_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: lazy_link.LazyKernel) -> None:
        raise BuildError("there is no compiler any more")

    function = jk.jit(lambda x: np.fft.fft(x) * 2, cache=False)
    function(numbers(64))
    lacking = [one for one in lazy_link._known.values() if "_13" in one.source.name and not one.is_there]
    monkeypatch.setattr(lazy_link.LazyKernel, "bring", refuse)
    x = numbers(13 * 13 * 13)
    np.testing.assert_allclose(function(x), np.fft.fft(x) * 2, atol=1e-8)
    assert not any(one.is_there for one in lacking)


def test_directions_share_planning_and_passes() -> None:
    """All transforms of a dtype link to one object of plans, and to the same passes."""
    sources = [
        fft_c2c(FftC2CAttr(rows=1, n=8, columns=1, inverse=True, dtype="float64")),
        fft_r2c(FftR2CAttr(rows=1, n=8, dtype="float64")),
        fft_c2r(FftC2RAttr(rows=1, bins=5, odd=False, dtype="float64")),
    ]
    linked = [{one.symbol for one in source.externals if "fft_" in one.symbol} for source in sources]
    assert linked[0] == linked[1] == linked[2]
    assert sum("fft_plan" in symbol for symbol in linked[0]) == 1


def test_a_kernel_is_loaded_with_its_parts_for_callers_that_do_not_check(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []
    monkeypatch.setattr(loader, "part_builders", [built.append])
    source = fft_c2c(FftC2CAttr(rows=1, n=8, columns=1, dtype="float32"))
    arguments = source.arguments
    entry, check = loader.checked_entry_of(source, arguments)
    assert entry.address()
    assert check.address()
    assert not built
    assert loader.entry_of(source, arguments).address() == entry.address()
    assert built == [part.symbol for part in source.parts]
