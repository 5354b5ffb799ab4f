"""`lax.custom_linear_solve`: solutions by solvers of all kinds, and derivatives that never look into them."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse.linalg
from numpy.testing import assert_allclose

import functrans as ft
import functrans.numpy as fnp
import functrans.scipy.linalg
from functrans import errors, lax
from functrans.testing import check
from functrans.testing.finite_difference import jacobian

RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 4)) + 4 * np.eye(4)
B = RNG.normal(size=4)
S = A @ A.T
Z = A + 1j * RNG.normal(size=(4, 4))


def dense(matvec, b):
    """The matrix column by column, and its LU factors."""
    return fnp.linalg.solve(ft.vmap(matvec, out_axes=1)(fnp.eye(b.size, dtype=b.dtype)), b)


def conjugate_gradients(matvec, b):
    def step(state):
        x, r, p, rr = state
        q = matvec(p)
        alpha = rr / fnp.dot(p, q)
        x, r = x + alpha * p, r - alpha * q
        new = fnp.dot(r, r)
        return x, r, r + new / rr * p, new

    start = fnp.zeros_like(b), b, b, fnp.dot(b, b)
    return lax.while_loop(lambda s: s[3] > 1e-28, step, start)[0]


def normal_equations(matvec, b):
    """Conjugate gradients for any matrix: ``A^T A x = A^T b``."""
    transposed = lambda y: ft.linear_transpose(matvec, b)(y)[0]
    return conjugate_gradients(lambda x: transposed(matvec(x)), transposed(b))


def python_cg(matvec, b):
    """With Python's ``while``: it sees numbers."""
    x, r, p = np.zeros_like(b), b, b
    while r @ r > 1e-28:
        q = matvec(p)
        alpha = (r @ r) / (p @ q)
        x, new = x + alpha * p, r - alpha * q
        r, p = new, new + (new @ new) / (r @ r) * p
    return x


def scipy_cg(matvec, b):
    operator = scipy.sparse.linalg.LinearOperator((b.size, b.size), matvec=matvec, dtype=b.dtype)
    return scipy.sparse.linalg.cg(operator, b, rtol=1e-14)[0]


def by(solver, symmetric=False):
    """``solve(a, b)`` by a solver; the matrix is made symmetric if need be, so that derivatives are in its range."""

    def solve(a, b):
        if symmetric:
            a = 0.5 * (a + a.T)
        transposed = None if symmetric else solver
        return lax.custom_linear_solve(lambda x: a @ x, b, solver, transposed, symmetric=symmetric)

    return solve


TRACEABLE = {
    "LU": (by(dense), A, False),
    "CG": (by(conjugate_gradients, symmetric=True), S, True),
    "CGNR": (by(normal_equations), A, False),
}
EAGER = {
    "Python": (by(python_cg, symmetric=True), S, True),
    "SciPy": (by(scipy_cg, symmetric=True), S, True),
}
EVERY = pytest.mark.parametrize("name", [*TRACEABLE, *EAGER])
ONLY_TRACEABLE = pytest.mark.parametrize("name", TRACEABLE)


def known(name):
    solve, a, symmetric = {**TRACEABLE, **EAGER}[name]
    return solve, a, lambda a, b: fnp.linalg.solve(0.5 * (a + a.T) if symmetric else a, b)


@EVERY
def test_values_and_first_derivatives(name):
    solve, a, reference = known(name)
    assert_allclose(solve(a, B), np.linalg.solve(a, B), rtol=1e-9)
    slopes, _ = jacobian(lambda x: [np.asarray(reference(*x))], [a, B])
    for jac in (ft.jacrev, ft.jacfwd) if name in TRACEABLE else ():
        for i in (0, 1):
            assert_allclose(jac(solve, argnums=i)(a, B), slopes[0][i], rtol=1e-6, atol=1e-9)
    w = RNG.normal(size=4)
    gradient = ft.grad(lambda a, b: fnp.dot(solve(a, b), w), argnums=(0, 1))(a, B)
    for i in (0, 1):
        assert_allclose(gradient[i], np.tensordot(w, slopes[0][i], 1), rtol=1e-6, atol=1e-9)
    tangent = ft.jvp(solve, (a, B), (S, w))[1]
    wanted = np.tensordot(slopes[0][0], S, 2) + slopes[0][1] @ w
    assert_allclose(tangent, wanted, rtol=1e-6, atol=1e-9)


