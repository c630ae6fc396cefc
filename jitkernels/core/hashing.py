"""SHA-256 without OpenSSL, whose library `hashlib` loads: that load takes longer than all hashing at startup."""

import json
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def _constructor() -> Callable[[bytes], Any]:
    for module in (*(("hashlib",) if "hashlib" in sys.modules else ()), "_sha2", "_sha256"):
        try:
            constructor: Callable[..., Any] = import_module(module).sha256
            return constructor
        except (ImportError, AttributeError):  # absent in this version of Python
            continue
    return import_module("hashlib").sha256  # type: ignore[no-any-return]  # a function


sha256 = _constructor()


def digest(content: object) -> str:
    """SHA-256 of a JSON value with sorted keys, in hexadecimal."""
    return str(sha256(json.dumps(content, sort_keys=True).encode()).hexdigest())
