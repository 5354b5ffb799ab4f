"""A neural ODE: its solution against SciPy's, both gradients against differences, the fit against published figures."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import functrans as ft

EXAMPLE = Path(__file__).parents[2] / "examples" / "neural_ode.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("neural_ode", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def params(example):
    return {"net": example.init(ft.random.key(3), (2,))[1], "start": example.Z[0]}


def test_the_solution_is_scipys(example, params):
    (w1, b1), _, (w2, b2), _, (w3, b3) = [[np.asarray(x) for x in layer] for layer in params["net"]]
    slope = lambda t, z: np.tanh(np.tanh(z @ w1 + b1) @ w2 + b2) @ w3 + b3
    expected = solve_ivp(slope, (0, 20), params["start"], t_eval=example.YEARS, rtol=1e-10, atol=1e-10).y.T
    np.testing.assert_allclose(example.solution(params, example.YEARS), expected, atol=1e-4)


@pytest.mark.parametrize("gradient", ["adjoint", pytest.param("direct", marks=pytest.mark.slow)])
def test_gradients(example, params, gradient):
    found = ft.jit(ft.grad(lambda p: example.loss(p, gradient)))(params)
    flat, unravel = ft.flatten_util.ravel_pytree(params)
    direction = np.cos(np.arange(flat.size))
    value = ft.jit(lambda v: example.loss(unravel(v)))
    slope = (value(flat + 1e-3 * direction) - value(flat - 1e-3 * direction)) / 2e-3
    assert ft.flatten_util.ravel_pytree(found)[0] @ direction == pytest.approx(slope, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("gradient", ["direct", "adjoint"])
def test_the_fit_agrees_with_published_figures(gradient):
    done = subprocess.run(
        [sys.executable, EXAMPLE, "--gradient", gradient],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    error, published = re.search(
        r"logarithms: ([\d.]+); of the published model: ([\d.]+)", done.stdout
    ).groups()
    assert float(error) < float(published)
    period, known = re.search(r"period: ([\d.]+) years; published: ([\d.]+)", done.stdout).groups()
    assert float(period) == pytest.approx(float(known), rel=0.1)
