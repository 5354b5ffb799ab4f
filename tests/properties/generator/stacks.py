"""Random stacks of transformations of functions of several arrays.

A function takes float and integer arrays and returns a tuple of float arrays; a level makes another such function.
"""

from __future__ import annotations

import numpy as np

import functrans as ft
import functrans.numpy as fnp

from .choices import drawn_by
from .libraries import Functrans, Python

COMPILED, PLAIN = Functrans(), Python(fnp)


def moves(x):
    return np.dtype(x.dtype).kind in "fc"


def direction(x, n=0):
    """Fixed numbers of the type of `x`."""
    size = int(np.prod(x.shape))
    found = np.cos(1.0 + n + np.arange(size)).reshape(x.shape)
    if np.dtype(x.dtype).kind == "c":
        found = found * (1.0 - 0.5j)
    return np.asarray(found).astype(x.dtype)


def of_floats(f, xs, n=0):
    """`f` as a function of float arrays (of the first one only, where `n` is 4), and these."""
    at = [i for i, x in enumerate(xs) if moves(x)][: 1 if n == 4 else None]

    def g(*floats):
        full = list(xs)
        for i, x in zip(at, floats):
            full[i] = x
        return f(*full)

    return g, tuple([xs[i] for i in at])


def weighed(outs):
    """A real number that depends on all outputs."""
    total = 0.0
    for i, y in enumerate(outs):
        part = fnp.sum(y * direction(y, i))
        total = total + (fnp.real(part) if np.dtype(y.dtype).kind == "c" else part)
    return total


def _jit(lib, f, n):
    return lib.jit(f)


def _vmap(lib, f, n):
    def g(*xs):
        axes, many = [], []
        for i, x in enumerate(xs):
            axis = [0, -1, None][(n + i) % 3] if i or n % 3 < 2 else 0
            axes.append(axis)
            rows = [x, x if not moves(x) else 0.5 * x, x]
            many.append(x if axis is None else fnp.stack(rows[: 1 + n % 3], axis=axis))
        return lib.vmap(f, tuple(axes), (0, -1)[n % 2])(*many)

    return g


def _jvp(lib, f, n):
    def g(*xs):
        h, floats = of_floats(f, xs, n)
        # One argument alone now and then: the others have no tangent at all.
        if n % 2 and len(floats) > 1:
            one = n % len(floats)
            alone = lambda x: h(*floats[:one], x, *floats[one + 1 :])
            outs, ts = ft.jvp(alone, (floats[one],), (direction(floats[one]),))
        else:
            outs, ts = ft.jvp(h, floats, tuple([direction(x, n) for x in floats]))
        return (*outs, *ts)

    return g


def _linearize(lib, f, n):
    def g(*xs):
        h, floats = of_floats(f, xs, n)
        outs, push = ft.linearize(h, *floats)
        return (*outs, *push(*[direction(x, n) for x in floats]))

    return g


def _vjp(lib, f, n):
    def g(*xs):
        h, floats = of_floats(f, xs, n)
        if n % 2:  # the other outputs have no cotangent at all
            out, pull = ft.vjp(lambda *ys: h(*ys)[0], *floats)
            return pull(direction(out))
        outs, pull = ft.vjp(h, *floats)
        return (*outs, *pull(tuple([direction(y, n + i) for i, y in enumerate(outs)])))

    return g


def _grad(lib, f, n):
    def g(*xs):
        h, floats = of_floats(f, xs, n)
        if n % 2:
            return ft.grad(lambda *ys: weighed(h(*ys)), argnums=tuple(range(len(floats))))(*floats)
        value, grads = ft.value_and_grad(lambda ys: weighed(h(*ys)))(floats)
        return (value, *grads)

    return g


def _hvp(lib, f, n):
    def g(*xs):
        h, floats = of_floats(f, xs, n)
        gradient = ft.grad(lambda *ys: weighed(h(*ys)), argnums=tuple(range(len(floats))))
        if n % 2:
            return ft.jvp(gradient, floats, tuple([direction(x, n) for x in floats]))[1]
        along = lambda *ys: sum(fnp.sum(fnp.real(a * direction(a))) for a in gradient(*ys))
        return ft.grad(along, argnums=tuple(range(len(floats))))(*floats)

    return g


