"""An LSTM cell over a sequence, as NumPy in a loop over time: one native call for all steps.

python examples/lstm_sequence.py [picture.png]
"""

import sys

import numpy as np

import jitkernels as jk


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@jk.jit
def over_time(inputs, w, u, bias):
    """The hidden state after each step. Gates lie side by side: input, forget, cell, output."""
    steps, units = inputs.shape[0], u.shape[0]
    hidden = np.zeros((steps, units), inputs.dtype)
    h = np.zeros(units, inputs.dtype)
    c = np.zeros(units, inputs.dtype)
    for t in range(steps):
        gates = inputs[t] @ w + h @ u + bias
        i, f = sigmoid(gates[:units]), sigmoid(gates[units : 2 * units])
        g, o = np.tanh(gates[2 * units : 3 * units]), sigmoid(gates[3 * units : 4 * units])
        c = f * c + i * g
        h = o * np.tanh(c)
        hidden[t] = h
    return hidden


def run(steps=100, features=8, units=32, seed=0):
    """Hidden states for waves of several lengths."""
    rng = np.random.default_rng(seed)
    time = np.arange(steps, dtype=np.float32)[:, None]
    inputs = np.sin(time / np.arange(3, 3 + features, dtype=np.float32))
    w, u = (rng.normal(scale=n**-0.5, size=(n, 4 * units)).astype(np.float32) for n in (features, units))
    return inputs, over_time(inputs, w, u, np.zeros(4 * units, np.float32))


def draw(result, path):
    """Inputs above, hidden states below."""
    import matplotlib.pyplot as plt

    figure, (upper, lower) = plt.subplots(2, 1, figsize=(8, 5), sharex=True)
    for axes, values, name in ((upper, result[0], "inputs"), (lower, result[1], "hidden units")):
        axes.imshow(values.T, aspect="auto", cmap="RdBu", vmin=-1, vmax=1)
        axes.set(ylabel=name, yticks=[])
    lower.set(xlabel="step")
    figure.savefig(path, dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    draw(run(), sys.argv[1] if len(sys.argv) > 1 else "lstm_sequence.png")
