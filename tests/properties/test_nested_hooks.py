"""Random programs in nested layouts, with nonlinear hooks that read other values: all forms agree, in both orders."""

from dataclasses import dataclass

import numpy as np
import pytest
from generator.choices import Seeded
from generator.drawing import draw_program
from generator.libraries import Functrans
from generator.records import Statement

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

WEIGHTS = dict.fromkeys(("sin", "scale", "negative", "add", "subtract", "multiply", "blend", "jitted"), 1)


def in_a_loop(f):
    return lambda values: lax.scan(lambda carry, _: (carry, f(carry)), values, None, 1)[1][0]


LAYOUTS = {
    "plain": lambda f: f,
    "jit": ft.jit,
    "jit jit": lambda f: ft.jit(ft.jit(f)),
    "scan": in_a_loop,
    "cond": lambda f: lambda values: lax.cond(values[0] > -100.0, f, lambda v: 0.0 * f(v), values),
    "checkpoint": ft.checkpoint,
}
HOOKS = {
    "scaled": lambda ct, m: ct * (0.5 + 0.2 * m),
    "cubed": lambda ct, m: 0.1 * ct * ct * ct + m * ct,
    "squashed": lambda ct, m: fnp.tanh(ct + m),
    "shifted": lambda ct, m: ct + 0.3 * m,
}


@dataclass(frozen=True)
class Hook:
    """`kind` on the value at `place`, which reads the one at `read`; registered behind the statement `when`."""

    place: int
    kind: str
    read: int
    when: int
    attached: bool


@dataclass(frozen=True)
class Layers:
    """Statements in parts, each in a layout, with hooks."""

    statements: tuple[Statement, ...]
    parts: tuple[tuple[str, int], ...]  # a layout, and how many statements are in it
    hooks: tuple[Hook, ...]

    def __call__(self, x):
        values, first = [x], 0
        for layout, count in self.parts:
            new = LAYOUTS[layout](lambda known, first=first, count=count: self.part(known, first, count))(
                values
            )
            values += list(new)
            first += count
        return values[-1] + 0.1 * values[len(values) // 2]

    def part(self, known, first, count):
        """The values of some statements, from those before, as one array."""
        values = list(known)
        for k in range(first, first + count):
            (value,) = self.statements[k].run(Functrans(), values)
            values.append(value)
            for hook in self.hooks:
                if hook.when == k:
                    self.register(hook, values)
        return fnp.stack(values[len(known) :])

    def register(self, hook, values):
        kind, read = HOOKS[hook.kind], values[hook.read]
        fn = lambda ct: kind(ct, read)
        if hook.attached:
            ft.register_hook(values[hook.place], fn, mode="inline")
        else:
            values[hook.place] = ft.cotangent_hook(values[hook.place], fn, mode="inline")


def layered(choose):
    """Some statements in layouts, with up to four hooks."""
    drawn = draw_program(choose, WEIGHTS, most=7, depth=0, inputs=[np.asarray(0.3)])
    size, parts = len(drawn.statements), []
    while sum(count for _, count in parts) < size:
        count = choose.integer(1, size - sum(count for _, count in parts))
        parts.append((choose.of(tuple(LAYOUTS)), count))
    hooks = []
    for _ in range(choose.integer(1, 4)):
        when = choose.integer(0, size - 1)
        place, read = choose.integer(0, when + 1), choose.integer(0, when + 1)
        hooks.append(Hook(place, choose.of(tuple(HOOKS)), read, when, choose.chance(70)))
    return Layers(drawn.statements, tuple(parts), tuple(hooks))


FORMS = {
    "grad jit": lambda f: ft.grad(ft.jit(f)),
    "jit grad": lambda f: ft.jit(ft.grad(f)),
    "jit grad jit": lambda f: ft.jit(ft.grad(ft.jit(f))),
    "vmap grad": lambda f: lambda x: ft.vmap(ft.grad(f))(x[None])[0],
    "grad vmap jit": lambda f: lambda x: ft.grad(lambda xs: fnp.sum(ft.vmap(ft.jit(f))(xs)))(x[None])[0],
}


@pytest.mark.parametrize(
    "seed", [*range(6), *[pytest.param(s, marks=pytest.mark.slow) for s in range(6, 40)]]
)
def test_all_forms_agree_in_both_orders(seed):
    program, x = layered(Seeded(seed)), fnp.asarray(0.37)
    first, second = ft.grad(program)(x), ft.grad(ft.grad(program))(x)
    for name, form in FORMS.items():
        gradient = form(program)
        np.testing.assert_allclose(gradient(x), first, rtol=1e-9, atol=1e-12, err_msg=name)
        np.testing.assert_allclose(ft.grad(gradient)(x), second, rtol=1e-8, atol=1e-10, err_msg=name)
