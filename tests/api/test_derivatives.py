"""`grad`, `vjp`, `jvp`, `linearize`, `jacfwd` and their kin: values by finite differences and closed forms."""

import copy

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.testing.finite_difference import jacobian

X = np.array([0.3, -1.2, 2.5])
Y = np.array([1.5, 0.7, -0.4])


def g(x, y):
    return fnp.sum(fnp.sin(x) * fnp.exp(y) + x[0] * y)


def by_differences(f, *x):
    return list(jacobian(lambda xs: [np.asarray(f(*xs))], x)[0][0])


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_grad_and_argnums(wrap):
    dx, dy = by_differences(lambda x, y: np.sum(np.sin(x) * np.exp(y) + x[0] * y), X, Y)
    f = wrap(g)
    close(ft.grad(f)(X, Y), dx)
    close(ft.grad(f, 1)(X, Y), dy)
    close(ft.grad(f, -1)(X, Y), dy)
    for actual in (ft.grad(f, (1, 0))(X, Y), wrap(ft.grad(f, argnums=[1, 0]))(X, Y)):
        assert type(actual) is tuple
        close(actual[0], dy)
        close(actual[1], dx)
    value, actual = wrap(ft.value_and_grad(f, (0,)))(X, Y)
    close(value, np.sum(np.sin(X) * np.exp(Y) + X[0] * Y))
    assert type(actual) is tuple
    close(actual[0], dx)
    assert type(value) is type(actual[0]) is ft.Array
    assert value.shape == ()


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_has_aux(wrap):
    def f(x):
        return fnp.sum(x**2), {"x": x, "n": 3, "none": None}

    d, aux = wrap(ft.grad(f, has_aux=True))(X)
    close(d, 2 * X)
    assert aux["none"] is None
    close(aux["x"], X)
    (value, aux), d = wrap(ft.value_and_grad(f, has_aux=True))(X)
    close(value, np.sum(X**2))
    assert aux["n"] == 3
    close(aux["x"], X)
    close(d, 2 * X)
    jac, aux = ft.jacrev(lambda x: (x * x, x), has_aux=True)(X)
    close(jac, np.diag(2 * X))
    close(aux, X)
    assert ft.jacfwd(lambda x: (x * x, "text"), has_aux=True)(X)[1] == "text"
    close(ft.hessian(lambda x: (fnp.sum(x**3), x), has_aux=True)(X)[0], np.diag(6 * X))
    _out, pull, aux = ft.vjp(lambda x: (x * x, x + 1), X, has_aux=True)
    close(aux, X + 1)
    close(pull(np.ones(3))[0], 2 * X)
    assert len(ft.jvp(lambda x: (x * x, x), (X,), (Y,), has_aux=True)) == 3


def test_aux_of_nested_gradients_is_free_of_tracers():
    def f(x):
        return x**3, x * 2

    def outer(x):
        d, aux = ft.grad(f, has_aux=True)(x)
        return d * aux, aux

    d, aux = ft.grad(outer, has_aux=True)(2.0)  # (3 x^2 * 2 x)' = 18 x^2
    close(d, 72.0)
    close(aux, 4.0)
    assert isinstance(aux, ft.Array)


def test_trees_of_arguments():
    params = {"w": [X, np.float32(2.0)], "b": (), "c": None}
    actual = ft.grad(lambda p: fnp.sum(p["w"][0] ** 2) * p["w"][1])(params)
    close(actual["w"][0], 4 * X)
    assert actual["w"][1].dtype == np.float32
    np.testing.assert_allclose(actual["w"][1], np.sum(X**2), rtol=1e-6)
    assert actual["b"] == ()
    assert actual["c"] is None


def test_gradients_have_dtype_and_shape_of_the_argument():
    for dtype in ("f4", "f8"):
        x = X.astype(dtype)
        for f in (lambda x: fnp.sum(x * 2.0), lambda x: 1.0, lambda x: fnp.sum(x.astype("f8") ** 2)):
            for d in (ft.grad(f)(x), ft.grad(ft.jit(f))(x), ft.jit(ft.grad(f))(x)):
                assert (d.dtype, d.shape) == (x.dtype, x.shape)


