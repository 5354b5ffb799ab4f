"""What is made of a thousand random programs is what it was: their jaxprs, as transformed, and their loops.

`tests/properties` compares the values of such programs with those of NumPy. Here a change of the compiler, wanted or
not, shows in which programs it concerns. ``python -m tests.golden.test_drawn_programs 117`` prints the texts of one, to
compare them with those of another version. After a change that is meant to alter them::

    FUNCTRANS_REGENERATE=1 python -m pytest tests/golden/test_drawn_programs.py
"""

import itertools
import json
import os
import re
import sys
import warnings
import zlib
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

import functrans as ft
from functrans.errors import FunctransError
from functrans.experimental.jet import jet
from functrans.lowering.backend import Options
from functrans.lowering.host import host_calls
from functrans.lowering.jaxpr.partition import HostStep, ViewStep
from functrans.lowering.loops.passes import parallel
from functrans.lowering.lower import lower
from functrans.lowering.python.emit import emit_python
from functrans.runtime.config import config

sys.path.append(str(Path(__file__).parents[1] / "properties"))

from generator.checks import Case
from generator.choices import Seeded
from generator.drawing import EVERYTHING
from generator.settings import under
from generator.stacks import applied, direction, of_floats, weighed

FILE = Path(__file__).with_name("drawn_programs.json")
COUNT = 1000
#: The number of the first call of Python in a program; such as no kernel has that runs in this process.
FIRST = 1_000_000
ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def series(f):
    """The coefficients of the outputs along a curve."""

    def g(*xs):
        h, floats = of_floats(f, xs)
        return jet(h, floats, [[direction(x, n) for n in range(3)] for x in floats])

    return g


def gradient(f):
    def g(*xs):
        h, floats = of_floats(f, xs)
        return ft.value_and_grad(lambda ys: weighed(h(*ys)))(floats)

    return g


def curvature(f):
    return gradient(lambda *xs: ft.tree_util.tree_leaves(gradient(f)(*xs)))


def lanes(f):
    return lambda *xs: ft.vmap(gradient(f), in_axes=-1)(*[np.stack([x, x], -1) for x in xs])


def texts(seed):
    """The jaxprs and the loops of a program under its stack, and under a transformation that goes by the number."""
    choose = Seeded(seed)
    case = Case(choose, weights=EVERYTHING, most=choose.integer(2, 9))
    every_machine = {"has_own_products": lambda letter: True, "can_set_threads": lambda: True}
    threads = 1 + seed // 2 % 2
    with (
        warnings.catch_warnings(),
        under(case.setting),
        patch.multiple(parallel, **every_machine),
        patch.object(host_calls, "_numbers", itertools.count(FIRST)),
        config.patch(num_threads=threads, checked=False),
    ):
        warnings.simplefilter("ignore")
        yield from _texts(applied(case.program, case.stack), case.program.inputs, seed)
        yield from _texts(
            (series, gradient, lanes, curvature)[seed % 4](case.program), case.program.inputs, seed
        )


def _texts(f, inputs, seed):
    """Of a refused program, such as one with branches of other types, the kind of error."""
    try:
        jaxpr = ft.jit(lambda *xs: f(*xs)).lower(*inputs).jaxpr
    except FunctransError as error:
        yield type(error).__name__
        return
    yield ADDRESS.sub("", str(jaxpr))
    donated = () if seed % 3 else range(len(jaxpr.invars))
    for step in lower(jaxpr, Options(), donated).steps:
        if not isinstance(step, HostStep | ViewStep):
            yield emit_python(step.kernel, explicit=False)


def checksum(seed):
    return f"{zlib.crc32(chr(10).join(texts(seed)).encode()):08x}"


@pytest.mark.skipif(tuple.__basicsize__ != 24, reason="texts contain where tuples have their items")
@pytest.mark.wide(1)
@pytest.mark.parametrize("part", range(4))
def test_is_what_it_was(part):
    known = json.loads(FILE.read_text()) if FILE.exists() else [""] * COUNT
    seeds = range(part, COUNT, 4)
    found = {seed: checksum(seed) for seed in seeds}
    if os.environ.get("FUNCTRANS_REGENERATE"):
        known = [found.get(seed, old) for seed, old in enumerate(known)]
        rows = [", ".join(map(json.dumps, known[i : i + 10])) for i in range(0, COUNT, 10)]
        FILE.write_text("[\n" + ",\n".join(rows) + "\n]\n")
    assert [seed for seed in seeds if found[seed] != known[seed]] == []


if __name__ == "__main__":
    print(*[text for seed in sys.argv[1:] for text in texts(int(seed))], sep="\n")
