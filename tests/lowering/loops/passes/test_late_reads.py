"""What a loop overwrites and reads a little later waits in variables: steps of stencils need no second array."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.lowering import lower

RNG = np.random.default_rng(8)
#: What an element takes from which neighbours, the furthest four away.
WEIGHTS = st.dictionaries(st.integers(-5, 5), st.sampled_from([-0.4, 0.25, 0.5]), min_size=1, max_size=4)


def text_of(f, *args):
    with ft.config.patch(num_threads=1):
        return re.sub("(?m)^#.*$", "", ft.jit(f).lower(*args).as_text("python"))


def smooth(u, steps=3):
    def step(t, u):
        return u.at[1:-1].add(0.2 * (u[2:] - 2.0 * u[1:-1] + u[:-2]))

    return lax.fori_loop(0, steps, step, u)


def arrays_in(text):
    """The arrays of a kernel, except its inputs."""
    return set(re.findall(r"(\w+): float64\[\w[^]]*\](?! \(in)", text.split("status")[0].split(";", 1)[1]))


def test_a_step_overwrites_its_array():
    u = RNG.normal(size=100)
    text = text_of(smooth, u)
    assert "scratch" not in re.sub(r"\w+: float64\[\w+\] \(scratch\)", "", text)
    assert re.search(r"s = \w+\n", text)
    expected = u.copy()
    for _ in range(3):
        expected[1:-1] += 0.2 * (expected[2:] - 2.0 * expected[1:-1] + expected[:-2])
    np.testing.assert_allclose(ft.jit(smooth)(u), expected, rtol=1e-14)


def test_so_does_the_step_of_its_derivative():
    u = RNG.normal(size=100)
    gradient = ft.jit(ft.grad(lambda u: fnp.sum(smooth(u) ** 2)))
    assert "[2,n" not in text_of(ft.grad(lambda u: fnp.sum(smooth(u) ** 2)), u)
    step = np.eye(100) + 0.2 * (np.eye(100, k=1) - 2.0 * np.eye(100) + np.eye(100, k=-1))
    step[[0, -1]] = np.eye(100)[[0, -1]]
    whole = np.linalg.matrix_power(step, 3)
    np.testing.assert_allclose(gradient(u), 2.0 * whole.T @ whole @ u, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128", "int32", "int64"])
def test_elements_of_any_dtype_wait(dtype):
    u = (5 * RNG.normal(size=400)).astype(dtype)

    def f(u):
        return lax.fori_loop(0, 3, lambda t, u: u.at[2:].set(u[2:] + u[:-2] - u[1:-1]), u)

    assert "[2,n" not in text_of(f, u)
    expected = u.copy()
    for _ in range(3):
        expected[2:] = expected[2:] + expected[:-2] - expected[1:-1]
    np.testing.assert_allclose(ft.jit(f)(u), expected, rtol=1e-5)


@pytest.mark.parametrize("shape", [(40, 1), (1, 40, 1), (3, 40, 1)])
def test_axes_of_extent_1_hide_no_loop(shape):
    u = RNG.normal(size=shape)

    def f(u):
        return lax.fori_loop(0, 3, lambda t, u: u.at[..., 1:-1, :].set(u[..., 2:, :] - u[..., :-2, :]), u)

    expected = u.copy()
    for _ in range(3):
        expected[..., 1:-1, :] = expected[..., 2:, :] - expected[..., :-2, :]
    np.testing.assert_allclose(ft.jit(f)(u), expected, rtol=1e-13)


def test_so_do_the_steps_of_two_arrays():
    """Each step reads the old elements of both, and LLVM knows that it does before it overwrites them."""

    def wave(u, v):
        def step(t, state):
            u, v = state
            p = fnp.pad(u, 1)
            return u + 0.1 * v, v + 0.1 * (p[2:] - 2.0 * u + p[:-2])

        return lax.fori_loop(0, 3, step, (u, v))

    def slope(u, v):
        return ft.grad(lambda u, v: fnp.sum(wave(u, v)[0] ** 2), (0, 1))(u, v)

    u, v = RNG.normal(size=(2, 300))
    assert "[2,n" not in text_of(wave, u, v) + text_of(slope, u, v)
    laplacian = np.eye(300, k=1) - 2.0 * np.eye(300) + np.eye(300, k=-1)
    step = np.block([[np.eye(300), 0.1 * np.eye(300)], [0.1 * laplacian, np.eye(300)]])
    whole = np.linalg.matrix_power(step, 3)
    both = np.concatenate([u, v])
    np.testing.assert_allclose(np.concatenate(ft.jit(wave)(u, v)), whole @ both, rtol=1e-12, atol=1e-12)
    expected = 2.0 * whole[:300].T @ whole[:300] @ both
    np.testing.assert_allclose(np.concatenate(ft.jit(slope)(u, v)), expected, rtol=1e-12, atol=1e-12)


def test_rows_are_overwritten_one_after_the_other():
    u = RNG.normal(size=(3, 50))
    assert "[2,n" not in text_of(ft.vmap(smooth), u)
    expected = [ft.jit(smooth)(row) for row in u]
    np.testing.assert_array_equal(ft.jit(ft.vmap(smooth))(u), expected)


@pytest.mark.parametrize("why", ["far", "several threads", "rows above", "float16", "both ways"])
def test_other_steps_have_a_second_array(why):
    u = RNG.normal(size=(40, 3) if why == "rows above" else 1 << 16 if why == "several threads" else 2000)
    u = u.astype("float16") if why == "float16" else u

    def step(t, u):
        if why == "rows above":
            return u.at[1:].add(u[:-1])
        if why == "both ways":
            return u - 0.5 * u[::-1]
        return u.at[6:].add(u[:-6]) if why == "far" else u.at[2:].add(u[:-2])

    def f(u):
        return lax.fori_loop(0, 3, step, u)

    with ft.config.patch(num_threads=2):
        assert "[2,n" in ft.jit(f).lower(u).as_text("python")
        compiled = ft.jit(f)(u)
    with ft.disable_jit():
        np.testing.assert_allclose(compiled, f(fnp.asarray(u)), rtol=1e-2 if why == "float16" else 1e-13)


def neighbours(np, u, weights):
    """The sum of an array's elements, each with its neighbours; beyond the ends they are zero."""
    whole = np.pad(u, [(0, 0)] * (u.ndim - 1) + [(5, 5)])
    return sum(w * whole[..., 5 + n : 5 + n + u.shape[-1]] for n, w in weights.items())


