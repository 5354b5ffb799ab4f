"""`custom_vmap`: a function that `vmap` treats by a rule of its own, and its derivatives."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import functrans as ft
import functrans.numpy as fnp
from functrans import custom_batching, errors, lax

X = np.array([0.2, 0.9, 1.7])
Y = np.array([1.0, -2.0, 0.5])
ROWS = np.arange(6.0).reshape(2, 3)


def product():
    """``sin(x) y``, whose rule tells itself by a cosine; and what the rule was asked."""
    asked = []

    @ft.custom_vmap
    def f(x, y):
        return fnp.sin(x) * y

    @f.def_vmap
    def rule(axis_size, in_batched, x, y):
        asked.append((axis_size, in_batched, x.shape, y.shape))
        return fnp.cos(x) * y, True

    return f, asked


def returning(rule, fun=lambda x: {"a": x}):
    f = ft.custom_vmap(fun)
    f.def_vmap(rule)
    return f


def test_without_a_map_it_is_the_function():
    f, asked = product()
    assert_allclose([f(0.3, 2.0), ft.jit(f)(0.3, 2.0), f(0.3, y=2.0)], 2 * np.sin(0.3))
    assert_allclose(ft.vmap(f, (None, None), axis_size=2)(0.3, 2.0), [2 * np.sin(0.3)] * 2)
    for d in (ft.grad(f), ft.grad(ft.jit(f)), ft.jit(ft.grad(f)), ft.jacfwd(f)):
        assert_allclose(d(0.3, 2.0), 2 * np.cos(0.3))
    assert_allclose(ft.hessian(f)(0.3, 2.0), -2 * np.sin(0.3))
    assert asked == []
    assert repr(f) == "<custom_vmap of f>"
    assert f.__name__ == "f"


@pytest.mark.parametrize("way", [ft.vmap, lambda *a: ft.jit(ft.vmap(*a))], ids=["eager", "jit"])
def test_the_rule_gets_mapped_arguments_with_the_axis_in_front(way):
    f, asked = product()
    assert_allclose(way(f, 0)(X, Y), np.cos(X) * Y)
    assert_allclose(way(f, (0, None))(X, 2.0), np.cos(X) * 2)
    assert_allclose(way(f, (None, 0))(0.3, Y), np.cos(0.3) * Y)
    assert_allclose(way(f, (1, None))(ROWS, 2.0), 2 * np.cos(ROWS.T))
    assert asked == [
        (3, [True, True], (3,), (3,)),
        (3, [True, False], (3,), ()),
        (3, [False, True], (), (3,)),
        (3, [True, False], (3, 2), ()),
    ]


def test_it_maps_what_is_compiled_and_looped():
    f, _ = product()
    assert_allclose(ft.vmap(ft.jit(f), (0, None))(X, 2.0), np.cos(X) * 2)
    loop = lambda x: lax.scan(lambda c, row: (c, f(row, row)), 0.0, x)[1]
    assert_allclose(ft.vmap(loop)(ROWS), np.cos(ROWS) * ROWS)
    assert_allclose(ft.jit(ft.vmap(loop))(ROWS), np.cos(ROWS) * ROWS)
    assert_allclose(lax.map(lambda x: ft.vmap(f)(x, x), ROWS), np.cos(ROWS) * ROWS)


def test_nested_maps_ask_the_rule_once():
    f, asked = product()
    assert_allclose(ft.vmap(ft.vmap(f))(ROWS, ROWS), np.cos(ROWS) * ROWS)
    assert asked == [(3, [True, True], (3,), (3,))]
    asked.clear()
    assert_allclose(ft.vmap(ft.vmap(f, (0, None)), (None, 0))(X, Y), np.cos(X) * Y[:, None])
    assert asked == [(3, [True, False], (3,), ())]


DERIVATIVES = {
    "vmap(grad)": lambda f: ft.vmap(ft.grad(f), (0, None)),
    "vmap(jit(grad))": lambda f: ft.vmap(ft.jit(ft.grad(f)), (0, None)),
    "vmap(grad(jit))": lambda f: ft.vmap(ft.grad(ft.jit(f)), (0, None)),
    "jit(vmap(grad))": lambda f: ft.jit(ft.vmap(ft.grad(f), (0, None))),
    "vmap(jacfwd)": lambda f: ft.vmap(ft.jacfwd(f), (0, None)),
    "grad(vmap)": lambda f: ft.grad(lambda x, y: fnp.sum(ft.vmap(f, (0, None))(x, y))),
    "jvp(vmap)": lambda f: lambda x, y: ft.jvp(lambda x: ft.vmap(f, (0, None))(x, y), (x,), (np.ones(3),))[1],
    "vmap(jvp)": lambda f: lambda x, y: ft.vmap(lambda x: ft.jvp(lambda x: f(x, y), (x,), (1.0,))[1])(x),
    "vmap(linearize)": lambda f: (
        lambda x, y: ft.vmap(lambda x: ft.linearize(lambda x: f(x, y), x)[1](1.0))(x)
    ),
    "vmap(checkpoint)": lambda f: ft.vmap(ft.grad(ft.checkpoint(f)), (0, None)),
}


@pytest.mark.parametrize("way", DERIVATIVES)
def test_derivatives_under_maps_are_those_of_the_rule(way):
    f, asked = product()
    assert_allclose(DERIVATIVES[way](f)(X, 2.0), -2 * np.sin(X))
    assert asked


def test_second_derivatives_under_maps():
    f, _ = product()
    for second in (lambda f: ft.grad(ft.grad(f)), ft.hessian, lambda f: ft.jacrev(ft.jacfwd(f))):
        assert_allclose(ft.vmap(second(f), (0, None))(X, 2.0), -2 * np.cos(X))
        assert_allclose(ft.jit(ft.vmap(second(f), (0, None)))(X, 2.0), -2 * np.cos(X))
    mixed = ft.vmap(ft.grad(ft.grad(f), argnums=1), (0, None))(X, 2.0)
    assert_allclose(mixed, -np.sin(X))


def test_the_gradient_of_a_shared_argument_is_summed():
    f, _ = product()
    total = lambda x, y: fnp.sum(ft.vmap(f, (0, None))(x, y))
    assert_allclose(ft.grad(total, argnums=1)(X, 2.0), np.cos(X).sum())
    assert_allclose(ft.vmap(ft.grad(f, argnums=1), (0, None))(X, 2.0), np.cos(X))
    assert_allclose(ft.vmap(ft.grad(f, argnums=1), (None, 0))(0.3, Y), [np.cos(0.3)] * 3)


def test_results_that_are_not_mapped():
    mean = returning(lambda n, b, x: (fnp.mean(x), False), lambda x: x)
    assert_array_equal(ft.vmap(mean)(Y), [Y.mean()] * 3)
    assert_array_equal(ft.jit(ft.vmap(lambda x: mean(x) + x))(Y), Y.mean() + Y)
    assert_allclose(ft.grad(lambda x: fnp.sum(ft.vmap(mean)(x) * X))(Y), [X.sum() / 3] * 3)
    assert_allclose(ft.jvp(ft.vmap(mean), (Y,), (X,))[1], [X.mean()] * 3)


def test_trees_and_prefixes():
    seen = []

    def rule(n, in_batched, p, s):
        seen.append(in_batched)
        return {"y": 2 * p["x"] * s, "z": s}, {"y": True, "z": False}

    f = returning(rule, lambda p, s: {"y": p["x"] * s, "z": s})
    found = ft.vmap(f, ({"x": 0, "n": None}, None))({"x": X, "n": 1}, 3.0)
    assert_array_equal(found["y"], 6 * X)
    assert_array_equal(found["z"], [3.0] * 3)
    assert seen == [[{"x": True, "n": False}, False]]
    whole = returning(lambda n, b, x: ((x, 2 * x), True), lambda x: (x, 2 * x))
    assert_array_equal(ft.vmap(whole)(X)[1], 2 * X)


def test_defaults_and_methods():
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        @ft.custom_vmap
        def times(self, x, y=2.0):
            return self * x * y

        @times.def_vmap
        def _rule(axis_size, in_batched, self, x, y):
            return -self * x * y, True

    assert_allclose(Scale.times(3.0, 1.5), 9.0)
    assert_allclose(ft.vmap(Scale.times, (None, 0))(3.0, X), -6 * X)
    assert Scale.__dict__["times"].vmap_rule is Scale._rule


def test_host_code_in_the_rule_sees_arrays():
    f = returning(lambda n, b, x: (np.array([float(v) for v in x]) * 2, True), lambda x: 2 * float(x))
    assert_array_equal(ft.vmap(f)(X), 2 * X)
    assert_array_equal(f(1.5), 3.0)


BAD = {
    "one value": (lambda n, b, x: {"a": x}, "must return a pair"),
    "three values": (lambda n, b, x: ({"a": x}, True, 1), "3 values"),
    "structure": (lambda n, b, x: (x, True), "another structure than the function"),
    "size": (lambda n, b, x: ({"a": x[:2]}, True), r"no axis of size 3 in front"),
    "number": (lambda n, b, x: ({"a": 1.0}, True), r"no axis of size 3 in front"),
    "shape": (lambda n, b, x: ({"a": fnp.stack([x, x], 1)}, True), r"\(3, 2\)[\s\S]*\(3,\)"),
    "not mapped": (lambda n, b, x: ({"a": x}, False), r"\(3,\), not mapped[\s\S]*\(\)"),
    "dtype": (lambda n, b, x: ({"a": x.astype("float32")}, True), "float32"),
    "flag": (lambda n, b, x: ({"a": x}, 0), "0 in out_batched"),
    "flags": (lambda n, b, x: ({"a": x}, {"b": True}), "another structure than its out"),
    "no array": (lambda n, b, x: ({"a": "x"}, True), "must return a tree of arrays"),
}


@pytest.mark.parametrize("way", [ft.vmap, lambda f: ft.jit(ft.vmap(f))], ids=["eager", "jit"])
@pytest.mark.parametrize("case", BAD)
def test_bad_rules(case, way):
    rule, message = BAD[case]
    with pytest.raises(errors.VmapRuleError, match=message) as found:
        way(returning(rule))(X)
    assert "lambda n, b, x" in str(found.value)


def test_missing_rule_and_bad_calls():
    @ft.custom_vmap
    def f(x):
        return x

    assert f(2.0) == 2.0
    with pytest.raises(errors.VmapRuleError, match=r"@f\.def_vmap"):
        ft.vmap(f)(X)
    with pytest.raises(errors.FunctionError, match="missing"):
        f()
    with pytest.raises(errors.ArgumentError, match=r"custom_vmap of f: argument 0 \('x'\)"):
        f("x")
    with pytest.raises(errors.ArgumentError, match="def_vmap"):
        f.def_vmap(3)
    with pytest.raises(errors.ArgumentError, match="custom_vmap"):
        ft.custom_vmap(3)


def captured(w):
    """Multiplication by a captured number; the rule is twice as large."""
    return returning(lambda n, b, x: (2 * w * x, True), lambda x: w * x)


def test_captured_values():
    assert_allclose(ft.grad(lambda w: captured(w)(2.0))(3.0), 2.0)
    assert_allclose(ft.jvp(lambda w: captured(w)(2.0), (3.0,), (1.0,)), (6.0, 2.0))
    assert_allclose(ft.jit(ft.grad(lambda w, x: captured(w)(x)))(3.0, 2.0), 2.0)
    assert_allclose(
        ft.jit(lambda w, x: ft.jvp(lambda w, x: captured(w)(x), (w, x), (1.0, 5.0)))(3.0, 2.0), (6.0, 17.0)
    )
    both = ft.grad(lambda w, x: captured(w)(x), argnums=(0, 1))
    for gradients in (both, ft.jit(both), ft.grad(ft.jit(lambda w, x: captured(w)(x)), argnums=(0, 1))):
        assert gradients(3.0, 2.0) == (2.0, 3.0)
    assert_allclose(ft.vmap(lambda w: captured(w)(2.0))(X), 2 * X)
    assert_allclose(ft.jit(lambda w, x: ft.vmap(captured(w))(x))(3.0, X), 6 * X)
    with pytest.raises(errors.CapturedTracerError, match="'w'"):
        ft.vmap(lambda w, x: captured(w)(x))(X, X)


def test_sequential_vmap_is_a_loop():
    shapes = []

    @custom_batching.sequential_vmap
    def f(x, p):
        shapes.append(x.shape)
        return {"y": fnp.sum(x) * p["w"]}

    rows = np.arange(6.0).reshape(2, 3)
    for way in (ft.vmap, lambda *a: ft.jit(ft.vmap(*a))):
        assert_allclose(way(f, (0, None))(rows, {"w": 2.0})["y"], 2 * rows.sum(1))
        assert_allclose(way(f, (1, {"w": 0}))(rows, {"w": X})["y"], rows.sum(0) * X)
    assert_allclose(f(X, {"w": 2.0})["y"], 2 * X.sum())
    assert set(shapes) == {(3,), (2,)}
    total = lambda x, w: fnp.sum(ft.vmap(f, (0, None))(x, {"w": w})["y"] ** 2)
    assert_allclose(ft.grad(total)(rows, 2.0), np.repeat(8 * rows.sum(1), 3).reshape(2, 3))
    assert_allclose(ft.grad(total, argnums=1)(rows, 2.0), 4 * (rows.sum(1) ** 2).sum())
    single = lambda x: f(x, {"w": 2.0})["y"]
    assert_allclose(ft.vmap(ft.vmap(single))(np.stack([rows, rows])), [2 * rows.sum(1)] * 2)
    assert_allclose(ft.vmap(ft.grad(single))(rows), np.full((2, 3), 2.0))


def test_one_by_one_each_lane_runs_its_own_loop():
    seen = []

    @custom_batching.sequential_vmap
    def halvings(x):
        ft.debug.callback(lambda v: seen.append(float(v)), x)
        return lax.while_loop(lambda c: c[0] > 1.0, lambda c: (c[0] / 2, c[1] + 1), (x, 0))[1]

    assert_array_equal(ft.vmap(halvings)(fnp.asarray([0.5, 3.0, 100.0])), [0, 2, 7])
    assert seen == [0.5, 3.0, 100.0]


def test_namespace():
    assert custom_batching.custom_vmap is ft.custom_vmap
    assert set(custom_batching.__all__) == {"custom_vmap", "sequential_vmap"}


def test_rules_for_derivatives_around_and_inside():
    @ft.custom_vjp
    @ft.custom_vmap
    def f(x, y):
        return fnp.sin(x) * y

    f.def_vmap(lambda n, b, x, y: (fnp.cos(x) * y, True))
    f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda r, ct: (7.0 * ct, ct * fnp.sin(r[0])))
    assert_allclose(ft.vmap(f, (0, None))(X, 2.0), 2 * np.cos(X))
    assert_allclose(ft.vmap(ft.grad(f), (0, None))(X, 2.0), [7.0] * 3)

    g = ft.custom_vmap(ft.custom_jvp(lambda x: 2.0 * x))
    g.def_vmap(lambda n, b, x: (x**2, True))
    g.defjvps(lambda t, out, x: 5.0 * t)
    assert_allclose(ft.grad(g)(3.0), 5.0)
    assert_allclose(ft.vmap(ft.grad(g))(X), 2 * X)
    for h in (g, f, ft.custom_vjp(lambda x: x)):
        with pytest.raises(AttributeError, match="nothing"):
            h.nothing
    with pytest.raises(AttributeError, match="def_vmap"):
        ft.custom_vjp(lambda x: x).def_vmap(lambda n, b, x: (x, True))
