"""ATTENTION with unusual options: forms of masks, scales of either sign or none, shared keys."""

from typing import Any

import numpy as np
import pytest
from test_everyday_forms import compiled

import jitkernels as jk
from jitkernels.attrs.schema.registry import implementation
from jitkernels.dispatch.kernel import Kernel
from jitkernels.tools import testing

BATCH, HEADS, QUERIES, KEYS, D = 2, 3, 9, 21, 4
MASKS = [
    (KEYS,), (1, KEYS), (QUERIES, 1), (QUERIES, KEYS), (1, 1, KEYS), (1, QUERIES, KEYS), (HEADS, QUERIES, KEYS),
    (HEADS, 1, KEYS), (1, 1, QUERIES, KEYS), (1, HEADS, QUERIES, KEYS), (BATCH, 1, QUERIES, KEYS), (BATCH, 1, 1, KEYS),
    (BATCH, HEADS, QUERIES, KEYS), (1, 1, 1, 1), (),
]  # fmt: skip


def arrays(*lead: int) -> tuple[Any, ...]:
    generator = np.random.default_rng(0)
    return tuple(generator.standard_normal((*lead, HEADS, rows, D)) for rows in (QUERIES, KEYS, KEYS))


def expected(q: Any, k: Any, v: Any, mask: Any = 0.0, *, causal: bool = False, scale: float = 0.5) -> Any:
    scores = scale * q @ k.swapaxes(-1, -2) + mask
    if causal:
        behind = np.arange(k.shape[-2]) > np.arange(q.shape[-2])[:, None] + k.shape[-2] - q.shape[-2]
        scores = np.where(behind, -np.inf, scores)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ v


@pytest.mark.parametrize("shape", MASKS, ids=str)
def test_masks_broadcast_as_in_numpy(shape: tuple[int, ...]) -> None:
    mask = np.random.default_rng(1).standard_normal(shape)
    q, k, v = arrays(BATCH)
    for causal in (False, True):
        want = expected(q, k, v, mask, causal=causal)
        np.testing.assert_allclose(jk.attention(q, k, v, mask, causal=causal), want, rtol=1e-9)
        np.testing.assert_allclose(jk.attention(q, k, v, mask=mask, causal=causal), want, rtol=1e-9)
        none = [array[:0] for array in (q, k, v)]
        assert jk.attention(none[0], none[1], none[2], mask[:0] if shape[:1] == (BATCH,) else mask).shape == (
            0,
            HEADS,
            QUERIES,
            D,
        )


@pytest.mark.parametrize("shape", [(2,), (QUERIES, 2), (2, QUERIES, KEYS, 1), (5, 1, QUERIES, KEYS)], ids=str)
def test_masks_that_do_not_broadcast_are_rejected(shape: tuple[int, ...]) -> None:
    q, k, v = arrays(BATCH)
    with pytest.raises(jk.errors.ArgumentError, match="mask"):
        jk.attention(q, k, v, np.zeros(shape))


@pytest.mark.parametrize("queries", [1, 5, 9, 40])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scale", [-0.5, 2.0, 1e-30, -1e-30])
def test_scales_of_any_sign_and_size(scale: float, causal: bool, queries: int) -> None:
    """Masked keys stay masked."""
    generator = np.random.default_rng(2)
    for dtype, off in (("float32", 1e-5), ("float64", 1e-12)):
        q, k, v = (generator.standard_normal((2, rows, D)).astype(dtype) for rows in (queries, 50, 50))
        want = expected(q, k, v, causal=causal, scale=float(np.dtype(dtype).type(scale)))
        np.testing.assert_allclose(jk.attention(q, k, v, causal=causal, scale=scale), want, rtol=off, atol=off)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("flags", [{}, {"causal": True}, {"masked": True, "masks": 2}], ids=str)
def test_keys_shared_among_threads(flags: dict[str, Any], threads: int, restored_threads: int) -> None:
    """For any mask and number of parts, any number of threads gives the same bits."""
    jk.set_num_threads(threads)
    attr = jk.AttentionAttr(batch=1, heads=4, kv_heads=2, queries=2, keys=5000, d=16, dv=9, dtype="float64", **flags)
    found = implementation(jk.AttentionAttr, "gen")
    assert {"parallel": True, "split": True} in found.variants(attr)
    q, k, v = (np.random.default_rng(3).standard_normal(array.shape) for array in attr.signature().arrays[:3])
    given = [q, k, v]
    if attr.masked:
        mask = np.zeros((2, 2, 5000))
        mask[0, :, :2500], mask[1, 0, 17:], mask[1, 1] = -np.inf, -np.inf, -np.inf
        given.append(mask)
    want = np.empty((1, 4, 2, 9))
    jk.get_refer(attr)(*given, want)
    results = set()
    for number in (1, threads):
        jk.set_num_threads(number)
        out = testing.Guarded(np.empty_like(want), "end")
        Kernel(attr, found, {"parallel": True, "split": True}).run(*given, out.array)
        assert out.intact()
        np.testing.assert_allclose(out.array, want, rtol=1e-10, equal_nan=True)
        results.add(out.array.tobytes())
    assert len(results) == 1


@pytest.mark.parametrize("form", [testing.rejected_arguments.strided, np.asfortranarray], ids=["strided", "Fortran"])
@pytest.mark.parametrize("heads", [1, HEADS])
def test_masks_of_batches_that_pass_through_buffers(heads: int, form: Any) -> None:
    """Each batch entry has its own mask, however many entries are gathered at a time."""
    generator = np.random.default_rng(4)
    q, k, v = (generator.standard_normal((1, 7, heads, rows, 64)) for rows in (QUERIES, KEYS, KEYS))
    mask = generator.standard_normal((1, 7, heads, QUERIES, KEYS))
    loose = np.lib.stride_tricks.as_strided(mask, strides=(0, mask.strides[1], 0, *mask.strides[3:]))
    want = expected(q, k, v, mask, scale=0.125)
    for given in [mask, loose] if heads == 1 else [mask]:
        for dtype in ("float32", "float64"):
            off = 1e-5 if dtype == "float32" else 1e-12
            for _ in range(2):
                got = jk.attention(form(q), k, form(v), given.astype(dtype, order="K"))
                np.testing.assert_allclose(got, want, rtol=off, atol=off)
                got = jk.attention(q, k, v, given)
                np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


OF_FEW = ((3, 1, 1, 6), (1, 1, 1, 6), (6,), (5, 6), (1, 6), (3, 1, 5, 6), (4, 1, 6), (1, 4, 1, 6), (3, 4, 1, 1))


@pytest.mark.parametrize("kind", ["float32", "int8", ">f4"])
@pytest.mark.parametrize("shape", OF_FEW, ids=str)
def test_masks_broadcast_in_compiled_code(shape: tuple[int, ...], kind: str) -> None:
    """Over batches, heads and queries, as in NumPy."""
    generator = np.random.default_rng(0)
    q, k, v = (generator.random(s, np.float32) for s in ((3, 4, 5, 8), (3, 2, 6, 8), (3, 2, 6, 7)))
    mask = generator.integers(-3, 3, shape).astype(kind)
    whole = np.broadcast_to(mask, (3, 4, 5, 6)).astype(np.float32)
    got = jk.attention(q, k, v, mask) if kind == ">f4" else compiled(jk.attention, q, k, v, mask)
    np.testing.assert_array_equal(got, jk.attention(q, k, v, whole))
