"""Elements and whole arrays in turn: charged particles on a grid, and their field."""

from typing import Any

import numpy as np


def particles(x: Any, v: Any, cells: Any, steps: Any) -> Any:
    """Some two hundred lines, half loops over single elements and half array expressions."""
    count = x.shape[0]
    density, field, potential = np.zeros(cells), np.zeros(cells), np.zeros(cells)
    kinetic, electric = np.zeros(steps), np.zeros(steps)
    histogram = np.zeros(16, np.int64)
    ages = np.zeros(count, np.int64)
    collisions = crossings = lost = 0
    hottest, coldest = 0.0, 1e300
    seed = 12345

    for t in range(steps):
        # Distribute each particle's charge to its two neighbouring cells.
        density[:] = -count / cells
        for k in range(count):
            cell = int(x[k])
            if cell < 0:
                cell = 0
            elif cell >= cells:
                cell = cells - 1
            share = x[k] - cell
            density[cell] += 1.0 - share
            density[(cell + 1) % cells] += share

        # Smooth rough regions, more where rougher.
        roughness = np.max(np.abs(density[1:] - density[:-1]))
        if roughness > 8.0:
            passes = 3
        elif roughness > 4.0:
            passes = 2
        else:
            passes = 1
        for _ in range(passes):
            density[1:-1] = 0.25 * density[:-2] + 0.5 * density[1:-1] + 0.25 * density[2:]

        # Relax the potential from its previous values; odd and even cells alternate.
        for sweep in range(12):
            first = sweep % 2
            worst = 0.0
            for i in range(cells):
                if i % 2 != first:
                    continue
                left = potential[cells - 1] if i == 0 else potential[i - 1]
                right = potential[0] if i == cells - 1 else potential[i + 1]
                new = 0.5 * (left + right + 0.1 * density[i])
                worst = max(worst, abs(new - potential[i]))
                potential[i] = new
            if worst < 1e-6:
                break
        potential -= potential.mean()
        field[1:-1] = 0.5 * (potential[:-2] - potential[2:])
        field[0] = 0.5 * (potential[cells - 1] - potential[1])
        field[cells - 1] = 0.5 * (potential[cells - 2] - potential[0])
        electric[t] = 0.5 * np.sum(field * field)

        # Push particles; those that leave on one side reenter on the other.
        for k in range(count):
            cell = int(x[k])
            if cell >= cells:
                cell = cells - 1
            share = x[k] - cell
            force = (1.0 - share) * field[cell] + share * field[(cell + 1) % cells]
            v[k] += 0.05 * force
            if abs(v[k]) > 2.0:
                v[k] = 2.0 if v[k] > 0.0 else -2.0
                lost += 1
            x[k] += 0.1 * v[k]
            if x[k] < 0.0:
                x[k] += cells
                crossings -= 1
            elif x[k] >= cells:
                x[k] -= cells
                crossings += 1
            ages[k] += 1

        # Near and slow neighbours collide: they swap positions in the order of speeds.
        for k in range(count - 1):
            distance = abs(x[k + 1] - x[k])
            if distance < 0.05:
                if v[k] > v[k + 1]:
                    v[k], v[k + 1] = v[k + 1], v[k]
                    collisions += 1
                    ages[k] = 0
                elif v[k] == v[k + 1]:
                    ages[k + 1] = 0

        # Occasionally kick some at random.
        if t % 4 == 3:
            for k in range(0, count, 5):
                seed = seed * 1103515245 % 2147483648
                kick = seed / 2147483648.0 - 0.5
                if ages[k] > 3 and abs(v[k]) < 0.5:
                    v[k] += 0.1 * kick

        # Statistics of the speeds.
        energy = 0.5 * np.sum(v * v)
        kinetic[t] = energy
        hottest = max(hottest, energy)
        coldest = min(coldest, energy)
        if hottest > 100.0 * max(coldest, 1e-9):
            v *= 0.9

    # A histogram of speeds in sixteen bins, and its mode.
    fastest = np.max(np.abs(v))
    if fastest < 1e-12:
        fastest = 1.0
    for k in range(count):
        bin_number = int((v[k] / fastest + 1.0) * 8.0)
        if bin_number > 15:
            bin_number = 15
        elif bin_number < 0:
            bin_number = 0
        histogram[bin_number] += 1
    fullest, most = 0, -1
    for b in range(16):
        if histogram[b] > most:
            most = histogram[b]
            fullest = b

    # Insertion sort of positions; count the moves.
    order = x.copy()
    moved = 0
    for k in range(1, count):
        value = order[k]
        j = k - 1
        while j >= 0 and order[j] > value:
            order[j + 1] = order[j]
            j -= 1
            moved += 1
        order[j + 1] = value

    # Gaps between neighbours, the running median of three, and runs of small ones.
    gaps = order[1:] - order[:-1]
    smooth = gaps.copy()
    for k in range(1, gaps.shape[0] - 1):
        a, b, c = gaps[k - 1], gaps[k], gaps[k + 1]
        if a > b:
            a, b = b, a
        if b > c:
            b, c = c, b
        if a > b:
            a, b = b, a
        smooth[k] = b
    typical = smooth.mean()
    longest = run = 0
    for k in range(smooth.shape[0]):
        if smooth[k] < typical:
            run += 1
            longest = max(longest, run)
        else:
            run = 0

    # Autocorrelation of the energy, until it is less than a tenth.
    centred = kinetic - kinetic.mean()
    variance = np.sum(centred * centred)
    lag = 0
    while lag < steps - 1:
        together = 0.0
        for t in range(steps - lag):
            together += centred[t] * centred[t + lag]
        if together < 0.1 * variance:
            break
        lag += 1

    # The distance of each particle from the mean, in standard deviations.
    middle = x.mean()
    spread = np.sqrt(np.mean((x - middle) ** 2))
    outside = 0
    if spread > 0.0:
        for k in range(count):
            if abs(x[k] - middle) > 1.5 * spread:
                outside += 1
    numbers = np.array([collisions, crossings, lost, fullest, most, moved, longest, lag, outside])
    return kinetic, electric, histogram, smooth, numbers
