"""The constraints by which `tox -e lowest` installs the lowest declared versions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_bound_that_is_declared_is_a_constraint_and_the_highest_counts(tmp_path: Path) -> None:
    script = tmp_path / "tests" / "installs" / "lowest.py"
    script.parent.mkdir(parents=True)
    script.write_text((ROOT / "tests" / "installs" / "lowest.py").read_text())
    room = tmp_path / "plugins" / "room"
    room.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["attrs >=24.1", "numpy ~=2.1", "click"]\n')
    (room / "pyproject.toml").write_text(
        '[project]\ndependencies = ["attrs >=23.2", "numpy >=2.2,<3", "sigma-kernel ~=0.1"]\n'
        '[project.optional-dependencies]\npng = ["pillow ==10.*"]\npeers = ["torch >=2"]\n'
    )
    subprocess.run([sys.executable, script, tmp_path / "found"], check=True)
    assert (tmp_path / "found").read_text().splitlines() == ["attrs==24.1", "numpy==2.2", "pillow==10"]
