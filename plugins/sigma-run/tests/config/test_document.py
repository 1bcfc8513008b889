"""Source positions in TOML files, and overrides."""

from __future__ import annotations

import pytest
import tomlkit
from hypothesis import given, strategies as st

from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.settings.mistakes import format_path
from sigma_run.config.document import override, parse

TEXT = '''# a comment

format = 1

[run]   # header comment
name = "x"

[data]
split.training = 0.8
split.validation = 0.2
sources = [
    # one
    "a",
    { type = "b", sizes = [1,
        2] }, "c",
]

[network]
architecture = """
input(4)
+ dense(3)
"""
after = true

[[many]]
k = 1

[[many]]
k = 2

[hooks.a]
type = "t"
[hooks."b c"]
type = "u"
'''


def lines(text: str) -> dict[str, int | str]:
    return {format_path(path): line for path, line in parse(text, "f.toml").places.items()}


def test_every_key_has_its_source_line() -> None:
    found = lines(TEXT)
    rows = TEXT.split("\n")
    for key, start in {
        "format": "format =", "run": "[run]", "run.name": "name =", "data.split": "split.training",
        "data.split.validation": "split.val", "data.sources": "sources", "data.sources[0]": '    "a"',
        "data.sources[1].type": "    { type", "data.sources[1].sizes[1]": "        2]", "data.sources[2]": "        2]",
        "network.architecture": "architecture", "network.after": "after", "hooks.a": "[hooks.a]",
        "hooks.b c": '[hooks."b c"]',
    }.items():  # fmt: skip
        assert rows[found[key] - 1].startswith(start), key
    assert rows[found["many[1].k"] - 1] == "k = 2"


def test_lines_are_the_same_with_windows_line_ends() -> None:
    assert lines(TEXT.replace("\n", "\r\n")) == lines(TEXT)


def test_a_line_within_a_multi_line_string_is_found() -> None:
    document = parse(TEXT, "f.toml")
    assert TEXT.split("\n")[document.describe(("network", "architecture"), "", 2)[0] - 1] == "+ dense(3)"


def test_toml_tables_out_of_order_keep_their_line_numbers() -> None:
    found = lines("[a.b]\nx = 1\n\n[c]\ny = 2\n\n[a]\nz = 3\n[a.d]\nw.v = 4\n")
    assert found["a.b.x"] == 2
    assert found["a"] == 7
    assert found["a.d.w.v"] == 10


plain = st.recursive(
    st.integers(-9, 9) | st.booleans() | st.text("ab\n#\"'", max_size=6) | st.floats(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc .", min_size=1, max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), plain, max_size=4))
def test_the_last_line_of_any_document_is_located(values: dict[str, object]) -> None:
    text = tomlkit.dumps(values)
    assert parse(text + "\n[zzz]\nlast = 1", "f.toml").places["zzz", "last"] == text.count("\n") + 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = \n", "f.toml:1: invalid TOML: Invalid value (column 5)"),
        ("a = 1\na = 2\n", "f.toml:2: invalid TOML: Cannot overwrite a value"),
        ('a = 1\nb = """x\n', "f.toml:3: invalid TOML: Unterminated string"),
        ("[a]\nx.y = 1\n[a.x]\nz = 1\n", "f.toml:3: invalid TOML"),
        (f"a = {'9' * 5000}", "f.toml:1: invalid TOML: Exceeds the limit (4300"),
        (f"a = {'[' * 100_000}", "f.toml: is nested too deep to be a configuration."),
        (f"a{'.b' * 100_000} = 1", "f.toml: is nested too deep to be a configuration."),
        (f"a = {'[{a = ' * 80}1{'}]' * 80}", "f.toml: is nested too deep to be a configuration."),
        ("#" * (1 << 20) + "#", "f.toml: has more than 1,048,576 characters"),
        ("a.b = 1\n" * 10_001, "f.toml: has more than 10,000 lines. Keep data in separate files."),
    ],
)
def test_broken_toml_names_file_and_line(text: str, message: str) -> None:
    with pytest.raises(SigmaConfigError) as error:
        parse(text, "f.toml")
    assert str(error.value).startswith(message)


def test_an_override_replaces_a_value_and_its_source_position() -> None:
    document = override(parse(TEXT, "f.toml"), "run.name=other")
    assert document.values["run"] == {"name": "other"}
    assert document.describe(("run", "name"), "is wrong")[1] == "--set run.name: is wrong"
    assert document.describe(("run",), "is wrong")[1] == "f.toml:5: run: is wrong"


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("0.5", 0.5), ("true", True), ('"3"', "3"), ("[1, 2]", [1, 2]), ("../some/where", "../some/where"),
     ("epoch reaches 3", "epoch reaches 3"), ("a=b", "a=b"), ('{ type = "x" }', {"type": "x"}), ("", ""),
     ("1\nformat = 2", "1\nformat = 2")],
)  # fmt: skip
def test_the_value_of_an_override_is_toml_or_a_bare_word(text: str, value: object) -> None:
    assert override(parse("", "f"), f"a.b={text}").values == {"a": {"b": value}}


def test_overriding_a_setting_of_a_named_component_makes_it_a_table() -> None:
    document = override(parse('[trainer]\noptimiser = "adam"\n', "f"), "trainer.optimiser.learning_rate=0.1")
    assert document.values == {"trainer": {"optimiser": {"type": "adam", "learning_rate": 0.1}}}
    assert document.describe(("trainer", "optimiser", "type"), "no")[1].startswith("f:2: ")


@pytest.mark.parametrize("assignment", ["x", "=3", "a b=3", "a.=1", "x=[1", 'x="a', "format.x=1", "a=1\nb=2"])
def test_a_malformed_override_is_refused(assignment: str) -> None:
    if assignment == "a=1\nb=2":
        assert override(parse("", "f"), assignment).values == {"a": "1\nb=2"}
        return
    with pytest.raises(SigmaConfigError, match="^--set "):
        override(parse("format = 1", "f"), assignment)


def test_overriding_a_table_replaces_the_source_positions_below_it() -> None:
    document = override(parse(TEXT, "f"), 'hooks.a={ type = "v" }')
    assert document.describe(("hooks", "a", "type"), "no")[1] == "--set hooks.a: hooks.a.type: no"
