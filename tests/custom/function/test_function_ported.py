"""`Function`s as they come from PyTorch: what their users run into."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp

X = np.array([1.0, 2.0, 3.0])


class Gathered(ft.Function):
    """``v * x[i]``: linear in each argument; its rule gathers from both, whatever is wanted."""

    @staticmethod
    def forward(v, x, i):
        return v * x[i]

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        v, x, i = ctx.saved_tensors
        return g * x[i], Scattered.apply(v, g, i, x.shape[0]), None


class Scattered(ft.Function):
    @staticmethod
    def forward(v, g, i, n):
        return fnp.zeros(n).at[i].add(v * g)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs[:3])

    @staticmethod
    def backward(ctx, h):
        v, g, i = ctx.saved_tensors
        return g * h[i], Gathered.apply(v, h, i), None, None


def test_rules_that_are_linear_in_one_argument_are_transposed_in_it():
    v, i = np.array([0.5, -1.0, 2.0, 3.0]), np.array([2, 0, 1, 1])
    own = lambda v, x: fnp.sum(fnp.sin(Gathered.apply(v, x, i)))
    plain = lambda v, x: fnp.sum(fnp.sin(v * fnp.asarray(x)[i]))
    for derived in (ft.jacfwd, lambda f: ft.jit(ft.jacfwd(f)), ft.hessian):
        np.testing.assert_allclose(derived(own)(v, X), derived(plain)(v, X), atol=1e-14)
    tangents = (np.ones(4), np.array([1.0, -1.0, 0.5]))
    pushed = ft.jvp(lambda v, x: Gathered.apply(v, x, i), (v, X), tangents)[1]
    np.testing.assert_allclose(pushed, tangents[0] * X[i] + v * tangents[1][i])


class Table:
    """An object that has no hash, as SciPy's sparse matrices."""

    __hash__ = None

    def __init__(self, matrix):
        self.matrix = matrix


class Product(ft.Function):
    @staticmethod
    def forward(ctx, table, x):
        ctx.table = Table(table.matrix.T)
        return table.matrix @ x

    @staticmethod
    def backward(ctx, g):
        return None, Product.apply(ctx.table, g)


def test_forward_mode_takes_unhashable_arguments():
    table = Table(np.arange(9.0).reshape(3, 3))
    f = lambda x: Product.apply(table, x)
    assert ft.jvp(f, (X,), (X,))[1].tolist() == (table.matrix @ X).tolist()
    np.testing.assert_allclose(ft.jacfwd(f)(X), table.matrix)
    square = lambda x: fnp.sum(f(x) ** 2)
    np.testing.assert_allclose(ft.hessian(square)(X), 2.0 * table.matrix.T @ table.matrix)
    np.testing.assert_allclose(ft.jit(ft.jacfwd(f))(X), table.matrix)


def test_forward_without_its_context_is_told_from_one_with_it():
    class Double(ft.Function):
        @staticmethod
        def forward(x):
            return 2.0 * x

    with pytest.raises(TypeError, match=r"too many .* after its context, which is 'x', since setup_context"):
        Double.apply(1.0)


def test_lists_are_not_marked_but_the_arrays_in_them():
    class Pair(ft.Function):
        @staticmethod
        def forward(ctx, x):
            pair = [x + 1.0, x + 2.0]
            ctx.mark_non_differentiable(pair)
            return pair

    with pytest.raises(TypeError, match=r"argument 0 is of type list; mark the arrays in it one by one"):
        Pair.apply(X)


def test_dictionaries_whose_keys_have_no_order_are_handed_on():
    seen = []

    class Chosen(ft.Function):
        @staticmethod
        def forward(ctx, x, table):
            seen.append(table)
            return x * table["a"], {None: "unit", 1: 2}

        @staticmethod
        def backward(ctx, g, _):
            return 3.0 * g, None

    table = {1: "one", "a": 3.0}
    assert Chosen.apply(X, table)[0].tolist() == [3.0, 6.0, 9.0]
    assert Chosen.apply(X, table)[1] == {None: "unit", 1: 2}
    assert ft.grad(lambda x: Chosen.apply(x, table)[0])(2.0) == 3.0
    assert seen[0] is table
    assert ft.jit(ft.grad(lambda x: Chosen.apply(x, table)[0]))(2.0) == 3.0
    with pytest.raises(ft.errors.PytreeError, match="cannot be sorted"):
        Chosen.apply(X, {1: X, "a": 2.0})


