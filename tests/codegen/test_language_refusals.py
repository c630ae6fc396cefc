"""What the kernel language does not support is refused, with its location."""

import functools
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from translated import Function, nothing, written

from jitkernels.codegen.module_link import parsed
from jitkernels.codegen.python import kernel_module
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import External, Module
from jitkernels.errors import BuildError
from jitkernels.runtime.loading import loader

pytestmark = pytest.mark.per_push

REFUSED = {
    "unknown = missing": "missing has no value.*: missing",
    "t = p[0] + later\nlater = 1": "later has no value.*: later",
    "t = unmarked(n)": r"expected a number.*@inlined\(\), got unmarked = function",
    "t = len(n)": r"len is no element type and no function of the language.*: len\(n\)",
    "t = np.sum(n)": r"np.sum is no element type and no function.*: np.sum\(n\)",
    "t = np.complex64(n)": r"np.complex64 is no element type.*: np.complex64\(n\)",
    "t = np.pi": r"not in the language: np.pi",
    "t = text": "expected a number.*got text = str 'abc'",
    "t = listed[0]": "expected a number.*got listed = list",
    "t = COMPLEX": "expected a number.*got COMPLEX = complex64",
    "t = one(n, n)": r"expected 1 arguments, got 2: one\(n, n\)",
    "t = one()": r"expected 1 arguments, got 0: one\(\)",
    "t = one(a=n)": r"not in the language: one\(a=n\)",
    "t = one(*n)": r"not in the language: \*n",
    "t = one((n, n))": r"an argument that is \(int64, int64\): expected one value: one\(\(n, n\)\)",
    "t = again(n)": r"again .*line 11\): a function that calls itself: again\(a\)",
    "t = defaults(n, n)": "defaults .*line 15.*: expected arguments without '\\*', '/' and default: 3",
    "t = gather(n)": r"expected 0 arguments, got 1: gather\(n\)",
    "t = gather()": "gather .*: expected arguments without.*: rest",
    "t = named()": "named .*: expected arguments without.*: key",
    "t = odd(n)": r"odd .*has the flag 'quick': expected some of nnan",
    "t = shortcut(n)": "<lambda> .*line 36.* cannot be read alone: expected a function written with 'def'",
    "n(3)": r"n is a variable, not a function: n\(3\)",
    "n.view(3)": r"3 is no element type.*: n.view\(3\)",
    "t = p.view(np.int64)": r"expected as many bits: p.view\(np.int64\)",
    "t = n.view(np.float32)": r"expected as many bits: n.view\(np.float32\)",
    "t = np.sqrt(n)": r"expected a floating-point number, got int64: np.sqrt\(n\)",
    "t = min(n)": r"min of 1 values: expected two or more: min\(n\)",
    "t = abs(p)": r"expected a number, got float64\*: abs\(p\)",
    "t = offset(p)": r"expected offset\(pointer, elements\).*: offset\(p\)",
    "t = offset(n, 1)": r"expected a pointer to numbers, got int64: offset\(n, 1\)",
    "t = n[0]": r"expected a pointer to numbers, got int64: n\[0\]",
    "t = p[0.5]": r"expected int64, got the number 0.5: 0.5",
    "t = p[p[0]]": r"expected an int, got float64: p\[0\]",
    "t = p[0:1]": r"not in the language: 0:1",
    "t = p[0, 1]": r"expected an int, got \(literal, literal\): \(0, 1\)",
    "n = 0.5": r"n is a variable of one type: expected int64, got the number 0.5: n",
    "t = 1\nt = p[0]": r"t is a variable of one type: expected int64, got float64: t",
    "t = n > 0\nt = 2": r"t is a variable of one type: expected bool, got the number 2: t",
    "t = n + p[0]": r"int64 beside float64: say which is meant, as in .*: n \+ p\[0\]",
    "t = n * 0.5": r"int64 beside 0.5: say which is meant.*: n \* 0.5",
    "t = p[0] if n else n": r"float64 beside int64.*: n$",
    "t = n / n": r"'/' is for floating-point numbers.*: n / n",
    "t = p[0] // 2": r"does not have for float64: p\[0\] // 2",
    "t = p[0] % 2": r"does not have for float64: p\[0\] % 2",
    "t = n ** n": r"does not have for int64; write products, as in x \* x: n \*\* n",
    "t = p[0] ** 2": r"does not have for float64; write products.*: p\[0\] \*\* 2",
    "t = math.sqrt(p[0])": r"got math = module .*; of modules only NumPy's words are known, as in np.sqrt\(x\)",
    "t = math.pi": r"got math = module .*other numbers need names of their own",
    "t = sqrt(p[0])": r"got sqrt = builtin.*; NumPy's is written np.sqrt",
    "t = np.exp(p[0])": r"np.exp is no element type.*which has np.sqrt.*of jitkernels.microkernels.maths: np.exp",
    "t = n @ n": r"does not have for int64: n @ n",
    "t = 1 @ 2": r"an operator that the language does not have: 1 @ 2",
    "t = -(n > 0)": r"does not have for bool: -\(n > 0\)",
    "t = p + 1": r"expected numbers, got float64\* and literal: p \+ 1",
    "t = p == p": r"expected numbers.*: p == p",
    "t = n is n": r"a comparison that is not in the language: n is n",
    "t = n in p": r"a comparison that is not in the language: n in p",
    "t = n and p": r"expected numbers, got int64 and float64\*: n and p",
    "if p:\n    pass": r"expected a condition, got float64\*: p",
    "t = 1 // 0": r"constants that Python refuses \(.*\): 1 // 0",
    "t = 2 ** 9999": r"a constant of too many digits: 2 \*\* 9999",
    "t = (-8) ** 0.5": r"a constant that is complex.*: \(-8\) \*\* 0.5",
    "t = n + 2 ** 63": r"expected int64, got the number 9223372036854775808",
    "t = np.int8(n) + 300": r"expected int8, got the number 300: np.int8\(n\) \+ 300",
    "t = np.uint8(-1)": r"expected uint8, got the number -1: np.uint8\(-1\)",
    "t = np.int64(1e300 * 1e300)": r"expected int64, got the number inf",
    "t = [n]": r"not in the language: \[n\]",
    "t = {n: n}": r"not in the language: \{n: n\}",
    "t = 'abc'": r"not in the language: 'abc'",
    "t = f'{n}'": r"not in the language: f'\{n\}'",
    "t = 1j": r"not in the language: 1j",
    "t = ()": r"not in the language: \(\)",
    "t = (n, n)": r"t would be \(int64, int64\): expected one value: t",
    "t, u = n": r"2 targets for one value\(s\): \(t, u\)",
    "t, u = n, n, n": r"2 targets for 3 value\(s\): \(t, u\)",
    "t, (u, v) = n, (n, n)": r"expected a tuple of single values: \(n, \(n, n\)\)",
    "[t, u] = n, n": r"a target that is not in the language: \[t, u\]",
    "t, *u = n, n": r"a target that is not in the language: \*u",
    "t = u = n": r"not in the language: t = u = n",
    "n.t = 1": r"a target that is not in the language: n.t",
    "n.t += 1": r"a target that is not in the language: n.t \+= 1",
    "t: int": r"not in the language: t: int",
    "t += 1": r"t has no value.*: t",
    "t = lambda: n": r"not in the language: lambda: n",
    "t = [i for i in range(n)]": r"not in the language: \[i for i in range\(n\)\]",
    "t = (n := 3)": r"not in the language: \(n := 3\)",
    "n + 1": r"not in the language: n \+ 1",
    "try:\n    n = 1\nexcept ValueError:\n    pass": "not in the language: try:",
    "with n:\n    pass": "not in the language: with n:",
    "raise n": "not in the language: raise n",
    "assert n": "not in the language: assert n",
    "del n": "not in the language: del n",
    "import os": "not in the language: import os",
    "global t": "not in the language: global t",
    "yield n": r"not in the language: yield n",
    "match n:\n    case 1:\n        pass": "not in the language: match n:",
    "def t():\n    pass": "not in the language: def t",
    "class T:\n    pass": "not in the language: class T:",
    "for i in p:\n    pass": "not in the language: for i in p:",
    "for i, j in range(n):\n    pass": r"not in the language: for i, j in range\(n\):",
    "for i in range(n):\n    pass\nelse:\n    pass": r"not in the language: for i in range\(n\):",
    "for i in range(0, n, 1, 1):\n    pass": r"not in the language: for i in range",
    "for i in range(0, n, 0):\n    pass": r"expected a step that is not 0: for i in range",
    "for i in range(p[0]):\n    pass": r"expected an int, got float64: p\[0\]",
    "for i in vectors(0, n, 3):\n    pass": r"expected lanes that are a constant: a power of two, or 0: for",
    "for i in vectors(0, n, 4):\n    break": r"a loop of vectors cannot be left early: break",
    "for i in vectors(0, n):\n    pass": r"not in the language: for i in vectors",
    "t = vectors(0, n, 4)": r"vectors\(\) only behind 'in': vectors\(0, n, 4\)",
    "while n:\n    n -= 1\nelse:\n    pass": "not in the language: while n:",
    "t = no_result(p)": r"t would be nothing: expected one value: t",
    "return no_result(p)": r"expected a value: return no_result\(p\)",
    "t = no_result(p) if n else no_result(p)": r"expected numbers, got nothing and nothing",
    "return 0.5": r"expected to return nothing, or an int as its status, got float64: return 0.5",
    "return p": r"expected to return nothing, or an int as its status, got float64\*: return p",
    "return n, n": r"expected to return nothing, or an int as its status, got \(int64, int64\): return",
    "return 7": r"expected to return nothing, or the status of what was called, got a number: return 7",
    "return -n if n else 0.5": r"int64 beside 0.5: say which is meant",
    "if n:\n    return n\nreturn n, n": r"as its status, got \(int64, int64\): return \(n, n\)",
    "t = uneven(n)": r"uneven .*expected \(int64, int64\), got one value\(s\): return a",
    "t = unlikely(n)": r"unlikely is no element type and no function",
    "if unlikely(n):\n    pass": r"unlikely is no element type and no function",
    "t = half(n, n)": r"expected 1 arguments, got 2: half\(n, n\)",
    "t = half(p)": r"expected float64, got float64\*: half\(p\)",
}
"""A statement, and what the error says behind function, file and line."""
FUNCTIONS = """def unmarked(a):
    return a
@inlined()
def one(a):
    return a
@inlined()
def no_result(a):
    a[0] = 1
@inlined()
def again(a):
    return again(a) if a else a
def several(a, b):
    return a
@inlined()
def defaults(a, b=3):
    return a
@inlined()
def gather(*rest):
    return 0
@inlined()
def named(*, key):
    return 0
@inlined("quick")
def odd(a):
    return a
@inlined()
def uneven(a):
    if a:
        return a, a
    return a
text = "abc"
listed = [1]
COMPLEX = np.complex64(1)
half = External("jk_no_such", "float64", ("float64",), lambda: 0)
shortcut = inlined()(
    lambda a: a)
"""


