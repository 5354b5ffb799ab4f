"""The recurrent network: cotangents grow on their way back, and clipping them makes it learn."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import functrans as ft

EXAMPLE = Path(__file__).parents[2] / "examples" / "gradient_hooks.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("gradient_hooks", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_norms_are_those_of_the_states(example):
    """Against finite differences in the state of one step: a number added to it there."""
    rng = np.random.default_rng(0)
    params, images, labels = example.start(rng), rng.random((3, 64)), np.arange(3)
    norms = example.norms_on_the_way_back(params, images, labels)
    assert len(norms) == 64

    def run(shift):
        state = np.zeros((3, example.HIDDEN))
        for k in range(64):
            state = np.tanh(
                state @ params["recurrent"] + images[:, k, None] * params["input"] + params["bias"]
            )
            if k == 61:
                state = state + shift
        scores = state @ params["output"]
        scores = scores - np.log(np.sum(np.exp(scores), axis=1, keepdims=True))
        return -np.mean(scores[np.arange(3), labels])

    slopes = np.zeros((3, example.HIDDEN))
    for place in np.ndindex(slopes.shape):
        shift = np.zeros(slopes.shape)
        shift[place] = 1e-6
        slopes[place] = (run(shift) - run(-shift)) / 2e-6
    assert norms[2] == pytest.approx(np.linalg.norm(slopes), rel=1e-5)


def test_clip(example):
    rows = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    np.testing.assert_allclose(
        example.clip(1.0)(ft.numpy.asarray(rows)), [[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]]
    )


@pytest.mark.slow
def test_what_the_program_prints():
    done = subprocess.run(
        [sys.executable, EXAMPLE, "--epochs", "8"],
        capture_output=True,
        text=True,
        check=False,
        # Tests run side by side: threads of BLAS would wait for each other.
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "FUNCTRANS_CHECKED": "0"},
    )
    assert done.returncode == 0, done.stderr
    found = re.findall(
        r"(cotangents \w+[\w ]*): loss ([\d.]+), held-out accuracy ([\d.]+), (\d) new", done.stdout
    )
    (_, _, unclipped, traces), (_, loss, clipped, again) = found
    assert float(unclipped) < 0.3
    assert float(clipped) > 0.4
    assert float(loss) < 2.0
    assert int(traces) > 0
    assert int(again) == 0
