"""Random programs with host calls: each is made once, in the order of the program, under every transformation."""

import numpy as np
import pytest
from generator.choices import Seeded
from generator.drawing import draw_program
from generator.libraries import Functrans

import functrans as ft
import functrans.numpy as fnp

#: Functions of numbers among which are host calls, some of which a reader of the log can tell apart.
WEIGHTS = {
    "sin": 2,
    "cos": 1,
    "multiply": 2,
    "called": 2,
    "noted": 3,
    "looked at": 3,
    "jit": 2,
    "checked index": 2,
}


def program(seed, log):
    """A function of x (differentiated) and y, which writes to `log`."""
    drawn = draw_program(Seeded(seed), WEIGHTS, most=12, depth=1, inputs=[np.asarray(0.3), np.asarray(0.7)])

    def f(x, y):
        lib = Functrans()
        lib.log = log
        return sum([fnp.sum(v) for v in drawn.run(lib, x, y)])

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
