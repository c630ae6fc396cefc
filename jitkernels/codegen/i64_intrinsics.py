"""Intrinsics of the i64 language: functions of 64-bit words that translate to LLVM IR.

The launcher and the dispatcher read Python and NumPy objects by offsets and call C functions. LLVM IR for that is
unreadable, so they are plain Python functions in which every value is a 64-bit integer or address, with these
intrinsics for what Python lacks; `jitkernels.codegen.python.i64_functions` translates them.
"""

from typing import NoReturn

from jitkernels.errors import BuildError


def _only_translated() -> NoReturn:
    raise BuildError("i64 intrinsics exist in translated code only: Python cannot call them")


def load(address: int, offset: int = 0) -> int:
    """Load the word at an address plus a byte offset; ``address[i]`` is the word at index ``i``."""
    _only_translated()


def load32(address: int, offset: int = 0) -> int:
    """Load the signed 32-bit integer at an address."""
    _only_translated()


def load8(address: int, offset: int = 0) -> int:
    """Load the byte at an address."""
    _only_translated()


def stack(words: int) -> int:
    """Allocate words on the stack, which live until the function returns; return their address."""
    _only_translated()


def call(function: int, *arguments: int) -> int:
    """Call the C function at an address."""
    _only_translated()


def address(symbol: str) -> int:
    """The address of a symbol of this object or of an external."""
    _only_translated()


def unlikely(condition: int) -> int:
    """A branch hint: the condition is almost never true."""
    _only_translated()


def leading_zeros(value: int) -> int:
    """Count leading zeros; 64 for 0."""
    _only_translated()
