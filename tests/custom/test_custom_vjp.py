"""`custom_vjp`: rules for reverse mode. Where a fact about JAX is tested, the number is the one that JAX 0.10 gives."""

import functools
import itertools

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.custom_derivatives import (
    CustomVJPPrimal,
    SymbolicZero,
    custom_vjp_primal_tree_values,
    zero_from_primal,
)

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


# --- arguments ---------------------------------------------------------------------------------------------------


def test_names_and_defaults_reach_the_rules_by_position():
    f = with_rule(lambda x, y=3.0: x * y, lambda x, y: (x * y, (x, y)), lambda k, ct: (ct * k[1], ct * k[0]))
    assert ft.grad(f)(2.0) == 3.0
    assert ft.grad(lambda x: f(y=x, x=5.0))(2.0) == 5.0
    assert f(y=2.0, x=4.0) == 8.0
    g = with_rule(
        lambda *xs: xs[0] * xs[1], lambda *xs: (xs[0] * xs[1], xs), lambda k, ct: (ct * k[1], ct * k[0])
    )
    assert ft.grad(g)(2.0, 4.0) == 4.0


@pytest.mark.parametrize(
    "how", [{"nondiff_argnums": (0, 2)}, {"nondiff_argnames": ("s", "u")}, {"nondiff_argnums": (0, -1)}]
)
def test_nondiff_arguments_come_first_in_bwd(how):
    f = with_rule(lambda s, x, u: x, lambda s, x, u: (x, None), lambda s, u, kept, ct: (ct * s * u,), **how)
    np.testing.assert_allclose(ft.grad(lambda x: fnp.sum(f(3, x, 5)))(X), 15.0)
    assert ft.jit(ft.grad(lambda x: f(3, x, 5)))(1.0) == 15.0


def test_nondiff_functions_and_strings():
    @functools.partial(ft.custom_vjp, nondiff_argnums=(0, 1))
    def apply(fun, mode, x):
        return fun(x) if mode == "call" else x

    apply.defvjp(
        lambda fun, mode, x: (apply(fun, mode, x), x),
        lambda fun, mode, x, ct: (ct * (2.0 if mode == "call" else 3.0),),
    )
    assert apply(fnp.sin, "call", 0.5) == pytest.approx(np.sin(0.5))
    assert ft.grad(lambda x: apply(fnp.sin, "call", x))(0.5) == 2.0
    assert ft.jit(ft.grad(lambda x: apply(fnp.sin, "other", x)))(0.5) == 3.0


@pytest.mark.parametrize("stack", ["jit", "vmap", "jit of vmap", "scan"])
def test_traced_values_may_be_nondiff_arguments(stack):
    f = with_rule(
        lambda x, s: x * s, lambda x, s: (x * s, None), lambda s, kept, ct: (ct * s,), nondiff_argnums=1
    )
    slope = ft.grad(f)
    found = {
        "jit": lambda: [ft.jit(slope)(2.0, s) for s in X],
        "vmap": lambda: ft.vmap(slope, (None, 0))(2.0, X),
        "jit of vmap": lambda: ft.jit(ft.vmap(slope, (None, 0)))(2.0, X),
        "scan": lambda: lax.scan(lambda c, s: (c, slope(2.0, s)), 0.0, X)[1],
    }[stack]()
    np.testing.assert_allclose(found, X)


def test_a_nondiff_argument_that_is_differentiated_is_an_error():
    f = with_rule(
        lambda x, s: x * s, lambda x, s: (x * s, None), lambda s, kept, ct: (ct * s,), nondiff_argnums=1
    )
    with pytest.raises(ft.errors.CapturedTracerError, match="'s'.*pass it as an argument"):
        ft.grad(f, (0, 1))(2.0, 3.0)


@pytest.mark.parametrize("mode", ["grad", "jit", "grad of jit", "vjp", "jvp"])
def test_a_captured_value_that_is_differentiated_is_an_error(mode):
    def outer(w):
        f = with_rule(lambda x: x * w, lambda x: (x * w, x), lambda x, ct: (ct * w,))
        return f(w)

    call = {
        "grad": lambda: ft.grad(outer)(3.0),
        "jit": lambda: ft.jit(ft.grad(outer))(3.0),
        "grad of jit": lambda: ft.grad(ft.jit(outer))(3.0),
        "vjp": lambda: ft.vjp(outer, 3.0),
        "jvp": lambda: ft.jvp(outer, (3.0,), (1.0,)),
    }[mode]
    with pytest.raises(ft.errors.CapturedTracerError, match="'w' is being differentiated"):
        call()


def test_captured_values_that_are_not_differentiated():
    def slope(w, x):
        f = with_rule(lambda x: x * w, lambda x: (x * w, None), lambda kept, ct: (ct * w,))
        return ft.grad(f)(x)

    np.testing.assert_allclose(ft.vmap(slope, (0, None))(X, 2.0), X)
    np.testing.assert_allclose(ft.jit(slope)(3.0, 2.0), 3.0)
    np.testing.assert_allclose(ft.jit(ft.vmap(slope))(X, Y), X)


