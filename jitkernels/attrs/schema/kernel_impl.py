"""One implementation of a kernel, and the contract of its author.

A violation is a RegistrationError that names the kernel, the implementation, the argument and the fix. It is raised
where the author's answer is used, so that the order of imports does not matter.
"""

import functools
import inspect
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.core import cffi_values, signal_exceptions
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.errors import NotUsableError, RegistrationError

PLAIN = frozenset({int, float, str, bool})
"""Types of the values of a variant; derived types are allowed as well."""
Variant = Mapping[str, Any]
Usable = Callable[[Any], bool | str]
Variants = Callable[[Any], Sequence[Variant]]


source_of_c_function: list[Callable[[str, tuple[str, ...], Any], Any]] = []
"""The factory of sources of C functions of cffi: (name, C arguments, function). `jitkernels.runtime` appends it."""
_open_caches: list[None] = []
_cached_sources: dict[Hashable, Any] = {}


@contextmanager
def sources_cached() -> Iterator[None]:
    """Cache sources inside the block: selection asks for the same one several times.

    Only one thread at a time may be inside.
    """
    _open_caches.append(None)
    try:
        yield
    finally:
        _open_caches.pop()
        if not _open_caches:
            _cached_sources.clear()


@frozen_dataclass
class Implementation:
    """One implementation of a kernel.

    For ``refer``, `function(attr, *arrays)` is the NumPy computation. For all others `function(attr, **variant)`
    returns a source, and `variants(attr)` the variants worth measuring, the static choice first.
    """

    name: str
    attr_class: type[KernelAttr]
    function: Callable[..., Any]
    can_be_used: Usable
    variants: Variants

    @property
    def is_reference(self) -> bool:
        return self.name == "refer"

    def reason_against(self, attr: KernelAttr) -> str | None:
        """Why the implementation is incorrect or unavailable for this attr here, or None."""
        try:
            answer = self.can_be_used(attr)
        except Exception as error:  # such as a missing library
            if signal_exceptions.raised_by_signal_handler(error):
                raise
            return f"can_be_used raised {type(error).__name__}: {error}"
        if answer is True:
            return None
        if answer is False or answer == "":
            return "can_be_used gave no reason"
        if not isinstance(answer, str):
            raise self._mistake("can_be_used", attr, "True, or the reason why not as a string", answer)
        return answer

    def demand(self, attr: KernelAttr) -> None:
        """Raise NotUsableError with the reason if the implementation cannot be used for this attr here."""
        reason = self.reason_against(attr)
        if reason is not None:
            kernel = f"{attr.kernel_type.name}({attr.text()})"
            raise NotUsableError(f"{kernel}: {self.name} cannot be used: {reason}")

    def source(self, attr: KernelAttr, variant: Variant) -> Any:
        """The source of the schema's C function for a variant, as `function` returns it."""
        key = self, attr._key, *variant.items()
        if not _open_caches or key not in _cached_sources:
            source = self._source(attr, variant)
            if not _open_caches:
                return source
            _cached_sources[key] = source
        return _cached_sources[key]

    def _source(self, attr: KernelAttr, variant: Variant) -> Any:
        source = cffi_values.pointer_of(self.function(attr, **variant))
        if cffi_values.is_function(source):
            source = self._source_of_c(attr, source)
        own = getattr(source, "__dict__", ())  # the property `text` itself may be expensive
        if not all(name in own or hasattr(type(source), name) for name in ("name", "text", "externals")):
            raise self._mistake(
                "the function", attr, "a source such as a RangeKernel or a CSource, or a cffi function", source
            )
        expected = attr.signature().c_arguments
        arguments = tuple(getattr(source, "arguments", expected))
        if arguments != expected:
            raise self._mistake(
                "the source's arguments",
                attr,
                f"attr.signature().c_arguments, which are {_listed(expected)}",
                _Text(_listed(arguments)),
            )
        if inspect.isfunction(body := getattr(source, "body", None)) and not getattr(source, "names", ()):
            self._check_body(attr, body, getattr(source, "own_arguments", ("begin", "end")))
        return source

    def _source_of_c(self, attr: KernelAttr, function: Any) -> Any:
        expected = attr.signature().c_arguments
        reason = cffi_values.reason_against(function, expected)
        if reason is not None:
            wanted, _, got = reason.removeprefix("expected ").partition(", got ")
            raise self._mistake("the C function", attr, wanted, _Text(got))
        return source_of_c_function[0](f"{attr.name}_{self.name}", expected, function)

    def _check_body(self, attr: KernelAttr, body: Callable[..., None], own: Sequence[str]) -> None:
        signature = attr.signature()
        arguments = (*signature.integers, *signature.floats)
        expected = [array.name for array in signature.arrays] + [name for name, _ in arguments]
        expected += own
        code_arguments = inspect.getargs(body.__code__)
        names = [*code_arguments.args, *(name for name in (code_arguments.varargs, code_arguments.varkw) if name)]
        if len(names) != len(expected):
            wanted = f"the {len(expected)} parameters ({', '.join(expected)})"
            raise self._mistake(
                "the body of the range kernel", attr, wanted, _Text(f"{len(names)}: ({', '.join(names)})")
            )

    def check_reference(self, attr: KernelAttr) -> None:
        """Raise RegistrationError unless `function` takes the attr and every array."""
        names = [array.name for array in attr.signature().arrays]
        parameters = inspect.signature(self.function)
        try:
            parameters.bind(attr, *names)
        except TypeError:
            wanted = f"the parameters (attr, {', '.join(names)})"
            raise self._mistake("the function", attr, wanted, _Text(str(parameters))) from None

    def _mistake(self, what: str, attr: KernelAttr, expected: str, got: object) -> RegistrationError:
        return _mistake(self.attr_class, self.name, f"{what} for {attr}", expected, got)


def checked_variants(
    attr_class: type[KernelAttr], name: str, function: Callable[..., Any], variants: Variants
) -> Variants:
    """Wrap `variants` with a check of its result."""
    parameters = inspect.signature(function).parameters.values()
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    names = [parameter.name for parameter in parameters][1:]
    allowed = frozenset(names)

    @functools.wraps(variants)
    def checked(attr: KernelAttr) -> Sequence[Variant]:
        def mistake(expected: str, got: object) -> RegistrationError:
            return _mistake(attr_class, name, f"variants({attr})", expected, got)

        result = variants(attr)
        if (type(result) is not list and not isinstance(result, Sequence)) or not result:
            raise mistake("at least one variant, such as [{}]", result)
        for variant in result:
            known = type(variant) is dict and (takes_all or allowed.issuperset(variant))
            if known and PLAIN.issuperset(map(type, variant.values())):
                continue  # the common case, once per size class
            if not isinstance(variant, Mapping):
                raise mistake("dictionaries of keyword arguments", variant)
            for key, value in variant.items():
                if not takes_all and key not in names:
                    raise mistake(f"parameters of the function, which are {', '.join(names) or 'none'}", key)
                if not isinstance(value, tuple(PLAIN)):
                    raise mistake(f"an int, float, str or bool for {key}, as files store them", value)
        return result

    return checked


class _Text(str):
    """A description of the value that an error reports as got."""

    __slots__ = ()


def _mistake(attr_class: type[KernelAttr], name: str, what: str, expected: str, got: object) -> RegistrationError:
    shown = got if isinstance(got, _Text) else f"{got!r}"
    kernel = attr_class.kernel_type.name
    return RegistrationError(f"{kernel}: implementation {name!r}: {what}: expected {expected}, got {shown}")


def _listed(arguments: Sequence[str]) -> str:
    return f"({', '.join(arguments)})"
