"""Scalars alone: number theory, root finding, quadrature, an adaptive integrator and a small market, in turn."""

import math
from typing import Any

import numpy as np


def scalars(seed: Any, iterations: Any, tolerance: Any) -> Any:
    """Some two hundred lines of Python numbers; NumPy is used only for the results."""
    roots = np.zeros(16)
    state = seed % 2147483647
    if state == 0:
        state = 1

    # Lengths of Collatz sequences, and the longest of them.
    longest, where = 0, 1
    for start in range(1, iterations):
        value, steps = start, 0
        while value != 1:
            if value % 2 == 0:
                value //= 2
            else:
                value = 3 * value + 1
            steps += 1
            if steps > 500:
                break
        if steps > longest:
            longest, where = steps, start
    roots[0] = longest
    roots[1] = where

    # Primes by trial division, their sum and the largest gap.
    total, last, gap = 0, 2, 0
    for candidate in range(2, iterations):
        is_prime = True
        divisor = 2
        while divisor * divisor <= candidate:
            if candidate % divisor == 0:
                is_prime = False
                break
            divisor += 1
        if is_prime:
            total += candidate
            if candidate - last > gap:
                gap = candidate - last
            last = candidate
    roots[2] = total
    roots[3] = gap

    # Coprime pairs, which estimate pi.
    coprime, pairs = 0, 0
    for i in range(1, iterations // 4 + 2):
        for j in range(1, iterations // 4 + 2):
            a, b = i, j
            while b != 0:
                a, b = b, a % b
            if a == 1:
                coprime += 1
            pairs += 1
    if coprime > 0:
        roots[4] = math.sqrt(6.0 * pairs / coprime)
    else:
        roots[4] = -1.0

    # Roots of x**3 - c by bisection, Newton's method and the secant method; count the steps of each.
    bisections = newtons = secants = 0
    for k in range(1, 20):
        c = 0.5 * k
        low, high = 0.0, max(1.0, c)
        while high - low > tolerance:
            middle = 0.5 * (low + high)
            if middle * middle * middle > c:
                high = middle
            else:
                low = middle
            bisections += 1
            if bisections > 5000:
                break
        x = max(1.0, c)
        for _ in range(60):
            change = (x * x * x - c) / (3.0 * x * x)
            x -= change
            newtons += 1
            if abs(change) < tolerance:
                break
        lower, other = 0.5, max(1.0, c)
        for _ in range(60):
            f, g = lower * lower * lower - c, other * other * other - c
            if abs(g - f) < 1e-300:
                break
            lower, other = other, other - g * (other - lower) / (g - f)
            secants += 1
            if abs(other - lower) < tolerance:
                break
        roots[5] += low + x + other
    roots[6] = bisections
    roots[7] = newtons
    roots[8] = secants

    # A quadrature that halves its steps until two results agree.
    panels, before, integral = 1, 0.0, 1.0
    while abs(integral - before) > tolerance and panels < 4096:
        before, panels = integral, panels * 2
        width = 1.0 / panels
        integral = 0.0
        for k in range(panels + 1):
            x = k * width
            y = math.exp(-x * x) if x < 0.5 else math.exp(-0.25) * math.cos(x - 0.5)
            if k == 0 or k == panels:
                weight = 1.0
            elif k % 2 == 1:
                weight = 4.0
            else:
                weight = 2.0
            integral += weight * y * width / 3.0
    roots[9] = integral
    roots[10] = panels

    # A damped oscillator with error-controlled steps.
    position, speed, t, h = 1.0, 0.0, 0.0, 0.1
    taken = refused = 0
    while t < 10.0:
        if t + h > 10.0:
            h = 10.0 - t
        if h < 1e-9:
            break
        p1, v1 = speed, -position - 0.1 * speed
        p2, v2 = speed + h * v1, -(position + h * p1) - 0.1 * (speed + h * v1)
        error = 0.5 * h * max(abs(p2 - p1), abs(v2 - v1))
        if error < tolerance * 100.0 or h < 1e-5:
            position += 0.5 * h * (p1 + p2)
            speed += 0.5 * h * (v1 + v2)
            t += h
            taken += 1
            if error < tolerance * 10.0:
                h *= 2.0
        else:
            h *= 0.5
            refused += 1
        if taken + refused > 20000:
            break
    roots[11] = position
    roots[12] = taken - refused

    # A market: a random-walk price, a trader with two rules, and a tax on gains.
    price, money, shares, best = 100.0, 1000.0, 0, 1000.0
    slow = fast = price
    bought = 0.0
    for day in range(iterations):
        state = state * 16807 % 2147483647
        shock = state / 2147483647.0 - 0.5
        if day % 50 == 49:
            shock *= 4.0
        elif day % 7 >= 5:
            shock = 0.0
        price *= 1.0 + 0.04 * shock
        if price < 1.0:
            price = 1.0
        fast += 0.3 * (price - fast)
        slow += 0.05 * (price - slow)
        if fast > slow * 1.002 and shares == 0:
            shares = int(money / price)
            money -= shares * price
            bought = price
        elif shares > 0 and (fast < slow or price < 0.9 * bought):
            won = shares * (price - bought)
            money += shares * price
            if won > 100.0:
                money -= 0.3 * won
            elif won > 0.0:
                money -= 0.2 * won
            else:
                money -= 1.0
            shares = 0
        worth = money + shares * price
        best = max(best, worth)
        if worth < 0.5 * best:
            break
    roots[13] = money + shares * price
    roots[14] = best
    roots[15] = state % 1000

    # A checksum of everything, which exposes any error above.
    check = 0.0
    for k in range(16):
        value = roots[k]
        if value != value:
            check = -1.0
            break
        check += value / (1.0 + abs(value)) * (k + 1)
    return roots, check
