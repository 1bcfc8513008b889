"""How the documentation is built: `tox -e docs`."""

import sys
from importlib.util import find_spec
from pathlib import Path

from sigma_kernel import __version__

sys.path.insert(0, str(Path(__file__).parent))  # for our own extensions

project = "Sigma"
author = "The Sigma authors"
release = version = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "extensions.generated",
    "extensions.notebooks",
    "extensions.checks",
]
exclude_patterns = ["_build", "changes"]
html_theme = "furo" if find_spec("furo") else "alabaster"
html_title = f"Sigma {__version__}"
html_show_copyright = False
html_static_path = ["static"]
html_css_files = ["site.css"]
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_class_signature = "separated"
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
