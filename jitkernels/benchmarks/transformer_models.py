"""Transformers as ONNX models with random weights, in the operators and the order that exporters write.

An encoder of the kind of MiniLM (Wang et al. 2020), and a decoder of the kind of GPT-2 (Radford et al. 2019), whose
keys and values of before are inputs and whose grown ones are outputs. Batch and sequence are symbolic.
"""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray

MODEL_OPSET = 17


class Transformer(NamedTuple):
    """Sizes of a transformer, and how its layer norms (`is_decomposed`) and its activation (`gelu`) are written."""

    layers: int
    hidden: int
    heads: int
    inner: int
    vocabulary: int
    positions: int = 512
    gelu: str = "erf"
    is_decomposed: bool = False

    @property
    def size(self) -> int:
        """Columns of a head."""
        return self.hidden // self.heads


MINILM = Transformer(6, 384, 12, 1536, 4000)
GPT2 = Transformer(12, 768, 12, 3072, 4000, 1024, "tanh", is_decomposed=True)


class ModelWriter:
    """The nodes and the initializers of a model under construction; methods return names of values."""

    def __init__(self, sizes: Transformer, seed: int = 0) -> None:
        from onnx import helper, numpy_helper

        self.sizes, self._helper, self._from_array = sizes, helper, numpy_helper.from_array
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self._rng = np.random.default_rng(seed)
        self._known: dict[str, str] = {}

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"/{op}_{len(self.nodes)}"
        self.nodes.append(self._helper.make_node(op, inputs, [f"{name}_output"], name, **attributes))
        return f"{name}_output"

    def split(self, x: str, parts: int, axis: int) -> list[str]:
        """Equal parts along an axis."""
        name = f"/Split_{len(self.nodes)}"
        names = [f"{name}_output_{i}" for i in range(parts)]
        size = self.ints([self.sizes.hidden] * parts)
        self.nodes.append(self._helper.make_node("Split", [x, size], names, name, axis=axis))
        return names

    def array(self, array: AnyArray) -> str:
        name = f"initializer_{len(self.initializers)}"
        self.initializers.append(self._from_array(array, name))
        return name

    def number(self, value: float) -> str:
        return self._shared(np.float32(value))

    def ints(self, values: list[int] | int) -> str:
        return self._shared(np.array(values, np.int64))

    def _shared(self, array: Any) -> str:
        key = f"{array.dtype}{np.shape(array)}{array.tolist()}"
        if key not in self._known:
            self._known[key] = self.array(np.asarray(array))
        return self._known[key]

    def weights(self, *shape: int) -> str:
        return self.array((self._rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))

    def vector(self, size: int, mean: float = 0.0) -> str:
        return self.array((mean + 0.1 * self._rng.standard_normal(size)).astype(np.float32))

    def linear(self, x: str, inputs: int, outputs: int) -> str:
        """MatMul and Add, as a linear layer over three dimensions is exported."""
        product = self.product(x, inputs, outputs)
        return self.node("Add", self.vector(outputs), product)

    def product(self, x: str, inputs: int, outputs: int) -> str:
        return self.node("MatMul", x, self.weights(inputs, outputs))

    def layer_norm(self, x: str) -> str:
        scale, bias = self.vector(self.sizes.hidden, 1.0), self.vector(self.sizes.hidden)
        if not self.sizes.is_decomposed:
            return self.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5)
        centred = self.node("Sub", x, self.node("ReduceMean", x, axes=[-1]))
        squares = self.node("Pow", centred, self.number(2.0))
        variance = self.node("Add", self.node("ReduceMean", squares, axes=[-1]), self.number(1e-5))
        normal = self.node("Div", centred, self.node("Sqrt", variance))
        return self.node("Add", self.node("Mul", normal, scale), bias)

    def gelu(self, x: str) -> str:
        if self.sizes.gelu == "erf":
            share = self.node("Erf", self.node("Div", x, self.number(np.sqrt(2))))
            return self.node("Mul", self.node("Mul", x, self.node("Add", share, self.number(1.0))), self.number(0.5))
        cube = self.node("Mul", self.node("Pow", x, self.number(3.0)), self.number(0.044715))
        inner = self.node("Mul", self.node("Add", x, cube), self.number(np.sqrt(2 / np.pi)))
        outer = self.node("Add", self.node("Tanh", inner), self.number(1.0))
        return self.node("Mul", self.node("Mul", x, self.number(0.5)), outer)

    def extent(self, x: str, axis: int) -> str:
        """The size of a dimension, as an array of one element."""
        size = self.node("Gather", self.node("Shape", x), self.ints(axis), axis=0)
        return self.node("Unsqueeze", size, self.ints([0]))

    def reshaped(self, x: str, *sizes: int) -> str:
        """The first two dimensions kept, the others as given."""
        batch, sequence = self.extent(x, 0), self.extent(x, 1)
        shape = self.node("Concat", batch, sequence, *(self.ints([size]) for size in sizes), axis=0)
        return self.node("Reshape", x, shape)

    def of_heads(self, x: str, perm: tuple[int, ...] = (0, 2, 1, 3)) -> str:
        """[batch, sequence, hidden] as [batch, heads, sequence, size], or as another permutation says."""
        return self.node("Transpose", self.reshaped(x, self.sizes.heads, self.sizes.size), perm=perm)

    def merged(self, x: str) -> str:
        """The inverse of `of_heads`."""
        return self.reshaped(self.node("Transpose", x, perm=(0, 2, 1, 3)), self.sizes.hidden)

    def model(self, inputs: list[tuple[str, int, list[Any]]], outputs: list[tuple[str, str, list[Any]]]) -> Any:
        """The model; outputs: a name, the value that it stands for, and its shape."""
        from onnx import TensorProto

        for name, value, _ in outputs:
            self.nodes.append(self._helper.make_node("Identity", [value], [name]))
        make = self._helper.make_tensor_value_info
        graph = self._helper.make_graph(
            self.nodes,
            "transformer",
            [make(*one) for one in inputs],
            [make(name, TensorProto.FLOAT, shape) for name, _, shape in outputs],
            self.initializers,
        )
        opsets = [self._helper.make_opsetid("", MODEL_OPSET), self._helper.make_opsetid("com.microsoft", 1)]
        return self._helper.make_model(graph, opset_imports=opsets, ir_version=9)


