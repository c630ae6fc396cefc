"""Heat in a square plate with a hot edge: explicit steps in time, two arrays that change places.

python examples/heat_equation.py [picture.png]
"""

import sys

import numpy as np

import jitkernels as jk


@jk.jit
def warmed(plate, steps, share):
    """The plate after so many steps; `share` is ``conductivity * dt / dx**2``, at most 1/4."""
    now, new = plate.copy(), plate.copy()
    for _ in range(steps):
        around = now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:]
        new[1:-1, 1:-1] = now[1:-1, 1:-1] + share * (around - 4 * now[1:-1, 1:-1])
        now, new = new, now
    return now


def run(size=128, steps=(20, 200, 2000)):
    """The plate at some times: frames of an animation."""
    plate = np.zeros((size, size))
    plate[0] = 100.0
    plate[size // 3 : size // 2, size // 4 : size // 3] = 60.0
    return [(count, warmed(plate, count, 0.2)) for count in steps]


def draw(frames, path):
    """One picture for each time."""
    import matplotlib.pyplot as plt

    figure, all_axes = plt.subplots(1, len(frames), figsize=(4 * len(frames), 4))
    for axes, (count, plate) in zip(np.atleast_1d(all_axes), frames, strict=True):
        axes.imshow(plate, cmap="inferno", vmin=0, vmax=100)
        axes.set(title=f"step {count}", xticks=[], yticks=[])
    figure.savefig(path, dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    draw(run(), sys.argv[1] if len(sys.argv) > 1 else "heat_equation.png")
