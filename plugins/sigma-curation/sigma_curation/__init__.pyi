# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_curation.commands import Exclude as Exclude
from sigma_curation.commands import Include as Include
from sigma_curation.commands import Relabel as Relabel
from sigma_curation.edits import Edited as Edited
