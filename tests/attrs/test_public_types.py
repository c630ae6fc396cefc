"""What type checkers and documentation know of the public interface of the package."""

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import cases
import numpy as np
import pytest
from processes import environment, python

import jitkernels as jk
from jitkernels.attrs.schema.base import KernelAttr, schemas
from jitkernels.dispatch import docstrings
from jitkernels.errors import ArgumentTypeError, UnknownNameError
from jitkernels.tools.docgen import stubs

RIGHT = """\
from functools import partial
from typing import Any
import numpy as np
from numpy.typing import NDArray
import jitkernels as jk

x = np.ones((3, 4), np.float32)
y = jk.softmax(x, axis=-1)
z: float = y.sum()
jk.softmax(x, 0, out=y)
jk.softmax(x, np.int64(0), out=(y,))
jk.softmax([[1.0, 2.0]])
attr = jk.VMulAttr(n=3)
size: int = attr.n
jk.KernelFuncs.cache().at(attr)(x, x, x)
ct, ht = jk.lstm_ctht(np.ones(8), np.ones(2), act_gate="relu", out=(y, y))
pooled = jk.seq_pool(x, pool="mean").shape
with jk.use(implementation="refer", softmax="gen"):
    jk.set_num_threads(jk.get_num_threads())
print(jk.explain(jk.softmax, x, axis=0).winner, jk.explain(attr).rule, jk.__version__)
try:
    jk.softmax(x, axis=9)
except jk.JitKernelsError as error:
    raise jk.errors.ArgumentError(jk.KernelType.VMUL.name) from error

Array = NDArray[np.float64]

@jk.jit
def plus(a: Array, b: Array, scale: float = 1.0) -> Array:
    return a + b * scale

@jk.jit(static_argnames="axis", opt_level=2)
def both(a: Array, axis: int) -> tuple[Array, Array]:
    return a.min(axis=axis), a.max(axis=axis)

def into(a: Array, out: Array) -> float:
    out[:] = a
    return 1.0

class Model:
    @jk.jit
    def forward(self, a: Array) -> Array:
        return a * 2

a = np.ones(3)
c: Array = plus(a, a)
d: Array = plus(a, b=a, scale=2.0, out=a)
plus(a, a, out=None).sum()
low, high = both(a, axis=0)
got: tuple[Array, Array] = both(a, 0, out=(a, a))
one: float = jk.jit(into)(a, out=a)
partial(plus, a)(a, out=a)
Model().forward(a)
compiled: str = str(plus.explain())
text: str = str(plus.explain(a, a)) + plus.graph(a, a)._repr_svg_()
compiles: int = plus.stats().compiles
plus.release()
rounded: Array = jk.jit(lambda x: x + 1, config=jk.JitConfig(opt_level=0))(a)
"""
TYPED = """\
from numpy.typing import NDArray
@jk.jit
def plus(a: NDArray[np.float64], b: float) -> NDArray[np.float64]:
    return a + b
"""
WRONG = {
    "jk.softmx(x)": 'Module has no attribute "softmx"',
    "jk.softmax(x, axs=0)": 'Unexpected keyword argument "axs" for "softmax"',
    "jk.softmax()": 'Missing positional argument "x"',
    "jk.softmax(x, axis='last')": 'Argument "axis" to "softmax" has incompatible type "str"',
    "jk.softmax(x, out=[1.0])": 'Argument "out" to "softmax" has incompatible type',
    "jk.softmax(object())": 'Argument 1 to "softmax" has incompatible type "object"',
    "jk.seq_pool(x, pool='median')": 'Argument "pool" to "seq_pool" has incompatible type',
    "jk.vmul(x)": 'Missing positional argument "y" in call to "vmul"',
    "jk.VMulAttr(m=3)": 'Unexpected keyword argument "m" for "VMulAttr"',
    "jk.VMulAttr()": 'Missing named argument "n" for "VMulAttr"',
    "jk.VMulAttr(n='3')": 'Argument "n" to "VMulAttr" has incompatible type "str"',
    "jk.VMulAttr(n=3).n = 4": 'Property "n" defined in "VMulAttr" is read-only',
    "a: str = jk.softmax(x)": "Incompatible types in assignment",
    "jk.set_num_threads(1.5)": 'Argument 1 to "set_num_threads" has incompatible type "float"',
    "jk.UseAttr": 'Module has no attribute "UseAttr"',
    "plus(x)": 'No overload variant of "__call__" of "JitFunction" matches argument type',
    "plus(x, 'b')": 'No overload variant of "__call__" of "JitFunction" matches argument types',
    "plus(x, 1.0, c=3)": 'No overload variant of "__call__" of "JitFunction" matches argument types',
    "plus(x, 1.0, out=[1.0])": 'No overload variant of "__call__" of "JitFunction" matches argument types',
    "b: str = plus(x, 1.0)": "Incompatible types in assignment",
    "c: str = plus(x, 1.0, out=x)": "Incompatible types in assignment",
    "plus.explain(x)": 'No overload variant of "explain" of "JitFunction" matches argument type',
}


def _where_mypy_looks() -> dict[str, str]:
    """The folder of the package, unless it is installed, where mypy looks by itself and rejects it as MYPYPATH."""
    place = Path(jk.__file__).parents[1]
    return {} if place.name == "site-packages" else {"MYPYPATH": str(place)}


