"""Thread limits of peers, for each installed library by its own interface."""

import importlib
import importlib.util
import os

_most = 0
"""The last limit set by `limit`; 0 before."""


def limit(threads: int) -> None:
    """Limit the threads of peers, beyond the pools that threadpoolctl controls.

    JAX reads its limit only at import; it supports one thread or all.
    """
    global _most
    _most = threads
    if threads == 1:
        os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    for name in ("numexpr", "torch"):
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name).set_num_threads(threads)


def most() -> int:
    """Return the thread limit of peers; 0 means all cores, as the libraries define it."""
    return _most or int(os.environ.get("OMP_NUM_THREADS", "0"))
