"""Gradients over processes, beside those of one: eager, compiled, from inside and outside, in loops."""

import numpy as np
from mpi4py import MPI

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.distributed import P, make_mesh, shard_map

ALL, OWN = P(), P("dp")
rng = np.random.default_rng(0)
W, X, Y = rng.normal(size=(3, 5)), rng.normal(size=(8, 3)), rng.normal(size=(8, 5))


def alone(w, x, y):
    return ((fnp.tanh(x @ w) - y) ** 2).sum()


def loss(w, x, y):
    return lax.psum(alone(w, x, y), "dp")


def train(loss):
    def run(w, x, y):
        return lax.fori_loop(0, 5, lambda _, w: w - 0.01 * ft.grad(loss)(w, x, y), w)

    return run


def equal(got, expected):
    for a, b in zip(ft.tree.leaves(got), ft.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def gradients(mesh):
    def mapped(f, out=ALL):
        return shard_map(f, mesh=mesh, in_specs=(ALL, OWN, OWN), out_specs=out)

    both = (0, 1)
    expected = ft.grad(alone, both)(W, X, Y)
    whole, outs = mapped(loss), (ALL, OWN)
    for f in (
        ft.grad(whole, both),
        ft.jit(ft.grad(whole, both)),
        ft.grad(ft.jit(whole), both),
        mapped(ft.grad(loss, both), outs),
        ft.jit(mapped(ft.grad(loss, both), outs)),
        mapped(ft.jit(ft.grad(ft.jit(loss), both)), outs),
    ):
        equal(f(W, X, Y), expected)
        equal(f(W, X, Y), expected)

    last, slope = train(alone)(W, X, Y), ft.grad(lambda w: (train(alone)(w, X, Y) ** 2).sum())(W)
    for transform in (lambda f: f, ft.jit):
        trained = transform(mapped(train(loss)))
        equal(trained(W, X, Y), last)
        equal(transform(ft.grad(lambda w, f=trained: (f(w, X, Y) ** 2).sum()))(W), slope)


def blocks(mesh):
    """Each process has its part of the data alone."""
    n = len(X) // mesh.size
    own = slice(n * mesh.rank, n * (mesh.rank + 1))
    f = shard_map(
        ft.grad(loss, (0, 1)),
        mesh=mesh,
        in_specs=(P(), P("dp"), P("dp")),
        out_specs=(P(), P("dp")),
        local=True,
    )
    expected = ft.grad(alone, (0, 1))(W, X, Y)
    for g in (f, ft.jit(f)):
        equal(g(W, X[own], Y[own]), (expected[0], expected[1][own]))


def exchanges(mesh):
    n = mesh.size
    x = np.arange(float(n * n * 2)).reshape(n * n, 2)

    def f(x):
        return (
            lax.all_gather(x, "dp", tiled=True, to="invariant"),
            lax.psum_scatter(x, "dp", tiled=True),
            lax.all_to_all(x, "dp", 0, 0, tiled=True),
            lax.ppermute(x, "dp", [(k, (k + 1) % n) for k in range(n)]),
            lax.pmax(x, "dp"),
        )

    own = P("dp")
    parts = x.reshape(n, n, 2)
    expected = (x, parts.sum(0), parts.swapaxes(0, 1).reshape(x.shape), np.roll(x, n, 0), parts.max(0))
    for transform in (lambda f: f, ft.jit):
        mapped = shard_map(f, mesh=mesh, in_specs=own, out_specs=(P(), own, own, own, P()))
        equal(transform(mapped)(x), expected)


with make_mesh(MPI.COMM_WORLD.size, "dp") as mesh:
    gradients(mesh)
    blocks(mesh)
    exchanges(mesh)
    with ft.config.patch(check_collectives=True):
        gradients(mesh)
    if not mesh.rank:
        print("all equal")
