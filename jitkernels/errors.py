"""The exceptions of jitkernels, one base class so that a caller can catch them all.

Each also derives from the built-in exception a NumPy user would expect in its place.
"""

import reprlib

MOST_SHOWN = 200
_short = reprlib.Repr()
_short.maxstring = _short.maxother = MOST_SHOWN


def shown(value: object) -> str:
    """A value in a message: ``repr``, whatever the object's own one does, and neither long nor long to wait for."""
    shape = getattr(value, "shape", None) if type(value).__module__ == "numpy" else None
    if shape:
        return f"an array of shape {shape}"
    try:
        text = _short.repr(value)
    except Exception:  # noqa: BLE001  # a strange object must not hide which argument is wrong
        text = f"<{type(value).__name__}>"
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


class JitKernelsError(Exception):
    """Base of every error that jitkernels raises on purpose."""


class ArgumentError(JitKernelsError, ValueError):
    """An argument has a wrong shape, layout, overlap or value; nothing was written."""


class ArgumentTypeError(JitKernelsError, TypeError):
    """An argument has a wrong type or dtype; nothing was written."""


class AttrError(JitKernelsError, ValueError):
    """A field of an attr is outside what its kernel type defines."""


class DataIndexError(JitKernelsError, IndexError):
    """An index that came from data points outside its table; nothing was written."""


class RegistrationError(JitKernelsError, TypeError):
    """A row or an implementation breaks the contract of the registry."""


class UnknownNameError(JitKernelsError, LookupError):
    """No kernel type, implementation, row case or setting of that name exists."""


class NotUsableError(JitKernelsError, RuntimeError):
    """The implementation asked for cannot be used here; the message gives its reason."""


class BuildError(JitKernelsError, RuntimeError):
    """Machine code for a source could not be built or loaded."""


class BundleError(JitKernelsError, ValueError):
    """A folder is no bundle, or one that is broken, or a function cannot be put into one."""


class WorkspaceError(JitKernelsError, MemoryError):
    """The scratch memory of a kernel could not be allocated; outputs may be written in part."""


class MemoryLimitError(JitKernelsError, MemoryError):
    """A compiled function needs more memory between its kernels than its `memory_limit`; nothing was written."""


class DifferenceError(JitKernelsError, ArithmeticError):
    """Compiled code and NumPy differ by more than rounding, which negative levels look for in each call."""


class GraphError(JitKernelsError, RuntimeError):
    """A graph breaks a rule that the compiler relies on: a mistake of a pass or of a rule of one's own."""


class TracingError(JitKernelsError, TypeError):
    """A function cannot be compiled as it is written; the message names file, line and variable, and the cure."""


class DerivativeError(TracingError):
    """A function has no derivative, or none of these arguments; the message names what and where."""
