"""Plugins are discovered one by one; a broken one does not affect others; errors of names explain why."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import warnings

import pytest

import sigma_kernel
from sigma_kernel import Component, Hook
from sigma_kernel.errors import SigmaConfigError, SigmaPluginError, SigmaWarning
from sigma_kernel.plugins import discovery, rooms
from sigma_kernel.plugins.catalogue import Catalogue, catalogue
from sigma_kernel.plugins.discovery import Plugin, find
from sigma_kernel.plugins.resolver import Resolver

SCALE = '"layer", "scale_x", "acme_layers.scale:Scale", "Multiply by one number."'
BROKEN = {
    "an import error": ("import not_there_at_all", "No module named 'not_there_at_all'"),
    "a syntax error": ("def", "SyntaxError"),
    "sys.exit": ("import sys\nsys.exit(3)", "SystemExit: 3"),
    "a base exception of its own": ("class Odd(BaseException): ...\nraise Odd('odd')", "Odd: odd"),
    "an interrupt of its own": ("class Odd(KeyboardInterrupt): ...\nraise Odd('odd')", "Odd: odd"),
    "no api version": ("", "SIGMA_API is None"),
    "an api version that is no version": ("SIGMA_API = 'new'", "SIGMA_API is 'new'"),
    "an older major version": ("SIGMA_API = '0.9'", "written for API 0.9, this kernel has 1.0. Update the plugin"),
    "a newer major version": ("SIGMA_API = '2.0'", "written for API 2.0, this kernel has 1.0. Update sigma-kernel"),
    "no implementation": ("SIGMA_API = '1.0'\ndef sigma_components(): return []", "no sigma_components() marked"),
}
IMPL = "from sigma_kernel import Component, hookimpl\nSIGMA_API = '1.0'\n@hookimpl\ndef {name}: {body}\n"
BROKEN_IMPL = {
    "a misspelt spec": ("sigma_componets()", "return []", "unknown hook 'sigma_componets'"),
    "an argument nobody gives": ("sigma_components(x)", "return []", "Argument(s) {'x'} are declared"),
    "an error when asked": ("sigma_components()", "1 / 0", "ZeroDivisionError"),
    "something else than records": ("sigma_components()", "return ['dense']", "'dense', which is not a Component"),
    "something else than a list": ("sigma_components()", "return 7", "'int' object is not iterable"),
    "a kind there is not": (
        "sigma_components()",
        "return [Component('lyer', 'a', 'a.b:C', 'd')]",
        "Did you mean 'layer'",
    ),
    "a name with a capital": (
        "sigma_components()",
        "return [Component('layer', 'A', 'a.b:C', 'd')]",
        "name 'A' is not",
    ),
    "a path without an object": (
        "sigma_components()",
        "return [Component('layer', 'a', 'a.b', 'd')]",
        "path 'a.b' is not",
    ),
    "no summary": ("sigma_components()", "return [Component('layer', 'a', 'a.b:C', '')]", "summary '' is not"),
    "a name twice": ("sigma_components()", "return 2 * [Component('layer', 'a', 'a.b:C', 'd')]", "layer 'a' twice"),
}


def test_a_distribution_with_broken_metadata_is_named_and_leaves_others_usable(distribution, tmp_path):
    """Whether it has plugins or not."""
    distribution("acme-layers", SCALE)
    distribution("other")
    (tmp_path / "other" / "other-1.2.dist-info" / "entry_points.txt").write_bytes(bytes(range(128, 256)))
    found = {plugin.name: plugin for plugin in find()}
    assert found["acme-layers"].state == "ready"
    assert found["other-1.2.dist-info"].state == "quarantined"
    assert found["other-1.2.dist-info"].reason.startswith("its metadata cannot be read: ")
    assert catalogue().resolve("layer", "scale_x").distribution == "acme-layers"


def test_a_plugin_whose_metadata_has_no_name_is_quarantined(distribution, tmp_path):
    distribution("acme-layers", SCALE)
    distribution("other")
    folder = tmp_path / "other" / "other-1.2.dist-info"
    (folder / "METADATA").unlink()
    found = {plugin.name: plugin for plugin in find()}["other-1.2.dist-info"]
    assert found.state == "quarantined"
    assert found.reason == f"its metadata cannot be read: {folder} (it has no name). Remove or reinstall it"
    assert catalogue().resolve("layer", "scale_x").distribution == "acme-layers"


def test_a_plugin_whose_import_does_not_end_is_named_with_the_way_to_leave_it_out(distribution, monkeypatch):
    distribution("acme-layers", SCALE)
    monkeypatch.setattr(discovery, "SLOW", 0.01)
    monkeypatch.delitem(sys.modules, "acme_layers.plugin")
    said = []
    monkeypatch.setattr(discovery.warnings, "warn", said.append)
    distribution("acme-slow", text="import time\ntime.sleep(0.2)\nraise RuntimeError('slow')")
    assert any("plugin acme-slow: its import has taken" in one and "--no-plugin acme-slow" in one for one in said)


def test_components_of_a_plugin_know_their_distribution(distribution):
    plugin = distribution("acme-layers", SCALE, version="2.1")
    assert (plugin.state, plugin.version) == ("ready", "2.1")
    [component] = plugin.components
    assert component.full_name == "acme-layers:scale_x"
    assert component == Component(
        "layer", "scale_x", "acme_layers.scale:Scale", "Multiply by one number.", "acme-layers"
    )


def test_a_component_is_imported_on_first_use_and_not_before(distribution):
    distribution("acme-layers", SCALE, scale="class Scale: ...")
    assert catalogue().resolve("layer", "scale_x").distribution == "acme-layers"
    assert "acme_layers.scale" not in sys.modules
    assert catalogue().load("layer", "scale_x").__name__ == "Scale"
    assert "acme_layers.scale" in sys.modules


@pytest.mark.parametrize("case", BROKEN)
def test_a_plugin_that_fails_discovery_is_quarantined_alone(distribution, case):
    text, why = BROKEN[case]
    distribution("acme-layers", SCALE)
    plugin = distribution("broken-plugin", text=text)
    assert plugin.state == "quarantined"
    assert why in plugin.reason
    assert "Traceback" in plugin.traceback
    assert catalogue().resolve("layer", "scale_x")


@pytest.mark.parametrize("case", BROKEN_IMPL)
def test_a_plugin_with_an_invalid_registration_is_quarantined_with_the_reason(distribution, case):
    name, body, why = BROKEN_IMPL[case]
    plugin = distribution("broken-plugin", text=IMPL.format(name=name, body=body))
    assert plugin.state == "quarantined"
    assert why in plugin.reason


def test_an_interrupt_from_the_keyboard_is_not_taken_for_a_broken_plugin(distribution):
    """The plugin is named, since one that raises KeyboardInterrupt itself looks the same."""
    named = r"^plugin acme-layers: interrupted during its import\. To go on without it, pass --no-plugin acme-layers\.$"
    with pytest.warns(UserWarning, match=named), pytest.raises(KeyboardInterrupt):
        distribution("acme-layers", text="raise KeyboardInterrupt")


def test_a_plugin_for_a_newer_minor_version_gives_a_warning_when_used(distribution):
    text = IMPL.format(name="sigma_components()", body=f"return [Component({SCALE})]").replace("1.0", "1.7")
    plugin = distribution("acme-layers", text=text, scale="class Scale: ...")
    assert plugin.state == "ready"
    catalogue().resolve("layer", "scale_x")
    with pytest.warns(UserWarning, match=r"acme-layers: It was written for API 1\.7, this kernel has 1\.0"):
        catalogue().load("layer", "scale_x")


def test_two_plugins_may_offer_the_same_name_until_it_is_used(distribution):
    distribution("acme-layers", SCALE)
    distribution("rival-layers", SCALE.replace("acme", "rival"))
    with pytest.raises(SigmaConfigError, match=r"acme-layers and rival-layers both offer it.*'rival-layers:scale_x'"):
        catalogue().resolve("layer", "scale_x")
    with pytest.raises(
        SigmaConfigError, match=r"prefer one \(\[run\] prefer = \[\.\.\.\]\), or disable one \(--no-plugin\)\.$"
    ):
        catalogue().resolve("layer", "scale_x")
    assert catalogue().resolve("layer", "rival-layers:scale_x").path == "rival_layers.scale:Scale"
    assert catalogue().resolve("layer", "Acme_Layers:scale_x").path == "acme_layers.scale:Scale"


def test_a_preferred_plugin_is_meant_by_a_name_that_several_offer(distribution):
    distribution("acme-layers", SCALE)
    distribution("rival-layers", SCALE.replace("acme", "rival"))
    found = catalogue()
    for chosen in ("acme-layers", "rival-layers"):
        assert found.preferring([chosen]).resolve("layer", "scale_x").distribution == chosen
    assert found.preferring(["Rival_Layers", "acme-layers"]).resolve("layer", "scale_x").distribution == "rival-layers"
    assert found.preferring(["rival-layers"]).resolve("layer", "acme-layers:scale_x").distribution == "acme-layers"
    with pytest.raises(SigmaConfigError, match="both offer it"):
        found.resolve("layer", "scale_x")


@pytest.mark.parametrize("others", [["rival-layers"], ["rival-layers", "third-layers"]])
def test_a_name_of_the_default_set_means_its_component_with_a_warning(distribution, monkeypatch, others):
    monkeypatch.setattr(rooms, "default_set", lambda: ["acme-layers", "acme-hooks"])
    for name in ("acme-layers", *others):
        distribution(name, SCALE.replace("acme_layers", name.replace("-", "_")))
    every = " and ".join(["acme-layers", *others])
    said = rf"'scale_x': {every} both offer it\. It means 'acme-layers:scale_x', .* or 'rival-layers:scale_x'.* prefer"
    with pytest.warns(SigmaWarning, match=said):
        assert catalogue().resolve("layer", "scale_x").distribution == "acme-layers"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert catalogue().resolve("layer", "rival-layers:scale_x").distribution == "rival-layers"
        assert catalogue().preferring(["rival-layers"]).resolve("layer", "scale_x").distribution == "rival-layers"
        assert catalogue().preferring(["acme-layers"]).resolve("layer", "scale_x").distribution == "acme-layers"


def test_the_default_set_is_that_of_the_project():
    assert {"sigma-layers", "sigma-recipes", "sigma-training"} <= {*rooms.default_set()}
    assert not {"sigma-sklearn", "sigma-backend-torch"} & {*rooms.default_set()}


def test_what_a_preferred_plugin_requires_is_preferred_after_it(distribution):
    for name in ("acme-layers", "rival-layers", "other-layers"):
        distribution(name, SCALE.replace("acme_layers", name.replace("-", "_")))
    distribution("acme-recipes", requires=["numpy>=2", "Rival.Layers[fast] ~=0.1", "other-layers; extra == 'more'"])
    found = catalogue().preferring(["acme-recipes"])
    assert found.resolve("layer", "scale_x").distribution == "rival-layers"


def test_an_unknown_preferred_plugin_is_refused(distribution):
    distribution("acme-layers", SCALE)
    with pytest.raises(SigmaConfigError, match=r"no plugin is called 'acme-layer'\. Did you mean 'acme-layers'\?"):
        catalogue().preferring(["acme-layer"])
    assert catalogue().preferring(["sigma-backend-jax"]).prefer[0] == "sigma-backend-jax"  # known, and not installed


BACKENDS = (
    '"backend", "slow", "acme_backends.slow:Slow", "Any machine.", preference=1',
    '"backend", "fast", "acme_backends.fast:Fast", "Some machines.", preference=2',
    '"backend", "far", "acme_backends.far:Far", "Another device: only where it is named."',
)


def test_the_default_backend_is_the_preferred_one_that_can_be_imported(distribution, monkeypatch):
    monkeypatch.delenv("SIGMA_BACKEND")
    slow, fast, far = "class Slow: ...", "class Fast: ...", "class Far: ..."
    acme = distribution("acme-backends", *BACKENDS, slow=slow, fast=fast, far=far)
    assert Catalogue((acme,)).default_backend() == "acme-backends:fast"
    monkeypatch.setenv("SIGMA_BACKEND", "slow")
    assert Catalogue((acme,)).default_backend() == "acme-backends:slow"
    with pytest.raises(SigmaConfigError, match=r"^SIGMA_BACKEND: backend 'slow': no plugin offers it\."):
        Catalogue(()).default_backend()
    monkeypatch.setenv("SIGMA_BACKEND", "jax")
    with pytest.raises(
        SigmaPluginError, match=r"^SIGMA_BACKEND: backend 'jax': sigma-backend-jax offers it, but is not"
    ):
        Catalogue((acme,)).default_backend()


def test_a_backend_that_cannot_be_imported_is_not_the_default_and_says_why(distribution, monkeypatch):
    monkeypatch.delenv("SIGMA_BACKEND")
    acme = distribution("acme-backends", *BACKENDS, slow="class Slow: ...", fast="import not_there")
    with pytest.warns(UserWarning, match="backend 'acme-backends:fast': .* cannot be loaded .*not_there"):
        assert Catalogue((acme,)).default_backend() == "acme-backends:slow"


def test_without_a_preferred_backend_the_error_names_the_reference(distribution, monkeypatch):
    monkeypatch.delenv("SIGMA_BACKEND")
    acme = distribution("acme-backends", BACKENDS[2], far="class Far: ...")
    assert Catalogue((acme,)).default_backend() == "numpy"
    with pytest.raises(SigmaPluginError, match="backend 'numpy': sigma-backend-numpy offers it, but is not installed"):
        Catalogue((acme,)).resolve("backend", "numpy")


def test_a_preference_is_a_whole_number(distribution):
    assert (
        "preference 'high' is not a whole number"
        in distribution("acme-backends", BACKENDS[0].replace("=1", "='high'"), slow="class Slow: ...").reason
    )


def test_each_kind_of_component_has_its_own_names(distribution):
    distribution("acme-layers", SCALE)
    with pytest.raises(SigmaConfigError, match="optimiser 'scale_x': no plugin offers it"):
        catalogue().resolve("optimiser", "scale_x")


def test_an_unknown_name_suggests_similar_names(distribution):
    distribution("acme-layers", SCALE)
    with pytest.raises(SigmaConfigError, match=r"layer 'scale_y': no plugin offers it. Did you mean 'scale_x'\?"):
        catalogue().resolve("layer", "scale_y")


def test_a_name_of_a_known_distribution_says_how_to_install_it():
    with pytest.raises(SigmaPluginError, match="sigma-data offers it, but is not installed. python -m pip install"):
        Catalogue(()).resolve("dataset", "digits")
    with pytest.raises(SigmaPluginError, match="recipe 'xor': sigma-data is not installed. python -m pip install"):
        Catalogue(()).resolve("recipe", "sigma-data:xor")


def test_a_distribution_without_a_release_is_not_recommended(monkeypatch):
    monkeypatch.setitem(rooms._read_rooms()["planned"], "sigma-room", {"operator": "rare"})
    with pytest.raises(SigmaPluginError) as caught:
        Catalogue(()).resolve("operator", "rare")
    assert str(caught.value) == (
        "operator 'rare': sigma-room offers it, but is not installed. It is planned; there is no release yet."
    )


@pytest.mark.parametrize(
    ("recorded", "install"),
    [
        (None, "python -m pip install -U acme-layers"),
        ({"url": "file:///some/where%20else", "dir_info": {}}, "python -m pip install -U '/some/where else'"),
        ({"url": "file:///some/acme", "dir_info": {"editable": True}}, "python -m pip install -U -e /some/acme"),
        ({"url": "https://example.org/acme", "vcs_info": {"vcs": "git"}}, "python -m pip install -U acme-layers"),
    ],
)
def test_advice_names_what_a_distribution_was_installed_from(distribution, tmp_path, recorded, install):
    distribution("acme-layers", SCALE)
    if recorded:
        (tmp_path / "acme-layers" / "acme_layers-1.2.dist-info" / "direct_url.json").write_text(json.dumps(recorded))
    assert rooms.install("acme-layers", "-U") == install


def test_a_room_that_is_not_installed_is_looked_for_in_the_clone(tmp_path, monkeypatch):
    (tmp_path / "sigma-room").mkdir()
    monkeypatch.setattr(rooms, "CLONE", tmp_path)
    monkeypatch.chdir(tmp_path)
    assert rooms.install("sigma-room") == "python -m pip install -e sigma-room"
    assert rooms.install("sigma-other") == "python -m pip install sigma-other"


def test_an_unknown_distribution_is_not_recommended(distribution):
    with pytest.raises(SigmaPluginError, match="no installed plugin is called 'acme'. Installed are: none.") as caught:
        Catalogue(()).resolve("layer", "acme:scale_x")
    assert "pip" not in str(caught.value)
    distribution("acme-layers", SCALE)
    with pytest.raises(SigmaPluginError, match=r"called 'acme-layer'. Did you mean 'acme-layers'\?"):
        catalogue().resolve("layer", "acme-layer:scale_x")
    with pytest.raises(SigmaPluginError, match=r"called 'x'. Installed are: .*acme-layers"):
        catalogue().resolve("layer", "x:scale_x")


def test_a_quarantined_plugin_is_reported_when_its_component_is_needed(distribution, monkeypatch):
    monkeypatch.setitem(rooms._read_rooms()["planned"], "sigma-room", {"layer": "rare_one"})
    distribution("sigma-room", text="import not_there_at_all")
    with pytest.raises(SigmaPluginError, match="sigma-room should offer it, but is broken \\(ModuleNotFoundError"):
        catalogue().resolve("layer", "rare_one")
    with pytest.raises(SigmaConfigError, match="Broken plugins that may offer it: sigma-room"):
        catalogue().resolve("layer", "never_heard_of")


def test_a_disabled_plugin_is_not_imported_and_reported_when_needed(distribution, monkeypatch):
    distribution("acme-layers", text="raise RuntimeError")
    monkeypatch.setenv("SIGMA_DISABLE_PLUGINS", "Acme_Layers,,")
    assert catalogue().plugin("acme-layers").state == "disabled"
    with pytest.raises(SigmaPluginError, match="disabled by --no-plugin or SIGMA_DISABLE_PLUGINS"):
        catalogue().resolve("layer", "acme-layers:scale_x")


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("import not_there_at_all", "ModuleNotFoundError"),
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("Scales = 1", "no attribute 'Scale'"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_component_that_cannot_be_imported_names_distribution_and_remedy(distribution, source, why):
    distribution("acme-layers", SCALE, scale=source)
    with pytest.raises(SigmaPluginError, match="layer 'acme-layers:scale_x'.*--force-reinstall acme-layers") as caught:
        catalogue().load("layer", "scale_x")
    assert why in str(caught.value)


@pytest.mark.parametrize("needs", [["Not.There>=2"], ["pluggy", "not-there; extra == 'fast'"]])
def test_a_requirement_that_is_missing_is_the_remedy_for_what_imports_it(distribution, needs):
    distribution("acme-layers", SCALE, scale="import not_there", requires=needs)
    with pytest.raises(SigmaPluginError) as caught:
        catalogue().load("layer", "scale_x")
    reason = "(ModuleNotFoundError: No module named 'not_there')"
    assert str(caught.value).endswith(f"{reason}. It requires not-there: python -m pip install not-there")


@pytest.mark.parametrize("source", ["from pluggy import not_there", "import pluggy.not_there", "import not_there"])
def test_a_requirement_that_is_there_or_stated_nowhere_is_not_the_remedy(distribution, source):
    distribution("acme-layers", SCALE, scale=source, requires=["pluggy", "other"])
    with pytest.raises(SigmaPluginError, match=r"Reinstall it: .* --force-reinstall acme-layers$"):
        catalogue().load("layer", "scale_x")


def test_an_interrupt_while_a_component_is_imported_stays_an_interrupt(distribution):
    distribution("acme-layers", SCALE, scale="raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        catalogue().load("layer", "scale_x")


def test_disabling_a_plugin_that_is_not_installed_gives_a_warning(distribution, monkeypatch):
    distribution("acme-layers", SCALE)
    monkeypatch.setenv("SIGMA_DISABLE_PLUGINS", "acme-layer")
    with pytest.warns(UserWarning, match=r"no installed plugin is called 'acme-layer'. Did you mean 'acme-layers'\?"):
        assert catalogue().plugin("acme-layers").state == "ready"


def test_a_plugin_counts_as_used_once_one_of_its_components_is_imported(distribution):
    distribution("acme-layers", SCALE, scale="class Scale: ...")
    distribution("rival-layers", SCALE.replace("acme", "rival").replace("scale_x", "scale_y"), scale="Scale = 1")
    before = catalogue().versions()
    assert not {"acme-layers", "rival-layers"} & set(before)
    catalogue().load("layer", "scale_x")
    assert set(catalogue().versions()) - set(before) == {"acme-layers"}


def test_recorded_versions_include_the_kernel_and_the_used_plugins(distribution):
    distribution("acme-layers", SCALE, scale="class Scale: ...", version="3.4")
    distribution("broken-plugin", text="raise RuntimeError")
    assert "acme-layers" not in catalogue().versions()
    catalogue().load("layer", "scale_x")
    assert catalogue().versions()["acme-layers"] == "3.4"
    assert catalogue().versions()["sigma-kernel"] == sigma_kernel.__version__
    assert "broken-plugin" not in catalogue().versions()


def test_a_plugin_that_is_not_installed_suggests_similar_names(distribution):
    distribution("acme-layers", SCALE)
    with pytest.raises(SigmaPluginError, match=r"plugin 'acme-layer': not installed. Did you mean 'acme-layers'\?"):
        catalogue().plugin("acme-layer")


def test_plugins_are_ordered_by_name(distribution):
    for name in ("zeta-plugin", "alpha-plugin"):
        distribution(name, SCALE)
    names = [plugin.name for plugin in find()]
    assert names == sorted(names)


def test_importing_the_kernel_imports_nothing_until_it_is_used():
    code = "import sys, sigma_kernel; print(sorted(m for m in sys.modules if m.startswith(('sigma_kernel.', 'numpy'))))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (
        done.stdout == "['sigma_kernel.contracts', 'sigma_kernel.lazy', 'sigma_kernel.systems']\n"
    )  # two lists of names


def test_a_name_of_another_library_is_answered_with_that_of_sigma(distribution):
    code = """
        from attrs import define
        from sigma_kernel.contracts import Optimiser
        @define(eq=False)
        class Descent(Optimiser):
            step_length: float = 0.1
            def build(self, objective): ...
    """
    record = '"optimiser", "acme_descent", "acme_descent.descent:Descent", "Go down."'
    distribution("acme-descent", f'{record}, also_known_as="Acme_GD eta=step_length"', descent=code)
    for name in ("acme_gd", "AcmeGD"):
        with pytest.raises(SigmaConfigError, match=r"no plugin offers it\. Sigma calls it 'acme_descent'\.$"):
            catalogue().resolve("optimiser", name)
    with pytest.raises(SigmaConfigError, match=r"^layer 'acme_gd': no plugin offers it\. `sigma components layer`"):
        catalogue().resolve("layer", "acme_gd")  # another kind
    made = catalogue().load("optimiser", "acme_descent")
    with pytest.raises(SigmaConfigError, match=r"^Descent: has no setting 'eta'\. Sigma calls it 'step_length'\.$"):
        made(eta=1)
    with pytest.raises(SigmaConfigError, match=r"^optimiser: has no setting 'eta'\. Sigma calls it"):
        Resolver(catalogue())("optimiser", {"type": "acme_descent", "eta": 1})


@pytest.mark.parametrize("names", ["sgd, gd", "lr=", "=a", 3, None])
def test_names_of_other_libraries_are_separated_by_blanks(distribution, names):
    plugin = distribution("acme-layers", f'"layer", "scale", "acme.scale:Scale", "Scale.", also_known_as={names!r}')
    assert "Component: also_known_as" in plugin.reason
    assert "is not of the form 'sgd lr=learning_rate'" in plugin.reason


def test_plugins_that_two_threads_import_at_once_leave_stdout_as_it_was():
    class Slow:
        def load(self):
            time.sleep(0.02)

    before, together = sys.stdout, threading.Barrier(2)

    def examine(delay):
        together.wait()
        time.sleep(delay)
        discovery._examine(Slow(), discovery.Plugin("slow"), set())

    threads = [threading.Thread(target=examine, args=[delay]) for delay in (0.0, 0.01)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sys.stdout is before


# -- defaults ----------------------------------------------------------------------------------------------------------
def for_a_role(name: str, distribution: str, role: str = "steering") -> Plugin:
    record = Component("monitor", name, "acme.things:Thing", "A thing.", distribution, default_for=role)
    return Plugin(distribution, "1.0", (record,))


def test_the_default_for_a_role_is_of_the_only_plugin_that_offers_one():
    catalogue = Catalogue((for_a_role("screen", "acme-screens"), for_a_role("other", "acme-others", "progress")))
    assert catalogue.resolve("monitor", "default:steering").full_name == "acme-screens:screen"
    assert catalogue.offers("monitor", "default:steering")
    assert not catalogue.offers("hook", "default:steering")


def test_the_project_s_own_component_for_a_role_comes_before_others_unless_one_is_preferred():
    catalogue = Catalogue((for_a_role("screen", "acme-screens"), for_a_role("control", "sigma-monitor-control")))
    assert catalogue.resolve("monitor", "default:steering").full_name == "sigma-monitor-control:control"
    preferring = catalogue.preferring(["acme-screens"])
    assert preferring.resolve("monitor", "default:steering").full_name == "acme-screens:screen"


def test_a_role_that_two_other_plugins_offer_is_ambiguous():
    catalogue = Catalogue((for_a_role("screen", "acme-screens"), for_a_role("panel", "acme-panels")))
    with pytest.raises(SigmaConfigError, match="'default:steering': acme-screens and acme-panels both offer it. Write"):
        catalogue.resolve("monitor", "default:steering")


def test_a_role_that_no_plugin_offers_names_the_room_to_install():
    with pytest.raises(SigmaPluginError, match="sigma-monitor-control offers it, but is not installed. python -m pip"):
        Catalogue(()).resolve("monitor", "default:steering")
    with pytest.raises(SigmaConfigError, match="monitor 'juggling': no plugin offers it"):
        Catalogue(()).resolve("monitor", "default:juggling")


def test_a_role_that_is_no_word_is_refused(distribution):
    plugin = distribution("acme-roles", "'monitor', 'screen', 'acme_roles.x:X', 'A thing.', default_for='Two Words'")
    assert "Component: default_for 'Two Words' is not of the form 'first-recipe'" in plugin.reason


def test_nothing_is_no_component_of_a_kind_without_a_default():
    with pytest.raises(SigmaConfigError, match=r"hooks.score: must be a hook: .* \(got None\)"):
        Resolver(Catalogue(()))(Hook, None, "hooks.score")


# -- names that components had before ----------------------------------------------------------------------------------
def moved(distribution: str = "acme-new", formerly: str = "acme-old:screen") -> Plugin:
    """Return a plugin with one component, which another distribution offered before."""
    record = Component("monitor", "display", "acme.things:Thing", "A thing.", distribution, formerly=formerly)
    return Plugin(distribution, "1.0", (record,))


def test_a_component_is_found_by_the_full_name_that_it_had_before():
    found = Catalogue((moved(),))
    assert found.resolve("monitor", "acme-old:screen").full_name == "acme-new:display"
    assert found.offers("monitor", "acme-old:screen")
    with pytest.raises(SigmaConfigError, match="monitor 'screen': no plugin offers it"):
        found.resolve("monitor", "screen")


def test_what_a_distribution_offers_now_goes_before_what_it_offered_before():
    now = Component("monitor", "screen", "acme.things:Thing", "A thing.", "acme-old")
    found = Catalogue((moved(), Plugin("acme-old", "2.0", (now,))))
    assert found.resolve("monitor", "acme-old:screen") == now


def test_a_missing_room_is_named_for_a_component_that_it_has_taken_over(monkeypatch):
    table = {**rooms._read_rooms(), "moved": {"monitor": {"sigma-data:screen": "sigma-plot:display"}}}
    monkeypatch.setattr(rooms, "_read_rooms", lambda: table)
    with pytest.raises(SigmaPluginError, match="monitor 'display': sigma-plot is not installed. python -m pip install"):
        Catalogue(()).resolve("monitor", "sigma-data:screen")


def test_a_former_name_that_is_none_is_refused(distribution):
    plugin = distribution("acme-roles", "'monitor', 'screen', 'acme_roles.x:X', 'A thing.', formerly='screen'")
    assert "Component: formerly 'screen' is not of the form 'acme-layers:leaky_relu'" in plugin.reason
