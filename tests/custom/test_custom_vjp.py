"""`custom_vjp`: rules for reverse mode. Where a fact about JAX is tested, the number is the one that JAX 0.10 gives."""

import itertools

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

X = np.linspace(0.3, 1.2, 4)
Y = np.linspace(1.0, 2.0, 4)


def with_rule(fun, fwd, bwd, **options):
    defining = {k: options.pop(k) for k in ("symbolic_zeros", "optimize_remat") if k in options}
    f = ft.custom_vjp(fun, **options)
    f.defvjp(fwd, bwd, **defining)
    return f


def right():
    """``sin(x) y`` with its derivative."""
    return with_rule(
        lambda x, y: fnp.sin(x) * y,
        lambda x, y: (fnp.sin(x) * y, (x, y)),
        lambda kept, ct: (ct * fnp.cos(kept[0]) * kept[1], ct * fnp.sin(kept[0])),
    )


def twice():
    """The identity, whose gradients come back doubled."""
    return with_rule(lambda x: x, lambda x: (x, None), lambda kept, ct: (2.0 * ct,))


def square(factor=5.0):
    return with_rule(lambda x: x**2, lambda x: (x**2, x), lambda x, ct: (factor * x * ct,))


# --- values and derivatives ------------------------------------------------------------------------------------


def test_value():
    f = right()
    np.testing.assert_allclose(f(X, Y), np.sin(X) * Y, rtol=1e-15)
    np.testing.assert_allclose(ft.jit(f)(X, Y), np.sin(X) * Y, rtol=1e-15)
    np.testing.assert_allclose(ft.vmap(f)(X, Y), np.sin(X) * Y, rtol=1e-15)
    np.testing.assert_allclose(f(0.5, 2.0), np.sin(0.5) * 2.0)
    assert isinstance(f(X, Y), ft.Array)
    assert not np.asarray(f(X, Y)).flags.writeable


FIRST = {
    "grad": lambda f: ft.grad(f, (0, 1)),
    "grad of jit": lambda f: ft.grad(ft.jit(f), (0, 1)),
    "jit of grad": lambda f: ft.jit(ft.grad(f, (0, 1))),
    "jacfwd": lambda f: ft.jacfwd(f, (0, 1)),
    "jacrev": lambda f: ft.jacrev(f, (0, 1)),
    "jit of jacfwd": lambda f: ft.jit(ft.jacfwd(f, (0, 1))),
    "vjp": lambda f: lambda x, y: ft.vjp(f, x, y)[1](1.0),
    "linearize": lambda f: lambda x, y: [ft.linearize(f, x, y)[1](*t) for t in ((1.0, 0.0), (0.0, 1.0))],
    "jvp": lambda f: lambda x, y: [ft.jvp(f, (x, y), t)[1] for t in ((1.0, 0.0), (0.0, 1.0))],
    "grad of checkpoint": lambda f: ft.grad(ft.checkpoint(f), (0, 1)),
    "jit of grad of checkpoint": lambda f: ft.jit(ft.grad(ft.checkpoint(f), (0, 1))),
}


@pytest.mark.parametrize("stack", FIRST)
def test_first_derivatives(stack):
    x, y = 0.7, 1.3
    np.testing.assert_allclose(FIRST[stack](right())(x, y), [np.cos(x) * y, np.sin(x)], rtol=1e-14)


@pytest.mark.parametrize("stack", [s for s in FIRST if s != "linearize"])
@pytest.mark.parametrize("order", ["vmap outside", "vmap inside"])
def test_mapped(stack, order):
    f = right()
    if order == "vmap outside":
        found = ft.vmap(lambda x, y: tuple(FIRST[stack](f)(x, y)))(X, Y)
        np.testing.assert_allclose(found, [np.cos(X) * Y, np.sin(X)], rtol=1e-14)
    else:
        g = ft.vmap(f)
        found = ft.grad(lambda x, y: fnp.sum(g(x, y)), (0, 1))(X, Y)
        np.testing.assert_allclose(found, [np.cos(X) * Y, np.sin(X)], rtol=1e-14)


