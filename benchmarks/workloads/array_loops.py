"""Programs whose loops carry an array and write it element by element, once for functrans and JAX.

Each maps arrays to an array. The benchmark measures it, and the gradient of the sum of its squared elements.
"""

from __future__ import annotations

from functools import partial

#: Of the heat steps: the time step times the diffusivity, over the square of the distance of two cells.
HEAT_RATE = 0.2

#: Of the particle filter: the standard deviation of an observation.
OBSERVATION_ERROR = 0.7


def recursion(x, *, np, lax):
    """Each element from the one before it."""

    def step(i, y):
        return y.at[i].set(np.sin(y[i - 1]) + x[i])

    return lax.fori_loop(1, x.shape[0], step, x)


def recursion_in_scan(x, *, np, lax):
    """The same, with the numbers as rows of a scan."""

    def step(y, row):
        i, number = row
        return y.at[i].set(np.sin(y[i - 1]) + number), None

    return lax.scan(step, x, (np.arange(1, x.shape[0]), x[1:]))[0]


def recursion_checkpointed(x, *, np, lax):
    """The same with a checkpoint every 100 steps, which only functrans has as an option."""

    def step(y, i):
        return y.at[i].set(np.sin(y[i - 1]) + x[i]), None

    return lax.scan(step, x, np.arange(1, x.shape[0]), checkpoint_every=100)[0]


def recursion_in_while(x, *, np, lax):
    """The same in a loop whose trip count is found on the way."""

    def going(state):
        i, y = state
        return (i < x.shape[0]) & (y[i - 1] < 1e6)

    def step(state):
        i, y = state
        return i + 1, y.at[i].set(np.sin(y[i - 1]) + x[i])

    return lax.while_loop(going, step, (1, x))[1]


def recursion_with_cond(x, *, np, lax):
    """A recursion that overwrites the elements above zero only."""

    def step(i, y):
        return lax.cond(x[i] > 0, lambda y: y.at[i].set(np.sin(y[i - 1]) + x[i]), lambda y: y, y)

    return lax.fori_loop(1, x.shape[0], step, x)


def leverage(r, a, b, c, *, np, lax):
    """Variances of a GARCH model with leverage: a branch changes the element that was just written."""

    def step(t, h):
        h = h.at[t].set(0.1 + a * r[t - 1] ** 2 + b * h[t - 1])
        return lax.cond(r[t] < 0, lambda: h.at[t].add(c * r[t] ** 2), lambda: h)

    return lax.fori_loop(1, r.shape[0], step, np.ones(r.shape[0]))


def recursion_in_lanes(x, *, api, np, lax):
    """The recursion under `vmap`."""
    return api.vmap(partial(recursion, np=np, lax=lax))(x)


def recursion_of_rows(x, weights, *, np, lax):
    """Each row from the one before it."""

    def step(i, y):
        return y.at[i].set(np.sin(weights * y[i - 1]) + x[i])

    return lax.fori_loop(1, x.shape[0], step, x)


def tridiagonal(lower, diagonal, upper, right, *, np, lax):
    """A tridiagonal system by Thomas's algorithm."""
    n = right.shape[0]

    def eliminate(i, state):
        c, d = state
        pivot = diagonal[i] - lower[i] * c[i - 1]
        return c.at[i].set(upper[i] / pivot), d.at[i].set((right[i] - lower[i] * d[i - 1]) / pivot)

    def substitute(k, x):
        i = n - 2 - k
        return x.at[i].set(x[i] - c[i] * x[i + 1])

    c = np.zeros(n).at[0].set(upper[0] / diagonal[0])
    d = np.zeros(n).at[0].set(right[0] / diagonal[0])
    c, d = lax.fori_loop(1, n, eliminate, (c, d))
    return lax.fori_loop(0, n - 1, substitute, d)


