"""Random programs of nested loops and branches, which run on functrans.lax or as plain Python loops and ifs.

A program changes an environment of variables, each of which has a type of its own (`TYPES`). Statements are tuples; the
bodies of loops and branches are lists of statements. What a body reads and does not carry is captured.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

import functrans.numpy as fnp
from functrans import lax

TYPES = {
    "s": ((), "f8"),
    "t": ((), "f8"),
    "x": ((3,), "f8"),
    "y": ((3,), "f8"),
    "m": ((2, 3), "f8"),
    "q": ((2,), "f4"),
    "e": ((0,), "f8"),
    "n": ((), "i8"),
    "k": ((2,), "i4"),
    "b": ((), "?"),
}
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


def fit(v, name):
    """A value as one of the type of a variable."""
    shape, dtype = TYPES[name]
    v = fnp.asarray(v)
    if v.dtype.kind == "f" and dtype[0] != "f":
        v = fnp.where(v > 0.3, 1, 0) + fnp.where(v > 1.0, 2, 0)
    elif v.dtype.kind != "f" and dtype[0] == "f":
        v = 0.25 * fnp.asarray(v, "f8")
    v = fnp.asarray(v, dtype) if dtype != "?" else v > 0
    if v.shape == shape:
        return v
    total = fnp.any(v) if dtype == "?" else fnp.asarray(fnp.sum(v), dtype)
    return fnp.broadcast_to(total, shape)


def mixed(a, b, name):
    """A bounded function of two values, smooth in floats."""
    dtype = TYPES[name][1]
    a, b = fit(a, name), fit(b, name)
    if dtype == "?":
        return a ^ b
    if dtype[0] == "i":
        return (a * 3 + b) % np.dtype(dtype).type(7)
    return fnp.sin(a) * np.dtype(dtype).type(1.5) + a * fnp.cos(b)


class Runner:
    """Runs statements with loops and branches of one kind."""

    def __init__(self, loops):
        self.loops = loops

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
        env[target] = mixed(env[a], env[b], target)

    def do_copy(self, env, target, a):
        env[target] = fit(env[a], target)

    def do_swap(self, env, a, b):
        env[a], env[b] = env[b], env[a]

    def do_number(self, env, target, number):
        env[target] = number

    def do_element(self, env, target, source):
        env[target] = fit(env[source][fnp.asarray(env["n"]) % 3], target)

    def do_write(self, env, target, source):
        at = env[target].at[fnp.asarray(env["n"] % 3)]
        env[target] = at.set(fnp.sum(fnp.sin(env[source])))

    def do_product(self, env, target):
        env[target] = fit(fnp.tanh(env["m"] @ env["x"]), target)

    def do_index(self, env, target):
        inside = (env["n"] >= 0) & (env["n"] < 3)
        out = self.loops.cond(
            inside, lambda x, n: x[n], lambda x, n: 0.5 * x[0], env["x"], fnp.asarray(env["n"])
        )
        env[target] = fit(out, target)

    def do_root(self, env, target, source):
        s = fit(env[source], "s")
        env[target] = fit(
            self.loops.cond(s > 0.0, lambda s: fnp.sqrt(s) + fnp.log(s), lambda s: s * s, s), target
        )

    def do_cholesky(self, env, target, source):
        s = fit(env[source], "s")

        def factor(s):
            return fnp.sum(fnp.linalg.cholesky(fnp.array([[s, 0.1], [0.1, 1.0]])))

        env[target] = fit(self.loops.cond(s > 0.2, factor, lambda s: s, s), target)

    def do_scan(self, env, names, rows, stacked, target, length, reverse, unroll, statements):
        run = self.body(statements, env, names)

        def body(carry, row):
            carry, after = run(carry, **({} if row is None else {"y": row[:3], "t": row[3]}))
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
        env.update({name: fit(carry[name], name) for name in names})
        for name in stacked if length else ():
            y = fnp.asarray(ys[name])
            if y.dtype.kind == "b":
                y = fnp.asarray(y, "i8")
            weights = fnp.arange(1, length + 1, dtype=y.dtype).reshape((length,) + (1,) * (y.ndim - 1))
            env[target] = mixed(env[target], fnp.sum(y * weights, axis=0), target)

    def do_fori(self, env, names, lower, upper, counter, statements):
        run = self.body(statements, env, names)
        upper = env[upper] if isinstance(upper, str) else upper

        def body(i, carry):
            more = {"n": fnp.asarray(i, "i8")} if counter else {}
            return run(carry, **more)[0]

        carry = self.loops.fori_loop(lower, upper, body, {name: env[name] for name in names})
        env.update({name: fit(carry[name], name) for name in names})

    def do_while(self, env, names, bound, limit, statements):
        run = self.body(statements, env, names)
        bound = env[bound] if isinstance(bound, str) else bound

        def test(state):
            i, carry = state
            go = i < bound
            return go & (fnp.abs(carry["s"]) < limit) if "s" in names else go

        carry = {name: env[name] for name in names}
        _, carry = self.loops.while_loop(test, lambda state: (state[0] + 1, run(state[1])[0]), (0, carry))
        env.update({name: fit(carry[name], name) for name in names})

    def do_cond(self, env, names, test, first, second):
        branches = [self.body(b, env, names) for b in (first, second)]
        pred = env["b"] if test is None else fit(env[test[0]], "s") > test[1]
        operand = {name: fit(env[name], name) for name in names}
        out = self.loops.cond(
            pred,
            *[(lambda c, run=run: {k: fit(v, k) for k, v in run(c)[0].items()}) for run in branches],
            operand,
        )
        env.update(out)

    def do_switch(self, env, names, *blocks):
        operand = {name: fit(env[name], name) for name in names}
        runs = [self.body(b, env, names) for b in blocks]
        branches = [(lambda c, run=run: {k: fit(v, k) for k, v in run(c)[0].items()}) for run in runs]
        env.update(self.loops.switch(env["n"] - 1, branches, operand))


class Program:
    """Statements, from floats and ints to all variables."""

    def __init__(self, statements):
        self.statements = statements

    def run(self, loops, floats, ints):
        env = {name: fnp.asarray(value) for name, value in {**floats, **ints}.items()}
        after = Runner(loops).block(self.statements, env)
        return {name: fit(after[name], name) for name in TYPES}

    def native(self, floats, ints):
        return self.run(lax, floats, ints)

    def python(self, floats, ints):
        return self.run(Python, floats, ints)

    def __repr__(self):
        return f"Program({self.statements!r})"


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


@st.composite
def simple(draw):
    kind = draw(
        st.sampled_from(
            ["mix"] * 6
            + ["copy", "swap", "number", "element", "write", "product", "index", "root", "cholesky"]
        )
    )
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
        case "write":
            return kind, draw(st.sampled_from(["x", "y"])), draw(_floats)
        case "product" | "index":
            return kind, draw(_floats)
        case _:
            return kind, draw(_floats), draw(_floats)


@st.composite
def nested(draw, depth):
    kind = draw(st.sampled_from(["scan", "fori", "while", "cond", "switch"]))
    names = draw(_names)
    body = blocks(depth - 1)
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


def blocks(depth, most=3):
    """Lists of statements with loops up to a depth."""
    if not depth:
        return st.lists(simple(), min_size=1, max_size=most)
    return st.lists(st.one_of(simple(), nested(depth)), min_size=1, max_size=most)


@st.composite
def programs(draw, depth=3):
    """A program with at least one loop."""
    before = draw(st.lists(simple(), max_size=1))
    loop = draw(nested(draw(st.integers(1, depth))))
    return Program([*before, loop, *draw(st.lists(st.one_of(simple(), nested(1)), max_size=1))])


def point(seed, lanes=None):
    """Values of the variables, or lanes of them."""
    rng = np.random.default_rng(seed)
    batch = () if lanes is None else (lanes,)
    values = {
        name: np.asarray(rng.uniform(-1.2, 1.2, (*batch, *TYPES[name][0])), TYPES[name][1]) for name in FLOATS
    }
    ints = {
        name: np.asarray(rng.integers(0, 5, (*batch, *TYPES[name][0])) - 1, "i8").astype(TYPES[name][1])
        for name in INTS
    }
    return values, ints
