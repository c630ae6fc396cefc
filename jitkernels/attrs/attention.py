"""ATTENTION: scaled dot products of queries with keys, softmax, and the weighted sum of values."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, real
from jitkernels.attrs.schema.signature import AnyArray, Argument
from jitkernels.errors import AttrError


class AttentionAttr(KernelAttr, kernel_type="ATTENTION"):
    """out = softmax(scale * q @ k.T + mask + padding, over keys) @ v, for each batch entry and head.

    q is [batch, heads, queries, d], k [batch, kv_heads, keys, d], v [batch, kv_heads, keys, dv]. Head h uses keys and
    values number h * kv_heads // heads (grouped-query attention). A scale of 0 stands for 1 / sqrt(d). Head h of batch
    entry b uses mask[(b * heads + h) % masks], which is added: minus infinity hides a key. So is padding[b], to the
    scores of all queries: it hides the keys behind the end of a shorter sequence. With `masked_fill` negative numbers
    of both replace the scores in place of being added, as ``np.where`` and torch's ``masked_fill`` do: hidden keys may
    then hold NaN. With `causal` a query attends to no later key; where queries and keys differ in number the last ones
    are aligned, as decoding needs it (as in FlashAttention, while ``is_causal`` of torch aligns the first ones).

    Rows of scores that are minus infinity everywhere, such as those of the first queries where there are fewer keys,
    give NaN, as 0 / 0 does. Hidden values must be finite, and so must keys that an added number hides. Vaswani et al.
    (2017), "Attention is all you need"; the softmax is computed online as in Milakov and Gimelshein (2018), "Online
    normalizer calculation for softmax", so that no matrix of queries by keys is stored.
    """

    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    d: int
    dv: int
    masks: int = 1
    causal: bool = False
    masked: bool = False
    padded: bool = False
    masked_fill: bool = False
    scale: float = real(default=0.0, samples=(0.0, 0.25, 1.0, -0.5))
    dtype: str = "float32"
    arrays = (
        Argument("q", "in", "*batch heads queries d"),
        Argument("k", "in", "*batch kv_heads keys d"),
        Argument("v", "in", "*batch kv_heads keys dv"),
        Argument("mask", "in", "masks queries keys", when="masked", along="q"),
        Argument("padding", "in", "*batch keys", when="padded"),
        Argument("out", "out", "*batch heads queries dv"),
    )
    floats = ("scale",)
    options = ("causal", "scale", "masked_fill")

    def __post_init__(self) -> None:
        super().__post_init__()
        needed = {"kv_heads": self.kv_heads, "keys": self.keys, "d": self.d, "masks": self.masks if self.masked else 1}
        for name, extent in needed.items():
            if extent == 0 and 0 not in (self.batch, self.heads, self.queries, self.dv):
                raise AttrError(f"AttentionAttr: {name}: expected at least 1 where there are results, got 0")

    @property
    def factor(self) -> float:
        """The factor of the products of queries and keys."""
        return self.scale or self.d**-0.5 if self.d else 1.0

    def tolerance(self) -> Tolerance:
        """The whole bound is in the absolute terms, since errors of scores grow with the scores."""
        return Tolerance(ulp=2, terms=1)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The weighted sum of |v|, times the rounding errors of the sums and of the scores in the weights.

        There is no bound where scores are so large that their rounding errors determine the weights.
        """
        q, k, v, *rest = arrays[:-1]
        if 0 in (self.batch, self.heads, self.queries, self.dv):
            return [np.zeros(self.signature().outputs[0].shape)]
        off = self.scores(np.abs(q), np.abs(k)) * abs(self.factor) * (self.d / 2 + 4)
        scores = self.apply_mask(self.scores(q, k) * self.factor, rest)
        for added in self.added_masks(rest):
            off = off + 2 * np.abs(np.where(np.isinf(added), 0, added))
        largest = scores.max(axis=-1, keepdims=True)
        weights = np.exp(scores - largest)
        weights /= weights.sum(axis=-1, keepdims=True)
        lost = np.where(weights > 0, off + np.abs(np.where(weights > 0, scores - largest, 0)), 0)
        off = np.where(self.hidden(scores, rest), 0, off)
        lost = lost + (weights * lost).sum(axis=-1, keepdims=True)
        sure = off.max(axis=-1, keepdims=True) * float(np.finfo(self.dtype).eps) < 0.05
        tiny = float(np.finfo(self.dtype).tiny)  # smaller weights are negligible
        terms = self.weighted(weights * (lost + self.keys / 2 + 40) + tiny, np.abs(v))
        near_zero = (weights < tiny * 2.0**20).astype(weights.dtype)
        spoilt = self.weighted(near_zero, (~np.isfinite(v)).astype(v.dtype)) > 0
        return [np.where(sure & ~spoilt, terms, np.nan)]

    def scores(self, q: AnyArray, k: AnyArray) -> AnyArray:
        """q @ k.T: [batch, heads, queries, keys]; heads that share keys are one product."""
        product = self.group_queries(q) @ self.expand_kv_heads(k).swapaxes(-1, -2)
        return product.reshape(self.batch, self.heads, self.queries, self.keys)

    def weighted(self, weights: AnyArray, v: AnyArray) -> AnyArray:
        """weights @ v: [batch, heads, queries, dv]."""
        product = self.group_queries(weights) @ self.expand_kv_heads(v)
        return product.reshape(self.batch, self.heads, self.queries, self.dv)

    def group_queries(self, of_heads: AnyArray) -> AnyArray:
        """The rows of all heads that share the same keys, as one matrix."""
        groups = self.heads if self.heads % self.kv_heads else self.kv_heads
        return of_heads.reshape(self.batch, groups, self.heads // groups * self.queries, of_heads.shape[-1])

    def expand_kv_heads(self, by_kv_head: AnyArray) -> AnyArray:
        """Keys or values per head, where kv_heads does not divide heads."""
        if not self.heads % self.kv_heads:
            return by_kv_head
        return by_kv_head[:, np.arange(self.heads) * self.kv_heads // self.heads]

    def broadcast_mask(self, mask: AnyArray) -> AnyArray:
        """The mask of each batch entry and head."""
        number = np.arange(self.batch * self.heads) % self.masks
        return mask[number].reshape(self.batch, self.heads, self.queries, self.keys)

    def added_masks(self, masks: Sequence[AnyArray]) -> list[AnyArray]:
        """The mask and the padding, those that there are, as what is added to the scores."""
        added = [masks[0] if self.masks == 1 else self.broadcast_mask(masks[0])] if self.masked else []
        return added + ([masks[-1][:, np.newaxis, np.newaxis, :]] if self.padded else [])

    def apply_mask(self, scores: AnyArray, masks: Sequence[AnyArray]) -> AnyArray:
        """Scores with mask and padding added, if there are any, and minus infinity for keys after a query."""
        for added in self.added_masks(masks):
            masked = scores + added
            scores = np.where(added < 0, added, masked) if self.masked_fill else masked
        if self.causal:
            last = np.arange(self.queries)[:, np.newaxis] + (self.keys - self.queries)
            scores = np.where(np.arange(self.keys) > last, -np.inf, scores).astype(scores.dtype)
        return scores

    def hidden(self, scores: AnyArray, masks: Sequence[AnyArray]) -> AnyArray:
        """Which scores the masks determine alone."""
        hidden = np.isneginf(self.apply_mask(np.zeros_like(scores), masks))
        for added in self.added_masks(masks) if self.masked_fill else ():
            hidden = hidden | (added < 0)
        return hidden

    def operations(self) -> float:
        return self.batch * self.heads * self.queries * self.keys * (2.0 * self.d + 2.0 * self.dv + 20.0)

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        def attrs(shapes: Sequence[tuple[int, ...]], **more: Any) -> list[AttentionAttr]:
            names = ("batch", "heads", "kv_heads", "queries", "keys", "d", "dv")
            named: list[dict[str, Any]] = [dict(zip(names, shape, strict=True)) for shape in shapes]
            return [cls(**shape, **more) for shape in named]

        small = [
            (1, 1, 1, 1, 1, 1, 1),
            (1, 2, 1, 3, 5, 4, 3),
            (2, 2, 2, 2, 3, 2, 3),
            (1, 2, 2, 9, 250, 8, 8),
            (1, 3, 1, 1, 70, 16, 20),
            (1, 1, 1, 1, 4200, 16, 16),
        ]
        large = [(1, 8, 8, n, n, d, d) for d in (64, 128) for n in (128, 512, 2048)]
        decode = [(1, 32, heads, 1, n, d, d) for d in (64, 128) for heads in (32, 8) for n in (128, 1024, 4096)]
        decode += [(1, 1, 1, 1, n, 64, 64) for n in (4096, 65536)]
        return cases(
            [
                attr
                for dtype in FLOATS
                for attr in (
                    *attrs(large, dtype=dtype),
                    *attrs(large, dtype=dtype, causal=True),
                    *attrs(decode, dtype=dtype),
                )
            ],
            ci=[
                attr
                for dtype in FLOATS
                for attr in (
                    *attrs(small, dtype=dtype),
                    *attrs([(2, 2, 1, 40, 45, 5, 33)], dtype=dtype, causal=True, scale=-0.5),
                    *attrs([(2, 2, 1, 4, 7, 5, 3)], dtype=dtype, masked=True, masks=2),
                    *attrs([(2, 2, 2, 9, 21, 8, 8), (3, 2, 1, 1, 9, 4, 4)], dtype=dtype, padded=True),
                    *attrs([(2, 2, 1, 8, 40, 5, 3)], dtype=dtype, masked=True, padded=True, causal=True),
                    *attrs([(2, 2, 1, 8, 40, 5, 3), (1, 2, 2, 1, 9, 4, 4)], dtype=dtype, masked=True, masked_fill=True),
                    *attrs([(2, 2, 1, 8, 40, 5, 3)], dtype=dtype, padded=True, masked_fill=True),
                )
            ],
        )
