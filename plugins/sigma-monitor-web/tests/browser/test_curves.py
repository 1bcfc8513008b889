"""Curves are right however long one watches: on a page that followed, on one that came late, and in the run folder."""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path
from typing import Any

LOSS = "trainer.training.loss"
FOLLOWED = """async ([most, lot]) => {
  const { Curves, lines } = await import("./series.js"), own = new Curves();
  const whole = [{ number: 0, from: 0, to: Infinity }];
  const rows = (from, to, step = 1) => {
    const at = Array.from({ length: Math.max(0, Math.ceil((to - from) / step)) }, (_, i) => from + i * step);
    return { branch: 0, iteration: at, epoch: at, second: at, value: at, low: at, high: at };
  };
  const few = (now) => rows(0, now, Math.ceil(now / own.most));
  const serve = (after, now) => ({ next: now, whole: !after, stretches: [after ? rows(after, now) : few(now)] });
  for (let now = lot; now <= most; now += lot) own.take({ [""]: serve(own.cursors([""])[""], now) });
  const seen = () => [...lines(own.get(""), whole, "iteration").alive.x];
  const followed = seen();
  own.magnify({ [""]: { stretches: [rows(1000, 3000)] } });
  const magnified = seen();
  own.magnify({});
  return { followed, magnified, back: seen() };
}"""
COLUMNS = """async (address) => {
  const { curves } = await import("./series.js"), stretch = curves.get(address).branches.get(0);
  const column = (name) => [name, [...stretch[name].subarray(0, stretch.length)]];
  return Object.fromEntries(["iteration", "value", "low", "high"].map(column));
}"""


def test_a_page_that_followed_a_million_iterations_shows_all_of_them_evenly(training: Any, visit: Any) -> None:
    window = visit()
    window.page.goto(training.link)
    found = window.page.evaluate(FOLLOWED, [1_000_000, 500])
    followed, magnified = found["followed"], found["magnified"]
    assert (followed[0], followed[-1]) == (0, 999_999)
    assert len(followed) < 12_500
    assert max(after - before for before, after in pairwise(followed)) <= 1_000_000 / 4000
    assert sorted({*followed}) == followed
    assert [at for at in magnified if 1000 <= at < 3000] == [*range(1000, 3000)]  # what one zooms to
    assert [at for at in magnified if not 1000 <= at < 3000] == [at for at in followed if not 1000 <= at < 3000]
    assert found["back"] == followed


def test_a_page_that_followed_one_that_came_late_and_the_run_folder_show_the_same_points(
    training: Any, visit: Any, tmp_path: Path
) -> None:
    window = visit()
    window.page.goto(training.link)
    window.page.get_by_role("img", name="training now").first.wait_for()
    window.page.wait_for_timeout(5000)
    window.page.get_by_role("button", name="Pause", exact=True).click()
    window.page.get_by_role("region", name="Playback").get_by_text("Paused", exact=True).wait_for()
    for _ in range(3):
        window.page.get_by_role("button", name="Iteration", exact=True).click()
        window.page.wait_for_timeout(500)
    late = visit()
    late.page.goto(training.link)
    late.page.get_by_role("img", name="training now").first.wait_for()
    window.page.wait_for_timeout(1000)
    followed, came_late = (one.page.evaluate(COLUMNS, LOSS) for one in (window, late))
    assert followed == came_late
    training.sigma("plot", str(training.results), "--value", "training.loss", "--save", str(tmp_path / "x.csv"))
    stored = [*csv.DictReader((tmp_path / "x.csv").read_text().splitlines())]
    assert [int(row["iteration"]) for row in stored] == followed["iteration"]
    assert [float(row["value"]) for row in stored] == followed["value"]
