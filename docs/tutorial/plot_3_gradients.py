"""3. Gradients
============

`grad` returns the function that computes derivatives; it is compiled in one graph with its caller.
"""

import matplotlib.pyplot as plt
import numpy as np

import jitkernels as jk


def wave(x):
    return np.sin(x) * np.exp(-0.1 * x)


slope = jk.grad(wave)
curvature = jk.grad(jk.grad(wave))
points = np.linspace(0.0, 15.0, 200)
figure, axes = plt.subplots()
axes.plot(points, wave(points), label="f")
axes.plot(points, [slope(one) for one in points], label="f'")
axes.plot(points, [curvature(one) for one in points], label="f''")
axes.legend()
assert np.isclose(slope(1.0), (wave(1.0 + 1e-6) - wave(1.0 - 1e-6)) / 2e-6)

# %%
# Arguments may be arrays, and tuples, lists, dicts or objects that hold them; gradients have the same structure.


def loss(model, x, y):
    hidden = np.tanh(x @ model["w1"] + model["b1"])
    return ((hidden @ model["w2"] - y) ** 2).mean()


rng = np.random.default_rng(0)
model = {"w1": rng.normal(size=(1, 20)), "b1": rng.normal(size=20), "w2": 0.1 * rng.normal(size=(20, 1))}
x = np.linspace(-3, 3, 100)[:, None]
y = np.sin(2 * x)
value, slopes = jk.value_and_grad(loss)(model, x, y)
print(f"{value:.3f}", {name: one.shape for name, one in slopes.items()})

# %%
# Training
# --------
# Forward pass, backward pass and update are one function, and one native call.


@jk.jit
def step(model, x, y, rate):
    value, slopes = jk.value_and_grad(loss)(model, x, y)
    for name, slope in slopes.items():
        model[name] -= rate * slope
    return value


losses = [step(model, x, y, 0.1) for _ in range(1000)]
print(f"from {losses[0]:.3f} to {losses[-1]:.3f}")
assert losses[-1] < 0.5 * losses[0]
figure, axes = plt.subplots()
axes.plot(x, y, label="data")
axes.plot(x, np.tanh(x @ model["w1"] + model["b1"]) @ model["w2"], label="model")
axes.legend()