def encoder(sizes: Transformer = MINILM) -> Any:
    """An encoder as an onnx.ModelProto, of token ids and a mask of which tokens are there."""
    from onnx import TensorProto

    writer = ModelWriter(sizes)
    hidden, inner = sizes.hidden, sizes.inner
    mask = writer.node("Unsqueeze", writer.node("Unsqueeze", "attention_mask", writer.ints([1])), writer.ints([2]))
    missing = writer.node("Sub", writer.number(1.0), writer.node("Cast", mask, to=TensorProto.FLOAT))
    mask = writer.node("Mul", missing, writer.number(float(np.finfo(np.float32).min)))
    x = writer.node("Gather", writer.weights(sizes.vocabulary, hidden), "input_ids")
    length = writer.extent("input_ids", 1)
    positions = writer.node(
        "Slice", writer.weights(sizes.positions, hidden), writer.ints([0]), length, writer.ints([0])
    )
    x = writer.layer_norm(writer.node("Add", x, positions))
    for _ in range(sizes.layers):
        q = writer.of_heads(writer.linear(x, hidden, hidden))
        k = writer.of_heads(writer.linear(x, hidden, hidden), (0, 2, 3, 1))
        v = writer.of_heads(writer.linear(x, hidden, hidden))
        scores = writer.node("Div", writer.node("MatMul", q, k), writer.number(np.sqrt(sizes.size)))
        shares = writer.node("Softmax", writer.node("Add", scores, mask), axis=-1)
        attended = writer.linear(writer.merged(writer.node("MatMul", shares, v)), hidden, hidden)
        x = writer.layer_norm(writer.node("Add", attended, x))
        grown = writer.gelu(writer.linear(x, hidden, inner))
        x = writer.layer_norm(writer.node("Add", writer.linear(grown, inner, hidden), x))
    tokens = ["batch", "sequence"]
    inputs = [(name, TensorProto.INT64, list(tokens)) for name in ("input_ids", "attention_mask")]
    return writer.model(inputs, [("last_hidden_state", x, [*tokens, hidden])])


