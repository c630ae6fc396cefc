"""The exceptions of jitkernels, one base class so that a caller can catch them all.

Each also derives from the built-in exception a NumPy user would expect in its place.
"""


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


class WorkspaceError(JitKernelsError, MemoryError):
    """The scratch memory of a kernel could not be allocated; outputs may be written in part."""
