"""The numbers are JAX's."""

import sys
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
from functrans import random

sys.path.insert(0, str(Path(__file__).parent))

from jax_calls import CALLS, SEED, distance

RECORDED = np.load(Path(__file__).with_name("jax_vectors.npz"))
PLACES = {str(call): str(i) for i, call in enumerate(RECORDED["calls"])}


def test_the_vectors_are_those_of_the_calls():
    assert list(PLACES) == list(CALLS)


def _draw(call):
    with ft.config.patch(without=()):  # LLVM's passes join products and sums, as JAX's do
        return eval(call, {"random": random, "key": random.key(SEED), "np": np})


FUNCTIONS = sorted({call.partition("(")[0] for call in CALLS})


def _compare(function, most):
    calls = [call for call in CALLS if call.partition("(")[0] == function]
    for call in calls[:: -(-len(calls) // most)]:
        assert distance(_draw(call), RECORDED[PLACES[call]]) <= CALLS[call], call


@pytest.mark.wide(3)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_numbers_are_those_of_jax(function):
    _compare(function, 2)


@pytest.mark.slow
@pytest.mark.parametrize("function", FUNCTIONS)
def test_all_numbers_are_those_of_jax(function):
    _compare(function, len(CALLS))


@pytest.mark.parametrize(
    "call", ["random.normal(key, (40,), 'float64')", "random.randint(key, (12,), -5, 5, 'int8')"]
)
def test_numbers_are_the_same_without_jit(call):
    with ft.disable_jit():
        assert distance(_draw(call), RECORDED[PLACES[call]]) <= CALLS[call]
