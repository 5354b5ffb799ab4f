"""What is made of a thousand random programs is what it was: their jaxprs, as transformed, and their loops.

`tests/properties` compares the values of such programs with those of NumPy. Here a change of the compiler, wanted or
not, shows in which programs it concerns. ``python -m tests.golden.test_drawn_programs 117`` prints the texts of one, to
compare them with those of another version. After a change that is meant to alter them::

    FUNCTRANS_REGENERATE=1 python -m pytest tests/golden/test_drawn_programs.py
"""

import json
import os
import sys
import warnings
import zlib
from pathlib import Path

import pytest

import functrans as ft
from functrans.errors import FunctransError
from functrans.experimental.jet import jet
from functrans.lowering.backend import Options
from functrans.lowering.jaxpr.partition import HostStep, ViewStep
from functrans.lowering.lower import lower
from functrans.lowering.python.emit import emit_python

sys.path += [str(Path(__file__).parents[1] / name) for name in ("properties", "support")]

from any_machine import as_on_any_machine, without_addresses
from generator.checks import Case
from generator.choices import Seeded
from generator.drawing import EVERYTHING
from generator.settings import under
from generator.stacks import applied, direction, of_floats

FILE = Path(__file__).with_name("drawn_programs.json")
COUNT = 1000


def series(f):
    """The coefficients of the outputs along a curve."""

    def g(*xs):
        h, floats = of_floats(f, xs)
        return jet(h, floats, [[direction(x, n) for n in range(3)] for x in floats])

    return g


#: What each fourth program is under, besides its stack.
OTHERS = (
    series,
    lambda f: applied(f, [("grad", 0)]),
    lambda f: applied(f, [("vmap", 0), ("grad", 0)]),
    lambda f: applied(f, [("grad", 0), ("grad", 0)]),
)


def texts(seed):
    """The jaxprs and the loops of a program under its stack, and under a transformation that goes by the number."""
    choose = Seeded(seed)
    case = Case(choose, weights=EVERYTHING, most=choose.integer(2, 9))
    inputs, threads = case.program.inputs, 1 + seed // 2 % 2
    with warnings.catch_warnings(), under(case.setting), as_on_any_machine(threads):
        warnings.simplefilter("ignore")
        yield from _texts(applied(case.program, case.stack), inputs, seed)
        yield from _texts(OTHERS[seed % 4](case.program), inputs, seed)


def _texts(f, inputs, seed):
    """Of a refused program, such as one with branches of other types, the kind of error."""
    try:
        jaxpr = ft.jit(lambda *xs: f(*xs)).lower(*inputs).jaxpr
    except FunctransError as error:
        yield type(error).__name__
        return
    yield without_addresses(str(jaxpr))
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
