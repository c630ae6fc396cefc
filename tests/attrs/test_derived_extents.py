"""Derived extents in the dispatcher: the same as `derive` gives, in machine code, for all rows that have any."""

import itertools
from typing import Any

import cases
import numpy as np
import pytest
from cases import Row

from jitkernels.attrs.schema.schema_queries import inputs_of, is_everyday
from jitkernels.dispatch.call_memo import CallMemo
from jitkernels.dispatch.derived_extents import Extents, QuasiAffine
from jitkernels.dispatch.operators import Everyday, _dispatch_table, _holder
from jitkernels.errors import AttrError, JitKernelsError
from jitkernels.runtime.abi_layout import MAX_EXTENT_TERMS, DerivedSpec
from jitkernels.tools import testing

DERIVED = [p for p in cases.every_row() if p.values[0].derived and is_everyday(p.values[0])]
ROWS = [p for p in DERIVED if _dispatch_table(p.values[0]) is not None]


def flags_of(row: Row) -> list[str]:
    fields = row.known_fields()
    return [name for name in row.options if name in fields and fields[name].kind == "bool"]


def integers_of(row: Row) -> list[str]:
    return [name for name, field in row.known_fields().items() if field.is_integer]


def evaluated(words: list[int], values: dict[str, int], symbols: list[str], flags: list[str]) -> int:
    """What the dispatcher computes."""
    total = words[DerivedSpec.CONSTANT]
    for t in range(words[DerivedSpec.COUNT]):
        coefficient, symbol, factor = words[DerivedSpec.TERMS + 3 * t :][:3]
        total += coefficient * values[flags[factor - 1] if factor else symbols[symbol]]
    return max(total // words[DerivedSpec.DIVISOR] + words[DerivedSpec.MORE], words[DerivedSpec.LEAST])


def test_which_rows_have_a_table() -> None:
    """Those whose options are numbers and flags; pairs of ints are left to the memo of calls."""
    named = {param.values[0].kernel_type.name for param in ROWS}
    assert {"FFT_R2C", "FFT_C2R", "LSTM_PACKED", "GRU_PACKED"} <= named
    for param in DERIVED:
        row = param.values[0]
        kinds = {row.known_fields()[name].kind for name in row.options}
        assert (row.kernel_type.name in named) == ("custom" not in kinds), row


@pytest.mark.parametrize("row", ROWS)
def test_expressions_are_those_of_derive(row: Row) -> None:
    """For small and large extents and all flags; where a condition fails Python serves the call."""
    symbols, flags, checked = integers_of(row), flags_of(row), 0
    forms = Extents(row, symbols, flags).words({name: (i + 1, False) for i, name in enumerate(flags)})
    for sizes in itertools.product((0, 1, 2, 15, 16, 17, 1000, 1 << 40), repeat=len(symbols)):
        for chosen in itertools.product((False, True), repeat=len(flags)):
            values: dict[str, Any] = dict(zip((*symbols, *flags), (*sizes, *chosen), strict=True))
            found = [evaluated(words, values, symbols, flags) for words in forms]
            if all(value >= 0 for value, words in zip(found, forms, strict=True) if words[0] < 0):
                derived = row.derive(values)
                assert [f for f, w in zip(found, forms, strict=True) if w[0] >= 0] == [derived[n] for n in row.derived]
                checked += 1
    assert checked > 4


@pytest.mark.parametrize("row", ROWS)
def test_other_sizes_of_a_class_need_no_python(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each case of the sweep twice, then with one leading row more where there are leading dimensions."""
    function = _holder(row.kernel_type.name.lower())
    served = []
    plain = Everyday.call

    def counted(holder: Any, *arguments: Any, **named: Any) -> Any:
        served.append(holder)
        return plain(holder, *arguments, **named)

    monkeypatch.setattr(Everyday, "call", counted)
    monkeypatch.setattr(CallMemo, "call", lambda *_: pytest.fail("the function has a dispatch table"))
    for case in testing.ci_cases(row):
        attr = case.attr
        arrays = [
            array.as_declared(a) for array, a in zip(attr.signature().arrays, attr.signature().sample(), strict=True)
        ]
        names = [array.name for array in attr.signature().arrays]
        given = {a.name: arrays[names.index(a.name)] for a in inputs_of(row) if a.name in names}
        named = {name: getattr(attr, name) for name in row.options}
        first = function.callable(**given, **named)
        before = len(served)
        for _ in range(2):
            again = function.callable(**given, **named)
            pairs = zip(*(r if isinstance(r, tuple) else (r,) for r in (first, again)), strict=True)
            assert all(one.shape == other.shape and one.tobytes() == other.tobytes() for one, other in pairs)
        assert len(served) == before, case.name
        shapes = [array.shape for array in attr.signature().outputs]
        assert [r.shape for r in (first if isinstance(first, tuple) else (first,))] == shapes


def test_derived_extents_of_inputs_are_checked() -> None:
    """A packed matrix of too many panels is refused by the error of Python, after calls that were well."""
    for name in ("lstm_packed", "gru_packed"):
        row = _holder(name).schema
        attr: Any = next(case.attr for case in testing.ci_cases(row))
        inputs = {a.name: x for a, x in zip(attr.signature().arrays, attr.signature().sample(), strict=True)}
        given = {a.name: inputs[a.name] for a in inputs_of(row) if a.name in inputs}
        for _ in range(3):
            _holder(name).callable(**given, hidden=attr.hidden)
        given["w_hh"] = np.concatenate([given["w_hh"]] * 2)
        given["w_ih"] = np.concatenate([given["w_ih"]] * 2)
        with pytest.raises(JitKernelsError, match="w_ih: expected shape"):
            _holder(name).callable(**given, hidden=attr.hidden)


def test_quasi_affine_expressions() -> None:
    signs: list[QuasiAffine] = []
    n, m = (QuasiAffine(signs, {name: 1}) for name in "nm")
    form = 7 - (2 * n - m * 3 + 4) + n
    assert (form.terms, form.constant) == ({"n": -1, "m": 3}, 3)
    assert max((n + 1) // 2 - 3, 0) is not None
    assert len(signs) == 1
    assert (n + 15) // 16 > 2
    assert (n - 3).at_least(2).words(0, ["n"], {})[DerivedSpec.LEAST] == 2
    words = ((n + 15) // 16 + 1).words(1, ["n"], {})
    assert words[: DerivedSpec.TERMS] == [1, 15, 16, 1, -1, 1]
    assert n.words(0, [], {"n": (4, True)})[: DerivedSpec.TERMS + 3] == [0, 1, 1, 0, -1, 1, -1, 0, 4]


@pytest.mark.parametrize(
    "form",
    [
        lambda n, m: n * m,
        lambda n, m: n // m,
        lambda n, _: n // 2 // 2,
        lambda n, _: n // 2 * 2,
        lambda n, m: n // 2 + m // 2,
        lambda n, _: n // -2,
        lambda n, _: n + 0.5,
        lambda n, _: (n // 2).at_least(0),
        lambda n, _: n.at_least(0) + 1,
        lambda n, m: m + n.at_least(0),
        lambda n, _: 1 if n == 3 else 2,
        lambda n, _: 1 if n else 2,
    ],
)
def test_other_expressions_are_refused(form: Any) -> None:
    signs: list[QuasiAffine] = []
    with pytest.raises(ValueError, match=r"quotient|derived from|equality|condition|maximum"):
        form(QuasiAffine(signs, {"n": 1}), QuasiAffine(signs, {"m": 1}))


def test_rows_that_cannot_be_traced_have_no_table() -> None:
    """An error in `derive`, other fields, and more terms than a table holds."""
    names = [f"n{i}" for i in range(MAX_EXTENT_TERMS + 1)]

    class Raises:
        derived, one_more = ("n",), ()

        @classmethod
        def derive(cls, fields: Any) -> Any:
            if fields["size"] >= 0:
                raise AttrError("too large")
            return {"n": 0}

    class Reads:
        derived, one_more = ("n",), ()

        @classmethod
        def derive(cls, fields: Any) -> Any:
            return {"n": fields["padding"][0]}

    class Sums:
        derived, one_more = ("n",), ()

        @classmethod
        def derive(cls, fields: Any) -> Any:
            return {"n": sum(fields[name] for name in names)}

    for schema in (Raises, Reads):
        with pytest.raises(ValueError, match="derived from"):
            Extents(schema, ["size"], [])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="terms"):
        Extents(Sums, names, []).words({})  # type: ignore[arg-type]
