"""resize and scale_and_translate against what JAX computed (record_jax.py), and their derivatives."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
from functrans import image
from functrans.testing import check

HERE = Path(__file__).parent


def _calls():
    spec = importlib.util.spec_from_file_location("image_calls", HERE / "jax_calls.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CALLS = _calls()
LAWS = ["jvp_is_slope", "vjp_is_adjoint"]


def test_values_of_jax():
    recorded = np.load(HERE / "jax_vectors.npz")
    assert list(recorded["calls"]) == CALLS.CALLS, "run record_jax.py"
    names = {"image": image, **CALLS.arrays()}
    for i, call in enumerate(CALLS.CALLS):
        got, expected = eval(call, names), recorded[str(i)]
        assert (got.shape, got.dtype) == (expected.shape, expected.dtype), call
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12, err_msg=call)


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", list(image.ResizeMethod)[1:])
def test_traced_scales_do_the_same(method, antialias):
    y = CALLS.arrays()["y"]

    def f(x, scale, translation):
        return image.scale_and_translate(x, (8, 2, 5), (0, 2), scale, translation, method, antialias)

    scale, translation = np.array([1.7, 0.3]), np.array([-2.2, 4.0])
    out, _ = ft.linearize(lambda s: f(y, s, translation), scale)
    np.testing.assert_allclose(out, f(y, scale, translation), atol=1e-12)
    if method is image.ResizeMethod.AREA:  # has kinks wherever two edges meet
        check(lambda y: f(y, scale, translation), y, order=1, laws=LAWS)
    else:
        check(f, y, np.array([1.31, 0.47]), np.array([-2.13, 0.71]), order=1, laws=LAWS)


def test_dtypes():
    for dtype, to in ((np.float32, np.float32), (np.uint8, np.float32), (int, float), (complex, complex)):
        assert image.resize(np.ones((2, 3), dtype), (4, 3), "linear").dtype == to
        assert image.resize(np.ones((2, 3), dtype), (4, 3), "nearest").dtype == dtype


def test_a_mean_is_kept():
    x = np.random.default_rng(0).uniform(size=(2, 8, 8, 3))
    small = ft.jit(lambda x: image.resize(x, (2, 2, 2, 3), "area"))(x)
    np.testing.assert_allclose(small, x.reshape(2, 2, 4, 2, 4, 3).mean((2, 4)), atol=1e-14)
    np.testing.assert_allclose(image.resize(np.ones((5, 7)), (3, 20), "lanczos3"), 1.0, atol=1e-14)
    assert image.resize(np.ones((0, 3)), (0, 5), "linear").shape == (0, 5)
    assert x.sum() == np.random.default_rng(0).uniform(size=(2, 8, 8, 3)).sum()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: image.resize(np.ones(3), (2, 2), "linear"), ft.errors.ShapeError, "the 1 axes of image"),
        (lambda: image.resize(np.ones(3), (2,), "sharp"), ft.errors.ArgumentValueError, "method must be"),
        (lambda: image.resize(np.ones((0, 3)), (2, 3), "linear"), ft.errors.ShapeError, "no elements"),
        (
            lambda: image.scale_and_translate(np.ones(3), (2,), (0,), [1.0], [0.0], "nearest"),
            ft.errors.ArgumentValueError,
            "nearest",
        ),
        (
            lambda: image.scale_and_translate(np.ones(3), (2,), (0,), [1.0, 2.0], [0.0], "linear"),
            ft.errors.ShapeError,
            "scale must be one number",
        ),
        (
            lambda: image.scale_and_translate(np.ones((3, 3)), (2, 2), (1,), [1.0], [0.0], "linear"),
            ft.errors.ShapeError,
            "must stay 3",
        ),
        (
            lambda: image.scale_and_translate(np.ones(3), (2,), (0,), [0.0], [0.0], "linear"),
            ft.errors.ArgumentValueError,
            "positive and finite",
        ),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
