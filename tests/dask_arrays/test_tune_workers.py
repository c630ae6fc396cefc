"""`jitkernels tune --scheduler`: workers measure, and their records are stored everywhere."""

from pathlib import Path

import pytest
from distributed import Client, LocalCluster

import jitkernels as jk
from jitkernels.dask_arrays import tune_workers
from jitkernels.errors import NotUsableError
from jitkernels.selection import records


def test_workers_measure(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITKERNELS_TUNE", "auto")
    attrs = [jk.VMulAttr(n=n) for n in (64, 4096)]
    said: list[str] = []
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        found = tune_workers.tune_on_workers(client, attrs, threads=1, seconds=0.01, say=said.append)
        assert {*found.records} == {*attrs}
        assert sum(found.workers.values()) == len(said) == len(attrs)
        for attr in attrs:
            known = records.load(attr, 1)
            assert known is not None
            assert known.candidates
        monkeypatch.setattr(tune_workers, "environment_of_timings", lambda threads: {"cpu": f"another {id(client)}"})
        monkeypatch.setattr(client, "run", lambda *_, **__: {"one": {"cpu": "old"}})
        with pytest.raises(NotUsableError, match=r"expected workers with this CPU .*, got old"):
            tune_workers.machines_like_this(client, 1)
