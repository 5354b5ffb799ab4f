"""`make_jaxpr`, `eval_shape`: a function looked at without running it."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp


def test_make_jaxpr_of_arrays_numbers_and_structs():
    f = lambda x, p: {"y": fnp.sum(x * p["w"]), "x": x}
    for x in (np.ones(3), ft.ShapeDtypeStruct((3,), np.float64)):
        jaxpr = ft.make_jaxpr(f)(x, {"w": 2.0})
        assert list(map(str, jaxpr.in_avals)) == ["f64[3]", "f64[]*"]
        assert sorted(map(str, jaxpr.out_avals)) == ["f64[3]", "f64[]"]
    jaxpr, shapes = ft.make_jaxpr(f, return_shape=True)(np.ones(3, "f4"), {"w": 2.0})
    assert shapes["y"] == ft.ShapeDtypeStruct((), np.float32)
    jaxpr = ft.make_jaxpr(lambda x, n: x**n, static_argnums=1)(2.0, 3)
    assert len(jaxpr.in_avals) == 1


def test_make_jaxpr_of_transformed_functions():
    f = lambda x: fnp.sum(fnp.sin(x))
    names = lambda g: [e.primitive.name for e in ft.make_jaxpr(g)(np.ones(3)).eqns]
    assert names(f) == ["sin", "reduce_sum"]
    assert names(ft.jit(f)) == ["call"]
    assert "cos" in names(ft.grad(f))
    assert "reduce_sum" not in names(ft.grad(f))  # the value is not needed
    assert str(ft.make_jaxpr(ft.vmap(f))(np.ones((2, 3))).out_avals) == "[f64[2]]"


def test_captured_arrays_are_attached():
    w = np.arange(3.0)
    jaxpr = ft.make_jaxpr(lambda x: x * w)(1.0)
    assert len(jaxpr.consts) == 1
    w[:] = 0
    np.testing.assert_array_equal(jaxpr.consts[0], [0.0, 1.0, 2.0])
    assert not jaxpr.consts[0].flags.writeable


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "i4", "?"])
def test_eval_shape_agrees_with_the_run(dtype):
    x = np.ones((2, 3)).astype(dtype)
    f = lambda x, *, n: {"a": (x * 2).T, "b": [fnp.sum(x, axis=1), x > 0 if dtype != "c8" else x], "c": n}
    shapes, values = ft.eval_shape(f, x, n=3), f(fnp.asarray(x), n=3)
    for key in ("a", "b"):
        for s, v in zip(*(t[key] if key == "b" else [t[key]] for t in (shapes, values))):
            assert (s.shape, s.dtype, s.ndim, s.size) == (v.shape, v.dtype, v.ndim, v.size)
    assert shapes["c"].weak_type


def test_eval_shape_computes_nothing():
    out = ft.eval_shape(lambda x: x @ x.T, ft.ShapeDtypeStruct((10**6, 10**6), "float64"))
    assert out.shape == (10**6, 10**6)
    with pytest.raises(ft.errors.ShapeError):
        ft.eval_shape(lambda x: x @ x, ft.ShapeDtypeStruct((2, 3), "float64"))


def test_pretty_print_shows_source_lines_on_request():
    jaxpr = ft.make_jaxpr(lambda x: fnp.sin(x))(np.ones(3))
    assert jaxpr.pretty_print() == str(jaxpr)
    assert "test_stages.py:" in jaxpr.pretty_print(source_info=True)