def test_an_argument_that_is_not_mapped_gets_the_sum():
    f = right()
    found = ft.grad(lambda x, y: fnp.sum(ft.vmap(f, (0, None))(x, y)), (0, 1))(X, 2.0)
    np.testing.assert_allclose(found[0], 2.0 * np.cos(X), rtol=1e-14)
    np.testing.assert_allclose(found[1], np.sum(np.sin(X)), rtol=1e-14)


SECOND = [
    a + "-" + b
    for a, b in itertools.product(["grad", "jacfwd", "jacrev", "jit"], ["grad", "jacfwd", "jacrev"])
]


@pytest.mark.parametrize("stack", SECOND)
def test_second_derivatives(stack):
    f = right()
    outer, inner = stack.split("-")
    g = getattr(ft, inner)(f)
    second = ft.jit(ft.grad(g)) if outer == "jit" else getattr(ft, outer)(g)
    assert second(0.7, 1.3) == pytest.approx(-np.sin(0.7) * 1.3, rel=1e-14)


def test_hessian_of_an_array():
    f = right()
    found = ft.hessian(lambda x: fnp.sum(f(x, Y)))(X)
    np.testing.assert_allclose(found, np.diag(-np.sin(X) * Y), rtol=1e-14, atol=1e-15)


def test_derivatives_agree_with_finite_differences_to_third_order():
    f = right()
    ft.testing.check(f, X, Y, order=3)


def test_complex():
    f = with_rule(lambda z: z**3, lambda z: (z**3, z), lambda z, ct: (3.0 * z**2 * ct,))
    z = 0.4 + 0.3j
    assert ft.grad(f, holomorphic=True)(z) == pytest.approx(3 * z**2)
    assert ft.jvp(f, (z,), (1j,))[1] == pytest.approx(3j * z**2)
    np.testing.assert_allclose(ft.grad(lambda z: fnp.abs(f(z)))(z), ft.grad(lambda z: fnp.abs(z**3))(z))


# --- the rule is used ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stack", FIRST)
def test_a_wrong_rule_is_used_all_the_same(stack):
    f = with_rule(
        lambda x, y: x * y, lambda x, y: (x * y, (x, y)), lambda k, ct: (7.0 * ct * k[1], 5.0 * ct * k[0])
    )
    np.testing.assert_allclose(FIRST[stack](f)(2.0, 3.0), [21.0, 10.0], rtol=1e-15)


def test_numbers_that_jax_gives():
    f = square()
    np.testing.assert_allclose(ft.vmap(ft.grad(f))(np.arange(3.0)), [0.0, 5.0, 10.0])
    assert ft.grad(ft.grad(f))(2.0) == 5.0
    assert ft.hessian(square(2.0))(1.0) == 2.0
    cubed = with_rule(lambda x: x**3, lambda x: (x**3, x), lambda x, ct: (3 * x**2 * ct,))
    assert ft.grad(ft.grad(cubed))(2.0) == 12.0


def exp_thrice(again):
    f = ft.custom_vjp(fnp.exp)

    def fwd(x):
        y = f(x) if again else fnp.exp(x)
        return y, y

    f.defvjp(fwd, lambda y, ct: (3.0 * ct * y,))
    return f


@pytest.mark.parametrize(("again", "orders"), [(False, [3.0, 3.0, 3.0]), (True, [3.0, 9.0, 27.0])])
@pytest.mark.parametrize("compiled", [False, True])
def test_fwd_decides_whether_the_rule_holds_at_all_orders(again, orders, compiled):
    g = exp_thrice(again)
    for wanted in orders:
        g = ft.grad(ft.jit(g)) if compiled else ft.grad(g)
        assert g(0.0) == pytest.approx(wanted)


def test_straight_through():
    f = with_rule(lambda x: fnp.round(x), lambda x: (fnp.round(x), None), lambda kept, ct: (ct,))
    assert ft.grad(lambda x: f(x) * x)(1.3) == pytest.approx(2.3)
    assert ft.grad(ft.grad(lambda x: f(x) * x))(1.3) == pytest.approx(1.0)


