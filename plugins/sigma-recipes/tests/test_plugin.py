"""What the room offers can be loaded, and is what its record says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import sigma_recipes
from sigma_kernel.contracts import Recipe
from sigma_kernel.plugins.catalogue import load
from sigma_recipes.plugin import SIGMA_API, sigma_components


@pytest.mark.parametrize("component", sigma_components(), ids=lambda component: component.name)
def test_every_record_leads_to_its_recipe(component):
    recipe = load(component)
    assert isinstance(recipe, Recipe)
    assert recipe.name == component.name


def test_every_file_is_offered():
    files = {path.stem for path in Path(sigma_recipes.__file__).parent.glob("*.toml")}
    assert files == {component.name for component in sigma_components()}


def test_the_plugin_names_the_api_it_was_written_for():
    assert SIGMA_API == "1.0"


def test_the_records_cost_no_import_of_numpy():
    code = "import sigma_recipes.plugin as p, sys; p.sigma_components(); assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
