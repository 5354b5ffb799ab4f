"""Profiles: which lines have the time, that it adds up, and that programs are as before afterwards."""

import gzip
import inspect
import json
import threading
import time
from xml.etree import ElementTree

import numba
import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.core.trace import EvalTrace
from functrans.errors import ArgumentError, ArgumentValueError, ProfileError

X = np.random.default_rng(0).normal(size=(300, 300)) / 20
V = np.linspace(0.0, 1.0, 1000)


def line_of(text, function):
    """The number of the line of a function that has a text."""
    lines, first = inspect.getsourcelines(function)
    (number,) = [first + n for n, line in enumerate(lines) if text in line]
    return number


def seconds(p, number, kind="kernel", backward=False):
    """What a line has of a kind, in this file."""
    return sum(
        x.seconds.get(kind, 0.0)
        for x in p.lines
        if x.filename == __file__ and x.line == number and x.backward == backward
    )


def of_kind(p, kind):
    return sum(x.seconds.get(kind, 0.0) for x in p.lines)


def two_lines(x):
    y = x @ x @ x @ x  # heavy
    return y[0] + 1.0  # light


def test_kernel_time_goes_to_the_line_that_computes():
    f = ft.jit(two_lines)
    with ft.profile() as p:
        f(X)
    heavy, light = (seconds(p, line_of(word, two_lines)) for word in ("# heavy", "# light"))
    assert heavy > 10 * light >= 0.0
    assert {"trace", "lower"} <= {kind for x in p.lines for kind in x.seconds}


def test_times_add_up_to_the_whole():
    f = ft.jit(ft.grad(lambda x: fnp.sum(fnp.tanh(two_lines(x)))))
    with ft.profile() as p:
        for _ in range(3):
            f(X)
    assert p.total == pytest.approx(p.seconds, rel=0.03)
    assert sum(x.total for x in p.lines) == p.total


def loss(x):
    y = x @ x @ x  # product
    return fnp.sum(y)


def test_backward_times_have_the_forward_line():
    f = ft.jit(ft.grad(loss))
    with ft.profile() as p:
        f(X)
    number = line_of("# product", loss)
    forward, backward = (seconds(p, number, backward=b) for b in (False, True))
    assert forward > 0.0
    assert backward > 0.0
    assert f"test_profile.py:{number} (backward)" in str(p)


def test_eager_gradients_have_the_forward_line_too():
    with ft.profile() as p:
        ft.grad(loss)(X)
    number = line_of("# product", loss)
    assert seconds(p, number, "eager") > 0.0
    assert seconds(p, number, "eager", backward=True) > 0.0


def scanned(x):
    def body(c, row):
        d = fnp.tanh(c @ x)  # heavy in scan
        return d, fnp.sum(row)  # light in scan

    return lax.scan(body, x, x)


def test_bodies_of_scans_are_timed_nest_by_nest():
    f = ft.jit(lambda x: scanned(x)[0])
    x = X[:100, :100].copy()
    with ft.profile() as p:
        f(x)
    (heavy,) = [x for x in p.lines if x.line == line_of("# heavy in scan", scanned)]
    assert heavy.calls >= 100
    assert heavy.seconds["kernel"] > 0.5 * of_kind(p, "kernel")
    assert heavy.bytes_read >= 100 * 3 * 80_000
    small = seconds(p, line_of("# light in scan", scanned))
    assert heavy.seconds["kernel"] > 2 * small


def halving(x):
    def body(c):
        n, y = c
        return n + 1, fnp.tanh(y @ x)  # while body

    return fnp.sum(lax.while_loop(lambda c: c[0] < 20, body, (0, x))[1])


def test_while_loops_under_grad():
    f = ft.jit(ft.grad(halving))
    x = X[:100, :100].copy()
    with ft.profile() as p:
        f(x)
    number = line_of("# while body", halving)
    both = seconds(p, number), seconds(p, number, backward=True)
    assert min(both) > 0.0
    assert "(no line)" not in [
        x.filename for x in p.lines if "kernel" in x.seconds
    ]  # copies have the readers' lines


