"""A contest of compilers: run times of a task, and the error of its result.

Two decorators measure any function, whoever compiled it, and return its result unchanged:

>>> import math
>>> from jitkernels.benchmarks.contest import accuracy, timed
>>> @timed
... @accuracy(math.pi)
... def pi(samples):
...     return 4 * sum((i + 0.5) ** 2 < samples**2 * (1 - 0.25) for i in range(samples)) / samples
>>> _ = pi(100), pi(100)
>>> len(pi.seconds), len(pi.errors)
(2, 2)

``jitkernels bench --contest`` runs four tasks in NumPy, Numba, JAX, torch.compile, TensorFlow, Triton and jitkernels,
as far as they are installed; `tasks` contains their programs.
"""

from jitkernels.benchmarks.contest.measures import accuracy, timed

__all__ = ["accuracy", "timed"]
