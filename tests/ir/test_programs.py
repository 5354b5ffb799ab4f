"""Functions and programs, interpreters, the builder, and cuts."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors, ir, lax

A = np.array([0.5, 1.0, 2.0])


# --- functions and programs --------------------------------------------------------------------------------------


def test_there_and_back():
    def f(tree, x):
        return {"a": fnp.sin(tree["w"]) @ x}, 2.0 * x

    program = ir.trace(f, {"w": np.ones((2, 3))}, A)
    first, second = ir.as_function(program)(np.ones((2, 3)), A)
    assert np.allclose(first, np.sin(np.ones((2, 3))) @ A)
    assert [*second] == [1.0, 2.0, 4.0]
    slope = ft.jit(ft.grad(lambda w: ir.as_function(program)(w, A)[0].sum()))(np.ones((2, 3)))
    assert np.allclose(slope, np.cos(1.0) * A)
    assert ir.as_function(ir.trace(lambda: ()))() == ()
    assert type(ir.as_function(ir.trace(lambda x: x + 1.0, A))(A)) is ft.Array


def test_results_do_not_change_with_the_arguments():
    x = A.copy()
    (y,) = ir.eval_jaxpr(ir.trace(lambda x: x, A), x)
    x[0] = 7.0
    assert y[0] == 0.5


def test_arguments_that_do_not_suit():
    program = ir.trace(lambda x, n: x * n, A, 2.0)
    assert [*ir.eval_jaxpr(program, A, 3)[0]] == [1.5, 3.0, 6.0]
    for args, says in [
        ((A,), "takes 2 values, but 1 were given"),
        ((A[:2], 1.0), r"input 0 is f64\[2\], but must be f64\[3\]"),
        ((A.astype("f4"), 1.0), r"input 0 is f32\[3\]"),
        ((A, 1j), r"input 1 is c128\[\]\*"),
    ]:
        with pytest.raises(errors.JaxprError, match=says):
            ir.as_function(program)(*args)
    with pytest.raises(errors.JaxprError, match="expected a Jaxpr"):
        ir.eval_jaxpr(np.sin, A)


def test_equal():
    def f(c):
        return ir.trace(lambda x: lax.fori_loop(0, 3, lambda i, y: ft.jit(lambda z: z * c)(y), x), A)

    assert ir.equal(f(A), f(A.copy()))
    assert not ir.equal(f(A), f(A + 1.0))
    assert not ir.equal(f(2.0), f(2))
    assert not ir.equal(ir.trace(lambda x: x + 0.0, A), ir.trace(lambda x: x + -0.0, A))
    assert not ir.equal(ir.trace(lambda x, y: x - y, A, A), ir.trace(lambda x, y: y - x, A, A))


def test_primitives_by_name():
    assert ir.primitive("sin") is ir.trace(np.sin, A).eqns[0].primitive
    assert ir.primitive("acos").name == "arccos"
    for name in ("scan", "while", "cond", "call", "custom_call", "checkpoint", "psum", "svd", "erf"):
        assert ir.primitive(name).name == name
    with pytest.raises(errors.RewriteError, match=r"no primitive 'tanhh'. Nearest: tanh"):
        ir.primitive("tanhh")


# --- interpreters ------------------------------------------------------------------------------------------------


def nested(x):
    def outer(c, row):
        c = lax.while_loop(lambda s: fnp.sum(s) < 20.0, lambda s: s * 2.0 + row, c)
        return lax.cond(fnp.sum(c) > 30.0, lambda s: s / 3.0, lambda s: s + 1.0, c), fnp.sum(c)

    last, sums = lax.scan(outer, x, np.arange(1.0, 5.0))
    return ft.jit(lambda s: s * 0.5)(last), sums, lax.scan(outer, x, np.zeros((0,)))[1]


class Depths(ir.Interpreter):
    def __init__(self, jaxpr):
        super().__init__(jaxpr)
        self.seen = []

    def equation(self, eqn, values):
        self.seen.append((self.depth, eqn.primitive.name))
        return super().equation(eqn, values)


class Inside(Depths):
    descend = True


def test_bodies_run_as_one_equation_or_one_by_one():
    program = ir.trace(nested, A)
    expected = nested(A)
    whole, inside = Depths(program), Inside(program)
    for found in (whole.run(A), inside.run(A), ft.jit(lambda x: Depths(program).run(x))(A)):
        for a, b in zip(found, expected, strict=True):
            assert np.allclose(a, b, rtol=1e-14)
            assert a.shape == b.shape
    assert {d for d, _ in whole.seen} == {0}
    assert {d for d, n in inside.seen if n in ("reduce_sum", "mul")} >= {1, 2}
    assert "scan" in [n for _, n in whole.seen]
    assert "scan" not in [n for _, n in inside.seen]
    slope = ft.grad(lambda x: fnp.sum(Inside(program).run(x)[1]))(A)
    assert np.allclose(slope, ft.grad(lambda x: fnp.sum(nested(x)[1]))(A), rtol=1e-12)


def test_loops_with_tapes():
    """The gradient of a loop of unknown trip count, forward and backward in Python."""

    def f(x, n):
        return fnp.sum(lax.fori_loop(0, n, lambda i, c: fnp.sin(c) * x, x))

    program = ir.trace(ft.grad(f), A, 3)
    for n in (0, 1, 4):
        assert np.allclose(Inside(program).run(A, n)[0], ft.grad(f)(A, n), rtol=1e-12)


def test_values_of_another_kind():
    class Shapes(ir.Interpreter):
        def equation(self, eqn, values):
            return [f"{eqn.primitive.name}({', '.join(map(str, values))})"]

    assert Shapes(ir.trace(lambda x: fnp.sin(x) * 2.0, A)).run("x") == ["mul(sin(x), 2.0)"]


def test_the_number_of_results_is_checked():
    class Forgets(ir.Interpreter):
        def equation(self, eqn, values):
            return []

    with pytest.raises(errors.JaxprError, match="sin has 1 results, but 0 values came"):
        Forgets(ir.trace(np.sin, A)).run(A)
    with pytest.raises(errors.JaxprError, match="takes 1 values, but 0"):
        ir.Interpreter(ir.trace(np.sin, A)).run()


class Swap(ir.Transformer):
    """Writes a product as a sum of logarithms' exponential; the values are positive."""

    def equation(self, eqn, values):
        if eqn.primitive is ir.primitive("mul"):
            return [fnp.exp(fnp.log(values[0]) + fnp.log(values[1]) + np.zeros(np.shape(values[0])))]
        return super().equation(eqn, values)


