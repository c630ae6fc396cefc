"""Build kernel archives: the kernels of registry schemas in every size class, or all code that a function uses.

An archive holds what a process loads. So kernels are built the way calls request them, together with their
launchers and the dispatcher, and also the fallback kernels for machines that lack an optional library.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from jitkernels.attrs.schema.base import Case, KernelAttr
from jitkernels.attrs.schema.registry import op_schema
from jitkernels.attrs.schema.schema_queries import is_everyday
from jitkernels.codegen import kernel_archive
from jitkernels.codegen.source_protocol import Source
from jitkernels.core.atomic_files import warn_once
from jitkernels.dispatch.kernel import Kernel
from jitkernels.dispatch.kernel_cache import get_refer
from jitkernels.dispatch.native import launcher
from jitkernels.dispatch.operators import everyday
from jitkernels.errors import ArgumentError, AttrError, BuildError
from jitkernels.runtime import fp_status, python_fallback, vectorcall, workspace_allocator
from jitkernels.runtime.loading import loader
from jitkernels.runtime.loading.compiled_code import code_of
from jitkernels.runtime.threads import team_size
from jitkernels.runtime.threads.num_threads import get_num_threads
from jitkernels.selection import nearest_record, records
from jitkernels.selection.select import Choice, has_dynamic_shape, preferences
from jitkernels.selection.size_classes import class_of, has_elements, nbytes

OCTAVES = (0, 1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24)
FEW_OCTAVES = (0, 1, 3, 5, 8, 11, 14)
"""Exponents of two of the extents to build: for schemas of up to two extents, or more. Extents between share code."""
MOST_ELEMENTS = 1 << 25
SELF_CONTAINED = ("gen", "intrinsic")
"""Implementations that need nothing but the archive."""


class Packing:
    """The contents of an archive, collected while this process loads them."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.records: dict[str, Any] = {}

    def __enter__(self) -> Self:
        loader.watchers.append(self._watch)
        return self

    def __exit__(self, *_: object) -> None:
        loader.watchers.remove(self._watch)

    def _watch(self, source: Source, content: bytes) -> None:
        self.objects[loader.pack_key(source)] = content

    def write(self, path: Path) -> int:
        """Write the archive atomically and return its size in bytes. Raises OSError if the path is not writable."""
        return kernel_archive.write(path, self.objects, {str(get_num_threads()): self.records})

    def add_launcher(self) -> None:
        """Add what every process needs: launchers, all parts of the dispatcher, threads with and without OpenMP."""
        launcher.load_all()
        for source in (
            *team_size.runtime_sources(),
            vectorcall.source(),
            python_fallback.source(),
            fp_status.source(),
            workspace_allocator.source(),
        ):
            loader.built(source)

    def add_schema(self, name: str, tell: Callable[[str], None] = lambda _: None) -> None:
        """Add the kernels of a schema: for each size class, dtype and option, and for the attrs of its sweep."""
        attr_class = op_schema(name)
        if is_everyday(attr_class):
            everyday(attr_class.kernel_type.name.lower())
        for attr in _classes(attr_class):
            self._add(attr, of_class=True)
        for case in attr_class.sweep():
            self._add(case.attr, of_class=False)
            get_refer(case.attr)  # its launcher differs
        tell(f"{name}: {len(self.objects)} objects so far")

    def add_function(self, name: str) -> None:
        """Add all code that calling ``module:function`` without arguments loads into the process."""
        module, _, function = name.partition(":")
        try:
            called = getattr(import_module(module), function)
        except (ImportError, AttributeError) as error:
            raise ArgumentError(f"{name}: expected module:function, {error}") from error
        called()

    def _add(self, attr: KernelAttr, *, of_class: bool) -> None:
        """Add the code of every implementation that an attr may select, with and without optional libraries."""
        self._add_record(attr)
        for choice in _likely(attr, of_class=of_class):
            try:
                source = choice.implementation.source(attr, choice.variant)
                _ = code_of(source).address
                if not of_class:
                    _ = Kernel(attr, choice.implementation, choice.variant, code_of(source)).callable
            except BuildError as error:
                warn_once(f"pack {source.name}", f"{attr.name} by {choice.implementation.name} is not packed: {error}")

    def _add_record(self, attr: KernelAttr) -> None:
        record = nearest_record.nearest(class_of(attr), get_num_threads()) if has_elements(attr) else None
        if record is not None:
            self.records[records.name_of(record[0])] = records.content_of_record(*record, get_num_threads())


def _likely(attr: KernelAttr, *, of_class: bool) -> Iterator[Choice]:
    """Return the selection for an attr, and the best of each implementation that needs no library."""
    seen: set[str] = set()
    first = True
    for choice in preferences(attr):
        implementation = choice.implementation
        if (
            implementation.is_reference
            or implementation.name in seen
            or (of_class and not has_dynamic_shape(attr, choice))
        ):
            continue
        if first or implementation.name in SELF_CONTAINED:
            seen.add(implementation.name)
            yield choice
        first = False


def _classes(attr_class: type[KernelAttr]) -> Iterator[KernelAttr]:
    """Return the largest attr of each size class, or one attr for each distinct kernel, with every dtype and option."""
    fields = attr_class.known_fields()
    symbols = [name for name, field in fields.items() if field.kind == "int"]
    others = {name: _values(attr_class, name) for name in fields if name not in symbols}
    octaves = OCTAVES if len(symbols) <= 2 else FEW_OCTAVES
    for values in itertools.product(*others.values()):
        for sizes in itertools.product(*([1 << octave for octave in octaves] for _ in symbols)):
            try:
                attr = attr_class(**dict(zip(others, values, strict=True)), **dict(zip(symbols, sizes, strict=True)))
            except AttrError:
                continue
            if nbytes(attr) <= 8 * MOST_ELEMENTS and class_of(attr) == attr:
                yield attr


def _values(attr_class: type[KernelAttr], name: str) -> list[Any]:
    """Return the values of a field: those of the sweep, or all possible values if they are few."""
    known = attr_class.known_fields()[name]
    if known.values:
        return list(known.values)
    cases: Iterable[Case] = attr_class.sweep()
    return list(dict.fromkeys(getattr(case.attr, name) for case in cases))
