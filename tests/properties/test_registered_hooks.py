"""Random programs with hooks registered anywhere, against hooks placed after the definitions of their values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp

inner = ft.jit(lambda a, b: fnp.cos(a) + b)
shifted = ft.jit(lambda a: a + 0.25)
OPS = {
    "shift": lambda a, b: a + 0.5,
    "from": lambda a, b: 2.0 - a,
    "minus": lambda a, b: a - 1.5,
    "neg": lambda a, b: -a,
    "sin": lambda a, b: fnp.sin(a),
    "scale": lambda a, b: 0.7 * a,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "jit": inner,
    "inner jit": lambda a, b: shifted(a),
}


@st.composite
def programs(draw):
    """Equations ``(op, operand, operand)``, and hooks ``(value, factor, after which equation)`` in order."""
    size = draw(st.integers(1, 8))
    eqns = [
        (draw(st.sampled_from(sorted(OPS))), draw(st.integers(0, k)), draw(st.integers(0, k)))
        for k in range(size)
    ]
    hooks = []
    for _ in range(draw(st.integers(1, 4))):
        value = draw(st.integers(0, size))
        hooks.append((value, draw(st.sampled_from([2.0, -1.0, 3.0])), draw(st.integers(value, size))))
    return eqns, sorted(hooks, key=lambda hook: hook[2])


def hook(factor):
    return lambda ct: factor * ct + 0.125


def registered(program):
    """The program with `register_hook`."""
    eqns, hooks = program

    def f(x):
        values = [x]
        for k in range(len(eqns) + 1):
            for value, factor, when in hooks:
                if when == k:
                    ft.register_hook(values[value], hook(factor))
            if k < len(eqns):
                op, a, b = eqns[k]
                values.append(OPS[op](values[a], values[b]))
        return fnp.sum(values[-1])

    return f


def written_out(program):
    """The program with an identity after each definition, which has the cotangent of the hooks."""
    eqns, hooks = program

    def f(x):
        values = []
        for k in range(len(eqns) + 1):
            value = x if k == 0 else OPS[eqns[k - 1][0]](*[values[i] for i in eqns[k - 1][1:]])
            for own, factor, _ in reversed(hooks):  # the one registered first comes last
                if own == k:
                    value = ft.cotangent_hook(value, hook(factor))
            values.append(value)
        return fnp.sum(values[-1])

    return f


FORMS = {
    "eager": ft.grad,
    "grad jit": lambda f: ft.grad(ft.jit(f)),
    "jit grad": lambda f: ft.jit(ft.grad(f)),
    "vmap grad": lambda f: ft.vmap(ft.grad(f)),
    "grad vmap": lambda f: ft.grad(lambda x: fnp.sum(ft.vmap(f)(x))),
    "jit grad vmap": lambda f: ft.jit(ft.grad(lambda x: fnp.sum(ft.vmap(f)(x)))),
}


@pytest.mark.parametrize("form", FORMS)
@given(program=programs())
@settings(max_examples=20)
def test_a_registration_is_an_identity_behind_the_definition(form, program):
    x = np.array([0.3, -1.2, 2.0])
    got = FORMS[form](registered(program))(x)
    if "vmap" in form:
        want = [ft.grad(written_out(program))(row) for row in x]
    else:
        want = ft.grad(written_out(program))(x)
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


@given(program=programs())
@settings(max_examples=10)
def test_at_the_second_order(program):
    x = np.array([0.3, -1.2])
    total = lambda f: lambda x: fnp.sum(ft.grad(f)(x) * np.array([1.0, -2.0]))
    got = ft.grad(total(registered(program)))(x)
    np.testing.assert_allclose(got, ft.grad(total(written_out(program)))(x), rtol=1e-9, atol=1e-12)
