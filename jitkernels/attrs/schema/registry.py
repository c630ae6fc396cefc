"""The implementations of each row: how one is registered, and in which order they stand.

A reference that can be compiled makes the ``gen`` of its row where none is written by hand.
The order is static: ``gen``, then the folders of ``more`` as `MORE` has them, then those of other packages,
then ``refer``. Implementations of a family are imported when the family is first asked for; so are other packages
when a name is unknown or everything is asked for. Nothing depends on the order of imports: what an author owes is
asked for at the look-up.
"""

import importlib
import importlib.util
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from jitkernels import plugins
from jitkernels.attrs import import_all, import_family
from jitkernels.attrs.base import KernelAttr, rows
from jitkernels.disk import say_once
from jitkernels.errors import RegistrationError, UnknownNameError
from jitkernels.implementation import Implementation, Usable, Variant, Variants, checked_variants
from jitkernels.kernel_types import KernelType
from jitkernels.locks import making

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = [
    "MORE", "Implementation", "Variant", "all_rows", "implementation", "implementations", "implements", "known_row",
    "row",
]  # fmt: skip

MORE = ("mkl", "openblas", "onednn", "intrinsic", "mix")
FOLDERS = ("refer", "gen", *(f"more.{library}" for library in MORE))
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*", re.ASCII)
"""Of an implementation: what can stand in ``JITKERNELS_USE`` and in the name of a file."""

Function = TypeVar("Function", bound=Callable[..., Any])


def _always(attr: KernelAttr) -> bool:
    return True


def _single(attr: KernelAttr) -> Sequence[Variant]:
    return ({},)


_implementations: dict[type[KernelAttr], dict[str, Implementation]] = {}
_compiled: dict[type[KernelAttr], Callable[..., None]] = {}
_beside: dict[type[KernelAttr], tuple[frozenset[str], Implementation]] = {}
_discovered: set[str] = set()
_being_discovered: set[str] = set()
_looked_for: set[str] = set()


def implements(
    attr_class: type[KernelAttr],
    *,
    name: str | None = None,
    can_be_used: Usable = _always,
    variants: Variants = _single,
    compiles: bool = False,
    dtypes: Sequence[str] = (),
) -> Callable[[Function], Function]:
    """Register the decorated function as an implementation of a row.

    `name` defaults to the folder of the module. `can_be_used(attr)` means correct and available here, never
    faster; it answers True or the reason why not. `compiles` promises of a reference that its NumPy text can be
    compiled as one loop nest, as ``gen``; where a function is registered for `dtypes`, it is the ``gen`` of these, and
    the compiled reference that of the others. Raises RegistrationError if the row already has that name, or for what
    cannot be an implementation.
    """
    if not _is_row(attr_class) and getattr(attr_class, "implemented_as", False) is not attr_class:
        shown = getattr(attr_class, "__name__", repr(attr_class))
        raise RegistrationError(
            f"@implements({shown}): expected the class of a row, as from class VMulAttr(..., kernel_type=...)"
        )
    for what, given in (("can_be_used", can_be_used), ("variants", variants)):
        if not callable(given):
            raise RegistrationError(
                f"@implements({attr_class.__name__}): {what}: expected a function of an attr, got {given!r}"
            )

    def register(function: Function) -> Function:
        chosen = name or function.__module__.rpartition(".")[0].rpartition(".")[2]
        if not isinstance(chosen, str) or not NAME.fullmatch(chosen):
            raise RegistrationError(
                f"@implements({attr_class.__name__}) of {function.__module__}.{function.__qualname__}: name: expected "
                f"letters, digits and any of _.+-, got {chosen!r}; it defaults to the folder of the module"
            )
        if compiles and chosen != "refer":
            raise RegistrationError(
                f"@implements({attr_class.__name__}): compiles: expected it of a reference, got it for {chosen!r}"
            )
        known = _implementations.setdefault(attr_class, {})
        if chosen in known and known[chosen].function.__code__ != function.__code__:
            raise RegistrationError(
                f"{attr_class.__name__} already has an implementation {chosen!r}, from "
                f"{known[chosen].function.__module__}: give the one of {function.__module__} another name"
            )
        listed = variants if variants is _single else checked_variants(attr_class, chosen, function, variants)
        if compiles:
            _compiled[attr_class] = function
        if dtypes:
            made = Implementation(chosen, attr_class, function, can_be_used, listed)
            _beside[attr_class] = frozenset(dtypes), made
            return function
        known[chosen] = Implementation(chosen, attr_class, function, can_be_used, listed)
        return function

    return register


