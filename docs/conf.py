"""Settings of the documentation: the pages are Markdown, the API reference comes from the docstrings."""

import sys
from pathlib import Path

from docutils import nodes
from sphinx.transforms import SphinxTransform

import remanence

sys.path.insert(0, str(Path(__file__).parent))

from reference_pages import write_reference

project = "remanence"
author = "The remanence maintainers"
copyright = author
version = release = remanence.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "offline_math",
]
exclude_patterns = ["_build", "_generated"]
html_theme = "furo"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["page.css"]
html_title = f"remanence {version}"

myst_enable_extensions = ["dollarmath", "substitution"]
myst_heading_anchors = 3

autosummary_generate = False  # reference_pages.py writes the pages
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"  # for a subpackage: the order of its __all__
autodoc_typehints = "none"  # the signature shows them; the text gives the shapes
autodoc_inherit_docstrings = False
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True  # fields are members already; a second description of each would be an error


def generated(name: str) -> str:
    """Reads a page that a tool wrote; a build without it says so instead of failing."""
    path = Path(__file__).parent / "_generated" / f"{name}.md"
    return path.read_text(encoding="utf-8") if path.exists() else "*This build was made without the generated table.*"


myst_substitutions = {"conformance": generated("conformance"), "faults": generated("faults")}


class AbsoluteValues(SphinxTransform):
    """Lets docstrings write |x| for an absolute value; we use no substitutions, which is what the bars stand for."""

    default_priority = 219  # just before docutils would resolve them

    def apply(self, **kwargs):
        for node in list(self.document.findall(nodes.substitution_reference)):
            node.replace_self(nodes.Text(f"|{node.astext()}|"))


def setup(app):
    write_reference(Path(__file__).parent / "reference")
    app.add_transform(AbsoluteValues)
