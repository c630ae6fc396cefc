"""Samples of torch's own tests for its operators."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

TOLERANCES = {torch.float32: 2e-4, torch.complex64: 2e-4, torch.float64: 1e-6, torch.complex128: 1e-6}
SEED = 42
"""What torch's samples seed some operators with, as they run and as they are traced."""
EXCLUDED = "jiterator", "sparse.", "to_sparse", "partial_views"
"""Parts of the names of operators of GPUs, of tensors that are not dense, and of views whose copies lack memory."""
RANDOM = (
    "uniform", "rand", "normal", "bernoulli", "multinomial", "dropout", "empty", "rrelu", "geometric", "exponential",
    "cauchy", "_lowrank", "multi_head_attention_forward",
)  # fmt: skip
"""Parts of the names of operators whose results are random, or anything."""
CERTAIN = "__rand__", "normalize", "dropout_backward", "signal."
"""Parts of the names of others that have such parts in theirs."""

READ = "torch reads elements while it traces them"
COMPUTED = "the shapes of results depend on elements"
UNTRACED = {
    "item": "a number is no tensor", "broadcast_shapes": "a shape is no tensor",
    **dict.fromkeys(("allclose", "corrcoef", "cov", "equal", "istft", "tensor_split"), READ),
    "nn.functional.gaussian_nll_loss": READ,
    **dict.fromkeys(("linalg.lstsq", "nn.functional.ctc_loss", "nn.functional.one_hot"), COMPUTED),
}  # fmt: skip
"""Operators some samples of which torch itself cannot trace, and why."""


def cases(dtypes: Sequence[torch.dtype], *, with_gradients: bool = False) -> list[Any]:
    """The operators of torch's tests with each of these dtypes that they have, as parameters of a test."""
    return [
        pytest.param(info, dtype, id=f"{info.full_name}-{str(dtype)[6:]}")
        for info in op_db
        for dtype in dtypes
        if dtype in (info.backward_dtypes if with_gradients else info.dtypes)
        and (info.supports_autograd or not with_gradients)
    ]


def samples(info: Any, dtype: torch.dtype, count: int | None, *, requires_grad: bool = False) -> Iterator[Any]:
    """The first `count` samples of an operator, or all."""
    torch.manual_seed(0)
    is_certain = any(part in info.full_name for part in CERTAIN)
    if any(part in info.full_name for part in (*EXCLUDED, *(() if is_certain else RANDOM))):
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield from [*info.sample_inputs("cpu", dtype, requires_grad=requires_grad)][:count]
    except (NotImplementedError, ImportError):  # torch's samples need another package or build
        return


def of_tensors(
    info: Any, sample: Any, process: Callable[[Any], Any] = lambda results: results
) -> tuple[Callable[..., list[Any]], list[torch.Tensor]]:
    """An operator as a function of the tensors of a sample, and these tensors. `process`: what is done to results."""
    leaves, spec = pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))

    def function(*given: Any) -> list[Any]:
        rest = iter(given)
        args, keywords = pytree.tree_unflatten(
            [next(rest) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves], spec
        )
        return pytree.tree_leaves(process(info.op(*args, **keywords)))  # type: ignore[no-any-return]

    return function, [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