def is_compiled(attr_class: type[KernelAttr]) -> bool:
    """Whether the ``gen`` of a row is what its reference becomes."""
    return attr_class in _compiled and "gen" in implementations(attr_class)


def _is_row(attr_class: object) -> bool:
    return any(found is attr_class for found in rows.known())


def implementations(attr_class: type[KernelAttr]) -> dict[str, Implementation]:
    """All registered implementations of a row by name, in the static order.

    Raises RegistrationError if the row has no reference.
    """
    _discover(attr_class)
    attr_class = attr_class.implemented_as or attr_class
    _compile_reference(attr_class)
    known = _implementations.get(attr_class, {})
    if "refer" not in known:
        raise RegistrationError(
            f"{attr_class.kernel_type.name} has no implementation 'refer': register its NumPy computation with "
            f'@implements({attr_class.__name__}, name="refer")'
        )
    order = ("gen", *MORE)
    names = [n for n in order if n in known] + [n for n in known if n not in (*order, "refer")] + ["refer"]
    return {n: known[n] for n in names}


def one_by_one(attr_class: type[KernelAttr]) -> Iterator[Implementation]:
    """As `implementations`; the modules of each are imported when those before it were not what was looked for."""
    attr_class = attr_class.implemented_as or attr_class
    seen = set()
    for name in ("gen", *MORE) if _is_ours(attr_class) else ():
        found = _of_folder(attr_class, name)
        if found is not None:
            seen.add(name)
            yield found
    yield from (found for name, found in implementations(attr_class).items() if name not in seen)


def find_implementation(attr_class: type[KernelAttr], name: str) -> Implementation | None:
    """One implementation by name, or None; of those of ours no other is imported."""
    attr_class = attr_class.implemented_as or attr_class
    if _is_ours(attr_class) and name in ("refer", "gen", *MORE):
        return _of_folder(attr_class, name)
    return implementations(attr_class).get(name)


def implementation(attr_class: type[KernelAttr], name: str) -> Implementation:
    """One implementation by name; raises UnknownNameError with the names that exist."""
    found = find_implementation(attr_class, name)
    if found is None:
        known = ", ".join(implementations(attr_class))
        raise UnknownNameError(
            f"{attr_class.kernel_type.name} has no implementation {name!r}; it has {known}"
        )
    return found


def _of_folder(attr_class: type[KernelAttr], name: str) -> Implementation | None:
    """The implementation that a folder of ours has of a row of ours, or that the row's reference makes."""
    with making:
        _import_from(f"more.{name}" if name in MORE else name, attr_class)
        if name == "gen" and name not in _implementations.get(attr_class, {}):
            _import_from("refer", attr_class)
            _compile_reference(attr_class)
    return _implementations.get(attr_class, {}).get(name)


def _compile_reference(attr_class: type[KernelAttr]) -> None:
    """Register the ``gen`` that the reference of a row makes, if it compiles and none is written by hand."""
    if "gen" not in _implementations.get(attr_class, {}) and attr_class in _compiled:
        made = importlib.import_module("jitkernels.from_reference")
        made.register(attr_class, _compiled[attr_class], *_beside.get(attr_class, ()))


def row(name: str) -> type[KernelAttr]:
    """The row of a kernel by name in any case; raises UnknownNameError with the names that exist."""
    found = known_row(name.upper())
    if found is None:
        known = ", ".join(kernel_type.name.lower() for kernel_type in rows)
        raise UnknownNameError(f"no kernel {name!r}; there are {known}")
    return found


def known_row(name: str) -> type[KernelAttr] | None:
    """The row whose kernel type has that name, which may be of another package, or None."""
    return _found(name, lambda row: row.kernel_type.name == name)


