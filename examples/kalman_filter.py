"""A Kalman filter: it estimates the position of a body of constant velocity from noisy measurements.

python examples/kalman_filter.py [picture.png]
"""

import sys

import numpy as np

import jitkernels as jk


@jk.jit
def filtered(seen, step, noise, drift):
    """Places and velocities by all that was seen until then. `noise` and `drift`: variances of seeing and moving."""
    count = seen.shape[0]
    states = np.zeros((count, 2))
    position, velocity = seen[0], 0.0
    pp, pv, vv = noise, 0.0, 1.0
    for i in range(count):
        # What is expected of the next moment,
        position = position + step * velocity
        pp = pp + step * (2 * pv + step * vv) + drift * step**3 / 3
        pv = pv + step * vv + drift * step**2 / 2
        vv = vv + drift * step
        # and what it looks like.
        gain, turn = pp / (pp + noise), pv / (pp + noise)
        error = seen[i] - position
        position, velocity = position + gain * error, velocity + turn * error
        vv = vv - turn * pv
        pp, pv = (1 - gain) * pp, (1 - gain) * pv
        states[i, 0] = position
        states[i, 1] = velocity
    return states


def run(count=400, step=0.1, noise=4.0, seed=0):
    """True places, those that were seen, and those that the filter tells."""
    rng = np.random.default_rng(seed)
    velocity = 1.0 + np.cumsum(rng.normal(scale=0.1, size=count))
    true = np.cumsum(velocity) * step
    seen = true + rng.normal(scale=noise**0.5, size=count)
    return true, seen, filtered(seen, step, noise, 0.1)


def draw(result, path):
    """Three lines."""
    import matplotlib.pyplot as plt

    true, seen, states = result
    figure, axes = plt.subplots(figsize=(8, 4))
    axes.plot(seen, ".", markersize=3, label="seen")
    axes.plot(true, label="true")
    axes.plot(states[:, 0], label="filtered")
    axes.set(xlabel="moment", ylabel="place")
    axes.legend()
    figure.savefig(path, dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    draw(run(), sys.argv[1] if len(sys.argv) > 1 else "kalman_filter.png")
