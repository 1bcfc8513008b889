"""All rules of the examination of data, in one table."""

from __future__ import annotations

from sigma_data.examining import alike, columns, drift, equal, targets
from sigma_data.examining.rows import DataRule, ExaminedRows
from sigma_kernel import Finding

RULES: tuple[DataRule, ...] = (*equal.RULES, *alike.RULES, *columns.RULES, *drift.RULES, *targets.RULES)
SEVERITIES = ("error", "warning", "note")


def apply_rules(rows: ExaminedRows, quick: bool = False) -> list[Finding]:
    """Return what the rules find, the most severe first; ``quick`` applies those of `sigma check` alone."""
    findings = [finding for rule in RULES if rule.stage == "check" or not quick for finding in rule.find(rows)]
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))