WAYS = {
    "jit": lambda f: ft.jit(f),
    "grad": lambda f: ft.grad(lambda *x: fnp.sum(f(*x) ** 2), argnums=(0, 1)),
    "jit(grad)": lambda f: ft.jit(ft.grad(lambda *x: fnp.sum(f(*x) ** 2), argnums=(0, 1))),
    "grad(jit)": lambda f: ft.grad(ft.jit(lambda *x: fnp.sum(f(*x) ** 2)), argnums=(0, 1)),
    "linearize(jit)": lambda f: lambda a, b: ft.linearize(ft.jit(f), a, b)[1](b * a, b),
    "checkpoint": lambda f: ft.grad(ft.checkpoint(lambda *x: fnp.sum(f(*x) ** 2)), argnums=(0, 1)),
    "hessian in b": lambda f: ft.hessian(lambda a, b: fnp.sum(f(a, b) ** 3), argnums=1),
    "hessian": lambda f: lambda a, b: ft.hessian(lambda t: fnp.sum(f(t * a + t * t * S, b) ** 2))(1.0),
    "jit(hessian)": lambda f: lambda a, b: ft.jit(ft.hessian(lambda t: fnp.sum(f(t * a + t * t * S, b) ** 2)))(1.0),
    "reverse over reverse": lambda f: lambda a, b: ft.grad(ft.grad(lambda t: fnp.sum(f(t * a + t * t * S, b))))(1.0),
    "third": lambda f: lambda a, b: ft.grad(ft.grad(ft.grad(lambda t: fnp.sum(f(t * a + t * t * S, b)))))(1.0),
    "third forward": lambda f: lambda a, b: ft.jacfwd(ft.jacfwd(ft.jacfwd(lambda t: f(t * a + t * t * S, b))))(1.0),
}  # fmt: skip


@ONLY_TRACEABLE
@pytest.mark.parametrize("way", WAYS)
def test_all_transformations_agree_with_linalg_solve(name, way):
    solve, a, reference = known(name)
    found = WAYS[way](solve)(a, B)
    with ft.disable_jit():  # nothing to compile for what is only compared with
        wanted = WAYS[way](reference)(a, B)
    for x, y in zip(ft.tree.leaves(found), ft.tree.leaves(wanted), strict=True):
        assert_allclose(x, y, rtol=1e-7, atol=1e-9)


@ONLY_TRACEABLE
@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
def test_vmap_of_matrix_and_right_hand_side(name, axes):
    solve, a, reference = known(name)
    args = [x if d is None else np.stack([x, 2 * x, -3 * x]) for x, d in zip((a, B), axes)]
    cost = lambda f: lambda a, b: fnp.sum(f(a, b) ** 2)
    for way in (
        lambda f: ft.vmap(f, axes),
        lambda f: ft.jit(ft.vmap(f, axes)),
        lambda f: ft.vmap(ft.jit(f), axes),
        lambda f: ft.vmap(ft.grad(cost(f)), axes),
        lambda f: ft.vmap(ft.grad(cost(f), argnums=1), axes),
        lambda f: ft.grad(cost(ft.vmap(f, axes))),
        lambda f: ft.jit(ft.grad(cost(ft.vmap(f, axes)), argnums=1)),
    ):
        found = way(solve)(*args)
        with ft.disable_jit():
            assert_allclose(found, way(reference)(*args), rtol=1e-8, atol=1e-10)


