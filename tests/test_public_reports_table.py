"""The table of public bug reports in docs/reliability.md: every report has a test, which names it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROW = re.compile(r"^\| (RG\d\d) \|.*\| `(tests/[\w/]+\.py)::(\w+)` \|$", re.MULTILINE)
ROWS = ROW.findall((ROOT / "docs" / "reliability.md").read_text())
#: Reports about frames, sound and joining (RG01 to RG14, RG29) and about the terminal (from RG48 on) have no
#: row; they are named where they are tested.
NUMBERS = {*range(15, 29), *range(30, 48)}


def test_every_report_has_its_row() -> None:
    ids = [row[0] for row in ROWS]
    assert {f"RG{number}" for number in NUMBERS} <= set(ids)
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(("report", "file", "name"), ROWS, ids=[row[0] for row in ROWS])
def test_the_test_of_a_report_is_there_and_names_it(report: str, file: str, name: str) -> None:
    source = (ROOT / file).read_text()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    (found,) = [n for n in ast.walk(ast.parse(source)) if isinstance(n, kinds) and n.name == name]
    assert report in (ast.get_source_segment(source, found) or "").upper()