def test_trees_in_and_out():
    def fun(p, extra):
        return {"sum": p["a"] + p["b"][0], "product": (p["a"] * p["b"][0], extra)}

    def fwd(p, extra):
        return fun(p, extra), p

    def bwd(p, ct):
        prod, rest = ct["product"]
        a = ct["sum"] + prod * p["b"][0]
        return {"a": a, "b": [ct["sum"] + prod * p["a"], None]}, rest

    f = with_rule(fun, fwd, bwd)

    def loss(call):
        def of(p, extra):
            out = call(p, extra)
            return 3.0 * out["sum"] + out["product"][0] ** 2 + 5.0 * out["product"][1]

        return of

    p = {"a": 2.0, "b": [3.0, 4.0]}
    for g in (ft.grad(loss(f), (0, 1)), ft.jit(ft.grad(loss(f), (0, 1))), ft.grad(ft.jit(loss(f)), (0, 1))):
        found, wanted = g(p, 7.0), ft.grad(loss(fun), (0, 1))(p, 7.0)
        assert ft.tree.structure(found) == ft.tree.structure(wanted)
        np.testing.assert_allclose(ft.tree.leaves(found), ft.tree.leaves(wanted))


def test_arguments_and_outputs_that_are_none_or_empty():
    f = with_rule(
        lambda x, n: (x, None, ()), lambda x, n: ((x, None, ()), None), lambda k, ct: (4.0 * ct[0], None)
    )
    assert f(1.0, None) == (1.0, None, ())
    assert ft.grad(lambda x: f(x, None)[0])(1.0) == 4.0
    g = with_rule(lambda: 3.0, lambda: (3.0, None), lambda kept, ct: ())
    assert g() == 3.0
    assert ft.grad(lambda x: x * g())(2.0) == 3.0


class Layer:
    def __init__(self, scale):
        self.scale = scale

    @functools.partial(ft.custom_vjp, nondiff_argnums=0)
    def call(self, x):
        """Scale."""
        return self.scale * x

    def fwd(self, x):
        return self.scale * x, None

    def bwd(self, kept, ct):
        return (10.0 * self.scale * ct,)

    call.defvjp(fwd, bwd)


def test_methods():
    layer = Layer(3.0)
    assert layer.call(2.0) == 6.0
    assert Layer.call(layer, 2.0) == 6.0
    assert ft.grad(layer.call)(2.0) == 30.0
    assert ft.jit(ft.grad(layer.call))(2.0) == 30.0
    assert (layer.call.__name__, layer.call.__doc__) == ("call", "Scale.")
    np.testing.assert_allclose(ft.vmap(lambda s: ft.grad(Layer(s).call)(2.0))(X), 10.0 * X)


def test_it_looks_like_the_function():
    @ft.custom_vjp
    def f(x):
        """What it does."""
        return x

    assert (f.__name__, f.__doc__, f.__module__) == ("f", "What it does.", __name__)
    assert f.__wrapped__(2.0) == 2.0
    assert repr(f) == "<custom_vjp of f>"
    assert f.defvjp(lambda x: (x, None), lambda k, ct: (ct,)) is None


def test_results_share_no_memory_with_arguments():
    f = twice()
    x = np.ones(3)
    y = f(x)
    _, pull = ft.vjp(with_rule(lambda x: x * x, lambda x: (x * x, x), lambda x, ct: (2 * x * ct,)), x)
    x[:] = 100.0
    np.testing.assert_array_equal(y, 1.0)
    np.testing.assert_array_equal(pull(np.ones(3))[0], 2.0)


# --- what rules return -------------------------------------------------------------------------------------------


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
    "nothing", [None, 0, 0.0, np.zeros((), [("float0", np.void, 0)]), np.zeros(()), np.False_]
)
def test_an_integer_takes_any_zero(nothing):
    np.testing.assert_array_equal(slope_with(lambda k, g: (g, nothing), y=2, argnums=0), 1.0)


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
        r"argument 0 \('x'\): want a leaf, got a tuple of length 2",
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
    assert "return returned(g)" in str(
        caught.value
    )


def test_errors_are_of_the_types_that_jax_raises():
    with pytest.raises(TypeError):
        slope_with(lambda k, g: (g,))
    with pytest.raises(ValueError):
        slope_with(lambda k, g: (g[:2], 1.0))


def test_a_gradient_of_an_integer_that_is_not_zero():
    with pytest.raises(
        ft.errors.BackwardError, match=r"not zero for argument 1 \('y'\), which is of dtype int64"
    ):
        slope_with(lambda k, g: (g, 3.0), y=2, argnums=0)


