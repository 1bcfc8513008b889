"""Conformance suite for plugins: the entry point, the component records, the exported names."""

from __future__ import annotations

import re
import subprocess
import sys
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
from attrs import frozen

from sigma_kernel.lazy import GENERATE, Exports
from sigma_kernel.plugins.catalogue import _catalogue as discovered, catalogue, load
from sigma_kernel.plugins.discovery import normal
from sigma_kernel.plugins.kinds import problems
from sigma_kernel.plugins.specs import GROUP, VERBS, Component
from sigma_testing import generate
from sigma_testing.suite import Suite

SENTENCE = re.compile(r"[A-Z0-9](\S| (?! )){0,100}\.")


@contextmanager
def fresh_catalogue() -> Iterator[None]:
    """Discover plugins again inside, for a test that installs one, and once more afterwards."""
    discovered.cache_clear()
    yield
    discovered.cache_clear()


class PluginSuite(Suite):
    """Conformance tests of a plugin: inherit, and override :meth:`make`.

    Exports are tested for packages that use :func:`sigma_kernel.lazy_exports`.
    """

    @abstractmethod
    def make(self) -> ModuleType:
        """Return the module that the entry point names."""

    def records(self) -> list[Component]:
        """Return the records of all components."""
        records: list[Component] = self.make().sigma_components()
        return records

    def package(self) -> ModuleType:
        """Return the package of the plugin's module, or the module itself."""
        return import_module(self.make().__package__ or self.make().__name__)

    def exports(self) -> dict[str, str]:
        """Return the modules of the package's lazy exports by name; empty if it has none."""
        getter = vars(self.package()).get("__getattr__")
        return dict(getter.places) if isinstance(getter, Exports) else {}

    def distribution(self) -> str:
        """Return the name of the distribution whose entry point names the module; the package's if there is none."""
        entries = (entry for entry in metadata.entry_points(group=GROUP) if entry.value == self.make().__name__)
        names = [normal(entry.dist.metadata["Name"]) for entry in entries if entry.dist]
        return names[0] if names else normal(self.package().__name__)

    def test_an_entry_point_names_the_module_and_the_plugin_is_ready(self) -> None:
        """Look at `sigma plugins doctor`, and install the project again."""
        entries = [entry for entry in metadata.entry_points(group=GROUP) if entry.value == self.make().__name__]
        assert len(entries) == 1, f"{len(entries)} entry points name {self.make().__name__}. Is the project installed?"
        assert entries[0].dist is not None
        plugin = catalogue().plugin(normal(entries[0].dist.metadata["Name"]))
        assert (plugin.state, plugin.reason, plugin.warning) == ("ready", "", "")
        assert [record._replace(distribution="") for record in plugin.components] == self.records()

    def test_commands_are_declared_in_the_metadata_as_well(self) -> None:
        """Add each to [project.entry-points."sigma_kernel.verbs"], as NAME = "module:object", and install again."""
        name, entries = self.distribution(), metadata.entry_points(group=VERBS)
        own = [entry for entry in entries if entry.dist and normal(entry.dist.metadata["Name"]) == name]
        expected = {record.name: record.path for record in self.records() if record.kind == "verb"}
        assert {entry.name: entry.value for entry in own} == expected

    def test_component_records_import_neither_numpy_nor_the_components(self) -> None:
        """Keep plugin.py light."""
        heavy = {"numpy", *(record.path.partition(":")[0] for record in self.records())}
        code = f"import sys, {self.make().__name__} as plugin; plugin.sigma_components(); print(*sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        modules = ", ".join(sorted(heavy & {*done.stdout.split()}))
        assert not modules, (
            f"{self.make().__name__}: imports {modules}, which makes every command slow. A component's module is named "
            "by its path, and is imported when it is used; move other imports there."
        )

    def test_every_component_record_resolves_to_its_kind(self) -> None:
        """Correct the path or the kind of the record."""
        distribution = self.distribution()
        messages = problems(record._replace(distribution=distribution) for record in self.records())
        assert not messages, " ".join(messages)

    def test_every_summary_is_a_sentence_on_one_line(self) -> None:
        """Begin with a capital or a digit, and end with a period."""
        assert [record.summary for record in self.records() if not SENTENCE.fullmatch(record.summary)] == []

    def test_the_package_exports_the_components_of_its_records(self) -> None:
        """Pass components=sigma_components() to lazy_exports()."""
        package, exports = self.package(), self.exports()
        for record in self.records() if exports else ():
            name = record.path.partition(":")[2]
            assert getattr(package, name, None) is load(record), f"{package.__name__}.{name}"

    def test_no_module_hides_an_exported_name(self) -> None:
        """Call the module by another name than the component."""
        package = self.package().__name__
        assert [name for name in self.exports() if find_spec(f"{package}.{name}")] == []  # importing it would

    def test_a_star_import_has_every_exported_name(self) -> None:
        """Take __all__ from lazy_exports()."""
        names: dict[str, object] = {}
        exec(f"from {self.package().__name__} import *", names)
        assert names.keys() >= self.exports().keys()

    def test_a_misspelt_name_is_an_attribute_error(self) -> None:
        """Take __getattr__ from lazy_exports()."""
        package = self.package()
        for name in ("no_such_name", *(f"{export}_" for export in self.exports())):
            with pytest.raises(AttributeError, match=name):
                getattr(package, name)

    def test_type_checkers_see_the_same_names(self) -> None:
        """Generate __init__.pyi again, and add py.typed."""
        stubs = generate.stubs(self.package().__name__) if self.exports() else {}
        assert not stubs or Path(str(self.package().__file__)).with_name("py.typed").exists()
        stale = [path for path, text in stubs.items() if not path.exists() or path.read_text("utf-8") != text]
        assert stale == [], f"Run {GENERATE}"


@frozen
class _Named(PluginSuite):
    module: ModuleType

    def make(self) -> ModuleType:
        return self.module


def failures(*modules: str) -> list[str]:
    """Return which tests of the suite plugins fail, given the modules that their entry points name, and why."""
    messages = []
    for module in modules:
        suite = _Named(import_module(module))
        for name in (name for name in dir(suite) if name.startswith("test_")):
            try:
                getattr(suite, name)()
            except (Exception, pytest.fail.Exception) as error:
                messages.append(f"{name}: {str(error).partition(chr(10))[0] or type(error).__name__}")
    return messages
