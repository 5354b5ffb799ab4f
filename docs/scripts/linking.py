"""Links of the site: names in code lead to the reference, other names of an object to its page.

A Sphinx extension. Prose says ``jit(f)``, `lax.scan` or ``fnp.sin``; whatever names a public object becomes a link, in
Markdown and in docstrings alike, so links are never written by hand.
"""

import contextlib
import functools
import inspect
import re

import reference_pages as reference
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

SHORT = {
    "ft": "functrans",
    "fnp": "functrans.numpy",
    "lax": "functrans.lax",
    "np": "numpy",
    "jnp": "jax.numpy",
    "sp": "scipy",
}
WITHIN = ("functrans", "functrans.numpy", "functrans.scipy")  # where `linalg.solve` and `random.key` may be
DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\Z")


class Also(SphinxDirective):
    """``.. also:: NAME`` with ``:names:``: further public names of an object described just above."""

    required_arguments = 1
    option_spec = {"names": directives.unchanged_required, "kind": directives.unchanged_required}  # noqa: RUF012

    def run(self):
        domain = self.env.domains.python_domain
        for name in self.options["names"].split():
            # A further name of a class is hidden from the search, where it would stand beside the class itself.
            domain.note_object(name, self.options["kind"], self.arguments[0])
        return []


@functools.cache
def parameters():
    """Names of parameters: in prose ``where`` and ``axis`` are more often these than functions."""
    names = {"f", "x", "t"}
    for entry in reference.entries().values():
        try:
            names |= set(inspect.signature(entry.value).parameters)
        except (TypeError, ValueError):
            continue
    return names


@functools.cache
def everything():
    """All public names, with those that have no page of their own."""
    constants = {f"{n}.{name}" for n in reference.NAMESPACES for name in reference.foreign(n)}
    return {*reference.entries(), *constants, *reference.NAMESPACES[1:]}


@functools.cache
def homes():
    """{name: full names}, of objects and not of their other names."""
    found = {}
    for full, entry in reference.entries().items():
        if full == entry.name and entry.page == full:
            found.setdefault(full.rpartition(".")[2], []).append(full)
    return found


def resolve(text, namespaces=(), listed=False):
    """The full public name that a piece of code stands for, or None; in a list of names none is a parameter's."""
    call = text.endswith("()")
    name = text.removesuffix("()").removeprefix("@")
    if not DOTTED.match(name):
        return None
    first, dot, rest = name.partition(".")
    if dot:
        name = f"{SHORT.get(first, first)}.{rest}"
        candidates = [name, *(f"{n}.{name}" for n in (*namespaces, *WITHIN))]
        if name.startswith(("numpy.", "scipy.", "jax.")):
            candidates = [name] if first in SHORT else candidates
    elif name in parameters() and not (call or listed):
        return None
    else:
        candidates = [f"{n}.{name}" for n in (*namespaces, "functrans")]
        candidates += homes().get(name, []) if len(homes().get(name, [])) == 1 and len(name) > 2 else []
    for candidate in candidates:
        if candidate in everything() or is_member(candidate):
            return candidate
    return name if dot and name.startswith(("numpy.", "scipy.", "jax.")) else None


def is_member(name):
    """Whether a name is that of a described method of a class."""
    owner, _, member = name.rpartition(".")
    entry = reference.entries().get(owner)
    return (
        entry is not None
        and entry.kind == "class"
        and not member.startswith("_")
        and hasattr(entry.value, member)
    )


def namespaces_of(docname, node):
    """Where a bare name on a page may be: the namespaces of a page of the reference, or of a section about one."""
    if docname.startswith("api/"):
        parts = docname.removeprefix("api/").split(".")
        return [
            ".".join(parts[:i])
            for i in range(len(parts), 0, -1)
            if ".".join(parts[:i]) in reference.NAMESPACES
        ]
    while node is not None:
        if isinstance(node, nodes.section) and node[0].astext() in reference.NAMESPACES:
            return [node[0].astext()]
        node = node.parent
    return []


