"""Compare the speed of two checkouts: run named benchmarks in both, alternately, and print ratios of their minima.

    python bench/two_checkouts.py ../before launch expressions --rounds 3 [--tag full] [--seconds 0.5]

Each run is a process of its own with the cache folder of its checkout, which the first round fills. The ratio of a
benchmark is the geometric mean over its lines of seconds before / seconds now; a peer's ratio, which no change of ours
can move, tells how noisy the machine was. Exits with 1 where a ratio is below ``1 - TOLERANCE``.
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

TOLERANCE = 0.02
HERE = Path(__file__).resolve().parents[1]
PEERS = re.compile(
    r"np\.|numpy|numba|numexpr|jax|torch|onnxruntime|scipy|mkl$|openblas$|onednn$|refer$|peak$|processor$"
)
NAMED = (
    "launch", "compiled-call", "startup", "first-call", "ordinary-calls", "expressions", "programs", "levels",
    "serving", "training", "random-attrs", "matmul-peak",
)  # fmt: skip
Times = dict[tuple[str, str, str], float]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("before", type=Path, help="the other checkout")
    parser.add_argument(
        "benchmarks", nargs="*", default=NAMED, metavar="benchmark", help="a name, or a name and its parts in quotes"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tag", default="ci")
    parser.add_argument("--seconds", default="0.25")
    parser.add_argument("--threads", default="1")
    options = parser.parse_args()
    slower = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.benchmarks:
            command = [*name.split(), "--tag", options.tag, "--seconds", options.seconds, "--threads", options.threads]
            times: tuple[Times, Times] = ({}, {})
            for number in range(options.rounds):
                order = (0, 1) if number % 2 else (1, 0)
                for side in order:
                    root = (options.before.resolve(), HERE)[side]
                    keep_minima(times[side], run(root, command, Path(folder) / str(side)))
            ours, peers = ratios(*times)
            mean = geometric_mean(ours.values())
            print(
                f"{name}: {mean:.3f} times as fast as before ({len(ours)} timings; peers {geometric_mean(peers):.3f})"
            )
            for line, ratio in sorted(ours.items(), key=lambda item: item[1])[:3]:
                print(
                    f"    {ratio:.2f} {' | '.join(line)}: {times[0][line] * 1e6:.3g} -> {times[1][line] * 1e6:.3g} us",
                    flush=True,
                )
            if mean < 1 - TOLERANCE:
                slower.append(name)
    print("slower:", ", ".join(slower) or "none")
    return bool(slower)


def run(root: Path, command: list[str], cache: Path) -> Times:
    """Run a benchmark in a checkout. Returns seconds by group, case and name of each timing."""
    cache.mkdir(mode=0o700, exist_ok=True)
    out = cache / "run.json"
    out.unlink(missing_ok=True)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPATH": str(root), "JITKERNELS_CACHE_DIR": str(cache)}
    argv = [sys.executable, "-P", "-m", "jitkernels", "bench", *command, "--json", str(out)]
    done = subprocess.run(argv, env=environment, cwd=root, capture_output=True, text=True, check=False)
    if not out.exists():  # an exit status of 1 only says that a promise of the benchmark was not kept
        raise SystemExit(f"{root}: {' '.join(argv)} failed:\n{done.stdout}{done.stderr}")
    lines: list[dict[str, Any]] = json.loads(out.read_text())["lines"]
    return {
        (line["group"], line["case"], "pick" if is_choice(line) and name == line["pick"] else name): timing["seconds"]
        for line in lines
        for name, timing in line["timings"].items()
        if not is_choice(line) or name in (line["pick"], "refer")
    }


def is_choice(line: dict[str, Any]) -> bool:
    """Whether a line's timings are implementations of one attr, of which the selected one counts."""
    return "refer" in line["timings"]


def keep_minima(times: Times, more: Times) -> None:
    for key, seconds in more.items():
        times[key] = min(seconds, times.get(key, math.inf))


def ratios(before: Times, now: Times) -> tuple[Times, list[float]]:
    """Return seconds before / seconds now, of our own timings by line, and of the peers'."""
    ours, peers = {}, []
    for key in before.keys() & now.keys():
        if now[key] > 0 and before[key] > 0:
            if PEERS.match(key[2]):
                peers.append(before[key] / now[key])
            else:
                ours[key] = before[key] / now[key]
    return ours, peers


def geometric_mean(values: Iterable[float]) -> float:
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else math.nan


if __name__ == "__main__":
    sys.exit(main())
