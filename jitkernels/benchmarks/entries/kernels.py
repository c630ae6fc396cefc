"""``jitkernels bench [KERNEL ...]``: every schema, implementation and attr of the sweep."""

from collections.abc import Iterator, Sequence

from jitkernels.benchmarks import table
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark


def verdict(lines: Sequence[Line]) -> Verdict:
    peers = {name for line in lines for name in line.timings if name not in line.rivals}
    found = [f"{len(lines)} attrs", *(f"pick {table.speeds(lines, name)}" for name in ("refer", *sorted(peers)))]
    median, late = table.regrets(lines)
    return Verdict("; ".join([*found, f"regret: median {median:.1%}, 95th percentile {late:.1%}"]))


@benchmark("kernels", verdict=verdict, against="refer")
def kernels(settings: Settings) -> Iterator[Line]:
    """Every implementation, the selection and, on request, peers, over the sweeps of kernels."""
    for schema in settings.schemas:
        tag = "ci" if settings.is_tiny else settings.tag
        for case in settings.limited(case for case in schema.sweep() if tag in case.tags):
            yield table.line(case.attr, case.name, peers=settings.peers, seconds=settings.seconds)