def alignment(scores, gap, *, np, lax):
    """The score of the best global alignment of two sequences (Needleman and Wunsch)."""
    rows, columns = scores.shape

    def row(i, h):
        def cell(j, h):
            shifted = np.maximum(h[i - 1, j], h[i, j - 1]) - gap
            return h.at[i, j].set(np.maximum(h[i - 1, j - 1] + scores[i - 1, j - 1], shifted))

        return lax.fori_loop(1, columns + 1, cell, h)

    h = np.zeros((rows + 1, columns + 1))
    h = h.at[0].set(-gap * np.arange(columns + 1)).at[:, 0].set(-gap * np.arange(rows + 1))
    return lax.fori_loop(1, rows + 1, row, h)[rows, columns]


def banded_cholesky(band, *, np, lax):
    """The Cholesky factor of a banded matrix; column k of a band is the diagonal k below the main one."""
    n, width = band.shape
    reach = width - 1

    def row(i, factor):
        def element(t, factor):
            k = reach - t
            rest = lax.fori_loop(
                k + 1, width, lambda m, s: s - factor[i, m] * factor[i - k, m - k], factor[i, k]
            )
            return factor.at[i, k].set(rest / factor[i - k, 0])

        factor = lax.fori_loop(0, reach, element, factor)
        rest = lax.fori_loop(1, width, lambda m, s: s - factor[i, m] * factor[i, m], factor[i, 0])
        return factor.at[i, 0].set(np.sqrt(rest))

    # Rows of the identity above the first one: each row then has all its neighbours.
    above = np.zeros((reach, width)).at[:, 0].set(1.0)
    return lax.fori_loop(reach, n + reach, row, np.concatenate([above, band]))[reach:]


def explicit_heat(u, left, right, *, np, lax):
    """Explicit steps of the heat equation, with the values at both ends given."""

    def step(t, u):
        u = u.at[1:-1].add(HEAT_RATE * (u[2:] - 2 * u[1:-1] + u[:-2]))
        return u.at[0].set(left[t]).at[-1].set(right[t])

    return lax.fori_loop(0, left.shape[0], step, u)


def implicit_heat(u, left, right, rate, *, np, lax):
    """Implicit steps of the heat equation, each a tridiagonal solve."""
    n = u.shape[0]

    def step(t, u):
        def eliminate(i, state):
            c, u = state
            pivot = 1 + 2 * rate + rate * c[i - 1]
            return c.at[i].set(-rate / pivot), u.at[i].set((u[i] + rate * u[i - 1]) / pivot)

        def substitute(k, u):
            i = n - 2 - k
            return u.at[i].add(-c[i] * u[i + 1])

        u = u.at[0].set(left[t]).at[-1].set(right[t])
        c, u = lax.fori_loop(1, n - 1, eliminate, (np.zeros(n), u))
        return lax.fori_loop(0, n - 2, substitute, u)

    return lax.fori_loop(0, left.shape[0], step, u)


def particle_filter(parameters, noise, offsets, observations, *, np, lax):
    """The log-likelihood of observations, by a filter that resamples after each."""
    steps, n = noise.shape

    def resampled(particles, weights, offset):
        sums = lax.fori_loop(1, n, lambda i, c: c.at[i].add(c[i - 1]), weights)

        def choose(i, state):
            j, chosen = state
            goal = (i + offset) / n * sums[n - 1]
            j = lax.while_loop(lambda j: (j < n - 1) & (sums[j] < goal), lambda j: j + 1, j)
            return j, chosen.at[i].set(particles[j])

        return lax.fori_loop(0, n, choose, (0, np.zeros(n)))[1]

    def step(t, state):
        particles, total = state
        a, b, deviation = parameters[0], parameters[1], parameters[2]
        particles = a * particles + b * np.sin(particles) + deviation * noise[t]
        weights = np.exp(-0.5 * ((observations[t] - particles) / OBSERVATION_ERROR) ** 2)
        return resampled(particles, weights, offsets[t]), total + np.log(np.sum(weights) / n)

    return lax.fori_loop(0, steps, step, (np.zeros(n), 0.0))[1]


