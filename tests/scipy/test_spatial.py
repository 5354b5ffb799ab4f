"""Rotations and Slerp against scipy.spatial.transform."""

import itertools
import warnings

import numpy as np
import pytest
import scipy.spatial.transform as reference
from versions import has

import functrans as ft
from functrans import random
from functrans.scipy.spatial.transform import Rotation, Slerp
from functrans.testing import check

RNG = np.random.default_rng(0)
SEQUENCES = ["".join(p) for p in itertools.product("xyz", repeat=3) if p[0] != p[1] != p[2]]


def same(got, expected, tolerance=1e-12):
    got = np.asarray(getattr(got, "quat", got))
    expected = np.asarray(expected.as_quat() if isinstance(expected, reference.Rotation) else expected)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def pair(shape):
    q = RNG.standard_normal((*shape, 4))
    return Rotation.from_quat(q), reference.Rotation.from_quat(q)


SEVERAL_AXES = pytest.param(
    (2, 3), marks=pytest.mark.needs("scipy>=1.17", reason="rotations of several axes")
)


@pytest.mark.parametrize("shape", [(), (1,), (7,), SEVERAL_AXES])
def test_representations(shape):
    r, expected = pair(shape)
    same(r, expected)
    for options in ({}, {"canonical": True}):
        same(r.as_quat(**options), expected.as_quat(**options))
    # The scalar comes first by an option of SciPy 1.14.
    same(r.as_quat(scalar_first=True), np.roll(expected.as_quat(), 1, -1))
    for name in ("as_matrix", "as_rotvec", "as_mrp", "magnitude", "inv"):
        same(getattr(r, name)(), getattr(expected, name)())
    same(r.as_rotvec(degrees=True), expected.as_rotvec(degrees=True))
    v = 2 * RNG.standard_normal((*shape, 3))
    for name in ("from_rotvec", "from_mrp"):
        same(getattr(Rotation, name)(v), getattr(reference.Rotation, name)(v))
    same(Rotation.from_matrix(expected.as_matrix()), reference.Rotation.from_matrix(expected.as_matrix()))
    same(Rotation(r.as_quat(scalar_first=True), scalar_first=True), expected)
    assert (r.shape, r.single) == (shape, shape == ())


@pytest.mark.parametrize("shape", [(), (7,), SEVERAL_AXES])
def test_operations(shape):
    (r, expected), (s, other) = pair(shape), pair(shape)
    v = RNG.standard_normal((*shape, 3))
    same(r * s, expected * other)
    same(r.apply(v), expected.apply(v))
    same(r.apply(np.ones(3), inverse=True), expected.apply(np.ones(3), inverse=True))
    same((r**0.3).as_matrix(), (expected**0.3).as_matrix(), 1e-12 if has("scipy>=1.17") else 1e-7)
    assert np.all(r.approx_equal(r * Rotation.from_rotvec([1e-9, 0, 0])))
    assert not np.any(r.approx_equal(r * Rotation.from_rotvec([1.0, 0, 0]), 50, degrees=True))


@pytest.mark.parametrize("seq", [*SEQUENCES, *map(str.upper, SEQUENCES)])
def test_euler_angles(seq):
    r, expected = pair((5,))
    same(r.as_euler(seq), expected.as_euler(seq), 1e-9)
    same(r.as_euler(seq, degrees=True), expected.as_euler(seq, degrees=True), 1e-7)
    angles = RNG.standard_normal((5, 3))
    same(Rotation.from_euler(seq, angles), reference.Rotation.from_euler(seq, angles))
    same(Rotation.from_euler(seq[:2], angles[:, :2]), reference.Rotation.from_euler(seq[:2], angles[:, :2]))
    same(Rotation.from_euler(seq[0], 30.0, True), reference.Rotation.from_euler(seq[0], 30.0, True))
    locked = [0.3, 0.0 if seq[0] == seq[2] else np.pi / 2, 0.5]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = reference.Rotation.from_euler(seq, locked)
        same(Rotation(expected.as_quat()).as_euler(seq), expected.as_euler(seq), 1e-7)


def test_arrays_of_rotations():
    r, expected = pair((7,))
    assert len(r) == len(list(r)) == 7
    for index in (slice(2, 5), 3, np.array([1, 2]), np.array([True] + 6 * [False])):
        same(r[index], expected[index])
    same(Rotation.concatenate([r, r[0]]), reference.Rotation.concatenate([expected, expected[0]]))
    weights = RNG.uniform(size=7)
    same(r.mean().as_matrix(), expected.mean().as_matrix())
    same(r.mean(weights).as_matrix(), expected.mean(weights).as_matrix())
    same(Rotation.identity(2), reference.Rotation.identity(2))


