"""The registry of implementations: registration, lookup, and their static order.

A reference that can be compiled becomes the ``gen`` of its schema where none is written by hand. The order is static:
``gen``, then the folders of ``more`` in the order of `MORE`, then plug-ins, then ``refer``. The implementations of a
family are imported on first use; plug-ins are imported when a name is unknown or everything is listed. Nothing depends
on the order of imports: the contract of an author is checked at lookup.
"""

import importlib
import importlib.util
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from jitkernels.attrs.schema import plugins
from jitkernels.attrs.schema.base import KernelAttr, schemas
from jitkernels.attrs.schema.families import PACKAGE, import_all, import_family
from jitkernels.attrs.schema.kernel_impl import Implementation, Usable, Variant, Variants, checked_variants
from jitkernels.attrs.schema.kernel_types import KernelType
from jitkernels.core import cffi_values, hooks
from jitkernels.core.atomic_files import warn_once
from jitkernels.core.fork_locks import build_lock
from jitkernels.errors import RegistrationError, UnknownNameError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = [
    "MORE",
    "Implementation",
    "Variant",
    "all_schemas",
    "find_schema",
    "implementation",
    "implementations",
    "implements",
    "op_schema",
]  # fmt: skip

MORE = ("mkl", "openblas", "onednn", "intrinsic", "mix", "numba")
OURS = frozenset({"refer", "gen", *MORE})
"""Names of implementations of this package."""
UNEARNED = frozenset({"numba"})
"""Implementations that calls do not pay for: each takes some tenths of a second to build and rarely wins.

`jk.tune` and the command line measure them like all others, and what they win is chosen from then on.
"""
FOLDERS = ("refer", "gen", *(f"more.{library}" for library in MORE))
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*", re.ASCII)
"""The name of an implementation: allowed in ``JITKERNELS_USE`` and in file names."""

Function = TypeVar("Function", bound=Callable[..., Any])


def _always(attr: KernelAttr) -> bool:
    return True


def _single(attr: KernelAttr) -> Sequence[Variant]:
    return ({},)


_implementations: dict[type[KernelAttr], dict[str, Implementation]] = {}
_compiled: dict[type[KernelAttr], Callable[..., None]] = {}
_by_hand_for_dtypes: dict[type[KernelAttr], tuple[frozenset[str], Implementation]] = {}
_discovered: set[str] = set()
_being_discovered: set[str] = set()
_imported_modules: set[str] = set()


def implements(
    attr_class: type[KernelAttr],
    *,
    name: str | None = None,
    can_be_used: Usable = _always,
    variants: Variants = _single,
    compiles: bool = False,
    dtypes: Sequence[str] = (),
    compiler: str | None = None,
) -> Callable[[Function], Function]:
    """Register the decorated function as an implementation of a schema.

    `name` defaults to the folder of the module. `can_be_used(attr)` means correct and available here, never faster; it
    returns True or the reason why not. `compiles` declares that the NumPy text of a reference can be compiled as one
    loop nest, as ``gen``; where a function is registered for `dtypes`, it is the ``gen`` of these, and the compiled
    reference that of the others.

    Instead of a Python function, a C function of cffi (``lib.name``) with the C signature of the schema can be
    registered; it needs a `name`. With ``compiler="numba"`` the function takes the arrays of the kernel, writes its
    outputs, and is compiled by numba, or is a ``@cfunc`` of the schema's C signature. Raises RegistrationError if the
    schema already has that name, or for an object that cannot be an implementation.
    """
    _check_registration(attr_class, can_be_used, variants, compiler)

    def register(function: Function) -> Function:
        compiled = cffi_values.pointer_of(function)
        if compiler is not None or cffi_values.is_function(compiled):
            _register_c_function(attr_class, name, compiled, can_be_used, is_by_numba=compiler is not None)
            return function
        if not callable(function):
            raise RegistrationError(f"@implements({attr_class.__name__}): expected a function, got {function!r}")
        chosen = name or function.__module__.rpartition(".")[0].rpartition(".")[2]
        if not isinstance(chosen, str) or not NAME.fullmatch(chosen):
            raise RegistrationError(
                f"@implements({attr_class.__name__}) of {function.__module__}.{function.__qualname__}: name: expected "
                f"letters, digits and any of _.+-, got {chosen!r}; it defaults to the folder of the module"
            )
        if compiles and chosen != "refer":
            raise RegistrationError(
                f"@implements({attr_class.__name__}): compiles: expected a reference, got the implementation {chosen!r}"
            )
        known = _implementations.setdefault(attr_class, {})
        if chosen in known and known[chosen].function.__code__ != function.__code__:
            raise RegistrationError(
                f"{attr_class.__name__} already has an implementation {chosen!r}, from "
                f"{known[chosen].function.__module__}: give the one of {function.__module__} another name"
            )
        checked = variants if variants is _single else checked_variants(attr_class, chosen, function, variants)
        if compiles:
            _compiled[attr_class] = function
        if dtypes:
            own = Implementation(chosen, attr_class, function, can_be_used, checked)
            _by_hand_for_dtypes[attr_class] = frozenset(dtypes), own
            return function
        known[chosen] = Implementation(chosen, attr_class, function, can_be_used, checked)
        return function

    return register