def test_what_is_only_evaluated_runs_the_function_and_not_fwd():
    ran = []

    def fwd(x):
        ran.append("fwd")
        return x, None

    def fun(x):
        ran.append("fun")
        return x

    f = with_rule(fun, fwd, lambda kept, ct: (ct,))
    f(1.0)
    ft.jit(f)(1.0)
    ft.vmap(f)(X)
    assert set(ran) == {"fun"}
    ran.clear()
    ft.grad(f)(1.0)
    assert ran == ["fwd"]


def test_eagerly_rules_see_numbers():
    def fwd(x):
        return x, float(x) > 1.0

    def bwd(large, ct):
        if large:
            return (10.0 * ct,)
        return (ct if float(ct) > 0 else 0.0,)

    f = with_rule(lambda x: x if x > 0 else -x, fwd, bwd)
    assert [f(-2.0), ft.grad(f)(2.0), ft.grad(f)(0.5), ft.grad(lambda x: -f(x))(0.5)] == [2.0, 10.0, 1.0, 0.0]


# --- loops, branches, checkpoints ------------------------------------------------------------------------------


def scanned(f, n=4):
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=n)[0]


def counted(f, n=4):
    return lambda x: lax.fori_loop(0, n, lambda i, c: f(c), x)


def waited(f, n=4):
    return lambda x: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, f(c[1])), (0, x))[1]