@st.composite
def programs(draw):
    """A step of one or two arrays, its first arguments, and the number of steps."""
    parts = draw(st.integers(1, 2))
    shape = draw(st.sampled_from([(1,), (2,), (7,), (40,), (3, 11), (2, 36)]))
    terms = [
        (
            draw(st.sampled_from(["add", "set", "whole", "rows", "together"])),
            draw(st.integers(0, parts - 1)),
            draw(WEIGHTS),
        )
        for _ in range(draw(st.integers(1, 3)))
    ]
    window = [(draw(st.integers(0, 3)), draw(st.integers(0, 3))) for _ in terms]
    ends = draw(st.lists(st.sampled_from([0, -1]), max_size=2))

    def step(t, arrays):
        arrays = list(arrays)
        for (kind, other, weights), (low, high) in zip(terms, window):
            j = len(weights) % parts
            u, n = arrays[j], shape[-1]
            new = neighbours(fnp, arrays[other], weights)
            part = (..., slice(min(low, n), max(n - high, min(low, n))))
            if kind == "add":
                arrays[j] = u.at[part].add(new[part])
            elif kind == "set":
                arrays[j] = u.at[part].set(fnp.tanh(u[part] + new[part]))
            elif kind == "together":
                others = arrays[1:] + arrays[:1]
                arrays = [0.9 * u + neighbours(fnp, v, weights) for u, v in zip(arrays, others)]
            elif kind == "rows":
                shifted = [arrays[other][..., k : n - 4 + k] for k in (0, 2, 4)] if n > 4 else [0.0]
                arrays[j] = u.at[..., 2:-2].set(sum(shifted)) if n > 4 else u
            else:
                arrays[j] = u + 0.5 * new
        for end in ends:
            arrays[0] = arrays[0].at[..., end].set(0.1 * t)
        return tuple(arrays)

    start = np.random.default_rng(draw(st.integers(0, 99))).normal(size=(parts, *shape))
    return step, tuple(start), draw(st.integers(1, 4))


