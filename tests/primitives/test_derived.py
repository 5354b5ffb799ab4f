"""No primitive escapes: each has a domain entry in one of the files ``test_derived_*.py``."""

import importlib
import pkgutil
import runpy
from pathlib import Path

from functrans import primitives
from functrans.core.primitive import Primitive
from functrans.primitives import random, tape
from functrans.primitives.linalg import condensed
from functrans.primitives.reductions import long_product, reduce
from functrans.primitives.structure import linear, shape

ENTRIES = sorted(Path(__file__).parent.rglob("test_derived_*.py"))

#: Only loops make their operands: tested with these, in tests/control.
OF_TAPES = {linear.empty_tape_p, tape.add_tapes_p}
#: Other forms of a primitive, which only its `simplify` rule makes: tested in tests/lowering/jaxpr.
FORMS = {shape.window_p, reduce.place_p, long_product.long_prod_p}


#: A sample, whose derivative is not that of its value: tested in tests/random.
SAMPLES = {random.gamma_sample_p, random.log_gamma_sample_p, random.wald_sample_p}
#: Their jvp rule refuses every tangent: tested in tests/scipy/test_linalg_condensed.py.
WITHOUT_DERIVATIVE = {
    condensed.complex_schur_p,
    condensed.hessenberg_p,
    condensed.schur_p,
    condensed.tridiagonal_p,
}
#: The other functions of SciPy: records like those with an entry in test_derived_special.py, tested as functions by the
#: coverage table and against mpmath in tests/accuracy.
OF_SCIPY = "functrans/primitives/special/"
#: Tested in tests/experimental, with `checkify`.
CHECKS = {"check"}


def _every_primitive():
    modules = [
        importlib.import_module(m.name)
        for m in pkgutil.walk_packages(primitives.__path__, f"{primitives.__name__}.")
    ]
    return {value for module in modules for value in vars(module).values() if isinstance(value, Primitive)}


def test_every_primitive_has_one_domain_entry():
    entries = [prim for path in ENTRIES for prim in runpy.run_path(str(path))["DOMAINS"]]
    missing = sorted(
        prim.name
        for prim in _every_primitive() - set(entries) - OF_TAPES - FORMS - SAMPLES - WITHOUT_DERIVATIVE
        if OF_SCIPY not in prim.file and prim.name not in CHECKS
    )
    assert not missing, f"primitives without a domain entry in tests/primitives/test_derived_*.py: {missing}"
    assert len(entries) == len(set(entries))


def test_names_of_primitives_are_unique():
    names = [prim.name for prim in _every_primitive()]
    assert len(names) == len(set(names))
