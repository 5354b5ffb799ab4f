"""Random programs with hooks registered anywhere, against hooks placed after the definitions of their values."""

import numpy as np
import pytest
from generator.choices import drawn_by
from generator.drawing import Program, draw_program
from hypothesis import given, settings

import functrans as ft
import functrans.numpy as fnp

#: Functions whose values all depend on what is differentiated.
WEIGHTS = dict.fromkeys(
    ("sin", "scale", "negative", "add", "subtract", "multiply", "blend", "jitted", "branch"), 1
)


@drawn_by
def programs(choose):
    """A program with hooks that are registered on values anywhere after their definition."""
    drawn = draw_program(choose, WEIGHTS, most=8, depth=0, inputs=[np.asarray(0.3)])
    size, hooks = len(drawn.statements), []
    for _ in range(choose.integer(1, 4)):
        value = choose.integer(0, size)
        hooks.append((value, choose.of((2.0, -1.0, 3.0)), choose.integer(value, size)))
    return Program(
        drawn.inputs, drawn.statements, (size,), late=tuple(sorted(hooks, key=lambda hook: hook[2]))
    )


def registered(program):
    """The program with `register_hook`."""
    return lambda x: fnp.sum(program(x)[0])


def written_out(program):
    """The program with an identity after each definition, which has the cotangent of the hooks."""
    return lambda x: fnp.sum(program.plain(x)[0])


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
