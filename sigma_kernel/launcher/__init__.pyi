# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_kernel.launcher.configured import opened as opened
from sigma_kernel.launcher.configured import recipe_or_file as recipe_or_file
from sigma_kernel.launcher.group import main as main
from sigma_kernel.launcher.output import colours as colours
from sigma_kernel.launcher.output import document as document
from sigma_kernel.launcher.output import json_option as json_option
from sigma_kernel.launcher.output import say as say
from sigma_kernel.launcher.runs import described as described
from sigma_kernel.launcher.runs import listed as listed
