"""Small loops that use one feature of jitted code each."""

import numpy as np

import functrans as ft

from .njit_programs import register

FEATURES = {}


def prog(*args):
    """Register a function with example arguments."""
    return register(FEATURES, args)


@prog(2.3)
def while_true(x):
    k = 0
    while True:
        x = x * 0.5
        k += 1
        if x < 0.1:
            break
        if k % 3 == 0:
            continue
        x += 0.01
    return x, k


@prog(np.array([[1.0, 2, 3], [4, 5, 6.0]]), 4.5)
def nested_break(a, lim):
    hit = -1
    s = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            s += a[i, j]
            if a[i, j] > lim:
                hit = i * 10 + j
                break
        else:
            s *= 2
            continue
        s -= 1
        break
    return s, hit


@prog(np.arange(6.0) - 2.5)
def early_array(x):
    for i in range(len(x)):
        if x[i] > 0:
            y = x * 2
            y[i] = -1
            return y
    return np.zeros_like(x)


@ft.njit
def fill(y, v):
    for i in range(len(y)):
        if v < 0:
            return i
        y[i] = v * i
    return len(y)


@prog(np.array([1.5, -2.0]))
def callee_writes(x):
    a = np.zeros((2, 4))
    n = 0
    for i in range(2):
        n += fill(a[i], x[i])
    return a, n


@prog(0.3, 1.7)
def ternary(x, y):
    z = x if x > y else y * y
    w = (x < 1 < y) and (y > 0 or x > 5)
    return z * 2 if w else -z


@prog(np.random.default_rng(0).normal(size=(2, 3, 4)))
def three(a):
    s = np.zeros(3)
    for i in range(2):
        for k in range(3, -1, -1):
            s += a[i, :, k] * k
    t = a[::-1, 1:, ::2]
    return s, t.sum(), a[1, -1, -2], np.where(a > 0, a, 0.0).sum()


@prog(np.array([1, 2, 2, 3, 1, 1]))
def hist(x):
    h = np.zeros(5, np.int64)
    for v in x:
        h[v] += 1
    return h, h.argmax()


@prog(1.2)
def comp(x):
    z = complex(x, 0.5)
    for _ in range(3):
        z = z * z + 0.1j
    return z.real, abs(z)


@prog(np.array([3.0, 1.0, 2.0]))
def swap_in_while(x):
    u = x.copy()
    v = np.zeros_like(x)
    k = 0
    while k < 5 and u[0] < 50:
        for i in range(3):
            v[i] = u[(i + 1) % 3] * 1.1 + u[i]
        u, v = v, u
        k += 1
    return u, k


@prog(np.array([0.5, 2.0, 0.1]), 3)
def triangular(x, n):
    s = 0.0
    for i in range(n):
        for j in range(i, -1, -1):
            s += x[i] * x[j] / (1 + j)
        for j in range(i + 1, n, 2):
            s -= x[j]
    return s


@prog(np.array([1.0, 2.0, 3.0, 4.0]))
def window(x):
    s = 0.0
    for i in range(len(x) - 1):
        s += np.sum(x[i : i + 2] ** 2) * i
    y = np.zeros(4)
    for i in range(1, 3):
        y[i - 1 : i + 2] += x[i]
    return s, y


@prog(np.array([1.0, 2.0, 3.0]))
def tuples(x):
    a = (x[0], x[1])
    b = (1, 2, 3)
    s = 0.0
    for v in b:
        s += v * a[0]
    for i in range(3):
        s += b[i] * x[i]
    (p, q), r = (a, s)
    return p * q + r, len(b), x.shape[0]


@prog(np.array([1.0, 2.0, 3.0]))
def cond_array(x):
    y = np.zeros(3)
    for i in range(3):
        if x[i] > 1.5:
            y[i] = x[i] ** 2
            if x[i] > 2.5:
                y[0] += x[i]
        elif x[i] > 0.5:
            y[i] = -1.0
    return y


@prog(np.array([1.0, -2.0, 3.0]))
def npfuncs(x):
    return (
        np.abs(x).max()
        + np.linalg.norm(x)
        + np.dot(x, x)
        + np.mean(x)
        + np.prod(x)
        + np.cumsum(x)[1]
        + np.sort(x)[0]
        + np.maximum(x, 0).sum()
        + np.exp(x[0])
        + np.sqrt(x * x)[2]
        + np.array([x[0], 2.0]).sum()
        + np.concatenate((x, x)).sum()
        + np.linspace(0.0, 1.0, 5).sum()
        + np.float64(3)
    )


@prog(5.0, 2)
def ints(x, n):
    m = 7 // n
    k = -7 % 3
    b = 1 << n
    f = x // 1.5
    g = x % 1.5
    return m, k, b, f, g, n**2, x**n, 2**0.5, divmod(7, 2)[0], int(x), round(x, 1), -x, +n, not n, abs(-n)


@prog(np.array([[2.0, 1], [1, 3]]), np.array([1.0, 2]))
def lin(a, b):
    return np.linalg.solve(a, b), a.T @ b, np.linalg.inv(a)[0, 1], a[0] @ b


@prog(np.array([[1.0, -2.0], [0.5, 3.0], [2.0, 0.3]]))
def places(a):
    """Loops over places, over tuples of tuples and of arrays; array comprehensions."""
    out = np.empty((2, 3))
    s = 0.0
    for i, j in np.ndindex(a.shape):
        out[j, i] = a[i, j] * (i + 2 * j)
    for (i, j), x in np.ndenumerate(a):
        s += i * x + j * x * x
    for u, w in ((a[0, 0], 1), (a[1, 1], 2)):
        s += u * w
    for row in (a[0], a[1]):
        s += row[0] * row.sum()
    grid = np.array([[a[i, j] * a[j, i] for j in range(2)] for i in range(2)])
    return out, s, grid, np.array([row.sum() for row in a])
