"""Making packs: every kernel of some rows in every size class, or whatever a function uses, built and put in one file.

What is packed is what a process loads, so kernels are taken as calls take them: launchers and dispatcher come with
them, and what is chosen where a library is missing that is here.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from jitkernels import packs
from jitkernels.attrs.base import Case, KernelAttr
from jitkernels.attrs.roles import is_everyday
from jitkernels.choosing import Choice, is_for_any_size, preferences
from jitkernels.disk import say_once
from jitkernels.errors import ArgumentError, AttrError, BuildError
from jitkernels.functions import everyday
from jitkernels.kernel import Kernel
from jitkernels.kernel_funcs import get_refer
from jitkernels.native import arenas, launch, load, openmp, plain, processor_flags, vectorcall
from jitkernels.native.code import code_of
from jitkernels.native.source import Source
from jitkernels.native.threads import get_num_threads
from jitkernels.registry import row
from jitkernels.tuning import nearby, store
from jitkernels.tuning.classes import class_of, has_elements, nbytes

OCTAVES = (0, 1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24)
FEW_OCTAVES = (0, 1, 3, 5, 8, 11, 14)
"""Powers of two that extents go up to: of one or two extents, and of more. Those between have the same code."""
MOST_ELEMENTS = 1 << 25
PACKABLE = ("gen", "intrinsic")
"""Implementations that need nothing but what is packed."""


class Packing:
    """What is to be packed, as it is brought into this process."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.records: dict[str, Any] = {}

    def __enter__(self) -> Self:
        load.watchers.append(self._watch)
        return self

    def __exit__(self, *_: object) -> None:
        load.watchers.remove(self._watch)

    def _watch(self, source: Source, content: bytes) -> None:
        self.objects[load.pack_key(source)] = content

    def write(self, place: Path) -> int:
        """Write the file, whole or not at all; its size in bytes. Raises OSError where it cannot be written."""
        return packs.write(place, self.objects, {str(get_num_threads()): self.records})

    def add_launcher(self) -> None:
        """What every process needs: launchers, all parts of the dispatcher, threads with and without OpenMP."""
        launch.bring_all()
        for source in (
            *openmp.runtime_sources(),
            vectorcall.source(),
            plain.source(),
            processor_flags.source(),
            arenas.source(),
        ):
            load.built(source)

    def add_row(self, name: str, tell: Callable[[str], None] = lambda _: None) -> None:
        """The kernels of a row: in each size class, of each dtype and option, and of the attrs of its sweep."""
        found = row(name)
        if is_everyday(found):
            everyday(found.kernel_type.name.lower())
        for attr in _classes(found):
            self._add(attr, of_class=True)
        for case in found.sweep():
            self._add(case.attr, of_class=False)
            get_refer(case.attr)  # whose launcher is another
        tell(f"{name}: {len(self.objects)} objects so far")

    def add_function(self, name: str) -> None:
        """What ``module:function`` brings into the process when it is called, without arguments."""
        module, _, function = name.partition(":")
        try:
            called = getattr(import_module(module), function)
        except (ImportError, AttributeError) as error:
            raise ArgumentError(f"{name}: expected module:function, {error}") from error
        called()

    def _add(self, attr: KernelAttr, *, of_class: bool) -> None:
        """The code of whatever may be chosen for an attr: first here, and first where no library is."""
        self._add_record(attr)
        for choice in _likely(attr, of_class=of_class):
            try:
                source = choice.implementation.source(attr, choice.variant)
                _ = code_of(source).address
                if not of_class:
                    _ = Kernel(attr, choice.implementation, choice.variant, code_of(source)).callable
            except BuildError as error:
                say_once(
                    f"pack {source.name}",
                    f"{attr.name} by {choice.implementation.name} is not packed: {error}",
                )

    def _add_record(self, attr: KernelAttr) -> None:
        found = nearby.nearest(class_of(attr), get_num_threads()) if has_elements(attr) else None
        if found is not None:
            self.records[store.name_of(found[0])] = store.content_of_record(*found, get_num_threads())


def _likely(attr: KernelAttr, *, of_class: bool) -> Iterator[Choice]:
    """The choice for an attr, and the best of each implementation that needs no library."""
    seen: set[str] = set()
    first = True
    for choice in preferences(attr):
        found = choice.implementation
        if found.is_reference or found.name in seen or (of_class and not is_for_any_size(attr, choice)):
            continue
        if first or found.name in PACKABLE:
            seen.add(found.name)
            yield choice
        first = False


def _classes(found: type[KernelAttr]) -> Iterator[KernelAttr]:
    """The largest attr of each size class, or of one for each code, with every dtype and option."""
    fields = found.known_fields()
    symbols = [name for name, field in fields.items() if field.kind == "int"]
    others = {name: _values(found, name) for name in fields if name not in symbols}
    octaves = OCTAVES if len(symbols) <= 2 else FEW_OCTAVES
    for values in itertools.product(*others.values()):
        for sizes in itertools.product(*([1 << octave for octave in octaves] for _ in symbols)):
            try:
                attr = found(
                    **dict(zip(others, values, strict=True)), **dict(zip(symbols, sizes, strict=True))
                )
            except AttrError:
                continue
            if nbytes(attr) <= 8 * MOST_ELEMENTS and class_of(attr) == attr:
                yield attr


def _values(found: type[KernelAttr], name: str) -> list[Any]:
    """What a field may be: what the sweep has, or all that there is if that is little."""
    known = found.known_fields()[name]
    if known.values:
        return list(known.values)
    cases: Iterable[Case] = found.sweep()
    return list(dict.fromkeys(getattr(case.attr, name) for case in cases))
