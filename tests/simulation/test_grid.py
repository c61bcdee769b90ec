"""Cells of the benchmark, and the guard against worlds in which time does not pass."""

from __future__ import annotations

import pytest

from farm.engines import simulated
from farm.engines.simulated import Simulation, StandStill
from farm.simulation.grid import FRESH, Cell, Schedule, fresh_cells, grid_cells, percentile, run_cell
from tests.simulation.worlds import small_world, worker

FIXED = Schedule("fixed,48", "none")


def test_a_cell() -> None:
    cell = Cell(schedule=FIXED, fleet="A", condition="base", seed=0)
    result = run_cell(cell)
    assert result.makespan_seconds == pytest.approx(133.2)
    assert result.ratio == pytest.approx(1.992, abs=0.001)
    assert (result.claims, result.wasted_share) == (100, 0.0)
    assert run_cell(cell) == result


@pytest.mark.parametrize(("frames", "part", "workers"), [(5, 1, 4), (97, 1, 9), (101, 7, 4), (40, 12, 6)])
def test_static_has_at_most_a_slice_a_worker_in_flight(frames: int, part: int, workers: int) -> None:
    fleet = [worker(f"w{n}", fps=2.0 + n) for n in range(workers)]
    simulation = Simulation(small_world(*fleet, frames=frames, part=part, policy="static", tail="none"))
    most = 0
    while simulation.step():
        most = max(most, len(simulation.books.chunks))
    assert simulation.books.credited_frames == frames
    assert most <= workers and simulation.books.chunk_count <= (workers if part == 1 else 2 * workers)


def test_a_schedule_by_name() -> None:
    assert FIXED.name == "fixed,48 + none"
    assert Schedule("fair", "split", True).name == "fair + split + ahead"


def test_all_cells() -> None:
    cells = list(grid_cells([FIXED, Schedule("guided,12", "none")]))
    assert len(cells) == len(set(map(repr, cells))) == 2 * 6 * 9 * 3


def test_fresh_cells_have_conditions_of_their_own() -> None:
    cells = list(fresh_cells([FIXED], count=40))
    assert {cell.fleet for cell in cells} == {FRESH}
    assert len({cell.condition for cell in cells}) > 5
    smallest = run_cell(Cell(schedule=FIXED, fleet=FRESH, condition="base", seed=3, part=48))
    assert smallest.ratio >= 1.0


def test_percentile() -> None:
    values = [float(value) for value in range(1, 41)]
    assert percentile(values, 0.95) == 38.0
    assert percentile(values, 1.0) == 40.0
    assert percentile([3.0], 0.5) == 3.0
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


def test_messages_without_end_at_one_instant_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """30 joins at once are more than 10 messages at one instant."""
    monkeypatch.setattr(simulated, "STIMULI_AT_ONCE_MAX", 10)
    with pytest.raises(StandStill, match="time does not pass"):
        Simulation(small_world(*(worker(f"w{number}") for number in range(30)))).run()
