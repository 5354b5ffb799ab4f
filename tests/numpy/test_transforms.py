"""Functions of shapes, indices, products and linear algebra under every transformation and pairs of them."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
import functrans.scipy.linalg as fsl
from functrans import lax
from functrans.testing.finite_difference import directional_derivative

RNG = np.random.default_rng(0)
A, B, V, S = (RNG.standard_normal(s) for s in ((3, 4), (4, 3), (4,), (3, 3)))
C = RNG.standard_normal((2, 3, 4))
I4 = np.array([0, 2, -1, 2])
I3 = np.eye(3)

PROGRAMS = {
    # index expressions
    "slice": (lambda x: x[1:, ::2], A),
    "negative steps": (lambda x: x[::-1, 1:3], A),
    "integers": (lambda x: x[1] + x[-1, 2], A),
    "new axes": (lambda x: x[None, :, None, ..., 0], A),
    "index array": (lambda x: x[I4], A),
    "two index arrays": (lambda x: x[I4 % 3, I4], A),
    "separated index arrays": (lambda x: x[:, :, I4][[0, 1, 1, 0], :, I4], C),
    "mixed": (lambda x: x[1, :, I4], C),
    "constant mask": (lambda x: x[A > 0], A),
    "ellipsis": (lambda x: x[..., I4[:2]], C),
    "iteration": (lambda x: sum(row * k for k, row in enumerate(x)), A),
    # .at
    "set": (lambda x, v: x.at[1].set(v), A, V),
    "set repeatedly": (lambda x, v: x.at[np.array([1, 1, 0])].set(v), A, A + 1),
    "set with steps": (lambda x, v: x.at[::-2].set(v), A, V),
    "add": (lambda x, v: x.at[:, I4].add(v), A, V),
    "multiply": (lambda x, v: x.at[I4[:3], 1:].multiply(v), A, S),
    "minimum": (lambda x, v: x.at[I4, :].min(v), A, RNG.standard_normal((4, 4))),
    "maximum": (lambda x, v: x.at[::2, ::-1].max(v), A, V),
    "divide": (lambda x, v: x.at[I4].divide(v), A, RNG.uniform(1, 2, (4, 1))),
    "power": (lambda x, v: x.at[0, I4].power(v), abs(A), V),
    "subtract": (lambda x, v: x.at[1:3, I4].subtract(v), A, V),
    "get with fill": (lambda x: x.at[np.array([0, 7])].get(mode="fill", fill_value=0), A),
    "apply": (lambda x: x.at[0].apply(fnp.exp), A),
    # shapes
    "reshape": (lambda x: x.reshape(-1, 2).transpose() + fnp.reshape(x, (2, 6), order="F"), A),
    "ravel": (lambda x: x.ravel(order="F"), A),
    "T": (lambda x: x.T @ x, A),
    "mT": (lambda x: x.mT.swapaxes(0, 1), C),
    "moveaxis": (lambda x: np.moveaxis(x, 0, -1), C),
    "squeeze": (lambda x: fnp.expand_dims(np.squeeze(x[:1]), (0, 2)), A),
    "broadcast": (lambda x, y: np.broadcast_to(x, (2, 3, 4)) * np.broadcast_arrays(x, y)[1], A, V),
    "flip": (lambda x: np.rot90(np.flip(x, 1)), A),
    "roll": (lambda x: np.roll(x, (1, -1), (0, 1)), A),
    "tile": (lambda x: np.tile(x, (2, 1, 2)), A),
    "repeat": (lambda x: np.repeat(x, 3, 1).sum() * np.repeat(x, [1, 0, 2], axis=0), A),
    "concatenate": (lambda x, y: np.concatenate([x, y, x], 0), A, A + 1),
    "stack": (lambda x, y: np.stack([x, y * 2], -1), A, A + 1),
    "vstack": (lambda x, y: np.hstack([np.vstack([x, y]), np.ones((4, 1))]), A, V),
    "split": (lambda x: np.split(x, 2, 1)[1], A),
    "list": (lambda x: fnp.array([x[0, 0], [1.0, x[1, 1]][1], 2.0]), A),
    "pad": (lambda x: np.pad(x, ((1, 2), (0, 1))), A),
    "pad by reflection": (lambda x: np.pad(x, 2, mode="reflect"), A),
    "pad with a value": (lambda x: fnp.pad(x, 1, constant_values=x[0, 0]), A),
    "take": (lambda x: np.take(x, I4, 1), A),
    "take_along_axis": (lambda x: np.take_along_axis(x, np.argsort(A, 1), 1), A),
    "diag": (lambda x: np.diag(x) + np.trace(x), A),
    "diag of a vector": (lambda x: np.diag(x, 1), V),
    "diagonal": (lambda x: x.diagonal(1, 1, 2), C),
    "triangles": (lambda x: np.tril(x, -1) + 2 * np.triu(x, 1), C),
    "astype": (lambda x: x.astype(complex).real * x, A),
    # products
    "dot": (np.dot, A, B),
    "matmul": (lambda x, y: x @ y, C, B),
    "matmul of a matrix and a batch": (lambda x, y: x @ y, A, C.swapaxes(1, 2)),
    "matrix times vector": (lambda x, y: x @ y, A, V),
    "inner": (np.inner, C, A),
    "outer": (np.outer, A, V),
    "vdot": (np.vdot, A, A + 1),
    "tensordot": (lambda x, y: np.tensordot(x, y, ([1, 2], [0, 1])), C, RNG.standard_normal((3, 4, 2))),
    "einsum": (lambda x, y: np.einsum("bij,kj,k->bi", x, y, y[:, 0]), C, A),
    "einsum of a diagonal": (lambda x: np.einsum("iij->j", x), RNG.standard_normal((3, 3, 2))),
    "einsum with an ellipsis": (lambda x, y: np.einsum("...i,...i", x, y), C, A),
    "kron": (np.kron, S, A),
    "cross": (np.cross, S, S[0]),
    "vecdot": (np.vecdot, C, A),
    "dot_general": (lambda x, y: lax.dot_general(x, y, (([2], [1]), ([1], [0]))), C, A),
    # linear algebra
    "norm": (lambda x: np.linalg.norm(x) + np.linalg.norm(x, 3, axis=0), A),
    "norm of rows": (lambda x: np.linalg.norm(x, np.inf), A),
    "cholesky": (lambda x: np.linalg.cholesky(x @ x.T + 3 * I3), S),
    "upper cholesky": (lambda x: fsl.cholesky(x @ x.T + 3 * I3), S),
    "solve_triangular": (lambda a, b: fsl.solve_triangular(a + 4 * I3, b, lower=True), S, A),
    "transposed solve": (lambda a, b: fsl.solve_triangular(a + 4 * I3, b[:, 0], trans="T"), S, A),
    "cho_solve": (lambda a, b: fsl.cho_solve(fsl.cho_factor(a @ a.T + 3 * I3), b), S, A),
    "multi_dot": (lambda x, y: np.linalg.multi_dot([x, y, x]), A, B),
    "matrix_power": (lambda x: np.linalg.matrix_power(x, 3), S),
    # new arrays
    "linspace": (lambda x, y: fnp.linspace(x, y, 5), V, V + 1),
    "full": (
        lambda x: fnp.full((2, 4), x[0]) * fnp.full_like(x, 2.0) + np.zeros_like(x) + np.ones_like(x),
        V,
    ),
    "meshgrid": (lambda x: np.meshgrid(x, x[:2])[0], V),
    "constants": (lambda x: x * fnp.arange(4) + fnp.eye(4)[1] + fnp.tri(4)[2] + fnp.indices((4,))[0], V),
    # lax
    "dynamic_slice": (lambda x: lax.dynamic_slice(x, (1, 1), (2, 2)), A),
    "dynamic_update_slice": (lambda x, y: lax.dynamic_update_slice(x, y, (1, 2)), A, S[:2, :2]),
    "interior padding": (lambda x: lax.pad(x, 0.0, ((1, -1, 2), (0, 0, 0))), A),
}


class Program:
    """A function, its arguments, directions and a cotangent."""

    def __init__(self, f, *args):
        rng = np.random.default_rng(1)
        self.f, self.args = f, args
        self.value = np.asarray(f(*[fnp.asarray(a) for a in args]))
        self.tangents = [rng.standard_normal(a.shape) for a in args]
        self.ct = rng.standard_normal(self.value.shape)

    def scalar(self, *args):
        return fnp.sum(self.f(*args) * self.ct)

    def curved(self, *args):
        return fnp.sum(self.f(*args) ** 2 * self.ct)

    @property
    def gradient(self):
        return ft.grad(self.scalar, tuple(range(len(self.args))))

    def batched(self, axis=0):
        return [np.stack([a, a * 1.1, a * 0.9], axis) for a in self.args]


@pytest.fixture(params=list(PROGRAMS))
def program(request):
    return Program(*PROGRAMS[request.param])


def close(got, expected):
    for g, e in zip(got, expected, strict=True):
        np.testing.assert_allclose(g, e, rtol=1e-8, atol=1e-10)


def slope(f, args, tangents):
    value, _ = directional_derivative(lambda xs: [f(*[fnp.asarray(x) for x in xs])], args, tangents)
    return value[0]


def test_jvp(program):
    value, tangent = ft.jvp(program.f, program.args, program.tangents)
    close([value], [program.value])
    np.testing.assert_allclose(
        tangent, slope(program.f, program.args, program.tangents), rtol=1e-6, atol=1e-6
    )


def test_vjp_is_the_transpose_of_jvp(program):
    _, tangent = ft.jvp(program.f, program.args, program.tangents)
    _, back = ft.vjp(program.f, *program.args)
    cts = back(program.ct)
    pairings = sum(np.sum(c * t) for c, t in zip(cts, program.tangents))
    np.testing.assert_allclose(np.sum(program.ct * tangent), pairings, rtol=1e-9)
    close(program.gradient(*program.args), cts)


@pytest.mark.parametrize("axis", [0, -1])
def test_vmap(program, axis):
    batched = program.batched(axis)
    out = ft.vmap(program.f, in_axes=axis)(*batched)
    expected = [program.f(*[fnp.asarray(np.take(b, i, axis)) for b in batched]) for i in range(3)]
    close(out, expected)


def test_vmap_of_one_argument(program):
    for position, a in enumerate(program.args):
        axes = tuple(0 if i == position else None for i in range(len(program.args)))
        args = [np.stack([a, a]) if i == position else b for i, b in enumerate(program.args)]
        close(ft.vmap(program.f, in_axes=axes)(*args), [program.value] * 2)


def test_jit(program):
    out = ft.jit(program.f)(*program.args)
    assert out.dtype == program.value.dtype
    close([out], [program.value])


@pytest.mark.wide(2)
def test_jit_of_grad_and_grad_of_jit(program):
    expected = program.gradient(*program.args)
    close(ft.jit(program.gradient)(*program.args), expected)
    count = tuple(range(len(program.args)))
    close(ft.grad(ft.jit(program.scalar), count)(*program.args), expected)


@pytest.mark.wide(3)
def test_jit_of_vmap_of_grad(program):
    batched = program.batched()
    out = ft.jit(ft.vmap(program.gradient))(*batched)
    for i in range(3):
        close([g[i] for g in out], program.gradient(*[b[i] for b in batched]))


def test_forward_over_reverse(program):
    gradient = ft.grad(program.curved)
    _, tangent = ft.jvp(gradient, program.args, program.tangents)
    np.testing.assert_allclose(tangent, slope(gradient, program.args, program.tangents), rtol=1e-5, atol=1e-5)
