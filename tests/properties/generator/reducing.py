"""Smaller programs that fail in the same way: statements become the values that they give, as far as possible."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .drawing import NUMPY, Program
from .records import Block, Statement, scoped


@scoped("given", weight=0)(lambda scope: None)
def run_given(lib, params, values):
    """Fixed values: what remains of a statement that does not matter."""
    return [lib.np.asarray(v) for v in params]


def reduced(program: Program, fails: Callable[[Program], bool]) -> Program:
    """The program with as few statements and outputs as fail."""
    smaller = True
    while smaller:
        smaller = False
        for candidate in (*_fewer_outs(program), *_fewer_statements(program)):
            if fails(candidate):
                program, smaller = candidate, True
                break
    return program


def _fewer_outs(program: Program) -> Iterator[Program]:
    for k in range(len(program.outs) if len(program.outs) > 1 else 0):
        yield replace(program, outs=program.outs[:k] + program.outs[k + 1 :])


def _fewer_statements(program: Program) -> Iterator[Program]:
    for statements in _simpler(program.statements, program.inputs):
        yield replace(program, statements=statements)


def _simpler(statements: tuple[Statement, ...], around: Any) -> Iterator[tuple[Statement, ...]]:
    """Statements of which one is replaced, or a block within one is simpler."""
    values = list(around)
    for k, statement in enumerate(statements):
        found = statement.run(NUMPY, values)
        if statement.kind != "given":
            given = Statement("given", (), [np.asarray(v) for v in found])
            yield (*statements[:k], given, *statements[k + 1 :])
        for simpler in _with_simpler_blocks(statement):
            yield (*statements[:k], simpler, *statements[k + 1 :])
        values += found


def _with_simpler_blocks(statement: Statement) -> Iterator[Statement]:
    """In a block, a statement becomes one of the other statements' kind of least work: the sum of what it reads."""
    if not hasattr(statement.params, "_fields"):
        return
    for name in statement.params._fields:
        block = getattr(statement.params, name)
        if isinstance(block, Block):
            for k, inner in enumerate(block.statements):
                if inner.kind != "sin" and inner.operands:
                    plain = Statement("sin", inner.operands[:1], 0)
                    statements = (*block.statements[:k], plain, *block.statements[k + 1 :])
                    yield statement._replace(
                        params=statement.params._replace(**{name: block._replace(statements=statements)})
                    )
            if block.statements and len(block.statements) > 1:
                shorter = block._replace(
                    statements=block.statements[:-1],
                    outs=tuple(min(o, block_last(block) - 1) for o in block.outs),
                )
                yield statement._replace(params=statement.params._replace(**{name: shorter}))


def block_last(block: Block) -> int:
    return max([*block.outs, *[i for s in block.statements for i in s.operands]])
