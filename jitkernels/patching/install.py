"""Install replacements, count who wants them, and put the original code back.

Each `Patch` is a selection of pieces; a piece is installed while some patch that is not undone selects it. Pieces of
modules that are not imported yet wait for their import.
"""

import importlib
import sys
from collections.abc import Callable, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Self

import numpy as np

from jitkernels.core.fork_locks import build_lock
from jitkernels.errors import JitKernelsError, NotUsableError, UnknownNameError
from jitkernels.patching import import_hook, ufunc_loops
from jitkernels.patching.piece import Piece, pieces
from jitkernels.patching.swapped_code import copy_of, forwarding_code, implementation_of, parameters_of

_active: list["Patch"] = []
"""Patches that are not undone."""
_replaced: dict[str, Callable[[], None]] = {}
"""By target: what puts its own code back."""
_skipped: dict[str, str] = {}
"""By target: why it cannot be patched."""


class Patch:
    """A selection of pieces that is in effect until `undo`, or to the end of a ``with`` block."""

    def __init__(self, selected: tuple[Piece, ...]) -> None:
        self.selected = selected

    @property
    def is_active(self) -> bool:
        return any(one is self for one in _active)

    @property
    def installed(self) -> tuple[str, ...]:
        """The targets that are served now; those of modules that nobody has imported are not."""
        return tuple(one.target for one in self.selected if self.is_active and one.target in _replaced)

    @property
    def skipped(self) -> dict[str, str]:
        """Why targets cannot be patched here: a version of their package without them, say."""
        return {one.target: _skipped[one.target] for one in self.selected if one.target in _skipped}

    def undo(self) -> None:
        """Put back the code of all functions that no other patch selects. Once is enough; more does nothing."""
        with build_lock:
            _active[:] = [one for one in _active if one is not self]
            _settle()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.undo()

    def __repr__(self) -> str:
        state = f"{len(self.installed)} installed" if self.is_active else "undone"
        return f"<jitkernels patch of {len(self.selected)} functions, {state}>"


def patch(*names: str) -> Patch:
    """Let kernels serve functions of NumPy, SciPy and scikit-learn, behind their own names and signatures.

    `names`: packages, modules or functions (``"sklearn"``, ``"scipy.special"``, ``"numpy.linalg:norm"``); all pieces
    of `jitkernels.patching.pieces()` by default. Results are the originals' within rounding; whatever a kernel does
    not serve (other dtypes, subclasses, options, errors) is the original's. The functions stay the same objects.
    Packages are not imported: those imported later are patched then.

    Return the patch: use it in ``with``, or call its `undo`, or `jitkernels.unpatch()` for all. Patches may be nested
    and repeated. Raises UnknownNameError for a name that selects nothing.
    """
    table = pieces()
    for name in names:
        if not any(one.is_of(name) for one in table):
            known = ", ".join(sorted({one.module for one in table}))
            raise UnknownNameError(f"nothing of {name!r} can be patched; there are {known}")
    made = Patch(tuple(one for one in table if not names or any(map(one.is_of, names))))
    modules = {one.module for one in made.selected}
    with build_lock:
        _active.append(made)
        import_hook.watch(_modules_to_come(), _of_imported)
    for module in filter(_is_being_imported, modules):
        importlib.import_module(module)  # waits for the thread that imports it, which may wait for the lock
    with build_lock:
        _settle()
    return made


def unpatch() -> None:
    """Undo all patches: every function has its own code again."""
    with build_lock:
        _active.clear()
        _settle()


def _settle(imported: str = "") -> None:
    """Install what some patch selects and its module has, and put back everything else.

    `imported`: the module whose import has just ended. Others that are being imported come later, by the same way.
    """
    wanted = {one.target: one for made in _active for one in made.selected}
    for target in [target for target in _replaced if target not in wanted]:
        _replaced.pop(target)()
    import_hook.watch(_modules_to_come(), _of_imported)
    for target, one in wanted.items():
        is_ready = one.module == imported or not _is_being_imported(one.module)
        if target not in _replaced and is_ready and one.module in sys.modules:
            _install(one)


def _modules_to_come() -> set[str]:
    """The modules of selected pieces that nobody has imported."""
    return {one.module for made in _active for one in made.selected} - sys.modules.keys()


def _is_being_imported(module: str) -> bool:
    return bool(getattr(getattr(sys.modules.get(module), "__spec__", None), "_initializing", False))


def _of_imported(module: str) -> None:
    """Install the pieces of a module that has just been imported."""
    with build_lock:
        _settle(module)


def _install(one: Piece) -> None:
    try:
        found: Any = sys.modules[one.module]
        for part in one.name.split("."):
            found = getattr(found, part)
        _replaced[one.target] = _replace(found, one)
        _skipped.pop(one.target, None)
    except (AttributeError, JitKernelsError, OSError) as error:  # an import of a module must not fail for it
        _skipped[one.target] = str(error)


def _replace(found: Any, one: Piece) -> Callable[[], None]:
    """Replace the code of a function, or the loops of a universal function; return what puts them back."""
    if isinstance(one.replacement, Mapping):
        if not isinstance(found, np.ufunc):
            raise NotUsableError(f"{one.target} is no universal function")
        return partial(ufunc_loops.put_back, found, ufunc_loops.install(found, one.replacement))
    function = implementation_of(found)
    theirs, ours = parameters_of(function), parameters_of(one.replacement)
    if theirs != ours:
        raise NotUsableError(f"expected the parameters ({ours}), got ({theirs})")
    code = function.__code__
    function.__code__ = forwarding_code(function, one.replacement, copy_of(function))
    return partial(setattr, function, "__code__", code)
