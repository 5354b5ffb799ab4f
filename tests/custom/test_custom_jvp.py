"""`custom_jvp`: rules for forward mode. Where a fact about JAX is tested, the number is the one that JAX 0.10 gives."""

import functools

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.custom_derivatives import SymbolicZero, zero_from_primal

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


# --- symbolic zeros ----------------------------------------------------------------------------------------------


def test_symbolic_zeros():
    seen = []

    def jvp(primals, tangents):
        seen.append([type(t) for t in tangents])
        assert [t.dtype for t in tangents] == [np.float64, np.float64, np.int64]
        return primals[0] * primals[1], tangents[0] * primals[1]

    f = with_rule(lambda x, y, n: x * y, jvp, symbolic_zeros=True)
    assert ft.jvp(lambda x: f(x, 2.0, 3), (1.0,), (1.0,)) == (2.0, 2.0)
    assert seen == [[ft.Array, SymbolicZero, SymbolicZero]]
    for g in (ft.jit(ft.grad(lambda x: f(x, 2.0, 3))), ft.grad(ft.jit(lambda x: f(x, 2.0, 3)))):
        assert g(1.0) == 2.0
    np.testing.assert_array_equal(ft.vmap(ft.grad(lambda x: f(x, 2.0, 3)))(X), 2.0)


def test_a_symbolic_zero_may_be_returned():
    f = with_rule(lambda x, y: x * y, lambda p, t: (p[0] * p[1], t[1]), symbolic_zeros=True)
    assert ft.jvp(lambda x: f(x, 2.0), (1.0,), (1.0,)) == (2.0, 0.0)
    g = with_rule(lambda x: x, lambda p, t: (p[0], zero_from_primal(p[0], symbolic_zeros=True)))
    assert ft.grad(g)(1.0) == 0.0


def test_without_symbolic_zeros_tangents_are_arrays():
    seen = []

    def jvp(primals, tangents):
        seen.extend((t.shape, t.dtype) for t in tangents)
        return primals[0], tangents[0] + 0.0 * tangents[1]

    f = with_rule(lambda x, y, n: x, jvp)
    assert ft.jvp(lambda x: f(x, np.ones(2), 3), (np.ones(2),), (np.ones(2),))[1].tolist() == [1.0, 1.0]
    assert seen == [((2,), np.float64), ((2,), np.float64), ((), np.int64)]


# --- what the rule returns ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("returned", "wanted"),
    [
        (lambda p, t: [p, t], np.ones(4)),
        (lambda p, t: (p, None), np.zeros(4)),
        (lambda p, t: (p, t.astype("float32")), np.ones(4)),
        (lambda p, t: (p, np.arange(4)), np.arange(4.0)),
    ],
)
def test_tangents_are_converted(returned, wanted):
    f = with_rule(lambda x: x, lambda p, t: returned(p[0], t[0]))
    for g in (f, ft.jit(f)):
        found = ft.jvp(g, (X,), (np.ones(4),))[1]
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype == np.float64


def test_a_python_number_is_the_tangent_of_a_number():
    f = with_rule(lambda x: x, lambda p, t: (p[0], 3))
    assert ft.jvp(f, (1.0,), (1.0,)) == (1.0, 3.0)


@pytest.mark.parametrize("nothing", [None, 0, np.zeros((), [("float0", np.void, 0)])])
def test_an_integer_output_takes_any_zero(nothing):
    f = with_rule(lambda x: (x, 3), lambda p, t: ((p[0], 3), (t[0], nothing)))
    assert ft.jvp(f, (1.0,), (2.0,)) == ((1.0, 3), (2.0, 0))
    assert ft.grad(lambda x: f(x)[0])(1.0) == 1.0


WRONG_TANGENTS = {
    "no pair": (
        lambda p, t: t,
        "TangentError",
        r"must return a pair \(output, tangent of the output\), but returned",
    ),
    "three": (lambda p, t: (p, t, t), "TangentError", "but returned a tuple of length 3"),
    "structure": (
        lambda p, t: (p, (t,)),
        "TangentError",
        "another structure for the output: want a leaf, got a tuple",
    ),
    "shape": (
        lambda p, t: (p, t[:2]),
        "TangentShapeError",
        r"got \[2\] but expected shape compatible with \[4\]",
    ),
    "one more axis": (lambda p, t: (p, t[None]), "TangentShapeError", r"got \[1, 4\]"),
    "complex": (lambda p, t: (p, 1j * t), "TangentDtypeError", "complex tangent for the output.*take .real"),
    "text": (lambda p, t: (p, "a"), "TangentError", "'a' of type str as the tangent of the output"),
}


@pytest.mark.parametrize("case", WRONG_TANGENTS)
@pytest.mark.parametrize("compiled", [False, True])
def test_wrong_tangents(case, compiled):
    returned, error, text = WRONG_TANGENTS[case]

    def misled(primals, tangents):
        return returned(primals[0], tangents[0])

    f = with_rule(lambda x: x, misled)
    with pytest.raises(getattr(ft.errors, error), match=text) as caught:
        ft.jvp(ft.jit(f) if compiled else f, (X,), (np.ones(4),))
    assert "custom_jvp of <lambda>: the jvp rule misled" in str(caught.value)
    assert "return returned(primals[0], tangents[0])" in str(caught.value)
    assert isinstance(caught.value, TypeError)


