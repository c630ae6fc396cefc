"""The nodes of a model as they run: names of inputs and outputs, parsed attributes, constants by name."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jitkernels.core.cached_property import unlocked_cached_property
from jitkernels.errors import ModelError
from jitkernels.onnx.model_interface import ModelInterface, ValueType
from jitkernels.onnx.operator_registry import Operator, find_operator
from jitkernels.onnx.weights import Weights


@dataclass(eq=False)
class OnnxNode:
    """One node. `subgraphs`: the graphs among its attributes; `captured`: what these read of the graphs around.

    `is_channels_last`: its operands, arrays of channels first, lie with channels last in memory.
    """

    name: str
    op: str
    domain: str
    opset: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    proto: Any = None
    opsets: Mapping[str, int] = field(default_factory=dict)
    captured: tuple[str, ...] = ()
    is_channels_last: bool = False

    @unlocked_cached_property
    def operator(self) -> Operator | None:
        return find_operator(self.domain, self.op, self.opset)

    @unlocked_cached_property
    def type_variables(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of the types of inputs and outputs in ONNX's definition: those of one name have one type."""
        import onnx

        try:
            schema = onnx.defs.get_schema(self.op, self.opset, self.domain)
        except onnx.defs.SchemaError:
            return ("?",) * len(self.inputs), ("",) * len(self.outputs)
        return (
            tuple(schema.inputs[min(i, len(schema.inputs) - 1)].type_str for i in range(len(self.inputs))),
            tuple(schema.outputs[min(i, len(schema.outputs) - 1)].type_str for i in range(len(self.outputs))),
        )

    def check_counts(self) -> None:
        """Raise ModelError for more or fewer inputs or outputs than ONNX's definition has."""
        import onnx

        try:
            schema = onnx.defs.get_schema(self.op, self.opset, self.domain)
        except onnx.defs.SchemaError:  # an operator of others
            return
        for what, names, least, most in (
            ("inputs", self.inputs, schema.min_input, schema.max_input),
            ("outputs", self.outputs, schema.min_output, schema.max_output),
        ):
            count = max((number for number, name in enumerate(names, 1) if name), default=0)
            if count > most or len(names) < least:
                expected = str(least) if least == most else f"{least} to {most}"
                raise ModelError(f"{self}: expected {expected} {what}, got {len(names)}")

    @property
    def subgraphs(self) -> "dict[str, OnnxGraph]":
        return {name: value for name, value in self.attributes.items() if isinstance(value, OnnxGraph)}

    @property
    def reads(self) -> tuple[str, ...]:
        """The names of all values that the node needs."""
        return (*(name for name in self.inputs if name), *self.captured)

    @property
    def title(self) -> str:
        """The operator with the name of the node, or with that of its first output where it has none."""
        return str(self) if self.name else f"{self} -> {self.outputs[0]}"

    def __str__(self) -> str:
        domain = f"{self.domain}." if self.domain else ""
        return f"{domain}{self.op}" + (f" '{self.name}'" if self.name else "")


@dataclass(eq=False)
class OnnxGraph:
    """A graph of a model: nodes in an order in which each follows what it reads."""

    name: str
    inputs: tuple[ValueType, ...]
    outputs: tuple[ValueType, ...]
    nodes: tuple[OnnxNode, ...]
    constants: Weights
    captured: tuple[str, ...] = ()
    executor: Any = None

    @property
    def input_names(self) -> tuple[str, ...]:
        """The inputs that a call passes: those without an initializer."""
        return tuple(one.name for one in self.inputs if one.name not in self.constants)

    @property
    def output_names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.outputs)

    @property
    def interface(self) -> ModelInterface:
        """What a caller sees of the graph."""
        defaults = frozenset(one.name for one in self.inputs if one.name in self.constants)
        return ModelInterface(self.name, self.inputs, self.outputs, defaults)

    def all_nodes(self) -> "Iterable[OnnxNode]":
        """All nodes, those of subgraphs included."""
        for node in self.nodes:
            yield node
            for subgraph in node.subgraphs.values():
                yield from subgraph.all_nodes()


ELEMENTWISE = frozenset({
    "Relu", "Add", "Sum", "Mul", "Sub", "Div", "Sigmoid", "Clip", "LeakyRelu", "PRelu", "Elu", "HardSwish",
    "HardSigmoid", "Tanh", "Identity", "QuantizeLinear", "DequantizeLinear",
})  # fmt: skip
"""Operators of single elements that networks of convolutions have."""


def needed(nodes: Sequence[OnnxNode], outputs: Iterable[str]) -> tuple[OnnxNode, ...]:
    """The nodes that outputs depend on, in their order."""
    names, kept = set(outputs), []
    for node in reversed(nodes):
        if names.intersection(node.outputs):
            kept.append(node)
            names.update(node.reads)
    return tuple(reversed(kept))
