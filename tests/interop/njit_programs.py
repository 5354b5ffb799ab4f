"""Published loop programs, as one writes them for Numba: names of their arguments, example arguments, the function."""

import math

import numpy as np

import functrans as ft

njit = ft.njit
rng = np.random.default_rng(3)
PROGRAMS = {}


def register(programs, args):
    """A decorator that adds a jitted function to some programs, with example arguments."""

    def add(f):
        programs[f.__name__] = (njit(f), args)
        return programs[f.__name__][0]

    return add


def program(*args):
    """Register a program with example arguments; all float ones are differentiated."""
    return register(PROGRAMS, args)


@njit
def steps(x, n):
    """What can be raised. (Pytest rewrites the assertions of test files, and Numba refuses what they become.)"""
    for _ in range(n):
        if x > 10.0:
            raise OverflowError("too large", x)
        x = x * x
    assert x > 0.0, "not positive"
    return 1.0 / (x - 1.0)


@program(rng.uniform(-1, 0, 7), rng.uniform(2, 3, 8), rng.uniform(-1, 0, 7), rng.normal(size=8))
def thomas(lower, diagonal, upper, right):
    """Tridiagonal solve (Conte and de Boor, 1972)."""
    n = diagonal.shape[0]
    c = np.empty(n)
    d = np.empty(n)
    c[0] = upper[0] / diagonal[0]
    d[0] = right[0] / diagonal[0]
    for i in range(1, n):
        m = diagonal[i] - lower[i - 1] * c[i - 1]
        if i < n - 1:
            c[i] = upper[i] / m
        d[i] = (right[i] - lower[i - 1] * d[i - 1]) / m
    x = np.empty(n)
    x[n - 1] = d[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = d[i] - c[i] * x[i + 1]
    return x


@program(rng.normal(size=(5, 6)), 0.7)
def needleman_wunsch(score, gap):
    """Global alignment (Needleman and Wunsch, 1970)."""
    n, m = score.shape
    best = np.zeros((n + 1, m + 1))
    for i in range(1, n + 1):
        best[i, 0] = -i * gap
    for j in range(1, m + 1):
        best[0, j] = -j * gap
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            best[i, j] = max(
                best[i - 1, j - 1] + score[i - 1, j - 1], best[i - 1, j] - gap, best[i, j - 1] - gap
            )
    return best[n, m]


@program(1.3, 0.2)
def adaptive_heun(k, y):
    """Heun and Euler with step control (Hairer, Norsett and Wanner, 1993)."""
    t, h = 0.0, 0.1
    steps = 0
    while t < 2.0:
        if t + h > 2.0:
            h = 2.0 - t
        a = k * y * (1.0 - y)
        z = y + h * a
        b = k * z * (1.0 - z)
        error = abs(0.5 * h * (b - a))
        if error < 1e-4:
            t += h
            y += 0.5 * h * (a + b)
        h *= min(2.0, max(0.3, 0.9 * math.sqrt(1e-4 / (error + 1e-12))))
        steps += 1
        if steps > 1000:
            raise RuntimeError("too many steps")
    return y


@program(np.eye(5) * 6 + rng.uniform(0, 1, (5, 5)))
def cholesky(a):
    """Cholesky's factor by rows (Golub and Van Loan, 4.2)."""
    n = a.shape[0]
    low = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j]
            for k in range(j):
                s -= low[i, k] * low[j, k]
            if i == j:
                if s <= 0.0:
                    raise ValueError("not positive definite")
                low[i, i] = math.sqrt(s)
            else:
                low[i, j] = s / low[j, j]
    return low


@program(np.eye(5) * 6 + rng.uniform(0, 1, (5, 5)))
def doolittle(a):
    """LU without pivots, on a copy (Golub and Van Loan, 3.2)."""
    lu = a.copy()
    n = len(lu)
    for k in range(n - 1):
        for i in range(k + 1, n):
            lu[i, k] /= lu[k, k]
            for j in range(k + 1, n):
                lu[i, j] -= lu[i, k] * lu[k, j]
    return lu


@program(rng.uniform(1, 5, (5, 5)))
def floyd_warshall(weights):
    """All shortest paths (Floyd, 1962)."""
    d = weights.copy()
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                through = d[i, k] + d[k, j]
                if through < d[i, j]:
                    d[i, j] = through
    return d


