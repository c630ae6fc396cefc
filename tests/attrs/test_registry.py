"""The contract between rows and implementations, and what registration refuses."""

import dataclasses
import inspect
import itertools
import textwrap
from pathlib import Path
from typing import Any

import cases
import pytest
from processes import python

import jitkernels as jk
from jitkernels.attrs.schema import registry
from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.base import cases as named_cases
from jitkernels.attrs.schema.registry import MORE, all_schemas, implementation, implementations, implements
from jitkernels.errors import ArgumentTypeError, AttrError, NotUsableError, RegistrationError, UnknownNameError
from jitkernels.tools import testing

pytestmark = pytest.mark.per_push


@pytest.mark.parametrize("row", cases.every_row())
def test_row_is_complete(row: Any) -> None:
    """Check formula, arguments, tolerance, work, sweep and everyday call: what every reader of rows relies on."""
    assert row.__doc__
    assert "=" in row.__doc__.split("\n")[0] + row.__doc__
    attr = cases.middles(row)[0]
    signature = attr.signature()
    roles = [array.role for array in signature.arrays]
    assert roles == sorted(roles, key=["in", "inout", "out"].index), "inputs come before outputs"
    assert signature.outputs
    assert len({array.name for array in signature.arrays}) == len(signature.arrays)
    assert attr.operations() > 0
    assert attr.tolerance().ulp >= 0
    assert dataclasses.is_dataclass(attr)
    with pytest.raises(dataclasses.FrozenInstanceError):
        attr.dtype = "float64"
    assert callable(row.call)
    assert len(signature.c_arguments) == len(signature.arrays) + len(signature.integers) + len(signature.floats)
    for place, (name, value) in enumerate(signature.integers):
        assert signature.index(name) == len(signature.arrays) + place
        assert isinstance(value, int)


@pytest.mark.parametrize("row", cases.every_row())
def test_integer_inputs_are_checked(row: type[KernelAttr]) -> None:
    """A row that takes indices refuses bad ones; see `testing.check_bad_indices` for its implementations."""
    integers = [a for a in cases.middles(row)[0].signature().inputs if a.dtype == "int64"]
    assert not integers or row.check_data is not KernelAttr.check_data


@pytest.mark.parametrize("row", cases.every_row())
def test_attr_is_a_value(row: type[KernelAttr]) -> None:
    """Attrs are equal, hashable, frozen, and rebuilt from their fields."""
    attr = cases.middles(row)[0]
    again = row(**attr.fields())
    assert attr == again
    assert hash(attr) == hash(again)
    assert attr is not again
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(attr, next(iter(attr.fields())), 1)
    assert row.kernel_type.name in repr(row.kernel_type)
    assert jk.KernelType[row.kernel_type.name] is row.kernel_type


@pytest.mark.parametrize("row", cases.every_row())
def test_fields_are_keyword_only(row: Any) -> None:
    """Missing, unknown and positional fields raise an error that names the class and its fields."""
    fields = cases.middles(row)[0].fields()
    needed = next(p.name for p in inspect.signature(row).parameters.values() if p.default is p.empty)
    for arguments, named in (
        ((), {}),
        ((), {name: value for name, value in fields.items() if name != needed}),
        ((), fields | {"nonsense": 1}),
        (tuple(fields.values()), {}),
        ((1,), fields),
    ):
        with pytest.raises(ArgumentTypeError, match=rf"{row.__name__}: expected {needed}, .*, by name: ") as caught:
            row(*arguments, **named)
        assert all(name in str(caught.value) for name in fields)


def test_errors_of_post_init_are_not_field_errors(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Any) -> None:
        raise TypeError("broken")

    monkeypatch.setattr(toy.ToyAttr, "__post_init__", broken)
    with pytest.raises(TypeError, match=r"^broken$"):
        toy.ToyAttr(n=3)


@pytest.mark.parametrize("row", cases.every_row())
def test_tuning_class_is_idempotent(row: type[KernelAttr]) -> None:
    """The attr measured for another one is its own tuning class, and has the same C arguments."""
    for case in row.sweep():
        measured = case.attr.size_class()
        assert measured.size_class() == measured
        assert measured.signature().c_arguments == case.attr.signature().c_arguments


