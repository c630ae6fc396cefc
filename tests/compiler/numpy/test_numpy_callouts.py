"""NumPy functions called by compiled code: in loops, beside kernels, with their errors and warnings."""

import signal
import threading
import time
import warnings
from typing import Any

import numpy as np
import pytest
from jitted import array

import jitkernels as jk
from jitkernels.runtime import python_callback


def filtered(f: Any, h: Any, r: Any, x: Any, p: Any, zs: Any) -> Any:
    out = np.zeros(len(zs))
    for i in range(len(zs)):
        p = f @ p @ f.T + np.eye(4)
        gain = p @ h.T @ np.linalg.inv(h @ p @ h.T + r)
        x = f @ x
        x = x + gain @ (zs[i] - h @ x)
        p = p - gain @ h @ p
        out[i] = x[0]
    return out, p


def log_determinants(matrices: Any) -> float:
    total = 0.0
    for i in range(len(matrices)):
        sign, value = np.linalg.slogdet(matrices[i])
        if sign > 0:
            total += value
    return total


def refined(a: Any, b: Any, rounds: int) -> Any:
    x = np.zeros_like(b)
    while rounds > 0:
        x = x + np.linalg.solve(a, b - a @ x)
        rounds -= 1
    return x


def middles(x: Any, rounds: int) -> Any:
    for _ in range(rounds):
        x = x - 0.5 * np.median(x, axis=0)
        x = x * (0.1 + np.tanh(np.percentile(x, [25, 75], method="hazen").sum()))
    return x


def found(x: Any, values: Any) -> Any:
    places = np.zeros(len(values), np.int64)
    ordered = np.sort(x)
    for i in range(len(values)):
        places[i] = np.searchsorted(ordered, values[i], side="right")
    return places, np.argpartition(x, 5)[::-1] * 2


def spectra(a: Any, rounds: int) -> Any:
    for _ in range(rounds):
        values, vectors = np.linalg.eigh(a)
        a = vectors @ np.diag(np.sqrt(np.abs(values) + 1)) @ vectors.T
    u, s, v = np.linalg.svd(a)
    return u * s @ v, values


MATRIX = array(4, 4) + 4 * np.eye(4)
SYSTEM = array(12, 12) + 12 * np.eye(12)
"""Too large to be unrolled, as the systems of `filtered` are: it is solved in loops."""
CASES: list[tuple[Any, tuple[Any, ...]]] = [
    (filtered, (MATRIX / 5, array(2, 4), np.eye(2), array(4), np.eye(4), array(30, 2))),
    (log_determinants, (array(20, 3, 3),)),
    (refined, (SYSTEM, array(12), 12)),
    (middles, (array(15, 2), 12)),
    (found, (array(40), array(11, seed=3))),
    (found, (array(40)[::2], array(22, seed=3)[::-2])),
    (spectra, (MATRIX @ MATRIX.T, 12)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_calls_in_loops(case: tuple[Any, tuple[Any, ...]]) -> None:
    function, arguments = case
    compiled = jk.jit(function)
    wanted = function(*arguments)
    for _ in range(3):
        got = compiled(*arguments)
        pairs = zip(wanted, got, strict=True) if isinstance(wanted, tuple) else [(wanted, got)]
        for one, other in pairs:
            assert type(one) is type(other)
            np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-14)  # of elements that cancel
    explanation = compiled.explain(*arguments)
    assert not explanation.reason
    assert "loop" in str(explanation)
    assert (", 0 calls of NumPy" in str(explanation)) == (function in (filtered, log_determinants, refined))


def raised_by(function: Any, *arguments: Any) -> str:
    try:
        function(*arguments)
    except np.linalg.LinAlgError as error:
        return str(error)
    return ""


def test_errors_match_numpy() -> None:
    def inverses(matrices: Any, out: Any) -> None:
        for i in range(len(matrices)):
            out[i] = np.linalg.inv(matrices[i]) * 2

    compiled = jk.jit(inverses)
    good = np.stack([MATRIX] * 12)
    bad = good.copy()
    bad[7] = 0
    for given in (good, bad, good, bad):
        before, after = np.zeros_like(given), np.zeros_like(given)
        raised = [raised_by(inverses, given, before), raised_by(compiled, given, after)]
        assert raised == ["Singular matrix" if given is bad else ""] * 2
        np.testing.assert_allclose(after, before)


def test_an_interrupted_callout_ends_the_loop() -> None:
    def settled(x: Any, rounds: int) -> Any:
        for _ in range(rounds):
            x = x - 0.5 * np.median(x)
        return x

    def handler(*_: object) -> None:
        raise KeyboardInterrupt

    compiled = jk.jit(settled)
    compiled(array(20), 20)
    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        began = time.perf_counter()
        with pytest.raises(KeyboardInterrupt):
            compiled(array(20), 10_000_000)
        assert time.perf_counter() - began < 10
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.filterwarnings("error")
def test_warnings_match_numpy() -> None:
    def reduced(x: Any) -> Any:
        return np.logaddexp2.reduce(x * 1e300 * 1e10) + np.spacing(x).sum()

    def warned(function: Any, x: Any) -> list[tuple[str, int]]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function(x)
        return [(str(one.message), one.lineno) for one in caught]

    compiled = jk.jit(reduced)
    x = np.array([1.0, 2.0])
    assert warned(compiled, x) == warned(reduced, x)
    assert warned(compiled, x * 0) == warned(reduced, x * 0)
    assert warned(compiled, x) == warned(reduced, x)


def test_each_thread_gets_its_own_errors() -> None:
    """A thread without errors of its own takes no flags of the errors of others."""
    flags: list[int] = []

    def other() -> None:
        python_callback._record("overflow", 2)
        flags.extend((python_callback._take_flags(), python_callback._take_flags()))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert flags[0] > 0 == flags[1]
    assert python_callback._take_flags() == 0


def test_threads() -> None:
    compiled = jk.jit(filtered)
    arguments = CASES[0][1]
    wanted = compiled(*arguments)[0]
    wrong: list[Any] = []

    def run() -> None:
        wrong.extend(1 for _ in range(30) if not np.array_equal(compiled(*arguments)[0], wanted))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "u1"])
