"""Read a model: parse the protocol buffer, check that it is one, and make a graph of its nodes.

Models may be hostile. Whatever is wrong with one is a ModelError: text that is no model, cycles, names that are not
defined or are defined twice, tensors whose data do not fit their shapes, and files outside of the model's folder.
"""

import itertools
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from jitkernels.errors import JitKernelsError, ModelError, NotUsableError, shown
from jitkernels.onnx.detach_tensors import Span
from jitkernels.onnx.element_types import dtype_of
from jitkernels.onnx.inline_functions import MAX_NESTED_GRAPHS, Inliner
from jitkernels.onnx.model_graph import OnnxGraph, OnnxNode
from jitkernels.onnx.model_interface import ValueType
from jitkernels.onnx.model_source import ModelBytes, ModelFile, ModelSource
from jitkernels.onnx.read_tensors import EXTERNAL, external_tensor, lazy_tensor, read_sparse, read_tensor
from jitkernels.onnx.values import constant
from jitkernels.onnx.weights import Weights

OLDEST_OPSET = 1


def package() -> Any:
    """The module `onnx`. Raises NotUsableError where it is not installed."""
    try:
        import onnx
        import onnx.defs
    except ImportError as error:
        raise NotUsableError(f"ONNX models need the package onnx: pip install 'jitkernels[onnx]' ({error})") from error
    return onnx


class ReadModel:
    """A model as read: its graph and its opsets. It keeps no part of the protocol buffer, whose memory is then free.

    `source` has the data of large initializers, which lie in `spans`; None where the protocol buffer has them all.
    `reads_more_files`: it has data in files that are not among the `external_files`.
    """

    def __init__(
        self, proto: Any, source: ModelSource | None, spans: Mapping[int, Span], files: Mapping[Path, ModelFile]
    ) -> None:
        self.source = source
        self.opsets = _opsets(proto.opset_import)
        reader = GraphReader(source, Inliner(proto), spans, files)
        self.graph = reader.graph(proto.graph, self.opsets, frozenset(), 0)
        self.external_files, self.reads_more_files = reader.external_files, reader.reads_more_files


def read_proto(proto: Any) -> ReadModel:
    """A model from a ``ModelProto``."""
    onnx = package()
    if not isinstance(proto, onnx.ModelProto):
        raise ModelError(f"expected a path, bytes or a ModelProto, got {shown(proto)}")
    try:
        content = proto.SerializeToString()
    except Exception:  # noqa: BLE001  # protobuf's own exceptions: it has more than 2 GB
        return _read(proto, None, {}, {})
    return read_model(ModelBytes(content))


def read_model(source: ModelSource, files: Mapping[Path, ModelFile] | None = None) -> ReadModel:
    """A model from a source; `files`: those of its external data that are open."""
    content, spans = source.detached()
    if not spans:  # its file need not stay open
        source = ModelBytes(content, str(source), source.folder)
    return _read(_parsed(content, str(source)), source, spans, files or {})


def _parsed(content: bytes, what: str) -> Any:
    onnx = package()
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(content)
    except Exception as error:  # noqa: BLE001  # protobuf's own exceptions
        raise ModelError(f"{what}: expected an ONNX model, got what is no protocol buffer of one ({error})") from None
    if not proto.HasField("graph") or not proto.opset_import:
        raise ModelError(f"{what}: expected an ONNX model, got one without a graph or without opsets")
    return proto


def _read(
    proto: Any, source: ModelSource | None, spans: Mapping[int, Span], files: Mapping[Path, ModelFile]
) -> ReadModel:
    if not proto.HasField("graph"):
        raise ModelError("expected a model with a graph")
    try:
        return ReadModel(proto, source, spans, files)
    except (JitKernelsError, MemoryError):
        raise
    except RecursionError:
        raise ModelError("graphs or functions inside of one another too deeply") from None
    except Exception as error:  # names that are no text, and what else a protocol buffer may hold
        raise ModelError(f"expected an ONNX model, got one of wrong parts: {error}") from error


def _opsets(imports: Any) -> dict[str, int]:
    """The opset of each domain."""
    onnx = package()
    opsets = {_domain(one.domain): int(one.version) for one in imports}
    newest = onnx.defs.onnx_opset_version() + 1
    if not OLDEST_OPSET <= opsets.get("", newest) <= newest:
        raise ModelError(f"opset {opsets['']}: expected one up to {newest}, the newest of onnx {onnx.__version__}")
    return opsets


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


