"""Rules that call derivatives of compiled code and loops, or are compiled themselves, in every mode."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

X = np.array([0.3, 0.4])


def sine(x):
    return fnp.sin(x)


BODIES = {
    "jit": ft.jit(sine),
    "fori": lambda x: lax.fori_loop(0, 1, lambda i, c: fnp.sin(c), x),
    "while": lambda x: lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, fnp.sin(c[1])), (0, x))[1],
    "cond": lambda x: lax.cond(fnp.sum(x) > -9.0, sine, fnp.cos, x),
    "checkpoint": ft.checkpoint(sine),
    "vmap": ft.vmap(ft.jit(sine)),
}


def jvp_of(body):
    """A rule that has its derivative from `ft.jvp`."""
    f = ft.custom_jvp(lambda x: body(x))
    f.defjvp(lambda primals, tangents: ft.jvp(body, primals, tangents))
    return f


def vjp_of(body):
    f = ft.custom_vjp(sine)
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * body(x + np.pi / 2),))
    return f


def compiled_jvp():
    f = ft.custom_jvp(sine)
    f.defjvp(ft.jit(lambda primals, tangents: (f(*primals), fnp.cos(primals[0]) * tangents[0])))
    return f


def twice_compiled_jvp():
    inner = ft.jit(lambda x, t: (fnp.sin(x), fnp.cos(x), fnp.cos(x) * t))

    @ft.jit
    def rule(primals, tangents):
        y, _, t = inner(*primals, *tangents)
        return y, t

    f = ft.custom_jvp(sine)
    f.defjvp(rule)
    return f


def compiled_bwd():
    helper = ft.jit(lambda x, ct: (fnp.cos(x), 0.5 * ct))
    f = ft.custom_vjp(sine)

    def bwd(x, ct):
        slope, half = helper(x, ct)
        return (2.0 * slope * half,)

    f.defvjp(lambda x: (f(x), x), bwd)
    return f


FUNCTIONS = {
    **{f"jvp of {name}": jvp_of(body) for name, body in BODIES.items()},
    **{f"vjp by {name}": vjp_of(body) for name, body in BODIES.items()},
    "compiled jvp": compiled_jvp(),
    "twice compiled jvp": twice_compiled_jvp(),
    "compiled bwd": compiled_bwd(),
}


@pytest.mark.wide(3)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("mapped", [False, True], ids=["one", "vmap"])
def test_every_mode(name, mapped):
    f = FUNCTIONS[name]

    def total(x):
        y = ft.vmap(f)(fnp.stack([x, x]))[0] if mapped else f(x)
        return fnp.sum(y**2)

    first, second = np.sin(2 * X), 2 * np.cos(2 * X)
    gradient = ft.grad(total)
    forms = {
        "grad": (gradient, first),
        "grad of jit": (ft.grad(ft.jit(total)), first),
        "jit of grad": (ft.jit(gradient), first),
        "jacfwd": (ft.jacfwd(total), first),
        "linearize": (lambda x: ft.linearize(gradient, x)[1](np.ones(2)), second),
        "grad of grad": (ft.grad(lambda x: fnp.sum(gradient(x))), second),
        "grad of push": (ft.grad(lambda x: ft.linearize(total, x)[1](np.ones(2))), second),
        "hessian": (lambda x: fnp.sum(ft.hessian(total)(x), axis=0), second),
        "jit of hessian": (ft.jit(lambda x: fnp.sum(ft.hessian(ft.jit(total))(x), axis=0)), second),
    }
    for form, (of, expected) in forms.items():
        np.testing.assert_allclose(of(X), expected, rtol=1e-12, err_msg=form)


def test_a_loop_of_arguments_and_tangents_is_refused_by_name():
    f = ft.custom_jvp(sine)

    @f.defjvp
    def rule(primals, tangents):
        def body(i, c):
            x, t = c
            return fnp.sin(x), fnp.cos(x) * t

        return lax.fori_loop(0, 1, body, (*primals, *tangents))

    np.testing.assert_allclose(ft.jvp(f, (X,), (np.ones(2),))[1], np.cos(X))
    with pytest.raises(ft.FunctionError, match="takes arguments and tangents together"):
        ft.grad(lambda x: fnp.sum(f(x)))(X)


@pytest.mark.parametrize("jitted", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_compiled_code_that_is_not_linear_is_refused(jitted):
    """Not linearised in its turn."""
    clip = jitted(lambda x, t: (fnp.sin(x), fnp.clip(t, -1.0, 1.0)))
    f = ft.custom_jvp(sine)
    f.defjvp(lambda primals, tangents: clip(*primals, *tangents))
    with pytest.raises(ft.FunctionError, match="not linear"):
        ft.grad(lambda x: fnp.sum(f(x)))(X)
    g = ft.custom_vjp(sine)
    g.defvjp(lambda x: (g(x), x), lambda x, ct: (clip(x, ct)[1],))
    with pytest.raises(ft.FunctionError, match="not linear"):
        ft.jvp(g, (X,), (X,))
