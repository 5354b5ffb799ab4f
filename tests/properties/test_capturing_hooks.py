"""Random programs whose hooks read their values: all forms agree with eager derivatives, in both orders."""

import random

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

X, V = np.array([0.4, -0.7, 1.1]), np.array([1.0, 2.0, -1.0])
OPERATIONS = [
    fnp.sin,
    fnp.tanh,
    lambda v: 1.3 * v,
    lambda v: v + 0.5,
    lambda v: fnp.exp(-v * v),
    lambda v: v * v,
]
FORMS = {
    "grad jit": lambda f: ft.grad(ft.jit(f)),
    "jit grad": lambda f: ft.jit(ft.grad(f)),
    "checkpoint": lambda f: ft.grad(ft.checkpoint(f)),
    "vmap grad": lambda f: lambda x: ft.vmap(ft.grad(f))(x[None])[0],
    "grad vmap jit": lambda f: lambda x: ft.grad(lambda xs: fnp.sum(ft.vmap(ft.jit(f))(xs)))(x[None])[0],
}


def program(seed, mode):
    """A sum of values, each computed from earlier ones; half of them get a hook that reads another one."""

    def f(x):
        draw, values = random.Random(seed), [x]
        some = lambda first=0: values[draw.randrange(first, len(values))]
        for _ in range(draw.randint(2, 6)):
            kind = draw.random()
            if kind < 0.6:
                v = draw.choice(OPERATIONS)(some())
            elif kind < 0.8:
                v = some() * some()
            elif kind < 0.9:
                w, a = some(), some()
                v = lax.scan(lambda c, _, a=a, w=w: (fnp.tanh(c * a) + 0.1 * w, None), w, None, 2)[0]
            else:
                w, s = some(), some()
                v = ft.cotangent_hook(w * 1.1, lambda ct, s=s: ct * (1.0 + 0.3 * s), mode=mode)
            values.append(v)
            if draw.random() < 0.5 and len(values) > 2:
                y, m = some(1), some()
                if draw.random() < 0.7:
                    ft.register_hook(y, lambda ct, m=m: ct * (0.5 + 0.2 * m), mode=mode)
                else:
                    ft.register_hook(y, lambda ct, m=m: fnp.where(m > 0.3, ct, 0.5 * ct), mode=mode)
        return fnp.sum(values[-1] + 0.1 * values[len(values) // 2])

    return f


@pytest.mark.parametrize(
    "seed", [*range(6), *[pytest.param(s, marks=pytest.mark.slow) for s in range(6, 60)]]
)
def test_all_forms_agree(seed):
    f = program(seed, "inline")
    second = lambda g: ft.grad(lambda x: fnp.vdot(V, g(x)))(X)
    first, along = ft.grad(f)(X), second(ft.grad(f))
    np.testing.assert_allclose(ft.jit(ft.grad(program(seed, "host")))(X), first, rtol=1e-9, atol=1e-12)
    for name, form in FORMS.items():
        gradient = form(f)
        np.testing.assert_allclose(gradient(X), first, rtol=1e-9, atol=1e-12, err_msg=name)
        np.testing.assert_allclose(second(gradient), along, rtol=1e-8, atol=1e-10, err_msg=name)