@pytest.mark.per_push(6)
@pytest.mark.parametrize("row", cases.every_row())
def test_order_of_candidates(row: type[KernelAttr]) -> None:
    """gen, the folders of more in their order, other packages', refer."""
    names = list(implementations(row))
    known = ["gen", *MORE]
    assert names[-1] == "refer"
    assert [name for name in names if name in known] == [name for name in known if name in names]
    attr = cases.middles(row)[0]
    usable = [name for name in names if implementation(row, name).reason_against(attr) is None]
    assert list(jk.get_all_candidates(attr)) == usable


@pytest.mark.parametrize("row", cases.every_row())
def test_generated_and_reference_exist(row: type[KernelAttr]) -> None:
    """Every kernel of this package has both, so that it is fast without any optional library."""
    own = row.__module__.startswith("jitkernels.")
    assert ({"gen", "refer"} if own else {"refer"}) <= set(implementations(row))


@pytest.mark.parametrize(("row", "name"), cases.every_implementation())
def test_implementation_can_be_used(row: type[KernelAttr], name: str) -> None:
    """Every implementation is usable here, or skipped with its reason, which CI does not accept."""
    cases.usable(cases.in_scope(row, name)[0], name)


@pytest.mark.parametrize("row", cases.every_row())
def test_declined_with_a_reason(row: type[KernelAttr]) -> None:
    """An implementation that declines an attr states the reason."""
    for name, found in implementations(row).items():
        for reason in {found.reason_against(case.attr) for case in row.sweep()} - {None}:
            assert isinstance(reason, str), name
            assert len(reason) > 8, name
            assert reason != "can_be_used gave no reason", name


@pytest.mark.parametrize("row", cases.every_row())
def test_all_implementations_have_the_same_c_arguments(row: type[KernelAttr]) -> None:
    """Every C function has the arguments that the row declares, whatever generates it."""
    for name, found in implementations(row).items():
        attr = cases.middle(row, name)
        if found.is_reference:
            given = list(inspect.signature(found.function).parameters.values())
            fixed = len([p for p in given if p.kind is p.POSITIONAL_OR_KEYWORD]) - 1
            assert fixed <= len(attr.signature().arrays)
        elif found.reason_against(attr) is None:
            for variant in found.variants(attr):
                source = found.function(attr, **variant)
                if hasattr(source, "arguments"):
                    assert tuple(source.arguments) == attr.signature().c_arguments, name


@pytest.mark.parametrize("row", cases.every_row())
def test_variants_are_distinct(row: type[KernelAttr]) -> None:
    """No variant is measured twice, there is always a first one, and all fit into a record."""
    for (name, found), case in itertools.product(implementations(row).items(), row.sweep()):
        if found.reason_against(case.attr) is not None:
            continue
        variants = [dict(variant) for variant in found.variants(case.attr)]
        assert variants, name
        assert len({repr(sorted(variant.items())) for variant in variants}) == len(variants), name
        values = [value for variant in variants for value in variant.values()]
        assert all(isinstance(value, int | float | str | bool) for value in values), name


