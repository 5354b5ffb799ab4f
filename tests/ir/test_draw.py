"""Pictures of programs: what they show, that they are the same in every process, and that they stay small."""

import hashlib
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from generator import drawing
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans import ir, lax
from functrans.errors import ArgumentValueError, FunctransError, JaxprError
from functrans.passes.pictures import groups
from functrans.passes.pictures.graph import Graph, Node, Row
from functrans.passes.pictures.layout import place
from functrans.passes.pictures.picture import Drawn, graph_with_legend

SVG = "{http://www.w3.org/2000/svg}"


def controlled(x, w):
    """A loop, a loop of unknown length, a branch, a host call, and what may raise."""

    def body(c, row):
        c = fnp.tanh(w @ c + row)
        return c, c.sum()

    c, ys = lax.scan(body, x, np.ones((5, 3)))
    n, z = lax.while_loop(lambda s: s[0] < 3.0, lambda s: (s[0] + 1.0, s[1] * 2.0), (0.0, c))
    z = lax.cond(n > 2.0, lambda v: v * 2.0, lambda v: v - 1.0, z)
    ft.debug.print("{}", z)
    return z[2] + ys.sum() + np.linalg.cholesky(np.eye(3) * x).sum()


PROGRAM = ir.trace(controlled, np.ones(3), np.ones((3, 3)))


def texts(svg):
    """All that is written in a picture, without its style and what the mouse shows."""
    return [t.text for t in ET.fromstring(svg).iter(f"{SVG}text")]


def placed(jaxpr):
    graph, _ = graph_with_legend(Drawn(jaxpr))
    place(graph)
    return graph


def test_equations_have_their_primitive_type_and_line():
    svg = ir.to_svg(ir.trace(lambda x: fnp.sin(x) * 2.5, np.ones(3)))
    found = texts(svg)
    assert {"sin", "mul 2.5", "a:f64[3]", "b:f64[3]", "return c:f64[3]", "24 B"} <= {*found}
    assert sum(bool(re.fullmatch(r"test_draw\.py:\d+", t)) for t in found) == 2
    titles = [t.text for t in ET.fromstring(svg).iter(f"{SVG}title")]
    assert any("c:f64[3] = mul b 2.5" in t and "fnp.sin(x) * 2.5" in t for t in titles)


def test_bodies_are_frames_and_effects_are_marked():
    found = texts(ir.to_svg(PROGRAM))
    assert {"scan length=5", "while", "cond", "branch 0", "branch 1", "body", "tanh"} <= {*found}
    assert {"host", "may raise"} <= {*found}
    scan = next(n for n in placed(PROGRAM).nodes if n.rows[0].text == "scan length=5")
    for node in scan.parts[0].nodes:
        assert 0 <= node.x <= node.x + node.width <= scan.width
        assert 0 <= node.y <= node.y + node.height <= scan.height


def boxes_of(graph):
    yield graph
    for node in graph.nodes:
        for part in node.parts:
            yield from boxes_of(part)


def check_layout(graph):
    """Boxes do not overlap, arrows go down and end at their boxes."""
    for part in boxes_of(graph):
        for i, a in enumerate(part.nodes):
            for b in part.nodes[:i]:
                apart = a.x + a.width <= b.x or b.x + b.width <= a.x
                assert apart or a.y + a.height <= b.y or b.y + b.height <= a.y
        for e in part.edges:
            ys = [y for _, y in e.points]
            assert ys == sorted(ys)
            (x, y), (x1, y1) = e.points[0], e.points[-1]
            assert e.source.x <= x <= e.source.x + e.source.width
            assert y == e.source.y + e.source.height
            assert e.target.x <= x1 <= e.target.x + e.target.width
            assert y1 == e.target.y


def test_boxes_do_not_overlap():
    check_layout(placed(PROGRAM))
    check_layout(placed(ir.trace(ft.grad(controlled), np.ones(3), np.ones((3, 3)))))


