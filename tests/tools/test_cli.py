"""The command line: output, streams, exit codes, and closed pipes."""

import enum
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jitkernels.attrs.schema.base import KernelAttr, custom
from jitkernels.core.cpu_target import cpu_count
from jitkernels.errors import AttrError
from jitkernels.tools import demo
from jitkernels.tools.cli import explain, main
from jitkernels.tools.cli.explain import attr_of
from jitkernels.tools.cli.output import duration, size

ESCAPE = "\x1b"
Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def command(private_cache: Path) -> Command:
    """Run the command line as users do, in a process of its own with a cache of this test."""

    def run(*arguments: str, **settings: str) -> "subprocess.CompletedProcess[str]":
        environment = {**os.environ, "JITKERNELS_CACHE_DIR": str(private_cache), "JITKERNELS_TUNE": "auto"}
        return subprocess.run(
            [sys.executable, "-m", "jitkernels", *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={**environment, **settings},
        )

    return run


@pytest.fixture
def in_process(capfd: pytest.CaptureFixture[str], fresh: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Like `command`, but without the second that a process of its own takes."""

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        monkeypatch.setenv("JITKERNELS_TUNE", "auto")
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        captured = capfd.readouterr()
        return subprocess.CompletedProcess(arguments, int(ended.value.code or 0), captured.out, captured.err)

    return run


def prints(done: "subprocess.CompletedProcess[str]") -> str:
    """Standard output of a command that succeeded, said nothing on stderr but how far it was, and used no colour."""
    assert done.returncode == 0, done.stderr
    assert all(re.fullmatch(r"\d+%, about .* left: .*", line) for line in done.stderr.splitlines())
    assert ESCAPE not in done.stdout
    return done.stdout


def refuses(done: "subprocess.CompletedProcess[str]") -> str:
    """The one line on stderr of a command that could not be done."""
    assert done.returncode == 2
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("jitkernels: ")
    return lines[0]


def test_coverage(command: Command) -> None:
    """Every implementation of every kernel is usable for every dtype, or has a reason."""
    found = json.loads(prints(command("info", "--kernels", "--json")))
    assert {"VMUL", "ADAM", "SGD", "MATMUL"} <= {entry["kernel"] for entry in found}
    assert all(entry["usable"] or entry["why"] for entry in found)
    assert all(entry["usable"] for entry in found if entry["implementation"] in ("gen", "refer"))
    lines = {(entry["kernel"], entry["implementation"]) for entry in found}
    text = prints(command("info", "--kernels"))
    assert all(kernel in text and name in text for kernel, name in lines)


def test_tables_of_measurements(command: Command, tmp_path: Path) -> None:
    assert "found none" in refuses(command("tune", "--export", str(tmp_path / "none.json"), "vexp"))
    prints(command("tune", "sgd", "--tag", "ci", "--seconds", "0.001"))
    table = tmp_path / "table.json"
    assert "written to" in prints(command("tune", "--export", str(table)))
    assert "0 rejected" in prints(command("tune", "--import", str(table)))
    assert "expected a table" in refuses(command("tune", "--import", str(tmp_path / "nowhere.json")))


def test_info(command: Command, private_cache: Path) -> None:
    found = json.loads(prints(command("info", "--json")))
    assert found["cache"]["place"] == str(private_cache)
    assert found["threads"] >= 1
    assert "text" in found["c_compiler"]
    for name, library in found["libraries"].items():
        assert library["text"], f"{name}: neither found nor a reason why not"
    assert found["settings"]["JITKERNELS_CACHE_DIR"] == str(private_cache)
    text = prints(command("info"))
    assert found["cpu"] in text
    assert str(private_cache) in text


def test_explain(command: Command) -> None:
    text = prints(command("explain", "vmul", "n=96", "dtype=float64"))
    assert text.startswith("VMUL(n=96, dtype=float64): ")
    assert "refer" in text


def test_explain_takes_every_kind_of_field() -> None:
    attr = attr_of("matmul", ["m=3", "n=4", "k=5", "trans_a=true", "beta=0.5", "dtype=float64"])
    assert attr.fields() == {
        "m": 3, "n": 4, "k": 5, "trans_a": True, "trans_b": False, "beta": 0.5, "dtype": "float64",
    }  # fmt: skip


class Corner(enum.Enum):
    """For the attr below."""

    SHARP = 1
    ROUND = 2


class FieldsAttr(KernelAttr):
    """Fields of kinds that none of our rows has yet; it is no row."""

    shape: tuple[int, ...]
    corner: Corner = Corner.SHARP
    names: frozenset[str] = custom(frozenset, to_json=sorted, default=frozenset())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (["shape=[1, 2]"], {"shape": (1, 2)}),
        (["shape=[]", "corner=ROUND"], {"shape": (), "corner": Corner.ROUND}),
        (['names=["a", "b"]', "shape=[[1], 2]"], {"shape": ((1,), 2), "names": frozenset("ab")}),
    ],
)
def test_explain_takes_fields_as_json(
    monkeypatch: pytest.MonkeyPatch, text: list[str], expected: dict[str, Any]
) -> None:
    monkeypatch.setattr(explain, "op_schema", lambda name: FieldsAttr)
    fields = attr_of("fields", text).fields()
    assert {name: fields[name] for name in expected} == expected
    for wrong in ("shape=[", "shape=" + "[" * 100_000, "corner=FLAT", "shape={}"):
        with pytest.raises(AttrError):
            attr_of("fields", ["shape=[]", wrong] if not wrong.startswith("shape") else [wrong])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (["n=1", "q=2"], "'q=2'.*n, dtype=float32"),
        (["1024"], "expected field=value"),
        ([], "n missing"),
        (["n=x"], "expected an int, got 'x'"),
        (["n=-1"], "expected 0 or more"),
        (["n=8", "dtype=int8"], "expected one of float32, float64"),
        (["n=8", "n=9"], "'n=9': expected each field once, got n twice"),
        (["n=8", "dtype=float32", "n=8"], "'n=8': expected each field once, got n twice"),
    ],
)
def test_explain_names_the_wrong_field(fields: list[str], message: str) -> None:
    with pytest.raises(AttrError, match=message):
        attr_of("vmul", fields)


@pytest.mark.per_push
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explain", "nonesuch", "n=1"], "no kernel 'nonesuch'; there are"),
        (["explain", "vmul"], "n missing"),
        (["tune", "nonesuch"], "no kernel 'nonesuch'"),
        (["tune", "vmul", "--tag", "most"], "most"),
        (["frobnicate"], "frobnicate"),
        (["run", "nowhere.onnx"], "No such file or directory: 'nowhere.onnx'"),
        (["explain", "nowhere.onnx"], "No such file or directory: 'nowhere.onnx'"),
        (["docs", "--check", "nowhere/kernels.md"], "nowhere/kernels.md"),
        (["docs", "--write", "nowhere/kernels.md"], "nowhere/kernels.md: No such file"),
        (["docs", "--write", "."], ".: Is a directory"),
        (["explain", "vmul", "n=8", "dtype=i4,,"], "dtype: expected one of float32, float64"),
        (["tune", "vmul", "--seconds", "-1"], "--seconds: expected a time of more than 0, got -1"),
        (["tune", "vmul", "--seconds", "nan"], "--seconds: expected a time of more than 0, got nan"),
        (["tune", "vmul", "--seconds", "inf"], "--seconds: expected a time of more than 0, got inf"),
    ],
)
def test_errors_are_one_line(in_process: Command, arguments: list[str], message: str) -> None:
    assert message in refuses(in_process(*arguments))


def test_an_error_is_one_line_in_a_process_of_its_own(command: Command) -> None:
    assert "no kernel 'nonesuch'; there are" in refuses(command("explain", "nonesuch", "n=1"))


def test_invalid_settings_are_one_line(command: Command) -> None:
    assert "JITKERNELS_TUNE: expected auto, replay or off" in refuses(
        command("explain", "vmul", "n=8", JITKERNELS_TUNE="yes")
    )


def test_odd_bytes_in_the_environment_are_one_line(command: Command) -> None:
    line = refuses(command("info", JITKERNELS_CPU_NAME="\udcff"))
    assert "JITKERNELS_CPU_NAME: expected LLVM's name of a CPU" in line


def test_odd_bytes_can_be_printed(command: Command, private_cache: Path) -> None:
    place = private_cache / "\udcff"
    for arguments in (("info",), ("info", "--json"), ("cache", "show")):
        assert "udcff" in prints(
            command(*arguments, JITKERNELS_CACHE_DIR=str(place), PYTHONIOENCODING="ascii")
        ).replace("\\\\", "\\")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk to write to")
@pytest.mark.parametrize("arguments", [["docs"], ["info"], ["info", "--json"], ["cache", "show"]])
def test_a_full_disk_is_one_line(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "jitkernels", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["jitkernels: [Errno 28] No space left on device"]


def test_tune_resumes(command: Command) -> None:
    first = prints(command("tune", "vmul", "--tag", "ci", "--seconds", "0.01"))
    assert "VMUL" in first
    assert "refer" in first
    assert "0 had been measured before" in first
    again = prints(command("tune", "vmul", "--tag", "ci"))
    assert "\n0 measured now" in again
    assert again.splitlines()[:-1] == first.splitlines()[:-1]
    forced = prints(command("tune", "vmul", "--tag", "ci", "--force", "--seconds", "0.01"))
    assert ", 0 had been measured before" in forced


def test_cache(command: Command, private_cache: Path) -> None:
    (private_cache / "mine.txt").write_text("not made by jitkernels")
    prints(command("tune", "vexp", "--tag", "ci", "--seconds", "0.01"))
    measured = next(private_cache.glob("*/tuning/*.json"))
    of_function = json.loads(measured.read_text()) | {"attr": {"kernel": "FUSED", "expression": "", "n0": 9}}
    (measured.parent / "fused-1.json").write_text(json.dumps(of_function))
    assert "in use" in prints(command("cache", "show"))
    assert ", 0 damaged" in prints(command("cache", "verify"))
    built = next(private_cache.glob("*/objects/*.o"))
    built.write_bytes(built.read_bytes()[:-1])
    record = next(private_cache.glob("*/tuning/*.json"))
    record.write_bytes(record.read_bytes()[:20])
    damaged = command("cache", "verify")
    assert damaged.returncode == 1
    assert str(built) in damaged.stdout
    assert str(record) in damaged.stdout
    # That of objects, and those of what was measured on one thread and on as many as there are.
    assert f"{1 + len({1, cpu_count()})} environments deleted" in prints(command("cache", "clear"))
    assert [path.name for path in private_cache.iterdir()] == ["mine.txt"]


def test_tour(command: Command, tmp_path: Path) -> None:
    texts = {
        "winter.txt": "snow ice frost skates wool candle",
        "summer.txt": "beach sand sun surf melon candle",
        "january.txt": "snow ice frost wool storm",
    }
    paths = []
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        paths.append(str(tmp_path / name))
    text = prints(command("tour", *paths))
    line = next(line for line in text.splitlines() if line.startswith(paths[0]))
    assert line.split()[1] == paths[2]
    assert "same answer as NumPy" in text
    assert "NOT the" not in text
    for kernel in ("EMB_SEQ_POOL", "LAYER_NORM", "MATMUL", "SOFTMAX"):
        assert kernel in text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file"),
        (b"\xff\xfe\x00\x01", "expected a text file in UTF-8"),
        (b"", "without words"),
        (b"12 + 3\n", "without words"),
    ],
)
def test_tour_names_the_file_it_cannot_use(
    in_process: Command, tmp_path: Path, content: bytes | None, message: str
) -> None:
    good, bad = tmp_path / "good.txt", tmp_path / "bad.txt"
    good.write_text("some words")
    if content is not None:
        bad.write_bytes(content)
    line = refuses(in_process("tour", str(good), str(bad)))
    assert str(bad) in line
    assert message in line


def test_tour_needs_two_files(in_process: Command, tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("some words")
    assert "at least two" in refuses(in_process("tour", str(tmp_path / "one.txt")))
    assert "directory" in refuses(in_process("tour", str(tmp_path)))


def test_tour_reads_the_standard_library() -> None:
    words = demo.read_standard_library()
    assert {"json.decoder", "json.encoder", "asyncio.tasks"} <= set(words)
    assert not [name for name in words if "test" in name.split(".")]


def test_words_are_split_and_distinct() -> None:
    assert demo.words_of("readLines READ_lines xs HTTPServer") == ["http", "lines", "read", "server"]


def test_colour_needs_a_terminal_and_no_color_unset(private_cache: Path) -> None:
    plain, coloured = (on_a_terminal(private_cache, no_color) for no_color in ("1", ""))
    assert "VMUL" in plain
    assert "VMUL" in coloured
    assert f"{ESCAPE}[3" not in plain
    assert f"{ESCAPE}[3" in coloured


def on_a_terminal(cache: Path, no_color: str) -> str:
    """What `tune` writes when both its outputs are a terminal."""
    pty = pytest.importorskip("pty")
    controller, terminal = pty.openpty()
    environment = {
        **os.environ, "JITKERNELS_CACHE_DIR": str(cache), "JITKERNELS_TUNE": "auto", "TERM": "xterm", "COLUMNS": "120",
    }  # fmt: skip
    environment.pop("NO_COLOR", None)
    if no_color:
        environment["NO_COLOR"] = no_color
    arguments = [sys.executable, "-m", "jitkernels", "tune", "vmul", "--tag", "ci", "--seconds", "0.01", "--force"]
    process = subprocess.Popen(arguments, stdin=terminal, stdout=terminal, stderr=terminal, env=environment)
    os.close(terminal)
    received = b""
    while True:
        try:
            part = os.read(controller, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
        if not part:
            break
        received += part
    os.close(controller)
    assert process.wait() == 0
    return received.decode()


def test_closed_pipes_are_no_error(command: Command) -> None:
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; '{sys.executable}' -m jitkernels docs | head -n 1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout == "# Kernels\n"
    assert done.stderr == ""


def test_durations_and_sizes() -> None:
    assert [duration(t) for t in (2.5e-8, 1.234e-6, 0.0123, 12.34)] == ["25 ns", "1.23 us", "12.3 ms", "12.3 s"]
    assert [size(count) for count in (12, 1500, 2.5e6, 3e9)] == ["12 bytes", "1.5 kB", "2.5 MB", "3.0 GB"]
