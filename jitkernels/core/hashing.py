"""SHA-256 of Python's own: OpenSSL's library, which `hashlib` loads, takes longer to load than all hashing at start."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def _constructor() -> Callable[[bytes], Any]:
    for module in (*(("hashlib",) if "hashlib" in sys.modules else ()), "_sha2", "_sha256"):
        try:
            found: Callable[..., Any] = import_module(module).sha256
            return found
        except (ImportError, AttributeError):  # of another Python
            continue
    return import_module("hashlib").sha256  # type: ignore[no-any-return]  # a function


sha256 = _constructor()