def traced(program):
    """The jaxpr of a drawn program, if its statements suit each other."""
    try:
        return ir.trace(program, *program.inputs)
    except FunctransError:
        reject()


@settings(max_examples=15, suppress_health_check=[*HealthCheck], deadline=None)
@given(drawing.programs(drawing.WITHOUT_NUMBA, most=6))
def test_any_program_has_a_picture(program):
    jaxpr = traced(program)
    svg = ir.to_svg(jaxpr)
    ET.fromstring(svg)
    assert svg == ir.to_svg(ir.trace(program, *program.inputs))
    assert ir.to_dot(jaxpr) == ir.to_dot(jaxpr)
    check_layout(placed(jaxpr))


SCRIPT = """
import hashlib, numpy as np, functrans as ft, functrans.numpy as fnp
from functrans import ir
def f(ws, x):
    for w in ws:
        x = fnp.tanh(x @ w)
    return (x * x).sum()
g = ft.jit(ft.grad(f)).lower([np.ones((3, 3))] * 6, np.ones(3))
print(hashlib.sha256((ir.to_svg(g) + ir.to_svg(g.jaxpr) + ir.to_dot(g)).encode()).hexdigest())
"""


def test_a_program_has_the_same_picture_in_every_process():
    found = set()
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        assert done.returncode == 0, done.stderr
        found.add(done.stdout)
    assert len(found) == 1
    assert len(found.pop().strip()) == len(hashlib.sha256().hexdigest())


def unrolled(x, steps):
    kept = []
    for _ in range(steps):
        x = fnp.sin(x) * 2.0
        kept.append(x)
    return sum(kept[::10])


def test_long_programs_have_few_boxes():
    short, long = (ir.trace(lambda x, n=n: unrolled(x, n), np.ones(3)) for n in (90, 900))
    assert len(short.eqns) < 200 < len(long.eqns)
    assert sum(n.kind == "eqn" for n in placed(short).nodes) == len(short.eqns)
    groups = [n for n in placed(long).nodes if n.kind == "group"]
    assert 20 <= len(groups) <= 90
    assert sum(int(n.rows[0].text.split()[0]) for n in groups) == len(long.eqns)
    check_layout(placed(long))


def test_long_bodies_are_folded():
    def body(c, _):
        return unrolled(c, 60), None

    def f(x):
        for _ in range(8):
            x = lax.scan(body, x, None, length=3)[0]
        return x

    graph = placed(ir.trace(f, np.ones(3)))
    assert sum(len(part.nodes) for part in boxes_of(graph)) < 250
    check_layout(graph)


def test_wide_programs_wrap():
    jaxpr = ir.trace(lambda x: [fnp.sin(x) + i for i in range(80)], np.ones(3))
    graph = placed(jaxpr)
    assert graph.width < 6000
    check_layout(graph)


def test_a_lowered_function_has_the_colours_of_its_kernels():
    def f(x):
        y = fnp.exp(x)
        return np.linalg.eigvals(y.reshape(2, 2)).real.sum() + fnp.sin(y)

    lowered = ft.jit(f).lower(np.ones(4))
    svg = ir.to_svg(lowered)
    assert {"kernel 1", "kernel 2", "host call"} <= {*texts(svg)}
    assert svg == ir.to_svg(lowered.compile())
    jaxpr, numbers = lowered.drawn()
    assert {jaxpr.eqns[0].primitive.name, "eig"} <= {e.primitive.name for e in numbers}
    assert {*numbers.values()} == {-1, 0, 1}


