"""Losses of classifications: the negative logarithms of the probabilities of targets."""

from typing import Any

import numpy as np

from jitkernels.onnx.operator_registry import operator
from jitkernels.onnx.operators.activation import log_softmax
from jitkernels.onnx.values import like, numbers


def _loss(scores: Any, targets: Any, weights: Any, ignored: int | None, reduction: str) -> Any:
    """The loss of log probabilities [batch, classes, ...] at targets [batch, ...]."""
    classes = np.moveaxis(scores, 1, -1)
    kept = None if ignored is None else targets != targets.dtype.type(ignored)
    index = targets if kept is None else np.where(kept, targets, targets.dtype.type(0))
    places = np.reshape(numbers(scores.shape[1]), (1,) * targets.ndim + (-1,))
    chosen = places == np.expand_dims(index, -1)
    picked = np.sum(np.where(chosen, classes, like(0, scores)), axis=-1)
    share = None
    if weights is not None:
        share = np.sum(np.where(chosen, weights, like(0, scores)), axis=-1)
    if kept is not None:
        share = kept.astype(scores.dtype) if share is None else np.where(kept, share, like(0, scores))
    loss = -picked if share is None else -picked * share
    if reduction == "none":
        return loss
    total = np.sum(loss)
    if reduction == "sum":
        return total
    return total / np.sum(share) if share is not None else np.mean(loss)


@operator("NegativeLogLikelihoodLoss")
def negative_log_likelihood(
    scores: Any, targets: Any, weights: Any = None, *, ignore_index: int | None = None, reduction: str = "mean"
) -> Any:
    return _loss(scores, targets, weights, ignore_index, reduction)


@operator("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(
    scores: Any, targets: Any, weights: Any = None, *, ignore_index: int | None = None, reduction: str = "mean"
) -> Any:
    logarithms = log_softmax(scores, axis=1)
    return _loss(logarithms, targets, weights, ignore_index, reduction), logarithms
