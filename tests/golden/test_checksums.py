"""Checksums of what is too long for a file: pictures of programs, and the texts of functions in kernels.

After a change that is meant to alter them, write them again, and look at what has changed::

    FUNCTRANS_REGENERATE=1 python -m pytest tests/golden
"""

import json
import os
import sys
import zlib
from pathlib import Path

import pytest

import functrans as ft
from functrans.core.ir import Eqn
from functrans.errors.source import Noted
from functrans.ir import to_dot, to_svg
from functrans.lowering.llvm.gemm import gemm_text
from functrans.lowering.llvm.maths.own_maths import FORMULAS, FUNCTIONS, definition_of
from functrans.passes import scalar_functions
from functrans.passes.pictures.picture import Drawn, dot_of, html_of, svg_of
from functrans.passes.toolkit import map_subjaxprs

sys.path.append(str(Path(__file__).parents[1] / "lowering"))

from work_programs import BASE, total

FILE = Path(__file__).with_name("checksums.json")


def relocated(jaxpr, lines):
    """The program as if it stood in another file, three equations in a line, and twenty in a function."""

    def of(eqn):
        n = next(lines)
        source = Noted(
            "/home/of/program.py", n // 3 + 1, f"step{n // 20}", f"x = y[{n // 3}]" if n % 9 else ""
        )
        params = map_subjaxprs(eqn.params, lambda body: relocated(body, lines))
        return Eqn(eqn.primitive, eqn.invars, eqn.outvars, params, source if n % 7 else None)

    return jaxpr.replace(eqns=[of(e) for e in jaxpr.eqns])


def program(name, derivative):
    f, *args = BASE[name]
    if derivative:
        f = ft.grad(total(f))
    jaxpr = ft.make_jaxpr(lambda *args: f(*args))(*args).jaxpr
    return relocated(jaxpr, iter(range(1 << 20)))


def pictures(name, derivative=False):
    """A program as it is, and with the colours of kernels and host calls."""
    jaxpr = program(name, derivative)
    coloured = Drawn(jaxpr, {e: i // 4 - 1 for i, e in enumerate(jaxpr.eqns)})
    return (
        to_svg(jaxpr),
        to_dot(jaxpr),
        svg_of(coloured),
        dot_of(coloured),
        html_of(coloured, "for i in range(n):"),
    )


def functions(names, types):
    return [
        f"{d.symbol} {d.texts} {sorted(d.symbols)}"
        for n in names
        for t, k in types
        for d in [definition_of(n, t, k)]
    ]


FLOATS = (("double", "f"), ("float", "f"))
OF_SCIPY = [name for name, f in scalar_functions.FUNCTIONS.items() if f.scipy]
DRAWN = (
    "halves", "logic", "axes", "tiny", "rectangles", "exchanged", "chosen", "nested choices", "uneven", "until",
    "reversed rows", "with rules", "partly read", "counting loops",
)  # fmt: skip
CASES = {
    **{f"picture of {k}": lambda k=k: pictures(k) for k in DRAWN},
    **{
        f"picture of the gradient of {k}": lambda k=k: pictures(k, True)
        for k in ("axes", "nested choices", "with rules")
    },
    **{
        f"product of {k}": lambda k=k: [gemm_text(k, threads) for threads in (False, True)]
        for k in ("s", "d")
    },
    "functions": lambda: functions((*FUNCTIONS, *FORMULAS, "trigamma", *OF_SCIPY), FLOATS),
}


def checksum(name):
    return f"{zlib.crc32(chr(10).join(CASES[name]()).encode()):08x}"


@pytest.mark.wide(1)
@pytest.mark.parametrize("name", CASES)
def test_is_what_it_was(name):
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    found = checksum(name)
    if os.environ.get("FUNCTRANS_REGENERATE"):
        known[name] = found
        FILE.write_text(json.dumps({k: known[k] for k in CASES if k in known}, indent=2) + "\n")
    assert found == known[name]
