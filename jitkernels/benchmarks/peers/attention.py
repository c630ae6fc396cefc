"""Peers of ATTENTION in NumPy, torch and onnxruntime."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.attention import AttentionAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer, threads
from jitkernels.benchmarks.peers.array_layouts import in_dtypes, in_layouts, values, with_outs


@equivalent(AttentionAttr)
def attention(
    q: Any, k: Any, v: Any, mask: Any = None, padding: Any = None, causal: bool = False, **options: Any
) -> Any:
    scale, out = options.get("scale", 0.0), options.get("out")
    q, k, v = (np.multiply(array, 1.0) for array in (q, k, v))  # products of small integers wrap around
    heads, kv_heads = q.shape[-3], k.shape[-3]
    if 1 != kv_heads != heads:
        shared = np.arange(heads) * kv_heads // heads
        k, v = np.take(k, shared, axis=-3), np.take(v, shared, axis=-3)
    scores = np.matmul(q, np.swapaxes(k, -1, -2)) * (scale or q.shape[-1] ** -0.5)
    for added in (mask, None if padding is None else np.expand_dims(padding, (-3, -2))):
        if added is not None:
            masked = scores + added
            scores = np.where(np.less(added, 0), added, masked) if options.get("masked_fill") else masked
    if causal:
        queries, keys = scores.shape[-2:]
        scores = np.where(np.arange(keys) > np.arange(queries)[:, np.newaxis] + keys - queries, -np.inf, scores)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    found = np.matmul(weights / weights.sum(axis=-1, keepdims=True), v)
    return found.astype(q.dtype, copy=False) if out is None else np.positive(found, out=out, casting="same_kind")


@peer(AttentionAttr)
def numpy_attention(attr: AttentionAttr, q: AnyArray, k: AnyArray, v: AnyArray, *rest: AnyArray) -> Bound:
    *masks, out = rest
    mask = attr.broadcast_mask(masks[0]) if attr.masked else None
    padding = masks[-1] if attr.padded else None
    scale = q.dtype.type(attr.factor)
    return partial(attention, q, k, v, mask, padding, attr.causal, scale=scale, masked_fill=attr.masked_fill, out=out)


@peer(AttentionAttr, name="torch")
def torch_attention(attr: AttentionAttr, q: AnyArray, k: AnyArray, v: AnyArray, *rest: AnyArray) -> Bound | None:
    import torch

    *masks, out = rest
    is_causal = attr.causal and attr.queries > 1
    if 0 in (out.size, attr.d) or attr.masked_fill or attr.heads % attr.kv_heads:
        return None
    if is_causal and (attr.queries != attr.keys or masks):
        return None  # its causal mask is aligned to the first key
    result = torch.from_numpy(out)
    added = [torch.from_numpy(np.ascontiguousarray(array)) for array in attr.added_masks(masks)]
    mask_tensor = sum(added[1:], start=added[0]) if added else None
    tensors = [torch.from_numpy(array) for array in (q, k, v)]

    def into() -> None:
        result.copy_(
            torch.nn.functional.scaled_dot_product_attention(
                *tensors,
                attn_mask=mask_tensor,
                is_causal=is_causal,
                scale=attr.factor,
                enable_gqa=attr.heads != attr.kv_heads,
            )
        )

    return partial(into)


@peer(AttentionAttr, name="onnxruntime")
def onnxruntime_attention(attr: AttentionAttr, q: AnyArray, k: AnyArray, v: AnyArray, *rest: AnyArray) -> Bound | None:
    import onnxruntime

    *mask, out = rest
    is_causal = attr.causal and attr.queries > 1
    unknown = attr.dtype != "float32" or mask or attr.heads != attr.kv_heads or 0 in (out.size, attr.d)
    if unknown or (is_causal and attr.queries != attr.keys):
        return None
    session = _session(onnxruntime, attr, is_causal=is_causal)
    together = {
        name: np.ascontiguousarray(array.swapaxes(1, 2)).reshape(attr.batch, array.shape[2], -1)
        for name, array in (("query", q), ("key", k), ("value", v))
    }
    shape = (attr.batch, attr.queries, attr.heads, attr.dv)

    def into() -> None:
        (found,) = session.run(None, together)
        out[...] = found.reshape(shape).swapaxes(1, 2)

    return partial(into)


def _session(onnxruntime: Any, attr: AttentionAttr, *, is_causal: bool) -> Any:
    """Return a session of one ``MultiHeadAttention`` node of the runtime's domain, with as many threads as ours."""
    from onnx import TensorProto, helper

    names = ("query", "key", "value")
    node = helper.make_node(
        "MultiHeadAttention", names, ["out"], domain="com.microsoft", num_heads=attr.heads, scale=attr.factor,
        unidirectional=int(is_causal),
    )  # fmt: skip
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * 3) for name in names]
    output = helper.make_tensor_value_info("out", TensorProto.FLOAT, [None] * 3)
    versions = [helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("", 17)]
    model = helper.make_model(
        helper.make_graph([node], "attention", inputs, [output]), opset_imports=versions, ir_version=10
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads.most()
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


@ordinary_calls(AttentionAttr)
def attentions(elements: int) -> Iterator[OrdinaryCall]:
    d = 4 if elements >= 8 else 1
    positions = max(elements // (2 * d), 2)
    q, k, v = (values((2, positions, d))[..., ::step].copy() for step in (1, -1, 1))
    few = q[:, :1].copy()
    mask = values((positions, positions))
    yield OrdinaryCall("3-D", (q, k, v))
    yield OrdinaryCall("4-D", (q[np.newaxis].copy(), k[np.newaxis].copy(), v[np.newaxis].copy()))
    yield OrdinaryCall("one query", (few, k, v))
    yield OrdinaryCall("shared keys", (q, k[:1].copy(), v[:1].copy()))
    yield OrdinaryCall("causal", (q, k, v), {"causal": True})
    yield OrdinaryCall("scale", (q, k, v), {"scale": 0.25})
    yield OrdinaryCall("mask", (q, k, v, mask[np.newaxis].copy()))
    yield OrdinaryCall("mask, 2-D", (q, k, v, mask))
    batches = tuple(np.stack([array, array + 1]) for array in (q, k, v))
    yield OrdinaryCall("mask of four dimensions", (*batches, mask[np.newaxis, np.newaxis].copy()))
    yield OrdinaryCall("mask of keys for each batch", (*batches, values((2, 1, 1, positions))))
    yield OrdinaryCall("mask for each head", (*batches, values((2, *q.shape[:-1], positions))))
    yield OrdinaryCall("padding", batches, {"padding": values((2, positions))})
    yield OrdinaryCall("mask by name", (q, k, v), {"mask": mask[np.newaxis].copy()})
    yield from in_dtypes(q, k, v)
    yield from in_layouts(q, k, v)
    swapped = [np.ascontiguousarray(array.swapaxes(0, 1)).swapaxes(0, 1) for array in (q, k, v)]
    yield OrdinaryCall("heads behind positions", tuple(swapped))
    yield OrdinaryCall("empty", (q[:, :0], k, v))
    yield from with_outs((q, k, v), 6, q)
