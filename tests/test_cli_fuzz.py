"""Hostile command lines: whatever is typed, the answer is an exit code and at most one line on stderr."""

import os
import random
from pathlib import Path
from typing import Any

import pytest

from jitkernels import tour
from jitkernels.attrs.base import rows
from jitkernels.cli import main, tune

RUNS = 2_000 if os.environ.get("JITKERNELS_TEST_FULL") == "1" else 300
COMMANDS = (
    "info", "tour", "tune", "explain", "explain", "docs", "cache", "cache show", "cache verify", "cache clear", "",
    "--help", "--version", "frobnicate",
)  # fmt: skip
VALUES = (
    "", "0", "1", "-1", "8", "1e3", "nan", "inf", "-inf", "x", "...", "i4,,", "(2)f4", "O", "float32", "float64",
    "true", "no", "9" * 30, "9" * 5000, "0x10", "1_0", "\x00", "\udcff", "é", "'", "[", "{}", "1.5", "None", "@",
)  # fmt: skip
WORDS = (
    "", "-", "--", "---", "=", "n=", "=1", "-h", "--json", "--no-json", "--json=maybe", "--tag", "ci", "full",
    "--tag=ci", "--seconds", "-1", "nan", "inf", "0", "1e-9", "--seconds=-1", "--seconds=x", "--force", "--check",
    "--write", "--write=/", "--check=/dev/null", "/nonexistent/x", "a\x00b", "\udcff", "x" * 5000, "..", "[bold]",
    "[/]", "--write=[/x]", "\n", "\r\n", "%s", "{}", "@x", "--other-environments", "--kernels", "--fields",
)  # fmt: skip


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder to write into, and little to tune and to read, so that thousands of commands take seconds."""
    monkeypatch.chdir(tmp_path)
    attr: Any = next(iter(next(iter(rows.values())).sweep())).attr
    monkeypatch.setattr(tune, "classes", lambda attr_classes, tag: [attr])
    texts = {"a": ["snow"], "b": ["ice"], "c": ["snow", "wool"]}
    monkeypatch.setattr(tour, "read_standard_library", lambda: texts)


def typed(generator: random.Random) -> list[str]:
    """One command line: a command, or nothing like one, and words of all kinds."""
    fields = [field for row in rows.values() for field in next(iter(row.sweep())).attr.fields()]
    names = [kernel_type.name.lower() for kernel_type in rows]
    kinds = (
        lambda: generator.choice(names),
        lambda: f"{generator.choice(fields)}={generator.choice(VALUES)}",
        lambda: generator.choice(WORDS),
    )
    more = [generator.choice(kinds)() for _ in range(generator.randint(0, 4))]
    return [*generator.choice(COMMANDS).split(), *more]


@pytest.mark.usefixtures("small", "fresh")
@pytest.mark.parametrize("seed", range(4))
def test_no_command_line_ends_in_a_traceback(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    generator = random.Random(seed)
    codes = set()
    for _ in range(RUNS // 4):
        arguments = typed(generator)
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        said = capsys.readouterr().err
        codes.add(ended.value.code)
        assert ended.value.code in (0, 1, 2), arguments
        assert ended.value.code != 2 or len(said.splitlines()) == 1, (arguments, said)
        assert "Traceback" not in said, arguments
    assert codes >= {0, 2}
