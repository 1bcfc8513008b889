"""How the documentation is built: `tox -e docs`."""

from sigma_kernel import __version__

project = "Sigma"
author = "The Sigma authors"
release = version = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"Sigma {__version__}"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_class_signature = "separated"
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
