"""The generated matrix product beyond its values: reproducible bits, untouched memory, text without a compiler."""

import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import processor_skips
import pytest

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.attrs.schema.registry import implementation
from jitkernels.core import cpu_target
from jitkernels.dispatch.kernel import Kernel
from jitkernels.gen.matmul import matmul, variants
from jitkernels.microkernels.gemm.gemm_heuristics import Product, candidates, simplified

SHAPES = [
    (5, 1, 100), (1, 5, 100), (1, 300, 40), (300, 1, 40), (40, 3, 80), (3, 40, 80), (33, 8, 70), (16, 200, 64),
    (31, 33, 17), (20, 2, 9), (17, 20, 30), (25, 37, 6), (9, 52, 12), (20, 5, 40),
    (100, 100, 100), (256, 256, 256), (60, 700, 20), (7, 9, 0), (12, 1, 0), (0, 5, 4), (100, 0, 100),
]  # fmt: skip


TARGETS = [
    cpu_target.target_of("x86_64", "znver5", frozenset({"avx512f", "avx2"})),
    cpu_target.target_of("x86_64", "haswell", frozenset({"avx2"})),
    cpu_target.target_of("x86_64", "nehalem", frozenset()),
    cpu_target.target_of("aarch64", "neoverse-n1", frozenset({"neon"})),
]


def kernel(attr: MatMulAttr, variant: Any) -> Kernel:
    """One variant of gen, compiled."""
    return Kernel(attr, implementation(MatMulAttr, "gen"), variant)


def operands(attr: MatMulAttr, seed: int = 0) -> tuple[Any, Any, Any]:
    """Random a, b and c of an attr."""
    generator = np.random.default_rng(seed)
    a, b, c = (array.shape for array in attr.signature().arrays)
    first, second, third = (generator.standard_normal(shape).astype(attr.dtype) for shape in (a, b, c))
    return first, second, third


def product(attr: MatMulAttr, a: Any, b: Any, c: Any) -> Any:
    """The result in float64."""
    left, right = (a.T if attr.trans_a else a).astype("f8"), (b.T if attr.trans_b else b).astype("f8")
    return left @ right + (attr.beta * c.astype("f8") if attr.beta else 0.0)


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
def test_static_choice_and_choice_of_the_class(m: int, n: int, k: int, trans_a: bool, trans_b: bool) -> None:
    """A variant measured for a size class has to be right for each member of the class, also where it fits badly.

    Each pair of transposes is tested with both dtypes, which alternate from shape to shape.
    """
    turn = (SHAPES.index((m, n, k)) + trans_a + trans_b) % 2
    beta, dtype = ((0.0, "float32"), (-0.5, "float64"))[turn]
    attr = MatMulAttr(m=m, n=n, k=k, trans_a=trans_a, trans_b=trans_b, beta=beta, dtype=dtype)
    a, b, start = operands(attr)
    for variant in (variants(attr)[0], variants(attr.size_class())[-1]):
        c = np.full_like(start, np.nan) if beta == 0 else start.copy()
        kernel(attr, variant).callable(a, b, c)
        bound = 4 * (k + 4) * float(np.finfo(dtype).eps)
        assert np.all(np.abs(c - product(attr, a, b, start)) <= bound), (attr, variant)


@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
def test_compact_products_of_any_depth(trans_a: bool, trans_b: bool) -> None:
    """Including depths above that of a panel of a transposed B, which other algorithms usually compute."""
    for m, n, k, beta, dtype in (
        (3, 70, 600, 0.0, "float32"),
        (20, 45, 257, 1.0, "float64"),
        (9, 5, 256, -0.5, "float32"),
    ):
        attr = MatMulAttr(m=m, n=n, k=k, trans_a=trans_a, trans_b=trans_b, beta=beta, dtype=dtype)
        a, b, start = operands(attr)
        c = np.full_like(start, np.nan) if beta == 0 else start.copy()
        kernel(attr, {"algorithm": "compact"}).callable(a, b, c)
        bound = 4 * (k + 4) * float(np.finfo(dtype).eps)
        assert np.all(np.abs(c - product(attr, a, b, start)) <= bound * (1 + np.abs(start))), attr


