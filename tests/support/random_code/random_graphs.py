"""Random graphs of the operations of the table, with shapes of two symbols."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.builder import elementwise as e
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.symbolic_dims import Number, Scope, least_of, product, same, same_shape

DTYPES = ("float32", "float64", "int32", "uint8", "int64", "bool", "float16")
EXACT = (
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "negative", "absolute", "square", "sqrt", "floor",
    "ceil", "rint", "equal", "not_equal", "less", "greater", "less_equal", "greater_equal", "logical_and", "logical_or",
    "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift", "floor_divide",
    "remainder", "isnan", "isfinite", "positive", "copysign", "reciprocal", "sign",
)  # fmt: skip
"""Operations whose results do not depend on the memory layout."""
SMOOTH = ("add", "multiply", "divide", "sqrt", "maximum", "minimum", "square", "reciprocal", "power", "exp", "log")
"""Operations for positive numbers."""
CONSTANTS: dict[type, tuple[Any, ...]] = {
    float: (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 4.0, 3.0),
    int: (0, 1, 2, 4, 3, 8, 7),
    bool: (True, False),
}


@dataclass
class Maker:
    """Makes one graph. `smooth`: of positive floats and continuous operations; otherwise of exact operations."""

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
        """Draw one of the nodes, preferring recent ones."""
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
                made_node = self.pick(makers)()
            except (UnsupportedError, TypeError, OverflowError):  # no loop for these dtypes
                continue
            if made_node is not None:
                self.nodes.append(made_node)
        outputs = (self.nodes[-1], *(self.pick(self.nodes) for _ in range(2)))
        target = self.pick(inputs)
        written = [
            candidate
            for candidate in self.nodes
            if candidate.dtype == target.dtype and same_shape(candidate.shape, target.shape)
        ]
        return Graph(tuple(inputs), outputs, ((target, self.pick(written)),))

    def constant(self, like: Node) -> Any:
        if self.smooth:
            return self.pick((0.5, 2.0, 1.0, 3.0, 0.25))
        kind = {"f": float, "b": bool}.get(np.dtype(like.dtype).kind, int)
        return self.pick(CONSTANTS[kind])

    def beside(self, node: Node) -> Any:
        """Draw a node that broadcasts with another one without a runtime guard on extents."""
        fitting = [other for other in self.nodes if construct_fits(node.shape, other.shape)]
        return self.pick(fitting) if self.chosen.random() < 0.75 else self.constant(node)

    def elementwise(self) -> Node | None:
        operand, name = self.node(), self.pick(SMOOTH if self.smooth else EXACT)
        if name == "power":
            return e("power", operand, self.pick((0.5, 2.0, 3.0, -1.0, -2.0, -0.5, 5.0, -3.0, 1.5)))
        if name in ("log", "exp"):
            return e("log", e("add", operand, 1.5)) if name == "log" else e("exp", e("minimum", operand, 2.0))
        if name in ("left_shift", "right_shift", "floor_divide", "remainder"):
            return e(name, operand, self.pick((1, 2, 4, 3)))
        try:
            return e(name, operand)
        except TypeError:
            other = self.beside(operand)
        return (
            e(name, operand, other)
            if self.chosen.random() < 0.7 or not isinstance(other, Node)
            else e(name, other, operand)
        )

    def choice(self) -> Node | None:
        operand = self.node()
        condition = e("less", operand, self.constant(operand))
        return e("where", condition, operand, self.beside(operand))

    def cast(self) -> Node | None:
        operand = self.node()
        if self.smooth:
            return None
        dtype = self.pick(DTYPES)
        if operand.dtype[0] == "f" and dtype[0] in "iu":  # other conversions are machine-dependent
            operand = e("minimum", e("maximum", e("where", e("isfinite", operand), operand, 0.0), 0.0), 100.0)
        return Node("cast", (operand,), dtype, operand.shape)

    def reduction(self) -> Node | None:
        operand = self.node()
        if operand.ndim == 0 or any(same(extent, 0) for extent in operand.shape):
            return None
        kind = self.pick(("sum", "max", "min", "any", "all", "argmax", "prod"))
        axes = [i for i in range(operand.ndim) if self.chosen.random() < 0.6] or [0]
        if any((least_of(operand.shape[i]) or 0) < 1 for i in axes):
            return None
        if self.smooth:
            kind = self.pick(("sum", "max", "sum"))
        elif operand.dtype[0] == "f":
            if kind in ("sum", "prod"):
                return None
            operand = e("add", operand, 0.0)  # which of two zeros is larger depends on their order
        if kind in ("sum", "prod") and operand.dtype in ("bool", "uint8", "int32"):
            operand = builder.cast(operand, "int64")
        axes = axes[:1] if kind == "argmax" else axes
        return builder.reduce(kind, operand, axes, keepdims=bool(self.chosen.random() < 0.4))

    def view(self) -> Node | None:
        operand = self.node()
        kind = self.pick(("transpose", "flip", "part", "every", "spread", "expand", "index", "diagonal", "windows"))
        if kind == "expand":
            return (
                builder.expand_dims(operand, (int(self.chosen.integers(operand.ndim + 1)),))
                if operand.ndim < 4
                else None
            )
        if kind == "spread":
            return self.spread(operand)
        if operand.ndim == 0:
            return None
        axis = int(self.chosen.integers(operand.ndim))
        index_map, shape = builder.identity_map(operand.ndim), list(operand.shape)
        extent = operand.shape[axis]
        if kind == "transpose":
            return builder.transpose(operand, [int(i) for i in self.chosen.permutation(operand.ndim)])
        if kind == "diagonal":
            if operand.ndim != 2 or not same(*operand.shape):
                return None
            return builder.view(operand, ((0, ((0, 1),)), (0, ((0, 1),))), operand.shape[:1])
        if (least_of(extent) or 0) < 2:
            return None
        if kind == "index":
            start = self.pick((0, 1, extent - 1))
            index_map[axis] = (start, ())
            axis_map = {old: new for new, old in enumerate(i for i in range(operand.ndim) if i != axis)}
            moved = tuple((begin, tuple((axis_map[i], step) for i, step in steps)) for begin, steps in index_map)
            return builder.view(operand, moved, [operand.shape[i] for i in axis_map])
        if kind == "windows":
            index_map[axis] = (0, ((axis, 1), (operand.ndim, 1)))
            return builder.view(operand, tuple(index_map), [*shape[:axis], extent - 1, *shape[axis + 1 :], 2])
        start, step, count = {
            "flip": (extent - 1, -1, extent), "part": (1, 1, extent - 1), "every": (0, 2, (extent + 1) // 2),
        }[kind]  # fmt: skip
        if kind == "part" and self.chosen.random() < 0.5:
            start = 0
        index_map[axis] = (start, ((axis, step),))
        shape[axis] = count
        return builder.view(operand, tuple(index_map), shape)

    def spread(self, operand: Node) -> Node | None:
        fitting = [other.shape for other in self.nodes if construct_fits(other.shape, operand.shape)]
        return builder.broadcast_to(operand, self.pick(fitting)) if fitting else None

    def reshape(self) -> Node | None:
        operand = self.node()
        if operand.ndim < 2:
            return None
        shape: Any = self.pick(
            ((product(operand.shape),), tuple(reversed(operand.shape)), (*operand.shape[:1], 1, *operand.shape[1:]))
        )
        return Node("reshape", (operand,), operand.dtype, shape)

    def update(self) -> Node | None:
        operand = self.node()
        if operand.ndim == 0 or (least_of(operand.shape[0]) or 0) < 2:
            return None
        rows = operand.shape[0]
        regions = ((0, 1, 1), (1, 1, rows - 1), (0, 1, rows), (0, 2, (rows + 1) // 2), (1, 2, rows // 2))
        start, step, count = self.pick(regions)
        index_map = ((start, ((0, step),)), *builder.identity_map(operand.ndim)[1:])
        extents = (count, *operand.shape[1:])
        values = [
            other for other in self.nodes if other.dtype == operand.dtype and construct_fits(extents, other.shape)
        ]
        value = self.pick(values) if values else builder.constant(self.constant(operand), operand.dtype)
        return Node("update", (operand, value), operand.dtype, operand.shape, {"map": index_map, "extents": extents})

    def concatenation(self) -> Node | None:
        operand = self.node()
        others = [
            other for other in self.nodes if other.dtype == operand.dtype and same_shape(other.shape, operand.shape)
        ]
        if operand.ndim == 0:
            return None
        parts = [operand, *(self.pick(others) for _ in range(int(self.chosen.integers(2))))]
        total: Number = sum((part.shape[0] for part in parts[1:]), parts[0].shape[0])
        return Node("concatenate", parts, operand.dtype, (total, *operand.shape[1:]), {"axis": 0})


def construct_fits(full: Any, shape: Any) -> bool:
    """Return whether a shape broadcasts to another one for all values of the symbols."""
    return len(shape) <= len(full) and all(
        same(extent, 1) or same(extent, target)
        for extent, target in zip(shape, full[len(full) - len(shape) :], strict=True)
    )