def _check_registration(
    attr_class: type[KernelAttr], can_be_used: Usable, variants: Variants, compiler: str | None
) -> None:
    """Raise RegistrationError for invalid arguments of `implements`."""
    if not _is_schema(attr_class) and getattr(attr_class, "implemented_as", False) is not attr_class:
        shown = getattr(attr_class, "__name__", repr(attr_class))
        raise RegistrationError(
            f"@implements({shown}): expected the class of a schema, as from class VMulAttr(..., kernel_type=...)"
        )
    for what, function in (("can_be_used", can_be_used), ("variants", variants)):
        if not callable(function):
            raise RegistrationError(
                f"@implements({attr_class.__name__}): {what}: expected a function of an attr, got {function!r}"
            )
    if compiler not in (None, "numba"):
        raise RegistrationError(f"@implements({attr_class.__name__}): compiler: expected 'numba', got {compiler!r}")


def _register_c_function(
    attr_class: type[KernelAttr], name: str | None, function: Any, can_be_used: Usable, *, is_by_numba: bool
) -> None:
    """Register a cffi function, or a function for numba to compile, under a new name."""
    label = f"@implements({attr_class.__name__})"
    if name is None:
        raise RegistrationError(f"{label}: expected a name=... for a compiled function")
    known = _implementations.get(attr_class, {})
    if name in known:
        raise RegistrationError(
            f"{attr_class.__name__} already has an implementation {name!r}, from "
            f"{known[name].function.__module__}: give the compiled function another name"
        )

    def reason_against(attr: KernelAttr) -> str | None:
        return cffi_values.reason_against(function, attr.signature().c_arguments)

    def factory(attr: KernelAttr) -> Any:
        return function

    if is_by_numba:
        factory, reason_against = hooks.implement_by_numba(attr_class, function)
    implements(attr_class, name=name, can_be_used=lambda attr: reason_against(attr) or can_be_used(attr))(factory)


def is_compiled(attr_class: type[KernelAttr]) -> bool:
    """Whether the ``gen`` of a schema is compiled from its reference."""
    return attr_class in _compiled and "gen" in implementations(attr_class)


def _is_schema(attr_class: object) -> bool:
    return any(known is attr_class for known in schemas.known())


