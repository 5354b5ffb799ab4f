"""Functions with transformations around them, partial evaluation, and the current trace."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors, extend
from functrans.extend import linear_util as lu
from functrans.extend import partial_eval as pe


def test_flatten_fun():
    flat, out_tree = lu.flatten_fun(
        lu.wrap_init(lambda x, *, y: {"s": x + y}), ft.tree.structure(((1,), {"y": 2}))
    )
    with pytest.raises(errors.ArgumentError, match="not been called yet"):
        out_tree()
    assert flat.call_wrapped(3, 4) == [7]
    assert ft.tree.unflatten(out_tree(), [7]) == {"s": 7}
    bare, out_tree = lu.flatten_fun_nokwargs(lu.wrap_init(lambda x, y: x - y), ft.tree.structure((1, 2)))
    assert bare.call_wrapped(3, 4) == [-1]
    assert out_tree().num_leaves == 1


def test_transformations_of_both_kinds():
    @lu.transformation
    def doubled(factor, *args):
        out = yield [factor * x for x in args], {}
        yield out + 1

    @lu.transformation_with_aux
    def counted(*args):
        out = yield args, {}
        yield out, len(args)

    @lu.transformation2
    def negated(f, *args):
        return -f(*args)

    fun, count = counted(negated(doubled(lu.wrap_init(lambda x, y: x * y), 2)))
    assert fun.call_wrapped(3, 4) == -(6 * 8 + 1)
    assert count() == 2
    assert fun.__name__ == "<lambda>"


def test_partial_evaluation_computes_what_is_known():
    def f(x, y):
        return fnp.sin(x), x * y, y + 1.0

    known, unknown = pe.PartialVal.known(np.float64(2.0)), pe.PartialVal.unknown(ft.typeof(np.ones(3)))
    jaxpr, outs, _ = pe.trace_to_jaxpr_nounits(
        lu.flatten_fun_nokwargs(lu.wrap_init(f), ft.tree.structure((0, 0)))[0], [known, unknown]
    )
    assert [p.is_known() for p in outs] == [True, False, False]
    assert np.allclose(outs[0].const, np.sin(2.0))
    assert outs[1].aval.shape == (3,)
    product, following = extend.core.jaxpr_as_fun(jaxpr)(np.arange(3.0))
    assert np.allclose(product, [0.0, 2.0, 4.0])
    assert np.allclose(following, [1.0, 2.0, 3.0])


def test_states_of_tracing():
    outside = extend.core.get_opaque_trace_state()
    states = []
    ft.jit(lambda x: states.append(extend.core.get_opaque_trace_state()) or x)(1.0)
    assert outside == extend.core.get_opaque_trace_state()
    assert hash(outside) is not None
    assert states[0] != outside
    assert extend.core.trace_state_clean()


def test_the_innermost_trace():
    found = []

    def inner(x):
        def innermost(y):
            found.append(
                (extend.core.find_top_trace([x, y]) is y._trace, extend.core.find_top_trace([x]) is x._trace)
            )
            with extend.core.take_current_trace() as outer:
                found.append(extend.core.trace_state_clean())
                with extend.core.set_current_trace(outer):
                    return x * y

        return ft.vmap(innermost)(np.ones(2)).sum()

    assert ft.grad(inner)(3.0) == 2.0
    assert found == [(True, True), True]


def test_types():
    aval = extend.core.get_aval(np.ones((2, 3), "float32"))
    assert extend.core.mapped_aval(3, 1, aval).shape == (2,)
    assert extend.core.mapped_aval(3, None, aval) is aval
    assert extend.core.unmapped_aval(5, 0, aval).shape == (5, 2, 3)
    assert extend.core.valid_jaxtype(1.0)
    assert not extend.core.valid_jaxtype("x")


def test_types_with_state_are_refused():
    with pytest.raises(errors.NoRuleError, match="flax_hijax_variable"):
        extend.hijax.HiPrimitive("new").bind(1.0)
    with pytest.raises(errors.NoRuleError, match="not a value with state"):
        extend.hijax.cur_qdd(1.0)


def test_what_libraries_ask_of_arrays_programs_and_options():
    x = fnp.arange(3.0)
    assert x.unsafe_buffer_pointer() == np.asarray(x).__array_interface__["data"][0]
    assert ft.jit(lambda x: 2 * x).lower(x).compile(compiler_options={"any": 1})(x)[2] == 4.0
    ft.config.update("jax_num_cpu_devices", 1)
    with pytest.raises(errors.ConfigError, match="one device in a process"):
        ft.config.update("jax_num_cpu_devices", 2)
