"""Cache keys of range kernels and segments: all that decides the code is in their text."""

from typing import Any

import numpy as np
import pytest
from translated import Function

from jitkernels.codegen import llvm_backend, llvm_passes
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import External, IRFunction, inlined, noinline, symbol_of
from jitkernels.compiler.codegen.core import module_text
from jitkernels.errors import BuildError
from jitkernels.runtime.loading.compiled_code import code_of


def with_constant(value: Any) -> Function:
    def body(p: Any, n: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            p[i] = value

    return body


def with_dtype(number: Any) -> Function:
    def body(p: Any, n: int, begin: int, end: int) -> None:
        p[0] = number(n)

    return body


def with_call(function: Any) -> Function:
    def body(p: Any, n: int, begin: int, end: int) -> None:
        p[0] = function(p[1])

    return body


def with_np(np: Any) -> Function:
    def body(p: Any, n: int, begin: int, end: int) -> None:
        p[0] = np

    return body


def marked(*flags: str, other: bool = False) -> Function:
    if other:

        @inlined(*flags)
        def function(a: Any) -> Any:
            return a * a

    else:

        @inlined(*flags)
        def function(a: Any) -> Any:
            return a + a

    return function


def marked_noinline() -> Function:
    @noinline()
    def function(a: Any) -> Any:
        return a + a

    return function


def calling(function: Any) -> Function:
    """A marked function that calls another."""

    @inlined()
    def outer(a: Any) -> Any:
        return function(a)

    return outer


def external(symbol: str, result: str = "float64", argument: str = "float64") -> External:
    return External(symbol, result, (argument,), lambda: 0)


def in_ir(text: str) -> IRFunction:
    return IRFunction("jk_ir", "float64", ("float64",), text)


DIFFERENT: dict[str, list[Function]] = {
    "constants": [
        with_constant(value)
        for value in (
            *(0, 1, -1, 0.0, -0.0, 1.0, 0.1, float("nan"), float("inf"), True, False, 2**62, 2**62 + 1),
            *(dtype(1) for dtype in (np.int8, np.int64, np.float16, np.float32, np.float64, np.bool_)),
            *(np.float64(0.1), np.float32(0.1), np.float64(-0.0), np.float64("nan"), np.int64(2), np.bool_(False)),
        )
    ],
    "np": [with_np(1), with_np(2)],
    "dtypes": [with_dtype(kind) for kind in (np.int8, np.int64, np.float16, np.float32, np.float64, np.bool_)],
    "calls": [
        with_call(function)
        for function in (
            *(
                marked(),
                marked("contract"),
                marked("reassoc"),
                marked("reassoc", "contract"),
                marked(other=True),
                marked_noinline(),
            ),
            *(calling(marked()), calling(marked("contract")), calling(calling(marked())), calling(marked(other=True))),
            *(external("jk_a"), external("jk_b"), external("jk_a", "float32"), external("jk_a", "float64", "float32")),
            *(calling(external("jk_a")), in_ir("one"), in_ir("other"), calling(in_ir("one"))),
        )
    ],
}


@pytest.mark.parametrize("kind", DIFFERENT)
def test_different_code_has_a_different_key(kind: str) -> None:
    nests = [RangeKernel("key", ("float64*", "int64"), body, extent=1) for body in DIFFERENT[kind]]
    assert len({nest.text for nest in nests}) == len(nests)
    assert len({id(code_of(nest)) for nest in nests}) == len(nests)


def test_names_of_other_scopes_have_other_keys() -> None:
    """The same text in two modules, each of which defines another of two names."""
    text = "def body(p, n, begin, end):\n    p[0] = max(n, 1) + min(n, 2)\n"
    code = compile(text, "<two modules>", "exec")
    found = []
    for name in ("max", "min"):
        scope = {name: function_of_two}
        exec(code, scope)
        found.append(code_of(RangeKernel("key", ("float64*", "int64"), scope["body"], extent=1)))
    assert found[0] is not found[1]


@inlined()
def function_of_two(a: Any, b: Any) -> Any:
    return a - b


def test_a_name_without_a_value_is_a_build_error() -> None:
    def body(p: Any, n: int, begin: int, end: int) -> None:
        p[0] = late

    with pytest.raises(BuildError, match="has no value yet"):
        _ = code_of(RangeKernel("key", ("float64*", "int64"), body, extent=1)).address
    late = 1


def test_keys_ignore_annotations_docstrings_and_closures() -> None:
    """Equal functions of different calls of their maker share a key; so does one with other annotations."""

    def body(p: float, n: "int", begin: Any, end: Any) -> int:  # type: ignore[return]
        """Says the same."""
        for i in range(begin, end):
            p[i] = value  # type: ignore[index]

    value = 1
    texts = {
        RangeKernel("key", ("float64*", "int64"), one, extent=1).text
        for one in (with_constant(1), with_constant(1), body)
    }
    assert len(texts) == 1


def test_flags_decide_the_key_of_a_body_that_is_called_too() -> None:
    def nest(*flags: str) -> RangeKernel:
        both = marked(*flags)

        def check(a: Any) -> int:
            return int(both(a) > 0)

        return RangeKernel("key", ("float64",), both, extent=0, check=check)

    assert nest("contract").text != nest("reassoc").text


def test_a_symbol_has_one_meaning_in_a_nest() -> None:
    one: Any = external("jk_a")
    other: Any = external("jk_a", "float32")

    def body(p: Any, n: int, begin: int, end: int) -> None:
        p[0] = one(p[0]) + other(p[0])

    with pytest.raises(BuildError, match="two functions of a range kernel are called jk_a"):
        RangeKernel("key", ("float64*", "int64"), body, extent=1).text  # noqa: B018


SEGMENT = "define i64 @entry(ptr %frame) nounwind {\n  ret i64 0\n}\n"


def test_segment_keys_contain_target_and_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One text has different keys for other vector widths, levels and pass lists."""
    made = [module_text.module_source("one", SEGMENT, size, (), level) for size in (32, 64) for level in (0, 3)]
    ran = []

    def run(names: Any, *_: Any) -> None:
        ran.append(names)

    monkeypatch.setattr(llvm_backend, "_run", run)
    for names in (llvm_passes.INLINING_PASSES, ("sroa",)):
        monkeypatch.setattr(llvm_passes, "INLINING_PASSES", names)
        made.append(module_text.module_source("one", SEGMENT, 64, (), 3))
        made[-1].object_code("jk_one")
        assert ran.pop() == names, "those run that the text tells of"
        assert f"; {' '.join(names)} without strength reduction, vectors" in made[-1].text
    assert len({symbol_of(one) for one in made}) == len(made) - 1, "the last but one is as one before"
