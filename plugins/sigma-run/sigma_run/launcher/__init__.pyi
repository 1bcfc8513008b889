# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_run.launcher.configured import CHECKPOINT as CHECKPOINT
from sigma_run.launcher.configured import WEIGHTS as WEIGHTS
from sigma_run.launcher.configured import open_document as open_document
from sigma_run.launcher.configured import recipe_or_file as recipe_or_file
from sigma_run.launcher.configured import standing as standing
from sigma_run.launcher.configured import with_operator as with_operator
from sigma_run.launcher.findings import describe_findings as describe_findings
from sigma_run.launcher.findings import load_examiner as load_examiner
from sigma_run.launcher.group import main as main
from sigma_run.launcher.output import colours as colours
from sigma_run.launcher.output import document as document
from sigma_run.launcher.output import json_option as json_option
from sigma_run.launcher.output import literal as literal
from sigma_run.launcher.output import say as say
from sigma_run.launcher.output import table as table
from sigma_run.launcher.predictions import Predictions as Predictions
from sigma_run.launcher.runs import describe_run as describe_run
from sigma_run.launcher.runs import list_members as list_members
from sigma_run.launcher.runs import list_runs as list_runs
from sigma_run.launcher.studies import show_study as show_study