@program(np.array([2.0, 0.9, 0.4, 0.2, 0.1]))
def levinson(r):
    """Levinson's recursion (Durbin, 1960)."""
    n = r.shape[0] - 1
    a = np.zeros(n)
    previous = np.zeros(n)
    error = r[0]
    for i in range(n):
        s = r[i + 1]
        for j in range(i):
            s -= previous[j] * r[i - j]
        k = s / error
        a[i] = k
        for j in range(i):
            a[j] = previous[j] - k * previous[i - 1 - j]
        error *= 1.0 - k * k
        previous[:] = a
    return a, error


@program(2.7, 1.0)
def newton(a, x):
    """A cube root by Newton's method."""
    for _ in range(50):
        step = (x * x * x - a) / (3.0 * x * x)
        x -= step
        if abs(step) < 1e-13:
            break
    return x


@program(0.1, 2.5)
def simpson(a, b):
    """Composite Simpson's rule."""

    n = 20
    h = (b - a) / n
    total = math.exp(-a * a) + math.exp(-b * b)
    for i in range(1, n):
        x = a + i * h
        total += (4.0 if i % 2 else 2.0) * math.exp(-x * x)
    return total * h / 3.0


@program(rng.normal(size=12), 0.3, 0.5)
def kalman(observed, q, r):
    """Log-likelihood of a random walk with noise (Kalman, 1960)."""
    mean, var, like = 0.0, 1.0, 0.0
    for y in observed:
        var += q
        s = var + r
        residual = y - mean
        like -= 0.5 * (math.log(2.0 * math.pi * s) + residual * residual / s)
        gain = var / s
        mean += gain * residual
        var *= 1.0 - gain
    return like


@program(rng.normal(size=9), 0.2)
def heat(u, c):
    """Explicit heat steps, with two buffers that change places."""
    old = u.copy()
    new = np.zeros_like(u)
    for _ in range(6):
        for i in range(1, len(u) - 1):
            new[i] = old[i] + c * (old[i - 1] - 2.0 * old[i] + old[i + 1])
        new[0] = new[1]
        new[-1] = new[-2]
        old, new = new, old
    return old


@program(np.eye(4) * 5 + rng.uniform(0, 1, (4, 4)), rng.normal(size=4))
def gauss_seidel(a, b):
    """Gauss-Seidel until it converges."""
    n = b.size
    x = np.zeros(n)
    for _ in range(100):
        change = 0.0
        for i in range(n):
            s = b[i]
            for j in range(n):
                if j != i:
                    s -= a[i, j] * x[j]
            new = s / a[i, i]
            change = max(change, abs(new - x[i]))
            x[i] = new
        if change < 1e-12:
            return x
    return x


@program(rng.normal(size=6), rng.normal(size=7))
def dynamic_time_warping(a, b):
    """Sakoe and Chiba (1978)."""
    n, m = len(a), len(b)
    cost = np.full((n + 1, m + 1), np.inf)
    cost[0, 0] = 0.0
    for i in range(1, n + 1):
        row, above = cost[i], cost[i - 1]
        for j in range(1, m + 1):
            d = (a[i - 1] - b[j - 1]) ** 2
            row[j] = d + min(above[j], row[j - 1], above[j - 1])
    return cost[n, m]


@njit
def _log_sum(x):
    top = x[0]
    for value in x:
        if value > top:
            top = value
    total = 0.0
    for value in x:
        total += math.exp(value - top)
    return top + math.log(total)


@program(rng.normal(size=3), rng.normal(size=(3, 3)), rng.normal(size=(6, 3)))
def hidden_markov(start, moves, emits):
    """Forward algorithm, in logarithms (Rabiner, 1989)."""
    alpha = start + emits[0]
    for t in range(1, emits.shape[0]):
        new = np.empty(3)
        for j in range(3):
            new[j] = _log_sum(alpha + moves[:, j]) + emits[t, j]
        alpha = new
    return _log_sum(alpha)


@program(rng.normal(size=(4, 2)), rng.normal(size=(4, 2)), np.ones(4))
def leapfrog(position, velocity, mass):
    """Gravity by the leapfrog method (Verlet, 1967)."""
    x, v = position.copy(), velocity.copy()
    n = len(mass)
    for _ in range(4):
        force = np.zeros((n, 2))
        for i in range(n):
            for j in range(n):
                if i == j:
                    continue
                dx = x[j] - x[i]
                r2 = dx[0] ** 2 + dx[1] ** 2 + 0.1
                force[i] += mass[j] * dx / r2**1.5
        v += 0.05 * force
        x += 0.05 * v
    return x


