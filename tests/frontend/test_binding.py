"""Arguments bound to parameters, and those that a decorator's options list: one binder for jit and custom rules."""

import numpy as np
import pytest

import functrans as ft
from functrans import errors

PLACES = [
    ({"static_argnums": 3}, "static_argnums has 3, .* 2 positional parameters: x, n"),
    ({"static_argnums": -3}, "static_argnums has -3"),
    ({"static_argnames": "m"}, "static_argnames has 'm', but .*: x, n"),
]
TYPES = [
    ({"nondiff_argnums": "x"}, "nondiff_argnums must be integers, got 'x'"),
    ({"nondiff_argnums": 1.0}, "nondiff_argnums must be integers, got 1.0"),
    ({"nondiff_argnums": True}, "nondiff_argnums must be integers, got True"),
    ({"nondiff_argnums": (0, None)}, "nondiff_argnums must be integers, got None"),
    ({"nondiff_argnums": np.array([[1]])}, "nondiff_argnums must be integers, got an array"),
    ({"nondiff_argnames": 1}, "nondiff_argnames must be strings, got 1"),
]


@pytest.mark.parametrize(("options", "message"), PLACES)
def test_parameters_that_are_not_there(options, message):
    with pytest.raises(errors.StaticArgumentError, match=f"jit of power: {message}"):
        ft.jit(power, **options)
    options = {name.replace("static", "nondiff"): value for name, value in options.items()}
    with pytest.raises(errors.FunctionDefinitionError, match=message.replace("static", "nondiff")):
        ft.custom_vjp(power, **options)


@pytest.mark.parametrize(("options", "message"), TYPES)
def test_options_of_other_types(options, message):
    with pytest.raises(errors.FunctionDefinitionError, match=f"custom_vjp of power: {message}"):
        ft.custom_vjp(power, **options)


def power(x, n):
    return x**n


@pytest.mark.parametrize(
    "options",
    [
        {"static_argnums": 1},
        {"static_argnums": -1},
        {"static_argnums": np.int64(1)},
        {"static_argnums": np.array([1])},
        {"static_argnames": "n"},
        {"static_argnames": {"n"}},
        {"static_argnums": iter([1]), "static_argnames": ("n",)},
    ],
)
def test_forms_of_options(options):
    assert ft.jit(power, **options)(2.0, 3) == 8.0


@pytest.mark.parametrize("n", [1, -1, np.int64(1), np.array([1])])
def test_forms_of_positions_of_custom_rules(n):
    f = ft.custom_vjp(power, nondiff_argnums=n)
    f.defvjp(lambda x, n: (f(x, n), x), lambda n, x, ct: (ct * n * x ** (n - 1),))
    assert ft.grad(f)(2.0, 3) == 12.0
    assert ft.grad(lambda x: f(n=3, x=x))(2.0) == 12.0
