"""Elements moved or repeated: NumPy's functions, compared with NumPy."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp

RNG = np.random.default_rng(0)
CUBE = RNG.standard_normal((2, 3, 4))
ARRAYS = [
    RNG.standard_normal(4),
    RNG.standard_normal((3, 4)),
    CUBE,
    RNG.integers(-5, 5, (3, 4)).astype(np.int32),
    RNG.standard_normal((3, 4)).astype(np.float32)[::-1, ::2],
    RNG.standard_normal((3, 4)) + 1j,
    np.zeros((0, 3)),
    np.float64(2.5),
    2.5,
    True,
    [[1, 2.5], [3, 4]],
]
CALLS = [
    ("flip",),
    ("fliplr",),
    ("flipud",),
    ("rot90",),
    ("roll", 1),
    ("roll", -2, 0),
    ("roll", (1, 2), (0, 1)),
    ("tile", 2),
    ("tile", (2, 1, 3)),
    ("repeat", 2),
    ("repeat", 2, 0),
    ("repeat", 0),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_on_arrays_of_many_kinds(same, call):
    name, *args = call
    for x in ARRAYS:
        same(name, x, *args)


@pytest.mark.parametrize("axis", range(-4, 4))
def test_every_axis(same, axis):
    for name, *args in (("flip",), ("roll", 2), ("repeat", 2)):
        same(name, CUBE, *args, axis)


def test_roll_along_no_axes(same):
    for shift, axis in (((), ()), (1, ()), ((), 1)):
        same("roll", CUBE, shift, axis)


@pytest.mark.parametrize("k", range(-4, 5))
def test_rot90(same, k):
    same("rot90", CUBE, k)
    same("rot90", CUBE, k, (2, 1))


def test_repeat(same):
    same("repeat", CUBE[0], [1, 2, 0], axis=0)
    same("repeat", CUBE[0], [1, 2], axis=0)
    same("repeat", CUBE, -1)


def test_repeats_that_are_traced():
    x, n = np.arange(4.0), np.array([2, 0, 1, 3])
    jitted = ft.jit(lambda x, n, size: fnp.repeat(x, n, total_repeat_length=size), static_argnums=2)
    for size in (0, 3, 6, 8):
        want = np.append(np.repeat(x, n), [3.0, 3.0])[:size]
        for got in (jitted(x, n, size), fnp.repeat(x, n, total_repeat_length=size)):
            np.testing.assert_array_equal(got, want)
    rows = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(
        ft.jit(lambda x, n: fnp.repeat(x, n, 1, total_repeat_length=4))(rows, np.array([1, 0, 3])),
        rows[:, [0, 2, 2, 2]],
    )
    np.testing.assert_array_equal(
        ft.vmap(lambda x, n: fnp.repeat(x, n, total_repeat_length=6))(
            np.stack([x, x]), np.stack([n, n[::-1]])
        ),
        np.stack([np.repeat(x, n), np.repeat(x, n[::-1])]),
    )
    with pytest.raises(TypeError, match=r"repeat.*total_repeat_length="):
        ft.jit(np.repeat)(x, n)
    with pytest.raises(ValueError, match="no elements"):
        fnp.repeat(x[:0], n[:0], total_repeat_length=2)


def test_repeats_known_in_an_eager_gradient(same):
    weights = np.arange(6.0)
    for compiled, size in ((lambda f: f, None), (ft.jit, 6)):
        grad = compiled(
            ft.grad(
                lambda x: fnp.sum(fnp.repeat(x, (x > 0) * 2, total_repeat_length=size) * weights)  # noqa: B023
            )
        )
        np.testing.assert_array_equal(grad(np.arange(4.0)), [0.0, 1.0, 5.0, 9.0])
    same("repeat", np.arange(3.0), [True, False, True])
