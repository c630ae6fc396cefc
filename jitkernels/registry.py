"""The implementations of each row: how one is registered, and in which order they stand.

The order is static: ``gen``, then the folders of ``more`` as `MORE` has them, then those of other packages,
then ``refer``. Implementations of a family are imported when the family is first asked for.
"""

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from jitkernels.attrs.base import KernelAttr, rows
from jitkernels.errors import RegistrationError, UnknownNameError
from jitkernels.kernel_types import KernelType
from jitkernels.locks import making

MORE = ("mkl", "openblas", "intrinsic", "mix")
FOLDERS = ("refer", "gen", *(f"more.{library}" for library in MORE))
ENTRY_POINTS = "jitkernels.kernels"

Variant = Mapping[str, Any]
Function = TypeVar("Function", bound=Callable[..., Any])
Usable = Callable[[Any], bool | str]
Variants = Callable[[Any], Sequence[Variant]]


def _always(attr: KernelAttr) -> bool:
    return True


def _single(attr: KernelAttr) -> Sequence[Variant]:
    return ({},)


@dataclass(frozen=True)
class Implementation:
    """One way to compute a kernel.

    For ``refer``, `function(attr, *arrays)` is the plain NumPy computation. For all others
    `function(attr, **variant)` gives a source, and `variants(attr)` the variants worth measuring, the static
    choice first.
    """

    name: str
    attr_class: type[KernelAttr]
    function: Callable[..., Any]
    can_be_used: Usable
    variants: Variants

    @property
    def is_reference(self) -> bool:
        return self.name == "refer"

    def reason_against(self, attr: KernelAttr) -> str | None:
        """Why it is not correct or not available for this attr here, or None."""
        answer = self.can_be_used(attr)
        if answer is True:
            return None
        return answer or "can_be_used gave no reason"


_implementations: dict[type[KernelAttr], dict[str, Implementation]] = {}
_discovered: set[str] = set()


def implements(
    attr_class: type[KernelAttr],
    *,
    name: str | None = None,
    can_be_used: Usable = _always,
    variants: Variants = _single,
) -> Callable[[Function], Function]:
    """Register the decorated function as an implementation of a row.

    `name` defaults to the folder of the module. `can_be_used(attr)` means correct and available here, never
    faster; it answers True or the reason why not. Raises RegistrationError if the row has no ``refer`` yet
    or already has that name.
    """

    def register(function: Function) -> Function:
        if attr_class not in rows.values():
            raise RegistrationError(f"{attr_class.__name__} is not a row: it has no kernel type")
        chosen = name or function.__module__.rpartition(".")[0].rpartition(".")[2]
        if not chosen:
            raise RegistrationError(f"{function.__module__} is in no folder: give the implementation a name")
        known = _implementations.setdefault(attr_class, {})
        if chosen != "refer":
            _import_from("refer", attr_class)  # another family's module may import this one first
        if chosen != "refer" and "refer" not in known:
            raise RegistrationError(f"{attr_class.__name__}: register 'refer' before {chosen!r}")
        if chosen in known and known[chosen].function.__code__ != function.__code__:
            raise RegistrationError(f"{attr_class.__name__} already has an implementation {chosen!r}")
        known[chosen] = Implementation(chosen, attr_class, function, can_be_used, variants)
        return function

    return register


def implementations(attr_class: type[KernelAttr]) -> dict[str, Implementation]:
    """All registered implementations of a row by name, in the static order.

    Raises RegistrationError if the row has no reference.
    """
    _discover(attr_class)
    known = _implementations.get(attr_class, {})
    if "refer" not in known:
        raise RegistrationError(f"{attr_class.__name__} has no implementation 'refer'")
    order = ("gen", *MORE)
    names = [n for n in order if n in known] + [n for n in known if n not in (*order, "refer")] + ["refer"]
    return {n: known[n] for n in names}


def implementation(attr_class: type[KernelAttr], name: str) -> Implementation:
    """One implementation by name; raises UnknownNameError with the names that exist."""
    known = implementations(attr_class)
    if name not in known:
        raise UnknownNameError(
            f"{attr_class.kernel_type.name} has no implementation {name!r}; it has {', '.join(known)}"
        )
    return known[name]


def row(name: str) -> type[KernelAttr]:
    """The row of a kernel by name in any case; raises UnknownNameError with the names that exist."""
    if name.upper() not in (kernel_type.name for kernel_type in rows):
        _load_entry_points()
    try:
        return rows[KernelType(name.upper())]
    except (ValueError, KeyError):
        known = ", ".join(kernel_type.name.lower() for kernel_type in rows)
        raise UnknownNameError(f"no kernel {name!r}; there are {known}") from None


def all_rows() -> list[type[KernelAttr]]:
    """All rows, those of other packages included."""
    _load_entry_points()
    return list(rows.values())


def _discover(attr_class: type[KernelAttr]) -> None:
    """Import the modules that bear the family name of a row in each folder of implementations."""
    if attr_class.__module__ in _discovered:
        return
    with making:
        for folder in FOLDERS:
            _import_from(folder, attr_class)
        _load_entry_points()
        _discovered.add(attr_class.__module__)


def _import_from(folder: str, attr_class: type[KernelAttr]) -> None:
    """Import the module of a row's family in one folder, if there is one; rows of other packages have none."""
    package, _, family = attr_class.__module__.rpartition(".")
    module = f"jitkernels.{folder}.{family}"
    if package == "jitkernels.attrs" and importlib.util.find_spec(module) is not None:
        importlib.import_module(module)


def _load_entry_points() -> None:
    """Import what other packages register in the entry-point group, once."""
    with making:
        if ENTRY_POINTS in _discovered:
            return
        _discovered.add(ENTRY_POINTS)
        from importlib.metadata import entry_points

        for entry_point in entry_points(group=ENTRY_POINTS):
            entry_point.load()