@pytest.mark.slow
def test_laws():
    check(by(dense), A[:2, :2], B[:2])
    tridiagonal = lambda w, b: lax.custom_linear_solve(
        lambda x: x + w * (fnp.pad(fnp.diff(x), (1, 0)) - fnp.pad(fnp.diff(x), (0, 1))),
        b,
        conjugate_gradients,
        symmetric=True,
    )
    check(tridiagonal, np.float64(0.7), B)


def test_complex_systems():
    solve = by(dense)
    b = B + 1j * B[::-1]
    assert_allclose(solve(Z, b), np.linalg.solve(Z, b))
    cost = lambda f: lambda a, b: fnp.sum(fnp.abs(f(a, b)) ** 2)
    for way in (ft.grad(cost(solve), argnums=(0, 1)), ft.jit(ft.grad(cost(solve), argnums=(0, 1)))):
        for x, y in zip(way(Z, b), ft.grad(cost(fnp.linalg.solve), argnums=(0, 1))(Z, b)):
            assert_allclose(x, y)
    twice = Z + Z.T  # symmetric, not Hermitian
    symmetric = lambda b: lax.custom_linear_solve(lambda x: twice @ x, b, dense, symmetric=True)
    assert_allclose(ft.jacrev(symmetric, holomorphic=True)(b), np.linalg.inv(twice))


def test_trees():
    """Two unknowns in a dictionary: ``u + v = p``, ``u - k v = q``."""

    def matvec(k, x):
        return {"p": x["p"] + x["q"], "q": x["p"] - k * x["q"]}

    def solve(matvec, b):
        k = -matvec({"p": fnp.zeros(()), "q": fnp.ones(())})["q"]
        v = (b["p"] - b["q"]) / (1 + k)
        return {"p": b["p"] - v, "q": v}

    def transpose_solve(vecmat, b):
        k = -vecmat({"p": 0.0, "q": 1.0})["q"]
        v = (b["p"] - b["q"]) / (1 + k)
        return {"p": b["p"] - v, "q": v}

    f = lambda k, p, q: lax.custom_linear_solve(
        lambda x: matvec(k, x), {"p": p, "q": q}, solve, transpose_solve
    )
    found = f(2.0, 3.0, 1.5)
    assert_allclose([found["p"], found["q"]], [2.5, 0.5])
    gradient = ft.grad(lambda *x: f(*x)["p"], argnums=(0, 1, 2))
    for g in (gradient, ft.jit(gradient)):
        assert_allclose(g(2.0, 3.0, 1.5), [1.5 / 9, 2 / 3, 1 / 3])


def test_inside_loops_and_branches():
    solve = by(dense)

    def chain(f, a):
        return lax.scan(lambda x, w: (f(a + w * fnp.eye(4), x), x), B, np.array([0.0, 1.0, 2.0]))[0]

    cost = lambda f: lambda a: fnp.sum(chain(f, a))
    wanted = ft.grad(cost(fnp.linalg.solve))(A)
    for way in (ft.grad(cost(solve)), ft.jit(ft.grad(cost(solve))), ft.grad(ft.jit(cost(solve)))):
        assert_allclose(way(A), wanted)
    assert_allclose(ft.vmap(ft.grad(cost(solve)))(np.stack([A, A]))[1], wanted)
    branch = lambda f: lambda a: fnp.sum(lax.cond(a[0, 0] > 0, lambda a: f(a, B), lambda a: a[0], a))
    assert_allclose(ft.grad(branch(solve))(A), ft.grad(branch(fnp.linalg.solve))(A))


