"""Last extents of two to four are unrolled, and nothing more is computed than before."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import agree
from rule_cases import Given

from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import elementwise
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.schedule.unroll_short_axes import unroll_short_axes


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=0, keepdims=True))
    return e / e.sum(axis=0, keepdims=True)


def standard(x: Any) -> Any:
    return (x - x.mean(axis=0)) / x.std(axis=0)


def centred(x: Any) -> Any:
    return x - x.mean(axis=0), x.sum(axis=1) - x.max()


def in_batches(x: Any) -> Any:
    return (lambda y: y / np.abs(y - y.mean(axis=(0, 1))).max(axis=1, keepdims=True))(x.reshape(10, -1, 3))


@pytest.mark.parametrize("function", [softmax, standard, centred, in_batches])
def test_reductions_of_reductions_are_unrolled_linearly(function: Callable[[Any], Any]) -> None:
    """Unrolling that takes the square or the cube of the rows would never end."""
    agree(function, lambda: np.random.default_rng(0).random((3_000, 3)))


def test_loop_invariant_reductions_are_unrolled_once() -> None:
    given = Given()
    x = Node("input", (), "float32", (given.n, 3), {"index": 0})
    total = builder.reduce("sum", x, [0], keepdims=True)
    apart = elementwise("absolute", elementwise("subtract", x, total))
    found = unroll_short_axes(
        Graph((x,), (elementwise("divide", x, builder.reduce("max", apart, [0], keepdims=True)),))
    )
    made = [node for node in found if node.operation == "reduce"]
    assert len(made) == 6
    assert all(symbolic_dims.same(symbolic_dims.product(node.inputs[0].shape), given.n) for node in made)


def test_chains_of_short_sums_are_unrolled_linearly() -> None:
    """Each sum over three elements of such sums is unrolled once."""
    weights = Node("input", (), "float64", (3, Given().n), {"index": 0})
    found: Node = builder.view(weights, ((0, ()), (0, ((0, 1),))), weights.shape[1:])
    for _ in range(6):
        three = builder.view(found, ((0, ((0, 1),)),), (3,))
        products = elementwise("multiply", builder.expand_dims(three, (1,)), weights)
        found = elementwise("tanh", builder.reduce("sum", products, (0,)))
    assert len(list(unroll_short_axes(Graph((weights,), (found,))))) < 1000
