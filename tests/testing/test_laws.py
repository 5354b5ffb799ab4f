"""Each law holds for right functions, and is broken by the fault that it is there for."""

import dataclasses
import re

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.errors import ArgumentError
from functrans.primitives.elementwise import trig
from functrans.primitives.structure import linear
from functrans.testing import (
    LAWS,
    LawViolation,
    derivatives_are_linear,
    gradients_keep_types,
    hessian_is_symmetric,
    inputs_stay,
    is_smooth,
    jit_and_grad_commute,
    jit_is_eager,
    jvp_is_slope,
    vjp_is_adjoint,
    vjp_is_slope,
    vmap_is_loop,
)

X = np.array([0.3, -1.2, 0.8])


def _faulty(prim, **slots):
    """A primitive as a function, with other rules."""
    broken = dataclasses.replace(prim, name=f"faulty_{prim.name}", **slots)
    return lambda *args, **params: broken.bind(
        *[np.asarray(x) if isinstance(x, np.ndarray) else x for x in args], **params
    )


def tree(x, rest):
    w, n = rest["w"], rest["n"]
    return {"a": fnp.sin(x) * w, "b": (fnp.sum(x**2) * n, fnp.argmax(x))}


@pytest.mark.parametrize("law", LAWS.values(), ids=lambda law: law.__name__)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_holds_for_a_function_of_trees(law, dtype):
    law(tree, X.astype(dtype), {"w": np.ones(3, dtype), "n": np.array(3)})


@pytest.mark.parametrize("law", LAWS.values(), ids=lambda law: law.__name__)
@pytest.mark.parametrize(
    "x", [np.array(0.7), np.zeros((0, 3)), np.ones((2, 1))[:, ::-1], np.broadcast_to(0.4, (2, 3)), 0.6]
)
def test_holds_for_every_layout(law, x):
    law(lambda x: fnp.exp(x) * fnp.tanh(x), x)


def test_wrong_jvp_names_law_and_argument():
    def jvp(primals, tangents):
        x, y = primals
        s, t = tangents
        return linear.add_p.bind(x, y), linear.add_p.bind(s, linear.add_p.bind(t, t))

    with pytest.raises(LawViolation, match="jvp = finite differences") as caught:
        jvp_is_slope(_faulty(linear.add_p, jvp=jvp), X, X)
    message = str(caught.value)
    assert "output 0" in message
    assert "seed: 0" in message
    assert "reproduce: functrans.testing.jvp_is_slope(<lambda>, np.array([" in message
    assert caught.value.seed == 0
    assert caught.value.name == "jvp_is_slope"
    assert caught.value.subject == "<lambda>"


def test_wrong_transpose():
    wrong = dataclasses.replace(
        linear.transpose_p,
        transpose=lambda ct, x, *, permutation: [linear.transpose_p.bind(ct, permutation=permutation)],
        jvp=linear.linear_jvp(lambda: wrong),
    )
    with pytest.raises(LawViolation, match="<J v, w>"):
        vjp_is_adjoint(lambda x: wrong.bind(x, permutation=(2, 0, 1)), np.arange(27.0).reshape(3, 3, 3))


def test_cotangent_that_is_ignored():
    wrong = dataclasses.replace(
        linear.reduce_sum_p,
        transpose=lambda ct, x, *, axes: [np.ones(x.aval.shape)],
        jvp=linear.linear_jvp(lambda: wrong),
    )
    f = lambda x: wrong.bind(x, axes=(0,))
    with pytest.raises(LawViolation, match="<J v, w>"):
        vjp_is_adjoint(f, X)
    with pytest.raises(LawViolation, match="derivatives are linear"):
        derivatives_are_linear(f, X)


def test_tangent_of_another_dtype():
    def jvp(primals, tangents):
        ans = trig.sin_p.bind(*primals)
        return ans, np.asarray(tangents[0], np.float64) * np.cos(primals[0]).astype(np.float64)

    with pytest.raises(LawViolation, match="float64"):
        gradients_keep_types(_faulty(trig.sin_p, jvp=jvp), X.astype(np.float32))


def test_batch_rule_wrong_for_the_last_axis_only():
    def batch(size, args, dims, *, axes):
        (x,) = args
        return linear.reduce_sum_p.bind(x, axes=tuple(d + 1 for d in axes)), 0

    f = _faulty(linear.reduce_sum_p, batch=batch)
    with pytest.raises(LawViolation, match=r"in_axes \(1,\)"):
        vmap_is_loop(lambda x: f(x, axes=(0,)), X)


def test_kernel_that_differs():
    wrong = dataclasses.replace(trig.sin_p, kernel=trig.cos_p.kernel)
    with pytest.raises(LawViolation, match="backend llvm") as caught:
        jit_is_eager(lambda x: wrong.bind(np.asarray(x) if isinstance(x, np.ndarray) else x), X)
    assert "NumPy gives" in str(caught.value)


def test_closure_that_changes():
    scale = [1.0]

    def f(x):
        scale[0] *= 2.0
        return x * scale[0]

    with pytest.raises(LawViolation, match="jit = eager"):
        jit_is_eager(f, X)
    with pytest.raises(LawViolation, match="jit of grad"):
        jit_and_grad_commute(f, X)