def test_random_rotations_are_uniform():
    r = Rotation.random(random.key(3), 4000)
    np.testing.assert_allclose(np.mean(r.as_matrix(), 0), 0.0, atol=0.05)
    # The angle has density (1 - cos) / pi.
    np.testing.assert_allclose(np.mean(r.magnitude()), np.pi / 2 + 2 / np.pi, atol=0.05)


def test_slerp():
    times = np.cumsum(RNG.uniform(0.1, 1, 7))
    r, expected = pair((7,))
    at = np.concatenate([times, np.linspace(times[0], times[-1], 20).clip(times[0], times[-1])])
    same(Slerp(times, r)(at).as_matrix(), reference.Slerp(times, expected)(at).as_matrix())
    same(Slerp.init(times, r)(at[3]), reference.Slerp(times, expected)(at[3]))


@pytest.mark.parametrize("length", [0.0, 1e-9, 1e-3, 0.0316, 0.0317, 1.0])
def test_derivatives_near_the_identity(length):
    v = length * np.array([0.48, 0.6, -0.64])
    laws = ["jvp_is_slope", "vjp_is_adjoint"]
    check(lambda v: Rotation.from_rotvec(v).as_quat(), v, order=2, laws=laws)
    back = ft.jacfwd(lambda v: Rotation.from_rotvec(v).as_rotvec())(v)
    np.testing.assert_allclose(back, np.eye(3), atol=1e-13)
    second = ft.jacfwd(ft.jacrev(lambda v: Rotation.from_rotvec(v).as_rotvec()))(v)
    np.testing.assert_allclose(second, 0.0, atol=1e-10)


def test_derivatives_elsewhere():
    q = RNG.standard_normal((3, 4))
    laws = ["jvp_is_slope", "vjp_is_adjoint"]
    check(lambda q: Rotation(q).as_euler("zyx"), q, order=1, laws=laws)
    check(lambda q: Rotation.from_matrix(Rotation(q).as_matrix()).as_mrp(), q, order=1, laws=laws)
    check(lambda q: Rotation(q).mean().as_matrix(), q, order=1, laws=laws)
    check(
        lambda q, t: Slerp([0.0, 1.0, 3.0], Rotation(q))(t).as_rotvec(),
        q,
        np.array([0.5, 2.0]),
        order=1,
        laws=laws,
    )


def test_rotations_are_arguments_and_results():
    r, expected = pair((4,))
    same(ft.jit(lambda r, v: (r * r.inv() * r).apply(v))(r, np.ones(3)), expected.apply(np.ones(3)))
    same(ft.vmap(lambda r: r.inv())(r), expected.inv())
    slerp = Slerp([0.0, 1.0, 2.0, 4.0], r)
    same(ft.jit(lambda s, t: s(t))(slerp, np.array([0.5, 3.0])), slerp([0.5, 3.0]).quat)
    assert Rotation.from_rotvec(np.ones(3, np.float32)).as_euler("xyz").dtype == np.float32


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Rotation([0, 0, 0, 0]), ft.errors.ArgumentValueError, "length 0"),
        (lambda: Rotation([1, 2, 3]), ft.errors.ShapeError, "quat must have shape"),
        (lambda: Rotation.from_euler("xx", [1, 2]), ft.errors.ArgumentValueError, "neighbours differ"),
        (lambda: Rotation.from_euler("xyz", [1, 2]), ft.errors.ShapeError, "angles"),
        (lambda: Rotation.identity().as_euler("xy"), ft.errors.ArgumentValueError, "seq must be 3"),
        (lambda: len(Rotation.identity()), TypeError, "single"),
        (lambda: Rotation.identity()[0], TypeError, "single"),
        (lambda: Rotation.identity(2).mean([1.0]), ft.errors.ShapeError, "weights"),
        (lambda: Rotation.identity() * 3, TypeError, "unsupported"),
        (lambda: Slerp([0.0, 0.0], Rotation.identity(2)), ft.errors.ArgumentValueError, "increasing"),
        (lambda: Slerp([0.0, 1.0], Rotation.identity()), ft.errors.ShapeError, "at least two"),
        (lambda: Slerp([0.0, 1.0], Rotation.identity(2))(3.0), ft.errors.ArgumentValueError, "within"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
