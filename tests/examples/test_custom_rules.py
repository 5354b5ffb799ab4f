"""Rules in the example: what it prints, and each rule against NumPy, SciPy and finite differences."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.special
from scipy.optimize import approx_fprime

import functrans as ft
import functrans.numpy as fnp

EXAMPLE = Path(__file__).parents[2] / "examples" / "custom_rules.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("custom_rules", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_what_it_prints():
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = re.findall(r"weights (.+): (\d+) values, ([\d.]+) of held-out digits right", done.stdout)
    assert [(name, int(values) if int(values) < 10 else "many") for name, values, _ in found] == [
        ("exact", "many"),
        ("rounded at the end", 3),
        ("trained as rounded", 3),
    ]
    exact, at_the_end, trained = (float(share) for *_, share in found)
    assert exact > 0.88
    assert exact - 0.03 < trained
    assert at_the_end < trained - 0.04
    assert "by the formula [0.  0.5 nan], by rules [0.  0.5 1. ] [0.  0.5 1. ]" in done.stdout
    for words in (r"its gradient is ([\d.e-]+) from", r"equation holds to ([\d.e-]+)"):
        assert float(re.search(words, done.stdout)[1]) < 1e-11


def test_straight_through(example):
    w = np.array([-2.0, -0.7, -0.2, 0.3, 0.8, 1.4, 1.6])
    np.testing.assert_array_equal(example.Ternary.apply(w, 1.0), [-1.0, -1.0, 0.0, 0.0, 1.0, 1.0, 1.0])
    slopes = ft.grad(lambda w: fnp.sum(example.Ternary.apply(w, 1.0) * np.arange(1.0, 8.0)))(w)
    np.testing.assert_array_equal(slopes, [0.0, 2.0, 3.0, 4.0, 5.0, 6.0, 0.0])


def test_log1pexp(example):
    x = np.array([-800.0, -1.0, 0.0, 2.0, 800.0])
    np.testing.assert_allclose(example.log1pexp(x), np.logaddexp(0.0, x), rtol=1e-15)
    sigmoid = scipy.special.expit(x)
    np.testing.assert_allclose(ft.vmap(ft.grad(example.log1pexp))(x), sigmoid, rtol=1e-15)
    np.testing.assert_allclose(ft.jvp(example.log1pexp, (x,), (np.ones(5),))[1], sigmoid, rtol=1e-15)
    second = ft.vmap(ft.grad(ft.grad(example.log1pexp)))(x)
    np.testing.assert_allclose(second, sigmoid * scipy.special.expit(-x), rtol=1e-12)


def test_fixed_point(example):
    w, x = np.random.default_rng(1).normal(0.0, 0.3, (4, 4)), np.array([0.5, -1.0, 0.2, 2.0])
    z = example.fixed_point(w, x)
    np.testing.assert_allclose(z, np.tanh(w @ z + x), atol=1e-12)
    slopes = ft.jit(ft.grad(lambda w: fnp.sum(example.fixed_point(w, x) ** 2)))(w)
    near = approx_fprime(w.ravel(), lambda v: np.sum(example.fixed_point(v.reshape(4, 4), x) ** 2), 1e-7)
    np.testing.assert_allclose(slopes.ravel(), near, atol=1e-5)


def test_bessel(example):
    x = np.linspace(0.5, 20.0, 7)
    j = lambda x: example.Bessel.apply(3, x)
    for order in (0, 1, 2, 3):
        np.testing.assert_allclose(ft.jit(ft.vmap(j))(x), scipy.special.jvp(3, x, order), atol=1e-14)
        j = ft.grad(j)
