"""Conformance suites for recipes and commands, to inherit in a plugin's tests.

::

    class TestDigits(RecipeSuite):
        settings = ("data.rows=100",)  # to keep the test quick

        def make(self) -> Recipe:
            return recipe("digits")
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tomllib
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from typing import Any, ClassVar, NamedTuple

import click
import numpy as np

from sigma_kernel.clock import after
from sigma_kernel.contracts import Recipe
from sigma_kernel.errors import SigmaError
from sigma_kernel.plugins.catalogue import Catalogue, catalogue
from sigma_kernel.plugins.discovery import Plugin
from sigma_run import config
from sigma_run.launcher.output import say
from sigma_testing.doing import Do
from sigma_testing.suite import Suite

FEW = 3  # iterations to train


class RecipeSuite(Suite):
    """Conformance tests of a recipe: inherit, and override :meth:`make`."""

    settings: ClassVar[Sequence[str]] = ()  # ``a.b.c=value``, to make it small: the data, the backend

    @abstractmethod
    def make(self) -> Recipe:
        """Return the recipe under test."""

    def load(self, installed: Catalogue | None = None) -> config.Configuration:
        """Return its configuration, with ``settings``."""
        recipe = self.make()
        return config.load(recipe.text, self.settings, name=recipe.name, catalogue=installed)

    def use(self) -> None:
        """Make it, and use it once."""
        self.load()

    def test_it_describes_itself_and_runs_under_its_own_name(self) -> None:
        """Begin with a comment, and set [run] name to the recipe's."""
        recipe = self.make()
        first = recipe.text.partition("\n")[0]
        assert first.startswith("# "), "the first line of a recipe says what it is for: # Classify digits."
        assert len(first.split()) > 2
        assert tomllib.loads(recipe.text)["run"]["name"] == recipe.name

    def test_it_is_a_valid_configuration(self) -> None:
        """Run `sigma check` on its text."""
        configuration = self.load()
        assert config.load(config.resolved_toml(configuration)) == configuration

    def test_its_components_are_not_mistaken_for_those_of_other_plugins(self) -> None:
        """Set [run] prefer to the distributions it means."""
        installed = catalogue()
        offered = tuple(
            record._replace(distribution="a-rival") for record in installed.components() if record.kind != "lowering"
        )
        self.load(Catalogue((*installed.plugins, Plugin("a-rival", components=offered))))  # a name of two is refused

    def test_something_ends_its_training(self) -> None:
        """Set [trainer] epochs, or add a hook that ends training."""
        configuration = self.load()
        with config.build(configuration) as environment:
            config.prepare(configuration, environment, begins=True)

    def test_it_begins_to_train(self) -> None:
        """Run it with `sigma run`."""
        with config.build(self.load()) as environment:
            for trainer in environment.trainers.values():
                stop = Do(every=after(FEW, "iteration"), does=lambda context: context.command("stop"), ends=True)
                trainer.hooks = {**trainer.hooks, "suite": stop}
            environment.run()
            for trainer in environment.trainers.values():
                losses = trainer.history["training.loss"]
                assert len(losses) == FEW
                assert np.isfinite(losses).all()

    def test_it_names_a_seed_so_that_its_result_can_be_repeated(self) -> None:
        """Set [run] seed."""
        assert "seed" in tomllib.loads(self.make().text)["run"]


class Called(NamedTuple):
    """The result of a command: its exit code and its output."""

    code: int
    out: str
    err: str


class VerbSuite(Suite):
    """Conformance tests of a command: inherit, and override the two abstract methods."""

    heavy: ClassVar[Sequence[str]] = ("numpy", "matplotlib", "torch", "jax")  # not to be imported for ``--help``

    @abstractmethod
    def make(self) -> click.Command:
        """Return the command under test."""

    @abstractmethod
    def arguments(self) -> Sequence[str]:
        """Return the arguments of an ordinary call."""

    def mistakes(self) -> Sequence[Sequence[str]]:
        """Return arguments that it must refuse; by default, an unknown option."""
        return [["--no-such-option"]]

    def call(self, *arguments: str) -> Called:
        """Call the command as ``sigma`` does."""
        command, code = self.make(), 0
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            try:
                outcome = command.main(list(arguments), prog_name=f"sigma {command.name}", standalone_mode=False)
                code = outcome if isinstance(outcome, int) else 0
            except click.exceptions.Exit as error:
                code = error.exit_code
            except click.ClickException as error:
                error.show()
                code = error.exit_code
            except SigmaError as error:
                say(str(error))
                code = error.exit_code
        return Called(code, out.getvalue(), err.getvalue())

    def test_importing_it_is_light(self) -> None:
        """Import heavy libraries in the function, when the command is called."""
        module = getattr(self.make().callback, "__module__", "")
        code = f"import sys, {module}; print(*sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        loaded = {name.partition(".")[0] for name in done.stdout.split()}
        assert loaded.isdisjoint(self.heavy), f"{module} imports {loaded & {*self.heavy}}"

    def test_its_help_says_what_it_does_and_what_each_option_means(self) -> None:
        """Write a docstring, and `help` for each option."""
        command, done = self.make(), self.call("--help")
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith(f"Usage: sigma {command.name}")
        assert command.help, "a command has a docstring"
        options = [option for option in command.params if isinstance(option, click.Option)]
        assert not [option.name for option in options if not option.help and not option.hidden], (
            "every option has a help text"
        )

    def test_an_ordinary_call_succeeds(self) -> None:
        """Call it with arguments() in a terminal."""
        done = self.call(*self.arguments())
        assert done.code == 0, done.err

    def test_a_mistake_ends_with_a_message_on_stderr(self) -> None:
        """Raise a SigmaError or a click.ClickException."""
        for arguments in self.mistakes():
            done = self.call(*arguments)
            assert done.code in (1, 2, 3), f"{arguments}: exit code {done.code}"
            assert done.out == "", f"{arguments}: wrote to stdout"
            assert done.err.strip()
            assert "Traceback" not in done.err

    def test_json_is_one_document_on_stdout(self) -> None:
        """Print one JSON object, and everything for people on stderr."""
        if any("--json" in option.opts for option in self.make().params):
            document: Any = json.loads(self.call(*self.arguments(), "--json").out)
            assert isinstance(document, dict)
