"""`custom_jvp`: rules for forward mode. Where a fact about JAX is tested, the number is the one that JAX 0.10 gives."""

import functools

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

X = np.linspace(0.3, 1.2, 4)
Y = np.linspace(1.0, 2.0, 4)


def with_rule(fun, jvp, symbolic_zeros=False, **options):
    f = ft.custom_jvp(fun, **options)
    f.defjvp(jvp, symbolic_zeros=symbolic_zeros)
    return f


def with_rules(fun, *jvps):
    f = ft.custom_jvp(fun)
    f.defjvps(*jvps)
    return f


def joint():
    """``sin(x) y`` with its derivative, by one rule."""

    def jvp(primals, tangents):
        (x, y), (t_x, t_y) = primals, tangents
        return fnp.sin(x) * y, fnp.cos(x) * t_x * y + fnp.sin(x) * t_y

    return with_rule(lambda x, y: fnp.sin(x) * y, jvp)


def apart():
    """The same by a rule for each argument."""
    return with_rules(
        lambda x, y: fnp.sin(x) * y,
        lambda t, out, x, y: fnp.cos(x) * t * y,
        lambda t, out, x, y: fnp.sin(x) * t,
    )


RIGHT = {"defjvp": joint, "defjvps": apart}
FIRST = {
    "grad": lambda f: ft.grad(f, (0, 1)),
    "grad of jit": lambda f: ft.grad(ft.jit(f), (0, 1)),
    "jit of grad": lambda f: ft.jit(ft.grad(f, (0, 1))),
    "jacfwd": lambda f: ft.jacfwd(f, (0, 1)),
    "jacrev": lambda f: ft.jacrev(f, (0, 1)),
    "jit of jacfwd": lambda f: ft.jit(ft.jacfwd(f, (0, 1))),
    "linearize": lambda f: lambda x, y: [ft.linearize(f, x, y)[1](*t) for t in ((1.0, 0.0), (0.0, 1.0))],
    "jvp": lambda f: lambda x, y: [ft.jvp(f, (x, y), t)[1] for t in ((1.0, 0.0), (0.0, 1.0))],
    "grad of checkpoint": lambda f: ft.grad(ft.checkpoint(f), (0, 1)),
    "jvp of checkpoint": lambda f: ft.jacfwd(ft.checkpoint(f), (0, 1)),
}


@pytest.mark.parametrize("rule", RIGHT)
def test_value(rule):
    f = RIGHT[rule]()
    for g in (f, ft.jit(f), ft.vmap(f), ft.jit(ft.vmap(f))):
        np.testing.assert_allclose(g(X, Y), np.sin(X) * Y, rtol=1e-15)
    assert f(0.5, 2.0) == pytest.approx(np.sin(0.5) * 2.0)


@pytest.mark.parametrize("rule", RIGHT)
@pytest.mark.parametrize("stack", FIRST)
def test_first_derivatives(rule, stack):
    x, y = 0.7, 1.3
    wanted = [np.cos(x) * y, np.sin(x)]
    np.testing.assert_allclose(FIRST[stack](RIGHT[rule]())(x, y), wanted, rtol=1e-14)


@pytest.mark.parametrize("rule", RIGHT)
@pytest.mark.parametrize("stack", [s for s in FIRST if s != "linearize"])
def test_mapped(rule, stack):
    found = ft.vmap(lambda x, y: tuple(FIRST[stack](RIGHT[rule]())(x, y)))(X, Y)
    np.testing.assert_allclose(found, [np.cos(X) * Y, np.sin(X)], rtol=1e-14)


@pytest.mark.parametrize("rule", RIGHT)
def test_derivatives_of_mapped_functions(rule):
    f = RIGHT[rule]()
    found = ft.grad(lambda x, y: fnp.sum(ft.vmap(f, (0, None))(x, y)), (0, 1))(X, 2.0)
    np.testing.assert_allclose(found[0], 2.0 * np.cos(X), rtol=1e-14)
    np.testing.assert_allclose(found[1], np.sum(np.sin(X)), rtol=1e-14)
    _, t = ft.jvp(ft.vmap(f, (0, None)), (X, 2.0), (np.ones(4), 3.0))
    np.testing.assert_allclose(t, 2.0 * np.cos(X) + 3.0 * np.sin(X), rtol=1e-14)


@pytest.mark.parametrize("rule", RIGHT)
@pytest.mark.parametrize("outer", ["grad", "jacfwd", "jacrev", "jit"])
@pytest.mark.parametrize("inner", ["grad", "jacfwd", "jacrev"])
def test_second_derivatives(rule, outer, inner):
    g = getattr(ft, inner)(RIGHT[rule]())
    second = ft.jit(ft.grad(g)) if outer == "jit" else getattr(ft, outer)(g)
    assert second(0.7, 1.3) == pytest.approx(-np.sin(0.7) * 1.3, rel=1e-14)


