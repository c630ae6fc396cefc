"""Mistakes of kernel authors: errors name the kernel, the implementation, the argument and the cure."""

from collections.abc import Callable
from typing import Any

import pytest

import jitkernels as jk
from jitkernels.attrs.schema.registry import implementation, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.dispatch.kernel import Kernel
from jitkernels.errors import NotUsableError, RegistrationError


def built(attr: Any, name: str = "mine") -> Kernel:
    """The kernel of an implementation in its first variant."""
    found = implementation(type(attr), name)
    return Kernel(attr, found, found.variants(attr)[0])


def said(error: "pytest.ExceptionInfo[RegistrationError]") -> str:
    text = str(error.value)
    assert text.startswith("TOY_TAKE: implementation 'mine': ")
    assert "expected" in text
    assert ", got " in text
    return text


@pytest.mark.parametrize("answer", [None, 1, 0, [], object(), b"no"])
def test_can_be_used_returns_an_invalid_value(toy: Any, answer: object) -> None:
    implements(toy.ToyAttr, name="mine", can_be_used=lambda attr: answer)(toy.right)  # type: ignore[arg-type, return-value]
    with pytest.raises(RegistrationError) as error:
        implementation(toy.ToyAttr, "mine").reason_against(toy.ToyAttr(n=3))
    assert "can_be_used for ToyAttr(n=3" in said(error)
    assert "True, or the reason why not as a string" in said(error)
    assert said(error).endswith(f"got {answer!r}")


def test_can_be_used_raises(toy: Any) -> None:
    """Such as a missing library: the reason is recorded, and other implementations are unaffected."""

    def usable(attr: Any) -> bool:
        import no_such_module_anywhere  # type: ignore[import-not-found]

        return bool(no_such_module_anywhere)

    implements(toy.ToyAttr, name="mine", can_be_used=usable)(toy.right)
    attr = toy.ToyAttr(n=3)
    assert list(jk.get_all_candidates(attr)) == ["refer"]
    with jk.use(toy_take="mine"), pytest.raises(NotUsableError, match="can_be_used raised ModuleNotFoundError: No mod"):
        jk.KernelFuncs.cache().at(attr)


@pytest.mark.parametrize(
    ("variants", "expected"),
    [
        ([], "at least one variant, such as [{}]"),
        (None, "at least one variant, such as [{}]"),
        ({"parallel": True}, "at least one variant, such as [{}]"),
        ([None], "dictionaries of keyword arguments"),
        ([{"width": 8}], "parameters of the function, which are none"),
    ],
)
def test_invalid_variants(toy: Any, variants: Any, expected: str) -> None:
    implements(toy.ToyAttr, name="mine", variants=lambda attr: variants)(toy.right)
    with pytest.raises(RegistrationError) as error:
        built(toy.ToyAttr(n=3))
    assert "variants(ToyAttr(n=3" in said(error)
    assert expected in said(error)


def test_variants_of_other_types_are_rejected(toy: Any) -> None:
    def mine(attr: Any, tile: Any) -> Any:
        return toy.right(attr)

    implements(toy.ToyAttr, name="mine", variants=lambda attr: [{"tile": (4, 8)}])(mine)
    with pytest.raises(RegistrationError) as error:
        built(toy.ToyAttr(n=3))
    assert "an int, float, str or bool for tile" in said(error)


@pytest.mark.parametrize("made", [None, "x = 1", lambda x: None, 3])
def test_functions_without_a_source_are_rejected(toy: Any, made: object) -> None:
    implements(toy.ToyAttr, name="mine")(lambda attr: made)
    with pytest.raises(RegistrationError) as error:
        built(toy.ToyAttr(n=3))
    assert "the function for ToyAttr(n=3" in said(error)
    assert "a source such as a RangeKernel or a CSource" in said(error)


def test_arguments_of_another_function(toy: Any) -> None:
    def mine(attr: Any) -> Any:
        return RangeKernel("mine", ("float*", "int64"), too_few, extent=1)

    implements(toy.ToyAttr, name="mine")(mine)
    with pytest.raises(RegistrationError) as error:
        built(toy.ToyAttr(n=3))
    listed = ", ".join(toy.ToyAttr(n=3).signature().c_arguments)
    assert f"attr.signature().c_arguments, which are ({listed})" in said(error)
    assert said(error).endswith("got (float*, int64)")


def too_few(x: Any, y: Any, n: int, begin: int, end: int) -> None: ...
def too_many(x: Any, table: Any, ids: Any, y: Any, n: int, m: int, more: int, begin: int, end: int) -> None: ...


@pytest.mark.parametrize("body", [too_few, too_many])
def test_body_of_wrong_arity(toy: Any, body: Callable[..., None]) -> None:
    implements(toy.ToyAttr, name="mine")(lambda attr: toy.nest(attr, body))
    with pytest.raises(RegistrationError) as error:
        built(toy.ToyAttr(n=3))
    assert "the body of the range kernel for ToyAttr(n=3" in said(error)
    assert "the 8 parameters (x, table, ids, y, n, m, begin, end)" in said(error)


def test_reference_of_wrong_arity(toy: Any) -> None:
    from jitkernels.attrs.schema import registry

    registry._implementations[toy.ToyAttr].pop("refer")
    implements(toy.ToyAttr, name="refer")(lambda attr, x, y: None)
    with pytest.raises(
        RegistrationError, match=r"'refer': the function .*expected the parameters \(attr, x, table, ids"
    ):
        built(toy.ToyAttr(n=3), "refer")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"can_be_used": True}, "can_be_used: expected a function of an attr, got True"),
        ({"variants": [{}]}, r"variants: expected a function of an attr, got \[\{\}\]"),
        ({"name": "a,b"}, r"name: expected letters, digits and any of _.+-, got 'a,b'"),
        ({"name": "*"}, "name: expected"),
        ({"name": "a=b"}, "name: expected"),
        ({"name": "../x"}, "name: expected"),
        ({"name": 3}, "name: expected"),
    ],
)
def test_options_of_the_decorator(toy: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(RegistrationError, match=rf"@implements\(ToyAttr\).*{message}"):
        implements(toy.ToyAttr, **{"name": "mine", **options})(toy.right)


@pytest.mark.parametrize("wrong", [None, "vmul", 3, object(), int])
def test_no_row_at_all(wrong: Any) -> None:
    with pytest.raises(RegistrationError, match=r"@implements\(.*expected the class of a schema"):
        implements(wrong, name="mine")(lambda attr: None)


def test_duplicate_names_report_the_other_module(toy: Any) -> None:
    with pytest.raises(RegistrationError, match="already has an implementation 'refer', from toy: give the one of"):
        implements(toy.ToyAttr, name="refer")(lambda attr, *arrays: None)