def test_mypy_on_a_user_script(tmp_path: Path) -> None:
    """``mypy --strict`` accepts correct calls and rejects, line by line, wrong ones."""
    (tmp_path / "right.py").write_text(RIGHT)
    start = f"import numpy as np\nimport jitkernels as jk\n\nx = np.ones(3)\n{TYPED}"
    (tmp_path / "wrong.py").write_text(start + "\n".join(WRONG) + "\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent"]
    done = subprocess.run(
        [*command, "--cache-dir", str(tmp_path / "cache"), "--no-error-summary", "right.py", "wrong.py"],
        cwd=tmp_path,
        env=environment() | _where_mypy_looks(),
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert not [line for line in lines if not line.startswith("wrong.py")], done.stdout + done.stderr
    for number, (code, message) in enumerate(WRONG.items(), start.count("\n") + 1):
        found = [line for line in lines if line.startswith(f"wrong.py:{number}: ")]
        assert any(message in line for line in found), (code, found)


def test_stub_has_every_public_name() -> None:
    tree = stubs.text()
    own = [row for row in schemas.values() if row.__module__.startswith("jitkernels.")]
    for name in jk.__all__:
        assert f"import {name} as {name}\n" in tree or f"def {name}(" in tree, name
    assert len(own) == tree.count("Attr as ") - 1, "KernelAttr and the rows, no more"


@pytest.mark.parametrize("row", cases.every_row())
def test_documentation_is_complete(row: type[KernelAttr]) -> None:
    """Formula, every argument with shape and dtype, the result, and the errors."""
    text = docstrings.text_of(row)
    assert text.splitlines()[0] == docstrings.everyday_line(row)
    assert inspect.cleandoc(row.__doc__ or "") in text
    for argument in row.arrays:
        assert f"{argument.name}: (" in text
        assert not argument.dtype or argument.dtype in text
    for option in row.options:
        assert f"\n{option}: " in text
    for error in ("ArgumentError", "ArgumentTypeError", "AttrError"):
        assert issubclass(getattr(jk.errors, error), jk.errors.JitKernelsError)
        assert error in text
    assert ("DataIndexError" in text) == (row.check_data is not KernelAttr.check_data)
    assert max(map(len, text.splitlines()[1:])) <= 140


@pytest.mark.parametrize("row", cases.every_row())
def test_documentation_names_inputs_that_go_together(row: type[KernelAttr]) -> None:
    """Each optional input is documented as such, with the inputs that have to be passed with it."""
    lines = {line.partition(": ")[0]: line for line in docstrings.text_of(row).splitlines()}
    for argument in row.arrays:
        alike = [other for other in row.arrays if other.when == argument.when and other.role == "in"]
        others = [other.name for other in alike if other is not argument]
        end = f"; optional{', together with ' * bool(others)}{' and '.join(others)}"
        if argument.role == "in":
            assert lines[argument.name].endswith(end) == (argument.when is not None)
            assert ("; optional" in lines[argument.name]) == (argument.when is not None)


def test_all_errors_are_exported_with_one_base() -> None:
    """What users catch is an attribute of the package, under one base class."""
    own = {
        name: found
        for name, found in vars(jk.errors).items()
        if isinstance(found, type) and issubclass(found, Exception)
    }
    assert len(own) >= 10
    for name, found in own.items():
        assert getattr(jk, name) is found
        assert name in jk.__all__
        assert issubclass(found, jk.JitKernelsError)


def test_star_import() -> None:
    code = "from jitkernels import *\nprint(softmax([[1.0]]), VMulAttr(n=3).n, use, sorted(dir())[0])"
    assert python(code).startswith("[[1.]] 3 <function use")


@pytest.mark.parametrize("row", cases.every_form())
def test_explain_takes_everyday_calls(row: type[KernelAttr]) -> None:
    """By function or by name, with every argument of the call; ``out`` changes nothing."""
    from test_everyday import example

    _, given = example(row)
    name = row.kernel_type.name.lower()
    attr = row.call(**given).attr
    for what in (getattr(jk, name), name, name.upper()):
        assert jk.explain(what, **given).attr == attr
    assert jk.explain(name, **given, out=np.empty(0)).attr == attr
    assert jk.explain(attr).attr == attr


@pytest.mark.parametrize("wrong", [print, 3, None, jk.use, np.ones(3), jk.VMulAttr, b"softmax", object()])
def test_explain_rejects_other_arguments(wrong: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="expected an attr, an everyday function such as"):
        jk.explain(wrong, np.ones(3))


def test_explain_raises_the_errors_of_the_call() -> None:
    for wrong in ((), (object(),), (np.ones(3), "x"), (np.ones(3), -1, None, None)):
        with pytest.raises(ArgumentTypeError, match="softmax"):
            jk.explain(jk.softmax, *wrong)
    with pytest.raises(UnknownNameError, match="no kernel 'softmx'"):
        jk.explain("softmx", np.ones(3))
    with pytest.raises(ArgumentTypeError, match="expected an attr alone"):
        jk.explain(jk.VMulAttr(n=3), np.ones(3))
