"""The membrane: against the exact solution of its scheme, and what donation saves."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

import functrans as ft
import functrans.numpy as fnp

EXAMPLE = Path(__file__).parents[2] / "examples" / "inplace.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("inplace", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.POINTS = 200
    return module


@pytest.mark.parametrize(("k", "m"), [(1, 1), (2, 3)])
def test_standing_waves(example, k, m):
    shape, phase = example.mode(40, k, m)
    step = ft.jit(example.wave, donate_argnums=(0, 1))
    now, before = example.simulate(step, (fnp.asarray(shape), fnp.asarray(shape * np.cos(phase))), 50)
    np.testing.assert_allclose(now, shape * np.cos(50 * phase), atol=1e-12)
    np.testing.assert_allclose(before, shape * np.cos(49 * phase), atol=1e-12)


def test_smoothing(example):
    x = np.random.default_rng(0).normal(size=(20, 30))
    expected = gaussian_filter(x, 2.0, mode="wrap")
    for apply in (example.Smooth.apply, ft.jit(example.Smooth.apply, static_argnums=1)):
        np.testing.assert_allclose(apply(x, 2.0), expected)
    weights = np.random.default_rng(1).normal(size=x.shape)
    gradient = ft.grad(lambda x: fnp.sum(weights * example.Smooth.apply(x, 2.0)))(x)
    np.testing.assert_allclose(np.sum(gradient * x), np.sum(weights * expected))


def test_what_it_prints(example, capsys):
    with ft.config.patch(checked=False):
        example.main()
    new, donated, numpy, filtered, stale = capsys.readouterr().out.splitlines()
    assert float(new.partition(":")[2].split()[0]) > 2.0
    assert " 0.0 arrays more" in donated
    assert numpy.endswith("True")
    assert filtered.startswith("filtered: 0.0")
    assert stale.startswith("StaleValueError: Array float64[200,200] was donated to Smooth.apply")