def test_function_that_writes_into_its_argument():
    def f(x):
        x[0] = 0.0
        return x * 2.0

    with pytest.raises(LawViolation, match=r"at\[i\]") as caught:
        inputs_stay(f, X)
    assert isinstance(caught.value.__cause__, TypeError)


def test_second_derivative():
    def jvp(primals, tangents):
        (x,), (t,) = primals, tangents
        # Right to first order; the cosine is held fixed.
        return trig.sin_p.bind(x), linear.add_p.bind(t, t) * 0.5 * np.cos(_number(x))

    with pytest.raises(LawViolation, match="second derivatives agree"):
        hessian_is_symmetric(_faulty(trig.sin_p, jvp=jvp), X)


def _number(x):
    while hasattr(x, "concrete"):
        x = x.concrete()
    return np.asarray(x)


def test_exception_is_chained():
    def f(x):
        raise ZeroDivisionError("of the user")

    for law in LAWS.values():
        with pytest.raises(LawViolation, match="ZeroDivisionError was raised: of the user") as caught:
            law(f, X)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(("f", "x"), [(fnp.abs, 0.0), (lambda x: fnp.maximum(x, 0.0), 1e-9), (fnp.sqrt, 0.0)])
def test_kinks(f, x):
    with pytest.raises(LawViolation, match=r"non-differentiable \(kink\)"):
        is_smooth(f, np.array(x))


def test_a_steep_slope_is_not_a_kink():
    is_smooth(fnp.tan, np.array(1.5))
    jvp_is_slope(fnp.tan, np.array(1.5))


def test_wrt_limits_the_directions():
    f = lambda x, y: fnp.abs(x) * fnp.sin(y)
    is_smooth(f, 0.0, 1.0, wrt=1)
    with pytest.raises(LawViolation, match="kink"):
        is_smooth(f, 0.0, 1.0, wrt=0)
    with pytest.raises(ArgumentError, match="wrt=2"):
        is_smooth(f, 0.0, 1.0, wrt=2)


def test_other_seeds_are_other_directions():
    def points_of(seed):
        seen = set()

        def f(x):
            if isinstance(x, np.ndarray):
                seen.add(np.asarray(x).tobytes())
            return fnp.sin(x)

        jvp_is_slope(f, X, rng=seed)
        return seen

    assert points_of(0) == points_of(0)
    assert points_of(0) & points_of(1) == {X.tobytes()}


def test_a_wrong_gradient_names_the_argument_by_its_path_and_the_element():
    @ft.custom_vjp
    def product(p):
        return fnp.sum(fnp.sin(p["w"]) * p["b"])

    def backward(p, ct):
        wrong = np.array([1.0, 1.0, 1.5])
        return ({"w": ct * fnp.cos(p["w"]) * p["b"] * wrong, "b": ct * fnp.sin(p["w"])},)

    product.defvjp(lambda p: (product(p), p), backward)
    with pytest.raises(LawViolation) as caught:
        vjp_is_slope(product, {"w": X, "b": np.array([1.0, 2.0, 4.0])})
    found = re.search(
        r"most in argument 0 \('p'\)\['w'\], element \(2,\): the gradient is (\S+), finite differences give (\S+), "
        r"with an estimated error of (\S+)",
        str(caught.value),
    )
    assert float(found[1]) / float(found[2]) == pytest.approx(1.5)
    assert float(found[3]) < 1e-10


def test_wrong_tangents_name_the_argument():
    @ft.custom_jvp
    def product(x, y):
        return x * y

    product.defjvp(lambda xs, ts: (xs[0] * xs[1], ts[0] * xs[1] + 1.1 * xs[0] * ts[1]))
    with pytest.raises(LawViolation, match=r"most by argument 1 \('y'\): jvp gives .*estimated error of"):
        jvp_is_slope(product, X, X)


def test_the_line_that_repeats_a_failure_does():
    """As it is pasted: small arguments stand in it."""

    def wrong(tree, n, z):
        y = linear.add_p.bind(tree["a"][0], tree["b"])
        return fnp.floor(y * 7.3) + y * n + fnp.real(z)

    args = {"a": [np.float32([0.5, -1.25])], "b": np.array([2.0, 0.1], "f4")}, 3, np.array(1 + 2j)
    with pytest.raises(LawViolation) as first:
        jvp_is_slope(_faulty_sum(wrong), *args)
    line = str(first.value).rpartition("reproduce: ")[2]
    assert "'a': [np.array([0.5, -1.25], 'float32')]" in line
    assert ", 3, np.array((1+2j))" in line
    with pytest.raises(LawViolation) as second:
        eval(line.replace("functrans", "ft"), {"ft": ft, "np": np, "wrong": _faulty_sum(wrong)})
    assert str(second.value) == str(first.value)
    large = np.linspace(0.1, 1.0, 25)
    for x in (large, np.array([1.0, np.inf])):
        with pytest.raises(LawViolation, match=r"\(wrong, \*args, rng=0\)"):
            jvp_is_slope(_faulty_sum(lambda y: y * 2.0), x)


def _faulty_sum(f):
    """A function named ``wrong`` with a tangent that is three times too large."""

    @ft.custom_jvp
    def wrong(*args):
        return f(*args)

    @wrong.defjvp
    def _(primals, tangents):
        out, tangent = ft.jvp(f, primals, tangents)
        return out, 3.0 * tangent

    wrong.__name__ = "wrong"
    return wrong