def test_registering_without_reference(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reference may be registered later, but has to exist when implementations are read."""
    monkeypatch.setitem(registry._implementations, toy.ToyAttr, {})
    implements(toy.ToyAttr, name="fast")(toy.right)
    with pytest.raises(
        RegistrationError, match=r"TOY_TAKE has no implementation 'refer': .*@implements\(ToyAttr, name"
    ):
        implementations(toy.ToyAttr)
    implements(toy.ToyAttr, name="refer")(toy.refer)
    assert list(implementations(toy.ToyAttr)) == ["fast", "refer"]


def test_registering_twice(toy: Any) -> None:
    implements(toy.ToyAttr, name="fast")(toy.right)
    implements(toy.ToyAttr, name="fast")(toy.right)  # the same module imported again
    with pytest.raises(RegistrationError, match="already has an implementation 'fast'"):
        implements(toy.ToyAttr, name="fast")(toy.wrong_value)


@pytest.mark.parametrize("given", [3, None, "function"])
def test_what_is_no_function_is_refused(toy: Any, given: Any) -> None:
    with pytest.raises(RegistrationError, match=r"@implements\(ToyAttr\): expected a function, got"):
        implements(toy.ToyAttr, name="other")(given)


def test_registering_for_no_row() -> None:
    class NoRow(KernelAttr):
        """It has no kernel type."""

    with pytest.raises(RegistrationError, match=r"@implements\(NoRow\): expected the class of a schema"):
        implements(NoRow, name="refer")(lambda attr: None)


def test_second_row_of_a_name(toy: Any) -> None:
    with pytest.raises(RegistrationError, match="already has the schema ToyAttr"):
        type("Second", (KernelAttr,), {"__annotations__": {}}, kernel_type="TOY_TAKE")
    for wrong in ("lower", "", "WITH SPACE", "1ST"):
        with pytest.raises(RegistrationError):
            type("Wrong", (KernelAttr,), {"__annotations__": {}}, kernel_type=wrong)


INTERRUPTED = """
import sys
from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.signature import Argument

class InterruptedAttr(KernelAttr, kernel_type="INTERRUPTED"):
    n: int
    dtype: str = "float32"
    arrays = (Argument("x", "out", "n"),)

if "interrupted" not in sys.argv:
    sys.argv.append("interrupted")
    raise KeyboardInterrupt
"""


def test_import_after_an_interrupt(tmp_path: Path) -> None:
    """A schema whose module was interrupted is declared by the next import; the module runs again from the start."""
    (tmp_path / "interrupted.py").write_text(INTERRUPTED)
    code = f"""
    import jitkernels.attrs
    from jitkernels.attrs.schema.base import schemas
    jitkernels.attrs.__path__.append({str(tmp_path)!r})
    try:
        import jitkernels.attrs.interrupted
    except KeyboardInterrupt:
        from jitkernels.attrs.interrupted import InterruptedAttr
        assert InterruptedAttr in schemas.values()
        print(InterruptedAttr(n=3).n)
    """
    assert python(textwrap.dedent(code)) == "3\n"


def test_order_does_not_depend_on_registration(toy: Any) -> None:
    """Whatever the order of registration."""
    for name in ("theirs", "mkl", "gen"):
        implements(toy.ToyAttr, name=name)(toy.right)
    assert list(implementations(toy.ToyAttr)) == ["gen", "mkl", "theirs", "refer"]


def test_unusable_implementations_have_a_reason(toy: Any) -> None:
    """An implementation that cannot be used is no candidate, and says why when it is selected by name."""
    attr = toy.ToyAttr(n=3)
    implements(toy.ToyAttr, name="never", can_be_used=lambda attr: "the moon is full")(toy.right)
    implements(toy.ToyAttr, name="mute", can_be_used=lambda attr: False)(toy.right)
    assert list(jk.get_all_candidates(attr)) == ["refer"]
    with jk.use(toy_take="never"), pytest.raises(NotUsableError, match="the moon is full"):
        jk.KernelFuncs.cache().at(attr)
    assert "the moon is full" in str(jk.explain(attr))
    assert implementation(toy.ToyAttr, "mute").reason_against(attr) == "can_be_used gave no reason"


def test_unknown_names() -> None:
    with pytest.raises(UnknownNameError, match="no kernel 'nonsense'; there are"):
        registry.op_schema("nonsense")
    some = all_schemas()[0]
    with pytest.raises(UnknownNameError, match="has no implementation 'nonsense'; it has"):
        implementation(some, "nonsense")
    with pytest.raises(AttributeError, match="nonsense"):
        jk.nonsense  # type: ignore[attr-defined]  # noqa: B018  # looked up for its error
    with pytest.raises(AttributeError):
        jk.KernelType.NONSENSE  # noqa: B018  # as above


def test_too_large_arrays_are_rejected(toy: Any) -> None:
    with pytest.raises(AttrError, match="would have"):
        toy.ToyAttr(n=1 << 61)


def test_sampling_is_reproducible(toy: Any) -> None:
    one, same, other = (
        b"".join(array.tobytes() for array in toy.ToyAttr(n=100).signature().sample(seed)) for seed in (1, 1, 2)
    )
    assert one == same
    assert one != other


def test_cases_are_tagged(toy: Any) -> None:
    attrs = [toy.ToyAttr(n=n) for n in (1, 2, 3)]
    found = {case.name: sorted(case.tags) for case in named_cases(attrs, ci=attrs[1:2])}
    assert found == {"n2-m5-f32": ["ci", "full"], "n1-m5-f32": ["full"], "n3-m5-f32": ["full"]}
    assert [case.attr for case in testing.ci_cases(toy.ToyAttr)] == [case.attr for case in toy.ToyAttr.sweep()]
