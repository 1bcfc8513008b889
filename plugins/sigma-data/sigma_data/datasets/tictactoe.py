"""Tic-tac-toe: every position, with its outcome and its best moves."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from attrs import define, field

from sigma_data.arrays import Arrays
from sigma_data.datasets.splits import Divided
from sigma_kernel import Label
from sigma_kernel.settings import in_

Board = tuple[int, ...]  # nine fields, row by row: 1 for the player to move, -1 for the opponent, 0 if empty

LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
FIELDS = (
    "top left", "top", "top right", "left", "centre", "right", "bottom left", "bottom", "bottom right",
)  # fmt: skip
TURNS = [
    np.rot90(one, times).ravel().tolist()
    for one in (np.arange(9).reshape(3, 3), np.arange(9).reshape(3, 3).T)
    for times in range(4)
]  # permutations of the fields: four rotations, with and without a reflection
OUTCOMES = {-1: "loss", 0: "draw", 1: "win"}


@define(eq=False, kw_only=True)
class TicTacToe(Divided):
    """All positions of tic-tac-toe, from the view of the player to move.

    ``inputs`` (3, 3) are 1 for own marks, -1 for the opponent's, 0 for empty fields. ``targets`` (9,) are 1 / n for
    each of the n best moves, 0 for the others and in finished games. ``outcome`` is the result of perfect play for the
    player to move: ``loss``, ``draw`` or ``win``. They are computed by minimax over the whole game tree. There are
    5,478 positions; in 4,520 of them the game goes on.

    Rotations and reflections of a position stay in one split.

    Args:
        ended: Whether to include finished games, which have no best move.
    """

    ended: bool = field(default=False, validator=in_((False, True)))

    def all_rows(self) -> tuple[Arrays, tuple[Label, ...]]:
        """Return the positions, by number of marks, and the names of the fields."""
        boards = self._boards()
        inputs = np.array(boards, np.float32).reshape(-1, 3, 3)
        shares = np.array([_shares(board) for board in boards], np.float32)
        outcomes = np.array([OUTCOMES[outcome(board)] for board in boards], np.dtypes.StringDType())
        return Arrays(inputs=inputs, targets=shares, outcome=outcomes), FIELDS

    def groups(self) -> Sequence[Board]:
        """Return the canonical form of each position, which its rotations and reflections share."""
        return [max(symmetric(board)) for board in self._boards()]

    def _boards(self) -> list[Board]:
        return [board for board in reachable() if self.ended or not is_over(board)]


def moves(board: Board) -> dict[int, Board]:
    """Return the position after each move, from the view of the next player; none if the game is over."""
    if is_over(board):
        return {}
    turned = [-mark for mark in board]
    return {i: (*turned[:i], -1, *turned[i + 1 :]) for i, mark in enumerate(board) if mark == 0}


def is_over(board: Board) -> bool:
    """Return whether the game is over: three in a line, or a full board."""
    return is_lost(board) or 0 not in board


def is_lost(board: Board) -> bool:
    """Return whether the previous player has three in a line."""
    return any(board[a] == board[b] == board[c] == -1 for a, b, c in LINES)


@cache
def outcome(board: Board) -> int:
    """Return the value of perfect play for the player to move: -1, 0 or 1."""
    return max((-outcome(after) for after in moves(board).values()), default=-1 if is_lost(board) else 0)


def best(board: Board) -> list[int]:
    """Return the moves that keep the outcome."""
    return [move for move, after in moves(board).items() if -outcome(after) == outcome(board)]


@cache
def reachable() -> tuple[Board, ...]:
    """Return all reachable positions, by number of marks."""
    boards: dict[Board, None] = {}
    latest: dict[Board, None] = {(0,) * 9: None}
    while latest:
        boards |= latest
        latest = dict.fromkeys(after for board in latest for after in moves(board).values())
    return tuple(boards)


def symmetric(board: Board) -> list[Board]:
    """Return the position in its eight rotations and reflections."""
    return [tuple(board[i] for i in turn) for turn in TURNS]


def _shares(board: Board) -> list[float]:
    good = best(board)
    return [1.0 / len(good) if i in good else 0.0 for i in range(9)]
