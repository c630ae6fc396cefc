"""Recurrent layers, which torch calls whole where nothing needs their gradients."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.torch.array_values import is_empty
from jitkernels.torch.aten_table import operator

LSTM_MODE = 2
"""The number of LSTMs among the layers of oneDNN, as ATen's schema has it."""


@operator("mkldnn_rnn_layer.default")
def lstm_layer(
    x: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, h0: Any, c0: Any, reverse: bool, batch_sizes: Sequence[int],
    mode: int, hidden_size: int, num_layers: int, has_biases: bool, bidirectional: bool, batch_first: bool, train: bool,
) -> Any:  # fmt: skip
    """An LSTM of one direction, steps first; the last result would be kept for gradients.

    Without biases, their places hold arrays of other shapes, which nothing reads.
    """
    if train or mode != LSTM_MODE or num_layers != 1 or bidirectional or batch_first or len(batch_sizes):
        raise NotImplementedError("a recurrent layer other than an LSTM of one direction, without gradients")
    if is_empty(x.shape) or x.dtype.kind != "f":
        raise NotImplementedError("an LSTM of no elements, or of no floating-point numbers")
    b_ih, b_hh = (b_ih, b_hh) if has_biases else (None, None)
    ordered = np.flip(x, 0) if reverse else x
    y, h_n, c_n = jk.lstm(ordered, w_ih, w_hh, b_ih, b_hh, np.squeeze(h0, 0), np.squeeze(c0, 0))
    y = np.flip(y, 0) if reverse else y
    return y, np.expand_dims(h_n, 0), np.expand_dims(c_n, 0), np.zeros((0,), np.uint8)
