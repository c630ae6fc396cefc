"""Objects as bytes in a pickle: to unpickle them is to admit them, before anything of the compiler is imported."""

import pickle
from collections.abc import Mapping
from typing import Any, NamedTuple

from jitkernels.codegen import kernel_archive
from jitkernels.codegen.carried_objects import carried
from jitkernels.core.hashing import sha256

_received: dict[str, "Payload"] = {}


class Payload(NamedTuple):
    """Compressed objects and their environment as bytes, and what identifies them."""

    identity: str
    content: bytes

    def __reduce__(self) -> tuple[Any, ...]:
        return received, tuple(self)


EMPTY = Payload("", b"")


def payload(objects: Mapping[str, bytes]) -> Payload:
    """The payload of compressed objects that this process has."""
    content = pickle.dumps((kernel_archive.archive_environment(), dict(objects)), protocol=5)
    return Payload(sha256(content).hexdigest(), content)


def received(identity: str, content: bytes) -> Payload:
    """Admit the objects of a payload, if they are for this environment and new here."""
    known = _received.get(identity)
    if known is None:
        known = _received[identity] = Payload(identity, content)
        if content:
            environment, objects = pickle.loads(content)
            if environment == kernel_archive.archive_environment():
                carried.admit(objects, {})
    return known