def test_draw_writes_what_the_name_says(tmp_path):
    ir.draw(PROGRAM, tmp_path / "a.svg")
    ir.draw(PROGRAM, str(tmp_path / "a.dot"))
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == ir.to_svg(PROGRAM)
    assert (tmp_path / "a.dot").read_text(encoding="utf-8") == ir.to_dot(PROGRAM)
    with pytest.raises(ArgumentValueError, match=r"\.svg.*\.dot"):
        ir.draw(PROGRAM, tmp_path / "a.png")
    with pytest.raises(ArgumentValueError, match="path must be a str or a path, got 3"):
        ir.draw(PROGRAM, 3)
    for function in (ir.to_svg, ir.to_dot, lambda x: ir.draw(x, "a.svg")):
        with pytest.raises(JaxprError, match="expected a Jaxpr"):
            function(np.sin)


def test_strange_names_are_text():
    def f(x):
        return x

    f.__name__ = 'a "quoted" <name> & \x07'
    jaxpr = ir.trace(f, np.ones((0, 2)))
    root = ET.fromstring(ir.to_svg(jaxpr))
    assert root.get("aria-label") == 'a "quoted" <name> & \ufffd'
    assert "digraph" in ir.to_dot(jaxpr)


def test_a_long_name_has_a_margin_on_both_sides():
    def width(name):
        jaxpr = ir.trace(named(lambda x: x, name), 1.0)
        return float(ET.fromstring(ir.to_svg(jaxpr)).get("width"))

    def named(f, name):
        f.__name__ = name
        return f

    long = 200 * "x"
    letters = 200 * 14 * 0.602  # a letter of a font of fixed width is 0.602 of its size wide
    assert width(long) == pytest.approx(letters + 32, abs=1)
    assert width("f") < width(long)


def naive_merged(sizes, labels, most):
    """As `_merged`, by looking at all neighbours each time: lists of the first and last number of each run."""
    average = 1 + sum(sizes) // most
    parts = [(i, i) for i in range(len(sizes))]

    def price(left, right):
        size = sum(sizes[left[0] : right[1] + 1])
        return size + (0 if labels[left[1]] == labels[right[0]] else 2 * average), left[0]

    while len(parts) > most:
        k = min(range(len(parts) - 1), key=lambda k: price(parts[k], parts[k + 1]))
        parts[k : k + 2] = [(parts[k][0], parts[k + 1][1])]
    return parts


@given(
    st.lists(st.tuples(st.integers(1, 9), st.sampled_from("abc")), min_size=1, max_size=30),
    st.integers(1, 12),
)
def test_runs_merge_from_the_smallest_on(parts, most):
    sizes, labels = zip(*parts)
    start = np.cumsum([0, *sizes])
    numbered = [[(int(n), label) for n in range(a, a + s)] for a, s, label in zip(start, sizes, labels)]
    merged = groups._merged(numbered, most, lambda e: e[1])
    expected = naive_merged(sizes, labels, most) if len(sizes) > most else [(i, i) for i in range(len(sizes))]
    assert [(part[0][0], part[-1][0]) for part in merged] == [
        (start[a], start[b + 1] - 1) for a, b in expected
    ]


def test_graphs_of_any_shape():
    """Unused inputs, no equations, an output twice, nothing at all."""
    for f in (lambda x, y: x, lambda x, y: (), lambda x, y: (y, y, 1.0)):
        jaxpr = ir.trace(f, 1.0, np.ones(2))
        ET.fromstring(ir.to_svg(jaxpr))
        check_layout(placed(jaxpr))
    empty = Graph()
    place(empty)
    assert (empty.width, empty.height) == (0.0, 0.0)
    lone = Graph([Node("eqn", [Row("name", "x")])])
    place(lone)
    assert lone.width > 0


def test_notebooks_show_the_picture_and_fold_long_ones():
    html = PROGRAM._repr_html_()
    assert html.startswith("<details open>")
    assert "<svg" in html
    assert "<pre>lambda" in html
    long = ir.trace(lambda x: unrolled(x, 100), np.ones(3))
    assert long._repr_html_().startswith("<details><summary><code>&lt;lambda&gt;</code>: ")
    assert "def " in ft.jit(lambda x: fnp.sin(x)).lower(1.0)._repr_html_()
