"""Objects as bytes in the pickle of a function: to unpickle them is to admit them.

They come before what needs them, as the first import of the compiler loads some of them. Those for another processor,
package, NumPy or Python are left out, and compiled here. The bytes are a line of JSON and the compressed objects.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from jitkernels.codegen import kernel_archive
from jitkernels.core.hashing import sha256

_received: dict[str, "Payload"] = {}
"""The payloads that this process got, so that a pickle with each task costs little."""


class Payload(NamedTuple):
    """Compressed objects and their environment as bytes, and what identifies them."""

    identity: str
    content: bytes

    def __reduce__(self) -> tuple[Any, ...]:
        return received, tuple(self)


EMPTY = Payload("", b"")


def payload_with(objects: Mapping[str, bytes]) -> Payload:
    """The payload of compressed objects that this process has."""
    sizes = {key: len(packed) for key, packed in objects.items()}
    header = json.dumps([kernel_archive.archive_environment(), sizes]).encode()
    content = b"".join([header, b"\n", *objects.values()])
    return Payload(sha256(content).hexdigest(), content)


def received(identity: str, content: bytes) -> Payload:
    """Admit the objects of a payload, if they are for this environment and new here."""
    known = _received.get(identity)
    if known is None:
        known = _received[identity] = Payload(identity, content)
        header, _, packed = content.partition(b"\n")
        environment, sizes = json.loads(header) if header else ({}, {})
        if environment == kernel_archive.archive_environment():
            objects, start = {}, 0
            for key, size in sizes.items():
                objects[key] = packed[start : start + size]
                start += size
            kernel_archive.carried.admit(objects)
    return known
