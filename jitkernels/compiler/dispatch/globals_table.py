"""Guards of globals: the bindings of a dict, looked up again only when its version, where it has one, has changed."""

import ctypes
import functools
import sys
import sysconfig
from typing import Any

from jitkernels.runtime.abi_layout import Offset


class GlobalsTable:
    """The guarded names of a globals dict: bound to fixed values, or missing. `word`: its context slot."""

    def __init__(self, table: dict[str, Any], word: int) -> None:
        self.table, self.word = table, word
        self.names: dict[str, Any] = {}
        self.missing: dict[str, None] = {}


@functools.cache
def dicts_have_versions() -> bool:
    """Whether dicts have a version number, new after each change, at the offset that compiled code reads.

    CPython 3.11 to 3.13 has; other versions have other data there, which this detects, or another layout.
    """
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    d: dict[str, int] = {}
    seen = [_version(d)]
    for change in (
        lambda: d.update(a=1), lambda: d.update(a=2), lambda: d.update(b=1), lambda: d.pop("a"), d.clear,
    ):  # fmt: skip
        change()
        seen.append(_version(d))
    return len({*seen, _version({"a": 1})}) == len(seen) + 1 and _version(d) == seen[-1]


def _version(table: dict[str, int]) -> int:
    return ctypes.c_uint64.from_address(id(table) + Offset.DICT_VERSION).value
