"""Objects as bytes in the pickle of a function: to unpickle them is to admit them.

They come before what needs them, as the first import of the compiler loads some of them. Those for another processor,
package, NumPy or Python are left out, and compiled here, as are damaged ones. The bytes are a line of JSON and the
compressed objects. As any pickle, one with objects runs code of its sender.
"""

import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

from jitkernels.codegen import kernel_archive
from jitkernels.core.atomic_files import warn_once
from jitkernels.core.fork_locks import writing
from jitkernels.core.hashing import sha256

MAX_PAYLOADS = 256
"""The most payloads that a process recognizes."""
_received: "OrderedDict[str, tuple[Payload, tuple[str, ...]]]" = OrderedDict()
"""The payloads that this process got, with the keys of their objects, so that a pickle with each task costs little."""


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
    """Admit the objects of a payload, if they are intact, for this environment, and not here already."""
    with writing:
        known = _received.get(identity)
    if known is not None and kernel_archive.carried.has_all(known[1]):
        return known[0]
    payload = Payload(identity, content)
    if content and sha256(content).hexdigest() != identity:
        warn_once(f"payload {identity}", "the objects in a pickle are damaged: they are compiled here")
        return payload
    objects = _objects(content)
    kernel_archive.carried.admit(objects)
    with writing:
        _received[identity] = payload, tuple(objects)
        while len(_received) > MAX_PAYLOADS:
            _received.popitem(last=False)
    return payload


def _objects(content: bytes) -> dict[str, bytes]:
    """The compressed objects of a payload by key; none where it is for another environment."""
    if not content:
        return {}
    header, _, packed = content.partition(b"\n")
    environment, sizes = json.loads(header)
    if environment != kernel_archive.archive_environment():
        return {}
    objects, start = {}, 0
    for key, size in sizes.items():
        objects[key] = packed[start : start + size]
        start += size
    return objects
