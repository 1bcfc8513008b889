from sigma_kernel import Exporter
from sigma_testing import ExporterSuite
from acme_kinds.lines import Lines


class TestLines(ExporterSuite):
    def make(self) -> Exporter:
        return Lines()
