"""The vocabulary of code between Python and the kernels: functions over 64-bit words, which become LLVM IR.

The launcher and the dispatcher read objects of Python and NumPy by offsets and call C functions. Written as LLVM IR
that is unreadable. So they are written as plain Python functions whose every value is a 64-bit integer or address,
with the words below for what Python has none for, and `jitkernels.native.language.words` translates them.
"""

from typing import NoReturn

from jitkernels.errors import BuildError


def _only_translated() -> NoReturn:
    raise BuildError("this function exists in translated code only")


def load(address: int, offset: int = 0) -> int:
    """The word at an address."""
    _only_translated()


def load32(address: int, offset: int = 0) -> int:
    """The 32-bit integer with sign at an address."""
    _only_translated()


def load8(address: int, offset: int = 0) -> int:
    """The byte at an address."""
    _only_translated()


def store(address: int, offset: int, value: int) -> None:
    """Write a word."""
    _only_translated()


def stack(words: int) -> int:
    """The address of so many words that live until the function returns."""
    _only_translated()


def call(function: int, *arguments: int) -> int:
    """Call the C function at an address."""
    _only_translated()


def address(symbol: str) -> int:
    """The address of a symbol of this object or of an external."""
    _only_translated()


def unlikely(condition: int) -> int:
    """The condition of an ``if`` that is hardly ever true."""
    _only_translated()


def leading_zeros(value: int) -> int:
    """Zero bits above the highest one; 64 for 0."""
    _only_translated()
