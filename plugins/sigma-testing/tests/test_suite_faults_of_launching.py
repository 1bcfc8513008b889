"""The suites of recipes and commands fail for planted faults."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import click
import pytest

from sigma_kernel import Recipe
from sigma_kernel.errors import SigmaConfigError
from sigma_testing import RecipeSuite, VerbSuite

from .faults import check_caught

# -- recipes -----------------------------------------------------------------------------------------------------------
XOR = """\
# Learn exclusive or with a small network.
format = 1

[run]
name = "own-xor"
seed = 0
prefer = ["sigma-data", "sigma-layers", "sigma-optimisers", "sigma-backend-numpy", "sigma-operator-local"]
backend = "numpy"

[data]
dataset = "xor"

[network]
architecture = "input(2) + dense(3) + output(2) + softmax_cross_entropy()"

[trainer]
epochs = 3
optimiser = { type = "adam", learning_rate = 0.05 }
"""
VALID = "test_it_is_a_valid_configuration"
RECIPES: dict[str, tuple[str, str, str]] = {
    "right": ("", "", ""),
    "no description": (
        "# Learn exclusive or with a small network.\n", "", "test_it_describes_itself_and_runs_under_its_own_name"),
    "another name": ('"own-xor"', '"xor"', "test_it_describes_itself_and_runs_under_its_own_name"),
    "no TOML": ("[run]", "[run", VALID),
    "an unknown setting": ("epochs", "epoches", VALID),
    "an unknown layer": ("dense(3)", "dence(3)", VALID),
    "shapes that do not fit": ("input(2)", "input(3)", "test_something_ends_its_training"),
    "no end": ("epochs = 3\n", "", "test_something_ends_its_training"),
    "a loss that is not finite": ("0.05", "1e38", "test_it_begins_to_train"),
    "no seed": ("seed = 0\n", "", "test_it_names_a_seed_so_that_its_result_can_be_repeated"),
}  # fmt: skip


@pytest.mark.parametrize("name", RECIPES)
def test_a_fault_in_a_recipe_is_caught(name: str) -> None:
    old, new, test = RECIPES[name]
    assert old in XOR

    class Suite(RecipeSuite):
        def make(self) -> Recipe:
            return Recipe("own-xor", XOR.replace(old, new) if old else XOR)

    check_caught(Suite(), test)


GATE = "from sigma_kernel import Layer\nclass Gate(Layer):\n    def forward(self, context, x): return x\n"


@pytest.mark.parametrize(
    ("prefer", "test"), [('"acme-nets", ', ""), ("", "test_its_components_are_not_mistaken_for_those_of_other_plugins")]
)
def test_a_name_that_another_plugin_may_offer_too_is_caught(prefer: str, test: str, distribution: Any) -> None:
    distribution("acme-nets", '"layer", "gate", "acme_nets.layers:Gate", "Return its input."', layers=GATE)
    text = XOR.replace("dense(3)", "dense(3) + gate()").replace("prefer = [", f"prefer = [{prefer}")

    class Suite(RecipeSuite):
        def make(self) -> Recipe:
            return Recipe("own-xor", text)

    check_caught(Suite(), test)


# -- commands ----------------------------------------------------------------------------------------------------------
def greeting(does: Callable[[str, bool], Any], text: str = "Say hello to NAME.", option: str = "Print JSON.") -> Any:
    @click.command(name="greet", help=text)
    @click.argument("name", type=click.Choice(["you", "me"]))
    @click.option("--json", "as_json", is_flag=True, help=option)
    def greet(name: str, as_json: bool) -> Any:
        return does(name, as_json)

    return greet


def _right(name: str, as_json: bool) -> None:
    click.echo(json.dumps({"name": name}) if as_json else f"Hello, {name}.")


def _talks(name: str, as_json: bool) -> None:
    click.echo("Looking for a greeting ...")
    _right(name, as_json)


def _fails(name: str, as_json: bool) -> None:
    raise SigmaConfigError("greet: nobody is there. Come back later.")


def _refuses_on_stdout(name: str, as_json: bool) -> None:
    if name == "me":
        click.echo("not me")
        raise SigmaConfigError("greet: not me. Name somebody else.")
    _right(name, as_json)


def _accepts_anything(name: str, as_json: bool) -> None:
    _right(name, as_json)


MISTAKE = "test_a_mistake_ends_with_a_message_on_stderr"
COMMANDS: dict[str, tuple[Any, Sequence[str], str]] = {
    "right": (greeting(_right), ["somebody"], ""),
    "no help": (greeting(_right, text=""), ["somebody"], "test_its_help_says_what_it_does_and_what_each_option_means"),
    "an option without help": (
        greeting(_right, option=""), ["somebody"], "test_its_help_says_what_it_does_and_what_each_option_means"),
    "words before the JSON": (greeting(_talks), ["somebody"], "test_json_is_one_document_on_stdout"),
    "two documents": (
        greeting(lambda name, as_json: (_right(name, as_json), _right(name, as_json))), ["somebody"],
        "test_json_is_one_document_on_stdout"),
    "a failure": (greeting(_fails), ["somebody"], "test_an_ordinary_call_succeeds"),
    "an error on stdout": (greeting(_refuses_on_stdout), ["me"], MISTAKE),
    "a mistake that passes": (greeting(_accepts_anything), ["me"], MISTAKE),
    "another exit code": (greeting(lambda name, as_json: 7), ["somebody"], "test_an_ordinary_call_succeeds"),
    "numpy": (greeting(_right), ["somebody"], "test_importing_it_is_light"),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_a_fault_in_a_command_is_caught(name: str) -> None:
    made, mistake, test = COMMANDS[name]

    class Suite(VerbSuite):
        heavy = ("numpy",)
        if name != "numpy":  # it takes another process
            test_importing_it_is_light = None  # type: ignore[assignment]

        def make(self) -> click.Command:
            command: click.Command = made
            return command

        def arguments(self) -> Sequence[str]:
            return ["you"]

        def mistakes(self) -> Sequence[Sequence[str]]:
            return [mistake]

    check_caught(Suite(), test)