def _hessian(lib, f, n):
    def g(*xs):
        h, floats = of_floats(f, xs, n)
        if floats[0].dtype.kind == "c" or floats[0].size > 6:
            return _hvp(lib, f, n)(*xs)
        scalar = lambda x: weighed(h(x, *floats[1:]))
        second = (ft.hessian, lambda s: ft.jacrev(ft.grad(s)), lambda s: ft.jacfwd(ft.jacfwd(s)))[n % 3]
        return (second(scalar)(floats[0]),)

    return g


def _checkpoint(lib, f, n):
    return lib.checkpoint(f, None)


def _carried(f, xs):
    """One turn of a loop: the arrays changed by what `f` makes of them, and its outputs."""
    outs = f(*xs)
    s = fnp.tanh(0.1 * weighed(outs))
    return tuple([fnp.asarray(0.8 * x + 0.2 * s, x.dtype) if moves(x) else x for x in xs]), tuple(outs)


def _scan(lib, f, n):
    def g(*xs):
        xs = tuple([fnp.asarray(x) for x in xs])
        last, rows = lib.scan(lambda c, _: _carried(f, c), xs, None, 1 + n % 3, bool(n % 2))
        return (*rows, *[x for x in last if moves(x)])

    return g


def _scan_rows(lib, f, n):
    def g(*xs):
        """The first array by rows; the others are captured."""
        rows = fnp.stack([xs[0], 0.5 * xs[0]])
        return tuple(lib.scan(lambda c, x: (c, tuple(f(x, *xs[1:]))), None, rows, 2)[1])

    return g


def _fori(lib, f, n):
    def g(*xs):
        xs = tuple([fnp.asarray(x) for x in xs])
        last = lib.fori(0, 1 + n % 2, lambda i, c: _carried(f, c)[0], xs)
        return tuple([x for x in last if moves(x)])

    return g


def _while(lib, f, n):
    def g(*xs):
        start = (0, tuple([fnp.asarray(x) for x in xs]))
        _, last = lib.while_loop(
            lambda c: c[0] < 1 + n % 2, lambda c: (c[0] + 1, _carried(f, c[1])[0]), start
        )
        return tuple([x for x in last if moves(x)])

    return g


def _cond(lib, f, n):
    def g(*xs):
        test = fnp.sum(fnp.real(xs[0])) > (-100.0 if n % 2 else 100.0)
        other = lambda *ys: tuple([0.5 * y for y in f(*ys)])
        return lib.cond(test, f, other, *xs)

    return g


#: name: (transformation, how many times it differentiates).
LEVELS = {
    "jit": (_jit, 0),
    "vmap": (_vmap, 0),
    "jvp": (_jvp, 1),
    "linearize": (_linearize, 1),
    "vjp": (_vjp, 1),
    "grad": (_grad, 1),
    "hvp": (_hvp, 2),
    "hessian": (_hessian, 2),
    "checkpoint": (_checkpoint, 0),
    "scan": (_scan, 0),
    "rows": (_scan_rows, 0),
    "fori": (_fori, 0),
    "while": (_while, 0),
    "cond": (_cond, 0),
}
_CHOICES = ["jit", "vmap", "jvp", "vjp", "grad"] * 2 + list(LEVELS)


def draw_stack(choose, most=4, order=3, choices=None):
    """Levels ``(name, number)``, outermost first, that differentiate at most `order` times."""
    found = []
    for _ in range(choose.integer(1, most)):
        name = choose.of(choices or _CHOICES)
        order -= LEVELS[name][1]
        if order < 0:
            break
        found.append((name, choose.integer(0, 5)))
    return found


stacks = drawn_by(draw_stack)


def applied(f, levels, lib=COMPILED):
    """The function under a stack; by `PLAIN`, lanes and loops are those of Python."""
    for name, n in reversed(levels):
        f = LEVELS[name][0](lib, f, n)
    return f
