"""Loop nests up to seven deep: convolution, products, shortest paths, elimination, string alignment."""

from typing import Any

import numpy as np


def nests(images: Any, filters: Any, bias: Any, graph: Any) -> Any:
    """Some two hundred lines of loops over single elements."""
    batch, channels, height, width = images.shape
    count, _, tall, wide = filters.shape
    out_height, out_width = height - tall + 1, width - wide + 1
    convolved = np.zeros((batch, count, out_height, out_width))
    n = graph.shape[0]
    report = np.zeros(10)

    # A convolution by its definition, with a rectifier.
    for image in range(batch):
        for f in range(count):
            for y in range(out_height):
                for x in range(out_width):
                    total = bias[f]
                    for c in range(channels):
                        for i in range(tall):
                            for j in range(wide):
                                total += images[image, c, y + i, x + j] * filters[f, c, i, j]
                    if total < 0.0:
                        total *= 0.01
                    convolved[image, f, y, x] = total

    # Max pooling of two by two, with the argmax.
    pooled = np.zeros((batch, count, out_height // 2, out_width // 2))
    came = np.zeros((batch, count, out_height // 2, out_width // 2), np.int64)
    for image in range(batch):
        for f in range(count):
            for y in range(out_height // 2):
                for x in range(out_width // 2):
                    best, argmax = convolved[image, f, 2 * y, 2 * x], 0
                    for i in range(2):
                        for j in range(2):
                            value = convolved[image, f, 2 * y + i, 2 * x + j]
                            if value > best:
                                best, argmax = value, 2 * i + j
                    pooled[image, f, y, x] = best
                    came[image, f, y, x] = argmax
    report[0] = convolved.sum()
    report[1] = came.sum()

    # All-pairs shortest paths, and the longest of them.
    path = graph.copy()
    for k in range(n):
        for i in range(n):
            if path[i, k] > 1e8:
                continue
            for j in range(n):
                through = path[i, k] + path[k, j]
                if through < path[i, j]:
                    path[i, j] = through
    diameter = 0.0
    for i in range(n):
        for j in range(n):
            if i != j and path[i, j] < 1e8:
                diameter = max(diameter, path[i, j])
    report[2] = diameter

    # Elimination with pivoting, and the determinant.
    a = graph.copy()
    for i in range(n):
        a[i, i] += n
    sign, logarithm = 1.0, 0.0
    for k in range(n):
        pivot, largest = k, abs(a[k, k])
        for i in range(k + 1, n):
            if abs(a[i, k]) > largest:
                pivot, largest = i, abs(a[i, k])
        if largest == 0.0:
            sign = 0.0
            break
        if pivot != k:
            for j in range(n):
                a[k, j], a[pivot, j] = a[pivot, j], a[k, j]
            sign = -sign
        if a[k, k] < 0.0:
            sign = -sign
        logarithm += np.log(abs(a[k, k]))
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            a[i, k] = factor
            for j in range(k + 1, n):
                a[i, j] -= factor * a[k, j]
    report[3] = sign
    report[4] = logarithm

    # The product of both triangular factors must restore the matrix.
    worst = 0.0
    product = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            total = 0.0
            for k in range(n):
                if k > i or k > j:
                    break
                if k == i:
                    total += a[k, j]
                else:
                    total += a[i, k] * a[k, j]
            product[i, j] = total
    for i in range(n):
        row = 0.0
        for j in range(n):
            row += abs(product[i, j])
        worst = max(worst, row)
    report[5] = worst

    # The best order to multiply a chain of matrices of these sizes.
    sizes = np.zeros(n + 1, np.int64)
    for i in range(n + 1):
        sizes[i] = 5 + i * 7 % 13
    cost = np.zeros((n, n))
    split = np.zeros((n, n), np.int64)
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            least, where = 1e300, i
            for k in range(i, j):
                price = cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                if price < least:
                    least, where = price, k
            cost[i, j] = least
            split[i, j] = where
    report[6] = cost[0, n - 1]

    # Alignment of two strings with affine gap costs.
    m = out_height * out_width
    one = np.zeros(m, np.int64)
    for y in range(out_height):
        for x in range(out_width):
            if convolved[0, 0, y, x] > 0.5:
                one[y * out_width + x] = 2
            elif convolved[0, 0, y, x] > 0.0:
                one[y * out_width + x] = 1
    other = one[::-1]
    score = np.zeros((m + 1, m + 1))
    top = 0.0
    for i in range(1, m + 1):
        for j in range(1, m + 1):
            same = 2.0 if one[i - 1] == other[j - 1] else -1.0
            value = max(0.0, score[i - 1, j - 1] + same)
            for gap in range(1, 4):
                if gap <= i:
                    value = max(value, score[i - gap, j] - 1.0 - 0.5 * gap)
                if gap <= j:
                    value = max(value, score[i, j - gap] - 1.0 - 0.5 * gap)
            score[i, j] = value
            if value > top:
                top = value
    report[7] = top

    # The largest sum of a rectangle, over all pairs of rows.
    rows, columns = out_height, out_width
    largest_sum = -1e300
    sums = np.zeros(columns)
    for upper in range(rows):
        for j in range(columns):
            sums[j] = 0.0
        for lower in range(upper, rows):
            running = 0.0
            for j in range(columns):
                sums[j] += convolved[0, 0, lower, j]
                running += sums[j]
                if running > largest_sum:
                    largest_sum = running
                if running < 0.0:
                    running = 0.0
    report[8] = largest_sum

    # Triangles in the graph.
    triangles = 0
    for i in range(n):
        for j in range(i + 1, n):
            if graph[i, j] > 1.0:
                continue
            for k in range(j + 1, n):
                if graph[j, k] <= 1.0 and graph[i, k] <= 1.0:
                    triangles += 1
    report[9] = triangles
    return pooled, path, split, report