def test_python_numbers_as_arguments():
    d = ft.grad(lambda x, n: x**n)(2.0, 3)
    assert d == 12.0
    assert isinstance(d, ft.Array)
    assert ft.value_and_grad(lambda x: x * np.float32(2))(1.5)[0].dtype == np.float32
    assert ft.grad(lambda x: x * np.float32(2))(1.5) == 2.0


def test_keyword_arguments_are_constants():
    assert ft.grad(lambda x, *, k: k * x)(1.0, k=3.0) == 3.0
    assert ft.vmap(lambda x, *, k: k * x)(X, k=Y).shape == (3,)


def test_python_control_flow_sees_numbers():
    def f(x):
        n = 0
        while float(x) < 100:
            x = x * x if x > 2 else x + 1
            n += 1
        return x if n > 2 else -x

    close(ft.grad(f)(1.5), 8 * 2.5**7)  # 1.5 -> 2.5 -> 6.25 -> 39.06 -> 1525
    close(ft.grad(ft.grad(f))(1.5), 56 * 2.5**6)
    assert f"{X[0]:.2f}" == ft.jvp(lambda x: (x, f"{x:.2f}"), (0.3,), (1.0,), has_aux=True)[2]


def test_integer_and_boolean_arguments():
    n = np.array([1, 2, 3])
    _, pull = ft.vjp(lambda x, n: x * n, X, n)
    dx, dn = pull(np.ones(3))
    close(dx, n)
    assert dn.shape == (3,)
    close(dn, np.zeros(3))
    _, t = ft.jvp(lambda x, n: x * n, (X, n), (Y, None))
    close(t, Y * n)
    close(ft.grad(lambda x, m: fnp.sum(fnp.where(m, x, 0)))(X, n > 1), [0, 1, 1])
    close(ft.grad(lambda p: p["x"] * 2.0)({"x": 1.0})["x"], 2.0)


def test_vjp_and_jvp_agree_with_differences():
    f = lambda x, y: (fnp.outer(x, y), {"s": fnp.sum(x * y)})
    ct = np.linspace(-1, 1, 9).reshape(3, 3)
    _, pull = ft.vjp(f, X, Y)
    dx, dy = pull((ct, {"s": 2.0}))
    close(dx, ct @ Y + 2 * Y)
    close(dy, ct.T @ X + 2 * X)
    dx, _ = pull((ct, {"s": None}))
    close(dx, ct @ Y)
    _, t = ft.jvp(f, (X, Y), (Y, X))
    close(t[0], np.outer(Y, Y) + np.outer(X, X))
    close(t[1]["s"], Y @ Y + X @ X)


def test_linearize_and_its_reuse():
    out, push = ft.linearize(lambda x: fnp.sin(x) * x[1], X)
    close(out, np.sin(X) * X[1])
    for v in np.eye(3):
        close(push(v), np.cos(X) * X[1] * v + np.sin(X) * v[1])
    close(ft.vmap(push)(np.eye(3)), [push(v) for v in np.eye(3)])
    close(ft.jit(push)(Y), push(Y))


def test_linear_transpose():
    a = np.arange(6.0).reshape(2, 3)
    (out,) = ft.linear_transpose(lambda x: a @ x, ft.ShapeDtypeStruct((3,), "float64"))(np.ones(2))
    close(out, a.T @ np.ones(2))
    with pytest.raises(ft.errors.GradientError, match=r"the function is not linear: primitive 'sin'"):
        ft.linear_transpose(fnp.sin, 1.0)(1.0)
    with pytest.raises(ft.errors.GradientError, match="int64"):
        ft.linear_transpose(lambda x: x, 1)


