"""Programs that draw random numbers: bootstrap, Markov chains, reactions, magnets, Brownian motion."""

import math
from typing import Any

import numpy as np

from jitkernels.benchmarks.science.science_program import science_program, uniform


def bootstrap_mixed(x: Any, rounds: Any, seed: Any) -> Any:
    rng = np.random.default_rng(seed)
    means = np.zeros(rounds)
    for r in range(rounds):
        sample = rng.choice(x, size=len(x), replace=True)
        means[r] = np.mean(sample)
    low, high = np.quantile(means, [0.025, 0.975])
    return low, high, np.std(means)


science_program(
    lambda n, _: (uniform(n), 400, n),
    bootstrap_mixed,
    size=500, sizes=(5, 12),
)  # fmt: skip


def metropolis_mixed(data: Any, steps: Any, seed: Any) -> Any:
    rng = np.random.default_rng(seed)

    def log_posterior(mu: Any) -> Any:
        return -0.5 * np.sum((data - mu) ** 2) / 4.0 - 0.5 * mu**2 / 100.0

    mu = 0.0
    samples = []
    current = log_posterior(mu)
    for _ in range(steps):
        proposal = mu + 0.3 * rng.standard_normal()
        new = log_posterior(proposal)
        if rng.random() < np.exp(min(0.0, new - current)):
            mu = proposal
            current = new
        samples.append(mu)
    return np.array(samples)


def metropolis_loops(data: Any, steps: Any, seed: Any) -> Any:
    rng = np.random.default_rng(seed)
    mu = 0.0
    current = 0.0
    for x in data:
        current -= 0.5 * (x - mu) ** 2 / 4.0
    trace = np.zeros(steps)
    for t in range(steps):
        proposal = mu + 0.3 * rng.standard_normal()
        new = -0.5 * proposal**2 / 100.0
        for x in data:
            new -= 0.5 * (x - proposal) ** 2 / 4.0
        if math.log(rng.random()) < new - current:
            mu, current = proposal, new
        trace[t] = mu
    return trace


science_program(
    lambda n, _: (uniform(n), 2000, n),
    metropolis_mixed, metropolis_loops,
    size=100, sizes=(5, 12),
)  # fmt: skip


def gibbs_loops(steps: Any, rho: Any, seed: Any) -> Any:
    rng = np.random.default_rng(seed)
    x = y = 0.0
    sd = math.sqrt(1 - rho * rho)
    out = np.empty((steps, 2))
    for t in range(steps):
        x = rng.normal(rho * y, sd)
        y = rng.normal(rho * x, sd)
        out[t, 0] = x
        out[t, 1] = y
    return out


science_program(
    lambda n, _: (n, 0.8, n),
    gibbs_loops,
    size=20000, sizes=(5, 12),
)  # fmt: skip


def magnetization_mixed(spins: Any, beta: Any, sweeps: Any, seed: Any) -> Any:
    rng = np.random.default_rng(seed)
    spins = spins.copy()
    rows, cols = spins.shape
    magnetization = []
    for _ in range(sweeps):
        u = rng.random((rows, cols))
        for i in range(rows):
            for j in range(cols):
                energy = (
                    2
                    * spins[i, j]
                    * (spins[i - 1, j] + spins[(i + 1) % rows, j] + spins[i, j - 1] + spins[i, (j + 1) % cols])
                )
                if energy < 0 or u[i, j] < np.exp(-beta * energy):
                    spins[i, j] *= -1
        magnetization.append(abs(spins.sum()) / spins.size)
    return np.array(magnetization)


science_program(
    lambda n, _: (np.where(uniform(n, n) < 0.5, -1, 1), 0.44, 10, n),
    magnetization_mixed,
    size=64, sizes=(5, 12),
)  # fmt: skip


def gillespie_loops(birth: Any, eat: Any, death: Any, start: Any, most: Any, seed: Any) -> Any:
    rng = np.random.default_rng(seed)
    prey, predator = start[0], start[1]
    t = 0.0
    times = np.zeros(most)
    counts = np.zeros((most, 2), dtype=np.int64)
    used = 0
    for k in range(most):
        a = birth * prey
        b = eat * prey * predator
        c = death * predator
        total = a + b + c
        if total == 0.0:
            break
        t += rng.exponential(1.0 / total)
        u = rng.random() * total
        if u < a:
            prey += 1
        elif u < a + b:
            prey -= 1
            predator += 1
        else:
            predator -= 1
        times[k] = t
        counts[k, 0] = prey
        counts[k, 1] = predator
        used += 1
    return times[:used], counts[:used]


science_program(
    lambda n, _: (1.0, 0.005, 0.6, np.array([300, 60]), n, n),
    gillespie_loops,
    size=5000, sizes=(12, 40),
)  # fmt: skip


def langevin_arrays(particles: Any, steps: Any, dt: Any, temperature: Any, seed: Any) -> Any:
    rng = np.random.default_rng(seed)
    x = np.zeros(particles)
    msd = np.empty(steps)
    for t in range(steps):
        noise = rng.normal(size=particles)
        x += (x - x**3) * dt + np.sqrt(2 * temperature * dt) * noise
        msd[t] = np.mean(x**2)
    return x, msd


def langevin_loops(particles: Any, steps: Any, dt: Any, temperature: Any, seed: Any) -> Any:
    rng = np.random.default_rng(seed)
    x = np.zeros(particles)
    msd = np.zeros(steps)
    scale = math.sqrt(2.0 * temperature * dt)
    for t in range(steps):
        for p in range(particles):
            x[p] += (x[p] - x[p] ** 3) * dt + scale * rng.normal()
            msd[t] += x[p] ** 2
        msd[t] /= particles
    return x, msd


science_program(
    lambda n, _: (n, 100, 0.01, 0.5, n),
    langevin_arrays, langevin_loops,
    size=500, sizes=(5, 12),
)  # fmt: skip
