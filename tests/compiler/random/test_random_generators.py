# ruff: noqa: NPY002
"""Random numbers in compiled functions: the same as NumPy's, to the bit, and the same state behind them."""

import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from drawing_programs import GENERATOR, PROGRAMS

import jitkernels as jk
from jitkernels.errors import TracingError

KINDS = ("PCG64", "PCG64DXSM", "SFC64", "MT19937", "Philox")
DRAWS: dict[str, Any] = {
    "random": lambda g: g.random(),
    "standard_normal": lambda g: g.standard_normal(),
    "standard_exponential": lambda g: g.standard_exponential(),
    "small": lambda g: g.integers(0, 10),
    "large": lambda g: g.integers(0, 3 * 2**61),
    "wide": lambda g: g.integers(0, 3 * 2**30),
}  # fmt: skip


def generator(kind: str, seed: int = 11) -> Any:
    return np.random.Generator(getattr(np.random, kind)(seed))


def same(got: Any, expected: Any) -> bool:
    """Whether two results have the same types and bits."""
    if type(got) is not type(expected):
        return False
    if isinstance(got, tuple | list):
        return len(got) == len(expected) and all(map(same, got, expected))
    if isinstance(got, np.ndarray):
        return (got.dtype, got.shape, got.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())
    return bool(got == expected)


def outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """The result, or the exception, and the states of the generators after the call."""
    try:
        result = function(*arguments)
    except Exception as error:  # noqa: BLE001  # whatever the plain function raises
        result = repr(error)
    return result, str(GENERATOR.bit_generator.state), str(np.random.get_state(legacy=False))


