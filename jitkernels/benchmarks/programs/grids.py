"""Time steps on grids: shifted slices, and arrays that are written in place."""

from typing import Any

import numpy as np

from jitkernels.benchmarks.programs.benchmark_program import functional_form_of, loop_of, program
from jitkernels.benchmarks.programs.inputs import grid, values
from jitkernels.benchmarks.programs.parallel import prange


@program(grid())
def jacobi_step(u: Any) -> Any:
    new = u.copy()
    new[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    return new


@functional_form_of(jacobi_step)
def jacobi_step_without_writes(u: Any) -> Any:
    return u.at[1:-1, 1:-1].set(0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]))


@loop_of(jacobi_step)
def jacobi_step_loop(u: Any) -> Any:
    new = u.copy()
    for i in prange(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            new[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
    return new


@program(grid(0.1))
def heat_step(u: Any, rate: Any) -> None:
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    u[1:-1, 1:-1] += rate * (around - 4.0 * u[1:-1, 1:-1])


@functional_form_of(heat_step)
def heat_step_without_writes(u: Any, rate: Any) -> Any:
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    return u.at[1:-1, 1:-1].add(rate * (around - 4.0 * u[1:-1, 1:-1]))


@loop_of(heat_step)
def heat_step_loop(u: Any, rate: Any) -> None:
    before = u.copy()
    for i in prange(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            around = before[i - 1, j] + before[i + 1, j] + before[i, j - 1] + before[i, j + 1]
            u[i, j] += rate * (around - 4.0 * before[i, j])


def line(elements: int, dtype: str) -> tuple[Any, ...]:
    return values(elements, dtype), 0.4


@program(line)
def advection_step(u: Any, courant: Any) -> None:
    u[1:] -= courant * (u[1:] - u[:-1])


@functional_form_of(advection_step)
def advection_step_without_writes(u: Any, courant: Any) -> Any:
    return u.at[1:].add(-courant * (u[1:] - u[:-1]))


@loop_of(advection_step)
def advection_step_loop(u: Any, courant: Any) -> None:
    for i in range(u.size - 1, 0, -1):
        u[i] -= courant * (u[i] - u[i - 1])


def fields(elements: int, dtype: str) -> tuple[Any, ...]:
    return values(elements, dtype, -1, 1), values(elements, dtype, -1, 1, 1), 0.5


@program(fields)
def fdtd_step(e: Any, h: Any, courant: Any) -> None:
    e[1:] += courant * (h[1:] - h[:-1])
    h[:-1] += courant * (e[1:] - e[:-1])


@functional_form_of(fdtd_step)
def fdtd_step_without_writes(e: Any, h: Any, courant: Any) -> Any:
    e = e.at[1:].add(courant * (h[1:] - h[:-1]))
    return e, h.at[:-1].add(courant * (e[1:] - e[:-1]))


@loop_of(fdtd_step)
def fdtd_step_loop(e: Any, h: Any, courant: Any) -> None:
    for i in prange(1, e.size):
        e[i] += courant * (h[i] - h[i - 1])
    for i in prange(e.size - 1):
        h[i] += courant * (e[i + 1] - e[i])


@program(grid())
def box_blur(image: Any) -> Any:
    across = image[:, :-2] + image[:, 1:-1] + image[:, 2:]
    return (across[:-2] + across[1:-1] + across[2:]) / 9.0


@loop_of(box_blur)
def box_blur_loop(image: Any) -> Any:
    out = np.empty((image.shape[0] - 2, image.shape[1] - 2), image.dtype)
    for i in prange(out.shape[0]):
        for j in range(out.shape[1]):
            above = image[i, j] + image[i, j + 1] + image[i, j + 2]
            beside = image[i + 1, j] + image[i + 1, j + 1] + image[i + 1, j + 2]
            below = image[i + 2, j] + image[i + 2, j + 1] + image[i + 2, j + 2]
            out[i, j] = (above + beside + below) / 9.0
    return out


@program(grid())
def sobel(image: Any) -> Any:
    down = image[:-2] + 2.0 * image[1:-1] + image[2:]
    right = image[:, :-2] + 2.0 * image[:, 1:-1] + image[:, 2:]
    return np.hypot(down[:, 2:] - down[:, :-2], right[2:] - right[:-2])


@loop_of(sobel)
def sobel_loop(image: Any) -> Any:
    out = np.empty((image.shape[0] - 2, image.shape[1] - 2), image.dtype)
    for i in prange(out.shape[0]):
        for j in range(out.shape[1]):
            before = image[i, j] + 2.0 * image[i + 1, j] + image[i + 2, j]
            after = image[i, j + 2] + 2.0 * image[i + 1, j + 2] + image[i + 2, j + 2]
            above = image[i, j] + 2.0 * image[i, j + 1] + image[i, j + 2]
            below = image[i + 2, j] + 2.0 * image[i + 2, j + 1] + image[i + 2, j + 2]
            out[i, j] = np.hypot(after - before, below - above)
    return out


@program(grid(channels=3))
def luma_and_chroma(rgb: Any) -> Any:
    r, g, b = rgb[..., 0], rgb[..., 1], rgb[..., 2]
    y = 0.299 * r + 0.587 * g + 0.114 * b
    return np.stack((y, 0.564 * (b - y) + 0.5, 0.713 * (r - y) + 0.5), axis=-1)


@loop_of(luma_and_chroma)
def luma_and_chroma_loop(rgb: Any) -> Any:
    out = np.empty_like(rgb)
    for i in prange(rgb.shape[0]):
        for j in range(rgb.shape[1]):
            y = 0.299 * rgb[i, j, 0] + 0.587 * rgb[i, j, 1] + 0.114 * rgb[i, j, 2]
            out[i, j, 0] = y
            out[i, j, 1] = 0.564 * (rgb[i, j, 2] - y) + 0.5
            out[i, j, 2] = 0.713 * (rgb[i, j, 0] - y) + 0.5
    return out
