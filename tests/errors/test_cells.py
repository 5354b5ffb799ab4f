"""Lines of a notebook's cells have the names that IPython shows."""

import nbclient
import nbformat
from IPython.core.interactiveshell import InteractiveShell

CELLS = [
    "import numpy as np\nimport functrans as ft, functrans.numpy as fnp\nfrom functrans import ir",
    "def f(x):\n    return fnp.sin(x).reshape(7)\n",
    "def g(x):\n    return fnp.exp(x) * 2.0\n"
    "program = ir.trace(g, np.ones(3))\nprint(program.pretty_print(source_info=True))",
    "ft.jit(f)(np.ones(3))",
    "program",
    "lowered = ft.jit(g).lower(np.ones(3))\nprint(lowered.as_text('python'))\nlowered",
    "ir.trace(g, 'no')",
]


def test_a_notebook_names_its_cells_and_shows_programs():
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    nbclient.NotebookClient(notebook, timeout=240, allow_errors=True, kernel_name="python3").execute()
    outputs = [cell.outputs for cell in notebook.cells]
    assert "# Cell In[3], line 2 (g)" in outputs[2][0]["text"]
    assert "ipykernel" not in outputs[2][0]["text"]
    error = outputs[3][-1]["evalue"]
    assert "Cell In[2], line 2, in f" in error
    assert "return fnp.sin(x).reshape(7)" in error
    shown = outputs[4][-1]["data"]
    assert shown["text/plain"].startswith("lambda a:f64[3].")
    assert "<svg" in shown["text/html"]
    assert "Cell In[3], line 2" in shown["text/html"]
    assert "Cell In[3], line 2 (g): return fnp.exp(x) * 2.0" in outputs[5][0]["text"]
    assert "kernel 1" in outputs[5][-1]["data"]["text/html"]
    assert "Cell In[7], line 1, in <module>" in outputs[6][-1]["evalue"]


def test_ipython_without_a_notebook():
    shell = InteractiveShell.instance()
    try:
        shell.run_cell("import numpy as np\nfrom functrans import ir", store_history=True)
        number = shell.execution_count
        shell.run_cell("program = ir.trace(lambda x: np.sin(x), np.ones(2))", store_history=True)
        (e,) = shell.user_ns["program"].eqns
        assert str(e.source) == f"Cell In[{number}], line 1 (<lambda>)"
        assert e.source.describe().startswith(
            f"Cell In[{number}], line 1, in <lambda>\n    program = ir.trace("
        )
    finally:
        InteractiveShell.clear_instance()
