"""Array expressions alone: denoise, segment and reassemble a picture, and solve small linear systems."""

from typing import Any

import numpy as np


def arrays(picture: Any, matrix: Any, steps: Any, tolerance: Any) -> Any:
    """Some two hundred lines of array expressions inside loops and branches."""
    height, width = picture.shape
    u = picture.copy()
    report = np.zeros(12)

    # Clip values to the range and stretch the contrast.
    low, high = u.min(), u.max()
    if high - low > 1e-12:
        u -= low
        u /= high - low
    else:
        u[:] = 0.0
    report[0] = u.mean()

    # Heat equation: smooth until convergence or the iteration limit.
    iterations = 0
    change = 1.0
    while change > tolerance and iterations < steps:
        new = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        change = np.max(np.abs(new - u[1:-1, 1:-1]))
        u[1:-1, 1:-1] = new
        iterations += 1
    report[1] = iterations

    # Perona-Malik diffusion: smooth, but not across edges.
    for step in range(steps):
        north = u[:-2, 1:-1] - u[1:-1, 1:-1]
        south = u[2:, 1:-1] - u[1:-1, 1:-1]
        west = u[1:-1, :-2] - u[1:-1, 1:-1]
        east = u[1:-1, 2:] - u[1:-1, 1:-1]
        if step % 2 == 0:
            u[1:-1, 1:-1] += 0.2 * (
                north * np.exp(-((north / 0.1) ** 2))
                + south * np.exp(-((south / 0.1) ** 2))
                + west * np.exp(-((west / 0.1) ** 2))
                + east * np.exp(-((east / 0.1) ** 2))
            )
        else:
            u[1:-1, 1:-1] += 0.2 * (
                north / (1.0 + (north / 0.1) ** 2)
                + south / (1.0 + (south / 0.1) ** 2)
                + west / (1.0 + (west / 0.1) ** 2)
                + east / (1.0 + (east / 0.1) ** 2)
            )

    # Sobel edges, and a threshold between the means of the values above and below it.
    across = (
        u[:-2, 2:] + 2.0 * u[1:-1, 2:] + u[2:, 2:] - u[:-2, :-2] - 2.0 * u[1:-1, :-2] - u[2:, :-2]
    )  # fmt: skip
    down = (
        u[2:, :-2] + 2.0 * u[2:, 1:-1] + u[2:, 2:] - u[:-2, :-2] - 2.0 * u[:-2, 1:-1] - u[:-2, 2:]
    )  # fmt: skip
    edges = np.sqrt(across * across + down * down)
    threshold = edges.mean()
    for _ in range(steps):
        above = edges > threshold
        count = above.sum()
        if count == 0:
            break
        upper = np.where(above, edges, 0.0).sum() / count
        rest = edges.size - count
        if rest == 0:
            break
        lower = np.where(above, 0.0, edges).sum() / rest
        moved = 0.5 * (upper + lower)
        if abs(moved - threshold) < tolerance:
            threshold = moved
            break
        threshold = moved
    report[2] = threshold
    report[3] = (edges > threshold).sum()

    # Erode and dilate the mask while it covers more than a tenth of the picture.
    mask = (u > u.mean()).astype(np.float64)
    for _ in range(3):
        if mask.mean() > 0.1:
            mask[1:-1, 1:-1] = np.minimum(
                mask[1:-1, 1:-1],
                np.minimum(np.minimum(mask[:-2, 1:-1], mask[2:, 1:-1]), np.minimum(mask[1:-1, :-2], mask[1:-1, 2:])),
            )
        else:
            mask[1:-1, 1:-1] = np.maximum(
                mask[1:-1, 1:-1],
                np.maximum(np.maximum(mask[:-2, 1:-1], mask[2:, 1:-1]), np.maximum(mask[1:-1, :-2], mask[1:-1, 2:])),
            )
    report[4] = mask.sum()

    # Scale each row and each column by its own factor.
    rows = u.sum(axis=1)
    columns = u.sum(axis=0)
    for i in range(height):
        if rows[i] > 1e-9:
            u[i] /= rows[i]
        else:
            u[i] = 1.0 / width
    for j in range(width):
        if columns[j] > 1e-9:
            u[:, j] *= columns[j]
    report[5] = u.sum()

    # The largest eigenvalue by power iteration.
    n = matrix.shape[0]
    v = np.ones(n) / np.sqrt(n)
    value = 0.0
    for _ in range(steps):
        w = matrix @ v
        size = np.sqrt(np.sum(w * w))
        if size < 1e-300:
            break
        w /= size
        new_value = w @ (matrix @ w)
        if abs(new_value - value) < tolerance * abs(new_value):
            value = new_value
            break
        value = new_value
        v[:] = w
    report[6] = value

    # Conjugate gradients, and the same system by Jacobi's method with relaxation.
    b = np.ones(n)
    x = np.zeros(n)
    r = b - matrix @ x
    p = r.copy()
    rest = r @ r
    for _ in range(n):
        ap = matrix @ p
        curvature = p @ ap
        if curvature <= 0.0:
            break
        alpha = rest / curvature
        x += alpha * p
        r -= alpha * ap
        left = r @ r
        if left < tolerance * tolerance:
            break
        p *= left / rest
        p += r
        rest = left
    report[7] = np.sqrt(np.sum((b - matrix @ x) ** 2))
    diagonal = np.diagonal(matrix).copy()
    y = np.zeros(n)
    relaxation = 1.0
    residual = 1.0
    for step in range(steps):
        difference = (b - matrix @ y) / diagonal
        y = y + relaxation * difference
        before = residual
        residual = np.max(np.abs(difference))
        if residual > before:
            relaxation *= 0.5
        elif step % 10 == 9 and relaxation < 1.0:
            relaxation = min(1.0, relaxation * 1.5)
        if residual < tolerance:
            break
    report[8] = np.max(np.abs(x - y))

    # A network of one layer, trained for a few iterations with momentum.
    weights = np.zeros(n)
    momentum = np.zeros(n)
    rate = 0.1
    cost = 1e300
    for step in range(steps):
        guess = np.tanh(matrix @ weights / n)
        wrong = guess - 0.5
        new_cost = np.mean(wrong * wrong)
        if new_cost > cost:
            rate *= 0.5
            momentum[:] = 0.0
        elif step % 5 == 4:
            rate *= 1.05
        cost = new_cost
        gradient = matrix.T @ (wrong * (1.0 - guess * guess)) / n
        momentum = 0.9 * momentum - rate * gradient
        weights = weights + momentum
        if np.sqrt(np.sum(gradient * gradient)) < tolerance:
            break
    report[9] = cost

    # Sums of squares in blocks of one row, until half of the total is reached.
    squares = np.sum(u * u)
    reached, last = 0.0, 0
    for i in range(height):
        reached += np.sum(u[i] * u[i])
        last = i
        if reached > 0.5 * squares:
            break
    report[10] = last
    report[11] = reached
    return u, x, report