@pytest.mark.parametrize("rule", RIGHT)
def test_derivatives_agree_with_finite_differences_to_third_order(rule):
    ft.testing.check(RIGHT[rule](), X, Y, order=3)


def test_complex():
    f = with_rules(lambda z: z**3, lambda t, out, z: 3.0 * z**2 * t)
    z = 0.4 + 0.3j
    assert ft.grad(f, holomorphic=True)(z) == pytest.approx(3 * z**2)
    assert ft.jvp(f, (z,), (1j,))[1] == pytest.approx(3j * z**2)


# --- the rule is used ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stack", FIRST)
def test_a_wrong_rule_is_used_all_the_same(stack):
    f = with_rules(lambda x, y: x * y, lambda t, out, x, y: 7.0 * t * y, lambda t, out, x, y: 5.0 * t * x)
    np.testing.assert_allclose(FIRST[stack](f)(2.0, 3.0), [21.0, 10.0], rtol=1e-15)


def test_numbers_that_jax_gives():
    f = with_rule(lambda x: x**2, lambda p, t: (p[0] ** 2, 7 * t[0]))
    assert ft.grad(f)(3.0) == 7.0
    assert ft.hessian(lambda x: with_rules(lambda x: x**2, lambda t, out, x: 2 * x * t)(x) * x)(3.0) == 18.0
    moved = ft.jvp(with_rule(lambda x: x, lambda p, t: (p[0] + 100, t[0])), (1.0,), (1.0,))
    assert moved == (101.0, 1.0)  # the value comes from the rule
    not_linear = with_rule(lambda x: x**2, lambda p, t: (p[0] ** 2, t[0] ** 2))
    assert ft.jvp(not_linear, (3.0,), (2.0,)) == (9.0, 4.0)


def exp_thrice(again):
    f = ft.custom_jvp(fnp.exp)

    @f.defjvp
    def jvp(primals, tangents):
        y = f(*primals) if again else fnp.exp(*primals)
        return y, 3.0 * y * tangents[0]

    return f


@pytest.mark.parametrize(
    ("make", "orders"),
    [
        (lambda: exp_thrice(False), [3.0, 3.0, 3.0]),
        (lambda: exp_thrice(True), [3.0, 9.0, 27.0]),
        (lambda: with_rules(fnp.exp, lambda t, out, x: 3.0 * out * t), [3.0, 9.0, 27.0]),
    ],
)
@pytest.mark.parametrize("mode", ["grad", "jacfwd", "grad of jit"])
def test_whether_the_rule_holds_at_all_orders(make, orders, mode):
    g = make()
    for wanted in orders:
        g = {"grad": ft.grad, "jacfwd": ft.jacfwd, "grad of jit": lambda g: ft.grad(ft.jit(g))}[mode](g)
        assert g(0.0) == pytest.approx(wanted)


def test_what_is_only_evaluated_runs_the_function_and_not_the_rule():
    ran = []

    def jvp(primals, tangents):
        ran.append("jvp")
        return primals[0], tangents[0]

    def fun(x):
        ran.append("fun")
        return x

    f = with_rule(fun, jvp)
    f(1.0)
    ft.jit(f)(1.0)
    ft.vmap(f)(X)
    assert set(ran) == {"fun"}
    ran.clear()
    ft.jvp(f, (1.0,), (1.0,))
    assert ran == ["jvp"]


def test_eagerly_the_rule_sees_numbers():
    def jvp(primals, tangents):
        if primals[0] > 1.0:
            return primals[0], 10.0 * tangents[0]
        return primals[0], tangents[0]

    f = with_rule(lambda x: x, jvp)
    assert (ft.grad(f)(2.0), ft.grad(f)(0.5), ft.jacfwd(f)(2.0)) == (10.0, 1.0, 10.0)


# --- loops, branches, checkpoints ------------------------------------------------------------------------------

