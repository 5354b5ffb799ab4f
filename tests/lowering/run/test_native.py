"""Programs without Python: where their buffers lie, and which programs have this form."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.lowering.run.executable import compile_jaxpr
from functrans.lowering.run.native import BufferPlace, native_program
from functrans.runtime.config import config

X = np.linspace(0.5, 2.0, 300)
TABLE = np.arange(300.0)[::-1].copy()


def program(f, *args):
    executable = compile_jaxpr(ft.make_jaxpr(f)(*args)).compile()
    return executable, native_program(executable)


@pytest.fixture(autouse=True)
def one_thread():
    with config.patch(num_threads=1, checked=False):
        yield


def test_results_that_no_kernel_writes_are_copied():
    _, native = program(lambda x, n: (n, x, 2.5, TABLE, x, 7), X, 3)
    assert native.address == 0
    assert native.places == native.scratch == []
    arguments = [BufferPlace("data", 0), BufferPlace("data", 1)]
    copied = {result: (place, size) for result, place, size in native.copies}
    assert sorted(copied) == [0, 1, 2, 3, 4, 5]
    assert copied[0] == (arguments[1], 8)
    assert copied[1] == copied[4] == (arguments[0], X.nbytes)
    for result, value in ((2, 2.5), (3, TABLE), (5, 7)):
        place, size = copied[result]
        assert place.kind == "constant"
        constant = native.constants[place.number]
        np.testing.assert_array_equal(constant, value)
        assert constant.nbytes == size
    assert len({copied[n][0] for n in (2, 3, 5)}) == len(native.constants) == 3


def test_places_of_a_kernel():
    """Arguments, then results; constants of the program; memory that the kernel needs meanwhile."""

    def f(x, n):
        turned = fnp.cumsum(fnp.sort(fnp.sin(x) * TABLE)[::-1])
        return 1.5, turned * n, x, fnp.sum(turned)

    executable, native = program(f, X, 2.0)
    (unit,) = executable.kernels
    assert native.address != 0
    assert len(native.places) == len(unit.kernel.storages)
    by_storage = dict(zip(unit.kernel.storages, native.places))
    data = {place.number for place in native.places if place.kind == "data"}
    assert {0, 3, 5} <= data <= {0, 1, 3, 5}
    assert [c[0] for c in native.copies] == [0, 2]
    assert [c[2] for c in native.copies] == [8, X.nbytes]
    scratch = [place.number for place in native.places if place.kind == "scratch"]
    assert sorted(scratch) == list(range(len(unit.scratch)))
    assert native.scratch == list(unit.scratch.values())
    for storage, place in by_storage.items():
        if place.kind == "scratch":
            assert native.scratch[place.number] == unit.scratch[storage]
        elif place.kind == "constant":
            np.testing.assert_array_equal(native.constants[place.number], TABLE)
        else:
            atom = unit.interface[storage][0]
            simplified = executable.simplified
            assert [*simplified.invars, *simplified.outvars][place.number] is atom
    assert any(place.kind == "constant" for place in native.places)


def test_programs_that_need_python_have_none():
    with_host = lambda x: ft.pure_callback(lambda x: x, ft.ShapeDtypeStruct(x.shape, x.dtype), x) + 1.0
    assert program(with_host, X)[1] is None
    assert program(lambda x: fnp.sin(x), X)[1] is not None
    with config.patch(debug_nans=True):
        assert program(lambda x: fnp.cos(x), X)[1] is None
    with config.patch(backend="python"):
        assert program(lambda x: fnp.tan(x), X)[1] is None
    waiting = lambda x: lax.while_loop(lambda x: fnp.sum(x) < 9.0, lambda x: x + x * x, x)
    tapes = ft.make_jaxpr(lambda x: ft.vjp(ft.jit(waiting), x)[0])(X)
    assert native_program(compile_jaxpr(tapes).compile()) is not None
    forward = next(e.params["jaxpr"] for e in tapes.eqns if "jaxpr" in e.params)
    if any(type(v.aval).__name__ == "TapeAval" for v in forward.outvars):
        assert native_program(compile_jaxpr(forward).compile()) is None
    state = ft.BackwardState()
    stateful = ft.make_jaxpr(lambda x, s: 2.0 * x)(X, state)
    assert native_program(compile_jaxpr(stateful).compile()) is None
