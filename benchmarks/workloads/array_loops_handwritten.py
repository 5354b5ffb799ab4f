"""The programs whose loops write arrays, forward, as a patient user would write them by hand with Numba."""

from __future__ import annotations

import math

import numpy as np

from .array_loops import HEAT_RATE, OBSERVATION_ERROR
from .handwritten import fast


@fast
def recursion(x):
    y = np.empty_like(x)
    y[0] = x[0]
    for i in range(1, x.size):
        y[i] = math.sin(y[i - 1]) + x[i]
    return y


@fast
def recursion_in_while(x):
    y = x.copy()
    i = 1
    while i < x.size and y[i - 1] < 1e6:
        y[i] = math.sin(y[i - 1]) + x[i]
        i += 1
    return y


@fast
def recursion_with_cond(x):
    y = x.copy()
    for i in range(1, x.size):
        if x[i] > 0:
            y[i] = math.sin(y[i - 1]) + x[i]
    return y


@fast
def leverage(r, a, b, c):
    h = np.ones(r.size)
    for t in range(1, r.size):
        h[t] = 0.1 + a * r[t - 1] ** 2 + b * h[t - 1]
        if r[t] < 0:
            h[t] = h[t] + c * r[t] ** 2
    return h


@fast
def recursion_in_lanes(x):
    y = np.empty_like(x)
    for k in range(x.shape[0]):
        y[k, 0] = x[k, 0]
        for i in range(1, x.shape[1]):
            y[k, i] = math.sin(y[k, i - 1]) + x[k, i]
    return y


@fast
def recursion_of_rows(x, weights):
    y = np.empty_like(x)
    y[0] = x[0]
    for i in range(1, x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = math.sin(weights[j] * y[i - 1, j]) + x[i, j]
    return y


@fast
def tridiagonal(lower, diagonal, upper, right):
    n = right.size
    c, x = np.empty(n), np.empty(n)
    c[0], x[0] = upper[0] / diagonal[0], right[0] / diagonal[0]
    for i in range(1, n):
        pivot = diagonal[i] - lower[i] * c[i - 1]
        c[i] = upper[i] / pivot
        x[i] = (right[i] - lower[i] * x[i - 1]) / pivot
    for i in range(n - 2, -1, -1):
        x[i] -= c[i] * x[i + 1]
    return x


@fast
def alignment(scores, gap):
    rows, columns = scores.shape
    cost = gap[()]
    h = np.empty((rows + 1, columns + 1))
    for j in range(columns + 1):
        h[0, j] = -cost * j
    for i in range(1, rows + 1):
        h[i, 0] = -cost * i
        for j in range(1, columns + 1):
            h[i, j] = max(h[i - 1, j - 1] + scores[i - 1, j - 1], max(h[i - 1, j], h[i, j - 1]) - cost)
    return h[rows, columns]


@fast
def banded_cholesky(band):
    n, width = band.shape
    factor = np.zeros((n, width))
    for i in range(n):
        for k in range(min(i, width - 1), -1, -1):
            s = band[i, k]
            for m in range(k + 1, min(i + 1, width)):
                s -= factor[i, m] * factor[i - k, m - k]
            factor[i, k] = s / factor[i - k, 0] if k else math.sqrt(s)
    return factor


@fast
def explicit_heat(u, left, right):
    u = u.copy()
    for t in range(left.size):
        before = u[0]
        for i in range(1, u.size - 1):
            here = u[i]
            u[i] = here + HEAT_RATE * (u[i + 1] - 2 * here + before)
            before = here
        u[0], u[-1] = left[t], right[t]
    return u


@fast
def implicit_heat(u, left, right, rate):
    u = u.copy()
    n, r = u.size, rate[()]
    c = np.zeros(n)
    for t in range(left.size):
        u[0], u[-1] = left[t], right[t]
        for i in range(1, n - 1):
            pivot = 1 + 2 * r + r * c[i - 1]
            c[i] = -r / pivot
            u[i] = (u[i] + r * u[i - 1]) / pivot
        for i in range(n - 2, 0, -1):
            u[i] -= c[i] * u[i + 1]
    return u


@fast
def particle_filter(parameters, noise, offsets, observations):
    steps, n = noise.shape
    a, b, deviation = parameters
    particles, chosen, sums = np.zeros(n), np.empty(n), np.empty(n)
    total = 0.0
    for t in range(steps):
        running = 0.0
        for i in range(n):
            moved = a * particles[i] + b * math.sin(particles[i]) + deviation * noise[t, i]
            running += math.exp(-0.5 * ((observations[t] - moved) / OBSERVATION_ERROR) ** 2)
            particles[i], sums[i] = moved, running
        total += math.log(running / n)
        j = 0
        for i in range(n):
            goal = (i + offsets[t]) / n * running
            while j < n - 1 and sums[j] < goal:
                j += 1
            chosen[i] = particles[j]
        particles, chosen = chosen, particles
    return total


@fast
def insertion_sort(x):
    a = x.copy()
    for i in range(1, a.size):
        number = a[i]
        j = i - 1
        while j >= 0 and a[j] > number:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = number
    return a


@fast
def insertion_sort_in_lanes(x):
    a = np.empty_like(x)
    for k in range(x.shape[0]):
        a[k] = insertion_sort(x[k])
    return a


@fast
def partition(x):
    a = x.copy()
    last = a.size - 1
    pivot, i = a[last], 0
    for j in range(last):
        if a[j] < pivot:
            a[i], a[j] = a[j], a[i]
            i += 1
    a[i], a[last] = a[last], a[i]
    return a


@fast
def floyd_warshall(distances):
    d = distances.copy()
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d


@fast
def prefix_sums(x):
    a = x.copy()
    n, half = a.size, 1
    while half < n:
        for end in range(2 * half - 1, n, 2 * half):
            a[end] += a[end - half]
        half *= 2
    a[n - 1] = 0.0
    while half > 1:
        half //= 2
        for end in range(2 * half - 1, n, 2 * half):
            a[end - half], a[end] = a[end], a[end] + a[end - half]
    return a


@fast
def lu(matrix):
    a = matrix.copy()
    n = a.shape[0]
    for k in range(n - 1):
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            a[i, k] = factor
            for j in range(k + 1, n):
                a[i, j] -= factor * a[k, j]
    return a


@fast
def event_queue(times, delays):
    heap = times.copy()
    total = 0.0
    for delay in delays:
        now = heap[0]
        total += now
        later = now + delay * (1 + 0.1 * math.sin(now))
        i = 0
        while 2 * i + 1 < heap.size:
            child = 2 * i + 1
            if heap[child + 1] < heap[child]:
                child += 1
            if heap[child] >= later:
                break
            heap[i] = heap[child]
            i = child
        heap[i] = later
    return total
