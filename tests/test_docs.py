"""The pages tell the truth: their code runs, prints what they say, and their links lead somewhere."""

import contextlib
import doctest
import importlib
import importlib.util
import inspect
import io
import linecache
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import special

import functrans as ft
from functrans.runtime.config import config

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
PAGES += sorted(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts)
PACKAGE = ROOT / "functrans"
MODULES = sorted(
    ".".join(("functrans", *p.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for p in PACKAGE.rglob("*.py")
    if ">>> " in p.read_text()
)
MODULES.append("functrans.errors")  # gives the classes in its files its own name
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def _as_a_reader_sees_it():
    """Default printing and options, whatever tests ran before."""
    linecache.clearcache()  # of each file in it, doctest asks whether it changed, at each example
    printing = np.printoptions(precision=8, threshold=1000, linewidth=75, suppress=False, floatmode="maxprec")
    with printing, config.patch(verify=True):
        yield


def blocks(text):
    """Fenced blocks of a page: (language, body, line of the body's first line)."""
    return [(m[1], m[2], text.count("\n", 0, m.start(2)) + 1) for m in FENCE.finditer(text)]


def run_session(body, names, page, line):
    """A block of ``>>>`` lines."""
    test = doctest.DocTestParser().get_doctest(body, names, page.name, str(page), line - 1)
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(test, out=report.write, clear_globs=False)
    names.update(test.globs)  # the parser copies the names it is given
    assert runner.summarize(verbose=False).failed == 0, report.getvalue()


def run_program(body, names, page, line):
    """A block of plain statements; returns what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        # Compiled under the page's own name and line, so that messages can show the user's line.
        exec(compile("\n" * (line - 1) + body, str(page), "exec"), names)
    return printed.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_code_on_a_page(page):
    names = {"__name__": "__page__"}
    printed = None
    for language, body, line in blocks(page.read_text()):
        if language == "python" and body.startswith(">>>"):
            run_session(body, names, page, line)
            printed = None
        elif language == "python":
            printed = run_program(body, names, page, line)
        elif language == "text" and printed is not None:
            assert body == printed, f"{page.name}:{line}: what the block above prints"
            printed = None


def test_readme_states_its_output():
    text = (ROOT / "README.md").read_text()
    languages = [language for language, _, _ in blocks(text)]
    assert languages.index("text") == languages.index("python") + 1
    assert len(blocks(text)[languages.index("python")][1].splitlines()) < 20
    assert all(f"<!-- ci: {name} -->" in text for name in ("example", "tests", "slow tests", "docs"))


def test_the_rule_on_the_page_of_differences_works_under_every_transformation():
    page = ROOT / "docs" / "differences.md"
    body, line = next((b, n) for _, b, n in blocks(page.read_text()) if "class Digamma" in b)
    names = {"__name__": "__page__", "ft": ft, "np": np}
    run_session(body, names, page, line)
    f, x = names["Digamma"].apply, np.array([1.0, 2.0])
    values, slopes, curves = special.digamma(x), special.polygamma(1, x), special.polygamma(2, x)
    of_each = lambda g: [ft.vmap(g)(x), ft.jit(ft.vmap(g))(x), ft.vmap(ft.jit(g))(x), [g(a) for a in x]]
    for results, expected in (
        ([*of_each(f), f(x), ft.jit(f)(x)], values),
        ([*of_each(ft.grad(f)), *of_each(ft.grad(ft.jit(f))), *of_each(ft.jacfwd(f))], slopes),
        ([*of_each(lambda a: ft.jvp(f, (a,), (1.0,))[1]), np.diag(ft.jacrev(f)(x))], slopes),
        ([ft.jit(ft.grad(lambda x: ft.lax.scan(lambda c, a: (c + f(a), c), 0.0, x)[0]))(x)], slopes),
        (of_each(ft.hessian(f)), curves),
    ):
        for result in results:
            np.testing.assert_allclose(result, expected, rtol=1e-12)


def anchors(page):
    """The fragments that links to a page may name, as GitHub and MyST make them from its headings."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    text = FENCE.sub("", page.read_text())
    for target, fragment in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", text):
        if "://" not in target:
            to = page.parent / target if target else page
            assert to.exists(), f"{page.name}: {target}"
            assert not fragment or fragment in anchors(to), f"{page.name}: {target}#{fragment}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_named_files_exist(page):
    text = FENCE.sub("", page.read_text())
    pattern = r"`((?:functrans|tests|examples|docs|benchmarks)/[\w/.]*)`"
    for path in re.findall(pattern, text):
        assert (ROOT / path).exists() or "FAMILY" in path, f"{page.name}: {path}"


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    module = importlib.import_module(name)
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        runner.run(test, out=report.write)
    assert runner.summarize(verbose=False).failed == 0, report.getvalue()


@pytest.mark.parametrize("namespace", ["numpy", "scipy.special"])
def test_examples_of_ufuncs(namespace):
    """Their docstrings are put together from parts, so `test_docstrings` does not come by them."""
    module = importlib.import_module(f"functrans.{namespace}")
    public = [getattr(module, name) for name in module.__all__]
    functions = {
        f
        for f in public
        if getattr(f, "__globals__", {}).get("__name__", "").startswith("functrans.primitives")
    }
    for f in sorted(functions, key=lambda f: f.__name__):
        assert ">>> " in f.__doc__, (
            f"{namespace}.{f.__name__}: an example, its argument or in functrans.primitives.ufunc_examples"
        )
        run_session(f.__doc__, {}, PACKAGE / "primitives" / "ufunc_examples.py", 1)


def test_examples_of_strict_functions():
    """Those of `lax.special` are made by `lax.elementwise`, so `test_docstrings` does not come by them."""
    from functrans.lax import special

    for name in special.__all__:
        run_session(getattr(special, name).__doc__, {}, PACKAGE / "lax" / "elementwise_examples.py", 1)


SCRIPTS = ROOT / "docs" / "scripts"


def script_of_docs(name):
    if str(SCRIPTS) not in sys.path:
        sys.path.insert(0, str(SCRIPTS))  # they import one another
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


REFERENCE = script_of_docs("reference_pages")
OF_ERRORS_AND_TESTS = ("functrans.errors", "functrans.testing")


@pytest.mark.parametrize("namespace", [n for n in REFERENCE.NAMESPACES if n not in OF_ERRORS_AND_TESTS])
def test_public_functions_have_examples(namespace):
    exported = REFERENCE.exported(importlib.import_module(namespace))
    missing = [
        name
        for name, actual in exported
        if callable(actual)
        and not isinstance(actual, type)
        and actual.__module__.startswith("functrans")
        and ">>> " not in (actual.__doc__ or "")
    ]
    assert missing == [], "no example in the docstrings of these"


def test_reference_has_every_public_name():
    """Each object on a page of its own, under one subject of its namespace, and its other names lead there."""
    modules = {name for name in ft.__all__ if inspect.ismodule(getattr(ft, name))}
    assert {namespace.split(".")[1] for namespace in REFERENCE.NAMESPACES[1:]} == modules
    entries = REFERENCE.entries()
    for namespace in REFERENCE.NAMESPACES:
        module = REFERENCE.module_of(namespace)
        described, others = set(entries), set(REFERENCE.foreign(namespace))
        for name, value in REFERENCE.exported(module):
            full = f"{namespace}.{name}"
            assert (full in described) != (name in others), full
            if full in described:
                assert entries[full].value is value
                assert inspect.getdoc(value), f"{full}: no docstring"
                assert REFERENCE.summary(value), f"{full}: no summary"
        listed = [name for names in REFERENCE.tables(namespace).values() for name in names]
        assert len(listed) == len(set(listed))
    alone = [e for e in entries.values() if e.page == e.name]
    assert len({id(e) for e in alone}) == len({e.page for e in alone}) > 1200
    assert REFERENCE.entries()["functrans.jacobian"].name == "functrans.jacobian"
    assert REFERENCE.siblings()["functrans.numpy.arctan2"][1] == "Trigonometric and hyperbolic functions"


def test_code_on_pages_is_linked_to_what_it_names():
    pytest.importorskip("sphinx")
    resolve = script_of_docs("linking").resolve
    assert resolve("jit") == resolve("ft.jit") == resolve("@jit") == "functrans.jit"
    assert resolve("fnp.sin") == resolve("sin", ["functrans.numpy"]) == "functrans.numpy.sin"
    assert resolve("lax.scan") == resolve("scan()") == "functrans.lax.scan"
    assert resolve("stats.norm.logpdf") == "functrans.scipy.stats.norm.logpdf"
    assert resolve("np.vectorize") == "numpy.vectorize"
    assert resolve("jnp.sin") == "jax.numpy.sin"
    assert resolve("Function.apply") == "functrans.Function.apply"
    # Names of parameters, several functions of one name, and text that is not a name.
    for text in ("axis", "where", "x", "cholesky", "x + 1", "no_such_name", "functrans.no_such_name"):
        assert resolve(text) is None, text


def test_page_of_errors_is_current():
    script = script_of_docs("generate_errors")
    assert script.PAGE.read_text() == script.page(), "run python docs/scripts/generate_errors.py"


def test_charts_are_current():
    script = script_of_docs("generate_chart")
    for chart in script.CHARTS:
        found = (script.DOCS / chart.file).read_text()
        assert found == script.picture(chart, script.last_run(chart.command)), (
            f"{chart.file}: run python docs/scripts/generate_chart.py"
        )


def test_chart_of_growth_is_current():
    script = script_of_docs("generate_growth")
    found = script.PICTURE.read_text(encoding="utf-8")
    assert found == script.picture(script.last_run("sizes")), "run python docs/scripts/generate_growth.py"


def test_pictures_of_programs_are_current():
    script = script_of_docs("generate_pictures")
    for name in script.PICTURES:
        found = (ROOT / "docs" / name).read_text(encoding="utf-8")
        assert found == script.text_of(name), f"{name}: run python docs/scripts/generate_pictures.py"


def test_picture_of_rooms_is_current():
    script = script_of_docs("generate_rooms")
    found = script.PICTURE.read_text(encoding="utf-8")
    assert found == script.picture(), "run python docs/scripts/generate_rooms.py"
    assert all(room in found for floor in script.floors() for room in floor)


def test_page_of_passes_is_current():
    script = script_of_docs("generate_passes")
    assert script.PAGE.read_text() == script.page(), "run python docs/scripts/generate_passes.py"
    assert script.PICTURE.read_text() == script.picture(), "run python docs/scripts/generate_passes.py"


def test_figures_of_tests_are_current():
    script = script_of_docs("generate_testing")
    assert script.PAGE.read_text() == script.page(), "run python docs/scripts/generate_testing.py"


def test_each_error_has_a_failing_program():
    from functrans import errors

    for name, actual in vars(errors).items():
        if isinstance(actual, type) and issubclass(actual, errors.FunctransError):
            assert ">>> " in (actual.__doc__ or ""), f"{name}: a program that fails, in its docstring"