@pytest.mark.parametrize("jac", [ft.jacfwd, ft.jacrev])
@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_jacobians(jac, wrap):
    f = lambda x, y: fnp.outer(fnp.tanh(x), y[:2])
    dx, dy = by_differences(lambda x, y: np.outer(np.tanh(x), y[:2]), X, Y)
    close(wrap(jac(f))(X, Y), dx)
    actual = wrap(jac(wrap(f), (0, 1)))(X, Y)
    close(actual[0], dx)
    close(actual[1], dy)
    tree = jac(lambda p: {"a": p[0] * p[1], "b": p[1]})((X, 2.0))
    close(tree["a"][0], 2 * np.eye(3))
    close(tree["a"][1], X)
    close(tree["b"][0], np.zeros(3))
    close(tree["b"][1], 1.0)
    assert jac(lambda x: x[:0])(X).shape == (0, 3)


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_hessian(wrap):
    f = lambda x: fnp.sum(fnp.sin(x)) * x[0] + fnp.prod(x)
    expected = by_differences(lambda x: ft.grad(f)(x), X)[0]
    close(wrap(ft.hessian(f))(X), expected)
    close(ft.hessian(wrap(f))(X), expected)
    blocks = ft.hessian(lambda x, y: fnp.sum(x) * fnp.sum(y**2), (0, 1))(X, Y)
    close(blocks[0][0], np.zeros((3, 3)))
    close(blocks[0][1], np.tile(2 * Y, (3, 1)))
    close(blocks[1][1], np.sum(X) * 2 * np.eye(3))


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_complex_functions_by_the_convention_of_jax(wrap):
    z = np.array([1.0 + 2.0j, -0.5 + 0.3j])
    close(ft.grad(wrap(lambda z: fnp.sum(fnp.abs(z) ** 2)))(z), 2 * np.conj(z))  # df/dx - i df/dy
    close(wrap(ft.grad(lambda z: fnp.sum(fnp.real(z))))(z), np.ones(2))
    close(wrap(ft.grad(lambda z: fnp.sum(fnp.imag(z))))(z), np.full(2, -1j))
    close(ft.grad(wrap(lambda z: fnp.sum(z**3)), holomorphic=True)(z), 3 * z**2)
    close(ft.jacfwd(wrap(lambda z: fnp.exp(z)), holomorphic=True)(z), np.diag(np.exp(z)))
    close(ft.jacrev(wrap(lambda z: fnp.exp(z)), holomorphic=True)(z), np.diag(np.exp(z)))
    _, t = ft.jvp(wrap(fnp.conj), (z,), (np.full(2, 1j),))
    close(t, np.full(2, -1j))
    close(ft.grad(wrap(lambda x: fnp.abs(fnp.exp(1j * x) + 1.0)))(0.7), -np.sin(0.35))


def test_stored_derivatives_outlive_changes_of_the_arguments():
    x, w = X.copy(), Y.copy()
    f = lambda x: fnp.sin(x) * w * x
    _, pull = ft.vjp(f, x)
    _, push = ft.linearize(f, x)
    _, jitted = ft.vjp(ft.jit(f), x)
    ones = np.ones(3)
    expected = pull(ones)[0], push(ones), jitted(ones)[0]
    x[:] = 100
    w[:] = 100
    slope = (np.cos(X) * X + np.sin(X)) * Y
    for e, actual in zip(expected, (pull(ones)[0], push(ones), jitted(ones)[0])):
        close(actual, slope)
        np.testing.assert_array_equal(actual, e)


def test_results_alias_neither_arguments_nor_cotangents():
    x, ct = X.copy(), Y.copy()
    identity = lambda x: x
    out, pull = ft.vjp(identity, x)
    (back,) = pull(ct)
    outs = [out, back, *ft.jvp(identity, (x,), (ct,)), ft.linearize(identity, x)[1](ct)]
    outs += [
        ft.vjp(lambda x: x.T[::-1], x)[0],
        ft.vmap(identity)(x),
        ft.grad(lambda x, y: fnp.sum(x * y))(x, ct),
    ]
    outs += [ft.value_and_grad(lambda x: (fnp.sum(x), x), has_aux=True)(x)[0][1]]
    outs += [ft.linear_transpose(identity, x)(ct)[0]]
    for actual in outs:
        assert not np.shares_memory(actual, x)
        assert not np.shares_memory(actual, ct)
        assert not actual.flags.writeable


