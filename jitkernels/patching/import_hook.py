"""Call a function when a module of a set has been imported, through a finder at the head of ``sys.meta_path``."""

import sys
from collections.abc import Callable, Iterable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class _Loader:
    """A module's own loader, and what happens once the module has run."""

    def __init__(self, loader: Any, then: Callable[[str], None]) -> None:
        self._loader, self._then = loader, then

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._then(module.__name__)


def _do_nothing(module: str) -> None:
    pass


class _Finder:
    """Finds the watched modules as the finders behind it do."""

    def __init__(self) -> None:
        self.watched: frozenset[str] = frozenset()
        self.then: Callable[[str], None] = _do_nothing

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in self.watched:
            return None
        for finder in sys.meta_path:
            if finder is not self:
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    if hasattr(spec.loader, "exec_module"):
                        spec.loader = _Loader(spec.loader, self.then)  # type: ignore[assignment]
                    return spec
        return None


_finder = _Finder()


def watch(modules: Iterable[str], then: Callable[[str], None]) -> None:
    """Watch these modules, and no others: `then` is called with the name of each that is imported."""
    _finder.watched, _finder.then = frozenset(modules), then
    if _finder.watched and _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    elif not _finder.watched and _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