def test_loops_of_tiny_bodies_are_divided_by_estimate():
    def tiny(x):
        def body(c, row):
            a = fnp.sin(fnp.cos(fnp.exp(c + row)))  # three functions
            return a, -row  # negation

        return lax.scan(body, 0.0, x)

    f = ft.jit(tiny)
    with ft.profile() as p:
        f(V)
    many, few = seconds(p, line_of("# three functions", tiny)), seconds(p, line_of("# negation", tiny))
    assert many > few > 0.0


@numba.njit
def slow(x):
    total = 0.0
    for _ in range(300):
        for i in range(x.size):
            total += np.sin(x[i])
    return total


def with_njit(x):
    y = ft.numba_call(slow, result_shape_dtypes=ft.ShapeDtypeStruct((), "float64"))(x)  # njit code
    return y + fnp.sum(x)


def test_numba_call_has_the_time_of_its_code():
    f = ft.jit(with_njit)
    with ft.profile() as p:
        f(V)
    number = line_of("# njit code", with_njit)
    assert seconds(p, number) + seconds(p, number, "host") > 0.5 * (of_kind(p, "kernel") + of_kind(p, "host"))


def sleepy(x):
    time.sleep(0.01)
    return x


def hosted(x):
    y = ft.pure_callback(sleepy, ft.ShapeDtypeStruct(x.shape, x.dtype), x)  # between kernels
    return y * 2.0


def hosted_in_loop(x):
    def body(i, c):
        return ft.pure_callback(sleepy, ft.ShapeDtypeStruct(c.shape, c.dtype), c)  # in a kernel

    return lax.fori_loop(0, 3, body, x)


@pytest.mark.parametrize(
    ("f", "text", "least"), [(hosted, "# between kernels", 0.01), (hosted_in_loop, "# in a kernel", 0.03)]
)
def test_host_calls_are_not_kernel_time(f, text, least):
    g = ft.jit(f)
    with ft.profile() as p:
        g(V)
    assert seconds(p, line_of(text, f), "host") >= least
    assert of_kind(p, "kernel") < least / 2
    assert p.total == pytest.approx(p.seconds, rel=0.03)


def with_hook(x):
    y = fnp.sin(x)
    ft.register_hook(y, sleepy)  # hook
    return fnp.sum(y)


def test_host_hooks():
    f = ft.grad(with_hook)
    with ft.profile() as p:
        f(V)
    assert p.total == pytest.approx(p.seconds, rel=0.03)
    assert p.seconds > 0.01


def test_a_host_call_that_runs_kernels_does_not_have_their_time():
    inner = ft.jit(two_lines)

    def outer(x):
        def body(i, c):
            return ft.pure_callback(  # calls
                lambda a: inner(X) + a, ft.ShapeDtypeStruct(c.shape, c.dtype), c
            )

        return lax.fori_loop(0, 5, body, x)

    f = ft.jit(outer)
    inner(X)
    f(X[0])
    with ft.profile() as p:
        f(X[0])
    with ft.profile() as p:
        f(X[0])
    assert seconds(p, line_of("# heavy", two_lines)) > 0.0
    assert p.total == pytest.approx(p.seconds, rel=0.03)


# --- programs of other times --------------------------------------------------------------------------------


def test_programs_are_as_before_afterwards():
    traced = []

    @ft.jit
    def f(x):
        traced.append(1)
        return fnp.sin(x) * 2.0

    f(V), f(V), f(V)
    fast, process = f._cache.latest, EvalTrace.process
    assert fast.match((V,))
    with ft.profile():
        assert np.array_equal(f(V), np.asarray(f(V)))
        assert f._cache.latest is not fast
        assert EvalTrace.process is not process
    f(V)
    assert f._cache.latest is fast
    assert EvalTrace.process is process
    assert traced == [1]  # and it is not traced again


