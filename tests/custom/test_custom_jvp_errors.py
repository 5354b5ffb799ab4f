"""What rules of `custom_jvp` get and may return, and every misuse."""

import functools

import numpy as np
import pytest

import functrans as ft
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
        "another structure for the output: expected an array, got a tuple",
    ),
    "shape": (
        lambda p, t: (p, t[:2]),
        "TangentShapeError",
        r"returned a tangent of shape \(2,\) for the output, which has shape \(4,\)",
    ),
    "one more axis": (lambda p, t: (p, t[None]), "TangentShapeError", r"shape \(1, 4\)"),
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
    with pytest.raises(ft.errors.ArgumentError, match=r"custom_jvp: .*a function"):
        ft.custom_jvp(3)


def test_zeros_of_a_tree():
    tree = {"w": np.ones(2, np.float32), "n": (np.arange(3), 2.0)}
    zero = zero_from_primal(tree)
    assert zero["w"].dtype == np.float32
    np.testing.assert_array_equal(zero["n"][0], [0, 0, 0])
    assert zero["n"][1] == 0.0
    symbolic = zero_from_primal(tree, symbolic_zeros=True)
    assert [type(z) for z in (symbolic["w"], *symbolic["n"])] == [SymbolicZero] * 3
    assert symbolic["n"][0].shape == (3,)

    f = ft.custom_jvp(lambda p: p)
    f.defjvp(lambda primals, tangents: (primals[0], zero_from_primal(primals[0])))
    g = ft.custom_vjp(lambda p: p)
    g.defvjp(lambda p: (p, p), lambda p, ct: (zero_from_primal(p),))
    for h in (f, g):
        slope = ft.grad(lambda w, h=h: h({"w": w, "n": (np.arange(3), w)})["w"])
        assert slope(3.0) == ft.jit(slope)(3.0) == 0.0
