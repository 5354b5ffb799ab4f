"""Programs as text, in each form, with the user's lines."""

import platform

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.errors import ArgumentValueError


def f(x):
    y = fnp.exp(x)  # the first line
    ft.debug.callback(print, y)
    z = lax.fori_loop(0, 3, lambda i, z: z * 2.0, y)
    return fnp.sum(z)  # the last line


LOWERED = ft.jit(f).lower(np.ones(4))


def test_the_default_is_the_traced_program():
    assert LOWERED.as_text() == LOWERED.as_text("jaxpr") == str(LOWERED.jaxpr)


@pytest.mark.parametrize(
    ("dialect", "comment", "inside"),
    [
        ("loops", "#", "in b0: f64[4]"),
        ("python", "#", "def f("),
        ("llvm", ";", "define"),
        ("jaxpr", "#", "reduce_sum"),
        ("asm", "//" if platform.machine() == "aarch64" else "#", "ret"),
    ],
)
def test_each_kernel_has_the_lines_that_it_computes(dialect, comment, inside):
    compiled = LOWERED.compile()
    text = compiled.as_text(dialect)
    assert inside in text
    if dialect not in ("jaxpr", "asm"):
        assert LOWERED.as_text(dialect) == text
    head = [line for line in text.splitlines() if line.startswith(f"{comment} ")]
    assert f"{comment} kernel 1 of 1, which computes" in head
    for line in ("y = fnp.exp(x)  # the first line", "return fnp.sum(z)  # the last line", "z * 2.0"):
        assert any("test_texts.py:" in shown and line in shown for shown in head)
    assert any("host call:  debug_callback[callback=print]" in shown for shown in head)


def test_forms_that_do_not_exist():
    with pytest.raises(
        ArgumentValueError,
        match=r"lowered function f: dialect .*'llvm'; after .compile\(\) also 'asm', got 'asm'",
    ):
        LOWERED.as_text("asm")
    with pytest.raises(ArgumentValueError, match=r"compiled function f: dialect .*'asm', got 'hlo'"):
        LOWERED.compile().as_text("hlo")
    with pytest.raises(ArgumentValueError, match="got 3"):
        LOWERED.as_text(3)


def test_functions_with_donated_arguments_have_texts_too():
    lowered = ft.jit(lambda x: x + 1.0, donate_argnums=0).lower(np.ones(300))
    assert "(update)" in lowered.as_text("python")
    assert "update b0" in lowered.as_text("loops")
    assert "define" in lowered.compile().as_text("llvm")