@pytest.mark.parametrize("target", TARGETS[1:], ids=lambda target: target.name)
def test_tiles_of_other_targets(target: cpu_target.Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use their lanes and registers in instructions of this machine, if its vectors are as wide."""
    own = cpu_target.target()
    if own.vector_bytes < target.vector_bytes:
        processor_skips.skip(f"vectors of {target.vector_bytes} bytes do not exist here")
    monkeypatch.setattr(cpu_target, "target", lambda: replace(target, name=own.name, features=own.features))
    for m, n, k, trans_b in ((31, 33, 17, False), (100, 60, 50, True), (5, 1, 100, False), (300, 20, 300, False)):
        attr = MatMulAttr(m=m, n=n, k=k, trans_b=trans_b)
        a, b, c = operands(attr)
        for variant in variants(attr):
            kernel(attr, variant).callable(a, b, c)
            bound = 4 * (k + 4) * float(np.finfo("float32").eps)
            assert np.all(np.abs(c - product(attr, a, b, c)) <= bound * (1 + np.abs(c))), (attr, variant)


@pytest.mark.parametrize("shape", [(240, 192, 180), (48, 288, 300), (288, 288, 600)])
def test_direct_variants_give_the_same_bits(shape: tuple[int, int, int]) -> None:
    """Tiles of at least eight vectors, of which these shapes consist, add the products of an element in order of k."""
    m, n, k = shape
    attr = MatMulAttr(m=m, n=n, k=k)
    a, b, c = operands(attr)
    found = set()
    for variant in variants(attr):
        if variant["algorithm"] == "direct":
            kernel(attr, variant).callable(a, b, c)
            found.add(c.tobytes())
    assert len(found) <= 1


def test_candidates_are_few_and_fit_registers() -> None:
    """At most six per shape, and no tile that would spill."""
    for target in TARGETS:
        for m in (1, 2, 3, 4, 5, 8, 9, 16, 64, 700, 4096):
            for n in (1, 2, 3, 7, 12, 16, 33, 48, 100, 513, 4096):
                for k in (0, 1, 8, 100, 5000):
                    for turn in range(4):
                        given = simplified(Product(m, n, k, bool(turn & 1), bool(turn & 2), "float32"))
                        found = candidates(given, target)
                        assert 1 <= len(found) <= 6
                        for variant in found:
                            tile = variant.get("rows", 1) * variant.get("vectors", variant.get("columns", 1))
                            assert tile <= target.registers - 4


def test_text_needs_no_compiler() -> None:
    """The key of a cached object is computed without the front end."""
    program = (
        "import sys; from jitkernels.attrs.matmul import MatMulAttr;"
        "from jitkernels.attrs.schema.registry import implementations;"
        "implementations(MatMulAttr); from jitkernels.gen.matmul import matmul;"
        "assert matmul(MatMulAttr(m=9, n=9, k=9), algorithm='direct', rows=4, vectors=1).text;"
        "print('jitkernels.codegen.python.kernel_module' in sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False"


def test_one_packed_object_serves_every_size() -> None:
    """Sizes are run-time arguments of the packed algorithm, and not part of its text."""
    small, large = MatMulAttr(m=70, n=80, k=90), MatMulAttr(m=1000, n=1100, k=1200)
    assert matmul(small).text == matmul(large).text


@pytest.mark.parametrize("n", [1024, 2000, 2048, 4096])
def test_large_products_are_always_packed(n: int) -> None:
    """Records of other sizes may only select these variants: reading in place takes up to three times longer."""
    found = candidates(Product(n, n, n, False, False, "float32"), cpu_target.target())
    assert {variant["algorithm"] for variant in found} == {"packed"}
