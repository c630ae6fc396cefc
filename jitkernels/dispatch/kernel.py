"""A kernel: one implementation bound to one attr, as machine code behind its launcher."""

import ctypes
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import Implementation, Variant, implementation
from jitkernels.attrs.schema.signature import Signature
from jitkernels.codegen.error_status import error_of
from jitkernels.core import cffi_values, dtypes
from jitkernels.core.fork_locks import build_lock
from jitkernels.core.progress import progress_message
from jitkernels.dispatch.native import launcher
from jitkernels.errors import ArgumentTypeError
from jitkernels.runtime.abi_layout import Context
from jitkernels.runtime.loading import build_ahead, lazy_link
from jitkernels.runtime.loading.compiled_code import Code, code_of

LONG_NANOSECONDS = 20_000
"""Work longer than this releases the interpreter lock, which costs some 50 ns."""


class Kernel(launcher.Holder):
    """The ``__self__`` of the callable that ``KernelFuncs.cache().at(attr)`` returns.

    attr: the attr it computes. implementation: its name. variant: its tuned parameters; `code`, if passed, is its code
    for this attr. rule: the step of the lookup order that selected it. source: the text of its code. address and
    symbol: of its C entry, 0 and "" for the NumPy reference. timings: seconds of each measured candidate.
    """

    __slots__ = (
        "_call_python", "_callable", "_code", "_due", "_function", "_kept", "_scalars", "_slow", "address", "attr",
        "calls_until_due", "exact", "implementation", "rule", "signature", "symbol", "timings", "variant",
    )  # fmt: skip

    def __init__(
        self, attr: KernelAttr, implementation: Implementation, variant: Variant, code: Code | None = None
    ) -> None:
        self.attr = attr
        self.implementation = implementation.name
        self.variant = dict(variant)
        self.rule = "requested"
        self._due: Callable[[], int] | None = None
        self._kept: list[Kernel] = []
        self.calls_until_due = launcher.NEVER
        self.exact = False
        self.timings: Mapping[str, float] = {}
        self.signature = attr.signature()
        self._function = implementation.function
        self._call_python = self._reference if implementation.is_reference else None
        self._scalars = scalar_words(self.signature)
        if implementation.is_reference:
            implementation.check_reference(attr)
            self._code: Code | None = None
            self.symbol, self.address = "", 0
        else:
            code = code or code_of(implementation.source(attr, variant))
            if not code.is_loaded:
                with progress_message(f"building {self.implementation} of {attr.kernel_type.name}({attr.text()})"):
                    _ = code.address
            self._code, self.symbol, self.address = code, code.symbol, code.address
            for part in lazy_link.needed_by(code.source, dict(self.signature.integers)):
                part.bring()
            self.exact = getattr(code.source, "exact", False)
        self._slow = self.run
        self._callable: Any = None

    def of_sizes(self, attr: KernelAttr) -> "Kernel":
        """The kernel of another attr of the size class, by the same code: extents are arguments of it."""
        return Kernel(attr, implementation(type(attr), self.implementation), self.variant, self._code)

    @property
    def source(self) -> str:
        """The text of the code."""
        if self._code is not None:
            return self._code.source.text
        try:
            return inspect.getsource(self._function)
        except OSError:  # defined in an interactive session
            return f"# the source of {self._function.__qualname__} is not in a file"

    @property
    def callable(self) -> Any:
        """The callable for users: the compiled launcher with this kernel as ``self``, or `run` as fallback.

        Created on first use: the kernel of a size class serves everyday calls, which have their own launcher.
        """
        with build_lock:
            if self._callable is None:
                self._callable = self._launcher()
            return self._callable

    def _launcher(self) -> Any:
        if not launcher.fits(self._parameters, self._scalars):
            return self.run
        self._context = self._new_context()
        if not self._context[Context.CALL]:  # Python serves all calls
            return self.run
        self._context[Context.COUNTDOWN] = self.calls_until_due
        return launcher.launcher(self.attr.name, type(self.attr).__doc__ or "", self) or self.run

    @property
    def _parameters(self) -> list[launcher.Parameter]:
        return [
            launcher.Parameter(dtypes.named(array.dtype).numpy, array.shape, array.output, array.in_place)
            for array in self.signature.arrays
        ]

    def _new_context(self) -> Any:
        return launcher.context(
            self._parameters, self._scalars,
            entry=self.address, python=self._call_python, slow=self._slow, long=self.is_long,
        )  # fmt: skip

    @property
    def _is_launched(self) -> bool:
        """Whether a launcher reads a context of this kernel."""
        return self._callable is not None and self._callable != self.run

    @property
    def is_long(self) -> bool:
        """Whether a call outlasts `LONG_NANOSECONDS`, estimated at 10 operations or 20 bytes per nanosecond."""
        nbytes = sum(array.nbytes for array in self.signature.arrays)
        return self.address != 0 and max(self.attr.operations() / 10, nbytes / 20) > LONG_NANOSECONDS

    def _reference(self, *arrays: Any) -> None:
        self.attr.check_data(arrays)
        self.signature.through_numbers(partial(self._function, self.attr), arrays)

    def run(self, *arrays: Any, **named: Any) -> None:
        """Check every argument in Python, then compute: the fallback of the launcher.

        Raises ArgumentTypeError, ArgumentError or DataIndexError that names the argument, expected and got; nothing is
        written then.
        """
        if named:
            count, listed = len(self.signature.arrays), ", ".join(named)
            raise ArgumentTypeError(f"{self.attr.name}: expected {count} arrays by position, got {listed} by name")
        if cffi_values.has_memory(arrays):
            self.callable(*cffi_values.arrays_of(self.attr.name, arrays, {})[0])
            return
        if self._due is not None and self._is_launched and self._context[Context.COUNTDOWN] <= 0:
            self.settle()
        self.run_as(self.attr, arrays)

    def watch(self, calls: int, due: Callable[[], int]) -> None:
        """Call `due` after `calls` calls, and again after as many more as it returns; never if that is 0."""
        self._due = due
        self._count_down(calls)

    def count(self, calls: int) -> None:
        """Count calls that passed outside the contexts of this kernel."""
        self.calls_until_due -= calls
        if self.calls_until_due <= 0:
            self.settle()

    def settle(self) -> None:
        """Run the `due` callback and restart the countdown."""
        if self._due is not None:
            calls = self._due()
            self._count_down(calls)

    def _count_down(self, calls: int) -> None:
        self.calls_until_due = calls or launcher.NEVER
        if self._is_launched:
            self._context[Context.COUNTDOWN] = self.calls_until_due

    def replace_code(self, other: "Kernel") -> None:
        """Replace the code by that of another kernel of the same attr; existing callables stay valid."""
        self._kept.append(other)  # the context refers to its Python objects
        for name in (
            "implementation", "variant", "rule", "timings", "_code", "symbol", "address", "_function", "_call_python",
        ):  # fmt: skip
            setattr(self, name, getattr(other, name))
        if self._is_launched:
            launcher.replace(self._context, other._new_context())

    def run_as(self, attr: KernelAttr, arrays: Sequence[Any]) -> None:
        """As `run`, for any attr of the kernel's size class: extents are arguments of the machine code."""
        signature = self.signature if attr is self.attr else attr.signature()
        signature.check(attr.name, arrays)
        attr.check_data(arrays)
        if self._call_python is not None:
            signature.through_numbers(partial(self._function, attr), arrays)
            return
        words = [array.ctypes.data for array in arrays] + scalar_words(signature)
        call = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(words))(self.address)
        status = call(*words)
        while status == lazy_link.MISSING and build_ahead.build_requested():
            status = call(*words)
        if status != 0:
            raise error_of(status, attr.name, self.implementation)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is rebuilt: machine code and addresses are valid in one process only."""
        return _rebuild, (self.attr, self.implementation, self.variant)

    def __repr__(self) -> str:
        variant = "".join(f", {key}={value}" for key, value in self.variant.items())
        return f"<Kernel {self.attr.kernel_type.name}({self.attr.text()}) by {self.implementation}{variant}>"


def _rebuild(attr: KernelAttr, name: str, variant: Variant) -> Kernel:
    return Kernel(attr, implementation(type(attr), name), variant)


def kernel_of(function: Callable[..., Any]) -> Kernel | None:
    """The kernel behind a callable, or None."""
    holder = getattr(function, "__self__", None)
    return holder if isinstance(holder, Kernel) else None


def scalar_words(signature: Signature) -> list[int]:
    """The arguments of the C function after the arrays: integers, and addresses of the floats."""
    floats = [_floats.setdefault(value, ctypes.c_double(value)) for _, value in signature.floats]
    return [value for _, value in signature.integers] + [ctypes.addressof(value) for value in floats]


_floats: dict[float, Any] = {}
"""Floats at permanent addresses: calls without the interpreter lock may outlive their kernel."""