def test_a_tangent_for_an_integer():
    for wrong in (1.0, 0.0, 2):
        f = with_rule(lambda x: (x, 3), lambda p, t, wrong=wrong: ((p[0], 3), (t[0], wrong)))
        with pytest.raises(
            ft.errors.TangentError, match=r"for output \[1\], which is of dtype int64 .*return None"
        ):
            ft.jvp(f, (1.0,), (2.0,))


def test_wrong_tangents_of_rules_apart():
    f = with_rules(lambda x, y: x, None, lambda t, out, x, y: t)
    with pytest.raises(ft.errors.TangentShapeError, match="the jvp 1 rule <lambda> returned"):
        ft.jvp(f, (X, 2.0), (X, 1.0))


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (lambda x: (x, x), "a tuple of length 2 as the output, but f returned a leaf"),
        (lambda x: x[:2], r"f64\[2\] as the output, but f returned f64\[4\]"),
        (lambda x: x.astype("float32"), r"f32\[4\] as the output, but f returned f64\[4\]"),
    ],
)
def test_the_rule_must_return_what_the_function_does(output, text):
    @ft.custom_jvp
    def f(x):
        return x

    f.defjvp(lambda p, t: (output(p[0]), output(t[0])))
    with pytest.raises(ft.errors.FunctionDefinitionError, match=text):
        ft.jvp(ft.jit(f), (X,), (np.ones(4),))


def test_a_rule_that_is_not_linear_has_no_reverse_mode():
    f = with_rule(lambda x: x**2, lambda p, t: (p[0] ** 2, t[0] ** 2))
    with pytest.raises(ft.errors.FunctransError):
        ft.grad(f)(3.0)


# --- definitions -------------------------------------------------------------------------------------------------


def test_without_a_rule():
    f = ft.custom_jvp(lambda x: x)
    for call in (lambda: f(1.0), lambda: ft.jit(f)(1.0), lambda: ft.grad(f)(1.0)):
        with pytest.raises(
            ft.errors.MissingRuleError, match="No JVP defined for custom_jvp function <lambda> using defjvp"
        ):
            call()


def test_what_defining_returns():
    f = ft.custom_jvp(lambda x: x)

    @functools.partial(f.defjvp, symbolic_zeros=True)
    def jvp(primals, tangents):
        return primals[0], tangents[0]

    assert jvp((1.0,), (2.0,)) == (1.0, 2.0)
    assert f.defjvps(None) is None
    assert f.defvjp(lambda x: (x, None), lambda kept, ct: (ct,)) is None
    assert repr(f) == "<custom_jvp of <lambda>>"


def test_the_last_definition_holds():
    f = ft.custom_jvp(lambda x: x)
    f.defjvps(lambda t, out, x: 2.0 * t)
    f.defjvp(lambda p, t: (p[0], 3.0 * t[0]))
    assert ft.grad(f)(1.0) == 3.0
    f.defjvps(lambda t, out, x: 4.0 * t)
    assert ft.grad(f)(1.0) == 4.0


def test_both_rules_on_one_function():
    f = with_rule(lambda x: x**2, lambda p, t: (p[0] ** 2, 7.0 * p[0] * t[0]))
    f.defvjp(lambda x: (x**2, x), lambda x, ct: (5.0 * x * ct,))
    for g in (f, ft.jit(f), ft.checkpoint(f)):
        assert (ft.grad(g)(1.0), ft.jvp(g, (1.0,), (1.0,))[1]) == (5.0, 7.0)


def test_a_reverse_rule_alone_will_do():
    f = ft.custom_jvp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda kept, ct: (5.0 * ct,))
    assert (ft.grad(f)(1.0), ft.jvp(f, (1.0,), (1.0,))[1]) == (5.0, 5.0)


@pytest.mark.parametrize("count", [1, 3])
def test_a_wrong_number_of_rules(count):
    with pytest.raises(
        ft.errors.TangentCountError, match=f"given {count} rules, but the function has 2 arguments"
    ):
        with_rules(lambda x, y: x, *[None] * count)
    variadic = with_rules(lambda *xs: xs[0], *[None] * count)
    with pytest.raises(
        ft.errors.TangentCountError, match=f"given {count} rules, but the function has 2 arguments"
    ):
        ft.jvp(variadic, (1.0, 2.0), (1.0, 1.0))


def test_wrong_definitions():
    f = ft.custom_jvp(lambda x, n: x, nondiff_argnums=1)
    with pytest.raises(ft.errors.FunctionDefinitionError, match="nondiff_argnums have none; use defjvp"):
        f.defjvps(None)
    with pytest.raises(ft.errors.FunctionDefinitionError, match="defjvp takes functions, got 'None'"):
        f.defjvp(None)
    with pytest.raises(ft.errors.FunctionDefinitionError, match="defjvps takes functions, got '3'"):
        ft.custom_jvp(lambda x: x).defjvps(3)
    with pytest.raises(ft.errors.ArgumentError, match="custom_jvp: want a function"):
        ft.custom_jvp(3)
