"""What the room offers can be loaded, and costs nothing before."""

from __future__ import annotations

import subprocess
import sys

import click

from sigma_bench.plugin import SIGMA_API, sigma_components
from sigma_kernel.plugins.catalogue import load


def test_the_record_leads_to_a_command() -> None:
    [component] = sigma_components()
    assert (component.kind, component.name) == ("command", "bench")
    assert isinstance(load(component), click.Command)


def test_the_plugin_names_the_api_it_was_written_for() -> None:
    assert SIGMA_API == "1.0"


def test_the_record_costs_no_import_of_numpy() -> None:
    code = "import sys; from sigma_bench import plugin; plugin.sigma_components(); assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
