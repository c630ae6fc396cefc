"""Functions of a model, and operators that ONNX defines by functions: their bodies take the place of the nodes.

An operator that has an entry in the table of operators stays; of all others the specification's own body is taken,
where it has one that does not depend on the types of the inputs, or where these are declared.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jitkernels.errors import ModelError
from jitkernels.onnx.operator_registry import find_operator

MAX_NODES = 20_000
"""Most nodes of a model whose functions are inlined: functions that call others twice grow without bound."""
MAX_NESTED_GRAPHS = 32
"""Most levels of subgraphs, or of functions, inside of one another."""


class Inliner:
    """Expands nodes of the functions of a model."""

    def __init__(self, model: Any) -> None:
        self._functions = {(_domain(one.domain), one.name): one for one in model.functions}
        self._types = _declared_types(model.graph)
        self._count = self._names = 0

    def expanded(
        self, nodes: Sequence[Any], opsets: Mapping[str, int], depth: int
    ) -> Iterator[tuple[Any, Mapping[str, int]]]:
        """The nodes of a graph, bodies in place of functions, each with the opsets that it is written in."""
        if depth > MAX_NESTED_GRAPHS:
            raise ModelError(f"more than {MAX_NESTED_GRAPHS} functions inside of one another: do they call themselves?")
        for node in nodes:
            self._count += 1
            if self._count > MAX_NODES:
                raise ModelError(f"more than {MAX_NODES} nodes")
            function = self._function(node, opsets)
            if function is None:
                yield node, opsets
                continue
            inner = {**opsets, **{_domain(one.domain): int(one.version) for one in function.opset_import}}
            yield from self.expanded(self._body(node, function), inner, depth + 1)

    def _function(self, node: Any, opsets: Mapping[str, int]) -> Any:
        domain = _domain(node.domain)
        own = self._functions.get((domain, node.op_type))
        if own is not None:
            return own
        opset = opsets.get(domain, 1)
        if find_operator(domain, node.op_type, opset) is not None:
            return None
        return body_of_operator(node, opset, [self._types.get(name) for name in node.input])

    def _body(self, node: Any, function: Any) -> list[Any]:
        """The nodes of a function with the names and attributes of a call."""
        import onnx

        self._names += 1
        prefix = f"{node.op_type}_{self._names}_"
        names = {"": ""}
        names.update((one, "") for one in function.input)
        names.update(zip(function.input, node.input, strict=False))
        names.update((inner, outer) for inner, outer in zip(function.output, node.output, strict=False) if outer)
        values = {one.name: one for one in function.attribute_proto}
        values.update((one.name, one) for one in node.attribute)
        renamed = []
        for one in function.node:
            copy = onnx.NodeProto()
            copy.CopyFrom(one)
            _rename(copy, names, prefix, values)
            renamed.append(copy)
        return renamed


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


def _rename(node: Any, names: Mapping[str, str], prefix: str, values: Mapping[str, Any]) -> None:
    """Rename what a node of a body reads and computes, in its graphs too, and fill in attributes."""

    def new(name: str) -> str:
        return names[name] if name in names else prefix + name

    node.name = prefix + node.name
    node.input[:] = [new(name) for name in node.input]
    node.output[:] = [new(name) for name in node.output]
    kept = []
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            value = values.get(attribute.ref_attr_name)
            if value is None:
                continue
            name = attribute.name
            attribute.CopyFrom(value)
            attribute.name = name
        elif attribute.HasField("g"):
            graph = attribute.g
            for one in (*graph.input, *graph.output, *graph.initializer):
                one.name = new(one.name)
            for inner in graph.node:
                _rename(inner, names, prefix, values)
        kept.append(attribute)
    copies = [type(one).FromString(one.SerializeToString()) for one in kept]
    del node.attribute[:]
    node.attribute.extend(copies)


def body_of_operator(node: Any, opset: int, types: Sequence[Any]) -> Any:
    """The function by which ONNX defines an operator; None where there is none."""
    import onnx

    try:
        schema = onnx.defs.get_schema(node.op_type, opset, node.domain)
    except onnx.defs.SchemaError:
        return None
    complete = onnx.NodeProto()
    complete.CopyFrom(node)
    present = {one.name for one in node.attribute}
    defaults = [one.default_value for name, one in schema.attributes.items() if name not in present]
    complete.attribute.extend(one for one in defaults if one.name)
    text = b""
    for version in schema.function_opset_versions:
        if version <= opset or not text:
            text = schema.get_function_with_opset_version(version)
    if not text and all(one is not None for one, name in zip(types, node.input, strict=True) if name):
        known = [(onnx.TypeProto() if one is None else one).SerializeToString() for one in types]
        for version in schema.context_dependent_function_opset_versions:
            if version <= opset or not text:
                text = schema.get_context_dependent_function_with_opset_version(
                    version, complete.SerializeToString(), known
                )
    if not text:
        return None
    function = onnx.FunctionProto()
    function.ParseFromString(text)
    function.attribute_proto.extend(one for one in complete.attribute if one.name not in present)
    return function


def _declared_types(graph: Any) -> dict[str, Any]:
    """The declared types of values, by name."""
    import onnx

    types = {one.name: one.type for one in (*graph.value_info, *graph.input, *graph.output)}
    for tensor in graph.initializer:
        types.setdefault(tensor.name, onnx.helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims)))
    return types