@pytest.mark.parametrize("way", [ft.grad, lambda f: ft.jit(ft.grad(f)), lambda f: ft.grad(ft.jit(f))])
def test_what_solvers_capture_has_no_say_in_derivatives(way):
    """The factors that the solver uses depend on `a`; that is not differentiated a second time."""

    def cost(a):
        factors = functrans.scipy.linalg.lu_factor(a)
        x = lax.custom_linear_solve(
            lambda x: a @ x,
            B,
            lambda _, b: functrans.scipy.linalg.lu_solve(factors, b),
            lambda _, b: functrans.scipy.linalg.lu_solve(factors, b, trans=1),
        )
        return fnp.sum(x**2)

    wanted = lambda a: fnp.sum(fnp.linalg.solve(a, B) ** 2)
    assert_allclose(way(cost)(A), ft.grad(wanted)(A))
    stacked = np.stack([A, 2 * A])
    assert_allclose(ft.vmap(way(cost))(stacked), ft.vmap(ft.grad(wanted))(stacked))
    direction = lambda f: lambda t: f(A + t * S)
    assert_allclose(ft.hessian(direction(cost))(0.5), ft.hessian(direction(wanted))(0.5))


def test_solvers_that_are_objects():
    class Factored:
        def __init__(self, a):
            self.inverse = fnp.linalg.inv(a)

        def solve(self, matvec, b):
            return self.inverse @ b

        def transposed(self, matvec, b):
            return self.inverse.T @ b

    def f(a):
        s = Factored(a)
        return lax.custom_linear_solve(lambda x: a @ x, B, s.solve, s.transposed)

    assert_allclose(ft.jacrev(f)(A), ft.jacrev(lambda a: fnp.linalg.solve(a, B))(A))
    assert_allclose(ft.jit(ft.jacrev(f))(A), ft.jacrev(lambda a: fnp.linalg.solve(a, B))(A))


def test_solvers_are_not_differentiated():
    ran = []

    def solve(matvec, b):
        ran.append(type(b).__name__)
        return np.linalg.solve(A, np.asarray(b))

    def transpose_solve(matvec, b):
        ran.append("transposed")
        return np.linalg.solve(A.T, np.asarray(b))

    f = lambda b: fnp.sum(lax.custom_linear_solve(lambda x: A @ x, b, solve, transpose_solve) ** 2)
    ft.grad(f)(B)
    assert ran == ["Array", "transposed"]  # arrays, also while being differentiated
    ran.clear()
    ft.jvp(f, (B,), (B,))
    assert ran == ["Array", "Array"]


def test_auxiliary_data():
    def solve(matvec, b):
        return dense(matvec, b), {"norm": fnp.sum(b * b), "n": 7, "name": "LU"}

    f = lambda b: lax.custom_linear_solve(lambda x: A @ x, b, solve, solve, has_aux=True)
    x, aux = f(B)
    assert_allclose(x, np.linalg.solve(A, B))
    assert_allclose(aux["norm"], B @ B)
    assert (aux["n"], aux["name"]) == (7, "LU")
    (_, aux), gradient = ft.value_and_grad(lambda b: (fnp.sum(f(b)[0]), f(b)[1]), has_aux=True)(B)
    assert_allclose(gradient, np.linalg.inv(A).sum(0))
    assert_allclose(aux["norm"], B @ B)
    assert_allclose(ft.grad(lambda b: f(b)[1]["norm"])(B), np.zeros(4))
    assert_allclose(ft.vmap(lambda b: f(b)[1]["norm"])(np.stack([B, 2 * B])), [B @ B, 4 * B @ B])
    assert_allclose(ft.jit(ft.grad(lambda b: fnp.sum(f(b)[0]) + f(b)[1]["norm"]))(B), np.linalg.inv(A).sum(0))


def test_dtypes():
    solve = by(dense)
    x = solve(A.astype("float32"), B.astype("float32"))
    assert x.dtype == np.float32
    gradient = ft.grad(lambda b: fnp.sum(solve(A.astype("float32"), b)))(B.astype("float32"))
    assert gradient.dtype == np.float32
    assert lax.custom_linear_solve(lambda x: 2 * x, 3, lambda mv, b: b / mv(1)) == 1.5
    assert_allclose(solve(A, np.array([1, 2, 3, 4])), np.linalg.solve(A, [1, 2, 3, 4]))
    assert ft.jit(lambda b: lax.custom_linear_solve(lambda x: 2 * x, b, lambda mv, b: 0))(3.0) == 0.0


