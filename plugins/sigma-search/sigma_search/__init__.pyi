# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_search.command import search_command as search_command
from sigma_search.hook import TrialHook as TrialHook
from sigma_search.protocol import Outcome as Outcome
from sigma_search.protocol import Protocol as Protocol
from sigma_search.results import SearchResults as SearchResults
from sigma_search.sampling import propose as propose
from sigma_search.searching import resume_search as resume_search
from sigma_search.searching import search as search
from sigma_search.settings import Dimension as Dimension
from sigma_search.settings import Pruning as Pruning
from sigma_search.settings import SearchSettings as SearchSettings