def by_hand(step, arrays, steps):
    with ft.disable_jit():
        arrays = tuple(fnp.asarray(u) for u in arrays)
        for t in range(steps):
            arrays = step(t, arrays)
    return arrays


@pytest.mark.slow
@settings(max_examples=100)
@given(programs())
def test_random_steps_in_python(program):
    step, arrays, steps = program
    expected = by_hand(*program)
    with ft.config.patch(backend="python"):
        found = ft.jit(lambda *u: lax.fori_loop(0, steps, step, u))(*arrays)
    for x, y in zip(found, expected):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-10)


@settings(max_examples=12)
@given(programs())
def test_random_steps_and_their_derivatives(program):
    step, arrays, steps = program

    def f(*u):
        return sum(fnp.sum(fnp.sin(v)) for v in lax.fori_loop(0, steps, step, u))

    def g(*u):
        for t in range(steps):
            u = step(t, u)
        return sum(fnp.sum(fnp.sin(v)) for v in u)

    numbers = tuple(range(len(arrays)))
    value, found = ft.jit(ft.value_and_grad(f, numbers))(*arrays)
    expected_value, expected = ft.value_and_grad(g, numbers)(*arrays)
    np.testing.assert_allclose(value, expected_value, rtol=1e-10, atol=1e-10)
    for x, y in zip(found, expected):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", [3, 4, 17, 100])
@pytest.mark.parametrize("form", ["add", "set", "rows"])
def test_kernels_are_right_before(form, n, monkeypatch):
    """Each working copy is copied back: what `late_reads` leaves out saves time alone."""

    def step(t, u):
        new = 0.2 * (u[..., 2:] - 2.0 * u[..., 1:-1] + u[..., :-2])
        return u.at[..., 1:-1].add(new) if form == "add" else u.at[..., 1:-1].set(new)

    def f(u):
        return lax.fori_loop(0, 3, step, u)

    u = RNG.normal(size=(2, n) if form == "rows" else n)
    seen = []
    monkeypatch.setattr(lower, "overwrite", lambda kernel: seen.append(kernel) or kernel)
    with ft.config.patch(num_threads=1, cache=False):
        found = ft.jit(lambda u: f(u))(u)
        gradient = ft.jit(ft.grad(lambda u: fnp.sum(fnp.sin(f(u)))))(u)
    monkeypatch.undo()
    assert bool(seen) == (n > 3)
    with ft.config.patch(disable_jit=True):
        np.testing.assert_allclose(found, f(u), rtol=1e-14, atol=1e-14)
        np.testing.assert_allclose(
            gradient, ft.grad(lambda u: fnp.sum(fnp.sin(f(u))))(u), rtol=1e-13, atol=1e-14
        )


def test_a_reshape_of_what_is_overwritten():
    """The derivatives of 2x2 determinants in lanes read the new elements in another shape, in the same loop."""

    def det(x):
        s = fnp.sin(x)
        rows = fnp.stack([2.0 + s, 0.3 * s, 0.3 * s, 1.5 + 0.0 * s])
        return fnp.sin(fnp.linalg.det(fnp.reshape(rows, (2, 2))))

    def of_numbers(x):  # the determinant is 3 + 1.5 s - 0.09 s^2
        s, c = np.sin(x), np.cos(x)
        d, slope = 3.0 + 1.5 * s - 0.09 * s * s, (1.5 - 0.18 * s) * c
        curvature = -(1.5 - 0.18 * s) * s - 0.18 * c * c
        return -np.sin(d) * slope**2 + np.cos(d) * curvature

    x = np.linspace(-1.0, 1.0, 3)
    second = ft.jit(ft.vmap(lambda x: ft.jvp(ft.grad(det), (x,), (1.0,))[1]))
    np.testing.assert_allclose(second(x), of_numbers(x), rtol=1e-13)
