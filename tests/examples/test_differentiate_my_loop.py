"""The level of the Nile: derivatives against finite differences, the fit against published figures."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import approx_fprime

import functrans as ft

EXAMPLE = Path(__file__).parents[2] / "examples" / "differentiate_my_loop.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("differentiate_my_loop", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_fit_has_the_published_figures(example, capsys):
    logs = np.array([9.0, 8.0])
    slope = ft.grad(example.negative_log_likelihood)(logs, example.FLOW)
    numeric = approx_fprime(logs, lambda x: example.negative_log_likelihood(x, example.FLOW), 1e-6)
    np.testing.assert_allclose(slope, numeric, rtol=1e-4)
    variances, errors, best = example.fit(example.FLOW)
    np.testing.assert_allclose(variances, example.PUBLISHED, rtol=2e-4)
    assert -best.fun == pytest.approx(example.PUBLISHED_LIKELIHOOD, abs=0.01)
    assert np.all((errors > 1000) & (errors < 4000))
    example.main()
    weights = np.array(capsys.readouterr().out.split("[")[1].rstrip("]\n").split(), float)
    # In a steady state the weights of earlier years fall off geometrically.
    np.testing.assert_allclose(weights[:-1] / weights[1:], 1 - weights[-1], atol=5e-3)
