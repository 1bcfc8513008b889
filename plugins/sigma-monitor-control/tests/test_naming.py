"""Which address a short name means."""

from __future__ import annotations

import pytest

from sigma_kernel.errors import SigmaAddressError
from sigma_monitor_control.protocol.naming import is_pattern, leading, meant, qualify_name

ADDRESSES = [
    "trainer.optimiser.1-output.weights.learning_rate",
    "trainer.optimiser.1-output.biases.learning_rate",
    "trainer.optimiser.learning_rate",
    "trainer.training.loss",
    "trainer.validation.loss",
    "trainer.validation.accuracy",
    "trainer.hooks.loss.every",
]


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("accuracy", "trainer.validation.accuracy"),
        ("validation.loss", "trainer.validation.loss"),
        ("trainer.training.loss", "trainer.training.loss"),
        ("loss.every", "trainer.hooks.loss.every"),
        ("weights.learning_rate", "trainer.optimiser.1-output.weights.learning_rate"),
    ],
)
def test_whole_trailing_levels_are_enough_where_they_are_unique(name: str, address: str) -> None:
    assert meant(name, ADDRESSES) == address


def test_a_group_outranks_the_values_that_follow_it() -> None:
    assert meant("learning_rate", ADDRESSES) == "trainer.optimiser.learning_rate"
    assert leading("learning_rate", ADDRESSES[:2]) == ADDRESSES[:2]  # without the group, both are left


def test_the_groups_of_two_trainers_do_not_outrank_each_other() -> None:
    both = [*ADDRESSES, *(address.replace("trainer", "critic", 1) for address in ADDRESSES)]
    found = ["trainer.optimiser.learning_rate", "critic.optimiser.learning_rate"]
    assert leading("learning_rate", both) == found
    with pytest.raises(SigmaAddressError, match="could be trainer.optimiser.learning_rate, critic.opt"):
        meant("learning_rate", both)


def test_an_address_that_is_written_in_full_is_never_ambiguous() -> None:
    assert meant("loss", ["loss", "a.loss", "b.loss"]) == "loss"


def test_a_part_of_a_level_is_no_level() -> None:
    with pytest.raises(SigmaAddressError, match=r"^rate: is neither an address nor the end of one\."):
        meant("rate", ADDRESSES)
    with pytest.raises(SigmaAddressError, match="Did you mean 'accuracy'"):
        meant("acuracy", ADDRESSES)


def test_candidates_are_listed_up_to_a_dozen() -> None:
    many = [f"t{i}.loss" for i in range(20)]
    with pytest.raises(SigmaAddressError, match="t11.loss and 8 more. Write more of its levels"):
        meant("loss", many)


def test_stars_and_tags_make_a_pattern() -> None:
    assert is_pattern("**.loss")
    assert is_pattern("network.<dense>.weights")
    assert not is_pattern("trainer.training.loss")


def test_a_name_within_a_trainer_may_begin_with_it() -> None:
    assert qualify_name("learning_rate", None) == "learning_rate"
    assert qualify_name("optimiser.learning_rate", "critic") == "critic.optimiser.learning_rate"
    assert qualify_name("critic.optimiser.learning_rate", "critic") == "critic.optimiser.learning_rate"
    assert qualify_name("**.frozen", "critic") == "critic.**.frozen"