PROGRAMS = {
    "scan": (scanned, 16.0),
    "fori_loop": (counted, 16.0),
    "while_loop": (waited, 16.0),
    "cond": (lambda f: lambda x: lax.cond(x > 0, f, lambda x: x, x), 2.0),
    "switch": (lambda f: lambda x: lax.switch(1, [lambda x: x, f], x), 2.0),
    "checkpoint": (lambda f: ft.checkpoint(lambda x: f(f(x))), 4.0),
    "checkpoint in scan": (lambda f: scanned(ft.checkpoint(f)), 16.0),
    "scan in checkpoint": (lambda f: ft.checkpoint(scanned(f)), 16.0),
    "jit in scan": (lambda f: scanned(ft.jit(f)), 16.0),
    "map": (lambda f: lambda x: fnp.sum(lax.map(f, fnp.stack([x, x]))), 4.0),
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("mode", ["grad", "jit of grad", "grad of jit", "vmap of grad", "jvp", "jit of jvp"])
def test_in_programs(program, mode):
    make, factor = PROGRAMS[program]
    g = make(twice())
    found = {
        "grad": lambda: ft.grad(g)(1.5),
        "jit of grad": lambda: ft.jit(ft.grad(g))(1.5),
        "grad of jit": lambda: ft.grad(ft.jit(g))(1.5),
        "vmap of grad": lambda: ft.vmap(ft.grad(g))(X),
        "jvp": lambda: ft.jvp(g, (1.5,), (1.0,))[1],
        "jit of jvp": lambda: ft.jit(lambda x: ft.jvp(g, (x,), (1.0,))[1])(1.5),
    }[mode]()
    np.testing.assert_allclose(found, np.full(np.shape(found), factor))


@pytest.mark.parametrize("program", ["scan", "fori_loop", "while_loop", "cond", "checkpoint"])
def test_second_order_in_programs(program):
    f = with_rule(lambda x: fnp.sin(x), lambda x: (fnp.sin(x), x), lambda x, ct: (ct * fnp.cos(x),))
    make, _ = PROGRAMS[program]
    wanted = ft.grad(ft.grad(make(fnp.sin)))(0.6)
    for second in (
        ft.grad(ft.grad(make(f))),
        ft.jacfwd(ft.jacrev(make(f))),
        ft.jit(ft.grad(ft.grad(make(f)))),
    ):
        assert second(0.6) == pytest.approx(wanted, rel=1e-13)


def test_a_program_in_the_rule():
    def fun(x, n):
        return lax.fori_loop(0, n, lambda i, c: fnp.sin(c), x)

    def fwd(x, n):
        out, push = ft.linearize(lambda x: fun(x, 3), x)
        return out, push(1.0)

    f = with_rule(fun, fwd, lambda slope, ct: (ct * slope, None))
    assert ft.jit(ft.grad(f))(0.5, 3) == pytest.approx(ft.grad(lambda x: fnp.sin(fnp.sin(fnp.sin(x))))(0.5))


# --- forward mode ------------------------------------------------------------------------------------------------


def test_a_rule_that_is_not_linear_has_no_forward_mode():
    f = with_rule(lambda x: x, lambda x: (x, None), lambda k, ct: (fnp.sin(ct),))
    assert ft.grad(f)(1.0) == pytest.approx(np.sin(1.0))
    with pytest.raises(ft.errors.MissingRuleError, match=r"no jvp rule. Define one: <lambda>\.defjvp"):
        ft.jvp(f, (1.0,), (1.0,))


def test_both_rules_on_one_function():
    f = with_rule(lambda x: x**2, lambda x: (x**2, x), lambda x, ct: (5.0 * x * ct,))
    f.defjvp(lambda primals, tangents: (primals[0] ** 2, 7.0 * primals[0] * tangents[0]))
    for g in (f, ft.jit(f), ft.checkpoint(f)):
        assert ft.grad(g)(1.0) == 5.0
        assert ft.jvp(g, (1.0,), (1.0,))[1] == 7.0
    assert ft.linearize(f, 1.0)[1](1.0) == 7.0
    np.testing.assert_array_equal(ft.vmap(ft.grad(f))(X), 5.0 * X)


def test_the_option_of_jax_for_checkpoints_makes_no_difference():
    f = with_rule(lambda x: x, lambda x: (x, None), lambda k, ct: (2.0 * ct,), optimize_remat=True)
    assert ft.grad(ft.checkpoint(f))(1.0) == 2.0


def test_unread_residuals_are_not_kept():
    f = with_rule(
        lambda x: fnp.sin(x), lambda x: (fnp.sin(x), (x, fnp.exp(x), fnp.cos(x))), lambda k, ct: (ct * k[2],)
    )
    assert "exp" not in str(ft.make_jaxpr(ft.grad(f))(1.0))


def test_nan_in_a_gradient_is_told_while_debug_nans_is_on():
    def bwd(kept, ct):
        return (np.nan,)  # no operation of functrans made it

    f = with_rule(lambda x: x, lambda x: (x, None), bwd)
    for g in (ft.grad(f), ft.jit(ft.grad(f))):
        with (
            ft.config.patch(debug_nans=True),
            pytest.raises(ft.errors.NaNError, match=r"gradient of argument 0 \('x'\)"),
        ):
            g(1.0)


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit])
@pytest.mark.parametrize("name", ["pmax", "pmin"])
def test_a_rule_for_the_largest_of_all_lanes(name, wrap):
    """The cotangent of what all lanes share comes whole to each of them."""
    extreme = getattr(lax, name)
    f = ft.custom_vjp(lambda x: extreme(x * x, "lanes"))

    def forward(x):
        out = extreme(x * x, "lanes")
        return out, (x, out)

    f.defvjp(forward, lambda kept, g: (g * fnp.where(kept[0] ** 2 == kept[1], 2.0 * kept[0], 0.0),))
    x = np.array([1.0, 3.0, 2.0])
    place = np.argmax(x) if name == "pmax" else np.argmin(x)
    own = np.eye(3)[place] * 2.0 * x[place]
    shared = wrap(ft.grad(ft.vmap(f, axis_name="lanes", out_axes=None)))(x)
    np.testing.assert_array_equal(shared, own)
    weighed = wrap(ft.grad(lambda x: fnp.sum(ft.vmap(f, axis_name="lanes")(x) * x)))(x)
    np.testing.assert_allclose(weighed, own * np.sum(x) + x[place] ** 2, rtol=1e-15)