def test_arguments_are_never_modified():
    x, y = X.copy(), Y.copy()
    for f in (g, ft.jit(g)):
        ft.hessian(f)(x, y)
        ft.vmap(ft.grad(lambda x, y, f=f: f(x[None], y[None])))(x, y)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(y, Y)


def test_strange_shapes():
    for x in (np.float64(0.5), np.zeros((0, 3)), np.ones((1, 1)), np.arange(12.0).reshape(3, 4)[::-2, 1::2]):
        for f in (lambda x: fnp.sum(fnp.sin(x)), ft.jit(lambda x: fnp.sum(fnp.sin(x)))):
            close(ft.grad(f)(x), np.cos(x))
            assert ft.hessian(f)(x).shape == 2 * np.shape(x)


def test_results_do_not_alias_arrays_that_the_function_holds():
    held = np.array([1.0, 2.0])
    outs = [
        ft.jvp(lambda x: held, (1.0,), (1.0,))[0],
        ft.vjp(lambda x: held, 1.0)[0],
        ft.vmap(lambda x: held, out_axes=None)(np.ones(2)),
    ]
    held[0] = 7.0
    for out in outs:
        np.testing.assert_array_equal(out, [1.0, 2.0])


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit])
def test_linear_transpose_of_a_function_that_captured_traced_values(wrap):
    def transposed(y):
        return ft.linear_transpose(lambda x: y * y * x, 1.0)(2.0)[0]  # 2 y^2

    close(wrap(transposed)(3.0), 18.0)
    close(wrap(ft.grad(transposed))(3.0), 12.0)
    close(wrap(ft.vmap(transposed))(np.arange(3.0)), [0.0, 2.0, 8.0])


def test_copies_of_a_value_under_differentiation_keep_its_derivative():
    for copied in (copy.copy, copy.deepcopy):
        assert ft.grad(lambda x, copied=copied: copied(x) ** 2)(3.0) == 6.0


# --- forward and backward apart -----------------------------------------------------------------------------


@pytest.mark.parametrize("jitted", [True, False])
def test_fwd_and_bwd(jitted):
    traced = []

    def f(x, w, scale):
        traced.append(1)
        return fnp.sum(fnp.sin(x) @ w) * scale["by"]

    x, w = np.linspace(0.0, 1.0, 6).reshape(2, 3), np.arange(3.0)
    fwd, bwd = ft.fwd_and_bwd(f, argnums=(0, -2), jitted=jitted)
    for k in range(3):
        out, residuals = fwd(x + k, w, {"by": 2.0})
        np.testing.assert_allclose(out, 2.0 * (np.sin(x + k) @ w).sum())
        of_x, of_w = bwd(residuals, 3.0)
        np.testing.assert_allclose(of_x, 6.0 * np.cos(x + k) * w)
        np.testing.assert_allclose(of_w, 6.0 * np.sin(x + k).sum(0))
    assert len(traced) == (1 if jitted else 3)
    fwd, bwd = ft.fwd_and_bwd(lambda x: (x**2, {"seen": x}), 0, True, jitted)
    out, residuals, aux = fwd(x)
    np.testing.assert_array_equal(aux["seen"], x)
    np.testing.assert_allclose(bwd(residuals, w * out), 2.0 * x * w * x**2)


def test_fwd_and_bwd_refuse():
    fwd, bwd = ft.fwd_and_bwd(lambda x: x**2, 1)
    with pytest.raises(ft.errors.ArgumentValueError, match="fwd_and_bwd of <lambda>: argnums=1"):
        fwd(2.0)
    with pytest.raises(ft.errors.ArgumentError, match="bwd: residuals must be what fwd returned"):
        bwd(2.0, 1.0)
    fwd, bwd = ft.fwd_and_bwd(lambda x: x**2, 0)
    with pytest.raises(ft.errors.FunctransError, match="shape"):
        bwd(fwd(2.0)[1], np.ones(2))


