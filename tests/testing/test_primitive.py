"""`check_primitive` finds a fault in each slot of a record, and says which."""

import dataclasses

import numpy as np
import pytest

from functrans.core.aval import Aval
from functrans.core.kernel import Pointwise
from functrans.primitives.elementwise import arithmetic as elementwise
from functrans.primitives.elementwise import exp_log, rounding, trig
from functrans.primitives.indexing import gather_scatter as index
from functrans.primitives.structure import linear
from functrans.testing import Case, Domain, Indices, Interval, LawViolation, Numbers, check_primitive

ANY = Interval()
ONE = Domain((ANY,))
TWO = Domain((ANY, ANY), kinds="iufc", linear=((0,), (1,)))


def _broken(prim, **slots):
    return dataclasses.replace(prim, **slots)


def test_right_records_pass():
    check_primitive(trig.sin_p, ONE)
    check_primitive(elementwise.mul_p, TWO, rng=1)


def test_abstract():
    wrong = _broken(trig.sin_p, abstract=lambda x: Aval(x.shape, np.dtype(np.float64)))
    with pytest.raises(LawViolation, match=r"primitive sin .*abstract") as caught:
        check_primitive(wrong, ONE)
    assert "float32" in str(caught.value)


def test_impl_that_writes():
    wrong = _broken(trig.sin_p, impl=lambda x: np.sin(x, out=x if x.ndim else None))
    with pytest.raises(LawViolation, match="modified an operand"):
        check_primitive(wrong, ONE)


def test_jvp():
    wrong = _broken(trig.sin_p, jvp=lambda ps, ts: (np.sin(ps[0]), elementwise.mul_p.bind(ts[0], ps[0])))
    with pytest.raises(LawViolation, match="finite differences"):
        check_primitive(wrong, ONE)


def test_jvp_without_broadcasting_the_tangent():
    def jvp(primals, tangents):
        (x, y), (s, t) = primals, tangents
        parts = [p for p in (s, t) if isinstance(p, np.ndarray) or hasattr(p, "concrete")]
        return linear.add_p.bind(x, y), parts[0] if len(parts) == 1 else linear.add_p.bind(s, t)

    with pytest.raises(LawViolation, match="shape"):
        check_primitive(_broken(linear.add_p, jvp=jvp, transpose=None), TWO)


def test_transpose():
    wrong = _broken(elementwise.mul_p, transpose=lambda ct, x, y: [ct, ct])
    with pytest.raises(LawViolation, match="<J v, w>"):
        check_primitive(wrong, TWO)
    with pytest.raises(LawViolation, match="name the operands in which it is linear"):
        check_primitive(elementwise.mul_p, dataclasses.replace(TWO, linear=()))


def test_batch_that_forgets_to_align():
    def batch(size, args, dims):
        if all(d == 0 for d in dims):
            return elementwise.mul_p.bind(*args), 0
        return elementwise.mul_p.batch(size, args, dims)

    with pytest.raises(LawViolation, match=r"batch = loop|axes \(0, 0\)"):
        check_primitive(_broken(elementwise.mul_p, batch=batch), TWO)


@pytest.mark.parametrize(
    ("prim", "emit", "domain"),
    [
        (trig.sin_p, lambda k, x: k.call("sin", x) * 1.0000001, ONE),
        (elementwise.max_p, lambda k, x, y: k.where(x > y, x, y), Domain((ANY, ANY), kinds="f")),  # NaN
        (
            elementwise.neg_p,
            lambda k, x: k.const(0, x.dtype) - x,
            Domain((ANY,), kinds="f", linear=((0,),)),
        ),  # -0.0
        (
            rounding.sign_p,
            lambda k, x: k.where(x < 0, k.const(-1, x.dtype), k.const(1, x.dtype)),
            Domain((ANY,), kinds="i"),
        ),
        (
            exp_log.log1p_p,
            lambda k, x: k.call("log", x + 1.0),
            Domain((Interval(-0.8, 3.0),), kinds="f"),
        ),  # denormals
    ],
    ids=["value", "NaN", "negative zero", "zero", "denormal"],
)
@pytest.mark.parametrize("backend", ["llvm", "python"])
def test_kernel(prim, emit, domain, backend):
    with pytest.raises(LawViolation, match="kernel = NumPy") as caught:
        check_primitive(_broken(prim, kernel=Pointwise(emit)), domain, backends=(backend,))
    assert f"backend {backend}" in str(caught.value)
    assert "operands there" in str(caught.value)


def test_rule_that_raises_is_chained():
    def batch(size, args, dims):
        raise KeyError("lost")

    with pytest.raises(LawViolation, match="KeyError was raised") as caught:
        check_primitive(_broken(trig.sin_p, batch=batch), ONE)
    assert isinstance(caught.value.__cause__, KeyError)


def test_operands_that_are_indices():
    case = Case((Numbers((4, 2)), Indices((3,), -4, 4)), {"axes": (0,), "mode": "raise"})
    check_primitive(index.gather_p, Domain(cases=(case,), linear=((0,),)))
    with pytest.raises(LawViolation, match="without a derivative"):
        check_primitive(index.gather_p, Domain(cases=(case,), linear=((1,),)))


def test_samples_avoid_the_excluded_points():
    random = np.random.default_rng(0)
    x = Interval(-1.0, 1.0, avoid=(0.0, 0.5)).draw(random, (2000,), np.dtype(float))
    assert np.abs(x).min() >= 0.01
    assert np.abs(x - 0.5).min() >= 0.01
    assert -1.0 <= x.min() < -0.9
    assert 0.9 < x.max() <= 1.0