def refusal(body: Function, arguments: tuple[str, ...] = ("float64*", "int64")) -> str:
    """What building a range kernel says; whatever else is raised passes."""
    with pytest.raises(BuildError) as caught:
        loader.address_of(RangeKernel("refused", arguments, body, extent=1))
    return str(caught.value)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("statement", REFUSED)
def test_unsupported_code_is_rejected(statement: str, tmp_path: Path) -> None:
    """A BuildError, and nothing else, names function, file, line and expression."""
    lines = statement.splitlines()
    text = f"{FUNCTIONS}def body(p, n, begin, end):\n" + "".join(f"    {line}\n" for line in lines)
    around = {"External": External, "math": math, "sqrt": math.sqrt}
    message = refusal(written(tmp_path / "refused.py", text, **around)["body"])
    assert re.search(REFUSED[statement], message), message
    assert message.count(f"({tmp_path / 'refused.py'}, line ") == 1, message
    if message.startswith("body (") and "takes" not in message:
        place, line = re.escape(str(tmp_path / "refused.py")), text[: text.index("def body")].count("\n")
        found = re.match(rf"body \({place}, line (\d+)\): ", message)
        assert found, message
        assert line + 2 <= int(found[1]) <= line + 1 + len(lines), message


def deep(kind: str, depth: int) -> str:
    """A body that is nested, or long."""
    return {
        "sum": "t = " + " + ".join(["n"] * depth),
        "calls": "t = " + "one(" * 50 + "n" + ")" * 50 + "\n" + "\n".join(["t = one(t)"] * depth),
        "parentheses": f"t = {'-(' * 80}n{')' * 80}",
        "branches": "if n:\n    t = 1\n" + "elif n:\n    t = 2\n" * depth,
        "and": "t = " + " and ".join(["n"] * depth),
        "statements": "\n".join(["p[n] = p[n] + 1"] * depth),
        "blocks": "\n".join(" " * i + "if n:" for i in range(95)) + "\n" + " " * 95 + "n = 1",
    }[kind]


