"""Simulate a Dask scheduler with many workers: how large chunks must be, so that its costs do not bound the speed.

    python bench/dask_scaling.py [TASK_MICROSECONDS] [BYTES_PER_SECOND]

Each task costs the scheduler some time, one task after another; a worker computes one task at a time and is sent the
next ones ahead. So N workers compute at most as fast as tasks can be scheduled. The defaults are assumptions: 250 us of
the scheduler and 300 us of a worker for each task (on two cores `jitkernels bench dask` measures some 600 us for both),
and a worker of one thread that passes over 4 GB of chunks in a second.
"""

import heapq
import sys

SCHEDULER_US, BYTES_PER_SECOND = 250.0, 4e9
WORKER_US = 300.0
"""What a worker spends on a task besides computing: messages, unpickling, storing the result."""
AHEAD = 2
"""Tasks that a worker is sent before it has finished those it has."""
TASKS_PER_WORKER = 40
CHUNK_MEGABYTES = (1, 4, 16, 64, 256)
WORKERS = (1, 2, 8, 32, 128, 512)


def efficiency(workers: int, chunk_bytes: float, scheduler_us: float, bytes_per_second: float) -> float:
    """The share of the workers' time that is spent on computing, by simulating every task."""
    compute = chunk_bytes / bytes_per_second
    tasks = workers * TASKS_PER_WORKER
    scheduler_free, finished = 0.0, 0.0
    requests = [(0.0, number) for number in range(workers) for _ in range(AHEAD)]
    worker_free = dict.fromkeys(range(workers), 0.0)
    heapq.heapify(requests)
    for _ in range(tasks):
        requested, worker = heapq.heappop(requests)
        scheduler_free = max(scheduler_free, requested) + scheduler_us * 1e-6
        done = max(worker_free[worker], scheduler_free) + WORKER_US * 1e-6 + compute
        worker_free[worker] = done
        finished = max(finished, done)
        heapq.heappush(requests, (done, worker))
    return tasks * compute / (finished * workers)


def main() -> None:
    defaults = SCHEDULER_US, BYTES_PER_SECOND
    given = tuple(map(float, sys.argv[1:]))
    scheduler_us, rate = (*given, *defaults[len(given) :])
    print("| workers |" + "".join(f" {size} MB |" for size in CHUNK_MEGABYTES))
    print("| --- |" + " --- |" * len(CHUNK_MEGABYTES))
    for workers in WORKERS:
        shares = [efficiency(workers, size * 2.0**20, scheduler_us, rate) for size in CHUNK_MEGABYTES]
        print(f"| {workers} |" + "".join(f" {share:.0%} |" for share in shares))


if __name__ == "__main__":
    main()