def implementations(attr_class: type[KernelAttr]) -> dict[str, Implementation]:
    """All registered implementations of a schema by name, in the static order.

    Raises RegistrationError if the schema has no reference.
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


def why_without(attr_class: type[KernelAttr], name: str) -> str:
    """Why a schema of ours has no implementation of that name, as the folder of the name says, or nothing."""
    folder = importlib.import_module(f"jitkernels.more.{name}" if name in MORE else f"jitkernels.{name}")
    reasons: Mapping[str, str] = getattr(folder, "WITHOUT", {})
    return reasons.get(attr_class.kernel_type.name, "")


def one_by_one(attr_class: type[KernelAttr]) -> Iterator[Implementation]:
    """As `implementations`, lazily: each module is imported only when the iteration reaches it."""
    attr_class = attr_class.implemented_as or attr_class
    seen = set()
    for name in ("gen", *MORE) if _is_ours(attr_class) else ():
        candidate = _of_folder(attr_class, name)
        if candidate is not None:
            seen.add(name)
            yield candidate
    yield from (candidate for name, candidate in implementations(attr_class).items() if name not in seen)


def find_implementation(attr_class: type[KernelAttr], name: str) -> Implementation | None:
    """One implementation by name, or None; of our own implementations only that one is imported."""
    attr_class = attr_class.implemented_as or attr_class
    if _is_ours(attr_class) and name in ("refer", "gen", *MORE):
        return _of_folder(attr_class, name)
    return implementations(attr_class).get(name)


def implementation(attr_class: type[KernelAttr], name: str) -> Implementation:
    """One implementation by name; raises UnknownNameError that lists the existing names."""
    match = find_implementation(attr_class, name)
    if match is None:
        known = ", ".join(implementations(attr_class))
        raise UnknownNameError(f"{attr_class.kernel_type.name} has no implementation {name!r}; it has {known}")
    return match


def _of_folder(attr_class: type[KernelAttr], name: str) -> Implementation | None:
    """The implementation of one of our schemas by a folder of ours or by its compiled reference."""
    with build_lock:
        _import_from(f"more.{name}" if name in MORE else name, attr_class)
        if name in ("gen", "numba") and name not in _implementations.get(attr_class, {}):
            _import_from("refer", attr_class)
            _compile_reference(attr_class)
    return _implementations.get(attr_class, {}).get(name)


def _compile_reference(attr_class: type[KernelAttr]) -> None:
    """Register ``gen`` and ``numba`` as the reference of a schema makes them, where they are not written by hand."""
    if attr_class not in _compiled:
        return
    known = _implementations.get(attr_class, {})
    if "gen" not in known:
        hooks.compile_reference(attr_class, _compiled[attr_class], *_by_hand_for_dtypes.get(attr_class, ()))
    if "numba" not in known:
        hooks.compile_reference_by_numba(
            attr_class, _compiled[attr_class], _by_hand_for_dtypes.get(attr_class, (frozenset(),))[0]
        )


def op_schema(name: str) -> type[KernelAttr]:
    """The schema of a kernel by name in any case; raises UnknownNameError that lists the existing names."""
    match = find_schema(name.upper())
    if match is None:
        known = ", ".join(kernel_type.name.lower() for kernel_type in schemas)
        raise UnknownNameError(f"no kernel {name!r}; there are {known}")
    return match


def find_schema(name: str) -> type[KernelAttr] | None:
    """The schema of that kernel type, plug-ins included, or None."""
    return _find_schema(name, lambda schema: schema.kernel_type.name == name)


def find_schema_by_class_name(name: str) -> type[KernelAttr] | None:
    """The schema class of that name, plug-ins included, or None."""
    return _find_schema(name, lambda schema: schema.__name__ == name)


def _find_schema(name: str, fits: Callable[[type[KernelAttr]], bool]) -> type[KernelAttr] | None:
    """The schema that `fits`: first among imported schemas, then in its family, in all families, and in plug-ins."""
    for load in (lambda: None, partial(import_family, name), import_all, _load_plugins):
        with build_lock:  # a fork waits for the imports
            load()
        for candidate in schemas.known():
            if fits(candidate):
                return candidate
    return None


def all_schemas() -> list[type[KernelAttr]]:
    """All schemas, plug-ins included."""
    _load_plugins()
    return list(schemas.values())


def _discover(attr_class: type[KernelAttr]) -> None:
    """Import the modules named like a schema's family from each folder of implementations."""
    if attr_class.__module__ in _discovered:
        return
    with build_lock:
        if attr_class.__module__ in _being_discovered:
            return  # called by a signal handler: the interrupted discovery continues
        _being_discovered.add(attr_class.__module__)
        try:
            for folder in FOLDERS:
                _import_from(folder, attr_class)
            _load_plugins()
        finally:
            _being_discovered.discard(attr_class.__module__)
        _discovered.add(attr_class.__module__)