def test_results_are_the_same_bits():
    f = ft.jit(ft.grad(halving))
    x = X[:50, :50].copy()
    before = f(x)
    with ft.profile():
        assert np.array_equal(f(x), before)


def test_lowered_text_is_that_of_other_times():
    f = ft.jit(loss)
    plain = f.lower(X).as_text()
    f(X)
    with ft.profile():
        f(X)
    assert f.lower(X).as_text() == plain


# --- threads ------------------------------------------------------------------------------------------------


def test_the_pool_has_tracks_of_its_own(tmp_path):
    f = ft.jit(lambda x: fnp.sum(fnp.exp(fnp.sin(x))))
    x = np.linspace(0, 1, 2_000_000)
    with ft.config.patch(num_threads=2), ft.profile() as p:
        f(x), f(x)
    p.save(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert any(e["name"].startswith("chunk of") for e in events)
    names = {e["args"]["name"] for e in events if e["ph"] == "M"}
    assert "MainThread" in names
    assert all(e["dur"] >= 0 for e in events if e["ph"] == "X")


def test_all_threads_are_in_it():
    f = ft.jit(two_lines)
    threads = [threading.Thread(target=lambda: [f(X) for _ in range(3)]) for _ in range(2)]
    with ft.profile() as p:
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    (heavy,) = [x for x in p.lines if x.line == line_of("# heavy", two_lines)]
    assert heavy.calls >= 6


# --- reading it ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def profiled():
    f = ft.jit(ft.grad(loss))
    with ft.profile() as p:
        f(X)
        fnp.sin(V)
    return p


def test_table(profiled):
    text = str(profiled)
    head, _, *rows = text.splitlines()
    assert head.split()[:3] == ["share", "time", "kernels"]
    assert rows[-1].split()[0] == "100.0"
    assert "y = x @ x @ x  # product" in text
    assert profiled.lines[0].filename == __file__  # own file first
    assert "<table>" in profiled._repr_html_()


def test_annotate(profiled, capsys):
    profiled.annotate()
    text = capsys.readouterr().out
    (row,) = [r for r in text.splitlines() if "# product" in r]
    assert row.split("|")[0].split()[-1] == str(line_of("# product", loss))
    with pytest.raises(ArgumentValueError, match=r"no time was recorded for .other\.py"):
        profiled.annotate("other.py")


def test_flame_graph(profiled):
    root = ElementTree.fromstring(profiled.to_svg())
    titles = [e.text for e in root.iter("{http://www.w3.org/2000/svg}title")]
    assert any("# product" in t for t in titles)
    boxes = [float(e.get("width")) for e in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert max(boxes) <= 1180.0


def test_trace_is_nested(profiled, tmp_path):
    path = tmp_path / "t.json"
    profiled.save(path)
    events = [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]
    (kernel,) = [e for e in events if e["name"] == "loss"]
    inside = [
        e
        for e in events
        if e is not kernel
        and not e["name"].startswith("chunk")  # of a loop, whose time is there
        and e["tid"] == kernel["tid"]
        and e["ts"] >= kernel["ts"] - 0.01
        and e["ts"] + e["dur"] <= kernel["ts"] + kernel["dur"] + 0.01
    ]
    assert any("dot_general" in e["name"] for e in inside)
    assert sum(e["dur"] for e in inside) == pytest.approx(kernel["dur"], rel=0.03)
    with pytest.raises(ArgumentValueError, match=r"\.json"):
        profiled.save(tmp_path / "t.txt")


# --- using it -----------------------------------------------------------------------------------------------


def test_it_must_be_closed_to_be_read():
    p = ft.profile()
    with pytest.raises(ProfileError, match="nothing was recorded"):
        str(p)
    with p:
        for read in (lambda: p.lines, lambda: str(p), p.annotate, p.to_svg, lambda: p.total):
            with pytest.raises(ProfileError, match="still open"):
                read()
        with pytest.raises(ProfileError, match="open already"), p:
            pass
        assert repr(p) == "<profile, open>"
    assert p.seconds > 0.0


def test_nested_profiles_each_have_what_happens_while_they_are_open():
    f = ft.jit(two_lines)
    f(X)
    heavy = line_of("# heavy", two_lines)

    def calls(p):
        return sum(x.calls for x in p.lines if x.line == heavy and x.seconds.get("kernel"))

    with ft.profile() as outer:
        f(X)
        with ft.profile() as inner:
            f(X), f(X)
        f(X)
    assert calls(outer) == 2 * calls(inner) > 0


def test_decorator_adds_up():
    p = ft.profile()

    @p
    def work(n):
        """Help."""
        return ft.jit(two_lines)(X) if n == 0 else work(n - 1)

    work(2)
    once = sum(x.calls for x in p.lines if x.seconds.get("kernel"))
    work(0)
    assert sum(x.calls for x in p.lines if x.seconds.get("kernel")) == 2 * once > 0
    assert work.__doc__ == "Help."
    with pytest.raises(ArgumentError, match="decorates a function"):
        p(3)


def test_an_error_in_the_block_closes_it():
    process = EvalTrace.process
    with pytest.raises(ZeroDivisionError), ft.profile() as p:
        1 / 0
    assert EvalTrace.process is process
    assert p.seconds >= 0.0


def test_clear_caches_inside():
    f = ft.jit(two_lines)
    with ft.profile() as p:
        f(X)
        ft.clear_caches()
        f(X)
    assert sum(x.calls for x in p.lines if x.line == line_of("# heavy", two_lines)) >= 2


def test_kernels_as_python_are_timed_as_a_whole():
    f = ft.jit(lambda x: fnp.sum(fnp.sin(x)) * 2.0)
    with ft.config.patch(backend="python"), ft.profile() as p:
        f(V)
    assert of_kind(p, "kernel") > 0.0


# --- JAX's names --------------------------------------------------------------------------------------------


def traced_names(folder):
    """The names of the events in the one trace below a folder."""
    (path,) = folder.rglob("*.json.gz")
    return {e["name"] for e in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]}


def test_annotations_are_in_the_trace(tmp_path):
    @ft.profiler.annotate_function(name="named")
    def work():
        with ft.profiler.TraceAnnotation("part", step=3):
            return fnp.sin(V)

    with ft.profiler.trace(tmp_path), ft.profiler.StepTraceAnnotation("train", step_num=7):
        work()
    work()  # without a profile they do nothing
    assert {"named", "part step=3", "train step_num=7", "sin"} <= traced_names(tmp_path)
    with pytest.raises(ArgumentError, match="name must be a str"):
        ft.profiler.TraceAnnotation(3)
    with pytest.raises(ArgumentError, match="must be callable"):
        ft.profiler.annotate_function(3)
    with pytest.raises(ArgumentError, match="StepTraceAnnotation: name must be a str"):
        ft.profiler.StepTraceAnnotation(3)


def test_a_trace_without_a_block(tmp_path):
    ft.profiler.start_trace(tmp_path / "first")
    with pytest.raises(ProfileError, match="running already"):
        ft.profiler.start_trace(tmp_path / "second")
    fnp.sin(V)
    ft.profiler.stop_trace()
    fnp.cos(V)
    names = traced_names(tmp_path / "first")
    assert "sin" in names
    assert "cos" not in names
    assert not (tmp_path / "second").exists()
    with pytest.raises(RuntimeError, match="no trace is running"):
        ft.profiler.stop_trace()
    with pytest.raises(ArgumentError, match="log_dir must be a str or a path"):
        ft.profiler.start_trace(3)
    ft.profiler.start_trace(tmp_path / "third")  # what was refused is not running
    ft.profiler.stop_trace()
    assert traced_names(tmp_path / "third") is not None
