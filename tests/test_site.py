"""The manual as readers meet it: links lead somewhere, the search finds, pages fit a phone, no script fails.

These tests look at docs/_build, which README's last command builds, and are skipped where it is older than its sources.
"""

import importlib.util
import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[1]
SITE = ROOT / "docs" / "_build"
SOURCES = [
    *ROOT.glob("docs/*.md"),
    *ROOT.glob("docs/**/*.py"),
    *ROOT.glob("docs/_*t*/*"),
    *ROOT.glob("examples/*.py"),
    ROOT / "README.md",
]

spec = importlib.util.spec_from_file_location("screenshots", ROOT / "docs" / "scripts" / "screenshots.py")
screenshots = importlib.util.module_from_spec(spec)
spec.loader.exec_module(screenshots)

pytestmark = pytest.mark.slow
FIRST = """
    functrans.jit functrans.grad functrans.value_and_grad functrans.jacobian functrans.jacfwd functrans.hessian
    functrans.jvp functrans.vjp functrans.vmap functrans.linearize functrans.checkpoint functrans.custom_vjp
    functrans.custom_jvp functrans.make_jaxpr functrans.eval_shape functrans.Function functrans.numba_call
    functrans.register_hook functrans.shard_map functrans.autocast functrans.pure_callback functrans.lax.scan
    functrans.lax.while_loop functrans.lax.fori_loop functrans.lax.cond functrans.lax.associative_scan
    functrans.lax.top_k functrans.numpy.arctan2 functrans.numpy.einsum functrans.numpy.concatenate
    functrans.numpy.meshgrid functrans.numpy.histogram functrans.numpy.vectorize functrans.numpy.searchsorted
    functrans.nn.logsumexp functrans.nn.softmax functrans.numpy.linalg.cholesky functrans.numpy.linalg.slogdet
    functrans.scipy.special.gammaln functrans.scipy.optimize.minimize functrans.scipy.integrate.solve_ivp
    functrans.testing.gradcheck functrans.experimental.ode.odeint functrans.random.PRNGKey functrans.errors.ShapeError
"""


@pytest.fixture(scope="module")
def site():
    index = SITE / "index.html"
    if not index.exists():
        pytest.skip("docs/_build has no site: README's last command builds it")
    if index.stat().st_mtime < max(path.stat().st_mtime for path in SOURCES):
        pytest.skip("docs/_build is older than its sources: build it again")
    return SITE


@pytest.fixture(scope="module")
def tab(site):
    if reason := screenshots.missing():
        pytest.skip(reason)
    with screenshots.served(site) as address, screenshots.browser() as chromium:
        tab = chromium.new_page()
        tab.address = address
        yield tab


def test_own_links_lead_somewhere(site):
    """Of all pages, without a browser."""
    texts = {path: path.read_text() for path in site.glob("**/*.html") if "_static" not in path.parts}
    assert len(texts) > 1400
    anchors = {path: set(re.findall(r'\b(?:id|name)="([^"]+)"', text)) for path, text in texts.items()}
    dead = set()
    for path, text in texts.items():
        for link in set(re.findall(r'<(?:a|img|link|script)\b[^>]*?\b(?:href|src)="([^"]*)"', text)):
            target, _, fragment = unquote(unescape(link)).partition("#")
            target = target.partition("?")[0]
            if re.match(r"[a-z]+:", target):
                continue
            to = (path.parent / target).resolve() if target else path
            if not to.exists() or (fragment and to in anchors and fragment not in anchors[to]):
                dead.add(f"{path.relative_to(site)}: {link}")
    assert sorted(dead) == []


def test_names_are_links(site):
    """Those of the page of functions, of the errors that a function raises, and of other manuals."""
    text = (site / "coverage.html").read_text()
    rows = re.findall(r"<tr class=.*?<td>(.*?)</td>", text, re.DOTALL)
    assert len(rows) > 1100
    assert [row for row in rows if "<code" in row and "href=" not in row] == []
    page = (site / "api" / "functrans.custom_vjp.html").read_text()
    assert 'href="functrans.errors.MissingRuleError.html#functrans.errors.MissingRuleError"' in page
    assert (
        "https://numpy.org/doc/stable/reference/generated/numpy.vectorize.html"
        in (site / "differences.html").read_text()
    )


@pytest.mark.parametrize("name", FIRST.split())
def test_search_finds_the_function_first(tab, name):
    if "search.html" not in tab.url:
        tab.goto(tab.address + "search.html")
        tab.wait_for_function("typeof Search !== 'undefined' && Search._index !== null")
    results = tab.evaluate(
        "word => Search._performSearch(...Search._parseQuery(word)).reverse()", name.rpartition(".")[2]
    )
    docname, title, anchor, *_ = results[0]
    assert name in (title, anchor.removeprefix("#"), docname.removeprefix("api/")), results[:4]


def test_pages_in_the_browser(tab):
    """No error in the console and no horizontal scroll, on a desk and on a phone, in both colour schemes."""
    found = []

    def note(message):
        # Mathematics comes from another host, which may be out of reach.
        if message.type == "error" and message.location.get("url", "").startswith(tab.address):
            found.append(f"{tab.url}: {message.text}")

    tab.on("console", note)
    tab.on("pageerror", lambda error: found.append(f"{tab.url}: {error}"))
    for page in screenshots.pages():
        tab.goto(tab.address + page, wait_until="load")
        backgrounds = {}
        for view in screenshots.views(tab):
            beyond = tab.evaluate("document.documentElement.scrollWidth - window.innerWidth")
            if beyond > 0:
                found.append(f"{page}: {view} scrolls {beyond} pixels to the side")
            backgrounds[view] = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        if backgrounds["desk-light"] == backgrounds["desk-dark"]:
            found.append(f"{page}: has one colour scheme")
    assert found == []


def test_search_field_and_theme_switch(tab):
    tab.set_viewport_size({"width": 1400, "height": 900})
    tab.goto(tab.address + "index.html")
    tab.keyboard.press("Control+K")
    tab.keyboard.type("jacobian")
    tab.keyboard.press("Enter")
    first = tab.wait_for_selector("#search-results ul li a")
    assert "functrans.jacobian" in first.get_attribute("href")
    for scheme in ("dark", "light", "dark"):
        tab.locator("button.theme-switch-button:visible").first.click()
        tab.locator(f"button.theme-change-button[data-mode={scheme}]:visible").first.click()
        assert tab.evaluate("document.documentElement.dataset.theme") == scheme