def test_transformers_go_into_bodies():
    program = ir.trace(nested, A)
    changed = Swap(program).transform()
    ir.verify(changed)
    assert not ir.match(changed, ir.Op("mul"))
    assert changed.in_avals == program.in_avals
    for a, b in zip(ir.eval_jaxpr(changed, A), nested(A), strict=True):
        assert np.allclose(a, b, rtol=1e-12)
    lines = {e.source for e in program.eqns}
    assert {e.source for e in changed.eqns} <= lines


def test_a_transformer_that_changes_nothing():
    program = ir.trace(nested, A)
    assert ir.equal(ir.Transformer(program).transform(), program)
    assert np.allclose(ir.Transformer(program).run(A)[1], nested(A)[1])


def test_a_carry_must_keep_its_type():
    class Narrow(ir.Transformer):
        def equation(self, eqn, values):
            return [x.astype("float32") for x in super().equation(eqn, values)]

    program = ir.trace(lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2.0, x), A)
    with pytest.raises(errors.JaxprError, match=r"carries f64\[3\], but its new body returns f32\[3\]"):
        Narrow(program).transform()


# --- builder -----------------------------------------------------------------------------------------------------


def test_builder():
    b = ir.Builder(ft.ShapeDtypeStruct((3, 3), "float32"), np.float32(1.0))
    x, s = b.inputs
    q, r = b.add("qr", x, full=False)
    first, second = b.add("add", q, np.ones((3, 3), "f4")), b.add("add", r, np.zeros((3, 3), "f4"))
    unused = b.add("sin", s)
    program = b.build(b.add("mul", 2.0, first), second, s, 3.0)
    ir.verify(program)
    assert unused not in program.outvars
    matrix = np.arange(9.0, dtype="f4").reshape(3, 3) + np.eye(3, dtype="f4")
    outs = ir.eval_jaxpr(program, matrix, np.float32(2.0))
    q, r = np.linalg.qr(matrix)
    assert np.allclose(outs[0], 2 * (q + 1), atol=1e-5)
    assert np.allclose(outs[1], r, atol=1e-5)
    assert outs[0].dtype == np.float32
    assert [float(outs[2]), float(outs[3])] == [2.0, 3.0]
    assert all("test_programs.py" in str(e.source) for e in program.eqns)


def test_what_the_builder_refuses():
    b = ir.Builder(A)
    (x,) = b.inputs
    other = ir.Builder(A).inputs[0]
    for add, error, says in [
        (lambda: b.add("add", x, np.ones(4)), errors.ShapeError, "add"),
        (lambda: b.add("add", x, np.ones(3, "f4")), errors.DtypeError, "different dtypes"),
        (lambda: b.add("add", x), errors.JaxprError, "missing a required argument"),
        (lambda: b.add("reduce_sum", x, axis=0), errors.JaxprError, "axes"),
        (lambda: b.add("sin", other), errors.JaxprError, "operand 0 of sin is a variable of another program"),
        (lambda: b.build(other), errors.JaxprError, "output 0 is a variable of another program"),
        (lambda: b.add("sine", x), errors.RewriteError, "Nearest: sin"),
        (lambda: b.add("sin", "x"), errors.ArgumentError, "operand 0 of sin"),
        (lambda: ir.Builder("f8"), errors.ArgumentError, "type of input 0"),
    ]:
        with pytest.raises(error, match=says):
            add()


# --- cuts --------------------------------------------------------------------------------------------------------


def test_split():
    weights = np.ones((3, 2))

    def f(x):
        h = fnp.tanh(x @ weights)
        return h @ weights.T, x, fnp.sum(h)

    program = ir.trace(f, A)
    cut = ir.split(program, lambda e: e.primitive is ir.primitive("dot_general"))
    assert [label for label, _ in cut.parts] == [True, False, True, False]
    for _, part in cut.parts:
        ir.verify(part)
    assert sum(len(part.eqns) for _, part in cut.parts) == len(program.eqns)
    for a, b in zip(cut(A), f(A), strict=True):
        assert np.allclose(a, b)
    slope = ft.jit(ft.grad(lambda x: cut(x)[2]))(A)
    assert np.allclose(slope, ft.grad(lambda x: f(x)[2])(A))
    assert ir.split(ir.trace(lambda x: x, A), str)(A).shape == (3,)
    with pytest.raises(errors.JaxprError, match="split of f: it takes 1 values"):
        cut()
