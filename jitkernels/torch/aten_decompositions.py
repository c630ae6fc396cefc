"""Which ATen operators are decomposed into others before graphs are compiled."""

import functools
from typing import Any

import torch
from torch._decomp import core_aten_decompositions, get_decompositions

aten = torch.ops.aten
KEPT = (
    aten.silu, aten.hardswish, aten.hardsigmoid, aten.mish, aten.softplus, aten.addmm, aten.addcmul, aten.addcdiv,
    aten.lerp, aten.baddbmm, aten.masked_fill, aten.nan_to_num, aten.logsumexp, aten.xlogy, aten.rsub, aten.stack,
    aten.square, aten.roll, aten.tril, aten.triu, aten.linalg_vector_norm, aten.std, aten.celu, aten.selu,
    aten.native_batch_norm_backward, aten.native_layer_norm_backward, aten.embedding_dense_backward,
    aten._softmax_backward_data, aten._log_softmax_backward_data, aten.native_layer_norm, aten.index_add,
    aten.unbind, aten.split, aten.split_with_sizes, aten.log_sigmoid_forward, aten._adaptive_avg_pool2d_backward,
    aten._adaptive_avg_pool2d, aten.upsample_nearest2d, aten.t, aten.addmv, aten.heaviside, aten.lgamma,
    aten._scaled_dot_product_flash_attention_for_cpu,
)  # fmt: skip
"""Operators that are in the table themselves."""
MORE = (
    aten._native_batch_norm_legit, aten.native_batch_norm, aten._batch_norm_with_update, aten.batch_norm_backward,
    aten.native_dropout_backward, aten.nll_loss_forward, aten.nll_loss_backward, aten.mse_loss,
    aten.mse_loss_backward, aten.gelu_backward, aten.silu_backward, aten.sigmoid_backward, aten.tanh_backward,
    aten.threshold_backward, aten.hardswish_backward, aten.leaky_relu_backward, aten.elu_backward,
    aten.softplus_backward, aten.hardtanh_backward, aten.smooth_l1_loss, aten.smooth_l1_loss_backward,
    aten.huber_loss, aten.huber_loss_backward, aten.lstm, aten.gru, aten.rnn_tanh, aten.rnn_relu,
)  # fmt: skip
"""Operators that are decomposed though they are no composites of core operators in torch's list."""


@functools.cache
def decompositions() -> dict[Any, Any]:
    """The decompositions of torch into its core operators, without those that the table has itself."""
    table = dict(core_aten_decompositions())
    table.update(get_decompositions(list(MORE)))
    table[aten.take.default] = _take
    for packet in KEPT:
        for overload in packet.overloads():
            table.pop(getattr(packet, overload), None)
    return table


def _take(x: Any, index: Any) -> Any:
    """Elements of a flat tensor. torch's own decomposition reads an index without axes, which tracing refuses."""
    return aten.index(x.reshape(-1), [index])
