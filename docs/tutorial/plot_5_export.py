"""5. Without Python
=================

`export` writes a compiled function for some shapes as an object file with a header for C.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import jitkernels as jk

rng = np.random.default_rng(0)
w1, w2 = rng.normal(size=(16, 16)).astype(np.float32), rng.normal(size=(16, 4)).astype(np.float32)


@jk.jit
def network(x):
    return np.maximum(x @ w1, 0) @ w2


folder = Path(tempfile.mkdtemp()) / "network"
about = network.export(folder, np.zeros((1, 16), np.float32))
for file in sorted(folder.iterdir()):
    print(f"{file.name:18} {file.stat().st_size:7,} bytes")

# %%
# Arrays that the function refers to become weights. The header documents the interface:
print((folder / "network.h").read_text())

# %%
# The example in C reads inputs from files and writes the outputs. It needs the C library alone.
x = rng.normal(size=(1, 16)).astype(np.float32)
if shutil.which("cc"):
    program = [folder / "example.c", folder / "network.o"]
    subprocess.run(["cc", "-O1", *program, "-o", folder / "network", "-lm"], check=True)
    (folder / "x.bin").write_bytes(x.tobytes())
    command = [folder / "network", folder / "network.weights", folder / "x.bin"]
    y = np.frombuffer(subprocess.run(command, check=True, capture_output=True).stdout, np.float32)
    print(y)
    assert np.array_equal(y, network(x)[0])

# %%
# Python can run it too, as can ``jitkernels run network --input x.npy`` on the command line.
from jitkernels.compiler.export.run_bundle import Bundle

(again,) = Bundle(folder)(x)
assert np.array_equal(again, network(x))
