"""What compiled functions report: fusion, fallbacks and their reasons, pictures, statistics."""

import xml.dom.minidom
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jitted import array

import jitkernels as jk
from jitkernels.tools.cli import function as command

OFFSET = np.ones(4)


def softmax(x: Any, scale: float = 1.0) -> Any:
    e = np.exp((x - x.max(axis=-1, keepdims=True)) * scale + OFFSET)
    return e / e.sum(axis=-1, keepdims=True)


def mixed(x: Any, layers: list[Any]) -> Any:
    y = np.argpartition(x @ layers[0], 2, axis=0) * 2
    return y, np.linalg.pinv(y)


def test_fused_kernels_are_reported() -> None:
    explained = jk.jit(softmax).explain(array(3, 4))
    assert explained.kernels == 1
    assert explained.bytes_after < explained.bytes_before / 3
    text = str(explained)
    for part in ("1 kernel, 0 calls of NumPy", "exp", "max over 1", "x: float64[n1, n0]", "scale: float64[]", "OFFSET"):
        assert part in text, text
    assert not explained.reason


def test_fallbacks_are_reported() -> None:
    text = str(jk.jit(mixed).explain(array(12, 12), [array(12, 12, seed=2)]))
    assert "2 calls of NumPy" in text
    assert "NumPy: numpy.argpartition" in text
    assert "numpy.pinv is computed by NumPy, for these shapes" in text
    assert "layers[0]" in text
    assert str(jk.jit(np.trim_zeros).explain(array(4))).endswith("falls back to NumPy: numpy.trim_zeros")
    added = jk.jit(lambda x, i: np.fmax.at(np.stack([x, x]), (i, i), 1.0))
    reason = str(added.explain(array(4), np.arange(2)))
    assert f"falls back to NumPy: numpy.fmax.at of 2 dimensions ({__file__}:" in reason
    assert "dtype complex256" in jk.jit(lambda x: x + 1).explain(array(4).astype(np.clongdouble)).reason
    with pytest.raises(jk.NotUsableError, match=r"falls back to NumPy: numpy\.trim_zeros"):
        jk.jit(np.trim_zeros).graph(array(4))


def test_explain_does_not_run_the_function() -> None:
    def writing(x: Any) -> None:
        x += 1

    x = np.zeros(3)
    compiled = jk.jit(writing)
    assert compiled.explain(x).kernels == 1
    compiled.graph(x)
    assert not x.any()


def test_without_arguments_all_that_is_compiled_is_explained() -> None:
    """A call without arguments that the function would refuse is no call to explain."""
    compiled = jk.jit(softmax)
    nothing = compiled.explain()
    assert str(nothing).startswith(
        "softmax: no specializations compiled so far\n  explain(x, scale) with the arguments"
    )
    assert "falls back" not in str(nothing)
    assert (nothing.specializations, nothing.kernels, compiled.stats().compiles) == ((), 0, 0)
    for dtype in ("f8", "f4"):
        compiled(array(3, 4).astype(dtype))
    explained = compiled.explain()
    assert explained.specializations is not None
    assert [str(part) for part in explained.specializations] == [
        str(compiled.explain(array(3, 4).astype(dtype))) for dtype in ("f8", "f4")
    ]
    assert explained.kernels == sum(part.kernels for part in explained.specializations) == 2
    assert explained.bytes_after == sum(part.bytes_after for part in explained.specializations)
    assert str(explained).startswith("softmax: 2 specializations compiled so far\n  softmax for n0=4, n1=3: 1 kernel")
    assert "x: float32[n1, n0]" in str(explained)
    assert compiled.stats().compiles == 2
    compiled.release()
    assert compiled.explain().specializations == ()


def test_fallbacks_are_explained_without_arguments() -> None:
    trim_zeros = jk.jit(np.trim_zeros)
    for _ in range(2):
        trim_zeros(array(4))
    text = str(trim_zeros.explain())
    assert "1 specialization compiled so far" in text
    assert "trim_zeros for n0=4: falls back to NumPy: numpy.trim_zeros" in text


def test_a_call_without_arguments_is_explained_where_there_is_one() -> None:
    for function in (lambda: np.ones(3) + 1, lambda n=3: np.ones(n) + 1):
        explained = jk.jit(function).explain()
        assert explained.specializations is None
        assert "0 calls of NumPy" in str(explained)
    wrong = str(jk.jit(mixed).explain(array(4, 4)))  # type: ignore[call-overload]
    assert "the arguments do not fit the parameters: missing a required argument: 'layers'" in wrong


def test_derivatives_are_explained_without_arguments() -> None:
    gradient = jk.grad(lambda x: (x * x).sum())
    assert gradient.explain().specializations == ()
    gradient(array(4))
    assert "1 specialization compiled so far" in str(gradient.explain())


@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_pictures(backend: str) -> None:
    for function, arguments in ((softmax, (array(3, 4),)), (mixed, (array(4, 4), [array(4, 4)]))):
        drawing = jk.jit(function, backend=backend).graph(*arguments)
        picture = xml.dom.minidom.parseString(drawing._repr_svg_())
        texts = [one.firstChild.data for one in picture.getElementsByTagName("text")]  # type: ignore[union-attr]
        assert any("result" in text for text in texts)
        assert len(picture.getElementsByTagName("path")) > 3
        assert str(drawing) == drawing._repr_svg_()


def test_numbers() -> None:
    compiled = jk.jit(softmax, profile=True)
    assert compiled.stats().compiles == 0
    x = array(3, 4)
    for _ in range(5):
        compiled(x)
    compiled(x.astype("f4"))
    stats = compiled.stats()
    assert (stats.compiles, stats.kernels, stats.launches, stats.cache_hits) == (2, 2, 6, 4)
    assert stats.compile_seconds > 0
    assert stats.bytes_moved == 5 * compiled.explain(x).bytes_after + compiled.explain(x.astype("f4")).bytes_after
    compiled.release()
    assert compiled.stats().compiles == 0


def test_levels_fuse_or_do_not() -> None:
    assert jk.jit(softmax, opt_level=0).explain(array(3, 4)).kernels > 3
    assert jk.jit(softmax, opt_level=3).explain(array(3, 4)).kernels == 1


def test_settings_choose_the_back_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITKERNELS_BACKEND", "interpreter")
    monkeypatch.setenv("JITKERNELS_OPT_LEVEL", "1")
    assert jk.JitConfig().backend == "interpreter"
    assert jk.JitConfig().opt_level == 1
    assert jk.jit(softmax).explain(array(3, 4)).kernels == 0
    monkeypatch.setenv("JITKERNELS_OPT_LEVEL", "4")
    with pytest.raises(jk.UnknownNameError, match="JITKERNELS_OPT_LEVEL: expected an int from -3 to 3"):
        jk.jit(softmax)


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "some_functions.py"
    file.write_text(
        "import numpy as np\ndef norm(x, axis=0, scale=1.0):\n    return np.sqrt((x * x).sum(axis=axis)) * scale\n"
    )
    assert command.run(f"{file}:norm", ["float32[128,256]", "scale=2.5"]) == 0
    said = capsys.readouterr().out
    assert "norm for n0=128, n1=256: 1 kernel, 0 calls of NumPy" in said
    assert "x: float32[n0, n1]" in said
    with pytest.raises(jk.UnknownNameError, match="nothing"):
        command.run(f"{file}:nothing", [])
    with pytest.raises(jk.UnknownNameError, match="there is no file"):
        command.run(f"{tmp_path}/other.py:norm", [])
    with pytest.raises(jk.ArgumentError, match="expected an array such as"):
        command.run(f"{file}:norm", ["float[3"])
