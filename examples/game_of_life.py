"""Conway's Game of Life: generations of a board whose edges meet, written as NumPy slices in a loop.

python examples/game_of_life.py [picture.png]
"""

import sys

import numpy as np

import jitkernels as jk


@jk.jit
def generations(board, count):
    """The board after so many generations; ``board`` is changed."""
    wide = np.zeros((board.shape[0] + 2, board.shape[1] + 2), board.dtype)
    for _ in range(count):
        wide[1:-1, 1:-1] = board
        wide[0, 1:-1], wide[-1, 1:-1] = board[-1], board[0]
        wide[:, 0], wide[:, -1] = wide[:, -2], wide[:, 1]
        neighbours = (
            wide[:-2, :-2] + wide[:-2, 1:-1] + wide[:-2, 2:] + wide[1:-1, :-2]
            + wide[1:-1, 2:] + wide[2:, :-2] + wide[2:, 1:-1] + wide[2:, 2:]
        )  # fmt: skip
        board[:] = (neighbours == 3) | ((board == 1) & (neighbours == 2))
    return board.sum()


def run(size=256, count=200, seed=0):
    """A random board after so many generations, and how many cells live."""
    board = (np.random.default_rng(seed).random((size, size)) < 0.3).astype(np.uint8)
    living = generations(board, count)
    return board, int(living)


def draw(result, path):
    """The board as a picture."""
    import matplotlib.pyplot as plt

    board, living = result
    figure, axes = plt.subplots(figsize=(5, 5))
    axes.imshow(board, cmap="binary", interpolation="nearest")
    axes.set(title=f"{living} cells live", xticks=[], yticks=[])
    figure.savefig(path, dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    draw(run(), sys.argv[1] if len(sys.argv) > 1 else "game_of_life.png")
