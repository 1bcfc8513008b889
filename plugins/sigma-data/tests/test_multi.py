from __future__ import annotations

import pytest

from sigma_data import File, Multi
from sigma_kernel import SigmaConfigError, SigmaDataError


def test_the_first_source_that_works_is_read(held, tmp_path):
    with Multi((File(tmp_path / "gone"), held(b"second"), held(b"third"))).open() as stream:
        assert stream.read() == b"second"


def test_every_reason_is_reported_if_no_source_works(tmp_path):
    source = Multi((File(tmp_path / "one"), File(tmp_path / "two")))
    with (
        pytest.raises(
            SigmaDataError, match=r"(?s)none of 2 sources is available:\n.*one: there is no.*\n.*two: there is no"
        ),
        source.open(),
    ):
        pass


def test_an_error_while_reading_does_not_fall_back_to_the_next_source(held):
    with pytest.raises(SigmaDataError, match="mine"), Multi((held(b"1"), held(b"2"))).open():
        raise SigmaDataError("mine")


def test_multi_requires_a_source():
    with pytest.raises(SigmaConfigError, match="sources"):
        Multi(())
