"""Validators of settings may be given in any form that attrs takes, also to what explains all mistakes of a class."""

from __future__ import annotations

import pytest
from attrs import define, field
from attrs.validators import optional

from sigma_kernel.settings import ge, whole
from sigma_kernel.settings.mistakes import Faults, Wrong
from sigma_kernel.settings.records import construct, explain


@define
class Whiten:
    """A component whose field cannot be hashed: its validator has a list."""

    components: int | None = field(default=None, validator=optional([whole, ge(1)]))
    epsilon: int = field(default=1, validator=[whole, ge(1)])


def test_settings_whose_validators_are_in_a_list_are_explained() -> None:
    faults = Faults()
    assert explain(Whiten, {"components": 3, "epsilon": 2}, faults).components == 3
    with pytest.raises(Wrong, match="components"):
        construct(Whiten, {"components": 0, "epsilon": 0})
