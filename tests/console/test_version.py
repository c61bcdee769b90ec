"""``uneven --version`` says which one this is, without a command."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from console import cli


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"uneven {version('uneven')}\n"
