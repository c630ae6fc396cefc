"""Threads of compiled models: those of torch's OpenMP runtime, of which a forked child has none."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os
import torch
import jitkernels as jk

jk.set_num_threads(2)
torch.set_num_threads(2)
x, y = torch.randn(512, 512), torch.randn(512, 512)
torch.exp(x)  # torch has its threads from now on
threads = len(os.listdir("/proc/self/task"))
expected = x @ y
call = torch.compile(lambda x, y: torch.relu(x @ y), backend="jitkernels")
call(x, y)
for _ in range(20):
    torch.testing.assert_close(call(x, y), torch.relu(expected), rtol=1e-4, atol=1e-3)
assert len(os.listdir("/proc/self/task")) == threads, "helpers of our own"
pid = os.fork()
if pid == 0:
    torch.set_num_threads(1)  # torch's own regions hang in forked children
    torch.testing.assert_close(call(x, y), torch.relu(expected), rtol=1e-4, atol=1e-3)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""


def test_parallel_regions_run_on_torchs_threads(tmp_path: Path) -> None:
    """Threads of two pools would take the cores from one another: torch's spin for milliseconds."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    subprocess.run([sys.executable, str(program)], check=True, timeout=120)
