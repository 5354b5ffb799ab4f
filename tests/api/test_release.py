"""How long `vjp` keeps what the derivative needs: until it is released, or until the first call. No collector runs."""

import gc
import weakref

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

WAYS = pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])


@pytest.fixture(autouse=True, scope="module")
def _no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def wave(x):
    return fnp.sum(fnp.sin(fnp.exp(x)) * x)


def slope(x):
    return np.sin(np.exp(x)) + x * np.cos(np.exp(x)) * np.exp(x)


X = np.linspace(-1.0, 1.0, 7)


def residuals(pull):
    """Weak references to the arrays on its tape."""
    arrays = [a for entry in pull._linear.tape for a in entry.args if isinstance(a, np.ndarray)]
    assert arrays
    return [weakref.ref(a) for a in arrays]


@WAYS
def test_by_default_it_is_called_many_times(wrap):
    _, pull = ft.vjp(wrap(wave), X)
    for _ in range(3):
        (ct,) = pull(1.0)
        np.testing.assert_allclose(ct, slope(X), rtol=1e-14)


@WAYS
def test_retain_false_frees_at_the_first_call(wrap):
    y, pull = ft.vjp(wrap(wave), X, retain=False)
    refs = residuals(pull)
    assert all(r() is not None for r in refs)
    np.testing.assert_allclose(pull(1.0)[0], slope(X), rtol=1e-14)
    assert [r() for r in refs] == [None] * len(refs)
    np.testing.assert_allclose(y, np.sum(np.sin(np.exp(X)) * X))
    with pytest.raises(
        ft.errors.SavedValuesFreedError, match=r"second time.*by the first call.*retain"
    ) as error:
        pull(1.0)
    assert "pull(1.0)" in str(error.value)
    assert isinstance(error.value, ft.FunctionError)
    assert isinstance(error.value, RuntimeError)


@WAYS
def test_release_frees_at_once(wrap):
    _, pull = ft.vjp(wrap(wave), X)
    pull(1.0)
    refs = residuals(pull)
    pull.release()
    assert [r() for r in refs] == [None] * len(refs)
    pull.release()
    assert "(freed)" in repr(pull)
    with pytest.raises(ft.errors.SavedValuesFreedError, match=r"second time.*by release\(\)"):
        pull(1.0)


def test_memory_of_loops_is_freed():
    def f(x):
        return fnp.sum(lax.scan(lambda c, _: (fnp.sin(c) * c, None), x, length=50)[0])

    for wrap in (lambda f: f, ft.jit):
        _, pull = ft.vjp(wrap(f), np.ones(1000), retain=False)
        refs = residuals(pull)
        pull(1.0)
        assert [r() for r in refs] == [None] * len(refs)


def test_a_cotangent_that_does_not_fit_frees_nothing():
    _, pull = ft.vjp(wave, X, retain=False)
    with pytest.raises(ft.errors.ShapeError):
        pull(np.ones(3))
    np.testing.assert_allclose(pull(1.0)[0], slope(X), rtol=1e-14)


def test_inside_other_transformations():
    def gradient(x):
        _, pull = ft.vjp(wave, x, retain=False)
        return pull(1.0)[0]

    np.testing.assert_allclose(ft.jit(gradient)(X), slope(X), rtol=1e-13)
    np.testing.assert_allclose(ft.vmap(gradient)(np.stack([X, -X]))[1], slope(-X), rtol=1e-13)
    hessian = ft.jacfwd(gradient)(X)
    np.testing.assert_allclose(hessian, ft.hessian(wave)(X), rtol=1e-12, atol=1e-12)

    def twice(x):
        _, pull = ft.vjp(wave, x, retain=False)
        return pull(1.0)[0] + pull(2.0)[0]

    with pytest.raises(ft.errors.SavedValuesFreedError, match="second time"):
        ft.jit(twice)(X)


def test_with_auxiliary_data():
    y, pull, aux = ft.vjp(lambda x: (wave(x), {"n": 3}), X, has_aux=True, retain=False)
    assert aux == {"n": 3}
    pull(1.0)
    with pytest.raises(ft.errors.SavedValuesFreedError):
        pull(1.0)
    assert np.isfinite(y)