PROGRAMS = {
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=4)[0],
    "fori_loop": lambda f: lambda x: lax.fori_loop(0, 4, lambda i, c: f(c), x),
    "while_loop": lambda f: (
        lambda x: lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, f(c[1])), (0, x))[1]
    ),
    "cond": lambda f: lambda x: lax.cond(x > 0, f, lambda x: x, x),
    "checkpoint": lambda f: ft.checkpoint(lambda x: f(f(x))),
}
FACTORS = {"scan": 16.0, "fori_loop": 16.0, "while_loop": 16.0, "cond": 2.0, "checkpoint": 4.0}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    "mode", ["grad", "jit of grad", "grad of jit", "vmap of grad", "jvp", "vmap of jacfwd"]
)
def test_in_programs(program, mode):
    g = PROGRAMS[program](with_rules(lambda x: x, lambda t, out, x: 2.0 * t))
    found = {
        "grad": lambda: ft.grad(g)(1.5),
        "jit of grad": lambda: ft.jit(ft.grad(g))(1.5),
        "grad of jit": lambda: ft.grad(ft.jit(g))(1.5),
        "vmap of grad": lambda: ft.vmap(ft.grad(g))(X),
        "jvp": lambda: ft.jvp(g, (1.5,), (1.0,))[1],
        "vmap of jacfwd": lambda: ft.vmap(ft.jacfwd(g))(X),
    }[mode]()
    np.testing.assert_allclose(found, np.full(np.shape(found), FACTORS[program]))


def test_a_rule_that_calls_the_function_holds_at_all_orders_in_loops():
    """JAX gives -7.3425131390 unrolled; in a scan it does so in forward mode only."""

    @ft.custom_jvp
    def step(c, u):
        return fnp.sin(c[0] * u), c[1] + c[0]

    @step.defjvp
    def step_jvp(primals, tangents):
        (c, u), (t_c, t_u) = primals, tangents
        slope = 2.0 * fnp.cos(c[0] * u)
        return step(c, u), (slope * (t_c[0] * u + c[0] * t_u), t_c[1] + t_c[0])

    def rolled(x):
        return lax.scan(lambda c, u: (step(c, u), None), (x, 0.0), np.linspace(0.5, 1.5, 5))[0][1]

    def unrolled(x):
        c = (x, 0.0)
        for u in np.linspace(0.5, 1.5, 5):
            c = step(c, u)
        return c[1]

    for f in (rolled, unrolled, ft.jit(rolled), ft.checkpoint(rolled)):
        assert ft.grad(f)(0.3) == pytest.approx(13.6439635725, abs=1e-9)
        for second in (ft.grad(ft.grad(f)), ft.hessian(f), ft.jacfwd(ft.jacfwd(f))):
            assert second(0.3) == pytest.approx(-7.3425131390, abs=1e-9)


@pytest.mark.parametrize("program", PROGRAMS)
def test_second_order_in_programs(program):
    f = with_rules(lambda x: fnp.sin(x), lambda t, out, x: t * fnp.cos(x))
    make = PROGRAMS[program]
    wanted = ft.grad(ft.grad(make(fnp.sin)))(0.6)
    for second in (
        ft.grad(ft.grad(make(f))),
        ft.jacfwd(ft.jacrev(make(f))),
        ft.jit(ft.jacfwd(ft.jacfwd(make(f)))),
    ):
        assert second(0.6) == pytest.approx(wanted, rel=1e-13)


# --- arguments ---------------------------------------------------------------------------------------------------


def test_names_and_defaults_reach_the_rule_by_position():
    f = with_rules(lambda x, y=3.0: x * y, lambda t, out, x, y: t * y, lambda t, out, x, y: t * x)
    assert ft.grad(f)(2.0) == 3.0
    assert ft.grad(lambda x: f(y=x, x=5.0))(2.0) == 5.0


@pytest.mark.parametrize("how", [{"nondiff_argnums": (2, 0)}, {"nondiff_argnames": ("b", "a")}])
def test_nondiff_arguments_come_first_in_the_rule(how):
    f = with_rule(lambda a, x, b: x, lambda a, b, p, t: (p[0], (a + 10 * b) * t[0]), **how)
    assert ft.grad(lambda x: f(1, x, 2))(3.0) == 21.0
    assert ft.jit(ft.jacfwd(lambda x: f(1, x, 2)))(3.0) == 21.0


def test_nondiff_functions():
    @functools.partial(ft.custom_jvp, nondiff_argnums=(0,))
    def apply(fun, x):
        return fun(x)

    apply.defjvp(lambda fun, p, t: (fun(*p), 5.0 * t[0]))
    assert ft.grad(lambda x: apply(fnp.sin, x))(3.0) == 5.0
    assert apply(fnp.sin, 0.5) == pytest.approx(np.sin(0.5))


def test_nondiff_arguments_are_not_differentiated():
    f = with_rule(lambda x, n: x * n, lambda n, p, t: (p[0] * n, n * t[0]), nondiff_argnums=1)
    assert ft.grad(lambda n: f(2.0, n))(3.0) == 0.0
    assert ft.grad(f, (0, 1))(2.0, 3.0) == (3.0, 0.0)
    assert ft.jit(ft.grad(f))(3.0, 4.0) == 4.0
    assert ft.jvp(f, (2.0, 3.0), (1.0, 1.0)) == (6.0, 3.0)
    np.testing.assert_array_equal(ft.vmap(ft.grad(f), (None, 0))(2.0, X), X)
    np.testing.assert_array_equal(ft.vmap(ft.grad(lambda n: f(2.0, n)))(X), 0.0)
    tree = with_rule(
        lambda x, n: x * n["n"], lambda n, p, t: (p[0] * n["n"], n["n"] * t[0]), nondiff_argnums=1
    )
    assert ft.grad(lambda x: tree(x, {"n": x, "s": "text"}))(3.0) == 3.0


