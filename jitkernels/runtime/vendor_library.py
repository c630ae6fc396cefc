"""Libraries of vendors, opened on first use: where they are looked for, and their functions that range kernels call."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from jitkernels.codegen.source_protocol import External
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.errors import NotUsableError
from jitkernels.runtime.cffi_library import CffiLibrary

Opened = tuple[CffiLibrary | None, str]
"""The library with its version and path, or None with the reason why it cannot be used."""


def package_files(packages: Iterable[str], is_library: Callable[[str], bool]) -> Iterator[Path]:
    """Yield the files of installed packages whose names are those of the library."""
    from importlib.metadata import PackageNotFoundError, files  # 10 ms that only its users pay

    for package in packages:
        try:
            listed = files(package) or []
        except PackageNotFoundError:
            continue
        yield from (Path(str(file.locate())).resolve() for file in listed if is_library(file.name))


def open_first(candidates: Iterable[Path | str], open_library: Callable[[str], Opened], absent: str) -> Opened:
    """Open the first usable library of some paths and names; `absent` is the reason if none is there."""
    refused: list[str] = []
    for candidate in candidates:
        if isinstance(candidate, Path) and not candidate.is_file():
            continue
        try:
            library, text = open_library(str(candidate))
        except (OSError, AttributeError) as error:
            if isinstance(candidate, Path):
                refused.append(f"{candidate}: {error}")
            continue
        if library is not None:
            return library, text
        refused.append(text)
    return None, "; ".join(refused) or absent


@frozen_dataclass
class VendorLibrary:
    """A library called `title`, and in symbols `name`; `find` opens it, `functions` are its declared prototypes.

    `address` finds a function in the open library.
    """

    title: str
    name: str
    functions: Mapping[str, tuple[str, tuple[str, ...]]]
    find: Callable[[], Opened]
    address: Callable[[CffiLibrary, str], int] = CffiLibrary.address
    prefix: str = ""

    def status(self) -> tuple[bool, str]:
        """Report whether the library is there, with its version and path or the reason why not."""
        library, text = self.find()
        return library is not None, text

    def demanded(self) -> CffiLibrary:
        """Return the library. Raises NotUsableError when it is not there."""
        library, reason = self.find()
        if library is None:
            raise NotUsableError(f"{self.title} cannot be used: {reason}")
        return library

    def address_of(self, name: str) -> int:
        """Return the address of a function. Raises NotUsableError when the library is not there."""
        return self.address(self.demanded(), self.prefix + name)

    def external(self, name: str) -> Any:
        """Return a declared function for range kernels to call, named without the prefix of the library's names."""
        result, arguments = self.functions[self.prefix + name]
        return External(f"jk_{self.name}_{name}", result, arguments, lambda: self.address_of(name))
