"""The kink test on every differentiable public function: none is found where there is none, none is missed.

This tests a tool of the tests, so quick runs take a tenth of the functions.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from functrans.testing.finite_difference import is_kink

sys.path.insert(0, str(Path(__file__).parent))

import coverage_table as table
from coverage_table import arrays

#: Steps everywhere: no derivative, and yet in the table, since its derivative is meant to be the identity's.
STEPS = {"lax.reduce_precision"}
ENTRIES = [e for e in table.load().values() if e.differentiable is True and e.id not in STEPS]
#: Points for each function, 7,000 in all; quick runs try one.
POINTS = 9


def examples(entry, numbers):
    """The function, points and directions in all floating arguments."""
    call = entry.calls[0]
    for n in numbers:
        values = call.values(entry.seed() + 7919 * n)
        random = np.random.default_rng(n)
        directions = [_direction(random, x) if x.dtype.kind in "fc" else None for x in values]
        if any(d is not None for d in directions):
            yield lambda x: [np.asarray(y) for y in arrays(call(entry.subject, x))], values, directions


def _direction(random, x):
    v = random.normal(size=x.shape)
    return v + 1j * random.normal(size=x.shape) if x.dtype.kind == "c" else v


def distances(outs, base):
    """Of numbers; of booleans, whether they differ."""
    return [np.abs(np.subtract(y, a, dtype=np.result_type(a, np.int8))) for y, a in zip(outs, base)]


def look(entry, numbers):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for f, values, directions in examples(entry, numbers):
            assert not is_kink(f, values, directions)


@pytest.mark.wide(10)
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.id)
def test_no_false_alarm(entry):
    look(entry, [0])


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.id)
def test_no_false_alarm_at_many_points(entry):
    look(entry, range(1, POINTS))


@pytest.mark.wide(10)
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.id)
def test_no_kink_is_missed(entry):
    """The distance of the outputs from those at a point has a kink there, wherever they have a slope."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for f, values, directions in examples(entry, [0]):
            base = f(values)
            moved = f([x if d is None else x + 1e-5 * d for x, d in zip(values, directions)])
            slopes = [np.abs(b - a).max(initial=0) for a, b in zip(base, moved) if a.dtype.kind in "fc"]
            if max(slopes, default=0) > 1e-8:
                assert is_kink(lambda x, f=f, base=base: distances(f(x), base), values, directions)
