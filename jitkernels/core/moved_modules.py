"""Module paths of version 0.1: importing one raises ImportError that names the new path.

Modules that plug-ins were documented to import still load, as the module at its new path, with a DeprecationWarning.
`moved_modules.txt` has the table, one line each: the old path and the new one, relative to the package.
"""

import functools
import os
import warnings
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

PACKAGE = __name__.partition(".")[0]
PLUGIN_INTERFACE = frozenset(
    {
        "attrs.base", "loops.variants", "native.c", "native.loop_nest", "native.source", "peers", "peers.forms",
        "registry", "signature", "testing",
    }
)  # fmt: skip
"""Modules that the recipes of CONTRIBUTING imported."""
PLUGIN_PACKAGES = frozenset({"loops", "native"})
"""Former packages of such modules: they load empty, as Python imports parent packages first."""


@functools.cache
def new_paths() -> dict[str, str]:
    """Old path to new path, both relative to the package; read when an import fails."""
    path = os.path.join(os.path.dirname(__file__), "moved_modules.txt")
    with open(path, encoding="utf-8") as file:
        return dict(line.split() for line in file)


def new_path(old: str) -> str | None:
    """The new path of an old module, also inside a package that moved; None for other names."""
    below: list[str] = []
    while old:
        if old in new_paths():
            return ".".join([new_paths()[old], *reversed(below)])
        old, _, last = old.rpartition(".")
        below.append(last)
    return None


def find_spec(name: str) -> ModuleSpec | None:
    """The spec of an old module of this package; None for other names."""
    old = name.removeprefix(f"{PACKAGE}.")
    new = new_path(old)
    if new is None:
        return None
    return ModuleSpec(name, _Moved(old, new), is_package=old in PLUGIN_PACKAGES)  # type: ignore[arg-type]


class _Moved:
    """A loader that imports the module at its new path, or raises ImportError."""

    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = old, new

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        message = f"{PACKAGE}.{self.old} is now {PACKAGE}.{self.new}"
        if self.old not in PLUGIN_INTERFACE | PLUGIN_PACKAGES:
            raise ModuleNotFoundError(message, name=spec.name)
        if self.old in PLUGIN_PACKAGES:
            return None
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        module = import_module(f"{PACKAGE}.{self.new}")
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        if self.old not in PLUGIN_PACKAGES:
            module.__spec__ = self.spec  # the import system has overwritten it
