"""Random programs with host calls: each is made once, in the order of the program, under every transformation."""

import random

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp

SCALAR = ft.ShapeDtypeStruct((), float)


def program(seed, log):
    """A function of x (differentiated) and y (looked at, and changed by host calls), which writes to `log`."""
    choose = random.Random(seed)
    steps = [
        (choose.choice("sdnjip"), choose.random(), choose.random()) for _ in range(choose.randint(4, 10))
    ]

    def note(k, y):
        def host(y):
            log.append((k, float(y)))
            return y

        return ft.io_callback(host, SCALAR, y)

    def look(k, x):
        ft.debug.callback(lambda x: log.append((k, float(x))), x)

    def f(x, y):
        xs, ys = [x, fnp.sin(x), y], [y]
        for k, (kind, u, v) in enumerate(steps):
            a, b, c = xs[int(u * len(xs))], xs[int(v * len(xs))], ys[int(v * len(ys))]
            if kind == "s":
                xs.append(fnp.sin(a) * b)
            elif kind == "d":
                look(k, a)
            elif kind == "n":
                ys.append(note(k, 1.5 * c))
            elif kind == "i":  # may raise
                ys.append((fnp.ones(3) * c)[fnp.asarray(0.0 * c).astype(int)])
            elif kind == "p":
                xs.append(a * ft.pure_callback(np.cos, SCALAR, c, vmap_method="sequential"))
            else:

                @ft.jit
                def inner(a, c, k=k):
                    look(k, a)
                    return fnp.cos(a) + note(k + 0.5, c)

                xs.append(inner(a, c))
        return sum(xs[1:], xs[0])

    return f


ONE = {
    "jit": ft.jit,
    "jit of jit": lambda f: ft.jit(lambda *xs: ft.jit(f)(*xs)),
    "grad": ft.grad,
    "jit of grad": lambda f: ft.jit(ft.grad(f)),
    "grad of jit": lambda f: ft.grad(ft.jit(f)),
    "twice": lambda f: ft.jit(ft.grad(ft.jit(ft.grad(f)))),
    "jvp": lambda f: lambda x, y: ft.jvp(ft.jit(lambda x: f(x, y)), (x,), (1.0,)),
}
MANY = {
    "jit": lambda f: ft.jit(ft.vmap(f)),
    "of jit": lambda f: ft.vmap(ft.jit(f)),
    "grad": lambda f: ft.vmap(ft.grad(f)),
    "all": lambda f: ft.jit(ft.vmap(ft.grad(ft.jit(f)))),
}


def calls(seed, how, x, y):
    log = []
    how(program(seed, log))(x, y)
    return log


def same(found, expected):
    assert [k for k, _ in found] == [k for k, _ in expected]
    np.testing.assert_allclose([x for _, x in found], [x for _, x in expected], rtol=1e-12)


@pytest.mark.wide(3)
@pytest.mark.parametrize("seed", range(15))
def test_once_and_in_order(seed):
    expected = calls(seed, lambda f: f, 0.3, 0.7)
    for how in ONE.values():
        same(calls(seed, how, 0.3, 0.7), expected)
    lanes = np.array([0.3, 0.4]), np.array([0.7, 0.8])
    batched = calls(seed, ft.vmap, *lanes)
    assert sorted(k for k, _ in batched) == sorted(k for k, _ in expected * 2)
    for how in MANY.values():
        same(calls(seed, how, *lanes), batched)
