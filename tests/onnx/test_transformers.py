"""Transformers as exporters write them: values beside the reference, kernels, no code for grown sequences."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx_cases import needs_onnx

import jitkernels.onnx
from jitkernels.benchmarks.networks.transformer_models import (
    Transformer,
    decoder,
    decoder_feeds,
    encoder,
    encoder_feeds,
)

pytestmark = needs_onnx
SMALL = Transformer(2, 64, 4, 96, 50, 40)


def expected(proto: Any, feeds: Mapping[str, Any]) -> list[Any]:
    """The outputs by the reference implementation of ONNX."""
    from onnx.reference import ReferenceEvaluator

    with np.errstate(all="ignore"):
        return list(ReferenceEvaluator(proto).run(None, dict(feeds)))


def compiles(model: Any) -> int:
    return sum(function.stats().compiles for plan in model.plans for one in plan.stages for function in one.functions)


def kernels_of(model: Any, feeds: Mapping[str, Any]) -> list[str]:
    """The lines of the kernels that compute a model."""
    explained = model.explain(*feeds.values())
    assert set(explained.levels) <= {"compiled", "constant"}
    (function,) = explained.functions
    return str(function).splitlines()


@pytest.mark.parametrize("gelu", ["erf", "tanh"])
@pytest.mark.parametrize("is_decomposed", [False, True], ids=["LayerNormalization", "decomposed"])
def test_encoder(gelu: str, is_decomposed: bool) -> None:
    sizes = SMALL._replace(gelu=gelu, is_decomposed=is_decomposed)
    proto = encoder(sizes)
    model = jitkernels.onnx.load(proto)
    for batch, length in ((1, 8), (3, 16)):
        feeds = encoder_feeds(sizes, batch, length)
        np.testing.assert_allclose(model(*feeds.values()), expected(proto, feeds)[0], rtol=1e-4, atol=1e-5)
    lines = kernels_of(model, feeds)
    assert sum("kernel: jk.attention" in line for line in lines) == sizes.layers
    assert not any("exp, sum" in line for line in lines), "a softmax is computed apart"
    erf = "erf" if gelu == "erf" else "tanh"
    assert sum("product: matmul, add" in line and erf in line for line in lines) == sizes.layers
    assert sum("product: matmul, add, add, sum over" in line for line in lines) == 2 * sizes.layers


def test_encoder_of_new_lengths_needs_no_code() -> None:
    model = jitkernels.onnx.load(encoder(SMALL))
    for batch in (1, 2):
        model(*encoder_feeds(SMALL, batch, 6).values())
    known = compiles(model)
    for batch, length in ((1, 7), (1, 30), (3, 17), (5, 33)):
        model(*encoder_feeds(SMALL, batch, length).values())
    assert compiles(model) == known


@pytest.mark.parametrize("is_decomposed", [False, True], ids=["LayerNormalization", "decomposed"])
def test_decoder_with_cache(is_decomposed: bool) -> None:
    sizes = SMALL._replace(gelu="tanh", is_decomposed=is_decomposed)
    proto = decoder(sizes)
    model = jitkernels.onnx.load(proto)
    for length, past in ((5, 0), (3, 6), (1, 9)):
        feeds = decoder_feeds(sizes, 2, length, past)
        for result, wanted in zip(model(*feeds.values()), expected(proto, feeds), strict=True):
            np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)


def test_decoder_generates_without_new_code() -> None:
    """One-token steps on the results of the step before; keys and values are copied once, into the results."""
    model = jitkernels.onnx.load(decoder(SMALL))
    feeds = decoder_feeds(SMALL, 1, 7, 0)
    cache: list[Any] = [*model(*feeds.values())[1:]]
    token = np.array([[3]])
    known = -1
    for step in range(12):
        _, *cache = model(token, *cache)
        known = compiles(model) if step == 0 else known
    assert cache[0].shape[2] == 19
    assert compiles(model) == known
    lines = kernels_of(model, dict(zip(feeds, (token, *cache), strict=True)))
    attention = [line for line in lines if "kernel: jk.attention" in line]
    assert len(attention) == SMALL.layers
    assert all(line.partition("writes")[0].count("reads") == 1 and "result" in line for line in attention)


def test_residuals_are_stored() -> None:
    """Nests of later layers do not add up the results of all layers before again, from the embeddings on."""
    sizes = SMALL._replace(layers=4)
    model, feeds = jitkernels.onnx.load(decoder(sizes)), decoder_feeds(sizes, 1, 5, 3)
    assert sum("gather" in line for line in kernels_of(model, feeds)) == 2


def test_cache_equals_the_whole_sequence() -> None:
    """The last logits of a prompt are those of its last token behind the cache of all before it."""
    model = jitkernels.onnx.load(decoder(SMALL))
    feeds = decoder_feeds(SMALL, 1, 9, 0)
    tokens = feeds["input_ids"]
    logits, *_ = model(*feeds.values())
    _, *cache = model(tokens[:, :8], *[*feeds.values()][1:])
    last, *_ = model(tokens[:, 8:], *cache)
    np.testing.assert_allclose(last[0, 0], logits[0, 8], rtol=1e-4, atol=1e-5)