@pytest.mark.parametrize("kind", ["sum", "calls", "parentheses", "branches", "and", "statements", "blocks"])
def test_long_and_deep_bodies(kind: str, tmp_path: Path) -> None:
    """They are built, or rejected by name where Python's own recursion ends."""
    for depth in (50, 900):
        lines = "".join(f"    {line}\n" for line in deep(kind, depth).splitlines())
        body = written(tmp_path / f"deep{depth}.py", f"{FUNCTIONS}def body(p, n):\n{lines}", External=External)["body"]
        program = kernel_module.KernelModule("deep")
        try:
            Module().define("body", body, ())
            program.export("body", body, ("float64*", "int64"), ())
        except BuildError as error:
            said = str(error)
        else:
            said = ""
            parsed("deep", program.text)
        deep_one = re.match(r"body \(.*deep900.py, line \d+\): nested too deeply", said)
        assert not said or (depth == 900 and deep_one), said


def test_callables_without_a_def(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec("def body(p, n, begin, end):\n    p[0] = 1\n", names)
    assert re.search(r"body \(<string>, line 1\): the source of body is not available", refusal(names["body"]))
    shortcut: Any = lambda p, n, begin, end: n  # noqa: E731
    assert re.search(
        r"<lambda> \(.*test_language_refusals.py, line \d+\): .* is not written with 'def'", refusal(shortcut)
    )
    assert "expected a function written with 'def'" in refusal(functools.partial(nothing))
    assert "expected a function written with 'def'" in refusal(print)
    assert re.search(r"body \(.*\) takes 2 arguments \(p, n\), and is called with 4", refusal(no_range()))
    assert re.search(r"uses a name of the function around it that has no value yet", refusal(no_range(late=True)))
    assert re.search(r"with_default \(.*expected arguments without.*: 3", refusal(no_range(default=True)))


def no_range(*, late: bool = False, default: bool = False) -> Function:
    def body(p: Any, n: int) -> None:
        p[0] = 0

    def with_late(p: Any, n: int, begin: int, end: int) -> None:
        p[0] = value

    def with_default(p: Any, n: int, begin: int, end: int = 3) -> None:
        p[0] = 0

    if late:
        return with_late
    value = 1
    return with_default if default else body


ODDITIES = ["n", "p", "p[0]", "p[n]", "1", "0.5", "True", "None", "'a'", "(n, 1)", "one(p)", "one(n)", "no_result(p)"]
ODDITIES += ["np.float32(n)", "np.int8", "np", "offset(p, n)", "pair(n)", "range(n)", "~n", "not p", "COMPLEX", "..."]
FORMS = ["{} + {}", "{} // {}", "{} << {}", "{} < {}", "{} and {}", "({}, {})", "{} if {} else n", "{} < {} < n"]
FORMS += ["min({}, {})", "abs({}) + {}", "np.sqrt({}) + {}", "{}[{}]", "one({})", "({}).view({})", "offset({}, {})"]
FORMS += ["np.copysign({}, {})", "int({}) + {}", "-{}", "~{}", "not {}", "half({})", "vectors({}, {}, 4)", "{}({})"]
PLACES = [
    "t = {}",
    "n = {}",
    "p[0] = {}",
    "p[n] += {}",
    "t, u = {}",
    "return {}",
    "if {}:\n        t = 1",
    "{}",
    "{} = n",
]
PLACES += [
    "for i in range({}):\n        n = i",
    "while {}:\n        n = n - 1",
    "for i in vectors(n, {}, 4):\n        n = 1",
]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_random_syntax_is_rejected_or_compiled(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Any combination is a BuildError, or code that LLVM accepts."""
    text = data.draw(st.sampled_from(PLACES))
    for choices in (FORMS, [*FORMS, *ODDITIES], ODDITIES, ODDITIES):
        while "{}" in text:
            text = text.replace("{}", data.draw(st.sampled_from(choices)).replace("{}", "[]"), 1)
        text = text.replace("[]", "{}")
    text = f"{FUNCTIONS}@inlined()\ndef pair(a):\n    return a, 1\ndef body(p, n):\n    {text}\n"
    place = tmp_path_factory.mktemp("nonsense") / "nonsense.py"
    try:
        body = written(place, text, External=External)["body"]
    except SyntaxError:
        return
    program = kernel_module.KernelModule("nonsense")
    try:
        Module().define("body", body, ())
        program.export("body", body, ("float64*", "int64"), ())
    except BuildError:
        return
    parsed("nonsense", program.text)
