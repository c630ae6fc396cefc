"""One way to compute a kernel, and what its author must hold to.

A mistake is a RegistrationError that names the kernel, the implementation, the argument and the cure. It is found
where the answer of an author's function is used, so that the order in which modules are imported does not matter.
"""

import functools
import inspect
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from jitkernels import handlers
from jitkernels.attrs.base import KernelAttr
from jitkernels.errors import NotUsableError, RegistrationError
from jitkernels.records import record

PLAIN = frozenset({int, float, str, bool})
"""Types of what stands in a variant; types derived from them will do as well."""
Variant = Mapping[str, Any]
Usable = Callable[[Any], bool | str]
Variants = Callable[[Any], Sequence[Variant]]


_choices: list[None] = []
_made: dict[Hashable, Any] = {}


@contextmanager
def sources_made_once() -> Iterator[None]:
    """While this lasts, a source that is asked for again is the one that was made: choosing looks at several.

    Only one thread at a time may be in it.
    """
    _choices.append(None)
    try:
        yield
    finally:
        _choices.pop()
        if not _choices:
            _made.clear()


@record
class Implementation:
    """One way to compute a kernel.

    For ``refer``, `function(attr, *arrays)` is the plain NumPy computation. For all others
    `function(attr, **variant)` gives a source, and `variants(attr)` the variants worth measuring, the static
    choice first.
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
        """Why it is not correct or not available for this attr here, or None."""
        try:
            answer = self.can_be_used(attr)
        except Exception as error:  # such as a library that is not there
            if handlers.have_raised(error):
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
        """Raise NotUsableError with the reason if it cannot be used for this attr here."""
        reason = self.reason_against(attr)
        if reason is not None:
            kernel = f"{attr.kernel_type.name}({attr.text()})"
            raise NotUsableError(f"{kernel}: {self.name} cannot be used: {reason}")

    def source(self, attr: KernelAttr, variant: Variant) -> Any:
        """What `function` gives for a variant: a source of the C function that the row declares."""
        key = self, attr._key, *variant.items()
        if not _choices or key not in _made:
            made = self._source(attr, variant)
            if not _choices:
                return made
            _made[key] = made
        return _made[key]

    def _source(self, attr: KernelAttr, variant: Variant) -> Any:
        made = self.function(attr, **variant)
        own = getattr(made, "__dict__", ())  # `text` itself may take long to make
        if not all(name in own or hasattr(type(made), name) for name in ("name", "text", "externals")):
            raise self._mistake("the function", attr, "a source such as a LoopNest or a CSource", made)
        expected = attr.signature().c_arguments
        arguments = tuple(getattr(made, "arguments", expected))
        if arguments != expected:
            raise self._mistake(
                "the source's arguments",
                attr,
                f"attr.signature().c_arguments, which are {_listed(expected)}",
                _Text(_listed(arguments)),
            )
        if inspect.isfunction(body := getattr(made, "body", None)):
            self._check_body(attr, body, getattr(made, "own_arguments", ("begin", "end")))
        return made

    def _check_body(self, attr: KernelAttr, body: Callable[..., None], own: Sequence[str]) -> None:
        signature = attr.signature()
        arguments = (*signature.integers, *signature.floats)
        expected = [array.name for array in signature.arrays] + [name for name, _ in arguments]
        expected += own
        given = inspect.getargs(body.__code__)
        taken = [*given.args, *(name for name in (given.varargs, given.varkw) if name)]
        if len(taken) != len(expected):
            wanted = f"the {len(expected)} parameters ({', '.join(expected)})"
            raise self._mistake(
                "the body of the loop nest", attr, wanted, _Text(f"{len(taken)}: ({', '.join(taken)})")
            )

    def check_reference(self, attr: KernelAttr) -> None:
        """Raise RegistrationError unless `function` takes the attr and every array."""
        names = [array.name for array in attr.signature().arrays]
        given = inspect.signature(self.function)
        try:
            given.bind(attr, *names)
        except TypeError:
            wanted = f"the parameters (attr, {', '.join(names)})"
            raise self._mistake("the function", attr, wanted, _Text(str(given))) from None

    def _mistake(self, what: str, attr: KernelAttr, expected: str, got: object) -> RegistrationError:
        return _mistake(self.attr_class, self.name, f"{what} for {attr}", expected, got)


def checked_variants(
    attr_class: type[KernelAttr], name: str, function: Callable[..., Any], variants: Variants
) -> Variants:
    """`variants`, but what it answers is looked at."""
    parameters = inspect.signature(function).parameters.values()
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    taken = [parameter.name for parameter in parameters][1:]
    allowed = frozenset(taken)

    @functools.wraps(variants)
    def checked(attr: KernelAttr) -> Sequence[Variant]:
        def mistake(expected: str, got: object) -> RegistrationError:
            return _mistake(attr_class, name, f"variants({attr})", expected, got)

        found = variants(attr)
        if (type(found) is not list and not isinstance(found, Sequence)) or not found:
            raise mistake("at least one variant, such as [{}]", found)
        for variant in found:
            known = type(variant) is dict and (takes_all or allowed.issuperset(variant))
            if known and PLAIN.issuperset(map(type, variant.values())):
                continue  # nearly always, and at each new size class
            if not isinstance(variant, Mapping):
                raise mistake("dictionaries of keyword arguments", variant)
            for key, value in variant.items():
                if not takes_all and key not in taken:
                    raise mistake(f"parameters of the function, which are {', '.join(taken) or 'none'}", key)
                if not isinstance(value, tuple(PLAIN)):
                    raise mistake(f"an int, float, str or bool for {key}, as they are kept in files", value)
        return found

    return checked


class _Text(str):
    """What came, in words."""

    __slots__ = ()


def _mistake(
    attr_class: type[KernelAttr], name: str, what: str, expected: str, got: object
) -> RegistrationError:
    shown = got if isinstance(got, _Text) else f"{got!r}"
    kernel = attr_class.kernel_type.name
    return RegistrationError(f"{kernel}: implementation {name!r}: {what}: expected {expected}, got {shown}")


def _listed(arguments: Sequence[str]) -> str:
    return f"({', '.join(arguments)})"
