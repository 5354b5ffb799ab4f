"""The verifier: every fault that it is there to find, planted by hand."""

import numpy as np
import pytest

from functrans.api.compiled.stages import make_jaxpr
from functrans.control.call import call_p
from functrans.core.aval import Aval, aval_of
from functrans.core.ir import Eqn, Jaxpr, Literal, Var
from functrans.core.primitive import Effect
from functrans.errors import JaxprTypeError
from functrans.passes.check import check_jaxpr, verified
from functrans.primitives.structure.linear import add_p, reshape_p
from functrans.runtime.config import config

VECTOR = Aval((3,), np.dtype(float))
NARROW = Aval((3,), np.dtype("f4"))


def program(out=VECTOR, **changes):
    x, y = Var(VECTOR), Var(out)
    parts = {"invars": [x], "eqns": [Eqn(add_p, [x, x], [y], {})], "outvars": [y]} | changes
    return Jaxpr(**parts)


def test_good_programs_pass():
    check_jaxpr(program())
    jaxpr = make_jaxpr(lambda x, y: (x @ np.ones((3, 2)), {"n": 3, "y": y[0]}))(np.ones(3), np.ones(2))
    check_jaxpr(jaxpr)
    assert verified(jaxpr, "nothing") is jaxpr


def test_variables_are_defined_once_and_before_use():
    x, y, z = Var(VECTOR), Var(VECTOR), Var(VECTOR)
    first, second = Eqn(add_p, [x, x], [y], {}), Eqn(add_p, [y, x], [z], {})
    check_jaxpr(Jaxpr([x], [first, second], [z]))
    with pytest.raises(JaxprTypeError, match=r"equation 0 .*used but not defined before"):
        check_jaxpr(Jaxpr([x], [second, first], [z]))
    with pytest.raises(JaxprTypeError, match=r"equation 1 .*defined twice"):
        check_jaxpr(Jaxpr([x], [first, first], [y]))
    with pytest.raises(JaxprTypeError, match=r"input 1: .*defined twice"):
        check_jaxpr(Jaxpr([x, x], [], [x]))
    with pytest.raises(JaxprTypeError, match="input 0: must be a variable"):
        check_jaxpr(Jaxpr([Literal(1.0)], [], []))


def test_outputs_are_known():
    check_jaxpr(Jaxpr([], [], [Literal(1.0)]))
    with pytest.raises(JaxprTypeError, match=r"output 1: variable .* not defined"):
        check_jaxpr(Jaxpr([], [], [Literal(1.0), Var(VECTOR)]))
    with pytest.raises(JaxprTypeError, match="output 0: must be a variable or a literal"):
        check_jaxpr(Jaxpr([], [], [1.0]))


def test_avals_agree_with_the_abstract_rule():
    with pytest.raises(JaxprTypeError, match=r"an output is f32\[3\], but the abstract rule gives f64\[3\]"):
        check_jaxpr(program(NARROW))
    x, y = Var(VECTOR), Var(NARROW)
    with pytest.raises(JaxprTypeError, match=r"equation 0 .*rejects the operands.*float32"):
        check_jaxpr(Jaxpr([x, y], [Eqn(add_p, [x, y], [Var(VECTOR)], {})], []))
    with pytest.raises(JaxprTypeError, match=r"equation 0 .*rejects the operands"):
        check_jaxpr(Jaxpr([x], [Eqn(reshape_p, [x], [Var(VECTOR)], {"size": 3})], []))
    with pytest.raises(JaxprTypeError, match="2 outputs, but the primitive has 1"):
        check_jaxpr(Jaxpr([x], [Eqn(add_p, [x, x], [Var(VECTOR), Var(VECTOR)], {})], []))


def test_literals_are_numbers_of_their_aval():
    wrong = Literal(1.0)
    wrong.value = np.ones(3)
    with pytest.raises(JaxprTypeError, match="a literal must be a number, but is a ndarray"):
        check_jaxpr(Jaxpr([], [], [wrong]))
    wrong.value = 1
    with pytest.raises(JaxprTypeError, match=r"literal 1 is i64\[\]\*, but has the aval f64"):
        check_jaxpr(Jaxpr([], [], [wrong]))


def test_constants_match_their_variables():
    v = Var(VECTOR)
    check_jaxpr(Jaxpr([], [], [v], constvars=[v], consts=[np.ones(3)]))
    with pytest.raises(JaxprTypeError, match=r"constant 0: the array is f64\[4\], but its variable f64\[3\]"):
        check_jaxpr(Jaxpr([], [], [v], constvars=[v], consts=[np.ones(4)]))
    with pytest.raises(JaxprTypeError, match="1 variables for 0 arrays"):
        check_jaxpr(Jaxpr([], [], [v], constvars=[v], consts=[]))
    with pytest.raises(JaxprTypeError, match="constant 0: must be an array, but is a list"):
        check_jaxpr(Jaxpr([], [], [v], constvars=[v], consts=[[1.0, 2.0, 3.0]]))


def test_effects_are_recorded():
    jaxpr = make_jaxpr(lambda x, i: x[i])(np.ones(3), np.array([1]))
    gather = next(e for e in jaxpr.eqns if e.effects)
    assert jaxpr.effects == Effect.RAISE
    gather.effects = Effect.NONE
    with pytest.raises(JaxprTypeError, match=r"effects are .*NONE.*, but the primitive has .*RAISE"):
        check_jaxpr(jaxpr)


def test_jaxprs_inside_equations_are_checked():
    x, y = Var(VECTOR), Var(VECTOR)
    eqn = Eqn(call_p, [x], [y], {"jaxpr": program()})
    check_jaxpr(Jaxpr([x], [eqn], [y]))
    eqn = Eqn(call_p, [x], [Var(NARROW)], {"jaxpr": program(NARROW)})
    with pytest.raises(JaxprTypeError, match=r"in equation 0 \(call.*an output is f32"):
        check_jaxpr(Jaxpr([x], [eqn], []))
    z = Var(Aval((4,), VECTOR.dtype))
    with (
        config.patch(verify=True),
        pytest.raises(JaxprTypeError, match=r"call of 'f': the operands are .*f64\[4\]"),
    ):
        check_jaxpr(Jaxpr([z], [Eqn(call_p, [z], [y], {"jaxpr": program()})], []))


def test_the_message_names_the_stage_and_the_users_line():
    jaxpr = make_jaxpr(lambda x: x + x)(np.ones(3))  # the line that the equation came from
    jaxpr.eqns[0].outvars[0].aval = NARROW
    with pytest.raises(JaxprTypeError, match="after a pass: equation 0") as caught:
        check_jaxpr(jaxpr, "a pass")
    assert "test_check.py" in str(caught.value)
    assert "# the line that the equation came from" in str(caught.value)


def test_it_runs_only_if_enabled():
    bad = Jaxpr([], [], [Var(aval_of(1.0))])
    with config.patch(verify=False):
        assert verified(bad, "x") is bad
    with config.patch(verify=True), pytest.raises(JaxprTypeError, match="after x"):
        verified(bad, "x")
