"""Pictures of the site, for people to look at: `python -m docs.scripts.screenshots DIR`.

It opens the pages of docs/_build (README's last command builds it) in the system's Chromium, on a desk and on a phone,
in both colour schemes. The tests of the site use what is here, too. It needs the extra `test` and Debian's package
`chromium`.
"""

import contextlib
import functools
import http.server
import shutil
import sys
import threading
from pathlib import Path

SITE = Path(__file__).parents[1] / "_build"
WIDTHS = {"desk": (1400, 900), "phone": (400, 800)}
SCHEMES = ("light", "dark")
# Of the pages that a program writes, one of each kind.
SAMPLED = {
    "api": """
        index names functrans functrans.numpy functrans.jit functrans.jacobian functrans.Array functrans.Function
        functrans.numpy.arctan2 functrans.numpy.einsum functrans.lax.scan functrans.errors functrans.errors.ShapeError
        functrans.scipy.stats functrans.scipy.stats.norm functrans.testing.check
    """,
    "_modules": "index functrans/numpy/products",
}


def missing():
    """Why no browser can be driven here, or None."""
    if shutil.which("chromium") is None:
        return "there is no chromium on the path (Debian's package chromium)"
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "there is no playwright (pip install functrans[test])"
    return None


def pages(site=SITE):
    """Paths of the pages to open, relative to the site: all that people wrote, and some of those that programs did."""
    found = sorted(str(path.relative_to(site)) for path in site.glob("**/*.html"))
    by_hand = [page for page in found if page.partition("/")[0] not in SAMPLED and not page.startswith("_")]
    sampled = [f"{folder}/{name}.html" for folder, names in SAMPLED.items() for name in names.split()]
    return by_hand + [page for page in sampled if page in found]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@contextlib.contextmanager
def served(site=SITE):
    """Serve the site on a free port; gives its address."""
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def browser():
    """The system's Chromium without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tools:
        # Containers often run everything as root, which Chromium's sandbox refuses; the pages are our own.
        chromium = tools.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        try:
            yield chromium
        finally:
            chromium.close()


def views(tab):
    """Show an open page in all sizes and schemes, one after the other; gives the name of each."""
    for size, (width, height) in WIDTHS.items():
        tab.set_viewport_size({"width": width, "height": height})
        for scheme in SCHEMES:
            tab.emulate_media(color_scheme=scheme)
            tab.wait_for_function("scheme => document.documentElement.dataset.theme === scheme", arg=scheme)
            yield f"{size}-{scheme}"


def main(folder, names=()):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with served() as address, browser() as chromium:
        tab = chromium.new_page()
        for page in names or pages():
            tab.goto(address + page)
            for view in views(tab):
                tab.screenshot(path=folder / f"{page.removesuffix('.html').replace('/', '.')}-{view}.png")


if __name__ == "__main__":
    if reason := missing():
        sys.exit(reason)
    main(sys.argv[1], sys.argv[2:])