def test_once_differentiable_says_what_forward_mode_needs():
    class Square(ft.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @ft.once_differentiable
        def backward(ctx, g):
            return 2.0 * ctx.saved_tensors[0] * g

    with pytest.raises(ft.errors.OnceDifferentiableError, match="unless the class has a jvp"):
        ft.jvp(Square.apply, (2.0,), (1.0,))


W = 2.0


class ByGlobal(ft.Function):
    @staticmethod
    def forward(ctx, x):
        return W * x

    @staticmethod
    def backward(ctx, g):
        return W * g


def test_traced_values_in_global_variables_are_refused_by_name():
    def loss(w):
        global W
        try:
            W = w
            return ByGlobal.apply(2.0)
        finally:
            W = 2.0

    assert ft.jit(loss)(3.0) == 6.0
    mapped = ft.vmap(loss)
    jitted = ft.jit(mapped)
    for f in (ft.grad(loss), mapped, ft.jit(ft.grad(loss)), jitted):
        with pytest.raises(ft.errors.CapturedTracerError, match=r"(?i)^ByGlobal: .*pass it as an argument"):
            f(3.0 if f not in (mapped, jitted) else X)


class Cube:
    """Something that holds an array out of sight."""

    def __init__(self, x):
        self.x = x

    def slope(self):
        return 3.0 * self.x**2


@pytest.mark.parametrize("keep", [Cube, lambda x: Cube(x).slope, lambda x: lambda: 3.0 * x**2])
def test_arrays_out_of_sight_in_ctx_are_refused_where_they_have_derivatives(keep):
    class Kept(ft.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.kept = keep(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            return g * (ctx.kept.slope() if isinstance(ctx.kept, Cube) else ctx.kept())

    slope = ft.grad(lambda x: fnp.sum(Kept.apply(x)))
    assert slope(X).tolist() == [3.0, 12.0, 27.0]
    for f in (ft.jit(slope), ft.grad(lambda x: fnp.sum(slope(x))), ft.vmap(slope)):
        with pytest.raises(
            ft.errors.CapturedTracerError, match=r"^Kept: .* save by itself \(ctx.save_for_back"
        ):
            f(X)


def hosted(forward, shape):
    class Hosted(ft.Function):
        host = True
        vmap_method = "sequential"

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

    Hosted.forward, Hosted.shape = staticmethod(forward), staticmethod(shape)
    return Hosted.apply


@pytest.mark.parametrize(
    ("forward", "shape", "message"),
    [
        (
            lambda x: x,
            lambda x: (3,),
            r"forward returned \*, but shape promises \(\*,\)\. Return the same str",
        ),
        (lambda x: x, lambda x: None, r"shape returned no array\. Return a functrans\.ShapeDtypeStruct"),
        (lambda x: (x, x), lambda x: x, r"forward returned \(\*, \*\), but shape promises \*\."),
        (lambda x: (x,), lambda x: x, r"forward returned \(\*,\), but shape promises \*\."),
        (
            lambda x: {"a": x, "b": 1},
            lambda x: {"a": x},
            r"forward returned \{.*'b'.*\}, but shape promises \{",
        ),
        (
            lambda x: (x, "s"),
            lambda x: (x, x),
            r"forward returned \(\*, 's'\), but shape promises \(\*, \*\)",
        ),
        (
            lambda x: x > 0,
            lambda x: x,
            r"forward returned an array of dtype bool \(array 0 .*\), but shape promises float64",
        ),
    ],
)
def test_host_forwards_that_return_what_their_shape_did_not_promise(forward, shape, message):
    f = hosted(forward, shape)
    f(X)
    for g in (ft.jit(f), ft.vmap(f)):
        with pytest.raises((ft.errors.CallbackError, ft.FunctionError), match=rf"^Hosted: {message}"):
            g(X)


def test_numbers_that_host_forwards_return_are_arrays_in_shape_too():
    f = hosted(lambda x, n=3: {"x": 2.0 * x, "n": n}, lambda x, n=3: {"x": x, "n": n})
    for g in (f, ft.jit(f)):
        assert g(X)["x"].tolist() == [2.0, 4.0, 6.0]
        assert g(X)["n"] == 3
        assert g(X)["n"].dtype == np.int64
    assert ft.vmap(f)(X)["n"].tolist() == [3, 3, 3]


class Dropout(ft.Function):
    """With its mask drawn outside: a forward with ctx runs once for each level."""

    @staticmethod
    def forward(ctx, x, mask):
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved[0], None


def test_random_numbers_as_arguments_are_the_same_at_all_levels():
    random = np.random.default_rng(0)

    def loss(x):
        return fnp.sum(Dropout.apply(x, 2.0 * (random.random(8) > 0.5)) ** 2)

    y, pull = ft.vjp(ft.grad(loss), np.ones(8))
    assert set(y.tolist()) == {0.0, 8.0}
    assert pull(np.ones(8))[0].tolist() == y.tolist()
    np.testing.assert_array_equal(np.unique(np.diag(ft.hessian(loss)(np.ones(8)))), [0.0, 8.0])


def test_a_derivative_inside_of_an_argument_is_told_by_the_arguments_name():
    class Scale(ft.Function):
        @staticmethod
        def forward(ctx, x, how):
            return x * how.x

        @staticmethod
        def backward(ctx, g):
            return g, None

    with pytest.raises(
        ft.errors.CapturedTracerError, match=r"^Scale: 'how\.x' is being differentiated \(by grad\)"
    ):
        ft.grad(lambda w: Scale.apply(2.0, Cube(w)))(3.0)
    assert ft.vmap(lambda w: Scale.apply(2.0, Cube(w)))(X).tolist() == [2.0, 4.0, 6.0]


def test_transformations_call_a_function_by_its_class():
    with pytest.raises(ft.errors.GradientError, match=r"^grad of Dropout\.apply: "):
        ft.grad(Dropout.apply)(1, 2.0)
    assert repr(ft.jit(Dropout.apply)) == "<jit of Dropout.apply>"
    assert ft.jit(Dropout.apply)(2.0, 3.0) == 6.0
    assert "def Dropout_apply(" in ft.jit(Dropout.apply).lower(2.0, 3.0).as_text("python")
