"""Random programs of nested loops and branches, which run on functrans.lax or as plain Python loops and ifs.

A program changes an environment of variables, each of which has a type of its own (`types`). Statements are tuples; the
bodies of loops and branches are lists of statements. What a body reads and does not carry is captured.

Programs of any size, which gather, scatter, multiply and call Python too, are drawn by `mixtures`; those that mostly
write elements, rows and slices of the arrays that loops carry, by `array_loops`.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans import lax


def types(n):
    """Shape and dtype of each variable of a program of size n."""
    return {
        "s": ((), "f8"),
        "t": ((), "f8"),
        "x": ((n,), "f8"),
        "y": ((n,), "f8"),
        "m": ((2, n), "f8"),
        "q": ((2,), "f4"),
        "e": ((0,), "f8"),
        "n": ((), "i8"),
        "k": ((2,), "i4"),
        "b": ((), "?"),
    }


TYPES = types(3)
FLOATS = [name for name, (_, dtype) in TYPES.items() if dtype[0] == "f"]
INTS = [name for name, (_, dtype) in TYPES.items() if dtype[0] != "f"]


class Python:
    """Loops and branches as Python has them."""

    @staticmethod
    def scan(body, init, xs, length, reverse=False, unroll=1):
        rows = []
        for i in reversed(range(length)) if reverse else range(length):
            init, row = body(init, None if xs is None else xs[i])
            rows.append(row)
        rows = rows[::-1] if reverse else rows
        return init, {k: fnp.stack([row[k] for row in rows]) for k in rows[0]} if rows else None

    @staticmethod
    def fori_loop(lower, upper, body, init):
        for i in range(int(lower), int(upper)):
            init = body(i, init)
        return init

    @staticmethod
    def while_loop(cond, body, init):
        while bool(cond(init)):
            init = body(init)
        return init

    @staticmethod
    def cond(pred, true_fun, false_fun, *operands):
        return true_fun(*operands) if bool(pred) else false_fun(*operands)

    @staticmethod
    def switch(index, branches, *operands):
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)


@ft.custom_jvp
def called(x):
    """The cosine, by a call of Python."""
    return ft.pure_callback(np.cos, ft.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="sequential")


@called.defjvp
def _(primals, tangents):
    return called(*primals), -fnp.sin(primals[0]) * tangents[0]


def fitted(v, shape, dtype):
    """A value as one of some type."""
    v = fnp.asarray(v)
    if v.dtype.kind == "f" and dtype[0] != "f":
        v = fnp.where(v > 0.3, 1, 0) + fnp.where(v > 1.0, 2, 0)
    elif v.dtype.kind != "f" and dtype[0] == "f":
        v = 0.25 * fnp.asarray(v, "f8")
    v = fnp.asarray(v, dtype) if dtype != "?" else v > 0
    if v.shape == shape:
        return v
    total = fnp.any(v) if dtype == "?" else fnp.asarray(fnp.sum(v), dtype)
    if v.size > 6 and dtype[0] == "f":  # long sums in sines would make rounding errors large
        total = total * np.dtype(dtype).type(3 / v.size)
    return fnp.broadcast_to(total, shape)


def mixed(a, b, dtype):
    """A bounded function of two values of a dtype, smooth in floats."""
    if dtype == "?":
        return a ^ b
    if dtype[0] == "i":
        return (a * 3 + b) % np.dtype(dtype).type(7)
    return fnp.sin(a) * np.dtype(dtype).type(1.5) + a * fnp.cos(b)


class Runner:
    """Runs statements with loops and branches of one kind."""

    def __init__(self, loops, n=3):
        self.loops = loops
        self.n = n
        self.types = types(n)

    def fit(self, v, name):
        """A value as one of the type of a variable."""
        return fitted(v, *self.types[name])

    def mixed(self, a, b, name):
        """A function of two values as one of the type of a variable."""
        return mixed(self.fit(a, name), self.fit(b, name), self.types[name][1])

    def block(self, statements, env):
        env = dict(env)
        for kind, *rest in statements:
            getattr(self, f"do_{kind}")(env, *rest)
        return env

    def body(self, statements, env, names):
        """From a dict of variables to the same after the statements, and all that there is then."""

        def run(carry, **more):
            after = self.block(statements, {**env, **carry, **more})
            return {name: after[name] for name in names}, after

        return run

    def do_mix(self, env, target, a, b):
        env[target] = self.mixed(env[a], env[b], target)

    def do_copy(self, env, target, a):
        env[target] = self.fit(env[a], target)

    def do_swap(self, env, a, b):
        env[a], env[b] = env[b], env[a]

    def do_number(self, env, target, number):
        env[target] = number

    def do_element(self, env, target, source):
        if self.n:
            env[target] = self.fit(env[source][fnp.asarray(env["n"]) % self.n], target)

    def do_write(self, env, target, source):
        if self.n:
            at = env[target].at[fnp.asarray(env["n"] % self.n)]
            env[target] = at.set(fnp.sum(fnp.sin(env[source])))

    def places(self, env):
        """Indices into x, equal ones among them."""
        more = fnp.asarray(env["k"], "i8")
        return fnp.concatenate([more, more + env["n"], np.arange(self.n) // 2]) % self.n

    def do_gather(self, env, target, source):
        if self.n:
            env[target] = self.fit(fnp.sin(env[source][self.places(env)]), target)

    def do_scatter(self, env, target, source):
        if self.n:
            at = self.places(env)
            env[target] = fnp.tanh(env[target].at[at].add(fnp.sin(env[source][::-1][at])))

    def region(self, env, array, where):
        """Elements of an array: one, a row, a column, a slice. Places come from a counter, a carry or a float."""
        kind, source, offset, negative = where
        if kind == "slice":  # of x and y, and of the columns of m
            return (..., slice(offset, None, source)) if not negative else (..., slice(None, -offset or None))
        i = {"n": env["n"], "k": env["k"][0], "s": fnp.floor(4 * fnp.abs(self.fit(env["s"], "s")))}[source]
        i = (fnp.asarray(i, "i8") + offset) % self.n - (self.n if negative else 0)
        if array.ndim == 1:
            return i
        return {
            "element": (i % 2, i),
            "row": i % 2,
            "column": (slice(None), i),
            "tail": (i % 2, slice(1, None)),
        }[kind]

    def put(self, env, target, where, how, source, origin):
        """A copy of an array with a region from a region of another, or of itself."""
        at = self.region(env, env[target], where)
        value = fnp.sin(1.5 * env[source][self.region(env, env[source], origin)] + 0.2)
        return getattr(env[target].at[at], how)(fitted(value, env[target][at].shape, "f8"))

    def do_put(self, env, target, *rest):
        if self.n:
            env[target] = self.put(env, target, *rest)

    def do_old(self, env, seen, where, target, *rest):
        """Reads what a write replaced, after the write."""
        if self.n:
            old, env[target] = env[target], self.put(env, target, *rest)
            env[seen] = self.mixed(env[seen], old[self.region(env, old, where)], seen)

    def do_exchange(self, env, target, first, second):
        if self.n:
            old = env[target]
            i, j = self.region(env, old, first), self.region(env, old, second)
            if old[i].shape == old[j].shape:
                env[target] = old.at[i].set(old[j]).at[j].set(old[i])

    def do_paste(self, env, target, source, first, second, size):
        """A slice at places that are known late, and that may overlap the slice that is read."""
        if self.n:
            size = min(size, self.n)
            i, j = (fnp.asarray(env["n"], "i8") + first, fnp.asarray(env["k"], "i8")[0] + second)
            slab = lax.dynamic_slice(env[source], (i,), (size,))
            env[target] = lax.dynamic_update_slice(env[target], fnp.cos(slab), (j,))

    def do_called(self, env, target, source):
        env[target] = self.fit(called(self.fit(env[source], target)), target)

    def do_contract(self, env, target, how):
        m, x = env["m"], env["x"]
        match how:
            case "inner":
                out = fnp.tensordot(fnp.sin(m), m, axes=2)
            case "outer":
                out = fnp.einsum("i,j->ij", env["q"], x) if self.n else m
            case "square":
                out = fnp.einsum("ij,kj->ik", m, fnp.cos(m))
            case "back":
                out = (m.T @ (m @ x)) if self.n < 100 else m[0] * (m @ x)[0]
        env[target] = self.fit(fnp.sin(out * (1 / max(self.n, 3))), target)

    def do_product(self, env, target):
        env[target] = self.fit(fnp.tanh(env["m"] @ env["x"]), target)

    def do_index(self, env, target):
        if not self.n:
            return
        inside = (env["n"] >= 0) & (env["n"] < self.n)
        out = self.loops.cond(
            inside, lambda x, n: x[n], lambda x, n: 0.5 * x[0], env["x"], fnp.asarray(env["n"])
        )
        env[target] = self.fit(out, target)

    def do_root(self, env, target, source):
        s = self.fit(env[source], "s")
        env[target] = self.fit(
            self.loops.cond(s > 0.0, lambda s: fnp.sqrt(s) + fnp.log(s), lambda s: s * s, s), target
        )

    def do_cholesky(self, env, target, source):
        s = self.fit(env[source], "s")

        def factor(s):
            return fnp.sum(fnp.linalg.cholesky(fnp.array([[s, 0.1], [0.1, 1.0]])))

        env[target] = self.fit(self.loops.cond(s > 0.2, factor, lambda s: s, s), target)

    def do_scan(self, env, names, rows, stacked, target, length, reverse, unroll, statements):
        run = self.body(statements, env, names)

        def body(carry, row):
            carry, after = run(carry, **({} if row is None else {"y": row[:-1], "t": row[-1]}))
            return carry, {name: after[name] for name in stacked}

        xs = None
        if rows:
            base = fnp.concatenate([env["x"], fnp.reshape(fnp.asarray(env["s"]), (1,))])
            xs = fnp.sin(np.arange(length)[:, None] * 0.7 + base)
        carry = {name: env[name] for name in names}
        kwargs = {"reverse": True} if reverse else {}
        if unroll > 1:
            kwargs["unroll"] = unroll
        carry, ys = self.loops.scan(body, carry, xs, length=length, **kwargs)
        env.update({name: self.fit(carry[name], name) for name in names})
        for name in stacked if length else ():
            y = fnp.asarray(ys[name])
            if y.dtype.kind == "b":
                y = fnp.asarray(y, "i8")
            weights = fnp.arange(1, length + 1, dtype=y.dtype).reshape((length,) + (1,) * (y.ndim - 1))
            env[target] = self.mixed(env[target], fnp.sum(y * weights, axis=0), target)

    def do_fori(self, env, names, lower, upper, counter, statements):
        run = self.body(statements, env, names)
        upper = env[upper] if isinstance(upper, str) else upper

        def body(i, carry):
            more = {"n": fnp.asarray(i, "i8")} if counter else {}
            return run(carry, **more)[0]

        carry = self.loops.fori_loop(lower, upper, body, {name: env[name] for name in names})
        env.update({name: self.fit(carry[name], name) for name in names})

    def do_while(self, env, names, bound, limit, statements):
        run = self.body(statements, env, names)
        bound = env[bound] if isinstance(bound, str) else bound

        def test(state):
            i, carry = state
            go = i < bound
            return go & (fnp.abs(carry["s"]) < limit) if "s" in names else go

        carry = {name: env[name] for name in names}
        _, carry = self.loops.while_loop(test, lambda state: (state[0] + 1, run(state[1])[0]), (0, carry))
        env.update({name: self.fit(carry[name], name) for name in names})

    def do_cond(self, env, names, test, first, second):
        branches = [self.body(b, env, names) for b in (first, second)]
        pred = env["b"] if test is None else self.fit(env[test[0]], "s") > test[1]
        operand = {name: self.fit(env[name], name) for name in names}
        out = self.loops.cond(
            pred,
            *[(lambda c, run=run: {k: self.fit(v, k) for k, v in run(c)[0].items()}) for run in branches],
            operand,
        )
        env.update(out)

    def do_switch(self, env, names, *blocks):
        operand = {name: self.fit(env[name], name) for name in names}
        runs = [self.body(b, env, names) for b in blocks]
        branches = [(lambda c, run=run: {k: self.fit(v, k) for k, v in run(c)[0].items()}) for run in runs]
        env.update(self.loops.switch(env["n"] - 1, branches, operand))


class Program:
    """Statements, from floats and ints to all variables; `n` is the size of arrays, `count` the value of n at first."""

    def __init__(self, statements, n=3, count=None):
        self.statements = statements
        self.n = n
        self.count = count

    def run(self, loops, floats, ints):
        env = {name: fnp.asarray(value) for name, value in {**floats, **ints}.items()}
        runner = Runner(loops, self.n)
        after = runner.block(self.statements, env)
        return {name: runner.fit(after[name], name) for name in runner.types}

    def point(self, seed, lanes=None):
        """Values of the variables, or lanes of them."""
        rng = np.random.default_rng(seed)
        batch = () if lanes is None else (lanes,)
        shapes = {name: (*batch, *shape) for name, (shape, _) in types(self.n).items()}
        values = {name: np.asarray(rng.uniform(-1.2, 1.2, shapes[name]), TYPES[name][1]) for name in FLOATS}
        ints = {
            name: np.asarray(rng.integers(0, 5, shapes[name]) - 1, "i8").astype(TYPES[name][1])
            for name in INTS
        }
        if self.count is not None:
            ints["n"] = np.full(batch, self.count) - (0 if lanes is None else np.arange(lanes))
        return values, ints

    def native(self, floats, ints):
        return self.run(lax, floats, ints)

    def python(self, floats, ints):
        return self.run(Python, floats, ints)

    def __repr__(self):
        return f"Program({self.statements!r}, {self.n}, {self.count})"


def loss(outs):
    """A number that depends on each float."""
    total = 0.0
    for i, name in enumerate(FLOATS):
        v = fnp.asarray(outs[name], "f8")
        w = np.cos(np.arange(v.size) + i).reshape(v.shape)
        total = total + fnp.sum(fnp.sin(v) * w)
    return total


# --- drawing ------------------------------------------------------------------------------------------------

_floats = st.sampled_from(FLOATS)
_any = st.sampled_from(list(TYPES))
_names = st.lists(_any, min_size=1, max_size=5, unique=True)


KINDS = [
    *["mix"] * 6,
    *["copy", "swap", "number", "element", "write", "product", "index", "root", "cholesky"],
]
MORE_KINDS = [*KINDS, *["gather", "scatter", "called", "contract"] * 3]
WRITES = [*["put"] * 5, *["old", "exchange", "paste"] * 2, "mix", "copy", "swap", "element", "number"]
_arrays = st.sampled_from(["x", "y", "m"])
_regions = st.one_of(
    st.tuples(st.sampled_from(["element", "element", "row", "column", "tail"]), st.sampled_from("nnks"),
              st.integers(-2, 1), st.booleans()),
    st.tuples(st.just("slice"), st.sampled_from([1, 1, 2]), st.integers(0, 2), st.booleans()),
)  # fmt: skip
_puts = st.tuples(
    _arrays, _regions, st.sampled_from(["set", "set", "add", "multiply", "max"]), _arrays, _regions
)


@st.composite
def simple(draw, kinds=KINDS):
    kind = draw(st.sampled_from(kinds))
    match kind:
        case "mix":
            return kind, draw(_any), draw(_any), draw(_any)
        case "copy":
            return kind, draw(_any), draw(_any)
        case "swap":
            return kind, *draw(st.sampled_from([("s", "t"), ("x", "y")]))
        case "number":
            return draw(
                st.sampled_from([(kind, "s", 0.5), (kind, "t", 1.25), (kind, "n", 2), (kind, "b", True)])
            )
        case "element":
            return kind, draw(_any), draw(st.sampled_from(["x", "y"]))
        case "gather":
            return kind, draw(_floats), draw(st.sampled_from(["x", "y"]))
        case "scatter":
            return kind, *draw(st.sampled_from([("x", "y"), ("y", "x"), ("x", "x")]))
        case "contract":
            return kind, draw(_floats), draw(st.sampled_from(["inner", "outer", "square", "back"]))
        case "write":
            return kind, draw(st.sampled_from(["x", "y"])), draw(_floats)
        case "put":
            return kind, *draw(_puts)
        case "old":
            return kind, draw(_floats), draw(_regions), *draw(_puts)
        case "exchange":
            return kind, draw(_arrays), draw(_regions), draw(_regions)
        case "paste":
            starts = draw(st.integers(-1, 2)), draw(st.integers(-1, 2))
            return kind, *draw(st.sampled_from(["xy", "yx", "xx"])), *starts, draw(st.integers(1, 3))
        case "product" | "index":
            return kind, draw(_floats)
        case _:
            return kind, draw(_floats), draw(_floats)


@st.composite
def nested(draw, depth, kinds=KINDS):
    kind = draw(st.sampled_from(["scan", "fori", "while", "cond", "switch"]))
    names = draw(_names)
    body = blocks(depth - 1, kinds=kinds)
    match kind:
        case "scan":
            stacked = draw(st.lists(_any, max_size=2, unique=True))
            length, unroll = draw(st.sampled_from([3, 2, 1, 0, 4])), draw(st.sampled_from([1, 1, 2, 3]))
            return (kind, names, draw(st.booleans()), stacked, draw(_any), length, draw(st.booleans()), unroll,
                    draw(body))  # fmt: skip
        case "fori":
            bounds = draw(st.sampled_from([(0, 2), (0, "n"), (-1, "n"), (2, 5), (3, 1), (0, 0)]))
            return kind, names, *bounds, draw(st.booleans()), draw(body)
        case "while":
            bound = draw(st.sampled_from([2, 3, "n", "n", 0]))
            return kind, names, bound, draw(st.sampled_from([1.0, 3.0])), draw(body)
        case "cond":
            test = draw(st.sampled_from([None, ("s", 0.2), ("x", 0.0), ("m", 0.5)]))
            return kind, names, test, draw(body), draw(body)
        case _:
            return kind, names, *[draw(body) for _ in range(draw(st.integers(1, 3)))]


def blocks(depth, most=3, kinds=KINDS):
    """Lists of statements with loops up to a depth."""
    if not depth:
        return st.lists(simple(kinds), min_size=1, max_size=most)
    return st.lists(st.one_of(simple(kinds), nested(depth, kinds)), min_size=1, max_size=most)


@st.composite
def programs(draw, depth=3):
    """A program with at least one loop."""
    before = draw(st.lists(simple(), max_size=1))
    loop = draw(nested(draw(st.integers(1, depth))))
    return Program([*before, loop, *draw(st.lists(st.one_of(simple(), nested(1)), max_size=1))])


#: Beside each threshold: nothing, what stays in registers or on the stack, what is unrolled, what is a parameter.
SIZES = (0, 1, 2, 15, 16, 17, 1000)


@st.composite
def mixtures(draw):
    """A program of any size, of loops of unknown length and what touches memory in other ways."""
    n = draw(st.sampled_from(SIZES))
    depth = draw(st.sampled_from([1, 1, 2]))
    count = draw(st.sampled_from([2, 0, 1, 3] if depth > 1 else [2, 0, 1, 17, 70]))
    around = st.lists(simple(MORE_KINDS), max_size=3)
    loops = [nested(depth, MORE_KINDS), nested(1, MORE_KINDS)]
    middle = [draw(loop) for loop in loops[: draw(st.integers(1, 2))]]
    return Program([*draw(around), *middle, *draw(around)], n, count)


@st.composite
def array_loops(draw):
    """A program whose loops mostly write the arrays that they carry."""
    n, count = draw(st.sampled_from([3, 1, 2, 4, 17])), draw(st.sampled_from([3, 0, 1, 6]))
    loops = st.lists(nested(draw(st.integers(1, 3)), WRITES), min_size=1, max_size=2)
    around = st.lists(simple(WRITES), max_size=1)
    return Program([*draw(around), *draw(loops), *draw(around)], n, count)