@pytest.mark.parametrize("kind", [None, "stable"])
def test_sort_matches_numpy(dtype: str, kind: Any) -> None:
    x = (array(6, 7) * 50).astype(dtype)
    if dtype[0] == "f":
        x[0, :3] = np.nan, np.inf, -np.inf
    for axis in (0, 1, -1, None):
        compiled = jk.jit(lambda x, axis=axis: np.sort(x, axis=axis, kind=kind) * 1)
        np.testing.assert_array_equal(compiled(x), np.sort(x, axis=axis, kind=kind))
        np.testing.assert_array_equal(compiled(x[::2, ::-1]), np.sort(x[::2, ::-1], axis=axis))


def test_results_contain_python_numbers() -> None:
    def mixed(x: Any, k: int) -> Any:
        large = 0
        for one in x:
            if one > 0.1:
                large += k
        return large, x * 2, large > 3, x.sum(), 0.5 * large

    compiled = jk.jit(mixed)
    for x in (array(9), array(0), array(300)):
        for _ in range(3):
            wanted, got = mixed(x, 2), compiled(x, 2)
            assert [*map(type, got)] == [*map(type, wanted)]
            assert (got[0], got[2], got[4]) == (wanted[0], wanted[2], wanted[4])
            assert np.array_equal(got[1], wanted[1])
            assert np.isclose(got[3], wanted[3])


def test_calls_are_timed() -> None:
    compiled = jk.jit(spectra, profile=True)
    compiled(MATRIX @ MATRIX.T, 12)
    assert any(".eigh" in one.kernel or ".svd" in one.kernel for one in compiled.stats().times), compiled.stats().times
    ordered = jk.jit(lambda x: jk.sort(x) * 2, profile=True)
    ordered(array(9))
    assert any("jk.sort" in one.kernel for one in ordered.stats().times)


def test_names_of_static_arguments() -> None:
    for wrong in (3, [3], None):
        with pytest.raises(jk.ArgumentTypeError, match="static_argnames: expected a name"):
            jk.jit(static_argnames=wrong)  # type: ignore[arg-type]


def convolved(x: Any, h: Any) -> Any:
    """By Fourier transforms of a length that a loop computes."""
    size, n = 1, len(x) + len(h) - 1
    while size < n:
        size *= 2
    return np.fft.irfft(np.fft.rfft(x, size) * np.fft.rfft(h, size), size)[:n]


def test_transforms_of_computed_length() -> None:
    """Kernels compute them, for the length of this call; others are right, too."""
    h, compiled = array(7), jk.jit(convolved)
    for size in (50, 5, 51, 500, 50, 501, 5):
        np.testing.assert_allclose(compiled(array(size), h), convolved(array(size), h), atol=1e-12)
    text = str(jk.jit(convolved, strict=True).explain(array(50), h))
    assert "jk.fft_r2c" in text
    assert "0 calls of NumPy" in text


def test_transforms_of_no_element() -> None:
    def function(x: Any, n: Any) -> Any:
        total = 0
        for _ in range(n):
            total += int(x[0] > 1)
        return np.fft.rfft(x, total)

    for compiled in (jk.jit(function), function):
        with pytest.raises(ValueError, match="Invalid number of FFT data points"):
            compiled(np.zeros(5), 3)
        np.testing.assert_allclose(compiled(np.full(5, 2.0), 3), np.fft.rfft(np.full(5, 2.0), 3))
