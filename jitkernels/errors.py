"""The exceptions of jitkernels, with one base class so that a caller can catch them all.

Each also derives from the built-in exception that a NumPy user would expect in its place.
"""

import reprlib

MAX_SHOWN = 200
_short = reprlib.Repr()
_short.maxstring = _short.maxother = MAX_SHOWN


def shown(value: object) -> str:
    """A value as text of a message: ``repr``, bounded in length and time, whatever the object's ``__repr__`` does."""
    shape = getattr(value, "shape", None) if type(value).__module__ == "numpy" else None
    if shape:
        return f"an array of shape {shape}"
    try:
        text = _short.repr(value)
    except Exception:  # noqa: BLE001  # a broken __repr__ must not hide which argument is wrong
        text = f"<{type(value).__name__}>"
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


class JitKernelsError(Exception):
    """Base of every error that jitkernels raises on purpose."""


class ArgumentError(JitKernelsError, ValueError):
    """An argument has a wrong shape, layout, overlap or value; nothing was written."""


class ArgumentTypeError(JitKernelsError, TypeError):
    """An argument has a wrong type or dtype; nothing was written."""


class AttrError(JitKernelsError, ValueError):
    """A field of an attr is outside what its kernel type defines."""


class DataIndexError(JitKernelsError, IndexError):
    """An index in the data is outside its table; nothing was written."""


class RegistrationError(JitKernelsError, TypeError):
    """A row or an implementation breaks the contract of the registry."""


class UnknownNameError(JitKernelsError, LookupError):
    """No kernel type, implementation, row case or setting has that name."""


class NotUsableError(JitKernelsError, RuntimeError):
    """The requested implementation cannot be used here; the message gives the reason."""


class BuildError(JitKernelsError, RuntimeError):
    """Machine code for a source could not be built or loaded."""


class BundleError(JitKernelsError, ValueError):
    """A folder is not a valid bundle, or a function cannot be exported into one."""


class ModelError(JitKernelsError, ValueError):
    """A file or object is not a valid ONNX model, or one of its nodes cannot be computed; the message names it."""


class WorkspaceError(JitKernelsError, MemoryError):
    """The workspace of a kernel could not be allocated; outputs may be partly written."""


class MemoryLimitError(JitKernelsError, MemoryError):
    """A compiled function needs more memory for intermediates than its `memory_limit`; nothing was written."""


class DifferenceError(JitKernelsError, ArithmeticError):
    """Compiled code and NumPy differ by more than rounding, which negative optimization levels check in each call."""


class GraphError(JitKernelsError, RuntimeError):
    """A graph violates an invariant of the compiler: a bug in a pass or in a user-defined rule."""


class TracingError(JitKernelsError, TypeError):
    """A function cannot be compiled as written; the message names file, line and variable, and the fix."""


class DerivativeError(TracingError):
    """A function has no derivative with respect to these arguments; the message names operation and location."""
