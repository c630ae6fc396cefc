"""A kernel: one implementation bound to one attr, in machine code, behind its launcher."""

import ctypes
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from jitkernels import dtypes
from jitkernels.attrs.base import KernelAttr
from jitkernels.errors import ArgumentTypeError
from jitkernels.locks import making
from jitkernels.native import launch
from jitkernels.native.code import Code, code_of
from jitkernels.native.status import error_of
from jitkernels.patience import saying
from jitkernels.registry import Implementation, Variant, implementation
from jitkernels.signature import Signature

LONG_NANOSECONDS = 20_000
"""Work longer than this releases the interpreter lock, which costs some 50 ns."""


class Kernel(launch.Holder):
    """What stands behind the callable that ``KernelFuncs.cache().at(attr)`` returns, as its ``__self__``.

    attr: what it computes. implementation: the name of how. variant: the tuned parameters of that
    implementation; `code`, if given, is what it makes of them for this attr. rule: the step of the lookup order
    that chose it. source: the text of its code. address: and symbol: of its C entry, 0 and "" for the NumPy
    reference. timings: seconds of each candidate when it was measured.
    """

    __slots__ = (
        "_call_python", "_callable", "_code", "_due", "_function", "_kept", "_slow", "_words", "address", "attr",
        "calls_until_due", "exact", "implementation", "rule", "signature", "symbol", "timings", "variant",
    )  # fmt: skip

    def __init__(
        self, attr: KernelAttr, found: Implementation, variant: Variant, code: Code | None = None
    ) -> None:
        self.attr = attr
        self.implementation = found.name
        self.variant = dict(variant)
        self.rule = "asked for"
        self._due: Callable[[], int] | None = None
        self._kept: list[Kernel] = []
        self.calls_until_due = launch.NEVER
        self.exact = False
        self.timings: Mapping[str, float] = {}
        self.signature = attr.signature()
        self._function = found.function
        self._call_python = self._reference if found.is_reference else None
        self._words = _words(self.signature)
        if found.is_reference:
            found.check_reference(attr)
            self._code: Code | None = None
            self.symbol, self.address = "", 0
        else:
            code = code or code_of(found.source(attr, variant))
            if not code.is_loaded:
                self._load(code)
            self._code, self.symbol, self.address = code, code.symbol, code.address
            self.exact = getattr(code.source, "exact", False)
        self._slow = self.run
        self._callable: Any = None

    @property
    def source(self) -> str:
        """The text of the code."""
        return _text_of(self._function) if self._code is None else self._code.source.text

    def _load(self, code: Code) -> None:
        with saying(f"building {self.implementation} of {self.attr.kernel_type.name}({self.attr.text()})"):
            _ = code.address

    @property
    def callable(self) -> Any:
        """What callers hold: the compiled launcher with this kernel as ``self``, or `run` where there is none.

        Made when first asked for: the kernel of a size class serves everyday calls, which have their own.
        """
        with making:
            if self._callable is None:
                self._callable = self._launcher()
            return self._callable

    def _launcher(self) -> Any:
        if not launch.fits(self._parameters, self._words):
            return self.run
        self._context = self._new_context()
        if not launch.is_launched(self._context):
            return self.run
        launch.set_countdown(self._context, self.calls_until_due)
        return launch.launcher(self.attr.name, type(self.attr).__doc__ or "", self) or self.run

    @property
    def _parameters(self) -> list[launch.Parameter]:
        return [
            launch.Parameter(_singleton(array.dtype), array.shape, array.output, array.in_place)
            for array in self.signature.arrays
        ]

    def _new_context(self) -> Any:
        return launch.context(
            self._parameters,
            self._words,
            entry=self.address,
            python=self._call_python,
            slow=self._slow,
            long=self.is_long,
        )

    @property
    def _is_launched(self) -> bool:
        """Whether a launcher reads a context of this kernel."""
        return self._callable is not None and self._callable != self.run

    @property
    def is_long(self) -> bool:
        """Rough estimate: 10 operations or 20 bytes per nanosecond."""
        nbytes = sum(array.nbytes for array in self.signature.arrays)
        return self.address != 0 and max(self.attr.operations() / 10, nbytes / 20) > LONG_NANOSECONDS

    def _reference(self, *arrays: Any) -> None:
        self.attr.check_data(arrays)
        self.signature.through_numbers(partial(self._function, self.attr), arrays)

    def run(self, *arrays: Any, **named: Any) -> None:
        """Check every argument in Python, then compute: what the launcher falls back on.

        Raises ArgumentTypeError, ArgumentError or DataIndexError naming the argument, what was expected and
        what came; nothing is written then.
        """
        if named:
            count, listed = len(self.signature.arrays), ", ".join(named)
            raise ArgumentTypeError(
                f"{self.attr.name}: expected {count} arrays by position, got {listed} by name"
            )
        if self._due is not None and self._is_launched and launch.countdown_of(self._context) <= 0:
            self.settle()
        self.run_as(self.attr, arrays)

    def watch(self, calls: int, due: "Callable[[], int]") -> None:
        """After so many calls, and then after as many more as it answers, `due` is called; never if that is 0."""
        self._due = due
        self._count_down(calls)

    def count(self, calls: int) -> None:
        """So many calls have passed of which no context of this kernel knows."""
        self.calls_until_due -= calls
        if self.calls_until_due <= 0:
            self.settle()

    def settle(self) -> None:
        """The calls asked for have passed: tell who wanted to know."""
        if self._due is not None:
            calls = self._due()
            self._count_down(calls)

    def _count_down(self, calls: int) -> None:
        self.calls_until_due = calls or launch.NEVER
        if self._is_launched:
            launch.set_countdown(self._context, self.calls_until_due)

    def become(self, other: "Kernel") -> None:
        """Compute by another kernel of the same attr from now on; callers keep what they hold."""
        self._kept.append(other)  # whose Python objects the context now names
        for name in (
            "implementation",
            "variant",
            "rule",
            "timings",
            "_code",
            "symbol",
            "address",
            "_function",
            "_call_python",
        ):
            setattr(self, name, getattr(other, name))
        if self._is_launched:
            launch.replace(self._context, other._new_context())

    def run_as(self, attr: KernelAttr, arrays: Sequence[Any]) -> None:
        """As `run`, for any attr of the kernel's size class: extents are arguments of the machine code."""
        signature = self.signature if attr is self.attr else attr.signature()
        signature.check(attr.name, arrays)
        attr.check_data(arrays)
        if self._call_python is not None:
            signature.through_numbers(partial(self._function, attr), arrays)
            return
        words = [array.ctypes.data for array in arrays] + _words(signature)
        entry = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(words))(self.address)
        status = entry(*words)
        if status != 0:
            raise error_of(status, attr.name, self.implementation)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is built anew: machine code and addresses hold in one process only."""
        return _rebuilt, (self.attr, self.implementation, self.variant)

    def __repr__(self) -> str:
        variant = "".join(f", {key}={value}" for key, value in self.variant.items())
        return f"<Kernel {self.attr.kernel_type.name}({self.attr.text()}) by {self.implementation}{variant}>"


def _rebuilt(attr: KernelAttr, name: str, variant: Variant) -> Kernel:
    return Kernel(attr, implementation(type(attr), name), variant)


def kernel_of(function: Callable[..., Any]) -> Kernel | None:
    """The kernel behind a callable, if there is one."""
    found = getattr(function, "__self__", None)
    return found if isinstance(found, Kernel) else None


def _text_of(function: Any) -> str:
    try:
        return inspect.getsource(function)
    except OSError:  # typed into an interpreter
        return f"# the source of {function.__qualname__} is not in a file"


def _singleton(dtype: str) -> Any:
    return dtypes.named(dtype).numpy


def _words(signature: Signature) -> list[int]:
    """What the C function takes after the arrays: integers, and addresses of the floats."""
    return [value for _, value in signature.integers] + [_address(value) for _, value in signature.floats]


_floats: dict[float, Any] = {}


def _address(value: float) -> int:
    """Where a float lies in memory, for good: calls without the interpreter lock may outlive their kernel."""
    return ctypes.addressof(_floats.setdefault(value, ctypes.c_double(value)))
