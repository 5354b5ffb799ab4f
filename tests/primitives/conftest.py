"""`check`: one primitive at one point, all of its rules against NumPy, finite differences and loops."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from functrans.core.aval import Zero, aval_of
from functrans.core.ir import Eqn, Jaxpr, Var
from functrans.core.primitive import Linear
from functrans.lowering.run.executable import compile_jaxpr
from functrans.runtime.config import config
from functrans.testing.domain import _shapes
from functrans.testing.finite_difference import directional_derivative

SIZE = 3


def _draw(rng, aval):
    if aval.dtype.kind not in "fc":
        return None
    x = rng.standard_normal(aval.shape)
    if aval.dtype.kind == "c":
        x = x + 1j * rng.standard_normal(aval.shape)
    return np.asarray(x).astype(aval.dtype)


def _close(got, expected, message=""):
    expected = np.asarray(expected)
    got = np.asarray(got)
    assert got.shape == expected.shape, message
    assert got.dtype == expected.dtype, message
    tolerance = {"float16": 2e-3, "float32": 2e-4, "complex64": 2e-4}.get(expected.dtype.name, 1e-10)
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance, err_msg=message)


def _check_jvp(prim, args, params, rng):
    avals = [aval_of(a) for a in args]
    inexact = [i for i, a in enumerate(avals) if a.dtype.kind in "fc"]
    for chosen in {tuple(inexact), *[(i,) for i in inexact]}:
        tangents = [_draw(rng, a) if i in chosen else Zero(a) for i, a in enumerate(avals)]
        out, t = prim.jvp(tuple(args), tuple(tangents), **params)
        _close(out, prim.impl(*args, **params))
        if type(t) is Zero:
            t = np.zeros(t.aval.shape, t.aval.dtype)
        assert t.shape == np.shape(out)
        assert t.dtype == out.dtype
        directions = [None if type(d) is Zero else d for d in tangents]
        slope, error = directional_derivative(
            lambda xs: [prim.impl(*xs, **params)], [np.asarray(a) for a in args], directions
        )
        atol = 1e-7 + 10 * np.max(error[0], initial=0)
        np.testing.assert_allclose(t, slope[0], rtol=1e-6, atol=atol)


def _check_transpose(prim, args, params, linear, rng):
    """The dot-product law in the linear operands, the others fixed."""
    avals = [aval_of(a) for a in args]
    x = {i: _draw(rng, avals[i]) for i in linear}
    image = prim.impl(*[x.get(i, a) for i, a in enumerate(args)], **params)
    origin = prim.impl(*[a * 0 if i in linear else a for i, a in enumerate(args)], **params)
    ct = _draw(rng, aval_of(image))
    cts = prim.transpose(ct, *[Linear(avals[i]) if i in linear else a for i, a in enumerate(args)], **params)
    assert len(cts) == len(args)
    for i in linear:
        assert aval_of(cts[i]) == avals[i].strong()
    tolerance = {"float16": 1e-2, "float32": 1e-3, "complex64": 1e-3}.get(ct.dtype.name, 1e-9)
    forward, back = np.sum(ct * (image - origin)), sum(np.sum(cts[i] * x[i]) for i in linear)
    np.testing.assert_allclose(forward, back, rtol=tolerance, atol=tolerance)


def _check_batch(prim, args, params, lanes):
    avals = [aval_of(a) for a in args]
    for dims in itertools.product(*[[None, 0, a.ndim] for a in avals]):
        if all(d is None for d in dims):
            continue
        batched = [
            a if d is None else np.stack([lanes(i, np.asarray(a), n) for n in range(SIZE)], d)
            for i, (a, d) in enumerate(zip(args, dims))
        ]
        out, place = prim.batch(SIZE, tuple(batched), dims, **params)
        for n in range(SIZE):
            own = [b if d is None else np.take(b, n, d) for b, d in zip(batched, dims)]
            _close(np.take(out, n, place), prim.impl(*own, **params), f"lane {n} of {dims}")


def _check_kernel(prim, args, params, backends):
    avals = [aval_of(a).strong() for a in args]
    invars = [Var(a) for a in avals]
    outvar = Var(prim.abstract(*avals, **params))
    for backend in backends:
        with config.patch(backend=backend):
            jaxpr = Jaxpr(invars, [Eqn(prim, invars, [outvar], params)], [outvar])
            (out,) = compile_jaxpr(jaxpr)(*args)
        _close(out, prim.impl(*args, **params), f"kernel, {backend}")


@pytest.fixture
def check():
    """``check(prim, *args, linear=(), ...)``: see the module.

    `linear` lists tuples of operands in which the operation is linear. `lanes(operand, value, n)` gives the value of
    an operand in lane `n`; by default integers are rolled and other numbers scaled.
    """

    def run(
        prim,
        *args,
        linear=(),
        jvp=True,
        batch=True,
        backends=("llvm", "python"),
        lanes=_default_lane,
        **params,
    ):
        rng = np.random.default_rng(0)
        before = [np.array(a) for a in args]
        out = prim.bind(*args, **params)
        aval = prim.abstract(*[aval_of(a) for a in args], **params)
        assert (np.shape(out), np.asarray(out).dtype) == (aval.shape, aval.dtype)
        narrow = any(np.asarray(a).dtype in (np.float32, np.complex64) for a in args)
        if jvp and prim.jvp is not None and aval.dtype.kind in "fc" and not narrow:
            _check_jvp(prim, args, params, rng)
        for operands in linear:
            _check_transpose(prim, args, params, operands, rng)
        if batch:
            _check_batch(prim, args, params, lanes)
        _check_kernel(prim, args, params, backends)
        for a, b in zip(args, before):
            np.testing.assert_array_equal(a, b)
        return out

    return run


def _default_lane(operand, value, n):
    return np.roll(value, n) if value.dtype.kind in "iub" else value * (1 + n)


@pytest.fixture(params=["few", pytest.param("all", marks=pytest.mark.slow)])
def cases_of(request):
    """A domain with some of its cases, and in the slow run with all."""

    def few(domain):
        shapes = domain.shapes or _shapes(len(domain.intervals)) if domain.intervals else ()
        return replace(domain, cases=domain.cases[::3], params=domain.params[::3], shapes=tuple(shapes[::3]))

    return few if request.param == "few" else lambda domain: domain