def named_row(name: str) -> type[KernelAttr] | None:
    """The row of that name itself, which may be of another package, or None."""
    return _found(name, lambda row: row.__name__ == name)


def _found(name: str, fits: Callable[[type[KernelAttr]], bool]) -> type[KernelAttr] | None:
    """A row: its family is imported if that is known, else all families, and other packages where it is in none."""
    for look in (lambda: None, partial(import_family, name), import_all, _load_plugins):
        with making:  # a fork waits for what is imported
            look()
        for found in rows.known():
            if fits(found):
                return found
    return None


def all_rows() -> list[type[KernelAttr]]:
    """All rows, those of other packages included."""
    _load_plugins()
    return list(rows.values())


def _discover(attr_class: type[KernelAttr]) -> None:
    """Import the modules that bear the family name of a row in each folder of implementations."""
    if attr_class.__module__ in _discovered:
        return
    with making:
        if attr_class.__module__ in _being_discovered:
            return  # by a signal handler meanwhile: what it was called from goes on
        _being_discovered.add(attr_class.__module__)
        try:
            for folder in FOLDERS:
                _import_from(folder, attr_class)
            _load_plugins()
        finally:
            _being_discovered.discard(attr_class.__module__)
        _discovered.add(attr_class.__module__)


def _is_ours(attr_class: type[KernelAttr]) -> bool:
    """Whether modules of ours that bear the name of a row's family have its implementations."""
    return attr_class.__module__.startswith("jitkernels.attrs.")


def _import_from(folder: str, attr_class: type[KernelAttr]) -> None:
    """Import the module of a row's family in one folder, if there is one; rows of other packages have none."""
    package, _, family = attr_class.__module__.rpartition(".")
    module = f"jitkernels.{folder}.{family}"
    if package != "jitkernels.attrs" or module in _looked_for:
        return
    if importlib.util.find_spec(module) is not None:
        importlib.import_module(module)
    _looked_for.add(module)


def _load_plugins() -> None:
    """Import what other packages register in the entry-point group, once.

    One that fails is one warning and leaves nothing behind: half of a package could compute anything.
    """
    with making:
        if plugins.GROUP in _discovered:
            return
        _discovered.add(plugins.GROUP)
        entry_points = plugins.installed()
        if not entry_points:
            return
        own = set(rows.known())
        for entry_point in entry_points:
            _load(entry_point)
        for found in {found for found in rows.known() if not _is_ours(found)} - own:
            if "refer" not in _implementations.get(found, {}):
                say_once(
                    f"row {found.__name__}",
                    f"{found.__module__}: the kernel {found.kernel_type.name} is left out: it has no implementation "
                    "'refer'",
                )
                _remove(found)


def _load(entry_point: "EntryPoint") -> None:
    before = {attr_class: dict(_implementations.get(attr_class, {})) for attr_class in rows.known()}
    try:
        entry_point.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever is wrong there, it breaks nothing here
        say_once(
            f"plugin {entry_point.name}",
            f"the kernels of {entry_point.value} are left out: {type(error).__name__}: {error}",
        )
        for attr_class in set(rows.known()) - set(before):
            if not _is_ours(attr_class):
                _remove(attr_class)
        for attr_class, known in list(_implementations.items()):
            _forget_foreign(known, before.get(attr_class, {}))


def _remove(attr_class: type[KernelAttr]) -> None:
    rows.pop(attr_class.kernel_type)
    KernelType.remove(attr_class.kernel_type.name)
    _implementations.pop(attr_class, None)
    _compiled.pop(attr_class, None)
    _beside.pop(attr_class, None)


def _forget_foreign(known: dict[str, Implementation], before: Mapping[str, Implementation]) -> None:
    """Take out what came meanwhile, but for modules of ours that were imported on the way."""
    for name in set(known) - set(before):
        if not known[name].function.__module__.startswith("jitkernels."):
            del known[name]


def _look_further() -> None:
    """Import every row there is."""
    with making:
        import_all()
    _load_plugins()


KernelType.look_further = _look_further