def _is_ours(attr_class: type[KernelAttr]) -> bool:
    """Whether our own folders hold the implementations of a schema."""
    return attr_class.__module__.startswith(f"{PACKAGE}.")


def _import_from(folder: str, attr_class: type[KernelAttr]) -> None:
    """Import the module of a schema's family from one folder, if it exists; schemas of plug-ins have none."""
    package, _, family = attr_class.__module__.rpartition(".")
    module = f"jitkernels.{folder}.{family}"
    if package != PACKAGE or module in _imported_modules:
        return
    if importlib.util.find_spec(module) is not None:
        importlib.import_module(module)
    _imported_modules.add(module)


def _load_plugins() -> None:
    """Import the plug-ins, once.

    One that fails is one warning and leaves nothing registered: half of a package could compute anything.
    """
    with build_lock:
        if plugins.ENTRY_POINT_GROUP in _discovered:
            return
        _discovered.add(plugins.ENTRY_POINT_GROUP)
        entry_points = plugins.installed()
        if not entry_points:
            return
        own = set(schemas.known())
        for entry_point in entry_points:
            _load(entry_point)
        for attr_class in {attr_class for attr_class in schemas.known() if not _is_ours(attr_class)} - own:
            if "refer" not in _implementations.get(attr_class, {}):
                warn_once(
                    f"schema {attr_class.__name__}",
                    f"{attr_class.__module__}: the kernel {attr_class.kernel_type.name} is ignored: it has no "
                    "implementation 'refer'",
                )
                _remove(attr_class)


def _load(entry_point: "EntryPoint") -> None:
    before = {attr_class: dict(_implementations.get(attr_class, {})) for attr_class in schemas.known()}
    try:
        entry_point.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001  # an error of a plug-in must not break this package
        warn_once(
            f"plugin {entry_point.name}",
            f"the kernels of {entry_point.value} are ignored: {type(error).__name__}: {error}",
        )
        for attr_class in set(schemas.known()) - set(before):
            if not _is_ours(attr_class):
                _remove(attr_class)
        for attr_class, known in list(_implementations.items()):
            _forget_foreign(known, before.get(attr_class, {}))


def _remove(attr_class: type[KernelAttr]) -> None:
    schemas.pop(attr_class.kernel_type)
    KernelType.remove(attr_class.kernel_type.name)
    _implementations.pop(attr_class, None)
    _compiled.pop(attr_class, None)
    _by_hand_for_dtypes.pop(attr_class, None)


def _forget_foreign(known: dict[str, Implementation], before: Mapping[str, Implementation]) -> None:
    """Remove the implementations that a failed plug-in added, except modules of ours imported on the way."""
    for name in set(known) - set(before):
        if not known[name].function.__module__.startswith("jitkernels."):
            del known[name]


def foreign_kernels() -> frozenset[str]:
    """The kernels that plug-ins imported so far, or the program, have implementations of."""
    return frozenset(kind.kernel_type.name.lower() for kind, known in _implementations.items() if {*known} - OURS)


def import_all_schemas() -> None:
    """Import every schema."""
    with build_lock:
        import_all()
    _load_plugins()