class GraphReader:
    """Makes graphs of protocol buffers.

    `inliner` replaces nodes that are functions by their bodies. `spans`: where the data of large initializers of the
    outermost graph lie in the source, which the protocol buffer lacks.
    """

    def __init__(
        self, source: ModelSource | None, inliner: Inliner, spans: Mapping[int, Span], files: Mapping[Path, ModelFile]
    ) -> None:
        self._source, self._inliner, self._spans = source, inliner, spans
        self._folder = None if source is None else source.folder
        self._files = dict(files)
        self.reads_more_files = False

    @property
    def external_files(self) -> tuple[ModelFile, ...]:
        """The other files in which tensors lie."""
        return tuple(self._files.values())

    def _initializer(self, proto: Any, span: Span | None) -> Any:
        if span is None and proto.data_location == EXTERNAL:
            return external_tensor(proto, self._folder, self._files)
        if span is None:
            return read_tensor(proto, self._folder)
        assert self._source is not None, "it has the span"
        return lazy_tensor(proto, span, self._source.read)

    def _sparse(self, proto: Any) -> Any:
        self.reads_more_files |= EXTERNAL in (proto.values.data_location, proto.indices.data_location)
        return read_sparse(proto, self._folder)

    def graph(self, proto: Any, opsets: Mapping[str, int], around: frozenset[str], depth: int) -> OnnxGraph:
        """A graph; `around`: the names that the graphs around it define."""
        if depth > MAX_NESTED_GRAPHS:
            raise ModelError(f"more than {MAX_NESTED_GRAPHS} graphs or functions inside of one another")
        constants = Weights()
        for i, tensor in enumerate(proto.initializer):
            span = None if depth else self._spans.get(i)
            constants[_new(tensor.name, constants, "initializers")] = self._initializer(tensor, span)
        for tensor in proto.sparse_initializer:
            constants[_new(tensor.values.name, constants, "initializers")] = self._sparse(tensor)
        inputs = tuple(value_type(one) for one in proto.input)
        defined = dict.fromkeys(constants)
        seen: dict[str, Any] = {}
        for one in inputs:
            defined[_new(one.name, seen, "inputs")] = None
            seen[one.name] = None
        nodes: list[OnnxNode] = []
        captured: dict[str, None] = {}
        for one, its_opsets in self._inliner.expanded(proto.node, opsets, depth):
            node = self._node(one, its_opsets, (around, defined), depth)
            for name in node.reads:
                if name not in defined:
                    if name not in around:
                        raise ModelError(f"{node} reads '{name}', which no node before it computes")
                    captured[name] = None
            for name in node.outputs:
                if name and name in defined:
                    raise ModelError(f"{node} computes '{name}', which is defined already")
                defined[name] = None
            nodes.append(node)
        outputs = tuple(value_type(one) for one in proto.output)
        for one in outputs:
            if one.name not in defined:
                if one.name not in around:
                    raise ModelError(f"the graph '{proto.name}' has no node that computes its output '{one.name}'")
                captured[one.name] = None
        return OnnxGraph(proto.name, inputs, outputs, tuple(nodes), constants, tuple(captured))

    def _node(self, proto: Any, opsets: Mapping[str, int], around: Sequence[Collection[str]], depth: int) -> OnnxNode:
        domain = _domain(proto.domain)
        attributes = {
            one.name: self._attribute(one, opsets, around, depth) for one in proto.attribute if not one.ref_attr_name
        }
        graphs = [value for value in attributes.values() if isinstance(value, OnnxGraph)]
        captured = dict.fromkeys(name for graph in graphs for name in graph.captured)
        opset = opsets.get(domain, 1)
        own = None if proto.op_type == "Constant" else type(proto).FromString(proto.SerializeToString())
        node = OnnxNode(
            proto.name, proto.op_type, domain, opset, tuple(proto.input), tuple(proto.output), attributes, own,
            opsets, tuple(captured),
        )  # fmt: skip
        node.check_counts()
        return node

    def _attribute(self, proto: Any, opsets: Mapping[str, int], around: Sequence[Collection[str]], depth: int) -> Any:
        """The value of an attribute in Python; `around`: the names that its graphs may read."""
        onnx = package()
        match onnx.AttributeProto.AttributeType.Name(proto.type):
            case "FLOAT":
                return float(proto.f)
            case "INT":
                return int(proto.i)
            case "STRING":
                return proto.s.decode(errors="replace")
            case "TENSOR":
                self.reads_more_files |= proto.t.data_location == EXTERNAL
                return constant(read_tensor(proto.t, self._folder))
            case "SPARSE_TENSOR":
                return constant(self._sparse(proto.sparse_tensor))
            case "GRAPH":
                return self.graph(proto.g, opsets, frozenset(itertools.chain(*around)), depth + 1)
            case "FLOATS":
                return [float(one) for one in proto.floats]
            case "INTS":
                return [int(one) for one in proto.ints]
            case "STRINGS":
                return [one.decode(errors="replace") for one in proto.strings]
            case "TENSORS":
                return [constant(read_tensor(one, self._folder)) for one in proto.tensors]
            case _:
                return None


def _new(name: str, known: Collection[str], what: str) -> str:
    if name in known:
        raise ModelError(f"two {what} of the name '{name}'")
    return name


def value_type(proto: Any) -> ValueType:
    """The declared type of an input or output."""
    onnx = package()
    kind = proto.type.WhichOneof("value")
    if kind != "tensor_type":
        return ValueType(proto.name, kind.removesuffix("_type") if kind else "", None, "")
    tensor = proto.type.tensor_type
    shape: tuple[int | str | None, ...] | None = None
    if tensor.HasField("shape"):
        shape = tuple(
            int(one.dim_value) if one.HasField("dim_value") else (one.dim_param or None) for one in tensor.shape.dim
        )
    try:
        name = onnx.TensorProto.DataType.Name(tensor.elem_type).lower()
        dtype = dtype_of(tensor.elem_type).name if tensor.elem_type else ""
    except (ValueError, KeyError):
        raise ModelError(f"'{proto.name}' has elements of an unknown type, {tensor.elem_type}") from None
    return ValueType(proto.name, f"tensor({name})", shape, dtype)
