"""Pictures of programs.

::

    program   equations as boxes, bodies as frames (`graph` is what a picture is made of)
    groups    long programs: consecutive equations as one box
    layout    places: `layers`, `ranks`, `order`, `coordinates`
    svg dot   the text of a picture, and of a graph for Graphviz
    picture   all together, also as HTML for notebooks
"""