def decoder(sizes: Transformer = GPT2) -> Any:
    """A decoder as an onnx.ModelProto, of token ids and the keys and values of before, of each layer."""
    from onnx import TensorProto

    writer = ModelWriter(sizes)
    hidden, table = sizes.hidden, writer.weights(sizes.vocabulary, sizes.hidden)
    before, new = writer.extent("past_key_0", 2), writer.extent("input_ids", 1)
    total = writer.node("Add", before, new)
    x = writer.node("Gather", table, "input_ids")
    positions = writer.node("Slice", writer.weights(sizes.positions, hidden), before, total, writer.ints([0]))
    x = writer.node("Add", x, positions)
    lower = writer.array(np.tri(sizes.positions, dtype=bool)[None, None])
    rows = writer.node("Slice", lower, before, total, writer.ints([2]))
    visible = writer.node("Slice", rows, writer.ints([0]), total, writer.ints([3]))
    outputs = []
    for layer in range(sizes.layers):
        normal = writer.layer_norm(x)
        q, k, v = (writer.of_heads(one) for one in writer.split(writer.linear(normal, hidden, 3 * hidden), 3, 2))
        k = writer.node("Concat", f"past_key_{layer}", k, axis=2)
        v = writer.node("Concat", f"past_value_{layer}", v, axis=2)
        outputs += [(f"present_key_{layer}", k), (f"present_value_{layer}", v)]
        scores = writer.node("MatMul", q, writer.node("Transpose", k, perm=(0, 1, 3, 2)))
        scores = writer.node("Div", scores, writer.number(np.sqrt(sizes.size)))
        scores = writer.node("Where", visible, scores, writer.number(float(np.finfo(np.float32).min)))
        attended = writer.merged(writer.node("MatMul", writer.node("Softmax", scores, axis=-1), v))
        x = writer.node("Add", writer.linear(attended, hidden, hidden), x)
        grown = writer.gelu(writer.linear(writer.layer_norm(x), hidden, sizes.inner))
        x = writer.node("Add", x, writer.linear(grown, sizes.inner, hidden))
    logits = writer.node("MatMul", writer.layer_norm(x), writer.node("Transpose", table, perm=(1, 0)))
    heads = ["batch", sizes.heads]
    past = [f"past_{kind}_{layer}" for layer in range(sizes.layers) for kind in ("key", "value")]
    inputs: list[Any] = [("input_ids", TensorProto.INT64, ["batch", "sequence"])]
    inputs += [(name, TensorProto.FLOAT, [*heads, "past", sizes.size]) for name in past]
    presents = [(name, value, [*heads, "total", sizes.size]) for name, value in outputs]
    return writer.model(inputs, [("logits", logits, ["batch", "sequence", sizes.vocabulary]), *presents])


def encoder_feeds(sizes: Transformer, batch: int, length: int) -> dict[str, AnyArray]:
    """Random tokens, and a mask that leaves out the last tokens of later texts."""
    rng = np.random.default_rng(1)
    ids = rng.integers(0, sizes.vocabulary, (batch, length))
    lengths = length - np.arange(batch)[:, None] * (length // 16)
    return {"input_ids": ids, "attention_mask": (np.arange(length) < lengths).astype(np.int64)}


def decoder_feeds(sizes: Transformer, batch: int, length: int, past: int) -> dict[str, AnyArray]:
    """Random tokens, and random keys and values of before."""
    rng = np.random.default_rng(1)
    feeds: dict[str, AnyArray] = {"input_ids": rng.integers(0, sizes.vocabulary, (batch, length))}
    for layer in range(sizes.layers):
        for kind in ("key", "value"):
            shape = batch, sizes.heads, past, sizes.size
            feeds[f"past_{kind}_{layer}"] = rng.standard_normal(shape).astype(np.float32)
    return feeds
