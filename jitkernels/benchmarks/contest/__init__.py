"""A contest of compilers: how long a function takes, and how far its answer is from the truth.

Two decorators measure any function, whoever compiled it, and leave its answer as it is:

>>> import math
>>> from jitkernels.contest import accuracy, timed
>>> @timed
... @accuracy(math.pi)
... def pi(samples):
...     return 4 * sum((i + 0.5) ** 2 < samples**2 * (1 - 0.25) for i in range(samples)) / samples
>>> _ = pi(100), pi(100)
>>> len(pi.seconds), len(pi.errors)
(2, 2)

``jitkernels bench --contest`` lets NumPy, Numba, JAX, torch.compile, TensorFlow, Triton and jitkernels do four tasks,
as far as they are installed; `tasks` has their programs.
"""

from jitkernels.contest.measures import accuracy, timed

__all__ = ["accuracy", "timed"]