def test_linear_in_the_right_hand_side():
    f = lambda b: lax.custom_linear_solve(lambda x: A @ x, b, dense, dense)
    assert_allclose(ft.linear_transpose(f, B)(B)[0], np.linalg.solve(A.T, B))
    twice = lambda y: ft.linear_transpose(lambda b: ft.linear_transpose(f, b)(b)[0], y)(y)[0]
    assert twice(B).shape == (4,)
    with pytest.raises(errors.GradientError, match="not in what matvec captured"):
        ft.linear_transpose(lambda a: by(dense)(a, B), A)(B)


EAGER_AND_TRACED = pytest.mark.parametrize(
    "way",
    [lambda f: f(B), lambda f: ft.jit(f)(B), lambda f: ft.grad(lambda b: fnp.sum(f(b)))(B)],
    ids=["eager", "jit", "grad"],
)
WRONG = {
    "matvec structure": (lambda x: (x,), dense, errors.ArgumentError, "structure of b"),
    "matvec shape": (lambda x: x[:1], dense, errors.ShapeError, r"matvec[\s\S]*\(1,\)[\s\S]*\(4,\)"),
    "matvec dtype": (lambda x: x.astype("float32"), dense, errors.DtypeError, "matvec[\\s\\S]*float32"),
    "complex matvec": (lambda x: 1j * x, dense, errors.DtypeError, r"\.astype\(complex\)"),
    "solve structure": (lambda x: x, lambda mv, b: {"x": mv(b)}, errors.ArgumentError, "solve"),
    "solve shape": (lambda x: x, lambda mv, b: mv(b)[:2], errors.ShapeError, r"solve[\s\S]*\(2,\)"),
    "solve dtype": (lambda x: x, lambda mv, b: mv(b).astype("float32"), errors.DtypeError, "float32"),
    "argument": (lambda x: x, lambda mv, b: mv(b[:2]), errors.ShapeError, r"\(2,\)"),
    "no array": (lambda x: x, lambda mv, b: "x", errors.ArgumentError, "solve"),
}


@EAGER_AND_TRACED
@pytest.mark.parametrize("case", WRONG)
def test_wrong_types(case, way):
    matvec, solve, error, message = WRONG[case]
    with pytest.raises(error, match=message):
        way(lambda b: lax.custom_linear_solve(matvec, b, solve, solve))


def test_wrong_arguments():
    with pytest.raises(errors.MissingRuleError, match="transpose_solve"):
        ft.grad(lambda b: fnp.sum(lax.custom_linear_solve(lambda x: A @ x, b, dense)))(B)
    assert ft.jvp(lambda b: lax.custom_linear_solve(lambda x: A @ x, b, dense), (B,), (B,))[1].shape == (4,)
    with pytest.raises(errors.GradientError, match="not linear"):
        ft.grad(
            lambda b: fnp.sum(lax.custom_linear_solve(lambda x: x**2, b, lambda mv, b: b, lambda mv, b: b))
        )(B)
    for args in ((3, B, dense), (dense, B, 3), (dense, B, dense, 3)):
        with pytest.raises(errors.ArgumentError, match="function"):
            lax.custom_linear_solve(*args)
    with pytest.raises(errors.ArgumentError, match="pair"):
        lax.custom_linear_solve(lambda x: x, B, lambda mv, b: b, has_aux=True)
    with pytest.raises(errors.ArgumentError, match="b"):
        lax.custom_linear_solve(lambda x: x, "b", dense)


def test_empty_and_scalar_systems():
    assert by(dense)(np.zeros((0, 0)), np.zeros(0)).shape == (0,)
    f = lambda a, b: lax.custom_linear_solve(lambda x: a * x, b, lambda mv, b: b / mv(1.0), symmetric=True)
    check(f, 2.0, 3.0)
    b = np.array([1.0, 2.0])
    x = lax.custom_linear_solve(lambda x: x, b, lambda mv, b: b)
    b[0] = 5.0
    assert x[0] == 1.0