def insertion_sort(x, *, lax):
    """The numbers in ascending order."""

    def insert(i, a):
        number = a[i]

        def going(state):
            j, a = state
            return (j >= 0) & (a[j] > number)

        def shift(state):
            j, a = state
            return j - 1, a.at[j + 1].set(a[j])

        j, a = lax.while_loop(going, shift, (i - 1, a))
        return a.at[j + 1].set(number)

    return lax.fori_loop(1, x.shape[0], insert, x)


def insertion_sort_in_lanes(x, *, api, lax):
    """Each row in ascending order, by `vmap`: the lanes have loops of their own lengths."""
    return api.vmap(partial(insertion_sort, lax=lax))(x)


def partition(x, *, lax):
    """Quicksort's step: what is below the last number goes before it (Lomuto's scheme)."""
    last = x.shape[0] - 1
    pivot = x[last]

    def step(j, state):
        def swap(i, a):
            return i + 1, a.at[i].set(a[j]).at[j].set(a[i])

        i, a = state
        return lax.cond(a[j] < pivot, swap, lambda i, a: (i, a), i, a)

    i, a = lax.fori_loop(0, last, step, (0, x))
    return a.at[i].set(a[last]).at[last].set(a[i])


def floyd_warshall(distances, *, np, lax):
    """The shortest paths between all pairs of nodes, element by element."""
    n = distances.shape[0]

    def through(k, d):
        def row(i, d):
            def element(j, d):
                return d.at[i, j].set(np.minimum(d[i, j], d[i, k] + d[k, j]))

            return lax.fori_loop(0, n, element, d)

        return lax.fori_loop(0, n, row, d)

    return lax.fori_loop(0, n, through, distances)


def floyd_warshall_by_rows(distances, *, np, lax):
    """The same, a row at a time."""
    n = distances.shape[0]

    def through(k, d):
        return lax.fori_loop(0, n, lambda i, d: d.at[i].set(np.minimum(d[i], d[i, k] + d[k])), d)

    return lax.fori_loop(0, n, through, distances)


def prefix_sums(x, *, lax):
    """The sums of what is before each element, by an upward and a downward pass over a tree (Blelloch)."""
    n = x.shape[0]
    levels = n.bit_length() - 1

    def up(level, a):
        half = 1 << level

        def add(k, a):
            end = (2 * k + 2) * half - 1
            return a.at[end].add(a[end - half])

        return lax.fori_loop(0, n >> (level + 1), add, a)

    def down(t, a):
        half = 1 << (levels - 1 - t)

        def swap(k, a):
            end = (2 * k + 2) * half - 1
            return a.at[end - half].set(a[end]).at[end].add(a[end - half])

        return lax.fori_loop(0, n // (2 * half), swap, a)

    a = lax.fori_loop(0, levels, up, x).at[n - 1].set(0.0)
    return lax.fori_loop(0, levels, down, a)


def lu(a, *, lax):
    """Both factors of a matrix in its place, without pivoting."""
    n = a.shape[0]

    def column(k, a):
        def row(i, a):
            factor = a[i, k] / a[k, k]
            a = a.at[i, k].set(factor)
            return lax.fori_loop(k + 1, n, lambda j, a: a.at[i, j].add(-factor * a[k, j]), a)

        return lax.fori_loop(k + 1, n, row, a)

    return lax.fori_loop(0, n - 1, column, a)


def event_queue(times, delays, *, np, lax):
    """The sum of the times of events from a binary heap; each event is replaced by a later one."""
    size = times.shape[0]

    def smaller_child(i, heap):
        child = np.minimum(2 * i + 1, size - 2)
        return child + np.where(heap[child + 1] < heap[child], 1, 0)

    def sink(state):
        i, heap = state
        child = smaller_child(i, heap)
        return child, heap.at[i].set(heap[child]).at[child].set(heap[i])

    def above(state):
        i, heap = state
        return (2 * i + 1 < size) & (heap[smaller_child(i, heap)] < heap[i])

    def event(t, state):
        heap, total = state
        now = heap[0]
        later = now + delays[t] * (1 + 0.1 * np.sin(now))
        return lax.while_loop(above, sink, (0, heap.at[0].set(later)))[1], total + now

    return lax.fori_loop(0, delays.shape[0], event, (times, 0.0))[1]
