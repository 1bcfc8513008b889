"""The address language, compared with regular expressions over marked-up addresses."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings, strategies as st

from sigma_kernel.errors import SigmaAddressError
from sigma_kernel.registry.addresses import levels, literal, matches
from sigma_step.rules import specificity

NAMES = st.text("ab-1", min_size=1, max_size=3)
TAGS = st.sets(st.sampled_from(["t", "u", "v"]), max_size=2)
LEVELS = st.one_of(
    NAMES,
    st.just("**"),
    st.text("ab*", min_size=1, max_size=3).filter(lambda name: "**" not in name),
    st.builds(
        lambda name, tags: name + f"<{','.join(sorted(tags))}>" * bool(tags),
        st.sampled_from(["", "*", "a*", "a"]),
        TAGS,
    ),
).filter(bool)
PATTERNS = st.lists(LEVELS, min_size=1, max_size=5).map(".".join)
TAGGED = st.lists(st.tuples(NAMES, TAGS), min_size=1, max_size=5)  # an address: names with the tags at each level


def model(pattern: str, tagged: list[tuple[str, set[str]]]) -> bool:
    """Match by one regular expression over ``/name<tag><tag>/name...``."""
    marked = "".join(f"/{name}" + "".join(f"<{tag}>" for tag in sorted(tags)) for name, tags in tagged)
    expression = ""
    for part in pattern.split("."):
        name, _, tags = part.rstrip(">").partition("<")
        asked = "".join(f"(?=[^/]*<{tag}>)" for tag in tags.split(",") if tag)
        mask = (name or "*").replace("*", "[^/<]*")
        expression += r"(?:/[^/]+)*" if part == "**" else f"/{asked}{mask}(?:<[^/]*)?(?![^/])"
    return re.fullmatch(expression, marked) is not None


def tags_of(tagged: list[tuple[str, set[str]]]):
    known = {".".join(name for name, _ in tagged[: i + 1]): frozenset(tags) for i, (_, tags) in enumerate(tagged)}
    return known.__getitem__


@settings(deadline=None)
@given(PATTERNS, TAGGED)
def test_a_pattern_matches_what_a_regular_expression_matches(pattern, tagged):
    address = ".".join(name for name, _ in tagged)
    assert matches(pattern, address, tags_of(tagged)) == model(pattern, tagged)


@settings(deadline=None)
@given(TAGGED, st.data())
def test_an_address_with_some_levels_made_wildcards_still_matches(tagged, data):
    parts = []
    for name, tags in tagged:
        masked = [
            name,
            f"{name[0]}*",
            f"*{name[-1]}",
            "*",
            "**",
            *(f"*<{tag}>" for tag in tags),
            *(f"<{tag}>" for tag in tags),
        ]
        parts.append(data.draw(st.sampled_from(masked)))
    if data.draw(st.booleans()):
        parts.insert(data.draw(st.integers(0, len(parts))), "**")
    assert matches(".".join(parts), ".".join(name for name, _ in tagged), tags_of(tagged))


@pytest.mark.parametrize(
    ("pattern", "address", "held"),
    [
        ("**.weights", "2-dense.weights", True),
        ("**.weights", "weights", True),
        ("*.weights", "weights", False),
        ("*.weights", "a.b.weights", False),
        ("2-*.weights", "2-dense.weights", True),
        ("2-*.weights", "12-dense.weights", False),
        ("trainer*.optimiser.learning_rate", "trainer2.optimiser.learning_rate", True),
        ("network.**", "network", True),
        ("network.**", "networks.a", False),
        ("**.layers.*.weights", "trainer.network.layers.2-dense.weights", True),
    ],
)
def test_patterns_match_level_by_level(pattern, address, held):
    assert matches(pattern, address) is held


def test_a_tag_matches_only_tagged_levels():
    def tags(address: str) -> frozenset[str]:
        return frozenset({"dense"} if address == "layers.2-d" else ())

    assert matches("layers.*<dense>.weights", "layers.2-d.weights", tags)
    assert not matches("layers.*<dense>.weights", "layers.2-d.weights")


def test_a_pattern_with_several_tags_requires_all_of_them():
    def tags(address: str) -> frozenset[str]:
        return frozenset({"dense", "big"}) if address == "a" else frozenset()

    assert matches("<dense,big>.w", "a.w", tags)
    assert not matches("<dense,small>.w", "a.w", tags)


@pytest.mark.parametrize(
    ("stronger", "weaker"),
    [
        ("2-dense.weights", "2-*.weights"),
        ("2-dense.weights", "**.2-dense.weights"),
        ("2-*.weights", "*.weights"),
        ("2-d*.weights", "2-*.weights"),
        ("*<dense>.weights", "*.weights"),
        ("*<dense,big>.weights", "*<dense>.weights"),
        ("2-dense<dense>.weights", "2-dense.weights"),
        ("*.weights", "**.weights"),
        ("*.weights", "**.*.weights"),
        ("**.*.weights", "**.weights"),
        ("**.weights", "**"),
        ("*", "**"),
        ("**.2-dense.weights", "*.weights"),
    ],
)
def test_the_more_specific_pattern_wins(stronger, weaker):
    assert specificity(stronger) > specificity(weaker)


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["ab", "a*", "*", "**"]), min_size=1, max_size=4).filter(lambda p: set(p) != {"**"}),
    st.data(),
)
def test_a_wildcard_makes_a_pattern_less_specific(parts, data):
    opened = {"ab": "a*", "a*": "*", "*": "**"}
    i = data.draw(st.sampled_from([i for i, part in enumerate(parts) if part in opened]))
    weaker = [*parts[:i], opened[parts[i]], *parts[i + 1 :]]
    assert specificity(".".join(parts)) > specificity(".".join(weaker))


@pytest.mark.parametrize(
    "pattern", ["", "a..b", ".a", "a.", "a#b", "a b", "***", "a**", "**<t>", "a<", "a<>", "a<t", "<t>a", "a<t,>"]
)
def test_an_invalid_address_is_refused_with_its_invalid_part(pattern):
    with pytest.raises(SigmaAddressError, match="is not an address: .* cannot be a level"):
        levels(pattern)
    with pytest.raises(SigmaAddressError, match="not an address"):
        matches(pattern, "a.b")


def test_only_plain_names_are_literal():
    assert literal("trainer.network.layers.2-dense.weights_1")
    assert not any(literal(pattern) for pattern in ("a.*", "**", "a<t>.b", "<t>", "a-*"))
