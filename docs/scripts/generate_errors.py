"""Write docs/errors.md from the docstrings of the error classes; with --check, only check whether it is current."""

import importlib
import inspect
import re
import sys
from pathlib import Path

from functrans import errors

PAGE = Path(__file__).parents[1] / "errors.md"
HEAD = """# Errors

For those who have met an error: a program that fails in that way, why, and what to write instead.

Every error that functrans raises on purpose is a `functrans.errors.FunctransError`. It is also an error of the type
that Python or NumPy would raise (in brackets), so `except ValueError` and `except IndexError` work as with NumPy.
The message ends with your file, line and source text: the innermost frame that belongs neither to functrans nor to an
installed library that does not use functrans, such as pandas or Matplotlib.

The traceback shows only your frames. `config.traceback_filtering = False`, or `FUNCTRANS_TRACEBACK_FILTERING=0`, shows
those of functrans too.

Next: [debugging](debugging.md), for programs that fail without an error.
"""


#: The files of the package, in the order of the page.
SUBJECTS = ("base", "arrays", "tracing", "running", "custom", "distributed")


def classes(subject):
    """The error classes of a file, in the order of the file."""
    source = inspect.getsource(subject)
    names = re.findall(r"^class (\w+)", source, re.MULTILINE)
    return [getattr(subject, name) for name in names]


def markdown(docstring):
    """A docstring's reStructuredText as Markdown: examples fenced, double backticks single."""
    parts = []
    for paragraph in inspect.cleandoc(docstring).split("\n\n"):
        if paragraph.startswith(">>> "):
            parts.append(f"```python\n{paragraph}\n\n```")
        elif not set(paragraph.splitlines()[-1]) <= {"-"} and "\n----" not in paragraph:
            parts.append(re.sub(r"``(.+?)``", r"`\1`", paragraph))
    return "\n\n".join(parts)


def section(cls):
    """One class: name, standard classes it belongs to, help."""
    standard = [b for b in cls.__mro__[1:] if not issubclass(b, errors.FunctransError)]
    nearest = [b for b in cls.__bases__ if b in standard]
    own = [b.__name__ for b in cls.__bases__ if issubclass(b, errors.FunctransError)]
    kinds = ", ".join([*own, *(f"{b.__module__}.{b.__name__}".removeprefix("builtins.") for b in nearest)])
    return f"### {cls.__name__}\n\n({kinds})\n\n{markdown(cls.__doc__)}\n"


def chapter(name):
    """The classes of a file, with the summary of its docstring as the heading."""
    subject = importlib.import_module(f"{errors.__name__}.{name}")
    title = inspect.getdoc(subject).splitlines()[0].rstrip(".")
    return "\n".join([f"## {title}\n", *(section(c) for c in classes(subject))])


def page():
    """The whole text."""
    return "\n".join([HEAD, *(chapter(name) for name in SUBJECTS)])


if __name__ == "__main__":
    text = page()
    if "--check" not in sys.argv:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        sys.exit("docs/errors.md is not current: run python docs/scripts/generate_errors.py")
