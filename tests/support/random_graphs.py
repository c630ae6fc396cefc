"""Graphs made at random from the operations of the table, with shapes of two symbols."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jitkernels.graph import construct
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.construct import elementwise as e
from jitkernels.graph.extents import Number, Scope, least_of, product, same, same_shape
from jitkernels.graph.ir import Graph, Node

DTYPES = ("float32", "float64", "int32", "uint8", "int64", "bool", "float16")
EXACT = (
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "negative", "absolute", "square", "sqrt", "floor",
    "ceil", "rint", "equal", "not_equal", "less", "greater", "less_equal", "greater_equal", "logical_and", "logical_or",
    "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift", "floor_divide",
    "remainder", "isnan", "isfinite", "positive", "copysign", "reciprocal", "sign",
)  # fmt: skip
"""Operations of which the result is the same however arrays lie in memory."""
SMOOTH = (
    "add",
    "multiply",
    "divide",
    "sqrt",
    "maximum",
    "minimum",
    "square",
    "reciprocal",
    "power",
    "exp",
    "log",
)
"""Operations for positive numbers."""
CONSTANTS: dict[type, tuple[Any, ...]] = {
    float: (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 4.0, 3.0),
    int: (0, 1, 2, 4, 3, 8, 7),
    bool: (True, False),
}


@dataclass
class Maker:
    """Makes one graph. `smooth`: of positive floats and what is steady there; otherwise of everything that is exact."""

    seed: int
    smooth: bool = False
    scope: Scope = field(default_factory=Scope)
    nodes: list[Node] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chosen = np.random.default_rng(self.seed)
        self.n, self.m = self.scope.symbol("n", 5), self.scope.symbol("m", 3)

    def pick(self, options: Any) -> Any:
        return options[int(self.chosen.integers(len(options)))]

    def node(self) -> Node:
        """One of the nodes, the last ones rather than the first."""
        near = self.nodes[-4:] if self.chosen.random() < 0.7 else self.nodes
        return self.pick(near)  # type: ignore[no-any-return]

    def graph(self, steps: int) -> Graph:
        shapes = ((self.n, self.m), (self.n, self.m), (self.m,), (), (self.m, self.n), (self.n,), (1, self.m))
        dtypes = ("float64",) if self.smooth else DTYPES
        inputs = [Node("input", (), self.pick(dtypes), shape, {"index": i}) for i, shape in enumerate(shapes)]
        self.nodes = list(inputs)
        makers = (
            *[self.elementwise] * 6, *[self.view] * 4, *[self.update] * 2, self.reduction, self.cast, self.reshape,
            self.choice, self.concatenation,
        )  # fmt: skip
        while len(self.nodes) < len(inputs) + steps:
            try:
                found = self.pick(makers)()
            except (UnknownError, TypeError, OverflowError):  # no loop for these dtypes
                continue
            if found is not None:
                self.nodes.append(found)
        outputs = (self.nodes[-1], *(self.pick(self.nodes) for _ in range(2)))
        target = self.pick(inputs)
        written = [
            one for one in self.nodes if one.dtype == target.dtype and same_shape(one.shape, target.shape)
        ]
        return Graph(tuple(inputs), outputs, ((target, self.pick(written)),))

    def constant(self, like: Node) -> Any:
        if self.smooth:
            return self.pick((0.5, 2.0, 1.0, 3.0, 0.25))
        kind = {"f": float, "b": bool}.get(np.dtype(like.dtype).kind, int)
        return self.pick(CONSTANTS[kind])

    def beside(self, one: Node) -> Any:
        """What can be broadcast together with a node without a question about extents."""
        fitting = [other for other in self.nodes if construct_fits(one.shape, other.shape)]
        return self.pick(fitting) if self.chosen.random() < 0.75 else self.constant(one)

    def elementwise(self) -> Node | None:
        one, name = self.node(), self.pick(SMOOTH if self.smooth else EXACT)
        if name == "power":
            return e("power", one, self.pick((0.5, 2.0, 3.0, -1.0, -2.0, -0.5, 5.0, -3.0, 1.5)))
        if name in ("log", "exp"):
            return e("log", e("add", one, 1.5)) if name == "log" else e("exp", e("minimum", one, 2.0))
        if name in ("left_shift", "right_shift", "floor_divide", "remainder"):
            return e(name, one, self.pick((1, 2, 4, 3)))
        try:
            return e(name, one)
        except TypeError:
            other = self.beside(one)
        return (
            e(name, one, other)
            if self.chosen.random() < 0.7 or not isinstance(other, Node)
            else e(name, other, one)
        )

    def choice(self) -> Node | None:
        one = self.node()
        condition = e("less", one, self.constant(one))
        return e("where", condition, one, self.beside(one))

    def cast(self) -> Node | None:
        one = self.node()
        if self.smooth:
            return None
        dtype = self.pick(DTYPES)
        if one.dtype[0] == "f" and dtype[0] in "iu":  # what becomes of others is the machine's own
            one = e("minimum", e("maximum", e("where", e("isfinite", one), one, 0.0), 0.0), 100.0)
        return Node("cast", (one,), dtype, one.shape)

    def reduction(self) -> Node | None:
        one = self.node()
        if one.ndim == 0 or any(same(extent, 0) for extent in one.shape):
            return None
        kind = self.pick(("sum", "max", "min", "any", "all", "argmax", "prod"))
        axes = [i for i in range(one.ndim) if self.chosen.random() < 0.6] or [0]
        if any((least_of(one.shape[i]) or 0) < 1 for i in axes):
            return None
        if self.smooth:
            kind = self.pick(("sum", "max", "sum"))
        elif one.dtype[0] == "f":
            if kind in ("sum", "prod"):
                return None
            one = e("add", one, 0.0)  # which of two zeros is the larger one depends on their order
        if kind in ("sum", "prod") and one.dtype in ("bool", "uint8", "int32"):
            one = construct.cast(one, "int64")
        axes = axes[:1] if kind == "argmax" else axes
        return construct.reduce(kind, one, axes, keepdims=bool(self.chosen.random() < 0.4))

    def view(self) -> Node | None:
        one = self.node()
        kind = self.pick(
            ("transpose", "flip", "part", "every", "spread", "expand", "index", "diagonal", "windows")
        )
        if kind == "expand":
            return (
                construct.expand_dims(one, (int(self.chosen.integers(one.ndim + 1)),))
                if one.ndim < 4
                else None
            )
        if kind == "spread":
            return self.spread(one)
        if one.ndim == 0:
            return None
        axis = int(self.chosen.integers(one.ndim))
        index_map, shape = construct.identity_map(one.ndim), list(one.shape)
        extent = one.shape[axis]
        if kind == "transpose":
            return construct.transpose(one, [int(i) for i in self.chosen.permutation(one.ndim)])
        if kind == "diagonal":
            if one.ndim != 2 or not same(*one.shape):
                return None
            return construct.view(one, ((0, ((0, 1),)), (0, ((0, 1),))), one.shape[:1])
        if (least_of(extent) or 0) < 2:
            return None
        if kind == "index":
            start = self.pick((0, 1, extent - 1))
            index_map[axis] = (start, ())
            kept = {old: new for new, old in enumerate(i for i in range(one.ndim) if i != axis)}
            moved = tuple((begin, tuple((kept[i], step) for i, step in steps)) for begin, steps in index_map)
            return construct.view(one, moved, [one.shape[i] for i in kept])
        if kind == "windows":
            index_map[axis] = (0, ((axis, 1), (one.ndim, 1)))
            return construct.view(one, tuple(index_map), [*shape[:axis], extent - 1, *shape[axis + 1 :], 2])
        start, step, count = {
            "flip": (extent - 1, -1, extent), "part": (1, 1, extent - 1), "every": (0, 2, (extent + 1) // 2),
        }[kind]  # fmt: skip
        if kind == "part" and self.chosen.random() < 0.5:
            start = 0
        index_map[axis] = (start, ((axis, step),))
        shape[axis] = count
        return construct.view(one, tuple(index_map), shape)

    def spread(self, one: Node) -> Node | None:
        fitting = [other.shape for other in self.nodes if construct_fits(other.shape, one.shape)]
        return construct.broadcast_to(one, self.pick(fitting)) if fitting else None

    def reshape(self) -> Node | None:
        one = self.node()
        if one.ndim < 2:
            return None
        shape: Any = self.pick(
            ((product(one.shape),), tuple(reversed(one.shape)), (*one.shape[:1], 1, *one.shape[1:]))
        )
        return Node("reshape", (one,), one.dtype, shape)

    def update(self) -> Node | None:
        one = self.node()
        if one.ndim == 0 or (least_of(one.shape[0]) or 0) < 2:
            return None
        rows = one.shape[0]
        regions = ((0, 1, 1), (1, 1, rows - 1), (0, 1, rows), (0, 2, (rows + 1) // 2), (1, 2, rows // 2))
        start, step, count = self.pick(regions)
        index_map = ((start, ((0, step),)), *construct.identity_map(one.ndim)[1:])
        extents = (count, *one.shape[1:])
        values = [
            other for other in self.nodes if other.dtype == one.dtype and construct_fits(extents, other.shape)
        ]
        value = self.pick(values) if values else construct.constant(self.constant(one), one.dtype)
        return Node("update", (one, value), one.dtype, one.shape, {"map": index_map, "extents": extents})

    def concatenation(self) -> Node | None:
        one = self.node()
        others = [
            other for other in self.nodes if other.dtype == one.dtype and same_shape(other.shape, one.shape)
        ]
        if one.ndim == 0:
            return None
        parts = [one, *(self.pick(others) for _ in range(int(self.chosen.integers(2))))]
        total: Number = sum((part.shape[0] for part in parts[1:]), parts[0].shape[0])
        return Node("concatenate", parts, one.dtype, (total, *one.shape[1:]), {"axis": 0})


def construct_fits(full: Any, shape: Any) -> bool:
    """Whether a shape is broadcast to another one whatever the symbols are."""
    return len(shape) <= len(full) and all(
        same(one, 1) or same(one, other)
        for one, other in zip(shape, full[len(full) - len(shape) :], strict=True)
    )
