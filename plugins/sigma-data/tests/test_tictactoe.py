from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from sigma_data import TicTacToe
from sigma_data.datasets.tictactoe import Board, best, is_lost, moves, outcome, reachable, symmetric
from sigma_kernel import SigmaConfigError
from sigma_testing import DatasetSuite

EMPTY: Board = (0,) * 9


class TestTicTacToe(DatasetSuite):
    def make(self):
        return TicTacToe()["validation"]


def test_there_are_5478_positions_and_765_up_to_symmetry():
    assert len(reachable()) == len({*reachable()}) == 5478
    assert len({max(symmetric(board)) for board in reachable()}) == 765


def test_there_are_255168_games_with_the_known_results():
    @cache
    def games(board: Board, crosses: bool) -> tuple[int, int, int]:
        """Return the number of games from here on that crosses win, that noughts win, and draws."""
        if not moves(board):
            lost = is_lost(board)
            return int(lost and not crosses), int(lost and crosses), int(not lost)
        return tuple(map(sum, zip(*(games(after, not crosses) for after in moves(board).values()), strict=True)))

    assert games(EMPTY, True) == (131_184, 77_904, 46_080)


def test_958_positions_have_ended_as_in_the_data_set_of_uci():
    ended = [board for board in reachable() if not moves(board)]
    crosses = [board for board in ended if is_lost(board) and sum(board) < 0]  # noughts are to move, with a stone less
    assert len(ended) == 958
    assert len(crosses) == 626
    assert sum(not is_lost(board) for board in ended) == 16


def test_perfect_play_is_a_draw_and_a_corner_is_answered_in_the_centre():
    assert outcome(EMPTY) == 0
    assert best(EMPTY) == [*range(9)]
    assert best((-1, 0, 0, 0, 0, 0, 0, 0, 0)) == [4]
    assert best((1, 1, 0, -1, -1, 0, 0, 0, 0)) == [2]
    assert outcome((1, 1, 0, -1, -1, 0, 0, 0, 0)) == 1
    assert outcome((-1, -1, 0, -1, 1, 0, 0, 0, 1)) == -1  # two threats, of which one can be met


def test_the_outcome_is_the_same_in_each_rotation_and_reflection():
    for board in reachable()[::7]:
        assert len({outcome(one) for one in symmetric(board)}) == 1
        assert len({len(best(one)) for one in symmetric(board)}) == 1


def test_the_sections_hold_boards_shares_of_best_moves_and_outcomes():
    data = TicTacToe(ended=True)
    rows, classes = data.all_rows()
    block = rows.block(0)
    assert block["inputs"].shape == (5478, 3, 3)
    assert np.isin(block["inputs"], (-1, 0, 1)).all()
    boards = [tuple(map(int, one)) for one in block["inputs"].reshape(-1, 9)]
    assert boards == [*reachable()]
    for row in (0, 1, 500, 2500, 5477):
        assert np.flatnonzero(block["targets"][row]).tolist() == best(boards[row])
    open_ = np.array([bool(moves(board)) for board in boards])
    np.testing.assert_allclose(block["targets"].sum(1), open_, rtol=1e-6)
    assert rows.class_names("outcome") == ("draw", "loss", "win")
    assert [("draw", "loss", "win")[i] for i in block["outcome"][[0, -1]]] == [
        "draw",
        "loss" if is_lost(boards[-1]) else "draw",
    ]
    assert classes[4] == "centre"
    assert len(classes) == 9
    assert len(TicTacToe().all_rows()[0]) == 4520 == open_.sum()


@pytest.mark.parametrize("split_by", ["record", "block"])
def test_no_position_is_held_out_whose_reflection_is_learned(split_by):
    data = TicTacToe(split_by=split_by)
    seen = {
        name: {max(symmetric(tuple(map(int, board)))) for board in part.block(0)["inputs"].reshape(-1, 9)}
        for name, part in data.items()
    }
    assert not seen["training"] & seen["validation"]
    assert len(seen["training"] | seen["validation"]) == 627
    assert 0.75 < len(data["training"]) / 4520 < 0.85


def test_a_wrong_setting_is_refused():
    with pytest.raises(SigmaConfigError, match=r"TicTacToe\.ended"):
        TicTacToe(ended="all")
    with pytest.raises(SigmaConfigError, match=r"TicTacToe\.split_by"):
        TicTacToe(split_by="symmetry")