@program(rng.normal(size=6), 0.4)
def clenshaw(c, x):
    """A Chebyshev series (Clenshaw, 1955)."""
    b1 = b2 = 0.0
    for k in range(len(c) - 1, 0, -1):
        b1, b2 = c[k] + 2.0 * x * b1 - b2, b1
    return c[0] + x * b1 - b2


@program(100.0, 95.0, 0.03, 0.25)
def american_put(spot, strike, rate, volatility):
    """Binomial tree (Cox, Ross and Rubinstein, 1979)."""
    n = 12
    dt = 1.0 / n
    up = math.exp(volatility * math.sqrt(dt))
    p = (math.exp(rate * dt) - 1.0 / up) / (up - 1.0 / up)
    value = np.empty(n + 1)
    for i in range(n + 1):
        value[i] = max(strike - spot * up ** (2.0 * i - n), 0.0)
    for step in range(n - 1, -1, -1):
        for i in range(step + 1):
            keep = math.exp(-rate * dt) * (p * value[i + 1] + (1.0 - p) * value[i])
            value[i] = max(keep, strike - spot * up ** (2.0 * i - step))
    return value[0]


@program(rng.normal(size=20), 0.1, 0.2, 0.7)
def garch(returns, omega, alpha, beta):
    """Negative log-likelihood of GARCH(1, 1) (Bollerslev, 1986)."""
    variance = np.empty(returns.size)
    variance[0] = np.var(returns)
    like = 0.0
    for t, r in enumerate(returns):
        if t > 0:
            variance[t] = omega + alpha * returns[t - 1] ** 2 + beta * variance[t - 1]
        like += 0.5 * (np.log(variance[t]) + r**2 / variance[t])
    return like


@program(np.diag(np.arange(1.0, 6.0)) + 0.1, rng.normal(size=5))
def conjugate_gradient(a, b):
    """Hestenes and Stiefel (1952)."""
    x = np.zeros_like(b)
    r = b - a @ x
    p = r.copy()
    rs = np.dot(r, r)
    steps = 0
    while rs > 1e-20 and steps < 3:
        steps += 1
        ap = np.dot(a, p)
        step = rs / np.dot(p, ap)
        x += step * p
        r -= step * ap
        new = np.dot(r, r)
        p = r + (new / rs) * p
        rs = new
    return x


@program(rng.normal(size=3), rng.normal(size=(3, 3)), rng.normal(size=(6, 3)))
def viterbi(start, moves, emits):
    """Score of the best path (Viterbi, 1967), and the path."""
    steps, n = emits.shape
    best = start + emits[0]
    back = np.zeros((steps, n), np.int64)
    for t in range(1, steps):
        new = np.empty(n)
        for j in range(n):
            top, k = -np.inf, 0
            for i in range(n):
                s = best[i] + moves[i, j]
                if s > top:
                    top, k = s, i
            new[j] = top + emits[t, j]
            back[t, j] = k
        best = new
    path = np.empty(steps, np.int64)
    path[-1] = np.argmax(best)
    for t in range(steps - 2, -1, -1):
        path[t] = back[t + 1, path[t + 1]]
    return np.max(best), path


@program(1.0, 0.4)
def arithmetic_geometric_mean(a, b):
    """Gauss (1799), until the means agree."""
    while abs(a - b) > 1e-14:
        a, b = 0.5 * (a + b), math.sqrt(a * b)
    return a


@program(np.array([0.0, 0.5, 1.2, 2.0]), rng.normal(size=4), 0.8)
def neville(x, y, at):
    """Polynomial interpolation (Neville, 1934)."""
    p = y.copy()
    n = len(x)
    for k in range(1, n):
        for i in range(n - k):
            p[i] = ((at - x[i + k]) * p[i] + (x[i] - at) * p[i + 1]) / (x[i] - x[i + k])
    return p[0]


@program(-0.1, 0.9)
def mandelbrot(re, im):
    """Smooth escape time."""
    x = y = 0.0
    for k in range(100):
        x, y = x * x - y * y + re, 2.0 * x * y + im
        r2 = x * x + y * y
        if r2 > 100.0:
            return k + 1.0 - math.log(0.5 * math.log(r2)) / math.log(2.0)
    return 100.0


@program(rng.normal(size=9))
def insertion_sort(values):
    """Weighted sum of the sorted values."""
    a = values.copy()
    for i in range(1, len(a)):
        x = a[i]
        j = i - 1
        while j >= 0 and a[j] > x:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = x
    total = 0.0
    for k, x in enumerate(a):
        total += (k + 1) * x
    return total