@pytest.mark.parametrize(("function", "arguments"), PROGRAMS, ids=[one.__name__ for one, _ in PROGRAMS])
def test_program(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    compiled = jk.jit(function, strict=True)
    for _ in range(3):
        before, before_of_module = GENERATOR.bit_generator.state, np.random.get_state(legacy=False)
        got = outcome(compiled, arguments)
        GENERATOR.bit_generator.state = before
        np.random.set_state(before_of_module)
        expected = outcome(function, arguments)
        assert same(got[0], expected[0]), (got[0], expected[0])
        assert got[1:] == expected[1:]
    assert compiled.stats().python_entries == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", DRAWS)
def test_bit_generators(kind: str, name: str) -> None:
    draw: Any = DRAWS[name]

    @jk.jit(strict=True)
    def drawn(g: Any, n: int) -> Any:
        result = np.zeros(n, np.float64)
        for i in range(n):
            result[i] = draw(g)
        return result

    own, other = generator(kind), generator(kind)
    for n in (1001, 20_000, 9):
        assert drawn(own, n).tobytes() == np.array([draw(other) for _ in range(n)], np.float64).tobytes()
        assert str(own.bit_generator.state) == str(other.bit_generator.state)


def test_the_tails_of_distributions() -> None:
    """Two million numbers reach every branch of the ziggurats."""
    own, other = generator("PCG64"), generator("PCG64")
    drawn = jk.jit(lambda g, n: (g.standard_normal(n), g.standard_exponential(n)), strict=True)
    got = drawn(own, 2_000_000)
    assert same(got, (other.standard_normal(2_000_000), other.standard_exponential(2_000_000)))
    assert np.abs(got[0]).max() > 3.7 < got[1].max()


@jk.jit(strict=True)
def total(g: Any, n: int) -> float:
    result = 0.0
    for _ in range(n):
        result += g.random()
    return result


def test_another_generator_needs_no_new_code() -> None:
    total(generator("PCG64"), 10)
    before = total.stats().compiles, total.stats().python_entries
    for seed in range(200):
        assert total(generator("PCG64", seed), 20) == np.cumsum(generator("PCG64", seed).random(20))[-1]
    assert (total.stats().compiles, total.stats().python_entries) == before


def test_other_objects_in_its_place() -> None:
    class Constant:
        def random(self) -> float:
            return 0.5

    assert total(generator("PCG64"), 10)
    assert jk.jit(total.__wrapped__)(Constant(), 4) == 2.0
    wrong: Any
    for wrong in ([], 3, None):
        with pytest.raises((AttributeError, TracingError)):
            total(wrong, 10)


def test_one_generator_as_two_arguments() -> None:
    @jk.jit(strict=True)
    def differences(a: Any, b: Any, n: int) -> float:
        result = 0.0
        for _ in range(n):
            result += a.random() - b.random()
        return result

    own, other, bits = generator("PCG64"), generator("PCG64"), generator("PCG64").bit_generator
    assert differences(own, generator("PCG64"), 50) == 0.0
    own = generator("PCG64")
    assert differences(own, own, 50) == differences.__wrapped__(other, other, 50) != 0
    shared = np.random.Generator(bits), np.random.Generator(bits)
    other = generator("PCG64")
    assert differences(*shared, 50) == differences.__wrapped__(other, other, 50)


def test_a_held_lock_is_waited_for() -> None:
    own = generator("PCG64")
    total(own, 100)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with own.bit_generator.lock:
            held.set()
            done.wait(0.2)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    result = total(own, 100)
    thread.join()
    other = generator("PCG64").random(200)
    assert result == np.cumsum(other[100:])[-1]


@pytest.fixture(params=["while", "for"])
def fill(request: pytest.FixtureRequest) -> Any:
    """Functions that fill an array."""

    def by_while(g: Any, out: Any) -> None:
        i = 0
        while i < len(out):
            out[i] = g.random()
            i += 1

    def by_for(g: Any, out: Any) -> None:
        for i in range(len(out)):
            out[i] = g.random()

    return jk.jit({"while": by_while, "for": by_for}[request.param], strict=True)


def test_threads_draw_each_number_once(fill: Any) -> None:
    own, count = generator("PCG64"), 50_000
    outs = [np.zeros(count) for _ in range(4)]
    fill(own, np.zeros(10))
    threads = [
        threading.Thread(target=lambda out=out: [fill(own, out[k : k + 500]) for k in range(0, count, 500)])
        for out in outs
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = generator("PCG64").random(10 + 4 * count)[10:]
    assert np.array_equal(np.sort(np.concatenate(outs)), np.sort(expected))


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda g: g.binomial(9, 0.5), "Generator.binomial"),
        (lambda g: g.random(3, dtype=np.float32), "float32"),
        (lambda g: g.choice(4, p=[0.1, 0.2, 0.3, 0.4]), "Generator.choice"),
        (lambda g: g.normal(np.zeros(3)), "an array of loc"),
        (lambda g: (g.random(), np.random.binomial(9, 0.5)), "numpy.random.binomial"),
        (lambda g: (g.random(), np.random.default_rng().random()), "whose seed is no int"),
    ],
)  # fmt: skip
def test_what_is_refused_says_so(function: Any, text: str) -> None:
    with pytest.raises(TracingError, match=text):
        jk.jit(function, strict=True)(generator("PCG64"))
    own, other = generator("PCG64"), generator("PCG64")
    np.random.seed(3)
    got = jk.jit(function)(own)
    np.random.seed(3)
    expected = function(other)
    if "default_rng" not in text and "whose seed" not in text:
        assert same(got, expected)
    assert str(own.bit_generator.state) == str(other.bit_generator.state)


@pytest.mark.parametrize("backend", ["numba", "interpreter"])
def test_other_backends(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITKERNELS_BACKEND", backend)
    own, other = generator("PCG64"), generator("PCG64")
    drawn = jk.jit(lambda g, n: [g.normal(1.0, 2.0) for _ in range(n)])
    assert drawn(own, 500) == [other.normal(1.0, 2.0) for _ in range(500)]


def test_no_bundle_of_a_generator(tmp_path: Any) -> None:
    with pytest.raises(jk.BundleError, match="draws from a random generator"):
        jk.jit(lambda g, n: g.normal(size=n)).export(tmp_path, generator("PCG64"), 9)


def test_explanations_name_the_state() -> None:
    assert "g.bit_generator.state" in str(total.explain(generator("PCG64"), 30))


def test_an_interrupt_leaves_the_lock_free() -> None:
    """A signal handler's exception ends a loop: nobody holds the lock behind it, and the state is as it was."""

    @jk.jit(strict=True)
    def endless(g: Any) -> float:
        result = 0.0
        while g.random() < 2.0:
            result += 1.0
        return result

    def interrupt(*_: object) -> None:
        raise InterruptedError

    own = generator("PCG64")
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(2):
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with pytest.raises(InterruptedError):
                endless(own)
    finally:
        signal.signal(signal.SIGALRM, before)
    drawn: list[float] = []
    thread = threading.Thread(target=lambda: drawn.append(own.random()))
    thread.start()
    thread.join(5)
    assert len(drawn) == 1