def test_other_names():
    assert ft.jacobian is ft.jacrev
    named = ft.named_call(lambda x: 2.0 * x, name="double")
    assert named.__name__ == "double"
    assert ft.jit(named)(3.0) == ft.grad(lambda x: 3.0 * named(x))(1.0) == 6.0


SCALARS = {
    "product": lambda x: x @ x,
    "element": lambda x: x[0],
    "einsum": lambda x: fnp.einsum("i,i->", x, x),
    "sort": lambda x: fnp.sort(x)[1],
    "cumsum": lambda x: fnp.cumsum(x)[2],
    "solve": lambda x: fnp.linalg.solve(fnp.eye(3) + 0.5, x)[0],
    "rfft": lambda x: fnp.fft.rfft(x)[1].real,
    "dynamic slice": lambda x: lax.dynamic_slice(x, (1,), (1,))[0],
    "scan": lambda x: lax.scan(lambda c, y: (c * y, None), 1.0, x)[0],
    "norm": fnp.linalg.norm,
    "median": fnp.median,
}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", SCALARS)
def test_python_numbers_as_cotangents_and_tangents(name, dtype):
    f, x = SCALARS[name], np.array([1.0, 3.0, 2.0], dtype)
    for number in (2.0, 2, True):
        typed = np.asarray(number, f(x).dtype)
        (found,), (expected,) = ft.vjp(f, x)[1](number), ft.vjp(f, x)[1](typed)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype == dtype
        along = lambda s: f(x * s)
        one = np.asarray(1, dtype)
        assert ft.jvp(along, (1.0,), (number,))[1] == pytest.approx(
            ft.jvp(along, (one,), (np.asarray(number, dtype),))[1]
        )
        assert ft.linearize(along, 1.0)[1](number) == pytest.approx(ft.jvp(along, (1.0,), (number,))[1])


def test_jacfwd_from_real_to_complex_numbers():
    x = np.array([0.5, 1.0, 2.0])

    def f(x):
        return fnp.exp(1j * x) * x[0]

    expected = 1j * np.diag(np.exp(1j * x)) * x[0]
    expected[:, 0] += np.exp(1j * x)
    for derivative in (ft.jacfwd(f), ft.jit(ft.jacfwd(f))):
        np.testing.assert_allclose(derivative(x), expected, rtol=1e-14)
    np.testing.assert_allclose(ft.jacfwd(lambda a: a * 1j)(2.0), 1j)
    with pytest.raises(ft.errors.GradientError, match="jacrev"):
        ft.jacrev(f)(x)
    with pytest.raises(ft.errors.GradientError, match="jacfwd"):
        ft.jacfwd(lambda z: z.real, holomorphic=True)(x + 0j)


def test_a_number_gets_axes():
    for f in (lambda x: x[None], lambda x: x[..., None][0], lambda x: fnp.expand_dims(x, 0), lambda x: x[()]):
        for y, expected in (
            (ft.grad(lambda x, f=f: fnp.sum(f(x) * 3))(2.0), 3),
            (ft.jvp(f, (2.0,), (1.0,))[1], 1),
        ):
            np.testing.assert_array_equal(np.ravel(y), [expected])


def test_the_pullback_of_a_loop_of_unknown_length_is_transposed():
    """Its tape is a constant of the program that is transposed: the transpose of the pullback is the forward mode."""

    def f(x):
        steps = 3 + fnp.astype(fnp.sum(x) > 9.0, int)
        return lax.while_loop(lambda c: c[0] < steps, lambda c: (c[0] + 1, fnp.sin(c[1]) * x), (0, x))[1]

    x, t = np.array([0.3, 0.4]), np.array([1.0, -2.0])
    _, back = ft.vjp(f, x)
    with ft.config.patch(verify=True):
        (out,) = ft.linear_transpose(back, t)((t,))
    step = 1e-6
    np.testing.assert_allclose(out, (f(x + step * t) - f(x - step * t)) / (2 * step), rtol=1e-8)