def link_code(app, doctree):
    """Make pieces of code that name public objects links."""
    docname = app.env.docname
    own = docname.removeprefix("api/")
    for block in doctree.findall(nodes.literal_block):  # a session ends with a line for doctest alone
        if block.rawsource == block.astext():
            block.rawsource = block.rawsource.rstrip("\n")
            block[:] = [nodes.Text(block.rawsource)]
    link_errors(doctree, docname)
    unlink_parameters(doctree, own)
    for node in list(doctree.findall(nodes.literal)):
        parents = (nodes.reference, nodes.title, addnodes.pending_xref, addnodes.download_reference)
        if any(isinstance(node.parent, kind) for kind in parents) or "menuselection" in node["classes"]:
            continue
        namespaces = namespaces_of(docname, node.parent)
        full = resolve(node.astext(), namespaces, listed=bool(namespaces) and not docname.startswith("api/"))
        if full is None or full == own:
            continue
        link = addnodes.pending_xref(
            "", refdomain="py", reftype="obj", reftarget=full, refexplicit=True, refwarn=False, refdoc=docname
        )
        link["resolved"] = True
        node.replace_self(link)
        link += node


def unlink_parameters(doctree, own):
    """On a function's page `where` is its parameter, and no link to the function of that name."""
    entry = reference.entries().get(own)
    if entry is None or entry.kind != "function":
        return
    names = {"where", "out", "dtype", "axis"}  # what ``**options`` of ufuncs stand for
    with contextlib.suppress(TypeError, ValueError):
        names |= set(inspect.signature(entry.value).parameters)
    for link in list(doctree.findall(addnodes.pending_xref)):
        if link.get("reftype") == "obj" and link["reftarget"] in names:
            link.replace_self(link.children)


def link_errors(doctree, docname):
    """Make the errors of a section "Raises" links: the terms of a list there, several in one."""
    for term in list(doctree.findall(nodes.term)):
        names = term.astext().split(", ")
        found = [resolve(f"errors.{name}") for name in names]
        if not all(found):
            continue
        links = []
        for name, full in zip(names, found):
            link = addnodes.pending_xref(
                "",
                refdomain="py",
                reftype="obj",
                reftarget=full,
                refexplicit=True,
                refwarn=False,
                refdoc=docname,
            )
            link += nodes.inline("", name)
            links += [nodes.Text(", "), link]
        term.children = []
        term += links[1:]


def missing(app, env, node, content):
    """Names in single backticks that the module around them does not have, such as `jit` in functrans.numpy."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    if node.get("resolved"):  # another manual's: ours are found before
        return None
    full = resolve(target, namespaces_of(node.get("refdoc", ""), None))
    found = env.domains.python_domain.objects.get(full) if full else None
    if found is not None:
        return make_refnode(app.builder, node["refdoc"], found.docname, found.node_id, content, full)
    if full and full != target:  # another library's, written short
        node["reftarget"] = full
    return None


def sources(app, pagename, templatename, context, doctree):
    """The way back from the source of an object: Sphinx takes one namespace for all objects of a file."""
    if pagename.startswith("_modules/functrans"):
        context["body"] = re.sub(r'(api/([\w.]+)\.html)#([\w.]+)"', back, context["body"])


def back(match):
    """A link to the page of an object, with the anchor that the page has."""
    href, page, anchor = match.groups()
    entry = reference.entries().get(page)
    if entry is None or entry.page != page or anchor.startswith(page):
        return match[0]
    rest = anchor.rpartition(f".{page.rpartition('.')[2]}")[2]
    return f'{href}#{page}{rest}"'


def sidebar(app, pagename, templatename, context, doctree):
    """Beside the page of an object: the others of its subject."""
    found = reference.siblings().get(pagename.removeprefix("api/")) if pagename.startswith("api/") else None
    if found and not reference.is_short(found[0]):
        namespace, subject, names = found
        uri = app.builder.get_relative_uri
        context["siblings"] = {
            "namespace": namespace,
            "to_namespace": uri(pagename, f"api/{namespace}"),
            "subject": subject,
            "names": [
                (
                    name.rpartition(".")[2],
                    uri(pagename, f"api/{reference.entries()[name].page}"),
                    f"api/{name}" == pagename,
                )
                for name in names
            ],
        }


def setup(app):
    app.add_directive("also", Also)
    app.connect("builder-inited", lambda _: reference.write())
    app.connect("doctree-read", link_code)
    app.connect("missing-reference", missing, priority=400)  # before other libraries are asked
    app.connect("html-page-context", sidebar)
    app.connect("html-page-context", sources)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
