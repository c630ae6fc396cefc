"""``jitkernels tune`` as a long command: estimates of time, Ctrl-C, and resuming."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jitkernels.core.cpu_target import cpu_count
from jitkernels.tools.cli import eta
from jitkernels.tools.cli.eta import Eta, in_words, shown

VMUL = ("-m", "jitkernels", "tune", "vmul", "--tag", "ci", "--seconds", "0.1")


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_remaining_time_is_corrected_by_measured_durations() -> None:
    clock = Clock()
    progress = Eta({"building": 100.0, "measuring": 100.0}, clock)
    assert (progress.remaining, progress.share) == (200.0, 0.0)
    shares = []
    for _ in range(50):
        clock.now += 4.0
        progress.done("building", 2.0)
        shares.append(progress.share)
    assert progress.remaining == 100.0  # of what was not begun nothing is known yet
    for _ in range(10):
        clock.now += 1.0
        progress.done("measuring", 5.0)
        shares.append(progress.share)
    assert progress.remaining == pytest.approx(50.0 * 12 / 52)
    for _ in range(10):
        clock.now += 1.0
        progress.done("measuring", 5.0)
        shares.append(progress.share)
    assert progress.remaining == 0.0
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    progress.expect("measuring again", 30.0)
    assert progress.remaining == 30.0


def test_durations_are_readable() -> None:
    assert [in_words(s) for s in (0.4, 89, 700, 9000)] == ["0 s", "89 s", "12 min", "2.5 h"]


def test_progress_without_a_terminal_is_occasional_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    monkeypatch.setattr(eta, "monotonic", clock)
    progress = Eta({"measuring": 100.0}, clock)
    with shown(progress) as say:
        for number in range(1, 26):
            clock.now += 1.0
            progress.done("measuring", 1.0)
            say(f"measuring {number}")
    assert capsys.readouterr().err.splitlines() == [
        "11%, about 89 s left: measuring 11",
        "22%, about 78 s left: measuring 22",
    ]


@pytest.mark.parametrize("kept", ["*/objects/*.o", "*/tuning/*.json"])
def test_interrupted_tuning_keeps_records_and_resumes(private_cache: Path, kept: str) -> None:
    """While it builds and while it measures; a terminal sends Ctrl-C to all processes of the group."""
    environment = {**os.environ, "JITKERNELS_CACHE_DIR": str(private_cache), "JITKERNELS_TUNE": "auto"}
    process = subprocess.Popen(
        [sys.executable, *VMUL], env=environment, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while process.poll() is None and not any(private_cache.glob(kept)):
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGINT)
    printed, said = process.communicate(timeout=60)
    assert (process.returncode, printed) == (130, "")
    assert said.splitlines()[-1] == "jitkernels: interrupted; the measurements so far are stored"
    assert "Traceback" not in said
    before = len(list(private_cache.glob("*/tuning/*.json")))
    built = {path: path.stat().st_mtime_ns for path in private_cache.glob("*/objects/*.o")}
    assert built
    again = subprocess.run([sys.executable, *VMUL], env=environment, capture_output=True, text=True, check=True)
    whole = 10 * len({1, cpu_count()})  # on one thread, and on as many as there are
    assert again.stdout.splitlines()[-1] == f"{whole - before} measured now, {before} had been measured before"
    assert all(path.stat().st_mtime_ns == when for path, when in built.items())
