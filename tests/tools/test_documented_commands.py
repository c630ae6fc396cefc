"""Every command that the README and the docs show, and every named benchmark, runs once, as small as it can be.

Commands are collected from the pages: from fenced blocks, and from lines of text and tables that name one. Figures of
tiny runs mean nothing, so that promises which they break do not count; errors do.
"""

import importlib.util
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.attrs.schema.registry import all_schemas
from jitkernels.benchmarks.peers import ordinary_calls_of
from jitkernels.benchmarks.suite import TINY_TAG, Settings, benchmarks
from jitkernels.codegen import kernel_archive
from jitkernels.core import cache_dirs
from jitkernels.tools.cli import bench, cache, main, tune

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
SPAN = re.compile(r"`jitkernels ([^`]+)`")
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
MEANT = {"FILES...": "text.txt other.txt", "FILE": "written", "KERNEL": "vmul", "field=value...": "n=8"}
"""What users write instead of such words."""
SECONDS = "1e-5"


def commands_of(page: str) -> Iterator[str]:
    """What a page has its readers type behind ``jitkernels``."""
    for language, block in FENCED.findall(page):
        for line in block.splitlines() if language == "sh" else ():
            for command in line.split(" #")[0].split("&&"):
                words = command.split()
                if words and words[0].endswith("jitkernels"):
                    yield " ".join(words[1:])
    yield from SPAN.findall(FENCED.sub("", page))


def tiny(command: str) -> tuple[str, ...]:
    """The words of a command, made quick where it measures."""
    words = [meant for word in shlex.split(command) for meant in MEANT.get(word, word).split()]
    if words[0] == "compare":
        return (*words, "--seconds", SECONDS)
    if words[0] not in ("bench", "tune"):
        return tuple(words)
    for option in ("--tag", "--threads", "--batch"):
        if option in words:
            at = words.index(option)
            del words[at : at + 2]
    if words[0] == "bench":
        return (*words, "--tag", TINY_TAG, "--seconds", SECONDS, "--threads", "1")
    return tuple(words) if "--export" in words else (*words, "--tag", "ci", "--seconds", SECONDS)


def every_command() -> list[tuple[str, ...]]:
    """The commands of all pages and ``bench NAME`` of every benchmark, each once."""
    shown = [tiny(command) for page in PAGES for command in commands_of(page.read_text(encoding="utf-8"))]
    named = [tiny(f"bench {name}") for name in benchmarks()]
    run_by_pages = {words[1] for words in shown if words[0] == "bench"}
    return [*dict.fromkeys(shown), *(words for words in named if words[1] not in run_by_pages)]


COMMANDS = every_command()


def rows_by_call() -> list[type[jk.KernelAttr]]:
    """A row for each kind of plainest call: none, or by whether names are needed, given, and may be left out."""
    first: dict[object, type[jk.KernelAttr]] = {}
    for row in all_schemas():
        call = next(iter(ordinary_calls_of(row, 8)), None)
        if call is None:
            first.setdefault(None, row)
            continue
        others = [*row.parameters().parameters.values()][len(call.arguments) :]
        needed = any(parameter.default is parameter.empty for parameter in others)
        first.setdefault((needed, bool(call.named), bool(others)), row)
    return list(first.values())


@pytest.fixture
def commands_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all files that commands read; few rows where a command names none."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    for page in (
        "docs/rules.md",
        "docs/onnx.md",
        "docs/torch.md",
        "docs/patching.md",
        "ARCHITECTURE.md",
    ):  # pages that commands write in part
        shutil.copy(ROOT / page, tmp_path / page)
    for name in ("text.txt", "other.txt"):
        (tmp_path / name).write_text(f"some words of {name}\n" * 20)
    (tmp_path / "my_module.py").write_text("import jitkernels as jk\n\ndef warm_up():\n    jk.vexp([1.0])\n")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "file.py").write_text("import numpy as np\n\ndef function(x):\n    return np.exp(x) + x\n")
    np.save(tmp_path / "x.npy", np.ones(8, np.float32))
    monkeypatch.setattr(bench, "all_schemas", rows_by_call)
    for command in (tune, cache):
        monkeypatch.setattr(command, "all_schemas", lambda: all_schemas()[:1])
    return tmp_path


def bundle_at(folder: Path) -> None:
    def doubled(x: Any) -> Any:
        return x + x

    jk.jit(doubled).export(folder, np.ones(8, np.float32))


def packs_at(paths: Sequence[Path]) -> None:
    """Empty packs, each for a CPU family of its own."""
    for path in paths:
        facts = kernel_archive.archive_environment() | {"cpu": path.stem}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernel_archive, "archive_environment", lambda facts=facts: facts)
            kernel_archive.write(path, {}, {})


def model_at(path: Path) -> None:
    """A model of a vector x of any number of elements."""
    from onnx import TensorProto, helper, save

    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch"]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Exp", ["x"], ["y"])], "model", ends[:1], ends[1:])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


def code_of(*words: str) -> int:
    """The exit code of a command, run in this process."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    return int(ended.value.code or 0)


@pytest.mark.per_push(16)
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_commands_run(
    words: Sequence[str], commands_folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    if words[0] in ("run", "explain", "compare") and words[1].endswith(".onnx"):
        model_at(commands_folder / words[1])
    elif words[0] == "run":
        bundle_at(commands_folder / words[1])
    elif words[:2] == ("cache", "wheel"):
        packs_at([commands_folder / name for name in words[3:]])
    if words[0] == "tune":  # it keeps what it measures
        (commands_folder / "cache").mkdir(mode=0o700)
        monkeypatch.setattr(cache_dirs, "cache_root", lambda: commands_folder / "cache")
        monkeypatch.setenv("JITKERNELS_TUNE", "auto")
        if "--export" in words:
            code_of(*tiny("tune"))
    code = code_of(*words)
    errors = capfd.readouterr().err
    if words[0] == "compare" and importlib.util.find_spec("onnxruntime") is None:
        assert (code, errors) == (2, "jitkernels: comparing models needs onnxruntime: pip install onnxruntime\n")
        return
    if "torch-compile" in words and importlib.util.find_spec("torch") is None:
        assert code == 2
        assert "expected torch to be installed" in errors
        return
    if {"dask", "--scheduler"} & {*words} and importlib.util.find_spec("distributed") is None:
        assert code == 2
        assert "expected dask to be installed" in errors
        return
    assert code in ((0, 1) if words[0] == "bench" else (0,)), errors
    assert "Traceback" not in errors


@pytest.mark.full
@pytest.mark.parametrize("name", benchmarks())
def test_benchmarks_run_for_every_row(name: str) -> None:
    """They take hours of first calls of all rows, some from empty caches."""
    entry = benchmarks()[name]
    lines = list(entry.run(Settings(all_schemas(), TINY_TAG, float(SECONDS), 1, peers=True)))
    assert lines
    assert entry.verdict(lines).text


def test_pages_show_commands() -> None:
    """The collection finds commands in blocks, text and tables; no tiny run is longer than its benchmark."""
    assert {"info", "explain", "tune", "cache", "bench", "run", "tour", "docs", "compare"} <= {
        words[0] for words in COMMANDS
    }
    assert {name for words in COMMANDS if words[0] == "bench" for name in words[1:2]} >= set(benchmarks())
    text = "run `jitkernels a b`\n```sh\nx && .venv/bin/jitkernels c  # d\n```\n```python\n`jitkernels e`\n```\n"
    assert sorted(commands_of(text)) == ["a b", "c"]
    assert any(row.kernel_type.name == "TOPK" for row in rows_by_call()), "k has to be given by name"
