"""Groups of workers under schedules of faults that are drawn from seeds; an invariant is checked after each event.

python tests/reliability/groups.py 100000 [FIRST]
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from sigma_testing import InvariantError, simulate_group


def simulate_groups(seeds: Iterable[int]) -> tuple[int, list[str]]:
    """Return the number of events in the schedules of some seeds, and the violations."""
    events, violations = 0, list[str]()
    for seed in seeds:
        try:
            events += simulate_group(seed)
        except InvariantError as error:
            violations.append(str(error))
    return events, violations


if __name__ == "__main__":
    count, first = int(sys.argv[1]), int((*sys.argv[2:], 0)[0])
    events, violations = simulate_groups(range(first, first + count))
    print(f"{count:,} schedules, {events:,} events, {len(violations)} violations", *violations, sep="\n")
    sys.exit(bool(violations))
