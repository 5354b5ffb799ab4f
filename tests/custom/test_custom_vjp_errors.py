"""What rules of `custom_vjp` may return, and every misuse. Converted as by JAX, or refused by name."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.custom_derivatives import (
    zero_from_primal,
)

X = np.linspace(0.3, 1.2, 4)
Y = np.linspace(1.0, 2.0, 4)


def with_rule(fun, fwd, bwd, **options):
    defining = {k: options.pop(k) for k in ("symbolic_zeros", "optimize_remat") if k in options}
    f = ft.custom_vjp(fun, **options)
    f.defvjp(fwd, bwd, **defining)
    return f


def twice():
    """The identity, whose gradients come back doubled."""
    return with_rule(lambda x: x, lambda x: (x, None), lambda kept, ct: (2.0 * ct,))


def slope_with(bwd, x=X, y=2.0, argnums=(0, 1), fwd=lambda x, y: (x * y, (x, y)), fun=lambda x, y: x * y):
    f = with_rule(fun, fwd, bwd)
    return ft.grad(lambda x, y: fnp.sum(f(x, y)), argnums)(x, y)


@pytest.mark.parametrize(
    ("returned", "wanted"),
    [
        (lambda g: (None, 3.0), (np.zeros(4), 3.0)),
        (lambda g: (g, 3), (np.ones(4), 3.0)),
        (lambda g: [g, fnp.sum(g)], (np.ones(4), 4.0)),
        (lambda g: (g.astype("float32"), fnp.float32(2)), (np.ones(4), 2.0)),
        (lambda g: (np.arange(4), np.array(2)), (np.arange(4.0), 2.0)),
        (lambda g: (zero_from_primal(g, symbolic_zeros=True), 1.0), (np.zeros(4), 1.0)),
    ],
)
def test_gradients_are_converted(returned, wanted):
    found = slope_with(lambda kept, g: returned(g))
    for a, b in zip(found, wanted):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == np.float64


def test_a_real_gradient_of_a_complex_argument_is_converted():
    f = with_rule(lambda z: z, lambda z: (z, None), lambda kept, ct: (ct.real,))
    found = ft.grad(lambda z: f(z).real)(1.0 + 2.0j)
    assert found == 1.0
    assert found.dtype == np.complex128


@pytest.mark.parametrize(
    "anything",
    [None, 0, 0.0, np.zeros((), [("float0", np.void, 0)]), np.zeros(()), np.False_, 3.0, np.ones(3), 1j],
)
def test_the_gradient_of_an_integer_is_ignored(anything):
    np.testing.assert_array_equal(slope_with(lambda k, g: (g, anything), y=2, argnums=0), 1.0)


def test_a_rule_for_floats_may_be_called_with_an_integer():
    f = with_rule(lambda x, y: x * y, lambda x, y: (x * y, (x, y)), lambda r, ct: (ct * r[1], ct * r[0]))
    for derive in (ft.grad, lambda f: ft.jit(ft.grad(f))):
        assert derive(lambda x: f(x, 2))(3.0) == 2.0
        assert derive(lambda y: f(3, y))(2.0) == 3.0
        np.testing.assert_array_equal(ft.vmap(derive(lambda y: f(3, y)))(np.ones(2)), 3.0)


WRONG_GRADIENTS = {
    "bare": (
        lambda g: g,
        "GradientStructureError",
        r"must return a tuple with a gradient for each argument \(2\)",
    ),
    "none": (lambda g: None, "GradientStructureError", "but returned None"),
    "few": (lambda g: (g,), "GradientCountError", r"incorrect number of gradients \(expected 2, got 1\)"),
    "many": (
        lambda g: (g, 1.0, None),
        "GradientCountError",
        r"incorrect number of gradients \(expected 2, got 3\)",
    ),
    "shorter": (
        lambda g: (g[:2], 1.0),
        "GradientShapeError",
        r"invalid gradient at index 0 - got \[2\] but expected shape compatible with \[4\]: that of argument 0 \('x'\)",
    ),
    "one more axis": (lambda g: (g[None], 1.0), "GradientShapeError", r"got \[1, 4\]"),
    "not summed": (
        lambda g: (g, g),
        "GradientShapeError",
        r"index 1 - got \[4\] .*with \[\].*argument 1 \('y'\)",
    ),
    "complex": (
        lambda g: (1j * g, 1.0),
        "GradientDtypeError",
        r"complex gradient for argument 0 \('x'\).*take .real",
    ),
    "text": (lambda g: (g, "a"), "BackwardError", r"'a' of type str as the gradient of argument 1 \('y'\)"),
    "tree": (
        lambda g: ((g, g), 1.0),
        "GradientStructureError",
        r"argument 0 \('x'\): expected an array, got a tuple of length 2",
    ),
}


@pytest.mark.parametrize("case", WRONG_GRADIENTS)
@pytest.mark.parametrize("compiled", [False, True])
def test_wrong_gradients(case, compiled):
    returned, error, text = WRONG_GRADIENTS[case]

    def misled(kept, g):
        return returned(g)

    f = with_rule(lambda x, y: x * y, lambda x, y: (x * y, (x, y)), misled)
    loss = lambda x, y: fnp.sum(f(x, y))
    slope = ft.grad(ft.jit(loss) if compiled else loss, (0, 1))
    with pytest.raises(getattr(ft.errors, error), match=text) as caught:
        slope(X, 2.0)
    assert "custom_vjp of <lambda>: the bwd rule misled" in str(caught.value)
    assert "in test_wrong_gradients.<locals>.misled" in str(caught.value)
    assert "return returned(g)" in str(caught.value)


def test_errors_are_of_the_types_that_jax_raises():
    with pytest.raises(TypeError):
        slope_with(lambda k, g: (g,))
    with pytest.raises(ValueError):
        slope_with(lambda k, g: (g[:2], 1.0))


def test_wrong_structure_names_the_leaf():
    f = with_rule(
        lambda p: p["a"] * p["b"], lambda p: (p["a"] * p["b"], p), lambda p, ct: ({"a": ct, "c": ct},)
    )
    with pytest.raises(
        ft.errors.GradientStructureError,
        match=r"argument 0 \('p'\): expected .*\['a', 'b'\], got .*\['a', 'c'\]",
    ):
        ft.grad(f)({"a": 1.0, "b": 2.0})
    f = with_rule(lambda p: p["a"], lambda p: (p["a"], p), lambda p, ct: ({"a": fnp.ones(2)},))
    with pytest.raises(ft.errors.GradientShapeError, match=r"argument 0 \('p'\)\['a'\]"):
        ft.grad(f)({"a": 1.0})


# --- fwd ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", [lambda x, y: x * y, lambda x, y: (x, y, y), lambda x, y: None])
def test_fwd_must_return_a_pair(pair):
    with pytest.raises(ft.errors.FunctionDefinitionError, match=r"must return a pair \(output, residuals\)"):
        slope_with(lambda k, g: (g, 1.0), fwd=pair)


@pytest.mark.parametrize(
    ("fwd", "text"),
    [
        (lambda x: ((x, x), None), "a tuple of length 2 as the output, but f returned a leaf"),
        (lambda x: (x[:2], None), r"f64\[2\] as the output, but f returned f64\[4\]"),
        (lambda x: (x.astype("float32"), None), r"f32\[4\] as the output, but f returned f64\[4\]"),
    ],
)
def test_fwd_must_return_what_the_function_does(fwd, text):
    @ft.custom_vjp
    def f(x):
        return x

    f.defvjp(fwd, lambda kept, ct: (ct,))
    with pytest.raises(ft.errors.FunctionDefinitionError, match=text):
        ft.grad(ft.jit(lambda x: fnp.sum(f(x))))(X)


def test_residuals_may_hold_what_is_no_array():
    seen = []

    def bwd(kept, ct):
        seen.append(kept)
        return (ct * kept["scale"] if kept["flag"] else None,)

    kept = {
        "scale": 3,
        "flag": True,
        "name": "s",
        "none": None,
        "dtype": np.dtype(float),
        "more": [1.5, (2j,)],
    }
    f = with_rule(lambda x: x, lambda x: (x, kept), bwd)
    assert ft.grad(f)(1.0) == 3.0
    assert ft.jit(ft.grad(f))(1.0) == 3.0
    assert ft.grad(ft.jit(f))(1.0) == 3.0
    assert all(s == kept for s in seen)


def test_a_residual_of_another_kind():
    f = with_rule(lambda x: x, lambda x: (x, object()), lambda k, ct: (ct,))
    with pytest.raises(
        ft.errors.ArgumentError, match=r"the fwd rule <lambda>: a residual is .* of type object"
    ):
        ft.grad(f)(1.0)


# --- definitions -------------------------------------------------------------------------------------------------


def test_without_a_rule():
    f = ft.custom_vjp(lambda x: x)
    for call in (lambda: f(1.0), lambda: ft.jit(f)(1.0), lambda: ft.grad(f)(1.0)):
        with pytest.raises(
            ft.errors.MissingRuleError, match="No VJP defined for custom_vjp function <lambda> using defvjp"
        ):
            call()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda f: f(), "missing a required argument: 'x'"),
        (lambda f: f(1.0, 2.0, 3.0), "too many positional arguments"),
        (lambda f: f(1.0, 2.0, z=3.0), "unexpected keyword argument 'z'"),
        (lambda f: f(1.0, 2.0, key=3.0), "key can be passed by name only"),
    ],
)
def test_wrong_arguments(call, text):
    f = with_rule(lambda x, y=1.0, *, key=0: x, lambda x, y: (x, None), lambda k, ct: (ct, None))
    with pytest.raises(ft.errors.FunctionDefinitionError, match=text):
        call(f)
    with pytest.raises(TypeError):
        call(f)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"nondiff_argnums": 2}, "nondiff_argnums has 2, but the function has 2 positional parameters: x, y"),
        ({"nondiff_argnums": -3}, "nondiff_argnums has -3"),
        ({"nondiff_argnums": ("x",)}, "must be integers, got 'x'"),
        ({"nondiff_argnames": "z"}, "nondiff_argnames has 'z', but its parameters are: x, y"),
    ],
)
def test_wrong_options(options, text):
    with pytest.raises(ft.errors.FunctionDefinitionError, match=text):
        ft.custom_vjp(lambda x, y: x, **options)


def test_wrong_definitions():
    with pytest.raises(ft.errors.ArgumentError, match=r"custom_vjp: .*a function"):
        ft.custom_vjp(3)
    with pytest.raises(ft.errors.FunctionDefinitionError, match="defvjp takes functions, got 'None'"):
        ft.custom_vjp(lambda x: x).defvjp(None, lambda k, ct: (ct,))
    f = with_rule(lambda x, *more: x, lambda x, *more: (x, None), lambda k, ct: (ct,), nondiff_argnums=2)
    with pytest.raises(
        ft.errors.FunctionDefinitionError, match="nondiff_argnums has 2, but it was called with 1 arguments"
    ):
        f(1.0)


def test_an_argument_that_is_no_array():
    f = twice()
    with pytest.raises(
        ft.errors.ArgumentError, match=r"argument 0 \('x'\) is 'text' of type str.*nondiff_argnums"
    ):
        f("text")