@pytest.mark.parametrize("mode", ["grad", "grad of jit", "jvp"])
def test_a_captured_value_that_is_differentiated_is_an_error(mode):
    def outer(w):
        return with_rule(lambda x: x * w, lambda p, t: (p[0] * w, w * t[0]))(w)

    call = {
        "grad": lambda: ft.grad(outer)(3.0),
        "grad of jit": lambda: ft.grad(ft.jit(outer))(3.0),
        "jvp": lambda: ft.jvp(outer, (3.0,), (1.0,)),
    }[mode]
    with pytest.raises(ft.errors.CapturedTracerError, match="'w' is being differentiated"):
        call()


def test_captured_values_that_are_not_differentiated():
    def slope(w, x):
        return ft.grad(with_rule(lambda x: x * w, lambda p, t: (p[0] * w, w * t[0])))(x)

    np.testing.assert_allclose(ft.vmap(slope, (0, None))(X, 2.0), X)
    np.testing.assert_allclose(ft.jit(ft.vmap(slope))(X, Y), X)


def test_trees_in_and_out():
    def fun(p, n):
        return {"product": p["a"] * p["b"], "count": n, "more": (p["a"], None)}

    def jvp(primals, tangents):
        (p, n), (t, _) = primals, tangents
        product = t["a"] * p["b"] + p["a"] * t["b"]
        return fun(p, n), {"product": product, "count": None, "more": (t["a"], None)}

    f = with_rule(fun, jvp)
    p, t = {"a": 2.0, "b": 3.0}, {"a": 1.0, "b": 10.0}
    out, moved = ft.jvp(lambda p: f(p, 7), (p,), (t,))
    assert out == {"product": 6.0, "count": 7, "more": (2.0, None)}
    assert moved == {"product": 23.0, "count": 0, "more": (1.0, None)}
    for g in (ft.grad, lambda h: ft.jit(ft.grad(h)), lambda h: ft.grad(ft.jit(h))):
        assert g(lambda p: f(p, 7)["product"] + 5.0 * f(p, 7)["more"][0])(p) == {"a": 8.0, "b": 2.0}


def test_rules_apart_for_trees():
    f = with_rules(
        lambda p, q: (p["a"] * p["b"], q),
        lambda t, out, p, q: (t["a"] * p["b"] + p["a"] * t["b"], None),
        None,
    )
    out, moved = ft.jvp(f, ({"a": 2.0, "b": 3.0}, 1.0), ({"a": 1.0, "b": 10.0}, 1.0))
    assert out == (6.0, 1.0) and moved == (23.0, 0.0)  # noqa: PT018


def test_none_in_defjvps_is_zero():
    f = with_rules(lambda x, y: fnp.sin(x) * y, lambda t, out, x, y: fnp.cos(x) * t * y, None)
    assert ft.grad(f, (0, 1))(1.0, 2.0) == (pytest.approx(2 * np.cos(1.0)), 0.0)
    assert ft.grad(with_rules(lambda x, y: x * y, None, None), (0, 1))(1.0, 2.0) == (0.0, 0.0)


def test_only_rules_of_arguments_that_move_are_called():
    called = []

    def rule(name):
        def jvp(t, out, x, y):
            called.append(name)
            return t

        return jvp

    f = with_rules(lambda x, y: x + y, rule("x"), rule("y"))
    ft.grad(lambda x: f(x, 2.0))(1.0)
    assert called == ["x"]


class Layer:
    def __init__(self, scale):
        self.scale = scale

    @functools.partial(ft.custom_jvp, nondiff_argnums=0)
    def call(self, x):
        """Scale."""
        return self.scale * x

    @call.defjvp
    def call_jvp(self, primals, tangents):
        return self.scale * primals[0], 10.0 * self.scale * tangents[0]


def test_methods():
    layer = Layer(3.0)
    assert layer.call(2.0) == 6.0
    assert ft.grad(layer.call)(2.0) == 30.0
    assert (layer.call.__name__, layer.call.__doc__) == ("call", "Scale.")
    np.testing.assert_allclose(ft.vmap(lambda s: ft.grad(Layer(s).call)(2.0))(X), 10.0 * X)
