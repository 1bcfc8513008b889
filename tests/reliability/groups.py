"""Groups of workers under schedules of faults that are drawn from seeds; an invariant is checked after each event.

Each schedule is simulated twice: as it is, and with workers that are ahead of the sums that they have taken.

python tests/reliability/groups.py 100000 [FIRST]
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from sigma_testing import InvariantError, simulate_asynchronous_group, simulate_group

STALENESS = 5  # at most


def simulate_groups(seeds: Iterable[int]) -> tuple[int, list[str]]:
    """Return the number of events in the schedules of some seeds, and the violations."""
    events, violations = 0, list[str]()
    for seed in seeds:
        for simulate in (simulate_group, lambda seed: simulate_asynchronous_group(seed, 1 + seed % STALENESS)):
            try:
                events += simulate(seed)
            except InvariantError as error:
                violations.append(str(error))
    return events, violations


if __name__ == "__main__":
    count, first = int(sys.argv[1]), int((*sys.argv[2:], 0)[0])
    events, violations = simulate_groups(range(first, first + count))
    print(f"{count:,} schedules, {events:,} events, {len(violations)} violations", *violations, sep="\n")
    sys.exit(bool(violations))
