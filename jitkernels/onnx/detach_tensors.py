"""Take the data of large tensors out of a serialized model before it is parsed.

A parser copies a tensor's bytes into its message, and again for whoever asks for them; detached data is read once, into
an array of its own. The wire format is that of Protocol Buffers: fields of a tag, which is a number and a wire type,
and a value; here those of ``ModelProto.graph.initializer[i].raw_data``.
"""

from collections.abc import Iterator
from typing import NamedTuple

GRAPH, INITIALIZER, RAW_DATA = 7, 5, 9
"""Numbers of fields: of a model, of a graph and of a tensor."""
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types."""
MIN_DETACHED_BYTES = 4096
"""Data of fewer bytes stays in the model."""
MAX_VARINT_BITS = 64


class WireFormatError(Exception):
    """Bytes that are no fields."""


class Span(NamedTuple):
    """Where bytes lie in a serialized model."""

    begin: int
    end: int


def detach_tensors(content: memoryview) -> tuple[bytes, dict[int, Span]]:
    """A model without the data of large initializers, and where that lies, by the index of the initializer.

    The model is left as it is where it has not just one graph, or is no model: its parser says what is wrong.
    """
    try:
        graphs = [field for field in _fields(content, Span(0, len(content))) if field[:2] == (GRAPH, BYTES)]
        if len(graphs) != 1:
            return bytes(content), {}
        (_, _, begin, graph) = graphs[0]
        parts, detached = _without_data(content, graph)
    except WireFormatError:
        return bytes(content), {}
    if not detached:
        return bytes(content), {}
    body = b"".join(parts)
    return b"".join((content[:begin], _header(GRAPH, len(body)), body, content[graph.end :])), detached


def _without_data(content: memoryview, graph: Span) -> tuple[list[bytes | memoryview], dict[int, Span]]:
    """The bytes of a graph, in parts, without the data of large initializers, and where this lies."""
    parts: list[bytes | memoryview] = []
    detached: dict[int, Span] = {}
    copied, index = graph.begin, 0
    for number, wire_type, begin, tensor in _fields(content, graph):
        if number != INITIALIZER or wire_type != BYTES:
            continue
        if tensor.end - tensor.begin >= MIN_DETACHED_BYTES:
            data = [field for field in _fields(content, tensor) if field[:2] == (RAW_DATA, BYTES)]
            if len(data) == 1 and data[0][3].end - data[0][3].begin >= MIN_DETACHED_BYTES:
                (_, _, at, span) = data[0]
                size = at - tensor.begin + tensor.end - span.end
                parts += [content[copied:begin], _header(INITIALIZER, size)]
                parts += [content[tensor.begin : at], content[span.end : tensor.end]]
                copied, detached[index] = tensor.end, span
        index += 1
    parts.append(content[copied : graph.end])
    return parts, detached


def _fields(content: memoryview, within: Span) -> Iterator[tuple[int, int, int, Span]]:
    """The number, wire type, first byte and value of each field. Raises WireFormatError for what is none."""
    at, end = within
    while at < end:
        begin = at
        tag, at = _varint(content, at, end)
        wire_type, size = tag & 7, 0
        if wire_type == BYTES:
            size, at = _varint(content, at, end)
        elif wire_type == VARINT:
            _, at = _varint(content, at, end)
        elif wire_type in (FIXED64, FIXED32):
            size = 8 if wire_type == FIXED64 else 4
        else:
            raise WireFormatError
        if size > end - at:
            raise WireFormatError
        yield tag >> 3, wire_type, begin, Span(at, at + size)
        at += size


def _varint(content: memoryview, at: int, end: int) -> tuple[int, int]:
    """An integer in groups of seven bits, the lowest first, and where the next byte lies."""
    value = shift = 0
    while at < end and shift < MAX_VARINT_BITS:
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise WireFormatError


def _header(number: int, size: int) -> bytes:
    """The tag and length of a field of bytes."""
    header = bytearray([number << 3 | BYTES])
    while size >= 0x80:
        header.append(size & 0x7F | 0x80)
        size >>= 7
    header.append(size)
    return bytes(header)
