"""Random networks, growing networks, and the machine's peak rates."""

from __future__ import annotations

import pytest

from sigma_bench.contest import Result
from sigma_bench.entry import Measured
from sigma_bench.report import growth
from sigma_bench.roofline import Roofline
from sigma_bench.series import GROWTH, axes, draw_networks, grown, works
from sigma_kernel import SigmaConfigError, catalogue
from sigma_run.config import load_configuration


def test_ten_random_nets_are_valid_and_reproducible_by_seed() -> None:
    nets = list(draw_networks(10, 0))
    assert [load_configuration(wanted, catalogue()).run.name for _, wanted in nets] == [
        f"random-{i}" for i in range(1, 11)
    ]
    assert [(name, wanted.values) for name, wanted in draw_networks(10, 0)] == [
        (name, wanted.values) for name, wanted in nets
    ]
    assert [wanted.values for _, wanted in draw_networks(10, 1)] != [wanted.values for _, wanted in nets]
    assert [name for name, _ in draw_networks(3, 0)] == [name for name, _ in nets[:3]]


def test_random_networks_vary_in_every_drawn_property() -> None:
    values = [wanted.values for _, wanted in draw_networks(30, 0)]
    assert len({value["network"]["architecture"].count("dense") for value in values}) == 5
    assert len({value["trainer"]["optimiser"]["type"] for value in values}) == 4
    assert len({value["data"]["batch_size"] for value in values}) > 3


@pytest.mark.parametrize(
    ("axis", "what"),
    [
        ("width", [f"dense({n}, activation='relu') + dense({n}" for n in (128, 256, 512, 1024)]),
        ("batch", [50, 100, 200, 400]),
        ("data", [6000, 12000, 24000, 48000]),
    ],
)
def test_a_benchmark_network_grows_along_one_axis(axis: str, what: list[object]) -> None:
    for (name, wanted), expected in zip(grown(axes([axis])), what, strict=True):
        assert name.startswith(f"{axis} x ")
        data, network = wanted.values["data"], wanted.values["network"]
        found = {"width": network["architecture"], "batch": data["batch_size"], "data": data["rows"]}[axis]
        assert expected in found if isinstance(expected, str) else expected == found
        assert load_configuration(wanted, catalogue())


def test_depth_counts_layers() -> None:
    assert [wanted.values["network"]["architecture"].count("dense") for _, wanted in grown(["depth"])] == [2, 4, 8, 16]


def test_the_growth_of_work_is_reported_next_to_that_of_time() -> None:
    assert works(["batch", "data"]) == [1, 2, 4, 8, 1, 1, 1, 1]
    small, large = 128 * 128 * 2 + 1280, 128 * 1024 + 1024**2 + 10240
    assert works(["width"])[3] == pytest.approx(large / small)
    every = [
        Measured(f"{axis} x {times}", [Result("ours", [seconds * times], 0.0, 0, 50)], [])
        for axis, seconds in (("batch", 0.001), ("data", 0.5))
        for times in GROWTH
    ]
    lines = list(growth(every, works(["batch", "data"])))
    assert lines[0].split() == ["grows", "by", "work", "ours"]
    assert lines[4].split() == ["batch", "x", "8", "8.00", "8.00"]
    assert lines[5].split() == ["data", "x", "1", "1.00", "1.00"]
    assert lines[6].split() == ["data", "x", "2", "1.00", "2.00"]


def test_an_invalid_axis_is_refused() -> None:
    with pytest.raises(SigmaConfigError, match="--grow dept: there is no such axis. Did you mean 'depth'"):
        axes(["dept"])


def test_the_roofline_measures_positive_rates() -> None:
    rates = Roofline(side=64, size=1 << 16).rates()
    assert set(rates) == {"float32_flops_per_s", "memory_bytes_per_s"}
    assert all(rate > 1e6 for rate in rates.values())
