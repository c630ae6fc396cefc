"""`loops` of compiled functions: the text of small examples; and every program has loops for each of its nests."""

from typing import Any

import numpy as np
import pytest
from cases import Failures
from every_program import every_program

import jitkernels as jk
from jitkernels.core import cpu_target


@pytest.fixture
def wide_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generate code, which nothing runs, for a processor with AVX-512."""
    own = cpu_target.target()
    features = own.features | {"avx512f", "avx512bw", "avx512dq", "avx512vl"}
    target = cpu_target.Target("x86_64", "znver4", features, vector_bytes=64, registers=32)
    monkeypatch.setattr(cpu_target, "target", lambda: target)


@pytest.fixture
def slow_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generate code for an AMD processor without AVX-512."""
    features = frozenset({"avx", "avx2", "fma", "f16c"})
    target = cpu_target.Target("x86_64", "znver3", features, vector_bytes=32, registers=16)
    monkeypatch.setattr(cpu_target, "target", lambda: target)


def lines(text: str) -> list[str]:
    """The lines of an expected text, without its margin."""
    return [line[8:] for line in text.splitlines()[1:-1]]


@pytest.mark.usefixtures("wide_vectors")
def test_elementwise_loops() -> None:
    """Each output is stored in a range for each thread: peeled iterations, unrolled vectors, a masked remainder."""

    def shifted(x: Any, shift: Any) -> Any:
        return np.maximum(x * 2 - shift, 0)

    text = jk.jit(shifted).loops(np.zeros((100, 70), np.float32), np.float32(1))
    assert text.splitlines() == lines("""
        shifted for n0=100, n1=70
            x: float32[n0, n1]
            shift: float32[]
            result: float32[n0, n1]
        1: loop nest
            parallel for i1 in ranges of 0..(n0 * n1):
                if result is misaligned, from 32 vectors or 16,777,216 bytes on:
                    vector for i1 in the iterations before the first aligned store (16 lanes, masked, 64-byte vectors):
                        v1 = x[i1]
                        result[i1] = maximum((v1 + v1) - shift[0], 0.0)  # streaming stores from 16,777,216 bytes on
                vector for i1 in 0..(n0 * n1) step 64 (4 x 16 lanes, 64-byte vectors), then
                vector for i1 in the rest (16 lanes, masked, 64-byte vectors):
                    v1 = x[i1]
                    result[i1] = maximum((v1 + v1) - shift[0], 0.0)  # streaming stores from 16,777,216 bytes on
        """)


@pytest.mark.usefixtures("slow_masks")
def test_loops_without_masked_stores() -> None:
    """The remainder of cheap loops is halved, down to single elements; that of expensive ones is one masked vector."""
    numbers = np.zeros(1000, np.float32)
    cheap, costly = (jk.jit(function).loops(numbers) for function in (lambda x: x + 1, lambda x: np.log(np.exp(x))))
    halves = [line.split("(")[1] for line in cheap.splitlines() if "in the rest (" in line]
    assert [half.split(",")[0] for half in halves] == ["8 lanes", "4 lanes"]
    assert "masked" not in cheap
    assert "in the rest (8 lanes, masked" in costly


@pytest.mark.usefixtures("wide_vectors")
def test_phases_of_rows() -> None:
    """A row is reduced before what depends on that; the exponentials wait in the result."""

    def softmax(x: Any) -> Any:
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    text = jk.jit(softmax).loops(np.zeros((30, 2000), np.float32))
    steps = [line.strip() for line in text.splitlines() if "=" in line and " for " not in line]
    assert list(dict.fromkeys(steps)) == [
        "max1 = accumulator of max, 64 lanes of float32",
        "max1 = max(max1, x[i0 * n1 + i1])",
        "max1 = max of all lanes of max1",
        "sum2 = accumulator of sum, 64 lanes of float32",
        "v1 = exp(x[i0 * n1 + i1] - max1)",
        "sum2 += v1",
        "result[i0 * n1 + i1] = v1  # scratch",
        "sum2 = sum of all lanes of sum2",
        "result[i0 * n1 + i1] = result[i0 * n1 + i1] / sum2",
    ]
    assert text.splitlines()[4] == "    parallel for i0 in 0..n0:"


def test_directions_and_computed_indices() -> None:
    """Updates in place run in the direction that reads old elements; gathers and scatters show their indices."""

    def delayed(x: Any) -> Any:
        x[1:] = x[:-1] + 1
        return x

    def moved(x: Any, places: Any) -> Any:
        x[places] += 1.5
        return x[places]

    assert "backwards" in jk.jit(delayed).loops(np.zeros(50))
    text = jk.jit(moved).loops(np.zeros(50), np.arange(20))
    assert "x[places[i0]]" in text
    assert "x[v1] = " in text


def test_nests_in_loops_have_names_of_the_user() -> None:
    def relaxed(a: Any, b: Any, steps: Any) -> Any:
        for _ in range(steps):
            b[1:-1] = (a[:-2] + a[2:]) / 2
            a[1:-1] = b[1:-1]
        return a

    text = jk.jit(relaxed).loops(np.zeros(50), np.zeros(50), 3)
    assert "1: loop\n    2: loop nest\n" in text
    assert "b[1 + i0] = " in text
    assert "a[i0] + a[2 + i0]" in text
    assert "parallel" not in text  # nests in loops run on one thread


def test_calls_and_functions_without_loops() -> None:
    text = jk.jit(lambda a, b: np.tanh(a @ b)).loops(np.ones((50, 60)), np.ones((60, 70)))
    assert "1: product of float64[n0, n1], float64[n1, n2]" in text
    assert "2: loop nest, the epilogue of the product" in text
    with pytest.raises(jk.errors.NotUsableError, match="there is no code"):
        jk.jit(print).loops("text")


def test_loops_of_all_calls_so_far() -> None:
    compiled: Any = jk.jit(lambda x: x + 1)
    compiled(np.ones(3))
    compiled(np.ones((3, 4)))
    assert compiled.loops().count("1: loop nest") == 2


def test_every_program_has_loops() -> None:
    """Each line fits its block, and each nest stores something."""
    failures = Failures()
    for name, (function, make) in every_program().items():
        with failures.gathered(name):
            text = jk.jit(function).loops(*make()).splitlines()
            assert not any("jitkernels" in line or " object at 0x" in line for line in text)
            for i, line in enumerate(text):
                indent = len(line) - len(line.lstrip())
                if line.endswith((":", ", then")) and " for " in line:
                    deeper = len(text[i + 1]) - len(text[i + 1].lstrip()) - indent
                    assert deeper == (0 if line.endswith("then") else 4), line
                if line.strip().endswith(": loop nest"):
                    assert len(text[i + 1]) - len(text[i + 1].lstrip()) == indent + 4, "a nest without statements"
    failures.tell()
