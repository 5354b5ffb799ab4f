"""Programs of the gallery print what is published, and their parts agree with SciPy or with plain enumeration."""

import importlib.util
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.transform import Rotation
from scipy.stats import multivariate_normal

import functrans as ft

EXAMPLES = Path(__file__).parents[2] / "examples"
NUMBER = r"(-?[\d.]+)"
#: What a program prints, a group for each number, with the numbers and how far these may be off.
PRINTED = {
    "kalman_smoother": [
        (rf"drift +{NUMBER}", [1469.1], 0.5),
        (rf"noise +{NUMBER}", [15099], 2),
        (rf"log likelihood {NUMBER}", [-632.55], 0.01),
    ],
    "hidden_markov": [
        (rf"2 states: -log L {NUMBER}, rates \[{NUMBER} {NUMBER}\]", [342.3183, 15.472, 26.125], 2e-3),
        (
            rf"3 states: -log L {NUMBER}, rates \[{NUMBER} {NUMBER} {NUMBER}\]",
            [329.4603, 13.146, 19.721, 29.714],
            2e-3,
        ),
    ],
    "option_calibration": [
        (rf"strike  80: {NUMBER}", [26.774758743998854], 1e-9),
        (rf"strike 120: {NUMBER}", [9.024913483457836], 1e-9),
        (rf"rho +{NUMBER}", [-0.65], 0.02),
    ],
    "cart_pole": [(rf"flown +{NUMBER} +{NUMBER} +{NUMBER} +{NUMBER}", [1.0, np.pi, 0.0, 0.0], 0.02)],
    "ising": [
        (rf"32 x 32 cross at {NUMBER}", [2.2692], 0.02),
        (rf"T = 2.2: {NUMBER}", [0.7848], 0.01),
    ],
    "lennard_jones": [
        (rf"energy an atom +{NUMBER}", [-5.7947], 0.015),
        (rf"pressure +{NUMBER}", [0.5536], 0.08),
    ],
    "bundle_adjustment": [(rf"{NUMBER} at the end;", [0.5], 0.015)],
    "adaptive_importance": [(rf"adapted +{NUMBER}%", [60], 25), (rf"integral +{NUMBER}", [1.0], 0.015)],
    "wave_inversion": [(rf"m/s -> {NUMBER} m/s", [100], 40)],
}
QUICK = ("hidden_markov",)


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in PRINTED]
)
def test_what_it_prints(name):
    # Tests run side by side: threads of BLAS would wait for each other.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "FUNCTRANS_CHECKED": "0"}
    command = [sys.executable, EXAMPLES / f"{name}.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    for pattern, known, apart in PRINTED[name]:
        found = re.search(pattern, done.stdout)
        assert found, f"{pattern} in {done.stdout}"
        assert [float(x) for x in found.groups()] == pytest.approx(known, abs=apart)


def test_kalman_likelihood_and_smoother_are_those_of_one_normal_distribution():
    example = load("kalman_smoother")
    seen = np.array([[1.0], [1.4], [0.9], [2.0]])
    drift, noise = np.array([[0.5]]), np.array([[0.3]])
    predicted, corrected, got = example.kalman_filter(drift, noise, seen)
    # The level after the first year is normal(seen[0], noise); each year adds drift.
    years = np.arange(1, 4)
    level = 0.3 + 0.5 * np.minimum(years[:, None], years)
    joint = multivariate_normal(np.full(3, 1.0), level + 0.3 * np.eye(3))
    assert got == pytest.approx(joint.logpdf(seen[1:, 0]), rel=1e-10)
    gain = level @ np.linalg.inv(level + 0.3 * np.eye(3))
    means, variances = example.smoother(predicted, corrected)
    np.testing.assert_allclose(means[:, 0], 1.0 + gain @ (seen[1:, 0] - 1.0), rtol=1e-10)
    np.testing.assert_allclose(variances[:, 0, 0], np.diag(level - gain @ level), rtol=1e-10)


def test_hidden_markov_recursions_are_sums_over_all_paths():
    example, rng = load("hidden_markov"), np.random.default_rng(0)
    start, move = np.log([0.2, 0.5, 0.3]), np.log(rng.dirichlet(np.ones(3), 3))
    density = rng.normal(size=(5, 3))
    paths = np.array([*itertools.product(range(3), repeat=5)])
    logs = (
        start[paths[:, 0]]
        + move[paths[:, :-1], paths[:, 1:]].sum(axis=1)
        + density[range(5), paths].sum(axis=1)
    )
    assert example.log_likelihood(start, move, density) == pytest.approx(np.logaddexp.reduce(logs), rel=1e-12)
    weights = np.exp(logs - np.logaddexp.reduce(logs))
    chances = [[weights[paths[:, t] == s].sum() for s in range(3)] for t in range(5)]
    np.testing.assert_allclose(example.posterior(start, move, density), chances, rtol=1e-10)
    np.testing.assert_array_equal(example.viterbi(start, move, density), paths[logs.argmax()])


def test_ising_clusters_are_connected_components():
    example, rng = load("ising"), np.random.default_rng(0)
    right, down = rng.random((2, 7, 7)) < 0.5
    labels = np.asarray(ft.jit(example.clusters)(right, down)).ravel()
    place = np.arange(49).reshape(7, 7)
    ends = [
        np.concatenate([p[right], q[down]])
        for p, q in ((place, place), (np.roll(place, -1, 1), np.roll(place, -1, 0)))
    ]
    count, known = connected_components(
        coo_array((np.ones(len(ends[0])), ends), shape=(49, 49)), directed=False
    )
    assert len(set(zip(labels, known))) == len(set(labels)) == count


@pytest.mark.slow
def test_ising_moments_are_those_of_all_states():
    example, temperatures = load("ising"), np.array([2.2, 2.4])
    spins = np.where(np.arange(65536)[:, None] >> np.arange(16) & 1, 1.0, -1.0).reshape(-1, 4, 4)
    energy = -(spins * np.roll(spins, 1, 1) + spins * np.roll(spins, 1, 2)).sum(axis=(1, 2))
    weights = np.exp(-(energy + 32) / temperatures[:, None])
    m = abs(spins.mean(axis=(1, 2)))
    known = (weights @ np.stack([m, m**2, m**4], axis=1)) / weights.sum(axis=1, keepdims=True)
    got, _ = example.sample(ft.random.split(ft.random.key(0), 2), temperatures, 4, 20_000)
    np.testing.assert_allclose(got, known, atol=0.012)


def test_rotations_are_scipys():
    example, rng = load("bundle_adjustment"), np.random.default_rng(0)
    points = rng.normal(size=(4, 3))
    for axis in (rng.normal(size=3), np.zeros(3), np.array([0.0, 3.0, 0.0])):
        known = Rotation.from_rotvec(axis).apply(points)
        np.testing.assert_allclose(ft.vmap(example.rotate, (None, 0))(axis, points), known, atol=1e-13)
    # At no turn at all, the derivative is the cross product.
    slope = ft.jacfwd(lambda axis: example.rotate(axis, points[0]))(np.zeros(3))
    np.testing.assert_allclose(slope, np.cross(np.eye(3), points[0]).T, atol=1e-13)


def test_importance_densities():
    example, rng = load("adaptive_importance"), np.random.default_rng(0)
    params = {
        "logit": rng.normal(size=8),
        "mean": rng.normal(size=(8, 2)),
        "log_diagonal": rng.normal(size=(8, 2)),
        "lower": rng.normal(size=8),
    }
    x, low = np.array([0.4, -1.1]), np.asarray(example.factors(params))
    parts = [multivariate_normal(m, c @ c.T).pdf(x) for m, c in zip(params["mean"], low)]
    weights = np.exp(params["logit"]) / np.exp(params["logit"]).sum()
    assert example.log_proposal(params, x) == pytest.approx(np.log(weights @ parts), rel=1e-10)
