"""A window that covers most of an array is written with the rest around it: one pass, into other memory."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

rng = np.random.default_rng(0)


def heat(u, steps=5):
    def step(_, u):
        return u.at[1:-1, 1:-1].add(
            0.1 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])
        )

    return lax.fori_loop(0, steps, step, u)


def heat_in_numpy(u, steps=5):
    u = u.copy()
    for _ in range(steps):
        u[1:-1, 1:-1] += 0.1 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])
    return u


@pytest.mark.parametrize("checked", [False, True])
def test_a_stencil_in_time_stores_no_update(checked):
    u = rng.normal(size=(20, 30))
    with ft.config.patch(checked=checked):
        f = ft.jit(heat)
        np.testing.assert_allclose(f(u), heat_in_numpy(u), rtol=1e-13, atol=1e-13)
    text = f.lower(u).as_text("python")
    assert text.count("(scratch)") == 2  # two names of one pair of buffers
    weights = rng.normal(size=u.shape)
    gradient = ft.jit(ft.grad(lambda u: fnp.sum(heat(u) * weights)))(u)
    direction = rng.normal(size=u.shape)
    # The steps are linear.
    np.testing.assert_allclose(
        np.sum(gradient * direction), np.sum(weights * heat_in_numpy(direction)), rtol=1e-12
    )


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("shape", "window"),
    [
        ((9,), (7,)),
        ((9,), (9,)),
        ((6, 5), (6, 3)),
        ((6, 5), (4, 5)),
        ((3, 4, 5), (2, 4, 4)),
        ((4, 1), (3, 1)),
    ],
)
def test_every_start(shape, window, strict):
    x, update = rng.normal(size=shape), rng.normal(size=window)

    def f(x, update, *starts):
        return lax.dynamic_update_slice(x, 2.0 * update, starts), fnp.sum(x)

    with ft.config.patch(strict=strict):
        compiled = ft.jit(f)
        for start in [(0,) * len(shape), (1,) * len(shape), (-9,) * len(shape), (9,) * len(shape)]:
            expected = x.copy()
            # Starts are clamped, so that the window fits.
            place = [min(max(s, 0), n - m) for s, n, m in zip(start, shape, window)]
            expected[tuple(slice(i, i + m) for i, m in zip(place, window))] = 2 * update
            np.testing.assert_array_equal(compiled(x, update, *start)[0], expected)


def test_empty_windows_and_arrays():
    f = ft.jit(lambda x, u: lax.dynamic_update_slice(x, u, (0,)))
    np.testing.assert_array_equal(f(np.ones(3), np.zeros(0)), np.ones(3))
    assert f(np.zeros(0), np.zeros(0)).shape == (0,)


def test_a_small_window_is_written_in_place():
    def step(_, u):
        return u.at[3:9].set(2.0 * u[3:9][::-1])

    f = ft.jit(lambda u: lax.fori_loop(0, 3, step, u))
    text = f.lower(np.ones(50)).as_text("python")
    assert "work" not in text
    expected = np.arange(50.0)
    expected[3:9] = 8 * expected[3:9][::-1]
    np.testing.assert_array_equal(f(np.arange(50.0)), expected)
