"""Peers of CRF_DECODING in NumPy."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.crf_decoding import CRFDecodingAttr
from jitkernels.benchmarks.peers import OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import in_dtypes, in_layouts, outs, values


@equivalent(CRFDecodingAttr)
def crf_decoding(x: Any, w: Any, out: Any = None) -> Any:
    dtype = np.result_type(np.asarray(x), np.asarray(w), np.float32)
    x, w = np.asarray(x, dtype), np.asarray(w, dtype)
    alpha, track = out or (np.empty_like(x), np.empty(x.shape, np.int32))
    if len(x):
        alpha[0], track[0] = w[0] + x[0], 0
    for k in range(1, len(x)):
        sums = alpha[k - 1][:, np.newaxis] + w[2:]
        track[k] = sums.argmax(axis=0)
        np.add(sums.max(axis=0), x[k], out=alpha[k], casting="same_kind")
    return alpha, track


peer(CRFDecodingAttr)(lambda _, x, w, alpha, track: partial(crf_decoding, x, w, (alpha, track)))


@ordinary_calls(CRFDecodingAttr)
def sentences(elements: int) -> Iterator[OrdinaryCall]:
    tag = 4 if elements < 100 else 16
    seq_len = max(elements // tag, 1)
    x, w = values((seq_len, tag)), values((tag + 2, tag))
    yield OrdinaryCall("plain", (x, w))
    yield OrdinaryCall("by name", (), {"x": x, "w": w})
    yield from in_dtypes(x, w, bools=False)
    yield OrdinaryCall("float32 and float64", (x, w.astype(np.float64)))
    yield from in_layouts(x, w)
    yield OrdinaryCall("no words", (x[:0], w))
    track = np.zeros(x.shape, np.int32)
    for kind, alpha in outs(x).items():
        yield OrdinaryCall(f"out={kind}", (x, w), {"out": (alpha, track.copy())})
