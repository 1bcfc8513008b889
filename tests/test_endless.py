"""Parsing any text and matching any address take a number of steps linear in its length.

Steps are counted, not seconds.  Steps inside a regular expression cannot be counted; so none may backtrack, which is
what makes one slow.
"""

from __future__ import annotations

import ast
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from re import _constants as constants, _parser as parser
from typing import Any

import pytest
from attrs import define

from sigma_kernel.clock import Moment, TimeStep, duration
from sigma_kernel.contracts import Layer
from sigma_kernel.criteria import Criterion
from sigma_kernel.errors import SigmaConfigError, SigmaError, SigmaNetworkError, suggest_name
from sigma_kernel.plugins import specs
from sigma_kernel.registry import addresses
from sigma_kernel.registry.addresses import Level, matches
from sigma_kernel.scanning import Scanner
from sigma_run.config.document import override, parse
from sigma_training import notation

ROOT = Path(__file__).parents[1]
SOURCES = sorted([*ROOT.glob("sigma_kernel/**/*.py"), *ROOT.glob("plugins/*/sigma_*/**/*.py")])
READING = {"compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}
PARAMETERS = {
    "sigma_kernel.settings: pattern",
    "sigma_kernel.plugins.specs: pattern",
    "sigma_kernel.scanning: self.words[name]",
    "sigma_data.datasets.image_folder: value",  # the user's own, for paths
    "sigma_data.pictures.labelled: expression",
}
MARKS = {  # values of what patterns are made with: marks of columns and fractions that a user chooses, and words
    "mark": ",", "point": r"\.", "class_name": "Arrays", "long": "validation",
}  # fmt: skip
LONG = 3000
BUDGET = 8  # words that are searched, per letter of a text


# -- regular expressions -----------------------------------------------------------------------------------------------
def parts(parsed: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every operation of a regular expression, including nested ones."""
    if isinstance(parsed, parser.SubPattern):
        for operation in parsed:
            yield operation
            yield from parts(operation[1])
    elif isinstance(parsed, tuple | list):
        for one in parsed:
            yield from parts(one)


def gives_back(pattern: str) -> bool:
    """Return whether a regular expression may backtrack, that is, match the same text in several ways."""
    repeats = (constants.MAX_REPEAT, constants.MIN_REPEAT)
    return any(
        name in repeats and argument[1] is constants.MAXREPEAT for name, argument in parts(parser.parse(pattern))
    )


def written_patterns(path: Path) -> Iterator[tuple[str, str | None]]:
    """Yield each regular expression in a file: its source, and its text if that does not depend on a parameter."""
    parts = path.relative_to(ROOT).parts
    package = Path(*(parts[2:] if parts[0] == "plugins" else parts))
    module = ".".join(package.with_suffix("").parts).removesuffix(".__init__")
    for call in filter(reads_with_one, ast.walk(ast.parse(path.read_text()))):
        source = ast.unparse(call.args[0])
        literal = isinstance(call.args[0], ast.Constant)  # of rooms that are not installed, too
        try:
            yield f"{module}: {source}", eval(source, {} if literal else {**vars(import_module(module)), **MARKS})
        except (NameError, AttributeError):
            yield f"{module}: {source}", None


def reads_with_one(node: ast.AST) -> bool:
    function = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    return function == "matches_re" or (function.startswith("re.") and function[3:] in READING)


@pytest.mark.parametrize("pattern", ["(a+)+", "a*", "(?:a|b*)c", r"\s*x", "a{2,}", "a+?", "(?=a*)"])
def test_a_regular_expression_with_backtracking_is_detected(pattern):
    assert gives_back(pattern)


@pytest.mark.parametrize("pattern", ["a", "a++", "(?:a++|b)*+", "a?b{0,3}", "(?>[ab]c)?"])
def test_a_regular_expression_without_backtracking_is_accepted(pattern):
    assert not gives_back(pattern)


@pytest.mark.rooms
def test_no_regular_expression_backtracks():
    found = dict(one for path in SOURCES for one in written_patterns(path))
    assert len(found) > 30
    assert {source for source, text in found.items() if text is None} == PARAMETERS
    assert [source for source, text in found.items() if text is not None and gives_back(text)] == []


@pytest.mark.parametrize("language", Scanner.__subclasses__(), ids=lambda language: language.__module__)
def test_no_token_of_a_text_form_backtracks(language):
    assert [name for name, pattern in language.words.items() if gives_back(pattern)] == []


@pytest.mark.parametrize("pattern", [pattern for pattern, _ in specs.FORMS.values()])
def test_no_parser_of_a_component_setting_backtracks(pattern):
    assert not gives_back(pattern)


# -- addresses ---------------------------------------------------------------------------------------------------------
class Looked(str):
    """A name that records which of its letters were searched."""

    spans: list[tuple[int, int]]

    def find(self, part: str, start: int, end: int) -> int:
        found = super().find(part, start, end)
        self.spans.append((start, end if found < 0 else found + len(part)))
        return found


def model(pattern: list[str], address: list[str], fits: Callable[[str, str], bool], star: str) -> bool:
    """Match by dynamic programming: slow, and too simple to be wrong."""
    held = {(0, 0): True}
    for i, j in ((i, j) for i in range(len(pattern) + 1) for j in range(len(address) + 1)):
        if i and pattern[i - 1] == star:
            held[i, j] = held.get((i - 1, j), False) or held.get((i, j - 1), False)
        elif i and j:
            held[i, j] = held.get((i - 1, j - 1), False) and fits(pattern[i - 1], address[j - 1])
    return held.get((len(pattern), len(address)), False)


def model_of_names(mask: str, name: str) -> bool:
    return model(list(mask), list(name), str.__eq__, "*")


def test_random_patterns_match_like_a_dynamic_programming_model():
    draw = random.Random(7)
    matched = 0
    for _ in range(10_000):
        masks = ["".join(draw.choices(["a", "b", "*"], k=draw.randint(1, 6))) for _ in range(draw.randint(1, 5))]
        masks = [draw.choice([re.sub(r"\*++", "*", mask), mask.replace("*", "a"), "**"]) for mask in masks]
        names = ["".join(draw.choices("ab", k=draw.randint(1, 6))) for _ in range(draw.randint(1, 6))]
        wanted = model(masks, names, model_of_names, "**")
        assert matches(".".join(masks), ".".join(names)) == wanted, (masks, names)
        matched += wanted
    assert 1_000 < matched < 9_000  # both were tried


HARD = ["**." * 40 + "z", "**.*." * 20 + "z", "**.a." * 30 + "z", "**.a.a." * 20 + "z.**", "*." * 39 + "**.z"]


@pytest.mark.parametrize("pattern", HARD)
def test_matching_a_pattern_compares_at_most_the_product_of_both_lengths(pattern, monkeypatch):
    compared: Counter[str] = Counter()
    fits = Level.fits
    monkeypatch.setattr(Level, "fits", lambda level, name: bool(compared.update([name])) or fits(level, name))
    assert not matches(pattern, ".".join("a" * 40))
    assert compared.total() <= len(addresses.levels(pattern)) * 40


@pytest.mark.parametrize("mask", ["*a" * 24 + "b", "*-" * 8 + "x", "*ab" * 30, "a*" * 40, "*aab*" + "*a" * 20])
def test_matching_with_stars_searches_each_letter_at_most_once(mask):
    name = Looked("a" * 400 + "-" * 60 + "x")
    name.spans = []
    Level(mask).fits(name)
    assert all(before[1] <= after[0] for before, after in pairwise(name.spans))


# -- texts -------------------------------------------------------------------------------------------------------------
@define(eq=False)
class Dense(Layer):
    """A layer without content."""

    units: Any = None

    def forward(self, context: Any, x: Any) -> Any:
        return x


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the searched words."""
    counted: Counter[str] = Counter()
    take = Scanner.take
    monkeypatch.setattr(Scanner, "take", lambda scanner, name: counted.update([name]) or take(scanner, name))
    return counted


PIECES = {
    "architecture": ["dense(3)", "a = ", "a", " ", "\n", "\t", ";", "# + b", "#", "(", ")", "[", "]", "{", "}", ",",
                     ":", "+", "->", "2 * ", "*", "=", "-", ".5e", "1", "true", "'", '"', "\\", "none", "é"],
    "criterion": ["loss", "above 3", "any ", "**.*", "<a,b>", "<", ">", "(", ")", "and ", "or ", "not ", "for ", "by 1",
                  " ", "\t", "epochs", "falls ", "to ", "in all", "1.5e+3", "+", "-", ".", "improves  upwards", "é"],
    "step": ["every ", "1", "2.5", ".", "e+", "epoch", "s", " ", "\t", "after ", "between ", "and ", "from ", "é"],
}  # fmt: skip
READ: dict[str, Callable[[str], Any]] = {
    "architecture": lambda text: notation.parse(text, lambda kind, name: Dense),
    "criterion": Criterion.parse,
    "step": TimeStep.parse,
    "duration": duration,
}
TEXTS = list(PIECES.items())


def read(language: str, text: str) -> None:
    with suppress(SigmaError):
        READ[language](text)


@pytest.mark.parametrize(("language", "piece"), [(one, piece) for one, pieces in PIECES.items() for piece in pieces])
def test_parsing_repeated_text_takes_steps_linear_in_its_length(language, piece, looked):
    for text in (piece * LONG, f"dense(3) {piece * LONG}", f"loss above 3 {piece * LONG}", f"1 {piece * LONG}"):
        looked.clear()
        read(language, text)
        assert looked.total() <= BUDGET * (len(text) + 1)


@pytest.mark.parametrize(
    "text",
    [
        "dense(3)" + " + dense(3)" * LONG,
        "dense(3)\n" * LONG,
        "\n".join(f"a{i} = dense(3)" for i in range(LONG)) + "\n" + " + ".join(f"a{i}" for i in range(LONG)),
        "dense(3) + (" * LONG + "dense(3)" + ")" * LONG,
        "1 * " * LONG + "dense(3)",
        "a = dense(3)\na" + "\na -> a" * LONG,
        f"dense([{'1, ' * LONG}])",
        f"dense({'[' * LONG}{']' * LONG})",
        f"dense(3, {', '.join(f'a{i}=2 * dense(3)' for i in range(LONG))})",
        "dense(3)" + " # a comment\n" * LONG + "+ dense(3)",
        "dense(" * LONG + ")" * LONG,
    ],
    ids=lambda text: f"{text[:20]}...",
)
def test_parsing_an_architecture_takes_steps_linear_in_its_length(text, looked):
    read("architecture", text)
    assert looked.total() <= BUDGET * len(text)


def test_parsing_random_texts_takes_steps_linear_in_their_length(looked):
    draw = random.Random(7)
    for _ in range(2_000):
        language, pieces = draw.choice(TEXTS)
        text = "".join(draw.choices(pieces, k=draw.randint(1, 60)))
        looked.clear()
        read(language, text)
        assert looked.total() <= BUDGET * (len(text) + 1), text


@pytest.mark.parametrize(
    "text", ["dense(3) # + dense(4)", "dense(3) # ; nonsense", "dense(3)\n# -> #\n", "dense(3)#'#("]
)
def test_comments_are_ignored(text):
    (end,) = READ["architecture"](text)
    assert isinstance(end, Dense)


def test_a_long_comment_after_an_architecture_is_ignored():
    (end,) = READ["architecture"]("dense(3)\n" + "#" * 100_000)
    assert isinstance(end, Dense)


def test_mutually_recursive_chains_are_refused_before_they_exhaust_memory():
    lines = [f"a{i + 1} = a{i} + a{i}" for i in range(60)]
    with pytest.raises(SigmaNetworkError, match="10,000 layers at most"):
        READ["architecture"]("\n".join(["a0 = dense(3)", *lines, "a60"]))


@pytest.mark.parametrize("text", ["not " * 1000 + "loss above 1", "not(" * 1000 + "loss above 1" + ")" * 1000,
                                  " and ".join(["loss above 1"] * 1000)])  # fmt: skip
def test_a_criterion_with_too_many_words_is_refused(text):
    with pytest.raises(SigmaConfigError, match="must have at most 300 words. Use several hooks"):
        Criterion.parse(text)


def test_the_longest_criterion_can_be_evaluated_and_printed():
    criterion = Criterion.parse("not " * 297 + "loss above 1")
    assert criterion.ask({"loss": 0.0}.get, {}, Moment()) is True
    assert Criterion.parse(str(criterion)) == criterion


def test_no_similar_name_is_suggested_for_an_overlong_name():
    assert suggest_name("a" * 99, ["a" * 100])
    assert not suggest_name("a" * 101, ["a" * 100])


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        ("a." * 10_000 + "b=1", "--set a.a.*: is nested too deep to be a setting"),
        ("run.seed=" + "[" * 10_000, "--set run.seed: is nested too deep to be a setting"),
        ("run.seed=" + "{a=" * 10_000, "--set run.seed: is nested too deep to be a setting"),
    ],
)
def test_a_too_deeply_nested_override_is_refused(assignment, said):
    with pytest.raises(SigmaConfigError, match=said):
        override(parse("", "file"), assignment)


def test_a_number_with_too_many_digits_on_the_command_line_is_text():
    assert override(parse("", "file"), "run.seed=" + "1" * 5_000).values["run"]["seed"] == "1" * 5_000
