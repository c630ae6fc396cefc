"""How many threads peers may use: each library is told in its own way, those that are not installed in none."""

import importlib
import importlib.util
import os

_most = 0
"""What `limit` was last told; 0 before."""


def limit(threads: int) -> None:
    """Let peers use at most so many threads, beside the pools that threadpoolctl knows.

    JAX takes it only when it is first imported; it knows one thread or all.
    """
    global _most
    _most = threads
    if threads == 1:
        os.environ.setdefault(
            "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        )
    for name in ("numexpr", "torch"):
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name).set_num_threads(threads)


def most() -> int:
    """How many threads peers may use: what they were limited to, else all cores, which libraries write as 0."""
    return _most or int(os.environ.get("OMP_NUM_THREADS", "0"))