def test_wrong_structure_names_the_leaf():
    f = with_rule(
        lambda p: p["a"] * p["b"], lambda p: (p["a"] * p["b"], p), lambda p, ct: ({"a": ct, "c": ct},)
    )
    with pytest.raises(
        ft.errors.GradientStructureError, match=r"argument 0 \('p'\): want .*\['a', 'b'\], got .*\['a', 'c'\]"
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
        ft.errors.ArgumentError, match="the fwd rule <lambda>: a residual is .* of type object"
    ):
        ft.grad(f)(1.0)


# --- symbolic zeros ----------------------------------------------------------------------------------------------


def test_symbolic_zeros():
    seen = []

    def fwd(x, n, p):
        seen.append([(type(a), a.perturbed) for a in (x, n, p["k"])])
        out = x.value * n.value * p["k"].value
        return (out, 2.0 * x.value, n.value), (n.value * p["k"].value)

    def bwd(factor, cts):
        seen.append([(type(ct), ct.shape, ct.dtype) for ct in cts])
        return cts[0] * factor, None, None

    f = with_rule(lambda x, n, p: (x * n * p["k"], 2.0 * x, n), fwd, bwd, symbolic_zeros=True)
    assert ft.grad(lambda x: f(x, 3, {"k": 4.0})[0])(2.0) == 12.0
    primals, cts = seen
    assert primals == [(CustomVJPPrimal, True), (CustomVJPPrimal, False), (CustomVJPPrimal, False)]
    assert cts[0] == (ft.Array, (), np.float64)
    assert cts[1:] == [(SymbolicZero, (), np.float64), (SymbolicZero, (), np.int64)]
    for g in (
        ft.jit(ft.grad(lambda x: f(x, 3, {"k": 4.0})[0])),
        ft.grad(ft.jit(lambda x: f(x, 3, {"k": 4.0})[0])),
    ):
        assert g(2.0) == 12.0
    np.testing.assert_array_equal(ft.vmap(ft.grad(lambda x: f(x, 3, {"k": 4.0})[0]))(X), 12.0)


def test_a_symbolic_zero_may_be_returned():
    f = with_rule(
        lambda x: (x, 2.0 * x),
        lambda x: ((x.value, x.value), None),
        lambda k, ct: (ct[1],),
        symbolic_zeros=True,
    )
    assert ft.grad(lambda x: f(x)[0])(2.0) == 0.0


def test_without_symbolic_zeros_cotangents_are_arrays():
    seen = []

    def bwd(kept, cts):
        seen.extend((ct.shape, ct.dtype) for ct in cts)
        return (cts[0] + cts[1],)

    f = with_rule(lambda x: (x, 2.0 * x, 3), lambda x: ((x, 2.0 * x, 3), None), bwd)
    assert ft.grad(lambda x: f(x)[0])(2.0) == 1.0
    assert seen == [((), np.float64), ((), np.float64), ((), np.int64)]


def test_a_primal_among_the_residuals_is_an_error():
    f = with_rule(lambda x: x, lambda x: (x.value, x), lambda k, ct: (ct,), symbolic_zeros=True)
    with pytest.raises(ft.errors.ArgumentError, match=r"CustomVJPPrimal among the residuals: keep x\.value"):
        ft.grad(f)(1.0)


def test_helpers():
    tree = {"a": CustomVJPPrimal(1.0, True), "b": [CustomVJPPrimal(2.0, False)]}
    assert custom_vjp_primal_tree_values(tree) == {"a": 1.0, "b": [2.0]}
    with pytest.raises(ft.errors.ArgumentError, match="want a tree of CustomVJPPrimal"):
        custom_vjp_primal_tree_values({"a": 1.0})
    zero = zero_from_primal(np.ones((2, 3), "float32"), symbolic_zeros=True)
    assert (type(zero), zero.shape, zero.dtype, zero.ndim, zero.size) == (
        SymbolicZero,
        (2, 3),
        np.float32,
        2,
        6,
    )
    found = zero_from_primal(np.arange(3))
    assert found.dtype == np.int64
    assert found.tolist() == [0, 0, 0]


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
        ({"nondiff_argnames": "z"}, "nondiff_argnames has 'z', but its positional parameters are: x, y"),
    ],
)
def test_wrong_options(options, text):
    with pytest.raises(ft.errors.FunctionDefinitionError, match=text):
        ft.custom_vjp(lambda x, y: x, **options)


def test_wrong_definitions():
    with pytest.raises(ft.errors.ArgumentError, match="custom_vjp: want a function"):
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
        return (ct * np.nan,)

    f = with_rule(lambda x: x, lambda x: (x, None), bwd)
    for g in (ft.grad(f), ft.jit(ft.grad(f))):
        with (
            ft.config.patch(debug_nans=True),
            pytest.raises(ft.errors.NaNError, match=r"gradient of argument 0 \('x'\)"),
        ):
            g(1.0)
